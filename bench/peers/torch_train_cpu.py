#!/usr/bin/env python3
"""The training update that `fathom bench train` times, in PyTorch on the CPU.

A Post-LN encoder-decoder with tied embeddings (--arch enc: an encoder that guesses 15 % of its
words), sentences of one length (no padding, which suits PyTorch best), scaled_dot_product_attention,
label smoothing 0.1, dropout, Adam in one fused kernel. Prints one JSON object: the median and the
shortest update in milliseconds, tokens per second, and the memory that the process took beyond what it had after `import torch`.
"""
import argparse
import json
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


def resident_bytes(key):
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Attention(nn.Module):
    def __init__(self, d, heads, cross):
        super().__init__()
        self.heads, self.cross = heads, cross
        if cross:
            self.q, self.kv = nn.Linear(d, d), nn.Linear(d, 2 * d)
        else:
            self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, memory, causal):
        if self.cross:
            q, (k, v) = self.q(x), self.kv(memory).chunk(2, -1)
        else:
            q, k, v = self.qkv(x).chunk(3, -1)
        o = F.scaled_dot_product_attention(
            self.split(q), self.split(k), self.split(v), is_causal=causal
        )
        return self.out(o.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self, a, decoder):
        super().__init__()
        d, self.decoder, self.p = a.d_model, decoder, a.dropout
        self.self_attention, self.norm1 = Attention(d, a.heads, False), nn.LayerNorm(d)
        if decoder:
            self.cross_attention, self.norm2 = Attention(d, a.heads, True), nn.LayerNorm(d)
        self.fc1, self.fc2, self.norm3 = nn.Linear(d, a.ffn_dim), nn.Linear(a.ffn_dim, d), nn.LayerNorm(d)

    def drop(self, x):
        return F.dropout(x, self.p, self.training)

    def forward(self, x, memory=None):
        x = self.norm1(x + self.drop(self.self_attention(x, None, self.decoder)))
        if self.decoder:
            x = self.norm2(x + self.drop(self.cross_attention(x, memory, False)))
        return self.norm3(x + self.drop(self.fc2(F.relu(self.fc1(x)))))


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
        self.scale, self.p = a.d_model**0.5, a.dropout
        self.embed = nn.Embedding(a.vocab, a.d_model)
        nn.init.normal_(self.embed.weight, std=a.d_model**-0.5)
        self.subsample = Subsample(a) if a.front == "speech" else None
        self.register_buffer("pos", torch.randn(max(a.sentence_length, rows_of(a)), a.d_model))
        self.encoder = nn.ModuleList(Layer(a, False) for _ in range(a.encoder_layers))
        self.decoder = nn.ModuleList(Layer(a, True) for _ in range(a.decoder_layers))

    def read(self, tokens):
        rows = self.subsample(tokens) if tokens.is_floating_point() else self.embed(tokens)
        return F.dropout(rows * self.scale + self.pos[: rows.shape[1]], self.p, self.training)

    def forward(self, src, tgt):
        memory = self.read(src)
        for layer in self.encoder:
            memory = layer(memory)
        x = self.read(tgt)
        for layer in self.decoder:
            x = layer(x, memory)
        return F.linear(x, self.embed.weight)


class MaskedWords(Model):
    """The encoder alone; logits are made for the rows with a target."""

    def __init__(self, a):
        a.decoder_layers = 0
        super().__init__(a)
        self.dense, self.norm = nn.Linear(a.d_model, a.d_model), nn.LayerNorm(a.d_model)
        self.bias = nn.Parameter(torch.zeros(a.vocab))

    def forward(self, src, picked):
        x = self.read(src)
        for layer in self.encoder:
            x = layer(x)
        h = self.norm(F.gelu(self.dense(x.flatten(0, 1)[picked])))
        return F.linear(h, self.embed.weight, self.bias.to(h.dtype))


def rows_of(a):
    """Rows of a source."""
    return -(-a.frames // 4) if a.front == "speech" else a.sentence_length


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--arch", choices=["encdec", "enc"], default="encdec")
    p.add_argument("--head", choices=["masked-token"])
    p.add_argument("--front", choices=["text", "speech"], default="text")
    p.add_argument("--frames", type=int, default=320)
    p.add_argument("--encoder-layers", type=int, default=6)
    p.add_argument("--decoder-layers", type=int, default=6)
    p.add_argument("--d-model", type=int, default=512)
    p.add_argument("--ffn-dim", type=int, default=2048)
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--vocab", type=int, default=8192)
    p.add_argument("--dropout", type=float, default=0.1)
    p.add_argument("--sentence-length", type=int, default=32)
    p.add_argument("--max-tokens", type=int, default=1024)
    p.add_argument("--updates", type=int, default=5)
    p.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    p.add_argument("--threads", type=int, default=2)
    return p.parse_args()


def main():
    a = arguments()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    before = resident_bytes("VmRSS")
    model = (MaskedWords if a.arch == "enc" else Model)(a)
    adam = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.98), eps=1e-8,
                             weight_decay=1e-4, fused=True)
    sentences = a.max_tokens // max(a.sentence_length, rows_of(a))
    src, tgt, gold = (torch.randint(4, a.vocab, (sentences, a.sentence_length)) for _ in range(3))
    tokens = sentences * (rows_of(a) + a.sentence_length)
    if a.front == "speech":
        src = torch.randn(sentences, 80, a.frames)
    if a.arch == "enc":
        rows = torch.arange(src.numel())
        tgt, tokens = rows[rows % 20 < 3], src.numel()
        gold = gold.flatten()[tgt]

    def update():
        with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
            logits = model(src, tgt)
            loss = F.cross_entropy(logits.view(-1, a.vocab), gold.view(-1), label_smoothing=0.1)
        loss.backward()
        adam.step()
        adam.zero_grad(set_to_none=True)
        return loss.item()

    for _ in range(2):
        update()
    times, cpu = [], []
    for _ in range(a.updates):
        start, spent = time.perf_counter(), time.process_time()
        update()
        times.append(time.perf_counter() - start)
        cpu.append(time.process_time() - spent)
    median = statistics.median(times)
    print(json.dumps({
        "ms_per_update": 1e3 * median,
        "ms_fastest": 1e3 * min(times),
        "cpu_ms": 1e3 * min(cpu),
        "tokens_per_s": tokens / median,
        "peak_bytes": resident_bytes("VmHWM") - before,
        "parameters": sum(p.numel() for p in model.parameters()),
        "precision": a.precision,
        "version": torch.__version__,
    }))


if __name__ == "__main__":
    main()
