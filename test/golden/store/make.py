"""Writes python.safetensors with the Python library, for test_store_safetensors.c (needs torch and
safetensors). The values are small enough that every dtype holds them exactly."""
import os

import torch
from safetensors.torch import save_file

ramp = torch.arange(6, dtype=torch.float64).reshape(2, 3) * 0.25 - 0.5
tensors = {
    "f64": ramp,
    "f32": ramp.to(torch.float32),
    "f16": ramp.to(torch.float16),
    "bf16": ramp.to(torch.bfloat16),
    "f16.special": torch.tensor([0.0, -0.0, 6e-8, -65504.0, float("inf")], dtype=torch.float16),
    "i64": torch.tensor([-2, 7, 2147483647], dtype=torch.int64),
    "i64.large": torch.tensor([2147483648], dtype=torch.int64),
    "i32": torch.tensor([[-2], [7]], dtype=torch.int32),
    "u8": torch.tensor([1, 2, 255], dtype=torch.uint8),
    "bool": torch.tensor([True, False, True]),
    "scalar": torch.tensor(2.5),
    "empty": torch.zeros(0, 3),
    "größe \"quoted\"": torch.tensor([1.0]),
}
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python.safetensors")
save_file(tensors, path, metadata={"format": "pt", "made by": "make.py"})
