"""events.py RUN: TensorBoard's own reader finds in RUN/tensorboard what RUN/log.jsonl says.
events.py --golden FILE: it reads the records of a golden file (test_events.c)."""
import glob
import json
import math
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def read(path):
    reader = EventAccumulator(path, size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
    reader.Reload()
    return reader


def same(a, b):
    return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-12) or (math.isnan(a) and math.isnan(b))


def check_run(run):
    reader = read(run + "/tensorboard")
    lines = [json.loads(line) for line in open(run + "/log.jsonl")]
    scalars = histograms = 0
    for line in lines:
        group = {"train": "train", "valid": line.get("split")}.get(line["type"])
        for key, value in line.items():
            if group and key not in ("type", "update", "split") and not isinstance(value, list):
                found = [e.value for e in reader.Scalars(f"{group}/{key}") if e.step == line["update"]]
                assert any(same(float(value), x) for x in found), (line, key, found)
                scalars += 1
        if line["type"] == "layers":
            values = [float(v) for v in line["values"] if v is not None and math.isfinite(float(v))]
            found = [h for h in reader.Histograms(f"{line['stack']}/{line['name']}") if h.step == line["update"]]
            if values:
                assert found and same(found[-1].histogram_value.sum, sum(values)), line
                assert sum(found[-1].histogram_value.bucket) == len(values), line
                histograms += 1
    assert scalars > 10 and histograms > 2, (scalars, histograms)
    assert b"config" in reader.Tensors("start")[0].tensor_proto.string_val[0]
    print(f"{scalars} scalars, {histograms} histograms")


def check_golden(path):
    import os
    import shutil
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, os.path.join(folder, "events.out.tfevents.1"))
        reader = read(folder)
        assert [e.value for e in reader.Scalars("train/loss")] == [2.5]
        assert [e.value for e in reader.Scalars("valid/bleu")] == [12.5]
        histogram = reader.Histograms("encoder/grad_norm")[0].histogram_value
        assert (histogram.num, histogram.sum, histogram.min, histogram.max) == (3, 4.5, 0.5, 2.5)
        assert reader.Tensors("warn")[0].tensor_proto.string_val[0] == b"much"


if sys.argv[1] == "--golden":
    check_golden(sys.argv[2])
else:
    check_run(sys.argv[1])
