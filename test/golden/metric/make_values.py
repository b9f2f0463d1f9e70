#!/usr/bin/env python3
"""Makes values.json: labels, numbers and pictures, and what scikit-learn and SciPy say about them.

    pip install scikit-learn scipy
    python3 make_values.py
"""
import json
import math
import os
import random
import warnings

from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, jaccard_score, matthews_corrcoef

HERE = os.path.dirname(os.path.abspath(__file__))
rng = random.Random(161803398)
warnings.simplefilter("ignore")


def number(x):
    return "nan" if math.isnan(x) else float(x)


def f1_cases():
    for classes, right, n in ((2, 0.8, 60), (2, 0.3, 30), (5, 0.6, 90), (1, 1.0, 5), (3, 0.0, 20)):
        ref = [str(rng.randrange(classes)) for _ in range(n)]
        hyp = [r if rng.random() < right else str(rng.randrange(classes)) for r in ref]
        for average in "binary", "macro", "micro":
            for positive in ("1", "0", "9") if average == "binary" else ("",):
                if average == "binary":
                    pair = [[int(x == positive) for x in side] for side in (ref, hyp)]
                    score = f1_score(*pair, zero_division=math.nan)
                else:
                    score = f1_score(ref, hyp, average=average)
                yield {"metric": "f1", "average": average, "positive": positive, "ref": ref,
                       "hyp": hyp, "score": number(score)}
        yield {"metric": "accuracy", "ref": ref, "hyp": hyp, "score": accuracy_score(ref, hyp)}
        yield {"metric": "mcc", "ref": ref, "hyp": hyp,
               "score": float(matthews_corrcoef(ref, hyp))}


def columns():
    for n in 2, 3, 40, 200:
        x = [rng.gauss(0, 1) for _ in range(n)]
        yield x, [a + rng.gauss(0, 1) for a in x]
    ties = [float(rng.randrange(4)) for _ in range(50)]
    yield ties, [float(rng.randrange(3)) + t / 2 for t in ties]
    yield [1e6 + rng.random() for _ in range(60)], [rng.random() for _ in range(60)]
    yield [1e-200 * rng.random() for _ in range(20)], [1e200 * rng.random() for _ in range(20)]
    yield [1.0, 2.0, 3.0], [-2.0, -4.0, -6.0]
    yield [1.0, 2.0, 3.0], [0.1, 0.1, 0.1]
    yield [7.0, 7.0], [7.0, 7.0]


def correlation_cases():
    for ref, hyp in columns():
        for name, score in ("pearson", pearsonr), ("spearman", spearmanr):
            yield {"metric": name, "ref": [repr(x) for x in ref], "hyp": [repr(x) for x in hyp],
                   "score": number(score(ref, hyp)[0])}


def overlap_cases():
    for classes, right, pictures in (3, 0.7, 4), (8, 0.4, 3), (2, 1.0, 1), (5, 0.0, 2):
        ref = [[rng.randrange(-1, classes) for _ in range(rng.randrange(1, 40))]
               for _ in range(pictures)]
        hyp = [[max(r, 0) if rng.random() < right else 2 * rng.randrange(classes) for r in row]
               for row in ref]
        pairs = [(r, h) for a, b in zip(ref, hyp) for r, h in zip(a, b) if r >= 0]
        labels = sorted({x for pair in pairs for x in pair})
        each = jaccard_score(*zip(*pairs), average=None, labels=labels)
        yield {"metric": "miou", "ref": [" ".join(map(str, row)) for row in ref],
               "hyp": [" ".join(map(str, row)) for row in hyp],
               "score": float(jaccard_score(*zip(*pairs), average="macro", labels=labels)),
               "iou": {str(k): float(v) for k, v in zip(labels, each)}}
    yield {"metric": "miou", "ref": ["-1 -1", ""], "hyp": ["0 3", ""], "score": "nan", "iou": {}}


def main():
    cases = [*f1_cases(), *correlation_cases(), *overlap_cases()]
    with open(os.path.join(HERE, "values.json"), "w", encoding="utf-8") as f:
        f.write('{"cases": [\n')
        f.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases))
        f.write("\n]}\n")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
