#!/usr/bin/env python3
"""Makes filter_bank.safetensors: filter-bank values of two made-up sounds by torchaudio's Kaldi.

    pip install torch torchaudio safetensors
    python3 make_golden.py

The sounds are integers of a formula, so that the test can make them too. They are in double precision: in
single torchaudio is off by some 1e-4 where a value is small beside the others of its window.
"""
import os

import torch
from safetensors.torch import save_file
from torchaudio.compliance.kaldi import fbank

HERE = os.path.dirname(os.path.abspath(__file__))


def sound(n):
    """Noise and a tone whose pitch and strength change, as 16-bit integers."""
    state, out = 12345, []
    for i in range(n):
        state = (state * 1103515245 + 12345) % 2**31
        noise = (state >> 16) % 2001 - 1000
        period = 20 + i // 100
        saw = (i % period) * 400 // period * (1 + i // 1000 % 7)
        out.append(noise * (1 + i // 500 % 4) + saw)
    return torch.tensor(out, dtype=torch.float64)


def main():
    out = {}
    for name, rate, n, bins in (("rate-8000", 8000, 2500, 80), ("rate-16000", 16000, 4000, 80),
                                ("bins-23", 16000, 1234, 23)):
        out[name] = fbank(sound(n).unsqueeze(0), dither=0.0, num_mel_bins=bins,
                          sample_frequency=rate).float().contiguous()
        print(name, tuple(out[name].shape))
    save_file(out, os.path.join(HERE, "filter_bank.safetensors"), metadata={"format": "pt"})


if __name__ == "__main__":
    main()
