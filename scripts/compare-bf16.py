#!/usr/bin/env python3
"""Compares the gradients of `fathom trace --precision bf16` with exact ones, for every method and architecture.

    compare-bf16.py --fathom build/fathom [--device D] [--width 64] [--activation relu|gelu] [--method M]

Models are fresh, 2-2 layers, and see 24 sentences of 8 to 30 tokens. Beside fathom's error stands the one
that bf16 has in any program, in exact arithmetic otherwise: `weights` are rounded; factors and results of
`products` are, in both directions, while norms, residual stream and softmax stay exact, as autocast has it;
and `stored`, where norms and the residual stream are rounded too, which is what bf16 means in fathom. With
ReLU these exceed 3e-2 by themselves: rounding opens and shuts units.

The error of a tensor is |got - want| / |want| in the Euclidean norm, where |want| counts for at least a
thousandth of the largest entry of all gradients, times the root of the tensor's size. Parameters of one
number for a head or a layer have gradients whose terms cancel: here it is the whole largest entry. The
gradient of a key bias is 0 in exact arithmetic and is left out. A model is right when its loss is within
1e-2 and its worst tensor within 3e-2, or within 1.5 times the error of `stored`: which units open and shut is
a matter of luck. Exit status 1 when one is not. `whole` has the errors of all gradients as one vector, in the
same order: fathom's, weights, products, stored.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "test", "golden"))

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import cases  # noqa: E402
import reference  # noqa: E402

LOSS, GRADIENTS, TIMES = 1e-2, 3e-2, 1.5  # what is right; see above
UPDATE = 5


class Round(torch.autograd.Function):
    """To bf16 and back on the way forward, backward or both."""

    @staticmethod
    def forward(ctx, x, forward, backward):
        ctx.backward_too = backward
        return x.bfloat16().to(x.dtype) if forward else x

    @staticmethod
    def backward(ctx, gradient):
        if ctx.backward_too:
            gradient = gradient.bfloat16().to(gradient.dtype)
        return gradient, None, None


class RoundedWeights(reference.Forward):
    """Exact arithmetic with rounded weights."""

    def values(self, x):
        return x

    def product(self, name, x):
        return x @ Round.apply(self.p[name], True, False).T

    def linear(self, name, x):
        y = self.product(name + ".weight", self.values(x))
        return self.values(y if self.method == "rfixup" else y + self.p[name + ".bias"])

    def logits(self, x):
        return self.values(self.product(reference.output_embedding(self.config), self.values(x)))


class RoundedProducts(RoundedWeights):
    """Factors and results of products are rounded too, and their gradients."""

    def values(self, x):
        return Round.apply(x, True, True)


class RoundedStorage(RoundedProducts):
    """Norms and the residual stream are rounded as well: all that is stored."""

    def norm(self, name, x):
        return self.values(super().norm(name, x))

    def sublayer(self, *args):
        return self.values(super().sublayer(*args))

    def embed(self, *args):
        return self.values(super().embed(*args))


def gradients(config, params, batch, make):
    """(loss, gradients by name) of exact arithmetic with what `make` rounds."""
    loss, _, _, found, _ = reference.gradients(config, reference.as_double(params), batch, UPDATE, 0.0,
                                               make)
    return loss.item(), found


def worst_of(got, want, heads):
    """(error, name) of the tensor that is furthest off."""
    largest = max(value.abs().max().item() for value in want.values())
    errors = {}
    for name, value in want.items():
        if name.endswith("k_proj.bias"):
            continue
        floor = largest * (1 if value.numel() <= heads else 1e-3)
        scale = max(value.norm().item(), floor * value.numel()**0.5)
        errors[name] = (got[name].double() - value).norm().item() / scale
    name = max(errors, key=errors.get)
    return errors[name], name


def whole_of(got, want):
    """The error of all gradients as one vector."""
    off = sum((got[name].double() - value).norm().item()**2 for name, value in want.items())
    return (off / sum(value.norm().item()**2 for value in want.values()))**0.5


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")


def drawn(options, method, arch, work):
    """A fresh model, a batch and fathom's trace of them."""
    width = options.width
    config = cases.make_config(arch, method, {"steps": 10} if method == "branchnorm" else {}, (2, 2),
                               width, 4 * width, max(2, width // 64), (512, 512),
                               activation=options.activation, max_positions=40)
    rng = random.Random(5)
    lengths = [[rng.randint(8, 30) for _ in range(24)] for _ in range(2)]
    batch = cases.make_batch(config, rng, *lengths)
    paths = [os.path.join(work, name) for name in ("c.json", "batch", "model", "trace")]
    with open(paths[0], "w", encoding="utf-8") as f:
        json.dump(config, f)
    save_file(batch, paths[1])
    call(options.fathom, "init", "--config", paths[0], "--seed", "3", "--out", paths[2])
    call(options.fathom, "trace", paths[2], "--batch", paths[1], "--out", paths[3], "--update",
         str(UPDATE), "--device", options.device, "--precision", "bf16")
    return *reference.load_model(paths[2]), batch, load_file(paths[3])


def compare(options, method, arch):
    """Prints a line on one model; True when it is right."""
    with tempfile.TemporaryDirectory() as work:
        config, params, batch, trace = drawn(options, method, arch, work)
    exact_loss, want = gradients(config, params, batch, reference.Forward)
    loss = abs(trace["loss"].item() - exact_loss) / exact_loss
    got = {n: trace["grad." + n] for n in want}
    error, name = worst_of(got, want, config["heads"])
    exact = [gradients(config, params, batch, make)[1]
             for make in (RoundedWeights, RoundedProducts, RoundedStorage)]
    rounded = [worst_of(found, want, config["heads"])[0] for found in exact]
    whole = "/".join(f"{whole_of(found, want):.4f}" for found in [got] + exact)
    good = loss <= LOSS and error <= max(GRADIENTS, TIMES * rounded[2])
    print(f"{'ok    ' if good else 'FAILED'} {method:12} {arch:6} loss {loss:.1e}  gradients {error:.4f}"
          f"  weights {rounded[0]:.4f}  products {rounded[1]:.4f}  stored {rounded[2]:.4f}  ({name})"
          f"  whole {whole}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fathom", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--activation", choices=["relu", "gelu"], default="gelu")
    parser.add_argument("--method", choices=reference.METHODS, nargs="*",
                        default=reference.METHODS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    good = [compare(options, method, arch)
            for method in options.method for arch in ("encdec", "enc", "dec")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
