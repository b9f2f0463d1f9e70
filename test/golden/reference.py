"""An independent implementation of every method, written for reading, not for speed.

Double precision, padded batches with masks, gradients by autograd, no code in common with the C
program. It takes a configuration (config.json), parameters by their file names and a batch, and
returns what `fathom trace` must write. doc/mathematics.md has the equations.
"""

import json
import math
import os

import torch
from safetensors.torch import load_file, save_file

import heads

F64 = torch.float64

METHODS = [
    "postln", "preln", "postln-init", "dsinit", "deepnorm", "branchnorm", "b2t", "b2t-noln",
    "dlcl-pre", "dlcl-post", "admin", "rezero", "rfixup", "tfixup", "subln", "normformer",
    "realformer", "keel", "periln", "resi-dual", "lns", "mixln",
]
NO_NORM = {"b2t-noln", "rezero", "rfixup", "tfixup"}
PRE_NORM = {"preln", "dlcl-pre", "subln", "normformer", "periln", "lns", "mixln"}

OPTION_DEFAULTS = {
    "postln": {}, "preln": {}, "dlcl-pre": {}, "dlcl-post": {}, "rfixup": {}, "tfixup": {},
    "subln": {}, "resi-dual": {}, "lns": {},
    "postln-init": {"scope": "all"},
    "dsinit": {"power": 0.5},
    "deepnorm": {"alpha_scale": 1.0, "beta_scale": 1.0, "alpha": None, "beta": None},
    "branchnorm": {"steps": 4000, "growth": "linear", "end": 1.0, "branch_lr": "full"},
    "b2t": {"init_scale": None, "skip_last": False},
    "b2t-noln": {"init_scale": None, "final_ln": False},
    "admin": {"mode": "profile"},
    "rezero": {"per_sublayer": False},
    "normformer": {"head_scale": "pre", "residual_scale": False, "encoder": True},
    "realformer": {"mode": "sum"},
    "keel": {"alpha": None},
    "periln": {"embed_norm": False},
    "mixln": {"post_share": 0.25},
}


# ---------------------------------------------------------------- configuration


def options_of(config):
    """The method's options with their defaults filled in."""
    options = dict(OPTION_DEFAULTS[config["method"]])
    given = config.get("method_options", {})
    unknown = set(given) - set(options)
    if unknown:
        raise ValueError(f"{config['method']} has no option {sorted(unknown)}")
    options.update(given)
    return options


def stacks_of(config):
    both = ["encoder", "decoder"]
    return {"encdec": both, "enc": both[:1], "dec": both[1:]}[config["arch"]]


def depth_of(config, stack):
    return config[stack + "_layers"]


def sublayers_of(config, stack):
    """Kinds of sub-layer of one layer, bottom to top."""
    if stack == "decoder" and config["arch"] == "encdec":
        return ["self_attn", "encoder_attn", "ffn"]
    return ["self_attn", "ffn"]


def norm_name(kind):
    return "final_layer_norm" if kind == "ffn" else kind + "_layer_norm"


def has_final_norm(config):
    if config["method"] == "b2t-noln":
        return options_of(config)["final_ln"]
    return config["method"] in PRE_NORM


def has_normformer_parts(config, stack):
    return config["method"] == "normformer" and (
        stack == "decoder" or options_of(config)["encoder"])


def input_embedding(config, stack):
    if config["share"] == "all" or (config["share"] == "dec" and config["arch"] != "encdec"):
        return "embed_tokens.weight"
    return stack + ".embed_tokens.weight"


def output_embedding(config):
    if config["share"] == "none":
        return "output_projection.weight"
    return input_embedding(config, stacks_of(config)[-1])


def vocabulary_of(config, stack):
    return config["src_vocab"] if stack == "encoder" else config["tgt_vocab"]


def parameter_shapes(config):
    """Name and shape of every parameter, in building order."""
    d, f, h = config["d_model"], config["ffn_dim"], config["heads"]
    method, options = config["method"], options_of(config)
    shapes = {}

    def linear(name, rows, columns):
        shapes[name + ".weight"] = (rows, columns)
        if method != "rfixup":
            shapes[name + ".bias"] = (rows,)

    def norm(name, width):
        shapes[name + ".weight"] = (width,)
        shapes[name + ".bias"] = (width,)

    for stack in stacks_of(config):
        if heads.front_of(config) == "text" or stack == "decoder":
            shapes[input_embedding(config, stack)] = (vocabulary_of(config, stack), d)
        else:
            shapes.update(heads.front_shapes(config))
        if config["positions"] == "learned":
            shapes[stack + ".embed_positions.weight"] = (config["max_positions"], d)
    if heads.predicts_words(config) and config["share"] == "none":
        shapes["output_projection.weight"] = (vocabulary_of(config, stacks_of(config)[-1]), d)

    for stack in stacks_of(config):
        depth = depth_of(config, stack)
        for i in range(depth):
            layer = f"{stack}.layers.{i}"
            for kind in sublayers_of(config, stack):
                if kind == "ffn":
                    linear(layer + ".fc1", f, d)
                    linear(layer + ".fc2", d, f)
                else:
                    for part in "q", "k", "v", "out":
                        linear(f"{layer}.{kind}.{part}_proj", d, d)
                if method not in NO_NORM:
                    norm(f"{layer}.{norm_name(kind)}", d)
                if method == "keel":
                    norm(f"{layer}.{kind}_pre_layer_norm", d)
                if method == "periln":
                    norm(f"{layer}.{kind}_out_layer_norm", d)
                if method == "admin":
                    shapes[f"{layer}.{kind}_skip"] = (d,)
                if method == "rezero" and options["per_sublayer"]:
                    shapes[f"{layer}.{kind}_resweight"] = (1,)
                if method == "rfixup":
                    if kind == "ffn":
                        for shift in "fc1_shift", "act_shift", "fc2_shift":
                            shapes[f"{layer}.{shift}"] = (1,)
                    else:
                        shapes[f"{layer}.{kind}_shift"] = (1,)
                    shapes[f"{layer}.{kind}_scale"] = (1,)
            if method == "rezero" and not options["per_sublayer"]:
                shapes[layer + ".resweight"] = (1,)
            if method == "subln":
                norm(layer + ".self_attn.inner_attn_ln", d)
                norm(layer + ".ffn_layernorm", f)
            if has_normformer_parts(config, stack):
                shapes[layer + ".self_attn.c_attn"] = (h,)
                norm(layer + ".attn_ln", d)
                norm(layer + ".ffn_layernorm", f)
                if options["residual_scale"]:
                    shapes[layer + ".w_resid"] = (d,)
        if method in ("dlcl-pre", "dlcl-post"):
            shapes[stack + ".history.weight"] = (depth + 1, depth + 1)
            for k in range(depth):
                norm(f"{stack}.history.layer_norms.{k}", d)
        if has_final_norm(config) or method == "resi-dual":
            norm(stack + ".layer_norm", d)
        if method == "periln" and options["embed_norm"]:
            norm(stack + ".layernorm_embedding", d)
        if method == "rfixup":
            shapes[stack + ".out_shift"] = (1,)
            if stack == "encoder":
                shapes[stack + ".out_scale"] = (1,)
    shapes.update(heads.head_shapes(config))
    return shapes


# ---------------------------------------------------------------- constants of the methods


def deepnorm_constants(config, stack):
    """(alpha, beta) of DeepNorm, before alpha_scale and beta_scale."""
    if config["arch"] != "encdec":
        depth = depth_of(config, stack)
        return (2 * depth) ** 0.25, (8 * depth) ** -0.25
    n, m = config["encoder_layers"], config["decoder_layers"]
    if stack == "encoder":
        return 0.81 * (n**4 * m) ** (1 / 16), 0.87 * (n**4 * m) ** (-1 / 16)
    return (3 * m) ** 0.25, (12 * m) ** -0.25


def deepnorm_alpha(config, stack):
    options = options_of(config)
    alpha = options["alpha"]
    if alpha is None:
        alpha = deepnorm_constants(config, stack)[0]
    return alpha * options["alpha_scale"]


def branchnorm_alpha(options, t):
    """alpha_t of BranchNorm; t counts updates from 1."""
    u = min(1.0, t / options["steps"])
    if options["growth"] == "linear":
        g = u
    elif options["growth"] == "exp":
        g = (math.exp(4 * u) - 1) / (math.exp(4) - 1)
    elif options["growth"] == "sigmoid":

        def s(z):
            return 1 / (1 + math.exp(-10 * (z - 0.5)))

        g = (s(u) - s(0)) / (s(1) - s(0))
    else:
        raise ValueError(f"growth {options['growth']}")
    return min(options["end"], options["end"] * g)


def b2t_noln_constants(config, stack):
    """(alpha, beta) of B2T without LNs."""
    depth = depth_of(config, stack)
    return min(depth / 12, depth**-0.15), config["d_model"] ** -0.2


def keel_alpha(config, stack):
    alpha = options_of(config)["alpha"]
    if alpha is None:
        alpha = depth_of(config, stack) * len(sublayers_of(config, stack))
    return alpha


def is_post_layer(config, stack, i):
    """Mix-LN: is layer i (from 0) Post-LN?"""
    return i < math.floor(options_of(config)["post_share"] * depth_of(config, stack))


def schedule_alpha(config, t):
    return branchnorm_alpha(options_of(config), t) if config["method"] == "branchnorm" else 1.0


# ---------------------------------------------------------------- forward


class Forward:
    """One forward pass of update t. Every tensor is [batch, length, width]."""

    def __init__(self, config, params, t):
        self.config, self.p, self.t = config, params, t
        self.method, self.options = config["method"], options_of(config)
        self.alpha_t = schedule_alpha(config, t)
        self.chains = {}  # realformer: carried logits by (stack, kind)
        self.sums = {}  # resi-dual: the second stream by stack
        self.nearest_kink = math.inf  # smallest |input of a ReLU| at a real position

    # ---- parts

    def norm(self, name, x):
        """Layer norm; the stack is the first word of the name."""
        stack = name.split(".")[0]
        eps = self.config.get(stack + "_layer_norm_eps", self.config["layer_norm_eps"])
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        gain, bias = self.p[name + ".weight"], self.p[name + ".bias"]
        return gain * centred / torch.sqrt(variance + eps) + bias

    def linear(self, name, x):
        y = x @ self.p[name + ".weight"].T
        return y if self.method == "rfixup" else y + self.p[name + ".bias"]

    def heads(self, x):
        batch, length, d = x.shape
        h = self.config["heads"]
        return x.view(batch, length, h, d // h).transpose(1, 2)

    def attention(self, stack, i, kind, query, source, mask):
        """Attention with the inner parts of subln, normformer and realformer. mask: True = may look."""
        layer = f"{stack}.layers.{i}"
        name = f"{layer}.{kind}"
        h = self.config["heads"]
        width = self.config["d_model"] // h
        q = self.heads(self.linear(name + ".q_proj", query) * width**-0.5)
        k = self.heads(self.linear(name + ".k_proj", source))
        v = self.heads(self.linear(name + ".v_proj", source))
        scores = q @ k.transpose(2, 3)
        if self.method == "realformer":
            if (stack, kind) in self.chains:
                scores = scores + self.chains[stack, kind]
            self.chains[stack, kind] = scores
            if self.options["mode"] == "mean":
                scores = scores / (i + 1)
        probabilities = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
        out = probabilities @ v
        inner = kind == "self_attn" and has_normformer_parts(self.config, stack)
        if inner and self.options["head_scale"] == "pre":
            out = out * self.p[name + ".c_attn"].view(1, h, 1, 1)
        out = out.transpose(1, 2).reshape(query.shape)
        if self.method == "subln" and kind == "self_attn":
            out = self.norm(name + ".inner_attn_ln", out)
        out = self.linear(name + ".out_proj", out)
        if inner:
            if self.options["head_scale"] == "post":
                out = out * self.p[name + ".c_attn"].repeat_interleave(width)
            out = self.norm(layer + ".attn_ln", out)
        return out

    def activation(self, x, real):
        if self.config["activation"] == "gelu":
            return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        self.nearest_kink = min(self.nearest_kink, x[real].abs().min().item())
        return torch.relu(x)

    def feed_forward(self, stack, i, x, real):
        layer = f"{stack}.layers.{i}"
        if self.method == "rfixup":
            inner = self.linear(layer + ".fc1", x - self.p[layer + ".fc1_shift"])
            inner = self.activation(inner - self.p[layer + ".act_shift"], real)
            return self.linear(layer + ".fc2", inner - self.p[layer + ".fc2_shift"])
        inner = self.activation(self.linear(layer + ".fc1", x), real)
        if self.method == "subln" or has_normformer_parts(self.config, stack):
            inner = self.norm(layer + ".ffn_layernorm", inner)
        return self.linear(layer + ".fc2", inner)

    # ---- sub-layers, layers, stacks

    def branch(self, stack, i, kind, x, side):
        """G: the sub-layer without residual, norm or scale."""
        if kind == "ffn":
            return self.feed_forward(stack, i, x, side["real"])
        if self.method == "rfixup":
            x = x - self.p[f"{stack}.layers.{i}.{kind}_shift"]
        if kind == "encoder_attn":
            return self.attention(stack, i, kind, x, side["memory"], side["memory_mask"])
        return self.attention(stack, i, kind, x, x, side["mask"])

    def sublayer(self, stack, i, kind, x, layer_input, side):
        layer = f"{stack}.layers.{i}"
        method = self.method

        def g(y):
            return self.branch(stack, i, kind, y, side)

        def ln(y):
            return self.norm(f"{layer}.{norm_name(kind)}", y)

        if method in ("postln", "postln-init", "dsinit", "dlcl-post", "realformer"):
            return ln(x + g(x))
        if method == "deepnorm":
            return ln(deepnorm_alpha(self.config, stack) * x + g(x))
        if method == "branchnorm":
            return ln(x + self.alpha_t * g(x))
        if method == "b2t":
            if kind == "ffn" and self.options["skip_last"]:
                return layer_input + ln(x + g(x))
            return ln(layer_input + x + g(x)) if kind == "ffn" else ln(x + g(x))
        if method == "b2t-noln":
            if kind != "ffn":
                return x + g(x)
            alpha, beta = b2t_noln_constants(self.config, stack)
            return alpha * layer_input + beta * (x + g(x))
        if method == "admin":
            return ln(self.p[f"{layer}.{kind}_skip"] * x + g(x))
        if method == "rezero":
            name = f"{kind}_resweight" if self.options["per_sublayer"] else "resweight"
            return x + self.p[f"{layer}.{name}"] * g(x)
        if method == "rfixup":
            return x + self.p[f"{layer}.{kind}_scale"] * g(x)
        if method == "tfixup":
            return x + g(x)
        if method in ("preln", "dlcl-pre", "subln"):
            return x + g(ln(x))
        if method == "keel":
            inner = g(self.norm(f"{layer}.{kind}_pre_layer_norm", x))
            return ln(keel_alpha(self.config, stack) * x + inner)
        if method == "periln":
            return x + self.norm(f"{layer}.{kind}_out_layer_norm", g(ln(x)))
        if method == "resi-dual":
            branch = g(x)
            self.sums[stack] = self.sums.get(stack, x) + branch  # z_0 = x_0
            return ln(x + branch)
        if method == "lns":
            return x + g(ln(x) / math.sqrt(i + 1))
        if method == "mixln":
            return ln(x + g(x)) if is_post_layer(self.config, stack, i) else x + g(ln(x))
        if method == "normformer":
            residual = x
            if kind == "ffn" and layer + ".w_resid" in self.p:
                residual = self.p[layer + ".w_resid"] * x
            return residual + g(ln(x))
        raise ValueError(f"method {method}")

    def layer(self, stack, i, x, side):
        layer_input = x
        for kind in sublayers_of(self.config, stack):
            x = self.sublayer(stack, i, kind, x, layer_input, side)
        return x

    def dlcl_stack(self, stack, x, side):
        """DLCL: the input of each layer is a learned mix of the embedding and all layers below."""
        depth = depth_of(self.config, stack)
        w = self.p[stack + ".history.weight"]

        def history_norm(k, y):  # HN_k, k from 1
            return self.norm(f"{stack}.history.layer_norms.{k - 1}", y)

        history = [x]
        x = w[0, 0] * x
        for r in range(1, depth + 1):
            y = self.layer(stack, r - 1, x, side)
            history.append(history_norm(r, y) if self.method == "dlcl-pre" else y)
            x = sum(w[r, k] * history[k] for k in range(r + 1))
            if self.method == "dlcl-post":
                x = history_norm(r, x)
        return x

    def stack(self, stack, x, side):
        if self.method in ("dlcl-pre", "dlcl-post"):
            x = self.dlcl_stack(stack, x, side)
        else:
            for i in range(depth_of(self.config, stack)):
                x = self.layer(stack, i, x, side)
        if self.method == "resi-dual":
            x = x + self.norm(stack + ".layer_norm", self.sums[stack])
        elif has_final_norm(self.config):
            x = self.norm(stack + ".layer_norm", x)
        if self.method == "rfixup":
            x = x - self.p[stack + ".out_shift"]
            if stack == "encoder":
                x = self.p[stack + ".out_scale"] * x
        return x

    def embed(self, stack, tokens):
        """Embeddings. The k-th real token sits at p = k + 1; pads only ever produce ignored rows."""
        d = self.config["d_model"]
        real = tokens != self.config["pad"]
        k = real.long().cumsum(1)  # 1, 2, ... at real tokens
        x = math.sqrt(d) * self.p[input_embedding(self.config, stack)][tokens]
        if self.config["positions"] == "learned":
            x = x + self.p[stack + ".embed_positions.weight"][(k - 1).clamp(min=0)]
        else:
            x = x + sinusoids(d, tokens.shape[1] + 2)[k + 1]
        if self.method == "periln" and self.options["embed_norm"]:
            x = self.norm(stack + ".layernorm_embedding", x)
        return x * real.unsqueeze(-1)

    def encode(self, src):
        real = src != self.config["pad"]
        side = {"real": real, "mask": real[:, None, None, :]}
        return self.stack("encoder", self.embed("encoder", src), side)

    def decode(self, tgt_in, memory=None, src=None):
        real = tgt_in != self.config["pad"]
        length = tgt_in.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        side = {"real": real, "mask": real[:, None, None, :] & causal}
        if memory is not None:
            side["memory"] = memory
            side["memory_mask"] = (src != self.config["pad"])[:, None, None, :]
        return self.stack("decoder", self.embed("decoder", tgt_in), side)

    def logits(self, x):
        return x @ self.p[output_embedding(self.config)].T


def sinusoids(d, rows):
    """Row p is POS(p): sines in the first half, cosines in the second."""
    half = d // 2
    table = torch.zeros(rows, d, dtype=F64)
    for p in range(rows):
        for i in range(half):
            w = math.exp(-i * math.log(10000) / (half - 1))
            table[p, i] = math.sin(p * w)
            table[p, half + i] = math.cos(p * w)
    return table


def loss_of(logits, target, counted, smoothing):
    """The loss and its nll, both divided by the number of counted tokens: (loss, nll)."""
    lp = torch.log_softmax(logits, dim=-1)
    nll = -lp.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    smooth = -lp.sum(-1)
    eps_i = smoothing / (logits.shape[-1] - 1)
    loss = (1 - smoothing - eps_i) * nll + eps_i * smooth
    n = counted.sum()
    return (loss * counted).sum() / n, (nll * counted).sum() / n


def run(config, params, batch, t, smoothing, make=Forward):
    """Forward pass of update t. Returns (loss, nll, {logits, hidden.*}, forward object)."""
    pad = config["pad"]
    forward = make(config, params, t)
    out = {}
    if heads.head_of(config) != "next-token":
        return run_head(config, batch, smoothing, forward)
    if config["arch"] == "enc":
        source, target = batch["src"].long(), batch["src_out"].long()
        x = forward.encode(source)
    else:
        source, target = batch["tgt_in"].long(), batch["tgt_out"].long()
        if config["arch"] == "encdec":
            src = batch["src"].long()
            memory = forward.encode(src)
            out["hidden.encoder"] = memory * (src != pad).unsqueeze(-1)
            x = forward.decode(source, memory, src)
        else:
            x = forward.decode(source)
    real = (source != pad).unsqueeze(-1)
    out["hidden.encoder" if config["arch"] == "enc" else "hidden.decoder"] = x * real
    logits = forward.logits(x)
    out["logits"] = logits * real
    counted = (target != pad) & (source != pad)
    loss, nll = loss_of(logits, target, counted, smoothing)
    return loss, nll, out, forward


def run_head(config, batch, smoothing, forward):
    """The same for an encoder with a head of its own, or with pictures as input."""
    if heads.front_of(config) == "image":
        x = heads.embed_pictures(forward, batch, sinusoids)
        if config["method"] == "periln" and forward.options["embed_norm"]:
            x = forward.norm("encoder.layernorm_embedding", x)
        real = torch.ones(x.shape[:2], dtype=torch.bool)
        x = forward.stack("encoder", x, {"real": real, "mask": real[:, None, None, :]})
    else:
        real = batch["src"] != config["pad"]
        x = forward.encode(batch["src"].long())
    words = output_embedding(config) if heads.predicts_words(config) else None
    loss, nll, logits = heads.run(forward, batch, x, real, words, loss_of, smoothing)
    return loss, nll, {"hidden.encoder": x * real.unsqueeze(-1), "logits": logits}, forward


# ---------------------------------------------------------------- gradients, training


def as_double(params):
    return {name: value.to(F64).clone().requires_grad_(True) for name, value in params.items()}


def gradients(config, params, batch, t, smoothing, make=Forward):
    """(loss, nll, outputs, grads by name, forward); params are leaves that require gradients."""
    loss, nll, out, forward = run(config, params, batch, t, smoothing, make)
    names = list(params)
    grads = torch.autograd.grad(loss, [params[n] for n in names], allow_unused=True)
    grads = {
        n: torch.zeros_like(params[n]) if g is None else g.detach() for n, g in zip(names, grads)
    }
    return loss.detach(), nll.detach(), {k: v.detach() for k, v in out.items()}, grads, forward


TRAIN_DEFAULTS = {
    "lr": 5e-4, "lr_scheduler": "inverse_sqrt", "warmup_updates": 4000, "warmup_init_lr": 1e-7,
    "max_update": 50000, "adam_betas": (0.9, 0.98), "adam_eps": 1e-8, "weight_decay": 0.0,
    "clip_norm": 0.0,
}


def learning_rate(train, t):
    """Adam, fairseq's form."""
    lr, kind, w = train["lr"], train["lr_scheduler"], train["warmup_updates"]
    if kind == "inverse_sqrt_nowarmup":
        return lr * math.sqrt(4000 / (4000 + t))
    if t < w:
        return train["warmup_init_lr"] + t * (lr - train["warmup_init_lr"]) / w
    if kind == "inverse_sqrt":
        return lr * math.sqrt(w / t)
    if kind == "constant":
        return lr
    u = min(1.0, (t - w) / (train["max_update"] - w))
    if kind == "linear":
        return lr * (1 - u)
    if kind == "cosine":
        return lr * (1 + math.cos(math.pi * u)) / 2
    raise ValueError(f"lr scheduler {kind}")


def in_branch(name):
    """Weights and biases of q, k, v, o, W_1, W_2: what branch_lr "alpha" slows down."""
    owner = name.split(".")[-2] if "." in name else ""
    return owner in ("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2")


def train_steps(config, params, batch, smoothing, train, steps):
    """K updates on one batch with Adam in fairseq's form. Returns step.* and after.* tensors."""
    options = options_of(config)
    b1, b2 = train["adam_betas"]
    theta = as_double(params)
    first = {n: torch.zeros_like(p) for n, p in theta.items()}
    second = {n: torch.zeros_like(p) for n, p in theta.items()}
    log = {"loss": [], "gnorm": [], "lr": [], "alpha": []}
    kink = math.inf
    for t in range(1, steps + 1):
        loss, _, _, grads, forward = gradients(config, theta, batch, t, smoothing)
        kink = min(kink, forward.nearest_kink)
        gnorm = math.sqrt(sum((g * g).sum().item() for g in grads.values()))
        scale = 1.0
        if train["clip_norm"] > 0 and gnorm > train["clip_norm"]:
            scale = train["clip_norm"] / (gnorm + 1e-6)
        lr, alpha = learning_rate(train, t), schedule_alpha(config, t)
        for name, p in theta.items():
            g = grads[name] * scale
            rate = lr
            if options.get("branch_lr") == "alpha" and in_branch(name):
                rate = lr * alpha / options["end"]
            first[name] = b1 * first[name] + (1 - b1) * g
            second[name] = b2 * second[name] + (1 - b2) * g * g
            with torch.no_grad():
                p -= rate * train["weight_decay"] * p
                correction = math.sqrt(1 - b2**t) / (1 - b1**t)
                p -= rate * correction * first[name] / (second[name].sqrt() + train["adam_eps"])
        for key, value in ("loss", loss.item()), ("gnorm", gnorm), ("lr", lr), ("alpha", alpha):
            log[key].append(value)
    result = {"step." + key: torch.tensor(values, dtype=F64) for key, values in log.items()}
    result.update({"after." + name: p.detach() for name, p in theta.items()})
    return result, kink


def trace(config, params, batch, update=None, smoothing=0.0, steps=0, train=None):
    """All that `fathom trace` writes, in double, and the distance of the nearest ReLU kink."""
    t = config["step"] + 1 if update is None else update
    theta = as_double(params)
    loss, nll, out, grads, forward = gradients(config, theta, batch, t, smoothing)
    result = {"loss": loss.view(1), "nll": nll.view(1), **out}
    result.update({"grad." + name: g for name, g in grads.items()})
    kink = forward.nearest_kink
    if steps:
        more, step_kink = train_steps(
            config, params, batch, smoothing, {**TRAIN_DEFAULTS, **(train or {})}, steps)
        result.update(more)
        kink = min(kink, step_kink)
    return result, kink


# ---------------------------------------------------------------- command-line flags and files


def parse_flags(args):
    """`fathom trace`'s flags as keyword arguments of trace()."""
    result, train = {"update": None, "smoothing": 0.0, "steps": 0}, {}
    for flag, value in zip(args[::2], args[1::2], strict=True):
        key = flag.removeprefix("--").replace("-", "_")
        if key == "update" or key == "steps":
            result[key] = int(value)
        elif key == "label_smoothing":
            result["smoothing"] = float(value)
        elif key == "adam_betas":
            train[key] = tuple(float(b) for b in value.split(","))
        elif key == "lr_scheduler":
            train[key] = value
        elif key in ("warmup_updates", "max_update"):
            train[key] = int(value)
        elif key in TRAIN_DEFAULTS:
            train[key] = float(value)
        else:
            raise ValueError(f"unknown flag {flag}")
    result["train"] = train
    return result


def load_config(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        return json.load(f)


def load_model(folder):
    """(config, parameters); checks names and shapes against the configuration."""
    config = load_config(folder)
    params = load_file(os.path.join(folder, "model.safetensors"))
    shapes = parameter_shapes(config)
    wrong = set(shapes) ^ set(params)
    if wrong:
        raise ValueError(f"{folder}: parameters missing or too many: {sorted(wrong)}")
    for name, shape in shapes.items():
        if tuple(params[name].shape) != shape:
            raise ValueError(f"{folder}: {name} is {tuple(params[name].shape)}, expected {shape}")
    return config, params


def save_floats(path, tensors):
    save_file({n: t.to(torch.float32).contiguous() for n, t in tensors.items()}, path,
              metadata={"format": "pt"})
