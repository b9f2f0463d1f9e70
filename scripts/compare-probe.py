#!/usr/bin/env python3
"""Compares `fathom probe` with the reference in test/golden on unseen random models and batches.

    compare-probe.py SEED [COUNT] --fathom build/fathom [--device D] [--tolerance X]

Draws a configuration (method, architecture, options, sizes) and a batch from each seed, lets fathom
make the model, moves every parameter and compares all rows of gradnorm, places, lninput, similarity
and sparsity. A quantity that the method does not have must be refused with exit status 2. Exit status
1 when anything is off. The error of a number is relative to it; gradients of a thousandth of the
largest of their table are compared with that.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "test", "golden"))

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import cases  # noqa: E402
import probe  # noqa: E402
import reference  # noqa: E402

KEYS = {"gradnorm": 7, "places": 8, "lninput": 8, "similarity": 8, "sparsity": 7}  # columns


def call(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip()


def table(lines, what):
    """{key columns: numbers}"""
    rows = {}
    for line in lines:
        parts = line.strip().split(",")
        rows[tuple(parts[:KEYS[what]])] = [float(x) for x in parts[KEYS[what]:]]
    return rows


def error(got, want, what):
    if set(got) != set(want):
        raise ValueError(f"rows differ: {sorted(set(got) ^ set(want))[:4]}")
    largest = max(abs(x) for row in want.values() for x in row)
    floor = largest / 1000 if what in ("gradnorm", "places", "similarity") else largest / 1e9
    return max(abs(x - y) / max(abs(y), floor, 1e-30)
               for key, row in want.items() for x, y in zip(got[key], row))


def one_case(options, seed, work):
    config, batch, _ = cases.random_case(seed)
    update = seed % 7 if seed % 3 == 0 and seed % 7 else None
    smoothing = (0, 0.1, 0.3)[seed % 3]
    flags = ["--label-smoothing", str(smoothing)] + (["--update", str(update)] if update else [])
    title = f"seed {seed} {config['method']} {config['arch']} {config['method_options']}"
    model, batch_path = os.path.join(work, "model"), os.path.join(work, "batch.safetensors")
    with open(os.path.join(work, "c.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    save_file(batch, batch_path, metadata={"format": "pt"})
    status, said = call([options.fathom, "init", "--config", os.path.join(work, "c.json"),
                         "--seed", str(seed), "--out", model])
    if status:
        raise ValueError(said)
    params = cases.perturb_parameters(config, reference.load_model(model)[1], seed)
    reference.save_floats(os.path.join(model, "model.safetensors"), params)
    watched = probe.Probe(config, params, load_file(batch_path), update, smoothing)
    worst = 0.0
    for what in probe.WHATS:
        out = os.path.join(work, what + ".csv")
        want = table(watched.rows(what), what)
        status, said = call([options.fathom, "probe", what, model, "--batch", batch_path, "--out",
                             out, "--device", options.device, "--max-tokens",
                             str((4096, 7)[seed % 2]), *flags])
        if status != (0 if want else 2):
            raise ValueError(f"{what}: exit {status}: {said}")
        if want:
            with open(out, encoding="utf-8") as f:
                worst = max(worst, error(table(f.readlines()[1:], what), want, what))
    kink = watched.forward.nearest_kink
    good = worst <= options.tolerance or kink < 1e-5
    print(f"{'ok    ' if good else 'FAILED'} {title}: worst {worst:.1e}"
          + (f", nearest ReLU kink {kink:.0e}" if kink < 1e-5 else ""))
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int, nargs="?", default=1)
    parser.add_argument("--fathom", default=os.path.join(HERE, "..", "build", "fathom"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    options = parser.parse_args()
    torch.set_num_threads(1)
    good = True
    for seed in range(options.seed, options.seed + options.count):
        with tempfile.TemporaryDirectory() as work:
            try:
                good = one_case(options, seed, work) and good
            except ValueError as problem:
                print(f"FAILED seed {seed}: {problem}")
                good = False
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
