"""Runs exported models in the programs they were written for, and compares with fathom's own numbers.

exchange.py have PACKAGE...                     exit status 77 where one of them cannot be imported
exchange.py batch MODEL B.safetensors [WORDS]   made-up sentences for fathom trace
exchange.py fresh MODEL B.safetensors           the same, after moving every parameter of the model
exchange.py logits FOLDER MODEL B T ...         the largest difference between their logits and trace's
exchange.py onnx FOLDER MODEL B T ...           the same of model.onnx
exchange.py golden FOLDER                       small models of transformers for test_exchange.c
exchange.py translate FOLDER LINES BEAM         translations by CTranslate2, a line each
exchange.py random                              random models of transformers, theirs-KIND
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


def batch(model, path, words=None):
    """words: of the vocabulary, where the model has more than another."""
    from safetensors.numpy import save_file
    c = config_of(model)
    tensors, pad = {}, c["pad"]
    for key in ("src_vocab", "tgt_vocab"):
        if words and key in c:
            c[key] = int(words)
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


def fresh(model, path):
    """Moves every number of a fresh model, so that none is 0 or 1 where a mistake would not show."""
    import numpy as np
    from safetensors.numpy import load_file, save_file
    name = os.path.join(model, "model.safetensors")
    random = np.random.default_rng(3)
    save_file({k: v + random.normal(0, 0.1, v.shape).astype(np.float32) for k, v in load_file(name).items()}, name)
    batch(model, path)


def run(model, tensors, pad):
    """The logits of a model of transformers on a batch of fathom's."""
    import torch
    model.eval()
    ids = {k: torch.from_numpy(v.astype("int64")) for k, v in tensors.items() if k in ("src", "tgt_in")}
    source = ids.get("src", ids.get("tgt_in"))
    mask = (source != pad).long()
    if pad >= model.config.get_text_config().vocab_size:  # a word that only fathom has
        ids = {k: v.masked_fill(v == pad, 0) for k, v in ids.items()}
    source = ids.get("src", ids.get("tgt_in"))
    inputs = {"input_ids": source, "attention_mask": mask}
    if "src" in ids and "tgt_in" in ids:
        inputs["decoder_input_ids"] = ids["tgt_in"]
        inputs["use_cache"] = False  # with a cache FSMT masks nothing
    if not ("src" in ids and "tgt_in" in ids) and type(model).__name__.startswith("GPT2"):
        inputs["position_ids"] = torch.arange(source.shape[1])[None].expand_as(source)
    with torch.no_grad():
        return model(**inputs).logits.numpy()


def difference(what, theirs, ours, tensors, config):
    """Where the input is a pad, fathom's logits are 0 and others' mean nothing."""
    import numpy as np
    if theirs.ndim == 3:
        words = tensors["src"] if config["arch"] == "enc" else tensors["tgt_in"]
        theirs, ours = theirs[words != config["pad"]], ours[words != config["pad"]]
    far = np.abs(theirs - ours[..., :theirs.shape[-1]]).max()
    print(f"{what}: {far:.3g} of {np.abs(ours).max():.3g}")
    if not far <= 1e-4:
        sys.exit(f"{what}: logits are {far:.3g} apart, at most 1e-4 is allowed")


def load(folder):
    import transformers
    transformers.logging.set_verbosity_error()
    kind = json.load(open(os.path.join(folder, "config.json")))["architectures"][0]
    return getattr(transformers, kind).from_pretrained(folder)


def logits(*names):
    for i in range(0, len(names), 4):
        one(*names[i:i + 4])


def one(folder, model, batch_file, trace):
    from safetensors.numpy import load_file
    tensors, c = load_file(batch_file), config_of(model)
    difference(folder, run(load(folder), tensors, c["pad"]), load_file(trace)["logits"], tensors, c)


def onnx(*names):
    for i in range(0, len(names), 4):
        one_onnx(*names[i:i + 4])


def one_onnx(folder, model, batch_file, trace):
    import onnxruntime
    from safetensors.numpy import load_file
    tensors, c = load_file(batch_file), config_of(model)
    session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"))
    names = {"src": "src", "tgt_in": "tgt"}
    inputs = {names[k]: v.astype("int64") for k, v in tensors.items() if k in names}
    difference(folder, session.run(["logits"], inputs)[0], load_file(trace)["logits"], tensors, c)


def golden(folder):
    """Models of transformers with weights that bf16 holds, a batch and their logits, for test_exchange.c."""
    import numpy as np
    import torch
    import transformers
    from safetensors.numpy import save_file
    transformers.logging.set_verbosity_error()
    torch.manual_seed(2)
    for kind, (config, model, sizes) in KINDS.items():
        made = getattr(transformers, model)(getattr(transformers, config + "Config")(**sizes)).eval()
        for name, p in made.named_parameters():
            if p.requires_grad and not (kind == "fsmt" and "embed_positions" in name):  # made, not stored
                p.data = (p.data + torch.randn_like(p) * 0.1).bfloat16().float()
        random = np.random.default_rng(5)
        tensors = {name: random.integers(4, 60, (3, 7)).astype(np.int32) for name in ("src", "tgt_in")}
        logits = run(made, {k: v for k, v in tensors.items() if k == "tgt_in" or "decoder_layers" in sizes}, 1)
        tensors["tgt_out"] = tensors["tgt_in"]
        if kind.startswith("bert"):
            tensors = {"src": tensors["tgt_in"], "src_out": tensors["tgt_in"], "label": np.zeros(3, np.int32)}
            tensors.pop("label" if kind == "bert" else "src_out")
        elif "decoder_layers" not in sizes:
            tensors.pop("src")
        place = os.path.join(folder, kind)
        made.bfloat16().save_pretrained(place)
        save_file(tensors, os.path.join(place, "batch"))
        save_file({"logits": logits}, os.path.join(place, "logits"))


def translate(folder, lines, beam):
    import ctranslate2
    import sentencepiece
    one = os.path.join(folder, "tokenizer.model")
    src, tgt = (one, one) if os.path.exists(one) else (os.path.join(folder, f"tokenizer.{s}.model") for s in ("src", "tgt"))
    src, tgt = sentencepiece.SentencePieceProcessor(src), sentencepiece.SentencePieceProcessor(tgt)
    model = ctranslate2.Translator(folder, intra_threads=1)
    source = [src.encode(line, out_type=str) for line in open(lines, encoding="utf-8").read().splitlines()]
    # with the end symbol, which then counts in the length that scores are divided by, as it does in fathom
    found = model.translate_batch(source, beam_size=int(beam), max_decoding_length=50, return_end_token=True)
    for result in found:
        words = result.hypotheses[0]
        print(tgt.decode(words[:-1] if words[-1:] == ["</s>"] else words))


SIZES = {"vocab_size": 60, "max_position_embeddings": 20, "pad_token_id": 1, "eos_token_id": 2}
STACKS = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 3, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24,
          "encoder_attention_heads": 2, "decoder_attention_heads": 2, "activation_function": "relu"}
FLAT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
KINDS = {
    "marian": ("Marian", "MarianMTModel", {**SIZES, **STACKS, "decoder_start_token_id": 1, "scale_embedding": True}),
    "marian-untied": ("Marian", "MarianMTModel", {**SIZES, **STACKS, "decoder_start_token_id": 0, "scale_embedding": False,
                      "tie_word_embeddings": False, "share_encoder_decoder_embeddings": False, "activation_function": "gelu"}),
    "fsmt": ("FSMT", "FSMTForConditionalGeneration", {**SIZES, **STACKS, "langs": ["a", "b"], "src_vocab_size": 60,
             "tgt_vocab_size": 60, "tie_word_embeddings": False}),
    "bert": ("Bert", "BertForMaskedLM", {**SIZES, **FLAT, "intermediate_size": 24, "pad_token_id": 0}),
    "bert-class": ("Bert", "BertForSequenceClassification", {**SIZES, **FLAT, "intermediate_size": 24, "num_labels": 3}),
    "opt": ("OPT", "OPTForCausalLM", {**SIZES, **FLAT, "word_embed_proj_dim": 16, "ffn_dim": 24, "bos_token_id": 2}),
    "opt-post": ("OPT", "OPTForCausalLM", {**SIZES, **FLAT, "word_embed_proj_dim": 16, "ffn_dim": 24,
                 "do_layer_norm_before": False}),
    "gpt2": ("GPT2", "GPT2LMHeadModel", {"vocab_size": 60, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 20,
             "activation_function": "gelu", "bos_token_id": 2, "eos_token_id": 2}),
}


def random():
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    torch.manual_seed(1)
    for kind, (config, model, sizes) in KINDS.items():
        made = getattr(transformers, model)(getattr(transformers, config + "Config")(**sizes))
        for name, p in made.named_parameters():  # nothing stays 0 or 1, where a mistake would not show
            if p.requires_grad and not (kind == "fsmt" and "embed_positions" in name):
                p.data += torch.randn_like(p) * 0.1
        made.save_pretrained("theirs-" + kind)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
