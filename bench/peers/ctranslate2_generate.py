#!/usr/bin/env python3
"""The generation that `fathom bench generate` times, in CTranslate2 on the CPU.

Takes a Post-LN model folder of fathom (encoder-decoder, one embedding for all, ReLU, sinusoidal
positions) and the file that `fathom bench generate MODEL --tokens FILE` wrote: the same weights, the
same sources, the same length. Prints one JSON object: the median and the shortest batch in
milliseconds, generated tokens per second, and how many tokens are those that fathom found.
"""
import argparse
import json
import os
import statistics
import tempfile
import time

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec
from safetensors.numpy import load_file


def linear(spec, weights, *names):
    spec.weight = np.concatenate([weights[n + ".weight"] for n in names])
    spec.bias = np.concatenate([weights[n + ".bias"] for n in names])


def norm(spec, weights, name):
    spec.gamma, spec.beta = weights[name + ".weight"], weights[name + ".bias"]


def attention(spec, weights, name):
    q, k, v = (f"{name}.{x}_proj" for x in "qkv")
    if name.endswith("encoder_attn"):
        linear(spec.linear[0], weights, q)
        linear(spec.linear[1], weights, k, v)
    else:
        linear(spec.linear[0], weights, q, k, v)
    linear(spec.linear[-1], weights, f"{name}.out_proj")
    norm(spec.layer_norm, weights, f"{name}_layer_norm")


def positions(count, d):
    half = d // 2
    w = np.exp(-np.arange(half) * np.log(10000.0) / (half - 1))
    p = (np.arange(count) + 2)[:, None] * w[None]
    return np.concatenate([np.sin(p), np.cos(p)], 1).astype(np.float32)


def convert(folder, out):
    with open(os.path.join(folder, "config.json")) as f:
        c = json.load(f)
    if (c["arch"], c["method"], c["share"], c["activation"]) != ("encdec", "postln", "all", "relu"):
        raise SystemExit(f"{folder}: must be a postln encdec model with share all and relu")
    weights = load_file(os.path.join(folder, "model.safetensors"))
    spec = transformer_spec.TransformerSpec.from_config(
        (c["encoder_layers"], c["decoder_layers"]), c["heads"], pre_norm=False,
        activation=common_spec.Activation.RELU)
    table = weights["embed_tokens.weight"]
    for name, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embeddings = stack.embeddings[0] if isinstance(stack.embeddings, list) else stack.embeddings
        embeddings.weight = table
        stack.scale_embeddings = True
        stack.position_encodings.encodings = positions(c["max_positions"], c["d_model"])
        for i, layer in enumerate(stack.layer):
            at = f"{name}.layers.{i}"
            attention(layer.self_attention, weights, at + ".self_attn")
            if name == "decoder":
                attention(layer.attention, weights, at + ".encoder_attn")
            linear(layer.ffn.linear_0, weights, at + ".fc1")
            linear(layer.ffn.linear_1, weights, at + ".fc2")
            norm(layer.ffn.layer_norm, weights, at + ".final_layer_norm")
    spec.decoder.projection.weight = table
    words = [f"w{i}" for i in range(c["src_vocab"])]
    for key, token in (("bos", "<s>"), ("eos", "</s>"), ("unk", "<unk>")):
        words[c[key]] = token
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.add_source_eos = False
    spec.config.decoder_start_token = "<s>"
    spec.validate()
    spec.optimize(quantization=None)
    os.makedirs(out)
    spec.save(out)
    return words


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model")
    p.add_argument("tokens", help="written by fathom bench generate --tokens")
    p.add_argument("--quantize", choices=["none", "int8"], default="none")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--repeats", type=int, default=3)
    return p.parse_args()


def main():
    a = arguments()
    with tempfile.TemporaryDirectory() as out:
        words = convert(a.model, os.path.join(out, "model"))
        translator = ctranslate2.Translator(
            os.path.join(out, "model"), device="cpu", inter_threads=1, intra_threads=a.threads,
            compute_type={"none": "float32", "int8": "int8"}[a.quantize])
    sources, expected = [], []
    with open(a.tokens) as f:
        for line in f:
            src, tgt = line.rstrip("\n").split("\t")
            sources.append([words[int(t)] for t in src.split()])
            expected.append([words[int(t)] for t in tgt.split()])
    length = len(expected[0]) - 1  # and the end symbol

    def generate():
        return translator.translate_batch(
            sources, beam_size=1, max_batch_size=0, min_decoding_length=length,
            max_decoding_length=length, return_scores=False, suppress_sequences=[["<s>"], ["w1"]])

    results, times, cpu = generate(), [], []
    for _ in range(a.repeats):
        start, spent = time.perf_counter(), time.process_time()
        results = generate()
        times.append(time.perf_counter() - start)
        cpu.append(time.process_time() - spent)
    tokens = equal = 0
    for r, e in zip(results, expected):
        found = r.hypotheses[0][:length]
        tokens += length
        equal += sum(x == y for x, y in zip(found, e[:length]))
    median, generated = statistics.median(times), len(sources) * (length + 1)
    print(json.dumps({
        "ms_per_batch": 1e3 * median,
        "ms_fastest": 1e3 * min(times),
        "cpu_ms": 1e3 * min(cpu),
        "tokens_per_s": generated / median,
        "tokens": generated,
        "compared": tokens,
        "equal": equal,
        "quantize": a.quantize,
        "version": ctranslate2.__version__,
    }))


if __name__ == "__main__":
    main()
