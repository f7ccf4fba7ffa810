"""The tools that convert to half precision, each run in a process of its own.

    python -m benchmarks.half_tools onnxsim in.onnx out.onnx

Tools whose name ends in "listed" keep the operators in float that are usually listed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

LISTED = (
    "CumSum", "Div", "Exp", "LayerNormalization", "Log", "LogSoftmax", "Pow", "Reciprocal",
    "ReduceL2", "ReduceMean", "ReduceSum", "ReduceSumSquare", "Softmax", "Softplus", "Sqrt",
)  # fmt: skip
"""The operators that lists for half precision usually keep in float."""

BUDGET = "cosine>=0.999"
"""The budget that tiered's mixed precision has to meet."""


def _tiered(source: str, target: str) -> None:
    _applied("float_to_half", source, target)


def _tiered_mixed(source: str, target: str) -> None:
    _applied("float_to_mixed", source, target, budget=BUDGET)


def _applied(name: str, source: str, target: str, **options: object) -> None:
    from tiered import Model, get_pass

    model = Model.load(source)
    get_pass(name).with_options(**options).apply(model)
    model.save(target)


def _converter_common(source: str, target: str) -> None:
    _float16("onnxconverter_common.float16", source, target)


def _converter_common_listed(source: str, target: str) -> None:
    _float16("onnxconverter_common.float16", source, target, listed=LISTED)


def _onnxruntime(source: str, target: str) -> None:
    _float16("onnxruntime.transformers.float16", source, target)


def _onnxruntime_listed(source: str, target: str) -> None:
    _float16("onnxruntime.transformers.float16", source, target, listed=LISTED)


def _float16(module: str, source: str, target: str, listed: tuple[str, ...] = ()) -> None:
    import onnx

    float16 = importlib.import_module(module)
    kept = [*float16.DEFAULT_OP_BLOCK_LIST, *listed]
    made = float16.convert_float_to_float16(
        onnx.load(source), keep_io_types=True, op_block_list=kept
    )
    onnx.save(made, target)


def _onnxslim(source: str, target: str) -> None:
    import onnxslim

    onnxslim.slim(source, target, dtype="fp16")


def _onnxsim(source: str, target: str) -> None:
    import onnx
    import onnxsim

    onnx.save(onnxsim.quantize_fp16(onnx.load(source), keep_io_types=True), target)


def _modelopt(source: str, target: str) -> None:
    import onnx

    autocast = importlib.import_module("modelopt.onnx.autocast")
    made = autocast.convert_to_mixed_precision(
        onnx_path=source, low_precision_type="fp16", keep_io_types=True
    )
    onnx.save(made, target)


TOOLS: dict[str, Callable[[str, str], None]] = {
    "tiered": _tiered,
    "onnxconverter-common": _converter_common,
    "onnxruntime.transformers": _onnxruntime,
    "onnxslim": _onnxslim,
    "onnxsim": _onnxsim,
    "modelopt autocast": _modelopt,
}

MIXED: dict[str, Callable[[str, str], None]] = {
    "tiered mixed": _tiered_mixed,
    "onnxconverter-common, listed": _converter_common_listed,
    "onnxruntime.transformers, listed": _onnxruntime_listed,
}

if __name__ == "__main__":
    (TOOLS | MIXED)[sys.argv[1]](sys.argv[2], sys.argv[3])
