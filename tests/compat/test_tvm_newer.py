"""TVM's newer passes, its tutorials about instruments, pattern tables, and other frontends."""

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

import tiered
from tests.small import ops
from tiered.compat import tvm
from tiered.compat.tvm import relay
from tiered.runtime import Session
from tiered.support.errors import UsageError
from tiered.testing import parse

TEXT = """(float[2,4] x) => (float[2,4] y) <float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {
    a = MatMul(x, w) b = Relu(a) y = Neg(b) }"""


# --- the tutorial about instruments ---------------------------------------------------------------


@tvm.instrument.pass_instrument
class Counts:
    """Counts passes, and hears of its context."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def enter_pass_ctx(self) -> None:
        self.heard.append("enter")

    def exit_pass_ctx(self) -> None:
        self.heard.append("exit")

    def run_after_pass(self, mod: object, info: tiered.PassInfo) -> None:
        self.heard.append(info.name)


def test_instruments_are_overridden_in_a_context() -> None:
    first, second = Counts(), Counts()
    model = parse(TEXT)
    with tvm.transform.PassContext(opt_level=3, instruments=[first]) as ctx:
        relay.transform.InferType()(model)
        tvm.transform.PassContext.current().override_instruments([second])
        relay.transform.DeadCodeElimination()(model)
        ctx.override_instruments([])
        relay.transform.InferType()(model)
    assert first.heard == ["enter", "infer_shapes", "exit"]
    assert second.heard == ["enter", "eliminate_deadend", "exit"]
    with pytest.raises(UsageError, match="override_instruments needs a context that is entered"):
        tvm.transform.PassContext.current().override_instruments([second])


def test_the_trace_stays_when_instruments_are_overridden() -> None:
    seen: list[str] = []

    def trace(model: object, info: tiered.PassInfo, is_before: bool) -> None:
        if is_before:
            seen.append(info.name)

    with tvm.transform.PassContext(opt_level=3, trace=trace) as ctx:
        ctx.override_instruments([Counts()])
        relay.transform.InferType()(parse(TEXT))
    assert seen == ["infer_shapes"]


# --- pattern tables of targets --------------------------------------------------------------------


@pytest.fixture
def _no_tables() -> Iterator[None]:
    yield
    from tiered.compat.tvm import pattern_tables
    from tiered.extensions.partition import composite

    pattern_tables._TABLES.clear()
    composite._TABLES.pop("npu", None)


@pytest.mark.usefixtures("_no_tables")
def test_a_pattern_table_is_registered_by_a_decorator() -> None:
    register = importlib.import_module("tiered.compat.tvm.relay.op.contrib.register")
    patterns = importlib.import_module("tiered.compat.tvm.relay.dataflow_pattern")

    @register.register_pattern_table("npu")  # type: ignore[untyped-decorator]  # of any module
    def pattern_table() -> list[Any]:
        relu = patterns.is_op("nn.relu")(patterns.wildcard())
        return [("npu.relu_neg", patterns.is_op("negative")(relu))]

    assert pattern_table()[0][0] == "npu.relu_neg"
    table = relay.op.contrib.get_pattern_table("npu")
    assert ops(relay.transform.MergeComposite(table)(parse(TEXT))) == ["MatMul", "npu.relu_neg"]
    with pytest.raises(UsageError, match="no pattern table is registered for 'npuu'; did you mean"):
        relay.op.contrib.get_pattern_table("npuu")


# --- frontends and modules ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "what"),
    [("from_tflite", "tf2onnx.convert --tflite"), ("from_pytorch", "torch.onnx.export")],
)
def test_other_formats_say_what_makes_onnx(name: str, what: str) -> None:
    with pytest.raises(UsageError, match=f"{name} has no equivalent: .*{what}.*from_onnx"):
        getattr(relay.frontend, name)(b"", shape_dict={"x": (1, 4)}, dtype_dict={"x": "float32"})
    with pytest.raises(AttributeError, match="has no attribute 'from_nowhere'"):
        relay.frontend.from_nowhere  # noqa: B018  # raises


def test_a_module_is_printed_and_built() -> None:
    mod, params = relay.frontend.from_onnx(parse(TEXT), freeze_params=False)
    assert "MatMul" in mod.astext(show_meta_data=False)
    assert list(params) == ["w"]
    lib = relay.build_module.build(mod, target="llvm", params=params)
    model: onnx.ModelProto = lib.to_proto()
    (found,) = Session(model).run({"x": np.ones((2, 4), np.float32)}).values()
    assert found.shape == (2, 4)
    seq = tvm.transform.Sequential([relay.transform.InferType()], traceable=True)
    assert len(seq) == 1
