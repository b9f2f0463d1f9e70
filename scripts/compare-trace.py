#!/usr/bin/env python3
"""Compares `fathom trace` and `fathom init` with the reference in test/golden.

    compare-trace.py MODEL BATCH TRACE [flags of fathom trace]      a trace that is already written
    compare-trace.py --random SEED [COUNT] --fathom build/fathom    unseen cases: draws a model and
                                                                    a batch; init, perturb, trace
    compare-trace.py --golden --fathom build/fathom                 every case of test/golden/trace
    compare-trace.py --init --fathom build/fathom                   fathom init against init.json

Other options: --device D and --precision P go to fathom; --method M and --arch A restrict --random
and --golden; --tolerance X (default 1e-4); --keep DIR leaves the files of failed cases there;
--verbose prints every tensor. Exit status 1 when anything is off.

The error of a tensor is max|got - want| / max(max|want|, floor), where floor is a thousandth of the
largest entry of its group (grad., after., hidden., ...). The gradient of a key bias is 0 in exact
arithmetic (softmax ignores a shift): it is only rounding, and so is what Adam makes of it. For
*k_proj.bias the floor is the whole largest entry.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "test", "golden")
sys.path.insert(0, GOLDEN)

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import cases  # noqa: E402
import init_rules  # noqa: E402
import reference  # noqa: E402

KINK = 1e-5  # a ReLU input nearer to 0 than this may fall on either side in fp32


def group_of(name):
    head = name.split(".")[0]
    return head if head in ("grad", "after", "hidden") else name


def errors_of(got, want):
    """{tensor: error}; raises on names and shapes that differ."""
    names = set(got) ^ set(want)
    if names:
        raise ValueError(f"tensors missing or too many: {sorted(names)}")
    largest = {}
    for name, value in want.items():
        group = group_of(name)
        largest[group] = max(largest.get(group, 0.0), value.abs().max().item())
    errors = {}
    for name, value in want.items():
        if got[name].shape != value.shape:
            raise ValueError(f"{name} is {tuple(got[name].shape)}, not {tuple(value.shape)}")
        if got[name].dtype != torch.float32:
            raise ValueError(f"{name} is {got[name].dtype}, not fp32")
        floor = largest[group_of(name)] * (1 if name.endswith("k_proj.bias") else 0.001)
        scale = max(value.abs().max().item(), floor, 1e-30)
        difference = (got[name].double() - value.double()).abs().max().item()
        errors[name] = difference / scale if math.isfinite(difference) else math.inf
    return errors


def report(title, got, want, options, note=""):
    """Prints the verdict on one trace; True when every tensor is near enough."""
    try:
        errors = errors_of(got, want)
    except ValueError as problem:
        print(f"FAILED {title}: {problem}")
        return False
    ordered = sorted(errors, key=errors.get, reverse=True)
    worst = ordered[0]
    good = errors[worst] <= options.tolerance
    print(f"{'ok    ' if good else 'FAILED'} {title}: worst {errors[worst]:.2e} ({worst}){note}")
    if options.verbose or not good:
        for name in ordered if options.verbose else ordered[:12]:
            if options.verbose or errors[name] > options.tolerance:
                print(f"    {errors[name]:.3e}  {name}")
    return good


def call(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")


def run_trace(options, model, batch, out, flags):
    command = [options.fathom, "trace", model, "--batch", batch, "--out", out, *flags]
    for name in "device", "precision":
        if getattr(options, name):
            command += ["--" + name, getattr(options, name)]
    call(command)
    return load_file(out)


def one_trace(options, flags):
    config, params = reference.load_model(options.paths[0])
    batch = load_file(options.paths[1])
    want, kink = reference.trace(config, params, batch, **reference.parse_flags(flags))
    note = f", nearest ReLU kink {kink:.1e}" if kink < KINK else ""
    return report(options.paths[2], load_file(options.paths[2]), want, options, note)


def golden_cases(options):
    good = True
    with open(os.path.join(GOLDEN, "cases.json"), encoding="utf-8") as f:
        names = json.load(f)["cases"]
    for name in names:
        folder = os.path.join(GOLDEN, "trace", name)
        config = reference.load_config(folder)
        if options.method not in (None, config["method"]):
            continue
        if options.arch not in (None, config["arch"]):
            continue
        with open(os.path.join(folder, "case.json"), encoding="utf-8") as f:
            flags = json.load(f)["args"]
        with tempfile.TemporaryDirectory() as work:
            try:
                got = run_trace(options, folder, os.path.join(folder, "batch.safetensors"),
                                os.path.join(work, "trace.safetensors"), flags)
            except RuntimeError as problem:
                print(f"FAILED {name}: {problem}")
                good = False
                continue
        want = load_file(os.path.join(folder, "expected.safetensors"))
        good = report(name, got, want, options) and good
    return good


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1)
        f.write("\n")


def setting(config, key):
    """A stack's eps may be left out when it equals the common one."""
    if key.endswith("coder_layer_norm_eps"):
        return config.get(key, config["layer_norm_eps"])
    return config.get(key)


def random_case(options, seed, work):
    config, batch, flags = cases.random_case(seed, options.method, options.arch)
    title = (f"seed {seed} {config['method']} {config['arch']} {config['method_options']} "
             f"{' '.join(flags)}")
    model = os.path.join(work, "model")
    write_json(os.path.join(work, "c.json"), config)
    batch_path = os.path.join(work, "batch.safetensors")
    save_file(batch, batch_path, metadata={"format": "pt"})
    if options.fathom:
        call([options.fathom, "init", "--config", os.path.join(work, "c.json"), "--seed",
              str(seed), "--out", model])
        written, fresh = reference.load_model(model)
        changed = {k for k in config if k != "method_options" and setting(written, k) != config[k]}
        if changed:
            raise RuntimeError(f"init changed {sorted(changed)} in config.json")
        params = cases.perturb_parameters(config, fresh, seed)
    else:
        os.makedirs(model)
        write_json(os.path.join(model, "config.json"), config)
        params = cases.draw_parameters(config, seed)
    reference.save_floats(os.path.join(model, "model.safetensors"), params)
    want, kink = reference.trace(config, params, batch, **reference.parse_flags(flags))
    if not options.fathom:
        print(f"drawn  {title}: loss {want['loss'].item():.6f}, {len(want)} tensors")
        return all(torch.isfinite(value).all() for value in want.values())
    got = run_trace(options, model, batch_path, os.path.join(work, "trace.safetensors"), flags)
    note = f", nearest ReLU kink {kink:.1e}" if kink < KINK else ""
    return report(title, got, want, options, note)


def random_cases(options):
    seed, count = (options.random + [1])[:2]
    good = True
    for s in range(seed, seed + count):
        with tempfile.TemporaryDirectory() as work:
            try:
                fine = random_case(options, s, work)
            except (RuntimeError, ValueError) as problem:
                config, _, flags = cases.random_case(s, options.method, options.arch)
                print(f"FAILED seed {s} {config['method']} {config['arch']} {flags}: {problem}")
                fine = False
            if not fine and options.keep:
                shutil.copytree(work, os.path.join(options.keep, f"seed-{s}"), dirs_exist_ok=True)
            good = good and fine
    return good


# ---------------------------------------------------------------- init


def init_problem(config, name, rule, value):
    """What is wrong with an initial value, or None."""
    value = value.double()
    if "value" in rule:
        off = (value - rule["value"]).abs().max().item()
        return None if off <= 1e-6 * max(1, abs(rule["value"])) else f"not all {rule['value']}"
    if rule["dist"] == "history":
        rows = torch.arange(value.shape[0], dtype=torch.float64)
        want = (1 / (rows + 1)).unsqueeze(1).expand_as(value).tril()
        off = (value - want).abs().max().item()
        return None if off <= 1e-6 else "not 1/(r+1) up to the diagonal and 0 above"
    pad, std = config["pad"], rule["std"]
    if "pad_row" in rule:
        if rule["pad_row"] and value[pad].abs().max().item() != 0:
            return "pad row is not 0"
    if "embed_tokens" in name or name.startswith("output"):
        value = torch.cat([value[:pad], value[pad + 1:]])
    n, uniform = value.numel(), rule["dist"] == "xavier_uniform"
    if uniform and value.abs().max().item() > std * math.sqrt(3) * (1 + 1e-6):
        return f"largest entry {value.abs().max().item():.6g} above {std * math.sqrt(3):.6g}"
    if uniform and n >= 64 and value.abs().max().item() < 0.85 * std * math.sqrt(3):
        return f"largest entry {value.abs().max().item():.6g} far below {std * math.sqrt(3):.6g}"
    if not uniform and n >= 256 and value.abs().max().item() < 2 * std:
        return f"largest entry {value.abs().max().item():.6g}: not normal with std {std:.6g}"
    sample = value.square().mean().sqrt().item()
    kurtosis = 1.8 if uniform else 3.0
    sigma = math.sqrt((kurtosis - 1) / (4 * n))  # relative spread of the sample std
    if abs(sample / std - 1) > 5 * sigma:
        return f"std {sample:.6g}, expected {std:.6g}"
    if abs(value.mean().item()) > 5 * std / math.sqrt(n):
        return f"mean {value.mean().item():.6g} of {n} entries with std {std:.6g}"
    return None


def init_models(options):
    with open(os.path.join(GOLDEN, "init.json"), encoding="utf-8") as f:
        models = json.load(f)["models"]
    good, base = True, {}
    for number, entry in enumerate(models):
        config = entry["config"]
        title = (f"{number} {config['method']} {config['arch']} {config['method_options']} "
                 f"{config.get('encoder_layers', 0)}-{config.get('decoder_layers', 0)}")
        with tempfile.TemporaryDirectory() as work:
            model = os.path.join(work, "model")
            write_json(os.path.join(work, "c.json"), config)
            try:
                call([options.fathom, "init", "--config", os.path.join(work, "c.json"), "--seed",
                      "7", "--out", model])
                params = reference.load_model(model)[1]
            except (RuntimeError, ValueError) as problem:
                print(f"FAILED {title}: {problem}")
                good = False
                continue
        problems = []
        for name, rule in entry["parameters"].items():
            problem = init_problem(config, name, rule, params[name])
            if problem:
                problems.append(f"    {name}: {problem}")
        if entry["complete"]:
            problems += base_draw_problems(config, params, base)
        print(f"{'FAILED' if problems else 'ok    '} {title}")
        for line in problems:
            print(line)
        good = good and not problems
    return good


def base_draw_problems(config, params, base):
    """One seed gives the same base draw to all methods that differ only by scale (A.8)."""
    problems = []
    for name, rule in init_rules.all_rules(config).items():
        if "std" not in rule:
            continue
        key = (config["arch"], config.get("encoder_layers"), config.get("decoder_layers"), name,
               rule["dist"])
        unit = params[name].double() / rule["std"]
        if key in base and (unit - base[key]).abs().max().item() > 1e-5:
            problems.append(f"    {name}: another base draw than an earlier method with this seed")
        base.setdefault(key, unit)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="MODEL BATCH TRACE")
    parser.add_argument("--random", nargs="+", type=int, metavar=("SEED", "COUNT"))
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--init", action="store_true")
    parser.add_argument("--fathom")
    parser.add_argument("--device")
    parser.add_argument("--precision")
    parser.add_argument("--method", choices=reference.METHODS)
    parser.add_argument("--arch", choices=["encdec", "enc", "dec"])
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--keep")
    parser.add_argument("--verbose", action="store_true")
    options, flags = parser.parse_known_args()
    torch.set_num_threads(1)  # these tensors are tiny
    if (options.golden or options.init) and not options.fathom:
        parser.error("--golden and --init need --fathom PROGRAM")
    if options.golden:
        good = golden_cases(options)
    elif options.init:
        good = init_models(options)
    elif options.random:
        good = random_cases(options)
    elif len(options.paths) == 3:
        good = one_trace(options, flags)
    else:
        parser.error("expected MODEL BATCH TRACE, --random, --golden or --init")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
