/* describe.c: what `fathom data info` and `data show` print. */
#include "data/describe.h"

#include <math.h>
#include <stdlib.h>

static fth_err describe_side(const fth_dataset *d, int side, fth_str *out) {
    const fth_data_side *s = &d->side[side];
    const char *name = d->n_sides == 1 ? "text" : side == FTH_SOURCE ? "source" : "target";
    double mean = (double)s->tokens / (double)(d->sentences ? d->sentences : 1);
    return fth_str_addf(out, "  %-7s %12lld tokens  %12lld words  %8.2f mean  %6d longest\n", name,
                        (long long)s->tokens, (long long)s->words, mean, s->longest);
}

static fth_err describe_labels(const fth_folder *f, fth_str *out) {
    if (f->labels.kind == FTH_LABELS_NUMBER) return fth_str_addf(out, "labels: numbers\n");
    if (f->labels.kind == FTH_LABELS_NONE) return FTH_OK;
    FTH_TRY(fth_str_addf(out, "labels: %d classes%s:", f->labels.n,
                         f->labels.kind != FTH_LABELS_PLACES ? ""
                         : f->image.patch                    ? " of pixels"
                                                             : " of words"));
    for (int32_t i = 0; i < f->labels.n && i < 20; i++)
        FTH_TRY(fth_str_addf(out, " %s", f->labels.names[i]));
    return fth_str_addf(out, f->labels.n > 20 ? " ...\n" : "\n");
}

static fth_err describe_directions(const fth_folder *f, fth_str *out) {
    enum { MOST = 20 };
    const fth_languages *l = &f->languages;
    if (!l->n) return FTH_OK;
    FTH_TRY(fth_str_addf(out, "%d directions of %d languages, tags %s, temperature %g:", l->n,
                         l->n_codes, fth_tags_name(l->tags), l->temperature));
    for (int32_t i = 0; i < l->n && i < MOST; i++)
        FTH_TRY(fth_str_addf(out, " %s", fth_languages_name(l, i).text));
    return fth_str_addf(out, l->n > MOST ? " ...\n" : "\n");
}

static const char *kind_of(const fth_folder *f) {
    return f->image.patch    ? "pictures"
           : f->speech.rate  ? "recordings and their texts"
           : f->n_sides == 2 ? "pairs of source and target"
           : f->labels.kind  ? "text with labels"
                             : "plain text";
}

/* What was left out is in the split's entry. */
static fth_err describe_sound(const fth_dataset *d, const json_t *facts, fth_str *out) {
    static const char *const keys[] = {"too_long", "too_short", "empty", "unreadable", "silent"};
    static const char *const words[] = {"too long", "too short", "without text", "unreadable",
                                        "silent"};
    const double n = (double)d->frames->vectors, all = (double)(d->sentences ? d->sentences : 1);
    FTH_TRY(fth_str_addf(out, "  sound   %12.0f frames  %8.2f hours  %8.2f mean  %6lld longest", n,
                         n / 360000, n / all, (long long)d->frames->longest));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_int_t count =
            json_integer_value(json_object_get(json_object_get(facts, "audio"), keys[i]));
        if (count) FTH_TRY(fth_str_addf(out, ", %lld %s", (long long)count, words[i]));
    }
    return fth_str_addf(out, "\n");
}

static fth_err describe_split(const fth_folder *f, int split, fth_str *out) {
    fth_dataset *d = NULL;
    const json_t *facts =
        json_object_get(json_object_get(f->json, "splits"), fth_split_name(split));
    long long too_long = json_integer_value(json_object_get(facts, "too_long"));
    long long empty = json_integer_value(json_object_get(facts, "empty"));
    FTH_TRY(fth_folder_split(f, split, &d));
    fth_err err = fth_str_addf(out, "%s: %lld %s", fth_split_name(split), (long long)d->sentences,
                               f->image.patch   ? "pictures"
                               : f->speech.rate ? "recordings"
                                                : "sentences");
    if (!err && too_long) err = fth_str_addf(out, ", %lld too long left out", too_long);
    if (!err && empty) err = fth_str_addf(out, ", %lld empty left out", empty);
    if (!err) err = fth_str_addf(out, "\n");
    if (!err && d->frames) err = describe_sound(d, facts, out);
    for (int s = 0; !err && s < f->n_sides; s++) err = describe_side(d, s, out);
    fth_dataset_free(d);
    return err;
}

fth_err fth_describe_folder(const fth_folder *f, fth_str *out) {
    const fth_image_facts *image = &f->image;
    FTH_TRY(fth_str_addf(out, "%s: %s\n", f->path, kind_of(f)));
    if (image->patch)
        FTH_TRY(fth_str_addf(
            out, "%d x %d pixels, %d channels, %d patches of %d x %d, %d visual tokens\n",
            image->width, image->height, image->channels, fth_image_patches(image), image->patch,
            image->patch, image->visual_tokens));
    if (f->speech.rate)
        FTH_TRY(fth_str_addf(out, "%d samples a second, %d features a frame, normalised by %s\n",
                             f->speech.rate, f->speech.features,
                             fth_feature_norm_name(f->speech.norm)));
    FTH_TRY(describe_labels(f, out));
    FTH_TRY(describe_directions(f, out));
    for (int i = 0; i < 1 + f->separate && !image->patch; i++) {
        fth_tokenizer *t = NULL;
        FTH_TRY(fth_folder_tokenizer(f, i, &t));
        int32_t size = fth_tokenizer_size(t);
        fth_tokenizer_free(t);
        const char *whose = !f->separate ? "" : i == 0 ? "source " : "target ";
        FTH_TRY(fth_str_addf(out, "%stokenizer: %d ids\n", whose, size));
    }
    if (!isnan(f->target_unigram_nll))
        FTH_TRY(fth_str_addf(out, "unigram nll of the target: %.4f nats a token\n",
                             f->target_unigram_nll));
    for (int split = 0; split < FTH_N_SPLITS; split++)
        if (f->has_split[split]) FTH_TRY(describe_split(f, split, out));
    return FTH_OK;
}

static fth_err describe_ids(const fth_tokenizer *t, const int32_t *ids, int64_t n, fth_show_as as,
                            fth_str *out) {
    if (as == FTH_SHOW_TEXT) return fth_tokenizer_decode(t, ids, (size_t)n, out);
    for (int64_t k = 0; k < n; k++) {
        if (k) FTH_TRY(fth_str_add(out, " ", 1));
        if (as == FTH_SHOW_IDS)
            FTH_TRY(fth_str_addf(out, "%d", ids[k]));
        else
            FTH_TRY(fth_str_addf(out, "%s", fth_tokenizer_piece(t, ids[k])));
    }
    return FTH_OK;
}

fth_err fth_describe_sentence(const fth_dataset *d, int64_t i, const fth_tokenizer *const t[2],
                              fth_show_as as, fth_str *out) {
    for (int s = 0; s < d->n_sides; s++) {
        int64_t n = fth_dataset_length(d, s, i);
        if (n < 0) return fth_dataset_damaged(d, s, i);
        int32_t *ids = malloc(((size_t)n + 1) * sizeof *ids);
        if (!ids) return fth_fail(FTH_NO_MEMORY, "no memory for %lld tokens", (long long)n);
        fth_err err = fth_dataset_copy(d, s, i, 0, n, ids);
        if (!err && s) err = fth_str_add(out, "\t", 1);
        if (!err) err = describe_ids(t[s], ids, n, as, out);
        free(ids);
        FTH_TRY(err);
    }
    return fth_str_add(out, "\n", 1);
}

/* The class of each word. */
static fth_err describe_tags(const fth_folder *f, const fth_dataset *d, int64_t i, fth_str *out) {
    const int64_t n = fth_vectors_length(d->labels, i);
    if (n < 0) return fth_vectors_damaged(d->labels, i);
    const int32_t *class = fth_vectors_at(d->labels, i);
    for (int64_t k = 0, words = 0; k < n; k++) {
        if (class[k] < 0 || class[k] >= f->labels.n) continue;
        FTH_TRY(fth_str_addf(out, words++ ? " %s" : "%s", f->labels.names[class[k]]));
    }
    return FTH_OK;
}

fth_err fth_describe_label(const fth_folder *f, const fth_dataset *d, int64_t i, fth_str *out) {
    if (!d->labels) return fth_fail(FTH_USAGE, "%s: has no labels to show", f->path);
    const void *label = fth_vectors_at(d->labels, i);
    if (d->places && !d->images) {
        FTH_TRY(describe_tags(f, d, i, out));
    } else if (d->places) {
        for (int32_t k = 0; k < d->labels->width; k++) {
            const uint8_t class = ((const uint8_t *)label)[k];
            FTH_TRY(fth_str_addf(out, k ? " %d" : "%d", class == FTH_NO_CLASS ? -1 : class));
        }
    } else if (d->classes) {
        FTH_TRY(fth_str_addf(out, "%s", f->labels.names[*(const int32_t *)label]));
    } else {
        FTH_TRY(fth_str_addf(out, "%.9g", (double)*(const float *)label));
    }
    return fth_str_add(out, "\n", 1);
}
