"""Golden traces of the speech front: an independent implementation with torch.nn.functional.conv1d and glu.

    python3 test/golden/speech.py

writes speech/CASE/ (the files of trace/). Needs torch and safetensors. Everything behind the front is
reference.py's.
"""

import math
import random
import zlib

import torch

import reference
from cases import draw_parameters, draw_tokens, drop_targets, make_config
from golden_case import write_case, write_cases
from make_golden import KINK
from reference import F64, Forward, loss_of, sinusoids


def rows_of(frames):
    for _ in range(2):
        frames = (frames - 1) // 2 + 1
    return frames


class SpeechForward(Forward):
    """Frames [batch, time, features] in place of source tokens."""

    def convolve(self, x, count, layer):
        """One utterance [time, channels] through a convolution and its GLU."""
        name = f"encoder.subsample.conv_layers.{layer}"
        y = torch.nn.functional.conv1d(x.T.unsqueeze(0), self.p[name + ".weight"],
                                       self.p[name + ".bias"], stride=2, padding=2)
        return torch.nn.functional.glu(y, dim=1).squeeze(0).T

    def encode_frames(self, frames, counts):
        d = self.config["d_model"]
        longest = max(rows_of(n) for n in counts)
        rows = []
        for x, n in zip(frames, counts):
            y = self.convolve(self.convolve(x[:n].to(F64), n, 0), n, 1)
            assert y.shape[0] == rows_of(n)
            rows.append(torch.nn.functional.pad(y, (0, 0, 0, longest - y.shape[0])))
        real = torch.arange(longest) < torch.tensor([[rows_of(n)] for n in counts])
        k = real.long().cumsum(1)
        x = math.sqrt(d) * torch.stack(rows)
        if self.config["positions"] == "learned":
            x = x + self.p["encoder.embed_positions.weight"][(k - 1).clamp(min=0)]
        else:
            x = x + sinusoids(d, longest + 2)[k + 1]
        if self.method == "periln" and self.options["embed_norm"]:
            x = self.norm("encoder.layernorm_embedding", x)
        side = {"real": real, "mask": real[:, None, None, :]}
        return self.stack("encoder", x * real.unsqueeze(-1), side), real


def run(config, params, batch, t, smoothing, make=None):
    del make  # always the one above
    forward = SpeechForward(config, params, t)
    memory, heard = forward.encode_frames(batch["frames"], batch["frame_count"].tolist())
    source, target = batch["tgt_in"].long(), batch["tgt_out"].long()
    x = forward.decode(source, memory, torch.where(heard, config["pad"] + 1, config["pad"]))
    real = (source != config["pad"]).unsqueeze(-1)
    logits = forward.logits(x)
    out = {"hidden.encoder": memory * heard.unsqueeze(-1), "hidden.decoder": x * real,
           "logits": logits * real}
    counted = (target != config["pad"]) & (source != config["pad"])
    loss, nll = loss_of(logits, target, counted, smoothing)
    return loss, nll, out, forward


def speech_config(method, options=None, features=3, conv_channels=6, share="dec", **more):
    config = make_config("encdec", method, options, (2, 2), share=share, **more)
    for key in "src_vocab", "share":
        config.pop(key)
    return {**config, "share": share, "front": "speech", "features": features,
            "conv_channels": conv_channels}


def draw(config, seed):
    """reference.py's parameters without the source's words, and the front's."""
    shapes = reference.parameter_shapes({**config, "src_vocab": 5})
    words = {"encoder.embed_tokens.weight"}
    g = torch.Generator().manual_seed(seed + 1)
    whole = draw_parameters({**config, "src_vocab": 5}, seed)
    params = {n: whole[n] for n in shapes if n not in words}
    d, c = config["d_model"], config["conv_channels"]
    for i, (out, into) in enumerate(((c, config["features"]), (2 * d, c // 2))):
        name = f"encoder.subsample.conv_layers.{i}"
        weight = torch.randn(out, into, 5, generator=g) * (5 * into) ** -0.5
        params[name + ".weight"] = weight
        params[name + ".bias"] = 0.2 * torch.randn(out, generator=g)
    return params


def cases():
    smooth = ["--label-smoothing", "0.1"]
    for method in "postln", "preln", "b2t", "deepnorm", "branchnorm":
        options = {"steps": 10} if method == "branchnorm" else {}
        yield f"{method}", speech_config(method, options), smooth
    yield ("preln-learned-none-gelu", speech_config(
        "preln", positions="learned", share="none", activation="gelu", features=1), smooth)
    yield "periln-embed-norm", speech_config("periln", {"embed_norm": True}), []
    yield ("deepnorm-steps", speech_config("deepnorm", conv_channels=4, activation="gelu"), smooth + [
        "--steps", "4", "--lr", "0.01", "--lr-scheduler", "inverse_sqrt", "--warmup-updates", "2",
        "--warmup-init-lr", "0.0001", "--adam-betas", "0.9,0.98", "--adam-eps", "1e-4",
        "--weight-decay", "0.1", "--clip-norm", "0.5"])


def make_batch(config, rng):
    counts = [9, 1, 18, 12, 7, 2]  # every remainder of 4, one frame, two frames
    g = torch.Generator().manual_seed(rng.randrange(2**31))
    frames = torch.randn(len(counts), max(counts) + 3, config["features"], generator=g)  # junk behind
    lengths = [5, 3, 1, 4, 2, 2]
    batch = {"frames": frames, "frame_count": torch.tensor(counts, dtype=torch.int32),
             "tgt_in": draw_tokens(config, config["tgt_vocab"], lengths, rng)}
    batch["tgt_in"][:, 0] = config["bos"]
    target = draw_tokens(config, config["tgt_vocab"], lengths, rng)
    batch["tgt_out"] = drop_targets(target, config["pad"], rng, 0.15)
    return batch


def write(folder, case, config, flags):
    seed = zlib.crc32(("speech " + case).encode())
    batch = make_batch(config, random.Random(seed))
    reference.run = run  # trace() runs this forward pass
    write_case(folder, config, flags, batch, lambda attempt: draw(config, seed + attempt), 100 * KINK)  # in bf16 too


if __name__ == "__main__":
    write_cases("speech", cases, write)
