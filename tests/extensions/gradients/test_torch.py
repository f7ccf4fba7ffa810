"""Gradients beside those of torch.autograd, which `record_torch.py` has recorded."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.extensions.gradients.differences import OnnxRuntime, Reference
from tiered import get_pass
from tiered.testing import parse

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "torch.json").read_text())["cases"]

PLACES = "i = Constant <value = int64[2,4] {0,1,2,2,0,2,2,1}> ()"

NODES = {
    "conv": "y = Conv <strides = [2,1], pads = [1,0,1,0], dilations = [1,2], group = 2> (a, b, c)",
    "conv_transpose": "y = ConvTranspose <strides = [2,2], pads = [1,1,1,1], "
    "output_padding = [1,1], group = 2> (a, b)",
    "max_pool": "y = MaxPool <kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]> (a)",
    "average_pool": "y = AveragePool <kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]> (a)",
    "layer_norm": "y = LayerNormalization(a, b, c)",
    "group_norm": "y = GroupNormalization <num_groups = 2> (a, b, c)",
    "instance_norm": "y = InstanceNormalization(a, b, c)",
    "log_softmax": "y = LogSoftmax(a)",
    "gelu": "y = Gelu(a)",
    "gelu_tanh": 'y = Gelu <approximate = "tanh"> (a)',
    "mish": "y = Mish(a)",
    "hardswish": "y = HardSwish(a)",
    "softplus": "y = Softplus(a)",
    "cumsum": "i = Constant <value = int64 {1}> ()  y = CumSum(a, i)",
    "logsumexp": "i = Constant <value_ints = [1]> ()  y = ReduceLogSumExp <keepdims = 0> (a, i)",
    "prod": "i = Constant <value_ints = [1]> ()  y = ReduceProd <keepdims = 0> (a, i)",
    "matmul": "y = MatMul(a, b)",
    "attention": "y = Attention(a, b, c)",
    "resize": "s = Constant <value_ints = [1,2,6,7]> ()  "
    'y = Resize <mode = "linear"> (a, "", "", s)',
    "cumprod": "h = Constant <value = float {-0.5}> ()  m = Greater(a, h)  k = CastLike(m, a)  "
    "z = Mul(a, k)  i = Constant <value = int64 {1}> ()  y = CumProd(z, i)",
    "det": "y = Det(a)",
    "fft": "i = Constant <value_ints = [2]> ()  z = Unsqueeze(a, i)  y = DFT(z)",
    "irfft": "z = DFT <inverse = 1, onesided = 1> (a)  i = Constant <value_ints = [2]> ()  "
    "y = Squeeze(z, i)",
    "stft": "h = Constant <value_int = 3> ()  i = Constant <value_ints = [2]> ()  "
    "s = Unsqueeze(a, i)  y = STFT <onesided = 1> (s, h, b)",
    "col2im": "s = Constant <value_ints = [5,4]> ()  k = Constant <value_ints = [3,2]> ()  "
    "p = Constant <value_ints = [0]> ()  e = Constant <value_ints = [3]> ()  "
    "t = Constant <value_ints = [2]> ()  f = Slice(a, p, e, t)  c = Concat <axis = 2> (a, f)  "
    "y = Col2Im(c, s, k)",
    **{
        f"grid_{mode}_{padding}": f'y = GridSample <mode = "{kind}", padding_mode = "{padding}"> '
        "(a, b)"
        for mode, kind in (("bilinear", "linear"), ("bicubic", "cubic"))
        for padding in ("zeros", "border", "reflection")
    },
    "scatter_prod": f'{PLACES}  y = ScatterElements <reduction = "mul"> (a, i, b)',
    "scatter_amax": f'{PLACES}  y = ScatterElements <reduction = "max"> (a, i, b)',
    "max_unpool": "i = Constant <value = int64[1,1,2,2] {5,7,13,15}> ()  "
    "y = MaxUnpool <kernel_shape = [2,2], strides = [2,2]> (a, i)",
    "einsum_diagonal": 'y = Einsum <equation = "bii->bi"> (a)',
    "pad_reflect": "p = Constant <value_ints = [0,0,2,0,0,1]> ()  "
    'y = Pad <mode = "reflect"> (a, p)',
}

IN_FLOAT = {"conv", "conv_transpose", "cumprod", "gelu", "group_norm"} | {
    name for name in NODES if name.startswith("grid_")
}
"""Operators that onnx.reference lacks, gets wrong, or computes in float."""


def test_each_recorded_function_has_an_operator() -> None:
    assert NODES.keys() == RECORDED.keys()


@pytest.mark.parametrize("name", NODES)
def test_gradients_are_those_of_torch(name: str) -> None:
    recorded, in_float = RECORDED[name], name in IN_FLOAT
    dtype = np.float32 if in_float else np.float64
    arrays = [np.array(each, dtype) for each in recorded["operands"]]
    operands = dict(zip("abc", arrays, strict=False))
    seed = np.array(recorded["seed"], dtype)
    kind = "float" if in_float else "double"
    inputs = ", ".join(
        f"{kind}[{','.join(map(str, array.shape))}] {key}" for key, array in operands.items()
    )
    result = ",".join("KLMNP"[: seed.ndim])
    text = f"({inputs}) => ({kind}[{result}] y) {{ {NODES[name]} }}"
    made: Any = get_pass("gradient", seed="input")(parse(text, opset=26))
    run = (OnnxRuntime if in_float else Reference)(made)
    found = run({**operands, "seed/y": seed})
    for key, expected in zip(operands, recorded["gradients"], strict=True):
        limit = 2e-4 if in_float else 1e-5
        np.testing.assert_allclose(found[f"grad/{key}"], expected, rtol=limit, atol=limit)
