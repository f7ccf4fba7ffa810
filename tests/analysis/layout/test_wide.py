"""The work for a tensor with many readers, or an operator with many operands, grows with them."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import onnx
import pytest

from benchmarks.chains import Chain
from tiered import Model
from tiered.analysis.layout.layout_conversion import reach_of
from tiered.analysis.layout.layout_region import regions
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.testing import parse


def parts(count: int) -> onnx.ModelProto:
    """Return a model that slices a tensor, and joins the results."""
    chain = Chain((4, 8, count))
    source = chain.transpose("x", 0, 2, 1)
    made = [chain.node("Neg", chain.slice(source, 1, at, at + 1)) for at in range(count)]
    return chain.model(chain.transpose(chain.node("Concat", *made, axis=1), 0, 2, 1))


def readers(count: int) -> onnx.ModelProto:
    """Return a model in which one tensor has many readers: two of three results are turned."""
    ends = ["Exp", "Transpose<perm=[1,0]>", "Transpose<perm=[1,0]>"]
    lines = [f"a{at} = Neg(t)  y{at} = {ends[at % 3]}(a{at})" for at in range(count)]
    outputs = ", ".join(f"float[{'4,3' if at % 3 else '3,4'}] y{at}" for at in range(count))
    text = f"(float[4,3] x) => ({outputs}) {{ t = Transpose<perm=[1,0]>(x) {' '.join(lines)} }}"
    return parse(text)


def _lines_run(model: onnx.ModelProto) -> int:
    """Return how many lines of Python the search and its regions take; loops count each turn."""
    view = Model.from_proto(model)
    count = 0

    def trace(_: FrameType, event: str, __: Any) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        found = list(regions(reach_of(view), LayoutSizes()))
    finally:
        sys.settrace(before)
    assert found
    return count


@pytest.mark.parametrize("build", [parts, readers], ids=lambda build: build.__name__)
def test_the_work_grows_with_the_readers(build: Callable[[int], onnx.ModelProto]) -> None:
    _lines_run(build(8))  # loads code
    few, many = (_lines_run(build(count)) for count in (50, 400))
    assert many < 9 * few
