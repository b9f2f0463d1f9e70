#!/usr/bin/env python3
"""Makes pieces.model and pieces.txt: BLEU on the pieces of a SentencePiece model, by sacreBLEU.

    pip install sacrebleu==2.6.0 sentencepiece==0.2.0
    python3 make_pieces.py

pieces.model is trained on ref1.txt (made by make_golden.py). A line of pieces.txt is the number of
references, lowercase (1) or not (0), the score, the four precisions, the brevity penalty, and the
lengths of hypotheses and references in pieces. SentencePiece cuts the lines, and sacreBLEU gets the
pieces as words.
"""
import io
import os

import sentencepiece
from sacrebleu.metrics import BLEU

HERE = os.path.dirname(os.path.abspath(__file__))


def lines(name):
    with open(os.path.join(HERE, name), encoding="utf-8", newline="") as file:
        return file.read().removesuffix("\n").split("\n")


def train():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines("ref1.txt")), model_writer=model, model_type="bpe",
        vocab_size=900, character_coverage=0.98, normalization_rule_name="identity",
        minloglevel=2)
    with open(os.path.join(HERE, "pieces.model"), "wb") as file:
        file.write(model.getvalue())


def main():
    train()
    model = sentencepiece.SentencePieceProcessor(os.path.join(HERE, "pieces.model"))
    out = []
    for refs in (["ref1.txt"], ["ref1.txt", "ref2.txt"]):
        for lowercase in (False, True):
            def pieces(line):
                line = line.lower() if lowercase else line
                return " ".join(model.encode(line.rstrip(), out_type=str))
            bleu = BLEU(tokenize="none", force=True)
            score = bleu.corpus_score([pieces(l) for l in lines("hyp1.txt")],
                                      [[pieces(l) for l in lines(r)] for r in refs])
            out.append(f"{len(refs)} {int(lowercase)} {score.score!r} "
                       + " ".join(repr(p) for p in score.precisions)
                       + f" {score.bp!r} {score.sys_len} {score.ref_len}\n")
    with open(os.path.join(HERE, "pieces.txt"), "w") as file:
        file.writelines(out)


main()
