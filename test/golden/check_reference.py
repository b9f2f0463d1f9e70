"""Checks the reference itself: reductions, constants, finite differences, identities at init.

    python3 test/golden/check_reference.py

Prints one line per group and fails on the first number that is off.
"""

import math
import random

import torch

import init_rules
from cases import draw_parameters, make_batch, make_config, random_case
from reference import (METHODS, as_double, b2t_noln_constants, branchnorm_alpha,
                       deepnorm_constants, gradients, learning_rate, loss_of, parameter_shapes,
                       parse_flags, run, sinusoids, trace, TRAIN_DEFAULTS)


def check(what, got, want, tolerance=1e-9):
    if not abs(got - want) <= tolerance * max(1.0, abs(want)):
        raise SystemExit(f"FAILED {what}: {got!r}, expected {want!r}")


def digits6(what, got, want):
    """Equal to the printed value, which has 6 significant digits."""
    if not abs(got - want) <= 0.51 * 10 ** (math.floor(math.log10(abs(want))) - 5):
        raise SystemExit(f"FAILED {what}: {got!r}, expected {want!r}")


def batch_for(config, seed=3):
    return make_batch(config, random.Random(seed), [4, 1, 5], [3, 5, 1])


def same(what, config_a, params_a, config_b, params_b, t=1, tolerance=1e-9, cut=None):
    """Loss, logits and common gradients of two models are equal."""
    batch = batch_for(config_a)
    a, _ = trace(config_a, params_a, batch, t, 0.1)
    b, _ = trace(config_b, params_b, batch, t, 0.1)
    common = set(a) & set(b)
    assert {"loss", "logits"} <= common
    for key in common if cut is None else cut:
        difference = (a[key] - b[key]).abs().max().item()
        if not difference <= tolerance:
            raise SystemExit(f"FAILED {what} {config_a['arch']}: {key} differs by {difference}")


def reductions():
    for arch in "encdec", "enc", "dec":
        def model(method, options=None, layers=(2, 3)):
            return make_config(arch, method, options, layers)

        post, pre = model("postln"), model("preln")
        p = draw_parameters(post, 1)
        for other in ("postln-init", {}), ("dsinit", {}), ("deepnorm", {"alpha": 1.0}):
            same(other[0], model(*other), p, post, p)
        losses = [trace(c, p, batch_for(c))[0]["loss"].item() for c in (model("deepnorm"), post)]
        assert abs(losses[0] - losses[1]) > 1e-4, "deepnorm with its own alpha must differ"
        for growth in "linear", "exp", "sigmoid":
            for t in 7, 8, 1000:
                branch = model("branchnorm", {"steps": 7, "growth": growth})
                same("branchnorm", branch, p, post, p, t)
        admin = model("admin")
        ones = {n: torch.ones(s) for n, s in parameter_shapes(admin).items() if n.endswith("_skip")}
        same("admin", admin, {**p, **ones}, post, p)
        # realformer with one layer, and its mean mode
        one = draw_parameters(model("postln", None, (1, 1)), 2)
        for mode in "sum", "mean":
            same("realformer", model("realformer", {"mode": mode}, (1, 1)), one,
                 model("postln", None, (1, 1)), one)
        # normformer with its parts off in the encoder is preln there
        q = draw_parameters(pre, 4)
        if arch == "enc":
            same("normformer off", model("normformer", {"encoder": False}), q, pre, q)
        # lambda = 1 and gamma = 1 leave normformer as it is, wherever gamma sits
        base = model("normformer")
        r = draw_parameters(base, 5)
        r.update({n: torch.ones_like(v) for n, v in r.items() if n.endswith("c_attn")})
        same("normformer gamma", model("normformer", {"head_scale": "post"}), r, base, r,
             cut=["loss", "logits"])
        full = model("normformer", {"residual_scale": True})
        lam = {n: torch.ones(s) for n, s in parameter_shapes(full).items() if n.endswith("w_resid")}
        same("normformer lambda", full, {**r, **lam}, base, r)
        # Mix-LN at both ends, LayerNorm scaling in one layer, norms that do nothing
        same("mixln 0", model("mixln", {"post_share": 0.2}), q, pre, q)
        top = {n: torch.ones(s) if n.endswith("weight") else torch.zeros(s)
               for n, s in parameter_shapes(pre).items()
               if ".layer_norm." in n or "encoder.layers.1.final" in n or
               "decoder.layers.2.final" in n}
        all_post = model("mixln", {"post_share": 1.0})
        same("mixln 1", all_post, {**p, **top}, post, {**p, **top}, cut=["loss", "logits"],
             tolerance=1e-4)  # an LN of an LN
        single = model("preln", None, (1, 1))
        w = draw_parameters(single, 6)
        same("lns", model("lns", None, (1, 1)), w, single, w)
        # dlcl-post with one-hot rows and fresh norms is postln, up to an LN of an LN
        dlcl = model("dlcl-post")
        h = {}
        for n, s in parameter_shapes(dlcl).items():
            if n.endswith("history.weight"):
                h[n] = torch.eye(s[0])
            elif ".history." in n:
                h[n] = torch.ones(s) if n.endswith("weight") else torch.zeros(s)
        fresh = {n: torch.ones_like(v) if n.endswith("norm.weight") else
                 torch.zeros_like(v) if n.endswith("norm.bias") else v for n, v in p.items()}
        same("dlcl-post one-hot", dlcl, {**fresh, **h}, post, fresh, tolerance=1e-4,
             cut=["loss", "logits"])
        # rezero: one scalar per sub-layer, all equal = one per layer; a = 1 is tfixup
        whole, parts = model("rezero"), model("rezero", {"per_sublayer": True})
        z = draw_parameters(model("tfixup"), 6)
        a = {n: torch.full(s, 0.7) for n, s in parameter_shapes(whole).items() if "resweight" in n}
        b = {n: torch.full(s, 0.7) for n, s in parameter_shapes(parts).items() if "resweight" in n}
        same("rezero per_sublayer", whole, {**z, **a}, parts, {**z, **b})
        a = {n: torch.ones_like(v) for n, v in a.items()}
        same("rezero a = 1", whole, {**z, **a}, model("tfixup"), z)
        # rfixup with c = 0, s = 1 is tfixup without biases
        fix = model("rfixup")
        neutral = {n: torch.ones(s) if n.endswith("scale") else torch.zeros(s)
                   for n, s in parameter_shapes(fix).items() if s == (1,)}
        y = {n: torch.zeros_like(v) if n.endswith("bias") else v for n, v in z.items()}
        weights = {n: v for n, v in y.items() if not n.endswith("bias")}
        same("rfixup neutral", fix, {**weights, **neutral}, model("tfixup"), y)
        b2t_by_hand(arch)
        identities(arch)


def b2t_by_hand(arch):
    """Without branches a layer is LN(x + a), a = LN1(x), or LN2(LN1(x)) with cross-attention."""
    config = make_config(arch, "b2t", {}, (1, 1))
    params = draw_parameters(config, 8)
    for n, v in params.items():
        if "out_proj" in n or "fc2" in n:
            v.zero_()
    batch = batch_for(config)
    theta = as_double(params)
    _, _, out, forward = run(config, theta, batch, 1, 0.0)
    stack = "encoder" if arch == "enc" else "decoder"
    tokens = batch["src" if arch == "enc" else "tgt_in"].long()
    x = forward.embed(stack, tokens)
    a = forward.norm(f"{stack}.layers.0.self_attn_layer_norm", x)
    if arch == "encdec":
        a = forward.norm(f"{stack}.layers.0.encoder_attn_layer_norm", a)
    y = forward.norm(f"{stack}.layers.0.final_layer_norm", x + a)
    y = y * (tokens != config["pad"]).unsqueeze(-1)
    check("b2t by hand", (y - out["hidden." + stack]).abs().max().item(), 0.0)


def identities(arch):
    """At init rezero and rfixup return x_0; rfixup with an untied output has loss ln V."""
    for method in "rezero", "rfixup":
        config = make_config(arch, method, {}, (2, 3), share="none")
        params = draw_parameters(config, 9)
        for n, shape in parameter_shapes(config).items():
            rule = init_rules.rule(config, n, shape)
            if "value" in rule:
                params[n] = torch.full(shape, rule["value"])
        batch = batch_for(config)
        _, nll, out, forward = run(config, as_double(params), batch, 1, 0.0)
        for stack, key in ("encoder", "src"), ("decoder", "tgt_in"):
            if key in batch and "hidden." + stack in out:
                tokens = batch[key].long()
                x = forward.embed(stack, tokens)
                check("identity", (x - out["hidden." + stack]).abs().max().item(), 0.0)
        if method == "rfixup":
            check("ln V", nll.item(), math.log(11))


DEEPNORM = {  # N = M: alpha_e, beta_e, alpha_d, beta_d
    6: (1.41794, 0.496989, 2.05977, 0.343295),
    18: (1.99875, 0.352571, 2.71081, 0.260847),
    50: (2.75051, 0.256207, 3.49964, 0.202052),
    100: (3.41574, 0.206310, 4.16179, 0.169904),
    250: (4.54822, 0.154940, 5.23318, 0.135120),
    500: (5.64824, 0.124765, 6.22333, 0.113622),
    1: (0.810000, 0.870000, 1.31607, 0.537285),
    2: (1.00590, 0.700563, 1.56508, 0.451801),
    3: (1.14179, 0.617190, 1.73205, 0.408248),
    4: (1.24919, 0.564125, 1.86121, 0.379918),
    12: (1.76088, 0.400198, 2.44949, 0.288675),
    24: (2.18676, 0.322258, 2.91295, 0.242746),
    36: (2.48216, 0.283906, 3.22371, 0.219346),
}
SINGLE = {  # layers: DeepNorm alpha, beta, Sub-LN gain, and encdec encoder, decoder
    6: (1.86121, 0.379918, 1.57636, 1.54729, 1.70011),
    18: (2.44949, 0.288675, 1.89302, 2.18286, 1.99724),
    50: (3.16228, 0.223607, 2.14597, 2.77338, 2.23844),
    100: (3.76060, 0.188030, 2.30181, 3.17388, 2.38826),
    250: (4.72871, 0.149535, 2.49291, 3.70320, 2.57295),
    500: (5.62341, 0.125743, 2.62826, 4.10357, 2.70430),
}
FIXUP = {  # N = M: T-Fixup enc, dec, R, R^-1/6, R^-1/2, b2t-noln alpha, L^-1/2, omega
    6: (0.428092, 0.368894, 30, 0.567300, 0.182574, 0.500000, 0.408248, 2.01701, 2.33513),
    18: (0.325279, 0.280299, 90, 0.472382, 0.105409, 0.648200, 0.235702, 3.04084, 3.56719),
    50: (0.251960, 0.217119, 250, 0.398422, 0.0632456, 0.556102, 0.141421, 4.56997, 5.39407),
    100: (0.211873, 0.182574, 500, 0.354954, 0.0447214, 0.501187, 0.1, 6.07461, 7.19314),
    250: (0.168496, 0.145196, 1250, 0.304683, 0.0282843, 0.436827, 0.0632456, 8.92136, 10.6028),
    500: (0.141688, 0.122095, 2500, 0.271442, 0.02, 0.393690, 0.0447214, 11.9954, 14.2908),
}


def constants():
    for n, row in DEEPNORM.items():
        config = make_config("encdec", "deepnorm", {}, (n, n))
        got = deepnorm_constants(config, "encoder") + deepnorm_constants(config, "decoder")
        for value, want in zip(got, row):
            digits6(f"deepnorm {n}", value, want)
    config = make_config("encdec", "deepnorm", {}, (90, 6))
    got = deepnorm_constants(config, "encoder") + deepnorm_constants(config, "decoder")
    for value, want in zip(got, (2.79049, 0.252537, 2.05977, 0.343295)):
        digits6("deepnorm 90-6", value, want)
    for n, row in SINGLE.items():
        pair = make_config("encdec", "subln", {}, (n, n))
        for arch, stack in ("enc", "encoder"), ("dec", "decoder"):
            one = make_config(arch, "subln", {}, (n, n))
            for value, want in zip(deepnorm_constants(one, stack) +
                                   (init_rules.subln_gain(one, stack),), row):
                digits6(f"single {n}", value, want)
        digits6(f"subln {n}", init_rules.subln_gain(pair, "encoder"), row[3])
        digits6(f"subln {n}", init_rules.subln_gain(pair, "decoder"), row[4])
    for n, row in FIXUP.items():
        def first(method, options, name):
            c = make_config("encdec", method, options, (n, n), d=16, f=16)
            r = init_rules.rule(c, name, parameter_shapes(c)[name])
            return r.get("value", r.get("std", 0) * 4)  # std * sqrt((16 + 16) / 2) = gain

        digits6("tfixup", first("tfixup", {}, "encoder.layers.0.fc1.weight"), row[0])
        digits6("tfixup", first("tfixup", {}, "decoder.layers.0.self_attn.v_proj.weight"), row[1])
        digits6("tfixup", first("tfixup", {}, "embed_tokens.weight"), row[1])
        query = first("rfixup", {}, "encoder.layers.0.self_attn.q_proj.weight")
        digits6("rfixup", math.sqrt(2) * query, row[3])
        digits6("rfixup", first("rfixup", {}, "decoder.layers.0.fc1.weight"), row[4])
        noln = make_config("encdec", "b2t-noln", {}, (n, n))
        digits6("b2t-noln", b2t_noln_constants(noln, "encoder")[0], row[5])
        digits6("b2t", first("b2t", {"init_scale": "auto"}, "encoder.layers.0.fc2.weight"), row[6])
        digits6("b2t", first("b2t", {}, "encoder.layers.0.fc2.weight"), row[6] if n > 18 else 1.0)
        digits6("admin", first("admin", {"mode": "const"}, "encoder.layers.0.ffn_skip"), row[7])
        digits6("admin", first("admin", {"mode": "const"}, "decoder.layers.0.ffn_skip"), row[8])
    for d, want in (32, 0.5), (64, 0.435275), (128, 0.378929), (512, 0.287175), (1024, 0.25):
        digits6("b2t-noln beta", b2t_noln_constants(
            make_config("enc", "b2t-noln", {}, d=d), "encoder")[1], want)
    curve = {"exp": (0.00917615, 0.0320586, 0.119203, 0.356086, 0.664169, 1),
             "sigmoid": (0.0114466, 0.0701037, 0.5, 0.929896, 0.988553, 1)}
    for growth, row in curve.items():
        for t, want in zip((10, 25, 50, 75, 90, 100), row):
            digits6(growth, branchnorm_alpha({"steps": 100, "growth": growth, "end": 1.0}, t), want)


def shared_machinery():
    table = sinusoids(9, 5)
    check("POS(2)[0]", table[2, 0].item(), math.sin(2))
    check("POS(2)[H]", table[2, 4].item(), math.cos(2))
    check("last frequency", table[1, 3].item(), math.sin(1e-4))
    check("odd width", table[2, 8].item(), 0.0)
    loss, _ = loss_of(torch.zeros(1, 1, 4, dtype=torch.float64), torch.tensor([[2]]),
                      torch.tensor([[True]]), 0.1)
    check("smoothed uniform loss", loss.item(), math.log(4))
    train = {**TRAIN_DEFAULTS, "lr": 1.0, "warmup_updates": 4, "warmup_init_lr": 0.2,
             "max_update": 12}
    for kind, t, want in (("inverse_sqrt", 1, 0.4), ("inverse_sqrt", 4, 1.0),
                          ("inverse_sqrt", 16, 0.5), ("linear", 8, 0.5), ("linear", 99, 0.0),
                          ("cosine", 8, 0.5), ("cosine", 12, 0.0), ("constant", 99, 1.0),
                          ("inverse_sqrt_nowarmup", 4000, math.sqrt(0.5))):
        check(kind, learning_rate({**train, "lr_scheduler": kind}, t), want)


def padding():
    """A batch equals its sentences run one by one (weighted by their scored tokens)."""
    for seed in range(40):
        config, batch, flags = random_case(seed)
        options = parse_flags(flags)
        params = as_double(draw_parameters(config, seed))
        pad, target = config["pad"], "src_out" if config["arch"] == "enc" else "tgt_out"
        t, smoothing = options["update"] or config["step"] + 1, options["smoothing"]
        loss = run(config, params, batch, t, smoothing)[0].item()
        total, count = 0.0, 0
        for b in range(batch[target].shape[0]):
            one = {}
            for key, rows in batch.items():
                side = "src" if key.startswith("src") else "tgt_in"
                one[key] = rows[b:b + 1, : int((batch[side][b] != pad).sum())]
            n = int((one[target] != pad).sum())
            if n:
                total += n * run(config, params, one, t, smoothing)[0].item()
                count += n
        check(f"padding, case {seed}", total / count, loss)


def library_layers():
    """postln and preln layers equal torch.nn's own; Adam without eps equals torch.optim.AdamW."""
    for method, first in ("postln", False), ("preln", True):
        config = make_config("encdec", method, {}, (1, 1))
        params = draw_parameters(config, 11)
        batch = batch_for(config)
        _, _, out, forward = run(config, as_double(params), batch, 1, 0.0)
        p = {n: v.double() for n, v in params.items()}
        shape = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "dropout": 0.0,
                 "norm_first": first, "batch_first": True, "dtype": torch.float64}
        x = None
        for stack, make in (("encoder", torch.nn.TransformerEncoderLayer),
                            ("decoder", torch.nn.TransformerDecoderLayer)):
            layer, name = make(**shape), stack + ".layers.0."
            kinds = [("self_attn", "self_attn"), ("encoder_attn", "multihead_attn")]
            state = {}
            for ours, theirs in kinds if stack == "decoder" else kinds[:1]:
                for part in "weight", "bias":
                    qkv = [p[f"{name}{ours}.{c}_proj.{part}"] for c in "qkv"]
                    state[f"{theirs}.in_proj_{part}"] = torch.cat(qkv)
                    state[f"{theirs}.out_proj.{part}"] = p[f"{name}{ours}.out_proj.{part}"]
            norms = ["self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"]
            for i, norm in enumerate(norms if stack == "decoder" else norms[::2]):
                for part in "weight", "bias":
                    state[f"norm{i + 1}.{part}"] = p[f"{name}{norm}.{part}"]
                    state[f"linear1.{part}"] = p[f"{name}fc1.{part}"]
                    state[f"linear2.{part}"] = p[f"{name}fc2.{part}"]
            layer.load_state_dict(state)
            tokens = batch["src" if stack == "encoder" else "tgt_in"].long()
            empty, y = tokens == config["pad"], forward.embed(stack, tokens).detach()
            if stack == "encoder":
                source_empty = empty
                x = layer(y, src_key_padding_mask=empty)
            else:
                causal = torch.ones(y.shape[1], y.shape[1]).triu(1).bool()
                x = layer(y, x, causal, None, empty, source_empty)
            if first:
                x = torch.nn.functional.layer_norm(x, (8,), p[stack + ".layer_norm.weight"],
                                                   p[stack + ".layer_norm.bias"])
            difference = (x * ~empty.unsqueeze(-1) - out["hidden." + stack]).abs().max().item()
            check(f"torch.nn {method} {stack}", difference, 0.0)

    config = make_config("dec", "postln", {})
    params = draw_parameters(config, 12)
    batch = batch_for(config)
    train = {"lr": 0.01, "lr_scheduler": "constant", "warmup_updates": 1, "adam_eps": 1e-30,
             "weight_decay": 0.1, "clip_norm": 0.5}
    result, _ = trace(config, params, batch, None, 0.1, 4, train)
    theta = as_double(params)
    adam = torch.optim.AdamW(theta.values(), lr=0.01, betas=(0.9, 0.98), eps=1e-30,
                             weight_decay=0.1)
    for t in range(1, 5):
        adam.zero_grad()
        run(config, theta, batch, t, 0.1)[0].backward()
        torch.nn.utils.clip_grad_norm_(theta.values(), 0.5)
        adam.step()
    for name, value in theta.items():
        if not name.endswith("k_proj.bias"):  # its gradient is 0, so its Adam step is noise
            difference = (value - result["after." + name]).abs().max().item()
            check(f"AdamW {name}", difference, 0.0, 1e-7)


def finite_differences():
    for seed, method in enumerate(METHODS):
        for arch in "encdec", "enc", "dec":
            options = {"branchnorm": {"steps": 5}, "normformer": {"residual_scale": True}}
            config = make_config(arch, method, options.get(method, {}), (2, 2), f=16,
                                 activation="gelu", positions="learned", share="none")
            params = as_double(draw_parameters(config, seed))
            batch = batch_for(config, seed)
            grads = gradients(config, params, batch, 2, 0.1)[3]
            g = torch.Generator().manual_seed(seed)
            for name in params:
                direction = torch.randn(params[name].shape, generator=g, dtype=torch.float64)
                if name.endswith("history.weight"):
                    direction = direction.tril()
                values = []
                for step in 1e-5, -1e-5:
                    moved = {**params, name: (params[name] + step * direction).detach()}
                    values.append(run(config, moved, batch, 2, 0.1)[0].item())
                slope = (values[0] - values[1]) / 2e-5
                want = (grads[name] * direction).sum().item()
                check(f"gradient of {method} {arch} {name}", want, slope, 1e-7)


def main():
    torch.set_num_threads(1)  # tiny tensors: more threads only wait for each other
    for part in (constants, shared_machinery, reductions, library_layers, padding,
                 finite_differences):
        part()
        print("ok", part.__name__)


if __name__ == "__main__":
    main()
