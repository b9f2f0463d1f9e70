"""Random configurations, parameters and batches, for the golden files and for unseen cases."""

import math
import random

import torch

import heads
from reference import METHODS, input_embedding, output_embedding, parameter_shapes, stacks_of


def make_config(arch, method, options=None, layers=(2, 2), d=8, f=12, heads=2, vocab=(11, 11),
                share="all", **more):
    """A complete config.json. layers and vocab are (encoder side, decoder side)."""
    config = {"format": "fathom-model", "version": 1, "arch": arch, "method": method,
              "method_options": options or {}}
    if arch != "dec":
        config["encoder_layers"] = layers[0]
    if arch != "enc":
        config["decoder_layers"] = layers[1]
    config.update({"d_model": d, "ffn_dim": f, "heads": heads})
    if arch != "dec":
        config["src_vocab"] = vocab[0]
    if arch != "enc":
        config["tgt_vocab"] = vocab[1]
    config.update({
        "share": share, "activation": "relu", "positions": "sinusoidal", "max_positions": 10,
        "layer_norm_eps": 1e-5, "dropout": 0.1, "attention_dropout": 0.0,
        "activation_dropout": 0.0, "word_dropout": 0.0, "bos": 0, "pad": 1, "eos": 2, "unk": 3,
        "step": 0})
    config.update(more)
    return config


def draw_parameter(name, shape, g):
    """A sensible value away from any initialisation, so that every parameter matters."""
    noise = torch.randn(shape, generator=g, dtype=torch.float64)
    last = name.split(".")[-1]
    if name.endswith("history.weight"):
        rows = torch.arange(shape[0], dtype=torch.float64)
        return ((1 / (rows + 1)).unsqueeze(1) + 0.2 * noise).tril()
    if name.endswith("_token"):
        return 0.5 * noise
    if "embed_" in name or name.startswith("output_projection"):
        return noise * shape[1] ** -0.5
    if len(shape) == 2:
        return noise * math.sqrt(2 / (shape[0] + shape[1]))
    if last == "bias" or last.endswith("_shift"):
        return 0.2 * noise
    if last.endswith("resweight"):
        return 0.5 + 0.3 * noise
    return 1 + 0.3 * noise  # gains, omegas, scales, lambda, gamma


def clear_unused(config, params):
    """Zero what the format keeps at zero: the pad row of an embedding that is only an input."""
    for stack in stacks_of(config):
        if heads.front_of(config) != "text":
            continue
        name = input_embedding(config, stack)
        if not heads.predicts_words(config) or name != output_embedding(config):
            params[name][config["pad"]] = 0
    return params


def draw_parameters(config, seed):
    g = torch.Generator().manual_seed(seed)
    params = {name: draw_parameter(name, shape, g)
              for name, shape in parameter_shapes(config).items()}
    params = clear_unused(config, params)
    return {name: value.to(torch.float32) for name, value in params.items()}


def perturb_parameters(config, params, seed):
    """Moves every parameter of a fresh model away from its initial value."""
    g = torch.Generator().manual_seed(seed)
    out = {}
    for name in sorted(params):
        value = params[name].to(torch.float64)
        noise = torch.randn(value.shape, generator=g, dtype=torch.float64)
        if name.endswith("history.weight"):
            noise = noise.tril()
        size = 0.3 * math.sqrt(2 / sum(value.shape)) if value.dim() == 2 else 0.2
        out[name] = value + size * noise
    return {name: value.to(torch.float32) for name, value in clear_unused(config, out).items()}


def draw_tokens(config, vocab, lengths, rng):
    """[batch, longest] int32, right-padded; any id but the pad may occur."""
    allowed = [v for v in range(vocab) if v != config["pad"]]
    rows = [[rng.choice(allowed) for _ in range(n)] for n in lengths]
    width = max(lengths)
    return torch.tensor([r + [config["pad"]] * (width - len(r)) for r in rows], dtype=torch.int32)


def drop_targets(tokens, pad, rng, share):
    """Replaces some real targets by the pad, but never all of them."""
    out = tokens.clone()
    real = [tuple(p) for p in (tokens != pad).nonzero().tolist()]
    for b, t in rng.sample(real, min(int(len(real) * share), len(real) - 1)):
        out[b, t] = pad
    return out


def make_batch(config, rng, src_lengths, tgt_lengths, unscored=0.15):
    """A batch file's tensors. The targets are random, and some of them are not scored."""
    pad = config["pad"]
    batch = {}
    if config["arch"] != "dec":
        batch["src"] = draw_tokens(config, config["src_vocab"], src_lengths, rng)
    if config["arch"] == "enc":
        target = draw_tokens(config, config["src_vocab"], src_lengths, rng)
        batch["src_out"] = drop_targets(target, pad, rng, unscored)
        return batch
    batch["tgt_in"] = draw_tokens(config, config["tgt_vocab"], tgt_lengths, rng)
    batch["tgt_in"][:, 0] = config["bos"]
    target = draw_tokens(config, config["tgt_vocab"], tgt_lengths, rng)
    batch["tgt_out"] = drop_targets(target, pad, rng, unscored)
    return batch


def make_head_config(front, head, method, pool=None, d=8, **more):
    """An encoder with a front and a head."""
    config = make_config("enc", method, {"steps": 10} if method == "branchnorm" else {}, (2, 2), d,
                         **more)
    config["head"] = head
    if front == "image":
        del config["src_vocab"], config["share"]
        config.update({"front": "image", "image_size": [4, 6], "channels": 2, "patch": 2})
    if pool:
        config["pool"] = pool
    if head in ("class", "token-class"):
        config["classes"] = 5
    if heads.is_visual(config):
        config["visual_tokens"] = 7
    return config


def make_head_batch(config, rng, lengths):
    """Tensors for a model of make_head_config. Some rows have no target, and in masked-token most."""
    head, n, batch = heads.head_of(config), len(lengths), {}
    if heads.front_of(config) == "image":
        size = [n, config["channels"], *config["image_size"]]
        noise = torch.Generator().manual_seed(rng.randrange(1 << 30))
        batch["image"] = torch.randn(size, generator=noise, dtype=torch.float32)
        shape = (n, heads.patches_of(config))
    else:
        batch["src"] = draw_tokens(config, config["src_vocab"], lengths, rng)
        shape = tuple(batch["src"].shape)
    if head == "regression":
        batch["label"] = torch.tensor([rng.uniform(-2, 2) for _ in lengths], dtype=torch.float32)
    elif head == "class":
        labels = [rng.randrange(config["classes"]) for _ in lengths]
        batch["label"] = torch.tensor(labels, dtype=torch.int32)
    else:
        words = heads.predicts_words(config)
        classes = config["src_vocab"] if words else config.get("classes",
                                                               config.get("visual_tokens"))
        none, keep = (config["pad"] if words else -1), 0.4 if head == "masked-token" else 0.8
        allowed = [v for v in range(classes) if v != none]
        cells = [[rng.choice(allowed) if rng.random() < keep else none for _ in range(shape[1])]
                 for _ in range(shape[0])]
        cells[0][0] = allowed[0]
        batch["src_out"] = torch.tensor(cells, dtype=torch.int32)
    if heads.is_visual(config):
        hidden = [[int(t >= 0 and rng.random() < 0.8) for t in row] for row in cells]
        batch["masked"] = torch.tensor(hidden, dtype=torch.int32)
    return batch


# ---------------------------------------------------------------- unseen cases


def random_options(method, rng, step_zero):
    pick = rng.choice
    options = {}

    def maybe(key, value):
        if rng.random() < 0.6:
            options[key] = value

    if method == "postln-init":
        maybe("scope", pick(["all", "vo12"]))
    elif method == "dsinit":
        maybe("power", pick([0.25, 0.5, 1.0]))
    elif method == "deepnorm":
        if rng.random() < 0.3:
            options["alpha"] = pick([1.0, 0.7, 3.5])
        else:
            maybe("alpha_scale", pick([0.25, 0.5, 2.0, 4.0]))
        if rng.random() < 0.3:
            options["beta"] = pick([1.0, 0.3])
        else:
            maybe("beta_scale", pick([0.25, 0.5, 2.0, 4.0]))
    elif method == "branchnorm":
        options["steps"] = pick([1, 3, 8, 20] if step_zero else [1, 10, 40, 100])
        maybe("growth", pick(["linear", "exp", "sigmoid"]))
        maybe("end", pick([0.3, 0.5, 0.8, 1.0, 2.0, 5.0]))
        maybe("branch_lr", pick(["full", "alpha"]))
    elif method in ("b2t", "b2t-noln"):
        maybe("init_scale", pick(["auto", 0.5, 1.0]))
        if method == "b2t":
            maybe("skip_last", pick([True, False]))
        if method == "b2t-noln":
            maybe("final_ln", pick([True, False]))
    elif method == "admin":
        # Training in profile mode starts by measuring omega; a trace of updates cannot show that.
        options["mode"] = "const" if step_zero else pick(["const", "profile"])
    elif method == "rezero":
        maybe("per_sublayer", pick([True, False]))
    elif method == "normformer":
        maybe("head_scale", pick(["pre", "post"]))
        maybe("residual_scale", pick([True, False]))
        maybe("encoder", pick([True, False]))
    elif method == "keel":
        maybe("alpha", pick([0.7, 2.0, 12.0]))
    elif method == "periln":
        maybe("embed_norm", pick([True, False]))
    elif method == "mixln":
        maybe("post_share", pick([0.0, 0.34, 0.5, 1.0]))
    elif method == "realformer":
        maybe("mode", pick(["sum", "mean"]))
    return options


def random_case(seed, method=None, arch=None):
    """(config, batch, flags) of an unseen case; the flags are those of `fathom trace`."""
    rng = random.Random(seed)
    drawn_arch, drawn_method = rng.choice(["encdec", "enc", "dec"]), rng.choice(METHODS)
    arch, method = arch or drawn_arch, method or drawn_method
    steps = rng.choice([0, 0, 1, 3, 5])
    heads = rng.choice([1, 2, 3, 4])
    d = max(heads * rng.randint(2, 8), 4 if 4 % heads == 0 else 2 * heads)
    pads = rng.choice([(0, 1, 2, 3), (0, 1, 2, 3), (1, 0, 2, 3), (0, 3, 2, 1)])
    share = rng.choice(["all", "dec", "none"])
    vocab = rng.randint(5, 40), rng.randint(5, 40)
    if share == "all":
        vocab = vocab[0], vocab[0]
    more = {"activation": rng.choice(["relu", "gelu"]),
            "positions": rng.choice(["sinusoidal", "learned"]),
            "max_positions": rng.choice([16, 40]),
            "layer_norm_eps": rng.choice([1e-5, 1e-5, 1e-6, 1e-3]),
            "dropout": rng.choice([0.0, 0.3]), "attention_dropout": rng.choice([0.0, 0.2]),
            "activation_dropout": rng.choice([0.0, 0.2]), "word_dropout": rng.choice([0.0, 0.1]),
            "bos": pads[0], "pad": pads[1], "eos": pads[2], "unk": pads[3],
            "step": 0 if steps else rng.choice([0, 0, 7, 35])}
    for stack in ["encoder"] * (arch != "dec") + ["decoder"] * (arch != "enc"):
        if rng.random() < 0.2:
            more[stack + "_layer_norm_eps"] = rng.choice([1e-6, 3e-5, 1e-2])
    config = make_config(arch, method, random_options(method, rng, steps > 0),
                         (rng.randint(1, 4), rng.randint(1, 4)), d, rng.randint(1, 40), heads,
                         vocab, share, **more)
    n = rng.randint(1, 5)
    src_lengths = [rng.randint(1, 9) for _ in range(n)]
    tgt_lengths = [rng.randint(1, 9) for _ in range(n)]
    batch = make_batch(config, rng, src_lengths, tgt_lengths, rng.choice([0.0, 0.15]))
    flags = ["--label-smoothing", rng.choice(["0", "0.1", "0.3"])]
    if steps:
        flags += ["--steps", str(steps), "--lr", rng.choice(["0.001", "0.01"]),
                  "--lr-scheduler", rng.choice(["inverse_sqrt", "inverse_sqrt_nowarmup",
                                                "constant", "linear", "cosine"]),
                  "--warmup-updates", rng.choice(["1", "3", "10"]),
                  "--warmup-init-lr", rng.choice(["1e-7", "0.0001"]), "--max-update", "12",
                  "--adam-betas", rng.choice(["0.9,0.98", "0.8,0.999"]), "--adam-eps", "1e-6",
                  "--weight-decay", rng.choice(["0", "0.1"]),
                  "--clip-norm", rng.choice(["0", "0.1", "1.0"])]
    elif rng.random() < 0.5:
        flags += ["--update", str(rng.choice([1, 5, 60]))]
    return config, batch, flags
