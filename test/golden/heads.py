"""Fronts and heads of the reference: pictures as input, and what is predicted from an encoder's rows.

Like reference.py: double precision, padded batches, no code in common with the C program. Pictures have
no pads: every row is real.
"""

import math

import torch


def front_of(config):
    return config.get("front", "text")


def head_of(config):
    return config.get("head", "next-token")


def patches_of(config):
    height, width = config["image_size"]
    return (height // config["patch"]) * (width // config["patch"])


def has_cls(config):
    return front_of(config) == "image" and config.get("pool", "first") == "first"


def is_visual(config):
    return front_of(config) == "image" and head_of(config) == "masked-token"


def predicts_words(config):
    return head_of(config) == "next-token" or (
        head_of(config) == "masked-token" and not is_visual(config))


def front_shapes(config):
    """Parameters of a front that is not text."""
    d = config["d_model"]
    shapes = {}
    if front_of(config) == "image":
        shapes["encoder.patch_embed.weight"] = (d, config["channels"] * config["patch"] ** 2)
        shapes["encoder.patch_embed.bias"] = (d,)
        if has_cls(config):
            shapes["encoder.cls_token"] = (d,)
        if is_visual(config):
            shapes["encoder.mask_token"] = (d,)
    return shapes


def head_shapes(config):
    d, head = config["d_model"], head_of(config)
    dense = {"head.dense.weight": (d, d), "head.dense.bias": (d,)}

    def out(rows):
        return {"head.out.weight": (rows, d), "head.out.bias": (rows,)}

    if head == "masked-token" and is_visual(config):
        return out(config["visual_tokens"])
    if head == "masked-token":
        return {**dense, "head.layer_norm.weight": (d,), "head.layer_norm.bias": (d,),
                "head.bias": (config["src_vocab"],)}
    if head in ("class", "regression"):
        return {**dense, **out(config["classes"] if head == "class" else 1)}
    if head == "token-class":
        return out(config["classes"])
    return {}


# ---------------------------------------------------------------- pictures as rows


def patches(config, image):
    """[B, patches, C p p]: reading order; inside of a patch channels, then rows, then columns."""
    p = config["patch"]
    rows, columns = config["image_size"][0] // p, config["image_size"][1] // p
    return torch.stack([
        image[:, :, r * p:(r + 1) * p, c * p:(c + 1) * p].flatten(1)
        for r in range(rows) for c in range(columns)], dim=1)


def embed_pictures(forward, batch, sinusoids):
    config, p = forward.config, forward.p
    x = patches(config, batch["image"].to(torch.float64)) @ p["encoder.patch_embed.weight"].T
    x = x + p["encoder.patch_embed.bias"]
    if is_visual(config):
        hidden = batch["masked"].bool().unsqueeze(-1)
        x = torch.where(hidden, p["encoder.mask_token"], x)
    if has_cls(config):
        x = torch.cat([p["encoder.cls_token"].expand(len(x), 1, -1), x], dim=1)
    rows = x.shape[1]
    if config["positions"] == "learned":
        return x + p["encoder.embed_positions.weight"][:rows]
    return x + sinusoids(config["d_model"], rows + 2)[2:]


# ---------------------------------------------------------------- heads


def linear(forward, name, x):
    return x @ forward.p[name + ".weight"].T + forward.p[name + ".bias"]


def pooled(forward, x, real):
    if forward.config.get("pool", "first") == "first":
        return x[:, 0]
    real = real.unsqueeze(-1).to(x.dtype)
    return (x * real).sum(1) / real.sum(1)


def logits_of(forward, x, real, output_embedding):
    """[B, K] or [B, rows, K]."""
    config, head = forward.config, head_of(forward.config)
    if head == "masked-token" and not is_visual(config):
        h = linear(forward, "head.dense", x)
        h = h * 0.5 * (1 + torch.erf(h / math.sqrt(2)))
        h = forward.norm("head.layer_norm", h)
        return h @ forward.p[output_embedding].T + forward.p["head.bias"]
    if head in ("class", "regression"):
        x = torch.tanh(linear(forward, "head.dense", pooled(forward, x, real)))
    elif has_cls(config):
        x = x[:, 1:]  # the class token's row has no logits
    return linear(forward, "head.out", x)


def run(forward, batch, encoded, real, output_embedding, loss_of, smoothing):
    """(loss, nll, logits) from the encoder's output [B, rows, d]."""
    config, head = forward.config, head_of(forward.config)
    logits = logits_of(forward, encoded, real, output_embedding)
    if head == "regression":
        loss = ((logits[:, 0] - batch["label"].to(torch.float64)) ** 2).mean()
        return loss, loss, logits
    if head == "class":
        target = batch["label"].long()
        counted = torch.ones_like(target, dtype=torch.bool)
    else:
        target = batch["src_out"].long()
        counted = target != (config["pad"] if predicts_words(config) else -1)
        if front_of(config) == "text":
            counted = counted & real
    loss, nll = loss_of(logits, target.clamp(min=0), counted, smoothing)
    if head == "masked-token":
        logits = logits * counted.unsqueeze(-1)
    elif head == "token-class" and front_of(config) == "text":
        logits = logits * real.unsqueeze(-1)
    return loss, nll, logits
