"""What the scripts of golden traces share: draws parameters away from the kinks of ReLU, and writes a case."""

import json
import os
import shutil

import torch
from safetensors.torch import save_file

import reference
from reference import parse_flags, save_floats

HERE = os.path.dirname(os.path.abspath(__file__))


def write_case(folder, config, flags, batch, draw, least_kink):
    """folder/ gets the files of trace/; draw(attempt) gives parameters."""
    os.makedirs(folder)
    for attempt in range(100):
        params = draw(attempt)
        result, kink = reference.trace(config, params, batch, **parse_flags(flags))
        if kink > least_kink:
            break
    else:
        raise SystemExit(f"{folder}: no draw keeps away from the ReLU kinks")
    for file, value in (("config.json", config), ("case.json", {"args": flags})):
        with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
            json.dump(value, f, indent=1)
            f.write("\n")
    save_floats(os.path.join(folder, "model.safetensors"), params)
    save_floats(os.path.join(folder, "expected.safetensors"), result)
    save_file(batch, os.path.join(folder, "batch.safetensors"), metadata={"format": "pt"})


def write_cases(name, cases, write):
    """name/ is made anew: write(folder, case, config, flags) for each of cases()."""
    torch.set_num_threads(1)
    shutil.rmtree(os.path.join(HERE, name), ignore_errors=True)
    for case, config, flags in cases():
        write(os.path.join(HERE, name, case), case, config, flags)
        print(case)
