"""The analyses of `fathom probe` by the reference: gradnorm, places, update, lninput, similarity, sparsity
and trajectory (doc/analyses.md), with the columns of doc/probe.md.

    python3 test/golden/probe.py                          writes probe/ again (see README.md)
    python3 test/golden/probe.py WHAT MODEL BATCH [flags] prints the CSV of one model

Needs torch and safetensors. Everything is recorded during the reference's own forward pass, padded
and masked, and differentiated by autograd.
"""

import json
import math
import os
import shutil
import sys

import numpy
import torch
from safetensors.torch import load_file, save_file

from cases import draw_parameters, make_config
from reference import (Forward, as_double, depth_of, is_post_layer, load_model, norm_name, parse_flags, run,
                       save_floats, stacks_of, sublayers_of)

HERE = os.path.dirname(os.path.abspath(__file__))
POST = ("postln", "postln-init", "dsinit", "deepnorm", "branchnorm", "b2t", "dlcl-post", "admin",
        "realformer", "keel", "resi-dual")
WHATS = ("gradnorm", "places", "lninput", "similarity", "sparsity")


class Watched(Forward):
    """A forward pass that keeps what the analyses look at."""

    def __init__(self, config, params, t):
        super().__init__(config, params, t)
        self.norm_inputs = {}  # by the name of the norm, in forward order
        self.outputs = {}  # by (stack, layer, kind): output of the sub-layer
        self.activations = {}  # by (stack, layer)
        self.here = None

    def norm(self, name, x):
        self.norm_inputs[name] = x
        return super().norm(name, x)

    def sublayer(self, stack, i, kind, x, layer_input, side):
        y = super().sublayer(stack, i, kind, x, layer_input, side)
        self.outputs[stack, i, kind] = y
        return y

    def feed_forward(self, stack, i, x, real):
        self.here = stack, i
        return super().feed_forward(stack, i, x, real)

    def activation(self, x, real):
        y = super().activation(x, real)
        self.activations[self.here] = y
        return y


def number(x):
    return f"{x:.9g}"


def ln_rows(config, name):
    """(stack, index, ln) of a norm, from its name in doc/formats.md."""
    parts = name.split(".")
    stack = parts[0]
    if parts[1] == "layernorm_embedding":
        return stack, 0, "embedding"
    if parts[1] == "layer_norm":
        return stack, depth_of(config, stack) + 1, "final"
    if parts[1] == "history":
        return stack, int(parts[3]) + 1, "history"
    kind = {"self_attn_layer_norm": "self_attn", "encoder_attn_layer_norm": "encoder_attn",
            "final_layer_norm": "ffn", "inner_attn_ln": "inner_attn", "attn_ln": "inner_attn",
            "ffn_layernorm": "inner_ffn"}.get(parts[-1])
    if kind is None:  # self_attn_pre_layer_norm
        kind = parts[-1].removesuffix("_layer_norm")
    return stack, int(parts[2]) + 1, kind


class Probe:
    """One model and one batch."""

    def __init__(self, config, params, batch, update=None, smoothing=0.0):
        self.config, self.params = config, as_double(params)
        t = update if update is not None else max(config["step"], 1)
        self.loss, _, self.out, self.forward = run(config, self.params, batch, t, smoothing,
                                                   Watched)
        pad = config["pad"]
        self.real = {}
        if "src" in batch:
            self.real["encoder"] = batch["src"] != pad
        if "tgt_in" in batch:
            self.real["decoder"] = batch["tgt_in"] != pad

    def norm_of_gradient(self, tensors):
        """Frobenius norm of the gradient of each tensor."""
        grads = torch.autograd.grad(self.loss, tensors, retain_graph=True, allow_unused=True)
        return [0.0 if g is None else g.norm().item() for g in grads]

    def gradnorm(self):
        for stack in stacks_of(self.config):
            for i in range(depth_of(self.config, stack)):
                prefix = f"{stack}.layers.{i}."
                own = [p for n, p in self.params.items() if n.startswith(prefix)]
                gp = math.sqrt(sum(g * g for g in self.norm_of_gradient(own)))
                ga = self.norm_of_gradient([self.forward.outputs[stack, i, "ffn"]])[0]
                yield stack, i + 1, number(gp), number(ga)

    def places(self):
        if self.config["method"] not in POST + ("mixln",):
            return
        first = {"self_attn": 1, "encoder_attn": 3, "ffn": 5}
        for stack in stacks_of(self.config):
            for i in range(depth_of(self.config, stack)):
                if self.config["method"] == "mixln" and not is_post_layer(self.config, stack, i):
                    continue
                for kind in sublayers_of(self.config, stack):
                    z = self.forward.norm_inputs[f"{stack}.layers.{i}.{norm_name(kind)}"]
                    y = self.forward.outputs[stack, i, kind]
                    dz, dy = self.norm_of_gradient([z, y])
                    yield stack, i + 1, first[kind], number(dz)
                    if kind != "ffn":
                        yield stack, i + 1, first[kind] + 1, number(dy)

    def lninput(self):
        for name, z in self.forward.norm_inputs.items():
            stack, index, ln = ln_rows(self.config, name)
            yield stack, index, ln, number(z[self.real[stack]].norm(dim=-1).mean().item())

    def similarity(self):
        for stack in stacks_of(self.config):
            ys = [self.forward.outputs[stack, i, "ffn"][self.real[stack]]
                  for i in range(depth_of(self.config, stack))]
            for i, x in enumerate(ys):
                for j, y in enumerate(ys):
                    cosine = (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1))
                    yield stack, i + 1, j + 1, number(cosine.mean().item())

    def sparsity(self):
        if self.config["activation"] != "relu":
            return
        for (stack, i), y in self.forward.activations.items():
            share = (y[self.real[stack]] != 0).double().mean().item()
            yield stack, i + 1, number(100 * share)

    def rows(self, what):
        c = self.config
        head = (c["method"], c.get("encoder_layers", 0), c.get("decoder_layers", 0),
                c["d_model"], c["step"])
        for row in getattr(self, what)():
            yield ",".join(str(x) for x in (*head, *row))


# ---------------------------------------------------------------- a run of several checkpoints


def model_update(models, batch):
    """update for [(config, params)], the first is theta_0: (step, hidden, logits) each."""
    states = []
    for config, params in models:
        out = run(config, as_double(params), batch, max(config["step"], 1), 0.0)[2]
        states.append((config["step"], out["hidden.decoder"].detach(), out["logits"].detach()))
    real = batch["tgt_in"] != models[0][0]["pad"]
    for step, hidden, logits in states:
        yield (step, (hidden - states[0][1])[real].norm(dim=-1).mean().item(),
               (logits - states[0][2])[real].norm(dim=-1).mean().item())


def trajectory(models, batch, grid):
    """trajectory: (points [(step, a, b, loss)], surface [(a, b, loss)])."""
    names = sorted(models[0][1])
    flat = [numpy.concatenate([p[n].double().numpy().ravel() for n in names]) for _, p in models]
    d = [x - flat[0] for x in flat]
    a_axis = d[-1]
    whole = a_axis @ a_axis
    residuals = numpy.stack([x - a_axis * (x @ a_axis) / whole for x in d])
    # the right singular vector of the residuals as they are, not centred
    direction = numpy.linalg.svd(residuals, full_matrices=False)[2][0]
    b_axis = direction * math.sqrt(whole)
    b = [x @ b_axis / whole for x in d]
    if max(b, key=abs) < 0:
        b_axis, b = -b_axis, [-x for x in b]
    a = [x @ a_axis / whole for x in d]
    points = [(config["step"], x, y,
               run(config, as_double(params), batch, max(config["step"], 1), 0.0)[0].item())
              for (config, params), x, y in zip(models, a, b)]

    def axis(values):
        low, high = min(values), max(values)
        margin = 0.25 * (high - low)
        return numpy.linspace(low - margin, high + margin, grid)

    last = models[-1][0]
    surface = []
    for y in axis(b):
        for x in axis(a):
            theta, at = {}, 0
            point = flat[0] + x * a_axis + y * b_axis
            for n in names:
                size = models[0][1][n].numel()
                theta[n] = torch.from_numpy(point[at:at + size]).view(models[0][1][n].shape)
                at += size
            surface.append((x, y, run(last, theta, batch, max(last["step"], 1), 0.0)[0].item()))
    return points, surface


def write_series(folder):
    """A made-up run: branchnorm on its ramp, so that every checkpoint has another alpha."""
    batch = load_file(os.path.join(HERE, "trace", "branchnorm-encdec", "batch.safetensors"))
    models = []
    for k, step in enumerate((0, 2, 5, 9)):
        config = make_config("encdec", "branchnorm", {"steps": 10}, (1, 2), step=step)
        start = draw_parameters(config, 1)
        away = draw_parameters(config, 2 + k)
        share = 0.15 * k
        params = {n: ((1 - share) * start[n] + share * away[n]).to(torch.float32) for n in start}
        model = os.path.join(folder, f"model-{step}")
        os.makedirs(model)
        with open(os.path.join(model, "config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f, indent=1)
            f.write("\n")
        save_floats(os.path.join(model, "model.safetensors"), params)
        models.append((config, params))
    save_file(batch, os.path.join(folder, "batch.safetensors"), metadata={"format": "pt"})
    head = "branchnorm,1,2,8"
    with open(os.path.join(folder, "update.csv"), "w", encoding="utf-8") as f:
        f.write("method,N,M,d,step,stack,index,hidden,logits\n")
        for step, hidden, logits in model_update(models, batch):
            f.write(f"{head},{step},decoder,2,{number(hidden)},{number(logits)}\n")
    points, surface = trajectory(models, batch, 5)
    with open(os.path.join(folder, "trajectory.csv"), "w", encoding="utf-8") as f:
        f.write("method,N,M,d,step,stack,index,kind,a,b,loss\n")
        for i, (step, a, b, loss) in enumerate(points):
            f.write(f"{head},{step},decoder,{i},point,{number(a)},{number(b)},{number(loss)}\n")
        for i, (a, b, loss) in enumerate(surface):
            f.write(f"{head},9,decoder,{i + 1},surface,{number(a)},{number(b)},{number(loss)}\n")


# ---------------------------------------------------------------- files


def probe_of(folder, batch, flags):
    config, params = load_model(folder)
    options = parse_flags(flags)
    return Probe(config, params, load_file(batch), options["update"], options["smoothing"])


def write_golden():
    """probe/CASE.csv: the rows of all analyses, each after the name of the analysis."""
    target = os.path.join(HERE, "probe")
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    with open(os.path.join(HERE, "cases.json"), encoding="utf-8") as f:
        names = [n for n in json.load(f)["cases"] if "steps" not in n]
    for name in names:
        folder = os.path.join(HERE, "trace", name)
        with open(os.path.join(folder, "case.json"), encoding="utf-8") as f:
            flags = json.load(f)["args"]
        probe = probe_of(folder, os.path.join(folder, "batch.safetensors"), flags)
        with open(os.path.join(target, name + ".csv"), "w", encoding="utf-8") as f:
            for what in WHATS:
                for row in probe.rows(what):
                    f.write(f"{what},{row}\n")
    write_series(os.path.join(target, "series"))


def main():
    torch.set_num_threads(1)
    if len(sys.argv) < 4:
        write_golden()
        return
    for row in probe_of(sys.argv[2], sys.argv[3], sys.argv[4:]).rows(sys.argv[1]):
        print(row)


if __name__ == "__main__":
    main()
