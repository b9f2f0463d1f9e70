"""The initial distribution of every parameter (doc/mathematics.md).

rule(config, name) gives {"dist": ..., ...}:
    xavier_uniform, xavier_normal, normal: "std" of the entries; "pad_row" true: row `pad`
        is 0, false: it is drawn like the others, absent: either will do
    zeros, ones, const: "value" of every entry
    history: DLCL's weights, w[r][k] = 1/(r+1) for k <= r, 0 above
"""

import math

from reference import deepnorm_constants, depth_of, options_of, parameter_shapes, sublayers_of


def xavier(kind, shape, gain):
    if gain == 0:
        return constant(0.0)
    return {"dist": kind, "std": gain * math.sqrt(2 / (shape[0] + shape[1]))}


def constant(value):
    dist = {0.0: "zeros", 1.0: "ones"}.get(value, "const")
    return {"dist": dist, "value": value}


def b2t_scale(config, stack):
    depth, scale = depth_of(config, stack), options_of(config)["init_scale"]
    if scale is None:
        scale = 1.0 if depth <= 18 else "auto"
    return depth**-0.5 if scale == "auto" else scale


def subln_gain(config, stack):
    if config["arch"] != "encdec":
        return math.sqrt(math.log(2 * depth_of(config, stack)))
    if stack == "decoder":
        return math.sqrt(math.log(3 * config["decoder_layers"]))
    return math.sqrt(
        math.log(3 * config["decoder_layers"]) * math.log(2 * config["encoder_layers"]) / 3)


def tfixup_gain(config, stack):
    depth = depth_of(config, stack)
    return 0.67 * depth**-0.25 if stack == "encoder" else (9 * depth) ** -0.25


def rfixup_branches(config):
    """R: residual branches of the whole model."""
    if config["arch"] == "encdec":
        return 2 * config["encoder_layers"] + 3 * config["decoder_layers"]
    return 2 * depth_of(config, "encoder" if config["arch"] == "enc" else "decoder")


def matrix_rule(config, stack, layer, block, part, shape):
    """A weight matrix of a layer. layer counts from 1; part is q, k, v, out, fc1 or fc2."""
    method, options = config["method"], options_of(config)
    depth = depth_of(config, stack)
    vo12 = part in ("v", "out", "fc1", "fc2")
    base = math.sqrt(0.5) if part in ("q", "k", "v") else 1.0
    if method in ("deepnorm", "branchnorm"):
        beta = deepnorm_constants(config, stack)[1]
        if method == "deepnorm":
            beta = (beta if options["beta"] is None else options["beta"]) * options["beta_scale"]
        return xavier("xavier_normal", shape, beta if vo12 else 1.0)
    if method == "subln":
        scaled = vo12 and block != "encoder_attn"
        return xavier("xavier_normal", shape, subln_gain(config, stack) if scaled else 1.0)
    if method == "tfixup" and vo12:
        return xavier("xavier_uniform", shape, tfixup_gain(config, stack))
    factor = 1.0
    if method == "postln-init" and (vo12 or options["scope"] == "all"):
        factor = 1 / (depth - layer + 1)
    elif method == "dsinit":
        factor = layer ** -options["power"]
    elif method in ("b2t", "b2t-noln"):
        factor = b2t_scale(config, stack)
    elif method == "rfixup":
        if part in ("out", "fc2"):
            factor = 0.0
        else:
            factor = rfixup_branches(config) ** (-1 / 2 if part == "fc1" else -1 / 6)
    return xavier("xavier_uniform", shape, base * factor)


def embedding_rule(config, stack):
    std = config["d_model"] ** -0.5
    if config["method"] == "tfixup":
        std *= (9 * depth_of(config, stack)) ** -0.25
    return {"dist": "normal", "std": std, "pad_row": True}


def rule(config, name, shape):
    method = config["method"]
    words = name.split(".")
    stack, last = words[0], words[-1]
    if name == "output_projection.weight":
        if method == "rfixup":
            return constant(0.0)
        return {"dist": "normal", "std": config["d_model"] ** -0.5}
    if name == "embed_tokens.weight":
        return embedding_rule(config, "decoder" if config["arch"] == "dec" else "encoder")
    if name.endswith("embed_tokens.weight"):
        return embedding_rule(config, stack)
    if name.endswith("embed_positions.weight"):
        return {"dist": "normal", "std": config["d_model"] ** -0.5, "pad_row": False}
    if name.endswith("history.weight"):
        return {"dist": "history"}
    if len(shape) == 2:
        block = words[3] if words[3].endswith("attn") else "ffn"
        part = words[-2].removesuffix("_proj")
        return matrix_rule(config, stack, int(words[2]) + 1, block, part, shape)
    if last == "bias" or last.endswith("_shift") or last.endswith("resweight"):
        return constant(0.0)
    if last.endswith("_skip") and options_of(config)["mode"] == "const":
        r = depth_of(config, stack) * len(sublayers_of(config, stack))
        return constant(math.sqrt((r + 1) / math.log(r + 1) - 1))
    return constant(1.0)


def all_rules(config):
    return {name: rule(config, name, shape) for name, shape in parameter_shapes(config).items()}
