/* generate_output.c: what was found for a line as plain text, as fairseq prints it, or as JSON. */
#include "cli/generate_output.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

static fth_err detokenize(fth_printer *p, const fth_hypothesis *h) {
    fth_str_clear(&p->text);
    int32_t n = h->n;
    if (n && h->tokens[n - 1] == p->eos) n--;
    FTH_TRY(fth_tokenizer_decode(p->tgt, h->tokens, (size_t)n, &p->text));
    for (size_t i = 0; i < p->text.length; i++) /* an answer is one line */
        if (p->text.text[i] == '\n' || p->text.text[i] == '\r') p->text.text[i] = ' ';
    return fth_str_add(&p->text, "", 0);
}

static void print_pieces(FILE *out, const fth_tokenizer *t, const int32_t *ids, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        fprintf(out, "%s%s", i ? " " : "", fth_tokenizer_piece(t, ids[i]));
}

/* The source token of each token of an output, end symbols of both left out. */
static int32_t looked_at(const float *row, int32_t n_source) {
    int32_t best = 0;
    for (int32_t s = 1; s < n_source - 1; s++)
        if (row[s] > row[best]) best = s;
    return best;
}

static fth_err align(fth_printer *p, const fth_output *out, const fth_hypothesis *h,
                     const float **weights) {
    return fth_aligner_run(p->aligner, out->source, out->n_source, p->bos, h->tokens, h->n,
                           weights);
}

/* Tokens of an output without its end symbol. */
static int32_t shown_tokens(const fth_printer *p, const fth_hypothesis *h) {
    return h->n && h->tokens[h->n - 1] == p->eos ? h->n - 1 : h->n;
}

/* "0-0 2-1": source-output, as fairseq prints them; soft: the shares of a token with commas. */
static fth_err print_alignment(fth_printer *p, const fth_output *out, const fth_hypothesis *h) {
    const float *weights = NULL;
    if (!p->aligner) return FTH_OK;
    FTH_TRY(align(p, out, h, &weights));
    fprintf(p->out, "A-%lld\t", (long long)out->input->number);
    const int32_t n = p->hard ? shown_tokens(p, h) : h->n;
    for (int32_t t = 0; t < n; t++) {
        const float *row = weights + (size_t)t * (size_t)out->n_source;
        fputs(t ? " " : "", p->out);
        if (p->hard) fprintf(p->out, "%d-%d", looked_at(row, out->n_source), t);
        for (int32_t s = 0; s < out->n_source && !p->hard; s++)
            fprintf(p->out, "%s%.6g", s ? "," : "", (double)row[s]);
    }
    fputc('\n', p->out);
    return FTH_OK;
}

/* The same for JSON: a list of [source, output], or of the shares of each token. */
static fth_err alignment_json(fth_printer *p, const fth_output *out, const fth_hypothesis *h,
                              json_t **list) {
    const float *weights = NULL;
    FTH_TRY(align(p, out, h, &weights));
    *list = json_array();
    const int32_t n = p->hard ? shown_tokens(p, h) : h->n;
    for (int32_t t = 0; t < n; t++) {
        const float *row = weights + (size_t)t * (size_t)out->n_source;
        json_t *one =
            p->hard ? json_pack("[i, i]", looked_at(row, out->n_source), t) : json_array();
        for (int32_t s = 0; s < out->n_source && !p->hard; s++)
            json_array_append_new(one, fth_json_number((double)row[s]));
        json_array_append_new(*list, one);
    }
    return FTH_OK;
}

/* fairseq's lines: scores in log2. */
static fth_err print_fairseq(fth_printer *p, const fth_output *out) {
    long long id = (long long)out->input->number;
    fprintf(p->out, "S-%lld\t%s\n", id, out->input->text);
    for (int32_t k = 0; k < out->n_found && k < p->nbest; k++) {
        const fth_hypothesis *h = &out->found[k];
        int32_t shown = shown_tokens(p, h);
        fprintf(p->out, "H-%lld\t%.9g\t", id, h->score / log(2));
        print_pieces(p->out, p->tgt, h->tokens, shown);
        FTH_TRY(detokenize(p, h));
        fprintf(p->out, "\nD-%lld\t%.9g\t%s\nP-%lld\t", id, h->score / log(2), p->text.text, id);
        for (int32_t i = 0; i < h->n; i++)
            fprintf(p->out, "%s%.4f", i ? " " : "", h->logp[i] / log(2));
        fputc('\n', p->out);
        FTH_TRY(print_alignment(p, out, h));
    }
    return FTH_OK;
}

static fth_err print_jsonl(fth_printer *p, const fth_output *out) {
    json_t *list = json_array();
    for (int32_t k = 0; k < out->n_found && k < p->nbest; k++) {
        const fth_hypothesis *h = &out->found[k];
        FTH_TRY(detokenize(p, h));
        json_t *scores = json_array();
        for (int32_t i = 0; i < h->n; i++)
            json_array_append_new(scores, fth_json_number(h->logp[i]));
        json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "text", p->text.text, "score",
                                              fth_json_number(h->score), "token_logp", scores));
        if (p->aligner) {
            json_t *alignment = NULL;
            FTH_TRY(alignment_json(p, out, h, &alignment));
            json_object_set_new(json_array_get(list, json_array_size(list) - 1), "alignment",
                                alignment);
        }
    }
    json_t *line = json_pack("{s:I, s:s, s:o}", "id", (json_int_t)out->input->number, "source",
                             out->input->text, "hypotheses", list);
    fth_str text = {0};
    fth_err err = line ? fth_json_write(line, 0, &text) : fth_fail(FTH_NO_MEMORY, "no memory");
    if (err == FTH_OK) fprintf(p->out, "%s\n", text.text);
    fth_str_fini(&text);
    json_decref(line);
    return err;
}

fth_err fth_print_output(void *context, const fth_output *out) {
    fth_printer *p = context;
    if (strcmp(p->format, "fairseq") == 0) return print_fairseq(p, out);
    if (strcmp(p->format, "jsonl") == 0) return print_jsonl(p, out);
    /* as many for each line of input: so they are told apart */
    for (int32_t k = 0; k < p->nbest; k++) {
        if (k < out->n_found) FTH_TRY(detokenize(p, &out->found[k]));
        fprintf(p->out, "%s\n", k < out->n_found ? p->text.text : "");
    }
    return FTH_OK;
}

void fth_printer_fini(fth_printer *p) {
    fth_aligner_free(p->aligner);
    fth_str_fini(&p->text);
    *p = (fth_printer){0};
}
