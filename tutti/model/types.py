"""The names of what a model runs on."""

from typing import Literal

Backend = Literal["onnx", "torch"]
Device = Literal["cpu", "cuda"]
Precision = Literal["fp32", "int8", "fp16"]
Compile = Literal["plain", "off", "reduced", "full"]  # plain: not even our own kernels
