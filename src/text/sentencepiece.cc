/* sentencepiece.cc: the calls of SentencePiece, each behind a catch of everything; training runs in
 * a child process (base/child_process.h), since the library may abort. The only part of fathom that
 * is C++. */
#include "text/tokenizer_kind.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

extern "C" {
#include "base/child_process.h"
#include "text/spm_check.h"
}

/* SentencePiece has this function but no header of its package declares it. */
namespace sentencepiece {
namespace logging {
void SetMinLogLevel(int level);
}
} // namespace sentencepiece

namespace {

struct spm : fth_tokenizer {
    sentencepiece::SentencePieceProcessor processor;
    int32_t pieces; /* of the model itself */
    bool is_bpe;
    bool own_words; /* the lines are cut into words here, see encode_words */
    bool by_words;  /* words can be cut one by one, see cuts_by_words */
};

const char SPACE_MARK[] = "\xe2\x96\x81"; /* U+2581: SentencePiece writes a space so */
const int SILENT = 4;                     /* above SentencePiece's levels 0 to 3 */

/* The number of parts into which unigram training divides its sums. A constant, because the sums,
 * and so the model, depend on it; it is not the number of cores. */
const char TRAINING_THREADS[] = "8";

/* Runs body, which returns fth_err; whatever it throws becomes an error. */
template <class Body> fth_err guarded(const char *what, Body body) {
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return fth_fail(FTH_NO_MEMORY, "%s: no memory", what);
    } catch (const std::system_error &e) { /* no thread can be started */
        return fth_fail(FTH_FAILED, "%s: SentencePiece: %s", what, e.what());
    } catch (const std::exception &e) {
        if (strstr(e.what(), "bad_alloc")) /* the library has caught one and thrown its own */
            return fth_fail(FTH_NO_MEMORY, "%s: no memory", what);
        return fth_fail(FTH_BAD_INPUT, "%s: SentencePiece: %s", what, e.what());
    } catch (...) {
        return fth_fail(FTH_FAILED, "%s: SentencePiece failed", what);
    }
}

/* What SentencePiece says, without the place in its source that it begins with. */
std::string reason(const sentencepiece::util::Status &status) {
    std::string text = status.error_message();
    size_t end = text.find("] ");
    if (end != std::string::npos && text.size() > end + 2) text = text.substr(end + 2);
    for (char &c : text)
        if (c == '\n') c = ' ';
    return text;
}

class lines : public sentencepiece::SentenceIterator {
  public:
    lines(fth_text_next next, void *state) : next_(next), state_(state) {
        Next();
    }
    bool done() const override {
        return done_;
    }
    void Next() override {
        const char *text = nullptr;
        size_t length = 0;
        err_ = next_(state_, &text, &length);
        done_ = err_ != FTH_OK || !text;
        if (done_) return;
        line_.assign(text, length);
        count_++;
    }
    const std::string &value() const override {
        return line_;
    }
    sentencepiece::util::Status status() const override {
        if (err_ == FTH_OK) return {};
        return {sentencepiece::util::StatusCode::kAborted, "the text could not be read"};
    }
    fth_err error() const {
        return err_;
    }
    long count() const {
        return count_;
    }

  private:
    fth_text_next next_;
    void *state_;
    std::string line_;
    fth_err err_ = FTH_OK;
    bool done_ = false;
    long count_ = 0;
};

bool is_type(const fth_tokenizer_spec *spec, const char *type) {
    return strcmp(spec->model_type, type) == 0;
}

std::unordered_map<std::string, std::string> training_options(const fth_tokenizer_spec *spec) {
    bool fixed = is_type(spec, "word") || is_type(spec, "char");
    bool given = spec->normalization && *spec->normalization;
    std::unordered_map<std::string, std::string> o = {
        {"model_type", spec->model_type},
        {"character_coverage", std::to_string(spec->character_coverage)},
        {"byte_fallback", spec->byte_fallback ? "true" : "false"},
        {"normalization_rule_name", given   ? spec->normalization
                                    : fixed ? "identity"
                                            : "nmt_nfkc"},
        {"bos_id", std::to_string(FTH_BOS)},
        {"pad_id", std::to_string(FTH_PAD)},
        {"eos_id", std::to_string(FTH_EOS)},
        {"unk_id", std::to_string(FTH_UNK)},
        {"hard_vocab_limit", "false"}, /* so that the largest possible size can be told */
        {"max_sentence_length", "1000000000"},
        {"num_threads", TRAINING_THREADS},
        {"minloglevel", std::to_string(SILENT)},
    };
    if (spec->vocab_size > 0) o["vocab_size"] = std::to_string(spec->vocab_size);
    if (spec->vocab_size == 0) o["use_all_vocab"] = "true";
    if (spec->user_symbols && *spec->user_symbols) o["user_defined_symbols"] = spec->user_symbols;
    if (is_type(spec, "word")) o["unk_surface"] = " <unk>";
    if (is_type(spec, "char")) {
        o["add_dummy_prefix"] = "false";
        o["remove_extra_whitespaces"] = "false";
    }
    return o;
}

enum { SPECIAL_PIECES = 4 }; /* begin, pad, end, unknown */

/* A list with commas in between. */
fth_err check_symbols(const char *list) {
    if (!list || !*list) return FTH_OK;
    const std::string all = list;
    if (all.front() == ',' || all.back() == ',' || all.find(",,") != std::string::npos)
        return fth_fail(FTH_USAGE, "user-symbols '%s': has an empty symbol", list);
    return FTH_OK;
}

fth_err check_spec(const fth_tokenizer_spec *spec) {
    bool fixed = is_type(spec, "word") || is_type(spec, "char");
    if (!fixed && !is_type(spec, "bpe") && !is_type(spec, "unigram"))
        return fth_fail(FTH_USAGE, "model-type '%s' is none of bpe, byte-bpe, unigram, word, char",
                        spec->model_type);
    if (spec->vocab_size < 0 || (spec->vocab_size == 0 && !fixed))
        return fth_fail(FTH_USAGE, "vocab-size %d: a %s vocabulary needs a size above 0",
                        spec->vocab_size, spec->model_type);
    if (spec->vocab_size > 0 && spec->vocab_size <= SPECIAL_PIECES)
        return fth_fail(FTH_USAGE,
                        "vocab-size %d: the special symbols alone are %d; it must be above that",
                        spec->vocab_size, SPECIAL_PIECES);
    FTH_TRY(check_symbols(spec->user_symbols));
    if (!(spec->character_coverage > 0 && spec->character_coverage <= 1))
        return fth_fail(FTH_USAGE, "character-coverage %g is not in (0, 1]",
                        spec->character_coverage);
    return FTH_OK;
}

/* Names the bound when the vocabulary is smaller than what the text needs at least. */
fth_err training_error(const fth_tokenizer_spec *spec, const std::string &text) {
    int asked, needed;
    size_t at = text.find("required_chars. ");
    if (at != std::string::npos &&
        sscanf(text.c_str() + at, "required_chars. %d vs %d", &asked, &needed) == 2)
        return fth_fail(FTH_BAD_INPUT,
                        "vocab-size %d is smaller than the characters and special symbols of the "
                        "text: at least %d, or a smaller character-coverage",
                        asked, needed);
    if (text.find("insert_meta_symbol") != std::string::npos)
        return fth_fail(FTH_USAGE, "user-symbols '%s': a symbol is there twice or is reserved",
                        spec->user_symbols);
    return fth_fail(FTH_BAD_INPUT, "SentencePiece: %s", text.c_str());
}

fth_err train(const fth_tokenizer_spec *spec, fth_text_next next, void *state, char **model,
              size_t *size) {
    FTH_TRY(check_spec(spec));
    lines text(next, state);
    if (text.error() != FTH_OK) return text.error();
    if (text.done()) return fth_fail(FTH_BAD_INPUT, "no text to make a vocabulary of");
    std::string bytes;
    auto status = sentencepiece::SentencePieceTrainer::Train(training_options(spec), &text, &bytes);
    if (text.error() != FTH_OK) return text.error();
    if (!status.ok()) {
        std::string raw = status.error_message();
        bool reserved = raw.find("insert_meta_symbol") != std::string::npos;
        return training_error(spec, reserved ? raw : reason(status));
    }
    fth_tokenizer *t = nullptr;
    FTH_TRY(fth_spm_parse(bytes.data(), bytes.size(), "trained tokenizer", &t));
    int32_t made = fth_tokenizer_size(t);
    fth_tokenizer_free(t);
    if (made < spec->vocab_size)
        return fth_fail(FTH_BAD_INPUT,
                        "vocab-size %d is larger than the text can give: at most %d (%ld lines)",
                        spec->vocab_size, made, text.count());
    *model = static_cast<char *>(malloc(bytes.size()));
    if (!*model) return fth_fail(FTH_NO_MEMORY, "no memory for a tokenizer");
    memcpy(*model, bytes.data(), bytes.size());
    *size = bytes.size();
    return FTH_OK;
}

struct training {
    const fth_tokenizer_spec *spec;
    fth_text_next next;
    void *state;
};

/* SentencePiece's trainer ends the process where it finds that it cannot go on. */
fth_err train_in_child(void *state, char **model, size_t *size) {
    const auto *t = static_cast<const training *>(state);
    return guarded("tokenizer", [&] { return train(t->spec, t->next, t->state, model, size); });
}

/* Fills in what models from elsewhere may lack, and checks that the ids can be used. */
fth_err find_special(spm *t, const char *name) {
    const auto &p = t->processor;
    t->pieces = p.GetPieceSize();
    t->special = {p.bos_id(), p.pad_id(), p.eos_id(), p.unk_id()};
    if (t->special.eos < 0 || t->special.unk < 0)
        return fth_fail(FTH_BAD_INPUT, "%s: the model has no %s piece", name,
                        t->special.eos < 0 ? "end of sentence" : "unknown");
    if (t->special.bos < 0) t->special.bos = t->special.eos;
    if (t->special.pad < 0) t->special.pad = t->pieces;
    t->size = t->special.pad == t->pieces ? t->pieces + 1 : t->pieces;
    return FTH_OK;
}

/* A line gives the same ids whether it is cut as a whole or word by word. So it is with BPE when no
 * piece reaches over a space: each merge happens inside of a word. (Unigram adds up the scores of
 * a whole line, and may round differently.) The bare mark of a space has to be a piece, or unknown
 * pieces of neighbouring words would be joined. */
bool cuts_by_words(const spm &t, const fth_spm_facts &facts) {
    if (facts.type != FTH_SPM_BPE || !facts.by_words) return false;
    if (t.processor.PieceToId(SPACE_MARK) == t.special.unk) return false;
    for (int32_t id = 0; id < t.pieces; id++) {
        const std::string &piece = t.processor.IdToPiece(id);
        if (piece.find(SPACE_MARK, 1) != std::string::npos || piece.find(' ') != std::string::npos)
            return false;
    }
    return true;
}

fth_err parse(const void *data, size_t size, const char *name, fth_tokenizer **out) {
    sentencepiece::logging::SetMinLogLevel(SILENT);
    fth_spm_facts facts;
    fth_err err = fth_spm_check(data, size, &facts);
    if (err != FTH_OK) return fth_fail_in(err, "%s", name);
    auto t = std::make_unique<spm>();
    auto status = t->processor.LoadFromSerializedProto({static_cast<const char *>(data), size});
    if (!status.ok())
        return fth_fail(FTH_BAD_INPUT, "%s: damaged SentencePiece model: %s", name,
                        reason(status).c_str());
    FTH_TRY(find_special(t.get(), name));
    t->is_bpe = facts.type == FTH_SPM_BPE;
    t->own_words = facts.type == FTH_SPM_WORD && !facts.has_charmap;
    t->by_words = cuts_by_words(*t, facts);
    *out = t.release();
    return FTH_OK;
}

fth_err append(fth_ids *out, const std::vector<int> &ids) {
    FTH_TRY(fth_ids_reserve(out, ids.size()));
    for (int id : ids) out->ids[out->n++] = id;
    return FTH_OK;
}

/* Words between spaces. SentencePiece itself would join neighbouring unknown words into one, and
 * a perplexity per word needs one id for each. */
fth_err encode_words(const spm *t, std::string_view text, fth_ids *out) {
    std::vector<int> ids;
    std::string piece;
    const char *spaces = " \t";
    for (size_t at = text.find_first_not_of(spaces); at != std::string_view::npos;) {
        size_t end = std::min(text.find_first_of(spaces, at), text.size());
        piece.assign(SPACE_MARK).append(text.substr(at, end - at));
        ids.push_back(t->processor.PieceToId(piece));
        at = text.find_first_not_of(spaces, end);
    }
    return append(out, ids);
}

/* Bytes of the character that begins with this one. */
size_t character_bytes(unsigned char first) {
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* The characters of a piece, each an id; characters that are no piece stay unknown or become bytes,
 * as the piece itself shows. */
std::vector<int> characters_of(const spm *t, int id) {
    const std::string &piece = t->processor.IdToPiece(id);
    std::vector<int> ids;
    if (id == t->special.unk || t->processor.IsByte(id) || t->processor.IsControl(id)) return {id};
    for (size_t at = 0; at < piece.size();) {
        const size_t n = std::min(character_bytes((unsigned char)piece[at]), piece.size() - at);
        const int one = t->processor.PieceToId(piece.substr(at, n));
        if (one == t->special.unk) return {id};
        ids.push_back(one);
        at += n;
    }
    return ids;
}

/* The piece that two neighbours make together; -1: none. */
int merged(const spm *t, int a, int b) {
    if (a == t->special.unk || b == t->special.unk) return -1;
    const int id = t->processor.PieceToId(t->processor.IdToPiece(a) + t->processor.IdToPiece(b));
    return id == t->special.unk ? -1 : id;
}

/* Merges until nothing is left to merge, or all that is left was dropped. */
void merge_word(const spm *t, std::vector<int> *word, double p, fth_rng *rng) {
    for (;;) {
        size_t best = 0;
        int made = -1;
        for (size_t i = 0; i + 1 < word->size(); i++) {
            const int id = merged(t, (*word)[i], (*word)[i + 1]);
            if (id < 0 || fth_rng_uniform(rng) < p) continue;
            if (made >= 0 && t->processor.GetScore(id) <= t->processor.GetScore(made)) continue;
            best = i;
            made = id;
        }
        if (made < 0) return;
        (*word)[best] = made;
        word->erase(word->begin() + (std::ptrdiff_t)best + 1);
    }
}

fth_err encode_dropped(const spm *t, std::string_view text, double p, fth_rng *rng, fth_ids *out) {
    std::vector<int> ids, word;
    if (!t->is_bpe)
        return fth_fail(FTH_USAGE, "BPE dropout needs a tokenizer of the model-type bpe");
    auto status = t->processor.Encode(text, &ids);
    if (!status.ok()) return fth_fail(FTH_FAILED, "SentencePiece: %s", reason(status).c_str());
    for (size_t i = 0; i <= ids.size(); i++) {
        const bool ends = i == ids.size() || t->processor.IdToPiece(ids[i]).compare(
                                                 0, strlen(SPACE_MARK), SPACE_MARK) == 0;
        if (ends && !word.empty()) {
            merge_word(t, &word, p, rng);
            FTH_TRY(append(out, word));
            word.clear();
        }
        if (i == ids.size()) break;
        const std::vector<int> characters = characters_of(t, ids[i]);
        word.insert(word.end(), characters.begin(), characters.end());
    }
    return FTH_OK;
}

fth_err encode(const spm *t, std::string_view text, fth_ids *out) {
    if (t->own_words) return encode_words(t, text, out);
    std::vector<int> ids;
    auto status = t->processor.Encode(text, &ids);
    if (!status.ok()) return fth_fail(FTH_FAILED, "SentencePiece: %s", reason(status).c_str());
    return append(out, ids);
}

/* One word, without spaces. */
fth_err encode_word(const spm *t, fth_word_cache *cache, std::string_view word, fth_ids *out) {
    if (word.size() > FTH_CACHED_BYTES) return encode(t, word, out);
    fth_cached_word *place = fth_word_cache_place(cache, word.data(), word.size());
    if (!fth_cached(place, word.data(), word.size())) {
        size_t before = out->n;
        FTH_TRY(encode(t, word, out));
        fth_cache_word(place, word.data(), word.size(), out->ids + before, out->n - before);
        return FTH_OK;
    }
    FTH_TRY(fth_ids_reserve(out, place->n));
    memcpy(out->ids + out->n, place->ids, place->n * sizeof *out->ids);
    out->n += place->n;
    return FTH_OK;
}

fth_err encode_cached(const spm *t, fth_word_cache *cache, std::string_view text, fth_ids *out) {
    /* a space mark in the text itself is a space to SentencePiece, but not here */
    if (!t->by_words || text.find(SPACE_MARK) != std::string_view::npos)
        return encode(t, text, out);
    FTH_TRY(fth_ids_reserve(out, 1)); /* never NULL, not even for an empty line */
    for (size_t at = text.find_first_not_of(' '); at != std::string_view::npos;) {
        size_t end = std::min(text.find(' ', at), text.size());
        FTH_TRY(encode_word(t, cache, text.substr(at, end - at), out));
        at = text.find_first_not_of(' ', end);
    }
    return FTH_OK;
}

fth_err add_pieces(const spm *t, std::string_view text, fth_str *out) {
    std::vector<std::string> pieces;
    auto status = t->processor.Encode(text, &pieces);
    if (!status.ok()) return fth_fail(FTH_FAILED, "SentencePiece: %s", reason(status).c_str());
    for (size_t i = 0; i < pieces.size(); i++) {
        if (i) FTH_TRY(fth_str_add(out, " ", 1));
        FTH_TRY(fth_str_add(out, pieces[i].data(), pieces[i].size()));
    }
    return FTH_OK;
}

fth_err decode(const spm *t, const int32_t *ids, size_t n, fth_str *out) {
    std::vector<int> kept;
    for (size_t i = 0; i < n; i++) {
        bool silent =
            ids[i] == t->special.bos || ids[i] == t->special.eos || ids[i] == t->special.pad;
        if (!silent) kept.push_back(ids[i]);
    }
    std::string text;
    auto status = t->processor.Decode(kept, &text);
    if (!status.ok()) return fth_fail(FTH_FAILED, "SentencePiece: %s", reason(status).c_str());
    return fth_str_add(out, text.data(), text.size());
}

const spm *of(const fth_tokenizer *t) {
    return static_cast<const spm *>(t);
}

void free_spm(fth_tokenizer *t) {
    delete static_cast<spm *>(t);
}

fth_err encode_guarded(const fth_tokenizer *t, fth_word_cache *cache, const char *text,
                       size_t length, fth_ids *out) {
    return guarded("tokenizer", [&] {
        return cache ? encode_cached(of(t), cache, {text, length}, out)
                     : encode(of(t), {text, length}, out);
    });
}

fth_err encode_dropped_guarded(const fth_tokenizer *t, const char *text, size_t length, double p,
                               fth_rng *rng, fth_ids *out) {
    return guarded("tokenizer", [&] { return encode_dropped(of(t), {text, length}, p, rng, out); });
}

fth_err pieces_guarded(const fth_tokenizer *t, const char *text, size_t length, fth_str *out) {
    return guarded("tokenizer", [&] { return add_pieces(of(t), {text, length}, out); });
}

fth_err decode_guarded(const fth_tokenizer *t, const int32_t *ids, size_t n, fth_str *out) {
    return guarded("tokenizer", [&] { return decode(of(t), ids, n, out); });
}

const char *piece(const fth_tokenizer *t, int32_t id) {
    if (id == of(t)->pieces) return "<pad>";
    return of(t)->processor.IdToPiece(id).c_str();
}

int32_t find_id(const fth_tokenizer *t, const char *text) {
    const auto &p = of(t)->processor;
    int id = p.PieceToId(text);
    if (id != t->special.unk) return id;
    return p.IdToPiece(id) == text ? id : -1;
}

const fth_tokenizer_kind KIND = {
    "model",        SPACE_MARK, free_spm, encode_guarded, encode_dropped_guarded,
    decode_guarded, piece,      find_id,  pieces_guarded};

} // namespace

extern "C" {

fth_err fth_spm_train(const fth_tokenizer_spec *spec, fth_text_next next, void *state, char **model,
                      size_t *size) {
    training t = {spec, next, state};
    return fth_in_child("the tokenizer's training by SentencePiece", train_in_child, &t, model,
                        size);
}

fth_err fth_spm_parse(const void *data, size_t size, const char *name, fth_tokenizer **out) {
    FTH_TRY(guarded(name, [&] { return parse(data, size, name, out); }));
    (*out)->kind = &KIND;
    return FTH_OK;
}
}
