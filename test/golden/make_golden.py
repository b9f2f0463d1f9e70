"""Writes the golden files: trace/<case>/ and init.json. See README.md.

    python3 test/golden/make_golden.py

Needs torch and safetensors. The same seeds give the same files.
"""

import json
import os
import random
import shutil
import zlib

import torch
from safetensors.torch import save_file

import init_rules
import heads
from cases import draw_parameters, make_batch, make_config, make_head_batch, make_head_config
from reference import METHODS, parse_flags, save_floats, trace

HERE = os.path.dirname(os.path.abspath(__file__))
ARCHS = ["encdec", "enc", "dec"]
KINK = 2e-5  # no input of a ReLU is nearer to 0, so that fp32 takes the same side


def steps(scheduler, clip="0", decay="0", warmup="2", betas="0.9,0.98", eps="1e-4"):
    """The gradient of a key bias is only rounding; so large an eps keeps Adam from showing it."""
    return ["--steps", "5", "--lr", "0.01", "--lr-scheduler", scheduler,
            "--warmup-updates", warmup, "--warmup-init-lr", "0.0001", "--max-update", "9",
            "--adam-betas", betas, "--adam-eps", eps, "--weight-decay", decay,
            "--clip-norm", clip]


def cases():
    """(name, config, flags) of every case."""
    smooth = ["--label-smoothing", "0.1"]
    for i, method in enumerate(METHODS):
        for j, arch in enumerate(ARCHS):
            options = {"branchnorm": {"steps": 10}, "mixln": {"post_share": 0.5}}.get(method, {})
            layers = (2, 2) if (i + j) % 2 else (1, 2) if i % 3 else (2, 1)
            if arch != "encdec":
                layers = (3, 3) if method in ("dlcl-pre", "dlcl-post", "realformer") else (2, 2)
            flags = smooth if (i + j) % 3 else []
            if method == "branchnorm":
                flags = flags + ["--update", "4"]
            yield f"{method}-{arch}", make_config(arch, method, options, layers), flags

    def branch(growth, steps_, **more):
        return {"steps": steps_, "growth": growth, **more}

    def deep(**more):
        return make_config("enc", "deepnorm", more, (2, 2))

    yield ("branchnorm-exp", make_config("dec", "branchnorm", branch("exp", 20), step=6), smooth)
    yield ("branchnorm-sigmoid-end",
           make_config("enc", "branchnorm", branch("sigmoid", 20, end=0.5)),
           smooth + ["--update", "9"])
    yield ("branchnorm-past-ramp", make_config("dec", "branchnorm", branch("exp", 20, end=2.0)),
           ["--update", "21"])
    yield ("branchnorm-steps-full", make_config("dec", "branchnorm", branch("linear", 4)),
           smooth + steps("inverse_sqrt", "0.5", "0.1"))
    yield ("branchnorm-steps-alpha", make_config(
        "encdec", "branchnorm", branch("sigmoid", 8, branch_lr="alpha"), (1, 2)),
        smooth + steps("inverse_sqrt", "0", "0.1"))
    yield ("branchnorm-steps-alpha-end", make_config(
        "dec", "branchnorm", branch("linear", 4, end=0.5, branch_lr="alpha"), share="none"),
        steps("constant", "1.0", "0.1", "1"))
    yield "deepnorm-alpha-scale", deep(alpha_scale=2.0, beta_scale=0.5), smooth
    yield "deepnorm-alpha-given", deep(alpha=0.7, beta=0.3), smooth
    yield "deepnorm-n-m", make_config("encdec", "deepnorm", {}, (3, 1)), smooth
    yield "deepnorm-steps", make_config("enc", "deepnorm"), smooth + steps("cosine", "0.5")
    yield "keel-alpha-gelu", make_config("dec", "keel", {"alpha": 1.5}, activation="gelu"), smooth
    yield ("periln-embed-norm", make_config("encdec", "periln", {"embed_norm": True}, (1, 2),
                                            encoder_layer_norm_eps=0.01), smooth)
    yield ("periln-embed-norm-learned-steps", make_config(
        "dec", "periln", {"embed_norm": True}, positions="learned"), steps("constant"))
    yield "resi-dual-none", make_config("dec", "resi-dual", {}, (3, 3), share="none"), smooth
    yield "lns-steps", make_config("enc", "lns", {}, (3, 3)), smooth + steps("linear", "0.5")
    yield ("mixln-quarter", make_config("dec", "mixln", {}, (5, 5), d=8, f=8), smooth)
    yield ("mixln-all-post", make_config("enc", "mixln", {"post_share": 1.0}), [])
    yield "rezero-per-sublayer", make_config("encdec", "rezero", {"per_sublayer": True}, (1, 2)), []
    yield ("rezero-steps", make_config("dec", "rezero", share="none", vocab=(13, 13)),
           steps("inverse_sqrt_nowarmup", "0", "0.01"))
    yield "normformer-post", make_config("dec", "normformer", {"head_scale": "post"}), smooth
    yield ("normformer-residual-gelu", make_config("enc", "normformer", {"residual_scale": True},
                                                   activation="gelu"), smooth)
    yield ("normformer-encoder-off", make_config(
        "encdec", "normformer", {"encoder": False, "residual_scale": True}, (1, 2)), smooth)
    yield ("normformer-enc-off", make_config("enc", "normformer", {"encoder": False}), [])
    yield "realformer-mean", make_config("encdec", "realformer", {"mode": "mean"}, (2, 2)), smooth
    yield ("realformer-mean-steps", make_config("dec", "realformer", {"mode": "mean"}, (3, 3)),
           smooth + steps("linear"))
    yield "b2t-noln-final-ln", make_config("encdec", "b2t-noln", {"final_ln": True}, (1, 2)), smooth
    yield "b2t-skip-last", make_config("encdec", "b2t", {"skip_last": True}, (2, 2)), smooth
    yield "b2t-steps", make_config("enc", "b2t"), smooth + steps("linear", "1.0", "0.1", "3")
    yield "dlcl-post-steps", make_config("dec", "dlcl-post"), smooth + steps("constant", "0", "0.1")
    yield "dlcl-pre-steps", make_config("enc", "dlcl-pre"), smooth + steps("cosine", "0", "0.1")
    yield ("admin-steps", make_config("enc", "admin", {"mode": "const"}),
           smooth + steps("inverse_sqrt", "0", "0.1"))
    yield ("rfixup-gelu-steps", make_config("dec", "rfixup", activation="gelu"),
           smooth + steps("inverse_sqrt_nowarmup", "0.5", eps="1e-8"))
    yield "rfixup-learned-none", make_config("enc", "rfixup", share="none", positions="learned"), []
    yield ("tfixup-share-dec", make_config("encdec", "tfixup", {}, (1, 1), share="dec",
                                           vocab=(13, 11)), smooth)
    yield ("preln-gelu-learned-none", make_config(
        "encdec", "preln", {}, (1, 1), vocab=(13, 17), share="none", activation="gelu",
        positions="learned"), smooth)
    yield "postln-learned-all", make_config("encdec", "postln", {}, (1, 1), positions="learned"), []
    yield "postln-odd-width", make_config("dec", "postln", {}, (2, 2), d=9, f=13, heads=3), smooth
    yield "postln-one-head", make_config("enc", "postln", {}, (1, 1), d=4, f=5, heads=1), smooth
    yield ("postln-eps-per-stack", make_config(
        "encdec", "postln", {}, (1, 1), encoder_layer_norm_eps=0.1, decoder_layer_norm_eps=0.01),
        smooth)
    yield ("preln-eps", make_config("dec", "preln", {}, (1, 1), layer_norm_eps=0.05), smooth)
    yield ("postln-pad-0", make_config("encdec", "postln", {}, (1, 1), bos=1, pad=0), smooth)
    yield ("postln-dropouts-off", make_config(
        "encdec", "postln", {}, (1, 1), dropout=0.5, attention_dropout=0.4,
        activation_dropout=0.3, word_dropout=0.2), smooth)
    yield ("postln-steps", make_config("encdec", "postln", {}, (1, 1), share="dec"),
           smooth + steps("inverse_sqrt", "0.1", "0.1", "3", "0.8,0.999", "1e-5"))
    yield "preln-steps", make_config("dec", "preln"), smooth + steps("constant", "0", "0.01", "3")
    yield ("subln-gelu-steps", make_config("dec", "subln", activation="gelu"),
           smooth + steps("linear", "0", "0", "1"))


def head_cases():
    """(name, config, flags) of encoders with a front and a head."""
    smooth = ["--label-smoothing", "0.1"]
    kinds = [("text", "masked-token", None), ("text", "class", None), ("text", "class", "mean"),
             ("text", "regression", None), ("text", "token-class", None),
             ("image", "masked-token", None), ("image", "class", None), ("image", "class", "mean"),
             ("image", "regression", "mean"), ("image", "token-class", "mean")]
    for i, method in enumerate(("postln", "preln", "deepnorm", "branchnorm", "subln")):
        for j, (front, head, pool) in enumerate(kinds):
            more = {"activation": "gelu" if (i + j) % 2 else "relu",
                    "positions": "learned" if (i + j) % 3 == 1 else "sinusoidal"}
            if head == "masked-token" and front == "text" and i % 2:
                more["share"] = "none"
            flags = smooth if (i + j) % 2 and head != "regression" else []
            if (i + j) % 5 == 0:
                flags = flags + steps("constant", "1.0", "0.1")
            elif method == "branchnorm":
                flags = flags + ["--update", "4"]
            name = f"{front}-{head}{'-' + pool if pool else ''}-{method}"
            yield name, make_head_config(front, head, method, pool, **more), flags
    yield ("image-token-class-periln", make_head_config("image", "token-class", "periln"), smooth)
    yield ("text-class-odd-width", make_head_config("text", "class", "postln", d=9, heads=3), smooth)


def write_case(name, config, flags):
    folder = os.path.join(HERE, "trace", name)
    os.makedirs(folder)
    seed = zlib.crc32(name.encode())
    rng = random.Random(seed)
    # Sentence 3 has one source token, sentence 2 one target token.
    if heads.head_of(config) == "next-token":
        batch = make_batch(config, rng, [4, 7, 1, 5], [6, 1, 3, 4])
    else:
        batch = make_head_batch(config, rng, [4, 7, 1, 5])
    for attempt in range(100):
        params = draw_parameters(config, seed + attempt)
        result, kink = trace(config, params, batch, **parse_flags(flags))
        if kink > KINK:
            break
    else:
        raise SystemExit(f"{name}: no draw keeps away from the ReLU kinks")
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=1)
        f.write("\n")
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as f:
        json.dump({"args": flags}, f)
        f.write("\n")
    save_floats(os.path.join(folder, "model.safetensors"), params)
    save_floats(os.path.join(folder, "expected.safetensors"), result)
    save_file(batch, os.path.join(folder, "batch.safetensors"), metadata={"format": "pt"})


# ---------------------------------------------------------------- init.json


def init_entry(config, only=None):
    """only: keep the parameters whose names contain one of these pieces."""
    rules = {}
    for name, rule in init_rules.all_rules(config).items():
        if only and not any(piece in name for piece in only):
            continue
        rules[name] = {k: float(f"{v:.9g}") if isinstance(v, float) else v for k, v in rule.items()}
    return {"config": config, "complete": only is None, "parameters": rules}


def init_table():
    def config(arch, method, options=None, layers=(2, 2), **more):
        return make_config(arch, method, options, layers, d=16, f=24, vocab=(20, 20), **more)

    for method in METHODS:
        for arch in ARCHS:
            yield init_entry(config(arch, method, layers=(2, 1) if arch == "encdec" else (2, 2)))
    part = ["layers.0.self_attn.q", "layers.0.self_attn.v", "layers.0.encoder_attn.out",
            "layers.0.fc1.weight", "layers.1.fc2.weight"]
    for method, options in (
            ("deepnorm", {"alpha_scale": 2.0, "beta_scale": 0.25}), ("deepnorm", {"beta": 0.3}),
            ("postln-init", {"scope": "vo12"}), ("dsinit", {"power": 0.25}),
            ("b2t", {"init_scale": "auto"}), ("b2t", {"init_scale": 0.3}),
            ("b2t-noln", {"init_scale": "auto", "final_ln": True})):
        yield init_entry(config("encdec", method, options, (3, 2)), part + [".layer_norm"])
    yield init_entry(config("encdec", "admin", {"mode": "const"}, (3, 2)), ["skip"])
    yield init_entry(config("dec", "admin", {"mode": "const"}, (3, 2)), ["skip"])
    yield init_entry(config("encdec", "rezero", {"per_sublayer": True}), ["resweight"])
    yield init_entry(config("encdec", "normformer", {"encoder": False, "residual_scale": True}),
                     ["c_attn", "w_resid", "attn_ln", "ffn_layernorm"])
    for method in "postln", "tfixup", "rfixup":
        for share in "dec", "none":
            yield init_entry(config("encdec", method, layers=(3, 2), share=share,
                                    positions="learned"), ["embed", "output"])
    for n, m in (6, 6), (18, 18), (19, 20), (90, 6), (100, 100):
        ends = [f"{stack}.layers.{i}.{p}" for stack, top in (("encoder", n), ("decoder", m))
                for i in (0, top // 2, top - 1) for p in ("self_attn.v_proj.w", "fc1.w")]
        for method in ("postln-init", "dsinit", "deepnorm", "branchnorm", "b2t", "rfixup",
                       "tfixup", "subln"):
            yield init_entry(config("encdec", method, layers=(n, m)), ends + ["embed_tokens"])
        for arch in "enc", "dec":
            for method in "deepnorm", "tfixup", "rfixup", "subln":
                yield init_entry(config(arch, method, layers=(n, m)),
                                 ["layers.1.self_attn.v_proj.w", "layers.1.fc1.w", "embed_tokens"])


def main():
    torch.set_num_threads(1)  # tiny tensors: more threads only wait for each other
    shutil.rmtree(os.path.join(HERE, "trace"), ignore_errors=True)
    names = []
    for name, config, flags in [*cases(), *head_cases()]:
        write_case(name, config, flags)
        names.append(name)
    with open(os.path.join(HERE, "cases.json"), "w", encoding="utf-8") as f:
        json.dump({"cases": names}, f, indent=0)
        f.write("\n")
    with open(os.path.join(HERE, "init.json"), "w", encoding="utf-8") as f:
        f.write('{"models": [\n')
        f.write(",\n".join(json.dumps(e, separators=(",", ":")) for e in init_table()))
        f.write("\n]}\n")
    print(f"{len(names)} cases")


if __name__ == "__main__":
    main()
