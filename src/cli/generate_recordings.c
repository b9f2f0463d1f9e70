/* generate_recordings.c: takes names, computes the features as the model's data set had them. */
#include "cli/generate_recordings.h"

#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "data/audio_batch.h"
#include "data/audio_list.h"
#include "data/speech_facts.h"

enum { MOST = 256 }; /* recordings at once */

struct fth_recordings {
    fth_recordings_spec spec;
    fth_speech_facts facts;
    fth_filter_bank *bank;
    fth_audio_list *list;
    fth_audio_item items[MOST];
    fth_input lines[MOST];
    int64_t n, number, skipped;
};

static fth_err open_all(fth_recordings *r) {
    const fth_recordings_spec *s = &r->spec;
    FTH_TRY(fth_speech_facts_load(&r->facts, s->model));
    if (r->facts.features != s->features)
        return fth_fail(FTH_BAD_INPUT,
                        r->facts.rate
                            ? "%s/speech.json: has %d features, the model reads %d"
                            : "%s: has no speech.json, which says how recordings become frames; "
                              "fathom train puts it into its checkpoints",
                        s->model, r->facts.features, s->features);
    FTH_TRY(fth_filter_bank_new(r->facts.rate, r->facts.features, &r->bank));
    return fth_audio_list_open(s->list, &r->list);
}

fth_err fth_recordings_new(const fth_recordings_spec *spec, fth_recordings **out) {
    fth_recordings *r = calloc(1, sizeof *r);
    if (!r) return fth_fail(FTH_NO_MEMORY, "no memory for recordings");
    r->spec = *spec;
    if (r->spec.threads < 1) r->spec.threads = fth_cores_usable().threads;
    fth_err err = open_all(r);
    if (err == FTH_OK)
        *out = r;
    else
        fth_recordings_free(r);
    return err;
}

static void clear(fth_recordings *r) {
    for (int64_t i = 0; i < r->n; i++) fth_audio_item_fini(&r->items[i]);
    r->n = 0;
}

void fth_recordings_free(fth_recordings *r) {
    if (!r) return;
    clear(r);
    fth_audio_list_free(r->list);
    fth_filter_bank_free(r->bank);
    free(r);
}

int64_t fth_recordings_skipped(const fth_recordings *r) {
    return r->skipped;
}

static fth_err take_names(fth_recordings *r) {
    fth_audio_row row;
    clear(r);
    while (r->n < MOST) {
        FTH_TRY(fth_audio_list_next(r->list, &row));
        if (!row.clip.path) return FTH_OK;
        fth_audio_item *item = &r->items[r->n++];
        *item = (fth_audio_item){.clip = row.clip};
        item->clip.path = strdup(row.clip.path);
        item->place = strdup(fth_audio_list_place(r->list));
        if (!item->clip.path || !item->place)
            return fth_fail(FTH_NO_MEMORY, "no memory for recordings");
    }
    return FTH_OK;
}

/* What is wrong with a recording; NULL: nothing. */
static const char *fault_of(const fth_audio_item *item) {
    if (item->err != FTH_OK) return item->message ? item->message : "cannot be read";
    return item->features.state == FTH_FEATURES_TOO_SHORT ? "is shorter than a window of 25 ms"
                                                          : NULL;
}

static fth_err make_line(fth_recordings *r, int64_t i) {
    const fth_audio_item *item = &r->items[i];
    const char *fault = fault_of(item);
    r->lines[i] = (fth_input){.text = item->clip.path,
                              .frames = item->features.frames,
                              .n_frames = item->features.n,
                              .number = r->number++,
                              .skip = fault != NULL};
    if (!fault) {
        if (item->features.silent)
            fth_log_warn(r->spec.log, "%s: %s: is silent throughout", item->place, item->clip.path);
        return FTH_OK;
    }
    if (r->spec.stop) return fth_fail(FTH_BAD_INPUT, "%s: %s", item->place, fault);
    fth_log_warn(r->spec.log, "%s: %s; its answer is an empty line", item->place, fault);
    r->skipped++;
    return FTH_OK;
}

fth_err fth_recordings_next(fth_recordings *r, const fth_input **lines, int64_t *n) {
    FTH_TRY(take_names(r));
    FTH_TRY(fth_audio_batch_read(r->items, r->n, r->bank, &r->facts, 0, r->spec.threads));
    for (int64_t i = 0; i < r->n; i++) FTH_TRY(make_line(r, i));
    *lines = r->lines;
    *n = r->n;
    return FTH_OK;
}
