/* generator.c: cuts lines into tokens, sorts a window of them by length, searches batch by batch,
 * and hands texts back in their order. */
#include "decode/generator.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "data/frames.h"
#include "decode/constraints.h"

struct fth_generator {
    fth_generator_spec spec;
    fth_config config; /* of the first model */
    fth_device *device;
    fth_generator_model *models; /* [n_models] */
    fth_stepper **steppers;      /* [n_models] */
    int n_models;
    fth_stepper_spec planned; /* what the steppers hold */
    fth_generator_totals totals;
};

/* A line on its way. */
typedef struct item {
    fth_ids src, prefix, constraint;
    const uint16_t *frames; /* borrowed; NULL: text */
    int64_t n_frames;
    size_t source; /* rows of the source, or of what a dec model continues */
    bool empty;
    const fth_search_result *result; /* NULL: not searched */
    int32_t at;                      /* its sentence there */
} item;

/* ---- making ---- */

/* The models of an ensemble read and write the same ids. */
static fth_err check_model(const fth_generator_model *first, const fth_generator_model *other) {
    const fth_config *a = &first->model->config, *b = &other->model->config;
    const struct {
        const char *key;
        int32_t a, b;
    } keys[] = {{"src_vocab", a->src_vocab, b->src_vocab},
                {"features", a->features, b->features},
                {"tgt_vocab", a->tgt_vocab, b->tgt_vocab},
                {"bos", a->bos, b->bos},
                {"pad", a->pad, b->pad},
                {"eos", a->eos, b->eos},
                {"unk", a->unk, b->unk}};
    if (a->arch != b->arch)
        return fth_fail(FTH_BAD_INPUT, "%s: arch is %s, that of %s is %s; an ensemble has one",
                        other->name, fth_arch_name(b->arch), first->name, fth_arch_name(a->arch));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].a != keys[i].b)
            return fth_fail(FTH_BAD_INPUT, "%s: %s is %d, that of %s is %d; an ensemble has one",
                            other->name, keys[i].key, keys[i].b, first->name, keys[i].a);
    return FTH_OK;
}

fth_err fth_generator_new(const fth_generator_model *models, int n, fth_device *dev,
                          const fth_generator_spec *spec, fth_generator **out) {
    *out = NULL;
    for (int i = 1; i < n; i++) FTH_TRY(check_model(&models[0], &models[i]));
    fth_generator *g = calloc(1, sizeof *g);
    if (!g) return fth_no_memory("generation");
    g->spec = *spec;
    g->device = dev;
    g->n_models = n;
    g->config = models[0].model->config;
    g->spec.search.max_positions = g->config.max_positions;
    for (int i = 1; i < n; i++)
        if (models[i].model->config.max_positions < g->spec.search.max_positions)
            g->spec.search.max_positions = models[i].model->config.max_positions;
    g->spec.search.bos = g->config.bos;
    g->spec.search.pad = g->config.pad;
    g->spec.search.eos = g->config.eos;
    g->spec.search.unk = g->config.unk;
    /* a language model is trained on lines that end with eos: the next begins behind one */
    g->spec.search.first = g->config.arch == FTH_DEC ? g->config.eos : g->config.bos;
    g->models = malloc(sizeof *g->models * (size_t)n);
    g->steppers = calloc((size_t)n, sizeof *g->steppers);
    if (!g->models || !g->steppers) {
        fth_generator_free(g);
        return fth_no_memory("generation");
    }
    memcpy(g->models, models, sizeof *models * (size_t)n);
    *out = g;
    return FTH_OK;
}

static void free_steppers(fth_generator *g) {
    for (int i = 0; g->steppers && i < g->n_models; i++) {
        fth_stepper_free(g->steppers[i]);
        g->steppers[i] = NULL;
    }
    g->planned = (fth_stepper_spec){0};
}

void fth_generator_free(fth_generator *g) {
    if (!g) return;
    free_steppers(g);
    free(g->steppers);
    free(g->models);
    free(g);
}

/* Makes the steppers large enough for a batch; they are kept while they are. */
static fth_err plan_for(fth_generator *g, const fth_stepper_spec *need) {
    const fth_stepper_spec *p = &g->planned;
    if (g->steppers[0] && need->sentences <= p->sentences && need->src_tokens <= p->src_tokens &&
        need->rows <= p->rows && need->length <= p->length)
        return FTH_OK;
    fth_stepper_spec larger = *need;
    if (p->sentences > larger.sentences) larger.sentences = p->sentences;
    if (p->src_tokens > larger.src_tokens) larger.src_tokens = p->src_tokens;
    if (p->rows > larger.rows) larger.rows = p->rows;
    if (p->length > larger.length) larger.length = p->length;
    free_steppers(g);
    for (int i = 0; i < g->n_models; i++)
        FTH_TRY(fth_stepper_new(g->models[i].model, g->device, g->models[i].arenas, &larger,
                                &g->steppers[i]));
    g->planned = larger;
    return FTH_OK;
}

/* ---- lines to tokens ---- */

static bool reads_frames(const fth_generator *g) {
    return g->config.front == FTH_FRONT_SPEECH;
}

/* A recording, cut where it has more rows than the model takes. */
static fth_err take_frames(fth_generator *g, const fth_input *line, item *it) {
    const int64_t most = g->spec.search.max_positions, rows = fth_frame_rows(line->n_frames);
    if (rows > most && g->spec.strict)
        return fth_fail(FTH_BAD_INPUT, "%s:%lld: has %lld frames, the model takes %lld",
                        g->spec.input, (long long)line->number + 1, (long long)line->n_frames,
                        (long long)most * FTH_FRAMES_OF_ROW);
    it->frames = line->frames;
    it->n_frames = rows > most ? most * FTH_FRAMES_OF_ROW : line->n_frames;
    it->source = (size_t)fth_frame_rows(it->n_frames);
    it->empty = it->n_frames == 0;
    g->totals.cut += rows > most;
    if (!line->prefix) return FTH_OK;
    return fth_tokenizer_encode(g->spec.tgt, line->prefix, strlen(line->prefix), &it->prefix);
}

static fth_err tokenize(fth_generator *g, const fth_input *line, item *it) {
    if (reads_frames(g)) return take_frames(g, line, it);
    bool encdec = g->config.arch == FTH_ENCDEC;
    size_t length = strlen(line->text), most = (size_t)g->spec.search.max_positions - 1;
    it->empty = length == 0;
    fth_ids *text = encdec ? &it->src : &it->prefix;
    if (encdec && line->tags && line->tags->n) {
        FTH_TRY(fth_ids_reserve(text, line->tags->n));
        memcpy(text->ids, line->tags->ids, sizeof *text->ids * line->tags->n);
        text->n = line->tags->n;
    }
    FTH_TRY(fth_tokenizer_encode(encdec ? g->spec.src : g->spec.tgt, line->text, length, text));
    if (text->n > most) {
        if (g->spec.strict)
            return fth_fail(FTH_BAD_INPUT, "%s:%lld: has %zu tokens, the model takes %zu",
                            g->spec.input, (long long)line->number + 1, text->n, most);
        text->n = most;
        g->totals.cut++;
    }
    it->source = text->n;
    if (!encdec) return FTH_OK;
    FTH_TRY(fth_ids_reserve(&it->src, 1));
    it->src.ids[it->src.n++] = g->config.eos;
    it->source = it->src.n;
    if (line->prefix)
        FTH_TRY(fth_tokenizer_encode(g->spec.tgt, line->prefix, strlen(line->prefix), &it->prefix));
    return FTH_OK;
}

/* The phrases of a line, each with its end. */
static fth_err tokenize_phrases(fth_generator *g, const char *text, fth_ids *out) {
    while (text && *text) {
        const size_t length = strcspn(text, "\t"), before = out->n;
        FTH_TRY(fth_tokenizer_encode(g->spec.tgt, text, length, out));
        FTH_TRY(fth_ids_reserve(out, 1));
        if (out->n > before) out->ids[out->n++] = FTH_PHRASE_END;
        text += length + (text[length] == '\t');
    }
    return FTH_OK;
}

/* ---- batches ---- */

typedef struct order {
    int64_t index;
    size_t length;
} order;

static int longer_first(const void *a, const void *b) {
    const order *x = a, *y = b;
    if (x->length != y->length) return x->length < y->length ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Packs the lists of several items into one. */
typedef enum item_list { SOURCE, PREFIX, CONSTRAINT } item_list;

static const fth_ids *list_of(const item *it, item_list which) {
    return which == SOURCE ? &it->src : which == PREFIX ? &it->prefix : &it->constraint;
}

static fth_err pack(const item *items, const order *chosen, int32_t n, item_list which,
                    int32_t **offsets, int32_t **ids) {
    size_t total = 0;
    for (int32_t i = 0; i < n; i++) {
        total += list_of(&items[chosen[i].index], which)->n;
    }
    *offsets = malloc(sizeof **offsets * (size_t)(n + 1));
    *ids = malloc(sizeof **ids * (total + 1));
    if (!*offsets || !*ids) return fth_no_memory("generation");
    (*offsets)[0] = 0;
    for (int32_t i = 0; i < n; i++) {
        const fth_ids *list = list_of(&items[chosen[i].index], which);
        if (list->n) memcpy(*ids + (*offsets)[i], list->ids, sizeof **ids * list->n);
        (*offsets)[i + 1] = (*offsets)[i] + (int32_t)list->n;
    }
    return FTH_OK;
}

/* Recordings end to end: where each begins, their numbers, and rows that lack a step. */
static fth_err pack_frames(const fth_generator *g, const item *items, const order *chosen,
                           int32_t n, int32_t **offsets, float **numbers, int32_t **masked) {
    const int32_t bins = g->config.features;
    size_t rows = 0;
    for (int32_t i = 0; i < n; i++) rows += items[chosen[i].index].source;
    *offsets = malloc(sizeof **offsets * (size_t)(n + 1));
    *numbers = malloc(sizeof **numbers * (rows * FTH_FRAMES_OF_ROW * (size_t)bins + 1));
    *masked = malloc(sizeof **masked * (rows + 1));
    if (!*offsets || !*numbers || !*masked) return fth_no_memory("generation");
    int32_t row = 0;
    for (int32_t i = 0; i < n; i++) {
        const item *it = &items[chosen[i].index];
        (*offsets)[i] = row;
        fth_frames_unpack(it->frames, it->n_frames, bins,
                          *numbers + (size_t)row * FTH_FRAMES_OF_ROW * (size_t)bins, *masked + row);
        row += (int32_t)it->source;
    }
    (*offsets)[n] = row;
    return FTH_OK;
}

static fth_err search_batch(fth_generator *g, item *items, const fth_input *lines,
                            const order *chosen, int32_t n, fth_search_result *result) {
    bool encdec = g->config.arch == FTH_ENCDEC;
    int32_t *offsets = NULL, *ids = NULL, *prefix_offsets = NULL, *prefix_ids = NULL;
    int32_t *phrase_offsets = NULL, *phrase_ids = NULL;
    int32_t *masked = NULL;
    float *frames = NULL;
    int64_t *number = malloc(sizeof *number * ((size_t)n + 1));
    fth_err err = number ? FTH_OK : fth_no_memory("generation");
    if (err == FTH_OK && reads_frames(g))
        err = pack_frames(g, items, chosen, n, &offsets, &frames, &masked);
    else if (err == FTH_OK && encdec)
        err = pack(items, chosen, n, SOURCE, &offsets, &ids);
    if (err == FTH_OK) err = pack(items, chosen, n, PREFIX, &prefix_offsets, &prefix_ids);
    if (err == FTH_OK && g->spec.search.constrained)
        err = pack(items, chosen, n, CONSTRAINT, &phrase_offsets, &phrase_ids);
    if (err == FTH_OK) {
        int32_t longest = 0;
        for (int32_t i = 0; i < n; i++) {
            const item *it = &items[chosen[i].index];
            int32_t source = (int32_t)it->source;
            int32_t most = fth_search_max_len(&g->spec.search, source);
            if (!encdec) most += source;
            if (most > longest) longest = most;
            number[i] = lines[chosen[i].index].number;
        }
        if (longest > g->spec.search.max_positions - 1) longest = g->spec.search.max_positions - 1;
        const int32_t vocab = fth_config_output_vocab(&g->config);
        fth_stepper_spec need = {.sentences = n,
                                 .src_tokens = encdec ? offsets[n] : 0,
                                 .rows = n * g->spec.search.beam,
                                 .length = longest + 1,
                                 .top = fth_search_top(&g->spec.search, g->n_models, vocab)};
        fth_search_batch batch = {.n_sent = n,
                                  .offsets = offsets,
                                  .ids = ids,
                                  .frames = frames,
                                  .masked = masked,
                                  .prefix_offsets = prefix_offsets,
                                  .prefix_ids = prefix_ids,
                                  .constraint_offsets = phrase_offsets,
                                  .constraint_ids = phrase_ids,
                                  .number = number};
        err = plan_for(g, &need);
        double start = fth_now();
        if (err == FTH_OK)
            err = fth_search(g->steppers, g->n_models, vocab, &g->spec.search, &batch, result);
        g->totals.seconds += fth_now() - start;
    }
    for (int32_t i = 0; i < n && err == FTH_OK; i++) {
        items[chosen[i].index].result = result;
        items[chosen[i].index].at = i;
        g->totals.sentences++;
        if (result->count[i]) g->totals.tokens += result->found[i][0].n;
    }
    free(offsets);
    free(ids);
    free(frames);
    free(masked);
    free(prefix_offsets);
    free(prefix_ids);
    free(phrase_offsets);
    free(phrase_ids);
    free(number);
    return err;
}

/* How many of the next lines, longest first, make a batch. */
static int32_t batch_size(const fth_generator *g, const order *rest, int64_t n) {
    int32_t count = 0;
    size_t tokens = 0;
    while (count < n && count < g->spec.batch) {
        tokens += rest[count].length;
        if (count > 0 && tokens > (size_t)g->spec.max_tokens) break;
        count++;
    }
    return count;
}

static fth_err hand_over(item *items, const fth_input *lines, int64_t n, fth_generator_take *take,
                         void *context) {
    for (int64_t i = 0; i < n; i++) {
        fth_output out = {
            .input = &lines[i], .source = items[i].src.ids, .n_source = (int32_t)items[i].src.n};
        if (items[i].result) {
            out.found = items[i].result->found[items[i].at];
            out.n_found = items[i].result->count[items[i].at];
        }
        FTH_TRY(take(context, &out));
    }
    return FTH_OK;
}

fth_err fth_generate(fth_generator *g, const fth_input *lines, int64_t n, fth_generator_take *take,
                     void *context) {
    item *items = calloc((size_t)n + 1, sizeof *items);
    order *all = malloc(sizeof *all * (size_t)(n + 1));
    fth_search_result *results = calloc((size_t)n + 1, sizeof *results);
    int64_t n_results = 0, waiting = 0;
    fth_err err = items && all && results ? FTH_OK : fth_no_memory("generation");
    for (int64_t i = 0; i < n && err == FTH_OK; i++) {
        err = tokenize(g, &lines[i], &items[i]);
        if (err == FTH_OK) err = tokenize_phrases(g, lines[i].constraints, &items[i].constraint);
        size_t length = items[i].source;
        bool silent = items[i].empty && g->config.arch == FTH_ENCDEC; /* nothing in, nothing out */
        if (!silent && !lines[i].skip) all[waiting++] = (order){i, length};
    }
    if (err == FTH_OK) qsort(all, (size_t)waiting, sizeof *all, longer_first);
    for (int64_t at = 0; at < waiting && err == FTH_OK;) {
        int32_t count = batch_size(g, all + at, waiting - at);
        err = search_batch(g, items, lines, all + at, count, &results[n_results]);
        if (err == FTH_OK) n_results++;
        at += count;
    }
    if (err == FTH_OK) err = hand_over(items, lines, n, take, context);
    for (int64_t i = 0; i < n_results; i++) fth_search_result_fini(&results[i]);
    for (int64_t i = 0; items && i < n; i++) {
        fth_ids_fini(&items[i].src);
        fth_ids_fini(&items[i].prefix);
        fth_ids_fini(&items[i].constraint);
    }
    free(results);
    free(items);
    free(all);
    return err;
}

fth_generator_totals fth_generator_so_far(const fth_generator *g) {
    return g->totals;
}
