#!/usr/bin/env python3
"""Makes the golden files of the metric tests: texts, and what other programs say about them.

    pip install sacrebleu==2.6.0 rouge-score==0.1.2 jiwer==4.0.0 scikit-learn
    python3 make_golden.py

writes hyp1.txt, hyp2.txt, ref1.txt, ref2.txt, ref3.txt and expected.json beside itself. The texts are
made up by a random generator with a fixed seed; they mean nothing. They have what breaks scorers:
empty lines, runs of punctuation, numbers with separators, every plane of Unicode, combining marks,
odd white space, CRLF, a last line without LF.
"""
import json
import math
import os
import random
import sys
import warnings
import zlib
from importlib import metadata

import jiwer
import rapidfuzz
import sacrebleu
from nltk.stem.porter import PorterStemmer
from rouge_score import rouge_scorer
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest
from sklearn.metrics import accuracy_score, matthews_corrcoef

HERE = os.path.dirname(os.path.abspath(__file__))
N_LINES = 2200
rng = random.Random(2718281828)

# ---------------------------------------------------------------- text

BASES = """relat condit ration valenc hesit digit conform radic differ analog vietnam predic oper feudal
decis hope call formal sensit sensib triplic form electr good reviv allow infer airlin gyroscop adjust
defens irrit replac depend adopt homolog commun activ angular effect bowdler prob rat ceas control roll
happ sk enjo spi tr fl hop tan fall hiss fizz fail fil agre fe plaster bled motor sing conflat troubl
siz caress pon tie cat geo theo archaeo philo""".split()
ENDS = """ational tional enci anci izer abli alli entli eli ousli ization ation ator alism iveness fulness
ousness aliti iviti biliti fulli logi icate ative alize iciti ical ful ness al ance ence er ic able ible
ant ement ment ent ion ou ism ate iti ous ive ize e y s es ies ied ed eed ing ings ly ally logy yed ying
ss sses sion tion""".split()
IRREGULAR = """sky skies dying lying tying news innings inning outings outing cannings canning howe proceed
exceed succeed dies died ties lies spied flies""".split()
SMALL = "the a of to and in is it that for on with as was at by an be this from or had not are".split()
WESTERN = """Über Straße GROẞE naïve façade Ærø Łódź İstanbul ISTANBUL dž Dž Ǆ Kelvin-K 5K ÅNGSTRÖM
ΟΔΟΣ ΟΔΥΣΣΕΥΣ Σ ΣΑΣ. ΑΣ' Α'Σ σας Όσο Ж ПРИВЕТ мир Ёж Ӂ ᎠᎡ Ꮳ éé e\u0301a\u0308o\u0302\u0323
שלום العربية ١٢٣٫٤٥ हिन्दी नमस्ते ภาษาไทย বাংলা ქართული Ა""".split()
ASIAN = """我们 今天 去 学校 ， 天气 很 好 。 「日本語」 カタカナ ひらがな テスト・テスト 한국어 문장 입니다 ㈱ ㍿ ⺀ ㇀ ﹁ ｆｕｌｌ
（全角） ：； ！ ？ 𠀀𪛖 〆 々 ｱｲｳ ㄅㄆ 漢字かな交じり文 豈""".split()
SIGNS = """, . ; : ! ? ... -- - — – … “ ” ‘ ’ « » ( ) [ ] { } / \\ | @ # $ % ^ & * + = ~ ` ' " <skipped>
&quot; &amp; &lt; &gt; &amp;lt; &amp;quot; &amp;amp; ?!?! ,,,, .,., ---- $$$ ''s 's € £ ¥ ° § ¶ † ‰ № → ∑ ½ ² ① Ⅷ _""".split()
NUMBERS = """1,234.56 3.14 .5 5. 1.000,50 10-12 2024-05-06 12:30 50% $5.00 -7 1-a a-1 ٣٬١٤ ٣.٤ 1.a a.1 1,2,3 0x1F 1e-5
192.168.0.1 Ⅷ.Ⅸ ½.½ 1st 2nd U.S. e.g. i.e., 3:1 1/2 9.-9""".split()
EMOJI = "😀 👍🏽 👨‍👩‍👧‍👦 🇩🇪 ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🎉🎉 𝔘𝔫𝔦 𝟘𝟙 𐌰𐌱 𒀀 𓀀 🜁 𞤀𞤁 𐐀𐐁".split()
PLANES = [chr(plane << 16 | low) for plane in range(17) for low in (0x1234, 0x2f00, 0xA123)]
SPACES = ["\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\x1c", "\r", "\x0b", "\x0c", "  ", " \t ",
          "\u2003", "\u200b", "\ufeff", "\u1680", "\x00", "\u202f"]


def word():
    kind = rng.random()
    if kind < 0.30:
        return rng.choice(SMALL)
    if kind < 0.62:
        w = rng.choice(BASES) + rng.choice(ENDS)
        case = rng.random()
        return w.upper() if case < 0.05 else w.capitalize() if case < 0.2 else w
    if kind < 0.66:
        return rng.choice(IRREGULAR)
    if kind < 0.73:
        return rng.choice(WESTERN)
    if kind < 0.79:
        return rng.choice(ASIAN)
    if kind < 0.84:
        return rng.choice(NUMBERS)
    if kind < 0.88:
        return rng.choice(EMOJI)
    if kind < 0.90:
        return rng.choice(PLANES)
    if kind < 0.97:
        return rng.choice(SIGNS)
    return rng.choice(BASES) + rng.choice(SIGNS) + rng.choice(ENDS)


def join(words):
    """Mostly one space; signs often stick to the word before them."""
    out = ""
    for i, w in enumerate(words):
        if i:
            r = rng.random()
            if w in SIGNS and r < 0.7:
                pass
            elif r > 0.985:
                out += rng.choice(SPACES)
            else:
                out += " "
        out += w
    return out


def change(words, amount):
    """A version of the words with losses, additions, exchanges and moved blocks."""
    out = []
    for w in words:
        r = rng.random()
        if r < 0.25 * amount:
            continue
        if r < 0.5 * amount:
            w = word()
        elif r < 0.6 * amount:
            w = w.lower() if w != w.lower() else w.capitalize()
        out.append(w)
        if rng.random() < 0.2 * amount:
            out.append(word())
    if len(out) > 4 and rng.random() < 1.2 * amount:
        a = rng.randrange(len(out) - 2)
        n = rng.randint(1, min(8, len(out) - a - 1))
        block = out[a:a + n]
        del out[a:a + n]
        b = rng.randrange(len(out) + 1)
        out[b:b] = block
    return out


def make_texts():
    texts = {"ref1": [], "ref2": [], "ref3": [], "hyp1": [], "hyp2": []}
    for i in range(N_LINES):
        if i % 400 == 17:
            n = rng.randint(60, 150)
        else:
            n = rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14])
        words = [word() for _ in range(n)]
        texts["ref1"].append(join(words))
        texts["ref2"].append(join(change(words, 0.5)))
        texts["ref3"].append(join(change(words, 0.8)) if i % 3 else "")
        texts["hyp1"].append(join(change(words, rng.choice([0, 0.2, 0.5, 1.0]))))
        texts["hyp2"].append(join(change(words, rng.choice([0, 0.3, 0.6, 1.0]))))
    for name, where in (("hyp1", 5), ("hyp2", 6), ("ref1", 7), ("ref2", 8)):
        for i in range(where, N_LINES, 97):
            texts[name][i] = rng.choice(["", " ", "\t", ".", "...", "\u00a0"])
    for i in range(3, N_LINES, 210):  # shuffled long lines: many shifts, beyond the limit of trials
        words = [rng.choice(SMALL) for _ in range(rng.randint(15, 70))]
        texts["ref1"][i] = " ".join(words)
        rng.shuffle(words)
        texts["hyp1"][i] = " ".join(words)
    return texts


def write_texts(texts):
    for name, lines in texts.items():
        data = b""
        for i, line in enumerate(lines):
            end = b"\r\n" if i % 5 == 2 else b"\n"
            if i == len(lines) - 1 and name in ("hyp1", "ref2"):
                end = b""  # but not an empty last line
                line = line or "end"
            data += line.encode("utf-8") + end
        with open(os.path.join(HERE, name + ".txt"), "wb") as f:
            f.write(data)


def read_lines(name):
    """As sacreBLEU's command line reads a file."""
    with open(os.path.join(HERE, name + ".txt"), encoding="utf-8", newline="\n") as f:
        return [line.rstrip() for line in f]


# ---------------------------------------------------------------- expected results

def crc_of_rows(rows):
    text = "".join(" ".join(f"{x:g}" for x in row) + "\n" for row in rows)
    return zlib.crc32(text.encode())


def sacre_case(kind, metric, texts, hyp, refs, options, width=1):
    streams = [texts[r] for r in refs]
    stats = metric._extract_corpus_statistics(texts[hyp], streams)
    score = metric.corpus_score(texts[hyp], streams)
    signature = metric.get_signature().format()
    line = score.format(width=width, signature=signature)
    version = "version:" + sacrebleu.__version__
    case = {"metric": kind, "hyp": hyp, "refs": refs, "options": options, "score": score.score,
            "signature": signature.replace(version, "version:@VERSION@"),
            "line": line.replace(version, "version:@VERSION@"), "rows_crc": crc_of_rows(stats)}
    if kind == "bleu":
        case.update(precisions=score.precisions, bp=score.bp, hyp_len=score.sys_len,
                    ref_len=score.ref_len)
    return case


BLEU_OPTIONS = (
    [{"tokenize": t, "lowercase": lc} for t in ("13a", "intl", "char", "none", "zh")
     for lc in (False, True)] +
    [{"smooth_method": "floor"}, {"smooth_method": "floor", "smooth_value": 0.01},
     {"smooth_method": "add-k"}, {"smooth_method": "add-k", "smooth_value": 2.5},
     {"smooth_method": "none"}, {"effective_order": True}])
CHRF_OPTIONS = [{}, {"lowercase": True}, {"word_order": 2}, {"word_order": 2, "lowercase": True},
                {"char_order": 4, "beta": 3}, {"whitespace": True}, {"eps_smoothing": True},
                {"word_order": 2, "eps_smoothing": True, "whitespace": True},
                {"word_order": 1, "beta": 1}]
TER_OPTIONS = [{}, {"case_sensitive": True}, {"normalized": True}, {"no_punct": True},
               {"normalized": True, "asian_support": True},
               {"normalized": True, "no_punct": True, "asian_support": True},
               {"no_punct": True, "asian_support": True, "case_sensitive": True}]


def sacre_cases(texts):
    cases = []
    ref_sets = (["ref1"], ["ref1", "ref2", "ref3"])
    for refs in ref_sets:
        for o in BLEU_OPTIONS:
            cases.append(sacre_case("bleu", BLEU(force=True, **o), texts, "hyp1", refs, o))
        for o in CHRF_OPTIONS:
            cases.append(sacre_case("chrf", CHRF(**o), texts, "hyp1", refs, o))
    cases.append(sacre_case("bleu", BLEU(force=True), texts, "hyp2", ["ref2"], {}, width=4))
    for o in TER_OPTIONS:
        cases.append(sacre_case("ter", TER(**o), texts, "hyp1", ["ref1"], o))
    cases.append(sacre_case("ter", TER(), texts, "hyp1", ["ref1", "ref2", "ref3"], {}))
    return cases


TINY = [  # hypothesis, reference(s)
    ("", [""]), ("", ["a b"]), ("a b", [""]), ("a", ["a"]), ("a", ["b"]), ("a b", ["a b"]),
    ("a b c d", ["a b c d"]), ("a b c", ["a b c d e"]), ("a b c d e", ["a b"]), ("x a b", ["a b x"]),
    ("a b c d", ["a b x y", "c d"]), ("a a a a", ["a a b", "a"]), ("1.5,", ["1.5 ,"]),
    ("a", ["a b c", "", "b"]), ("\u00a0", ["a"]), ("b a c", ["a b c", "c b a"]), ("aaaaaaa", ["aaaaaaa"]),
    (" ".join("abcdefghij" * 8), [" ".join("jihgfedcba" * 8)]),
    (" ".join("abcdefghij" * 20), ["a"]), ("a b", [" ".join("abcdefghij" * 20)]),
    (" ".join("abcdefghijklmnopqrstuvwxyz" * 3), [" ".join("nopqrstuvwxyzabcdefghijklm" * 3)]),
]


def tiny_cases():
    out = []
    for hyp, refs in TINY:
        streams = [[r] for r in refs]
        row = {"hyp": hyp, "refs": refs}
        for method in ("exp", "floor", "add-k", "none"):
            for eff in (False, True):
                m = BLEU(smooth_method=method, effective_order=eff, force=True)
                row[f"bleu {method} {int(eff)}"] = m.corpus_score([hyp], streams).score
        row["chrf 0"] = CHRF().corpus_score([hyp], streams).score
        row["chrf 2"] = CHRF(word_order=2).corpus_score([hyp], streams).score
        row["ter"] = TER().corpus_score([hyp], streams).score
        out.append(row)
    return out


ROUGES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]


def rouge_cases(texts):
    cases = []
    for stem in (False, True):
        scorer = rouge_scorer.RougeScorer(ROUGES, use_stemmer=stem)
        for refs in (["ref1"], ["ref1", "ref2", "ref3"]):
            for newline in ("", ",", "of"):
                def text(s):
                    return s.replace(newline, "\n") if newline else s
                rows = [scorer.score_multi([text(r) for r in rs], text(h))
                        for h, *rs in zip(texts["hyp1"], *[texts[r] for r in refs])]
                case = {"hyp": "hyp1", "refs": refs, "stem": stem, "newline": newline}
                for name in ROUGES:
                    case[name] = {k: math.fsum(getattr(r[name], k) for r in rows) / len(rows)
                                  for k in ("precision", "recall", "fmeasure")}
                cases.append(case)
    return cases


def error_rate_cases(texts):
    cases = []
    for hyp, ref in (("hyp1", "ref1"), ("hyp2", "ref2"), ("ref3", "ref1")):
        for kind, process in (("wer", jiwer.process_words), ("cer", jiwer.process_characters)):
            rows = [process([r], [h]) for h, r in zip(texts[hyp], texts[ref])]
            rows = [(o.hits, o.substitutions, o.insertions, o.deletions) for o in rows]
            o = process(texts[ref], texts[hyp])
            cases.append({"metric": kind, "hyp": hyp, "refs": [ref],
                          "score": o.wer if kind == "wer" else o.cer, "hits": o.hits,
                          "substitutions": o.substitutions, "insertions": o.insertions,
                          "deletions": o.deletions, "rows_crc": crc_of_rows(rows)})
    return cases


def label_cases():
    cases = []
    for classes, right, n in ((2, 0.8, 500), (2, 0.5, 40), (5, 0.7, 900), (1, 1.0, 10), (3, 0.0, 60)):
        ref = [f"class {rng.randrange(classes)}" for _ in range(n)]
        hyp = [r if rng.random() < right else f"class {rng.randrange(classes)}" for r in ref]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            matthews = float(matthews_corrcoef(ref, hyp))
        cases.append({"ref": "".join(r[-1] for r in ref), "hyp": "".join(h[-1] for h in hyp),
                      "accuracy": float(accuracy_score(ref, hyp)), "matthews": matthews})
    return cases


class Lcg:
    """A generator that test code can repeat in three lines."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
        return (self.state >> 33) % n


def sequences(seed, n, alphabet, edits):
    lcg = Lcg(seed)
    ref = [lcg.below(alphabet) for _ in range(n)]
    hyp = list(ref)
    for _ in range(edits):
        what = lcg.below(3)
        if what == 0:
            hyp.insert(lcg.below(len(hyp) + 1), lcg.below(alphabet))
        elif len(hyp) and what == 1:
            del hyp[lcg.below(len(hyp))]
        elif len(hyp):
            hyp[lcg.below(len(hyp))] = lcg.below(alphabet)
    return ref, hyp


def align_cases():
    """The last ones are so long that RapidFuzz divides them."""
    cases = []
    for seed, (n, alphabet, edits) in enumerate(
            [(1, 2, 1), (10, 3, 6), (63, 4, 30), (64, 4, 30), (65, 4, 30), (128, 3, 90),
             (129, 50, 60), (200, 2, 150), (700, 5, 500), (2047, 4, 1500), (2100, 4, 1800),
             (3000, 6, 100), (3500, 3, 3000), (5000, 26, 2500), (9000, 4, 60)]):
        ref, hyp = sequences(seed + 1, n, alphabet, edits)
        count = {"equal": 0, "replace": 0, "insert": 0, "delete": 0}
        for op in rapidfuzz.distance.Levenshtein.opcodes(ref, hyp):
            length = op.dest_end - op.dest_start if op.tag == "insert" else op.src_end - op.src_start
            count[op.tag] += length
        case = {"seed": seed + 1, "n": n, "alphabet": alphabet, "edits": edits,
                "m": len(hyp), "hits": count["equal"], "substitutions": count["replace"],
                "insertions": count["insert"], "deletions": count["delete"]}
        if n <= 700:
            case["lcs"] = rouge_scorer.lcs_ind(ref, hyp)
        cases.append(case)
    return cases


def bootstrap_cases(texts):
    cases = []
    for kind, metric, n in (("bleu", BLEU(force=True), N_LINES), ("chrf", CHRF(), N_LINES),
                            ("bleu", BLEU(force=True), 60), ("chrf", CHRF(), 110)):
        streams = [texts["ref1"][:n]]
        score = metric.corpus_score(texts["hyp1"][:n], streams, n_bootstrap=1000)
        version = "version:" + sacrebleu.__version__
        case = {"metric": kind, "n": n, "mean": float(score._mean), "half_width": float(score._ci),
                "signature": metric.get_signature().format().replace(version, "version:@VERSION@")}
        test = PairedTest([(h, texts[h][:n]) for h in ("hyp1", "hyp2")], {kind: metric}, streams,
                          test_type="bs", n_samples=1000)
        _, scores = test()
        result = next(v for k, v in scores.items() if k != "System")[1]
        case.update(other_mean=float(result.mean), other_half_width=float(result.ci),
                    p_value=result.p_value)
        test = PairedTest([(h, texts[h][:n]) for h in ("hyp1", "hyp2")], {kind: metric}, streams,
                          test_type="ar", n_samples=10000)
        _, scores = test()
        case.update(p_exchanged=next(v for k, v in scores.items() if k != "System")[1].p_value)
        cases.append(case)
    return cases


def unicode_crcs():
    """Every character in lower case, alone and around a capital sigma, as far as Unicode 14 has it."""
    import unicodedata
    known = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000
             and unicodedata.category(chr(c)) != "Cn"]
    table = "".join(f"{ord(c):x}\n" for c in known)
    lower = "".join(f"{c.lower()} {('A' + c + 'Σ').lower()} {('AΣ' + c + 'A').lower()}\n"
                    for c in known)
    return {"known": zlib.crc32(table.encode()), "lower": zlib.crc32(lower.encode()),
            "ranges": ranges_of([ord(c) for c in known])}


def ranges_of(codes):
    out = []
    for c in codes:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def main():
    write_texts(make_texts())
    texts = {name: read_lines(name) for name in ("hyp1", "hyp2", "ref1", "ref2", "ref3")}
    tokenized = {}
    for name in ("13a", "intl", "char", "none", "zh"):
        t = BLEU(tokenize=name).tokenizer
        lines = [" ".join(t(s).split()) for s in texts["hyp1"] + texts["ref1"]]
        tokenized[name] = zlib.crc32("".join(s + "\n" for s in lines).encode())
    stems = PorterStemmer()
    words = [b + e for b in BASES for e in ENDS] + IRREGULAR + ["yyyy", "syzygy", "1234s", "4x4ing"]
    expected = {
        "made_with": {"sacrebleu": sacrebleu.__version__, "rouge-score": metadata.version("rouge-score"),
                      "jiwer": metadata.version("jiwer"), "rapidfuzz": rapidfuzz.__version__, "python": sys.version.split()[0]},
        "n_lines": N_LINES,
        "tokenized_crc": tokenized,
        "porter": {"bases": BASES, "ends": ENDS, "others": words[len(BASES) * len(ENDS):],
                   "stems_crc": zlib.crc32("".join(stems.stem(w) + "\n" for w in words).encode())},
        "unicode": unicode_crcs(),
        "tiny": tiny_cases(),
        "sacrebleu": sacre_cases(texts),
        "rouge": rouge_cases(texts),
        "error_rates": error_rate_cases(texts),
        "labels": label_cases(),
        "align": align_cases(),
        "bootstrap": bootstrap_cases(texts),
    }
    text = json.dumps(expected, ensure_ascii=True, separators=(",", ":"))
    with open(os.path.join(HERE, "expected.json"), "w", encoding="utf-8") as f:
        f.write(text + "\n")


if __name__ == "__main__":
    main()
