"""The tools of `benchmarks.quantize`: each quantises a model of a file into another file."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")

Tool = Callable[[str, str, str], dict[str, Any]]
"""Takes the file of a model, the file to write, and the folder of samples; returns what it noted.
"""


def _samples(folder: str) -> list[dict[str, Any]]:
    import numpy as np

    files = sorted(Path(folder).glob("*.npz"))
    return [dict(np.load(file)) for file in files]


def _tiered(source: str, target: str, folder: str, **options: object) -> dict[str, Any]:
    from tiered import Model, PassContext, get_pass

    model, context = Model.load(source), PassContext.isolated()
    quantize = get_pass("quantize").with_options(inputs=[folder], **options)
    quantize.apply(model, context)
    model.save(target)
    again = Model.load(target)
    quantize.apply(again, PassContext.isolated())
    kept = [str(remark) for remark in context.remarks]
    is_fixed = again.to_proto() == Model.load(target).to_proto()
    return {**_calibration(source, folder), "is_fixed": is_fixed, "reasons": kept}


def _calibration(source: str, folder: str) -> dict[str, float]:
    """Return the processor time and the memory of a calibration of all products' data."""
    from tiered import Model
    from tiered.numerics.calibration.calibrate import calibrate
    from tiered.numerics.quantization.quantization_plan import plan_of
    from tiered.numerics.quantization.scheme import Scheme

    model = Model.load(source)
    model.refresh_types()
    pairs, samples = plan_of(model, Scheme()).pairs, _samples(folder)
    peak, start = _peak(), time.perf_counter()
    busy = _processor_time()
    calibrate(model, pairs, samples)
    return {
        "calibration": _processor_time() - busy,
        "elapsed": time.perf_counter() - start,
        "growth": _peak() - peak,
    }


def _processor_time() -> float:
    """Return the processor seconds of this process and of the worker, in all threads."""
    from tiered.runtime import shared_worker

    status = Path(f"/proc/{shared_worker().pid}/stat")
    if not status.exists():
        return time.process_time()
    ticks = status.read_text().rpartition(")")[2].split()[11:13]
    return time.process_time() + sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _peak() -> float:
    """Return the peak of the memory of this process and of the worker, in MiB."""
    from tiered.runtime import shared_worker

    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    status = Path(f"/proc/{shared_worker().pid}/status")
    if not status.exists():
        return own
    lines = (line.split() for line in status.read_text().splitlines())
    return own + next(int(line[1]) / 1024 for line in lines if line[0] == "VmHWM:")


def _onnxruntime(source: str, target: str, folder: str, method: str) -> dict[str, Any]:
    from onnxruntime.quantization import (
        CalibrationDataReader,
        CalibrationMethod,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    class Reader(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
        def __init__(self) -> None:
            self._feeds = iter(_samples(folder))

        def get_next(self) -> dict[str, Any] | None:
            return next(self._feeds, None)

    quantize_static(
        source,
        target,
        Reader(),
        quant_format=QuantFormat.QDQ,
        calibrate_method=CalibrationMethod[method],
        op_types_to_quantize=list(PRODUCTS),
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    return {}


def _onnxsim(source: str, target: str, folder: str) -> dict[str, Any]:
    import onnx
    import onnxsim

    onnx.save(onnxsim.quantize_static(onnx.load(source), _samples(folder)), target)
    return {}


# --- dynamic quantisation -------------------------------------------------------------------------


def _tiered_dynamic(source: str, target: str, folder: str) -> dict[str, Any]:
    from tiered import Model, PassContext, get_pass

    model, context = Model.load(source), PassContext.isolated()
    get_pass("quantize_dynamic").apply(model, context)
    model.save(target)
    again = Model.load(target)
    get_pass("quantize_dynamic").apply(again, PassContext.isolated())
    is_fixed = again.to_proto() == Model.load(target).to_proto()
    return {"is_fixed": is_fixed, "reasons": [str(remark) for remark in context.remarks]}


def _onnxruntime_dynamic(source: str, target: str, folder: str) -> dict[str, Any]:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        source,
        target,
        op_types_to_quantize=["Gemm", "MatMul"],
        per_channel=True,
        weight_type=QuantType.QInt8,
    )
    return {}


STATIC: dict[str, Tool] = {
    "tiered": _tiered,
    "tiered_nearest": partial(_tiered, rounding="nearest"),
    "tiered_auto": partial(_tiered, method="auto"),
    "onnxruntime": partial(_onnxruntime, method="MinMax"),
    "onnxruntime_percentile": partial(_onnxruntime, method="Percentile"),
    "onnxruntime_entropy": partial(_onnxruntime, method="Entropy"),
    "onnxsim": _onnxsim,
}
DYNAMIC: dict[str, Tool] = {"tiered": _tiered_dynamic, "onnxruntime": _onnxruntime_dynamic}
