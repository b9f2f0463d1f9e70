"""Runs exported models in the programs they were written for, and compares with fathom's own numbers.

exchange.py have PACKAGE...                     exit status 77 where one of them cannot be imported
exchange.py batch MODEL B.safetensors           made-up sentences for fathom trace
exchange.py logits FOLDER MODEL B T             the largest difference between their logits and trace's
exchange.py onnx FOLDER MODEL B T               the same of model.onnx
exchange.py translate FOLDER LINES BEAM         translations by CTranslate2, a line each
exchange.py random KIND FOLDER                  a random model of transformers, and its logits
exchange.py compare FOLDER MODEL T              those against a trace of the imported model
"""
import importlib
import json
import os
import sys


def config_of(model):
    return json.load(open(os.path.join(model, "config.json")))


def have(*packages):
    for name in packages:
        try:
            importlib.import_module(name)
        except Exception as reason:  # a package that is there and broken is no use either
            print(f"no {name}: {reason}", file=sys.stderr)
            sys.exit(77)


def draw(config, vocab, pad, seed):
    """Five right-padded sentences of up to 11 words, none of them the pad."""
    import numpy as np
    random = np.random.default_rng(seed)
    ids = random.integers(0, vocab, (5, 11)).astype(np.int32)
    ids[ids == pad] = (pad + 1) % vocab
    for row, length in enumerate((11, 7, 3, 1, 9)):
        ids[row, min(length, config["max_positions"]):] = pad
    return ids[:, :min(11, config["max_positions"])]


def batch(model, path):
    from safetensors.numpy import save_file
    c = config_of(model)
    tensors, pad = {}, c["pad"]
    if c["arch"] != "dec":
        tensors["src"] = draw(c, c["src_vocab"], pad, 1)
        if c.get("head") in ("class", "regression"):
            import numpy as np
            tensors["label"] = np.zeros(5, np.int32 if c["head"] == "class" else np.float32)
        elif c["arch"] == "enc":
            tensors["src_out"] = tensors["src"] * 0 + (0 if c.get("head") == "token-class" else c["eos"])
    if c["arch"] != "enc":
        tensors["tgt_in"] = draw(c, c["tgt_vocab"], pad, 2)
        tensors["tgt_out"] = tensors["tgt_in"]
    save_file(tensors, path)


def run(model, tensors, pad):
    """The logits of a model of transformers on a batch of fathom's."""
    import torch
    model.eval()
    ids = {k: torch.from_numpy(v.astype("int64")) for k, v in tensors.items() if k in ("src", "tgt_in")}
    source = ids.get("src", ids.get("tgt_in"))
    inputs = {"input_ids": source, "attention_mask": (source != pad).long()}
    if "src" in ids and "tgt_in" in ids:
        inputs["decoder_input_ids"] = ids["tgt_in"]
        if type(model).__name__.startswith("FSMT"):  # its decoder wants masks of its own
            inputs["decoder_attention_mask"] = ids["tgt_in"] == pad
    if not ("src" in ids and "tgt_in" in ids) and type(model).__name__.startswith("GPT2"):
        inputs["position_ids"] = torch.arange(source.shape[1])[None].expand_as(source)
    with torch.no_grad():
        return model(**inputs).logits.numpy()


def difference(theirs, ours, tensors, config):
    """Where the input is a pad, fathom's logits are 0 and others' mean nothing."""
    import numpy as np
    if theirs.ndim == 3:
        words = tensors["src"] if config["arch"] == "enc" else tensors["tgt_in"]
        theirs, ours = theirs[words != config["pad"]], ours[words != config["pad"]]
    far = np.abs(theirs - ours[..., :theirs.shape[-1]]).max()
    print(f"{far:.3g} of {np.abs(ours).max():.3g}")
    if not far <= 1e-4 * max(1, np.abs(ours).max() / 10):
        sys.exit(1)


def load(folder):
    import transformers
    transformers.logging.set_verbosity_error()
    kind = json.load(open(os.path.join(folder, "config.json")))["architectures"][0]
    return getattr(transformers, kind).from_pretrained(folder)


def logits(folder, model, batch_file, trace):
    from safetensors.numpy import load_file
    tensors, c = load_file(batch_file), config_of(model)
    difference(run(load(folder), tensors, c["pad"]), load_file(trace)["logits"], tensors, c)


def onnx(folder, model, batch_file, trace):
    import onnxruntime
    from safetensors.numpy import load_file
    tensors, c = load_file(batch_file), config_of(model)
    session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"))
    names = {"src": "src", "tgt_in": "tgt"}
    inputs = {names[k]: v.astype("int64") for k, v in tensors.items() if k in names}
    difference(session.run(["logits"], inputs)[0], load_file(trace)["logits"], tensors, c)


def translate(folder, lines, beam):
    import ctranslate2
    import sentencepiece
    one = os.path.join(folder, "tokenizer.model")
    src, tgt = (one, one) if os.path.exists(one) else (os.path.join(folder, f"tokenizer.{s}.model") for s in ("src", "tgt"))
    src, tgt = sentencepiece.SentencePieceProcessor(src), sentencepiece.SentencePieceProcessor(tgt)
    model = ctranslate2.Translator(folder, intra_threads=1)
    source = [src.encode(line, out_type=str) for line in open(lines, encoding="utf-8").read().splitlines()]
    found = model.translate_batch(source, beam_size=int(beam), max_decoding_length=50)
    for one in found:
        print(tgt.decode(one.hypotheses[0]))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
