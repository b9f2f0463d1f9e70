"""Golden files of choices: log-probabilities of the endings of questions, by the reference in PyTorch.

    python3 test/golden/choices.py

writes choices/: dec/ and encdec/, small models with the tokenizer of byte_bpe/, the questions in the form
of each preset, and expected.json. Needs torch, safetensors and tokenizers.
"""

import json
import os
import shutil

import torch
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, decoders

import reference
from cases import draw_parameters, make_config
from reference import save_floats

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "choices")
BPE = os.path.join(HERE, "byte_bpe")
EOS, BOS = 2, 0

# form: file of questions, and of each question its prompts, endings and the bytes that count
QUESTIONS = {
    "hellaswag": [
        {"ctx": "The concert lasts", "endings": ["six hours.", "of the", "two kilos of oranges.", "."], "label": "0"},
        {"ctx": "Ten kilos of oranges cost", "endings": ["fourteen dollars.", "a train.", "it"], "label": 2}],
    "piqa": [{"goal": "How long is it?", "sol1": "Seven hours.", "sol2": "A Sunday in June.", "label": 1}],
    "winogrande": [{"sentence": "The train waits for the man because _ is late.", "option1": "the train",
                    "option2": "the man", "answer": "2"}],
    "storycloze": [{"InputSentence1": "It rains.", "InputSentence2": "The train is late.", "InputSentence3": "We wait.",
                    "InputSentence4": "It is nine.", "RandomFifthSentenceQuiz1": "The train comes at ten.",
                    "RandomFifthSentenceQuiz2": "Oranges are dear.", "AnswerRightEnding": 1}],
    "openbookqa": [{"question": {"stem": "What costs fourteen dollars", "choices": [
        {"text": "oranges", "label": "A"}, {"text": "the sun", "label": "B"}, {"text": "Monday", "label": "C"},
        {"text": "été à 9 h", "label": "D"}]}, "answerKey": "A"}],
    "plain": [{"prompt": "", "choices": ["one", "two"], "answer": 0}],
}


def pairs_of(form, q):
    """(prompt, ending) of each choice, written out by hand for each form."""
    if form == "hellaswag":
        return [(q["ctx"], " " + e) for e in q["endings"]]
    if form == "piqa":
        return [(q["goal"], " " + q["sol1"]), (q["goal"], " " + q["sol2"])]
    if form == "winogrande":
        before, after = q["sentence"].split("_")
        return [(before + q["option1"], after), (before + q["option2"], after)]
    if form == "storycloze":
        story = " ".join(q[f"InputSentence{i}"] for i in range(1, 5))
        return [(story, " " + q["RandomFifthSentenceQuiz1"]), (story, " " + q["RandomFifthSentenceQuiz2"])]
    if form == "openbookqa":
        return [(q["question"]["stem"], " " + c["text"]) for c in q["question"]["choices"]]
    return [("", c) for c in q["choices"]]


def make_tokenizer():
    with open(os.path.join(BPE, "vocab.json"), encoding="utf-8") as f:
        vocab = json.load(f)
    with open(os.path.join(BPE, "merges.txt"), encoding="utf-8") as f:
        merges = [tuple(line.split()) for line in f.read().splitlines()[1:]]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<s>", "<pad>", "</s>", "<unk>")])
    return tokenizer


def log_probability(config, params, source, ids, start):
    """Of ids[start:] after ids[:start]."""
    batch = {"tgt_in": torch.tensor([ids[:-1]]), "tgt_out": torch.tensor([ids[1:]])}
    if source:
        batch["src"] = torch.tensor([source])
    logits = reference.trace(config, params, batch, update=1)[0]["logits"][0]
    logp = torch.log_softmax(logits.double(), dim=-1)
    return sum(logp[t - 1, ids[t]].item() for t in range(start, len(ids)))


def main():
    torch.set_num_threads(1)
    shutil.rmtree(OUT, ignore_errors=True)
    tokenizer = make_tokenizer()
    expected = {}
    for arch in "dec", "encdec":
        config = make_config(arch, "preln", None, (2, 2), vocab=(700, 700), f=16)
        config["max_positions"] = 128
        params = draw_parameters(config, 5)
        folder = os.path.join(OUT, arch)
        os.makedirs(folder)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f, indent=1)
        save_floats(os.path.join(folder, "model.safetensors"), params)
        tokenizer.save(os.path.join(folder, "tokenizer.json"))
        for form, questions in QUESTIONS.items():
            for shots in (0, 1) if arch == "dec" and form == "hellaswag" else (0,):
                rows = []
                for q in questions:
                    head = [EOS]
                    if shots:  # the one example there is
                        prompt, ending = pairs_of(form, questions[0])[0]
                        head = head + tokenizer.encode(prompt + ending).ids + [EOS]
                    row = []
                    for prompt, ending in pairs_of(form, q):
                        if arch == "dec":
                            before = head + tokenizer.encode(prompt).ids
                            ids = head + tokenizer.encode(prompt + ending).ids
                            assert ids[:len(before)] == before
                            row.append(log_probability(config, params, None, ids, len(before)))
                        else:
                            source = tokenizer.encode(prompt).ids + [EOS]
                            ids = [BOS] + tokenizer.encode(ending).ids + [EOS]
                            row.append(log_probability(config, params, source, ids, 1))
                    rows.append({"logp": row, "bytes": [len(e.strip().encode()) for _, e in pairs_of(form, q)]})
                expected[f"{arch}-{form}-{shots}"] = rows
    for form, questions in QUESTIONS.items():
        with open(os.path.join(OUT, form + ".jsonl"), "w", encoding="utf-8") as f:
            f.writelines(json.dumps(q, ensure_ascii=False) + "\n" for q in questions)
    with open(os.path.join(OUT, "expected.json"), "w", encoding="utf-8") as f:
        json.dump(expected, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
