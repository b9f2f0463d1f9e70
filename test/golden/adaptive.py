"""Golden traces of adaptive input and softmax: an independent implementation of fairseq's definition.

    python3 test/golden/adaptive.py

writes adaptive/CASE/ (the files of trace/). Needs torch and safetensors. Everything between the words is
reference.py's.
"""

import math
import random
import zlib

import torch

import reference
from cases import draw_parameters, make_batch, make_config
from golden_case import write_case, write_cases
from make_golden import KINK
from reference import Forward, sinusoids


def bands_of(config):
    edges = [0, *config["adaptive_cutoffs"], config["tgt_vocab"]]
    width = [int(config["d_model"] // config["adaptive_factor"] ** i) for i in range(3)]
    return [(edges[i], edges[i + 1], width[i]) for i in range(3)]


def table(i):
    return f"embed_tokens.embeddings.{i}.0.weight"


def projection(i):
    return f"embed_tokens.embeddings.{i}.1.weight"


class AdaptiveForward(Forward):
    def embed(self, stack, tokens):
        d = self.config["d_model"]
        real = tokens != self.config["pad"]
        x = torch.zeros(*tokens.shape, d, dtype=torch.float64)
        for i, (low, high, _) in enumerate(bands_of(self.config)):
            inside = (tokens >= low) & (tokens < high)
            rows = self.p[table(i)][tokens[inside] - low] @ self.p[projection(i)].T
            x = x.masked_scatter(inside.unsqueeze(-1).expand_as(x), rows)
        k = real.long().cumsum(1)
        x = math.sqrt(d) * x
        if self.config["positions"] == "learned":
            x = x + self.p[stack + ".embed_positions.weight"][(k - 1).clamp(min=0)]
        else:
            x = x + sinusoids(d, tokens.shape[1] + 2)[k + 1]
        if self.method == "periln" and self.options["embed_norm"]:
            x = self.norm(stack + ".layernorm_embedding", x)
        return x * real.unsqueeze(-1)

    def head(self, h):
        weight = torch.cat([self.p[table(0)], self.p["adaptive_softmax.head.class_proj.weight"]])
        return torch.log_softmax(h @ weight.T, dim=-1)

    def tail(self, i, h):
        return torch.log_softmax(h @ self.p[projection(i)] @ self.p[table(i)].T, dim=-1)

    def logits(self, h):
        """Log-probabilities of all words."""
        a = self.config["adaptive_cutoffs"][0]
        head = self.head(h)
        return torch.cat([head[..., :a]] + [head[..., a + i - 1:a + i] + self.tail(i, h)
                                            for i in (1, 2)], dim=-1)

    def loss(self, h, target):
        """Cross entropy of the head plus that of the word's band, summed (fairseq's targets)."""
        a = self.config["adaptive_cutoffs"][0]
        in_head, total = target.clone(), 0.0
        for i, (low, high, _) in enumerate(bands_of(self.config)):
            inside = (target >= low) & (target < high)
            if i and inside.any():
                in_head[inside] = a + i - 1
                rows = self.tail(i, h[inside])
                total = total - rows.gather(-1, (target[inside] - low).unsqueeze(-1)).sum()
        return total - self.head(h).gather(-1, in_head.unsqueeze(-1)).sum()


def run(config, params, batch, t, smoothing, make=None):
    del make
    assert smoothing == 0
    forward = AdaptiveForward(config, params, t)
    source, target = batch["tgt_in"].long(), batch["tgt_out"].long()
    x = forward.decode(source)
    real = (source != config["pad"]).unsqueeze(-1)
    out = {"hidden.decoder": x * real, "logits": forward.logits(x) * real}
    counted = (target != config["pad"]) & (source != config["pad"])
    loss = forward.loss(x[counted], target[counted]) / counted.sum()
    by_logits = -out["logits"].gather(-1, target.unsqueeze(-1)).squeeze(-1)[counted].mean()
    assert abs(loss.item() - by_logits.item()) < 1e-12
    return loss, loss, out, forward


def adaptive_config(method, cutoffs=(6, 14), factor=2, vocab=23, options=None, **more):
    config = make_config("dec", method, options, (2, 2), vocab=(vocab, vocab), **more)
    config.pop("share")
    return {**config, "adaptive_cutoffs": list(cutoffs), "adaptive_factor": factor}


def draw(config, seed):
    plain = {**{k: v for k, v in config.items() if not k.startswith("adaptive")}, "share": "all"}
    params = draw_parameters(plain, seed)
    params.pop("embed_tokens.weight")
    g = torch.Generator().manual_seed(seed + 1)
    d = config["d_model"]
    for i, (low, high, width) in enumerate(bands_of(config)):
        params[table(i)] = torch.randn(high - low, width, generator=g) * width ** -0.5
        params[projection(i)] = torch.randn(d, width, generator=g) * (2 / (d + width)) ** 0.5
    params["adaptive_softmax.head.class_proj.weight"] = torch.randn(2, d, generator=g) * d ** -0.5
    return params


def cases():
    for method in "postln", "preln", "b2t", "deepnorm", "branchnorm":
        yield method, adaptive_config(method, options={"steps": 10} if method == "branchnorm" else {}), []
    yield "factor-2.5", adaptive_config("preln", (5, 8), 2.5, 40, positions="learned"), []
    yield "one-word-bands", adaptive_config("periln", (9, 10), 1, 11, options={"embed_norm": True}), []
    yield "steps", adaptive_config("preln", activation="gelu"), [
        "--steps", "4", "--lr", "0.01", "--lr-scheduler", "inverse_sqrt", "--warmup-updates", "2",
        "--warmup-init-lr", "0.0001", "--adam-betas", "0.9,0.98", "--adam-eps", "1e-4",
        "--weight-decay", "0.1", "--clip-norm", "0"]


def write(folder, case, config, flags):
    seed = zlib.crc32(("adaptive " + case).encode())
    batch = make_batch(config, random.Random(seed), [1], [9, 1, 6, 7])
    reference.run = run  # trace() runs this forward pass
    write_case(folder, config, flags, batch, lambda attempt: draw(config, seed + attempt), KINK)


if __name__ == "__main__":
    write_cases("adaptive", cases, write)
