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


def test_mixed_precision_is_halves_or_bfloat16() -> None:
    model = parse(TEXT)
    assert ops(relay.transform.ToMixedPrecision()(model))[0] == "Cast"
    made = relay.transform.ToMixedPrecision("bfloat16", missing_op_mode=2)
    assert made.name == "float_to_bfloat16"
    with pytest.raises(UsageError, match="takes float16 or bfloat16, not 'float61'; did you mean"):
        relay.transform.ToMixedPrecision("float61")
    with pytest.raises(UsageError, match="missing_op_mode=0 has no equivalent"):
        relay.transform.ToMixedPrecision("float16", 0)


def test_fused_functions_are_inlined_again() -> None:
    view = tiered.Model.from_proto(parse(TEXT))
    with tvm.transform.PassContext(opt_level=3):
        fused = relay.transform.FuseOps(2)(view)
        assert [node.op_type for node in fused.main.nodes] == ["fused_MatMul_Relu_Neg"]
        again = relay.transform.DefuseOps()(fused)
    assert [node.op_type for node in again.main.topological_order()] == ["MatMul", "Relu", "Neg"]


def test_composites_are_inlined_again() -> None:
    table = [("npu.relu_neg", "(x) => (y) { a = Relu(x) y = Neg(a) }")]
    merged = relay.transform.MergeComposite(table)(parse(TEXT))
    assert ops(merged) == ["MatMul", "npu.relu_neg"]
    assert ops(relay.transform.InlineComposites("npu")(merged)) == ["MatMul", "Relu", "Neg"]


def test_operators_between_codes_compute_on_integers() -> None:
    text = """(float[2,4] x) => (float[2,4] y) <float s = {0.5}, uint8 z = {128}, uint8[4,4] w = {
            1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {
        q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) e = DequantizeLinear(w, s, z)
        m = MatMul(d, e) r = QuantizeLinear(m, s, z) y = DequantizeLinear(r, s, z) }"""
    model = parse(text)
    lower = relay.transform.FakeQuantizationToInteger(hard_fail=False, use_qat=False)
    with tvm.transform.PassContext(opt_level=3), tvm.target.Target("llvm"):
        made = lower(model)
    assert ops(made) == ["QuantizeLinear", "QLinearMatMul", "DequantizeLinear"]
    with (
        tvm.transform.PassContext(opt_level=3),
        pytest.raises(UsageError, match="the backend portable wants no quantised operators"),
    ):
        lower(model)
    with pytest.raises(UsageError, match="hard_fail and optional_qnn_ops have no equivalent"):
        relay.transform.FakeQuantizationToInteger(hard_fail=True)


def test_devices_are_planned() -> None:
    made = relay.transform.PlanDevices(None)(parse(TEXT))
    assert {prop.value for node in made.graph.node for prop in node.metadata_props} == {"cpu"}


def test_gradients_and_sparse_convolutions() -> None:
    made = relay.transform.FirstOrderGradient()(parse(TEXT))
    assert len(made.graph.output) == 2
    weight = ",".join(["0"] * 71 + ["2"])
    text = f"""(float[1,2,4,4] x) => (float[1,4,2,2] y) <float[4,2,3,3] w = {{{weight}}}> {{
        y = Conv(x, w) }}"""
    sparse = relay.transform.Conv2dToSparse(["w"], [[1, 1, 1]], "NCHW", 3)(parse(text))
    assert [each.values.name for each in sparse.graph.sparse_initializer] == ["w"]


@pytest.mark.parametrize(
    ("name", "arguments", "passes"),
    [
        ("BatchingOps", {}, ["combine_parallel_conv2d", "combine_parallel_dense",
                             "combine_parallel_batch_matmul"]),
        ("SimplifyExprPostAlterOp", {}, ["fuse_consecutive_reshape", "fuse_consecutive_transpose"]),
        ("ToANormalFormExpr", {}, ["topological_sort"]),
        ("DivToMul", {}, ["replace_div_with_mul"]),
        ("FoldConstant", {"fold_qnn": False}, ["fold_constant"]),
        ("DeadCodeElimination", {"inline_once": False, "ignore_impurity": True},
         ["eliminate_deadend"]),
    ],
)  # fmt: skip
def test_passes_of_other_names(name: str, arguments: dict[str, Any], passes: list[str]) -> None:
    made = getattr(relay.transform, name)(**arguments)
    leaves = made.leaves() if isinstance(made, tiered.Sequential) else [made]
    assert [leaf.name for leaf in leaves] == passes


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
