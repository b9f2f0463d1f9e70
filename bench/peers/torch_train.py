#!/usr/bin/env python3
"""The peer of `fathom bench train` on a GPU: the same model and batch in PyTorch at its best.

bf16 autocast, flash attention through SDPA, layers compiled, the whole update (forward, backward,
fused AdamW) replayed as one CUDA graph. Prints one JSON object like `fathom bench train --json`.
Options have fathom's names; sentences all have --sentence-length tokens, so nothing is padded.
With --lengths FILE (one "source target" pair a line) batches are padded and sorted by length, as
PyTorch users train on real text; real tokens are counted.
"""
import argparse
import json
import math
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--arch", default="encdec", choices=["encdec", "dec", "enc"])
    p.add_argument("--head", default="masked-token", choices=["masked-token", "class"])
    p.add_argument("--method", default="postln", choices=["postln", "preln"])
    for name, value in [("encoder-layers", 6), ("decoder-layers", 6), ("d-model", 512),
                        ("ffn-dim", 2048), ("heads", 8), ("vocab", 32768),
                        ("sentence-length", 32), ("max-tokens", 4096), ("updates", 10),
                        ("image-size", 0), ("patch", 4), ("classes", 10), ("frames", 320)]:
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--front", default="text", choices=["text", "speech"])
    p.add_argument("--dropout", type=float, default=0.1)
    p.add_argument("--activation", default="relu", choices=["relu", "gelu"])
    p.add_argument("--share", help="the decoder's input and output are one matrix in any case")
    p.add_argument("--lengths", help="file of 'source target' token counts")
    p.add_argument("--eager", action="store_true", help="neither compiled nor captured")
    return p.parse_args()


class Attention(nn.Module):
    def __init__(self, a, cross):
        super().__init__()
        self.heads, self.cross = a.heads, cross
        self.q = nn.Linear(a.d_model, a.d_model if cross else 3 * a.d_model)
        self.kv = nn.Linear(a.d_model, 2 * a.d_model) if cross else None
        self.out = nn.Linear(a.d_model, a.d_model)

    def forward(self, x, memory, mask, causal):
        split = lambda t: t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)
        if self.cross:
            q, (k, v) = self.q(x), self.kv(memory).chunk(2, -1)
        else:
            q, k, v = self.q(x).chunk(3, -1)
        o = F.scaled_dot_product_attention(split(q), split(k), split(v), attn_mask=mask,
                                           is_causal=causal and mask is None)
        return self.out(o.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self, a, decoder):
        super().__init__()
        subs = ["self"] + (["cross"] if decoder and a.arch == "encdec" else []) + ["ffn"]
        self.subs, self.decoder, self.pre, self.p = subs, decoder, a.method == "preln", a.dropout
        self.attention = nn.ModuleDict({s: Attention(a, s == "cross") for s in subs if s != "ffn"})
        self.norms = nn.ModuleDict({s: nn.LayerNorm(a.d_model) for s in subs})
        self.up, self.down = nn.Linear(a.d_model, a.ffn_dim), nn.Linear(a.ffn_dim, a.d_model)
        self.act = F.relu if a.activation == "relu" else F.gelu

    def branch(self, s, x, memory, self_mask, cross_mask):
        if s == "ffn":
            return self.down(self.act(self.up(x)))
        if s == "cross":
            return self.attention[s](x, memory, cross_mask, False)
        return self.attention[s](x, None, self_mask, self.decoder)

    def forward(self, x, memory, self_mask, cross_mask):
        for s in self.subs:
            u = self.norms[s](x) if self.pre else x
            x = x + F.dropout(self.branch(s, u, memory, self_mask, cross_mask), self.p, self.training)
            x = x if self.pre else self.norms[s](x)
        return x


class Subsample(nn.Module):
    """Frames of 80 features, [n, features, frames], to a quarter as many rows."""

    def __init__(self, a):
        super().__init__()
        self.lower = nn.Conv1d(80, 1024, 5, stride=2, padding=2)
        self.upper = nn.Conv1d(512, 2 * a.d_model, 5, stride=2, padding=2)

    def forward(self, x):
        return F.glu(self.upper(F.glu(self.lower(x), 1)), 1).transpose(1, 2)


class Model(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.a = a
        self.embed = nn.Embedding(a.vocab, a.d_model)
        nn.init.normal_(self.embed.weight, std=a.d_model ** -0.5)
        make = (lambda layer: layer) if a.eager else torch.compile
        n = a.encoder_layers if a.arch == "encdec" else 0
        self.encoder = nn.ModuleList(make(Layer(a, False)) for _ in range(n))
        self.decoder = nn.ModuleList(make(Layer(a, True)) for _ in range(a.decoder_layers))
        self.final = nn.ModuleList(nn.LayerNorm(a.d_model) for _ in range(2)) if a.method == "preln" else None
        self.subsample = make(Subsample(a)) if a.front == "speech" else None
        self.register_buffer("positions", torch.randn(1, 4096, a.d_model) * 0.02)

    def inputs(self, ids):
        rows = self.subsample(ids) if ids.is_floating_point() else self.embed(ids)
        x = rows * math.sqrt(self.a.d_model) + self.positions[:, : rows.shape[1]]
        return F.dropout(x, self.a.dropout, self.training)

    def forward(self, src, tgt, out, src_mask, tgt_mask):
        memory = None
        if self.encoder:
            memory = self.inputs(src)
            for layer in self.encoder:
                memory = layer(memory, None, src_mask, None)
            memory = self.final[0](memory) if self.final else memory
        x = self.inputs(tgt)
        for layer in self.decoder:
            x = layer(x, memory, tgt_mask, src_mask)
        x = self.final[1](x) if self.final else x
        logits = F.linear(x, self.embed.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), out.flatten(), ignore_index=-1,
                               label_smoothing=0.1)


class Encoder(nn.Module):
    """Masked words (targets in 15 % of the rows, logits for those alone), or classes of pictures."""

    def __init__(self, a):
        super().__init__()
        self.a, d = a, a.d_model
        make = (lambda layer: layer) if a.eager else torch.compile
        self.layers = nn.ModuleList(make(Layer(a, False)) for _ in range(a.encoder_layers))
        self.final = nn.LayerNorm(d) if a.method == "preln" else None
        self.positions = nn.Parameter(torch.randn(1, 4096, d) * 0.02)
        if a.image_size:
            self.patches = nn.Linear(3 * a.patch ** 2, d)
            self.cls = nn.Parameter(torch.randn(1, 1, d) * 0.02)
        else:
            self.embed = nn.Embedding(a.vocab, d)
            nn.init.normal_(self.embed.weight, std=d ** -0.5)
        self.dense = nn.Linear(d, d)
        if a.head == "class":
            self.out = nn.Linear(d, a.classes)
        else:
            self.norm, self.bias = nn.LayerNorm(d), nn.Parameter(torch.zeros(a.vocab))

    def rows(self, x):
        if not self.a.image_size:
            return self.embed(x) * math.sqrt(self.a.d_model)
        return torch.cat([self.cls.expand(len(x), -1, -1), self.patches(x)], 1)

    def forward(self, x, target, picked):
        x = self.rows(x)
        x = F.dropout(x + self.positions[:, : x.shape[1]], self.a.dropout, self.training)
        for layer in self.layers:
            x = layer(x, None, None, None)
        x = self.final(x) if self.final else x
        if self.a.head == "class":
            h = F.dropout(x[:, 0], self.a.dropout, self.training)
            h = F.dropout(torch.tanh(self.dense(h)), self.a.dropout, self.training)
            logits = self.out(h)
        else:
            h = self.norm(F.gelu(self.dense(x.flatten(0, 1)[picked])))
            logits = F.linear(h, self.embed.weight, self.bias.to(h.dtype))
        return F.cross_entropy(logits.float(), target, label_smoothing=0.1)


def ids(a, sentences, length):
    return torch.randint(4, a.vocab, (sentences, length), device="cuda")


class Step:
    """One update on fixed places; captured as a graph unless eager."""

    def __init__(self, a, model, optimizer, batch, pool=None):
        self.model, self.optimizer, self.batch, self.graph = model, optimizer, batch, None
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.update()
        torch.cuda.current_stream().wait_stream(side)
        if not a.eager:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, pool=pool):
                self.update()

    def update(self):
        with torch.autocast("cuda", torch.bfloat16):
            loss = self.model(*self.batch)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def __call__(self):
        self.graph.replay() if self.graph else self.update()


def fixed_steps(a, model, optimizer):
    rows = -(-a.frames // 4) if a.front == "speech" else a.sentence_length
    n = a.max_tokens // max(rows, a.sentence_length)
    src = ids(a, n, a.sentence_length) if a.arch == "encdec" else None
    if a.front == "speech":
        src = torch.randn(n, 80, a.frames, device="cuda")
    tgt, out = ids(a, n, a.sentence_length), ids(a, n, a.sentence_length)
    step = Step(a, model, optimizer, (src, tgt, out, None, None))
    return [step] * a.updates, [tgt.numel() + (n * rows if src is not None else 0)] * a.updates


def encoder_steps(a, model, optimizer):
    """Patches come cut; the rows with a target come as a list, as in fathom's batches."""
    patches = (a.image_size // a.patch) ** 2
    length = patches + 1 if a.image_size else a.sentence_length
    n = a.max_tokens // length
    rows = torch.arange(n * length, device="cuda")
    picked = rows[rows % 20 < 3] if a.head == "masked-token" else None
    if a.image_size:
        x = torch.randn(n, patches, 3 * a.patch ** 2, device="cuda")
    else:
        x = ids(a, n, length)
    classes = a.classes if a.head == "class" else a.vocab
    target = torch.randint(0, classes, (n if picked is None else len(picked),), device="cuda")
    step = Step(a, model, optimizer, (x, target, picked))
    return [step] * a.updates, [n * length] * a.updates


def padded_steps(a, model, optimizer):
    """Batches of real lengths, sorted and padded; a length is rounded up to 8 so that graphs repeat."""
    pairs = sorted(tuple(map(int, line.split())) for line in open(a.lengths))
    up = lambda n: (n + 7) // 8 * 8
    batches, current = [], []
    for pair in pairs:
        grown = current + [pair]
        if max(up(max(p[k] for p in grown)) * len(grown) for k in (0, 1)) > a.max_tokens:
            batches.append(current)
            grown = [pair]
        current = grown
    batches.append(current)
    chosen = batches[:: max(1, len(batches) // a.updates)][: a.updates]
    steps, tokens = [], []
    pool = torch.cuda.graph_pool_handle()  # graphs that never run at the same time share their memory
    for b in chosen:
        longest = [up(max(p[k] for p in b)) for k in (0, 1)]
        real = [torch.tensor([p[k] for p in b], device="cuda") for k in (0, 1)]
        masks = [torch.arange(longest[k], device="cuda")[None] < real[k][:, None] for k in (0, 1)]
        src, tgt = ids(a, len(b), longest[0]), ids(a, len(b), longest[1])
        out = torch.where(masks[1], ids(a, len(b), longest[1]), -1)
        causal = torch.ones(longest[1], longest[1], dtype=torch.bool, device="cuda").tril()
        batch = (src, tgt, out, masks[0][:, None, None, :], (causal & masks[1][:, None, :])[:, None])
        steps.append(Step(a, model, optimizer, batch, pool))
        tokens.append(int(real[0].sum() + real[1].sum()))
    return steps, tokens


def main():
    a = arguments()
    torch.zeros(1, device="cuda")
    before = torch.cuda.mem_get_info()[0]
    model = (Encoder if a.arch == "enc" else Model)(a).cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True,
                                  capturable=not a.eager)
    make = encoder_steps if a.arch == "enc" else padded_steps if a.lengths else fixed_steps
    steps, tokens = make(a, model, optimizer)
    for step in steps[:2]:
        step()
    torch.cuda.synchronize()
    times = []
    for step in steps:
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    speed = sum(tokens) / sum(times) if a.lengths else tokens[0] / statistics.median(times)
    print(json.dumps({"tokens_per_s": speed, "ms_per_update": 1e3 * statistics.median(times),
                      "peak_bytes": before - torch.cuda.mem_get_info()[0], "torch": torch.__version__,
                      "device": torch.cuda.get_device_name()}))


if __name__ == "__main__":
    main()
