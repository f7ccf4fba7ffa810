"""Passes of TVM's last versions that are several passes or options here."""

from typing import Any

import pytest

import tiered
from tests.recorded import assert_values
from tests.small import ops
from tiered.compat import tvm
from tiered.compat.tvm import newer_passes, relay
from tiered.support.errors import (
    UsageError,
)
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


def test_a_type_of_halves_is_a_pass() -> None:
    assert relay.transform.ToMixedPrecision().name == "float_to_half"
    assert relay.transform.ToMixedPrecision("float16", 2).name == "float_to_half"
    with pytest.raises(UsageError, match="missing_op_mode=3 has no equivalent"):
        relay.transform.ToMixedPrecision("bfloat16", 3)


def test_optional_operators_of_codes_have_no_equivalent() -> None:
    for wrong in ({"hard_fail": True}, {"optional_qnn_ops": ["qnn.add"]}):
        with pytest.raises(UsageError, match="hard_fail and optional_qnn_ops have no equivalent"):
            relay.transform.FakeQuantizationToInteger(**wrong)
    made = relay.transform.FakeQuantizationToInteger(use_qat=True, optional_qnn_ops=[])
    assert made.name == "FakeQuantizationToInteger"


@pytest.mark.parametrize(
    ("values", "options", "growth"),
    [
        ((), {}, "1GB"),
        ((True,), {}, "1GB"),
        ((False, "3%"), {}, "3%"),
        (("2%",), {}, "2%"),
        ((), {"max_growth": "5%"}, "5%"),
        ((), {"fold_qnn": True}, "1GB"),
    ],
)
def test_folding_may_let_a_model_grow(values: Any, options: Any, growth: str) -> None:
    assert relay.transform.FoldConstant(*values, **options).options["max_growth"] == growth


def test_an_option_of_folding_has_one_value() -> None:
    with pytest.raises(UsageError, match=r"^FoldConstant: 'max_growth' is given twice"):
        relay.transform.FoldConstant("2%", max_growth="3%")
    count = len(tiered.get_pass("fold_constant").info.options)
    with pytest.raises(UsageError, match=f"^FoldConstant takes {count} options, not {count + 1}"):
        relay.transform.FoldConstant(True, *["1"] * (count + 1))


def test_functions_of_one_domain_are_inlined() -> None:
    assert relay.transform.DefuseOps().options["domains"] == ("tiered.fused",)
    assert (
        relay.transform.InlineComposites("npu").options["domains"]
        == relay.transform.InlineComposites("x").options["domains"]
    )
    assert relay.transform.PlanDevices().options["propagate"] is True
    first = relay.transform.FirstOrderGradient().options
    assert (first["higher_order"], first["seed"]) == (False, "ones")
    assert relay.transform.Conv2dToSparse(["w"]).options["threshold"] == 1.0


def test_constructors_of_newer_passes_are_recorded() -> None:
    def shown(name: str, *args: Any, **more: Any) -> str:
        return str(getattr(newer_passes, name)(*args, **more))

    assert_values(__file__, {"shown": shown, "listed": newer_passes.listed})
