"""The reference check: it excuses what onnxruntime is known for, and nothing else."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from tests.small import proto
from tests.verify.in_process import in_process
from tiered import Graph, Skip, Value, VerificationError, op, optimize_model, rewrite, var
from tiered.runtime import Worker
from tiered.runtime.compare.outputs import Comparison, OutputDifference, compare
from tiered.support.errors import RuntimeFailure
from tiered.support.numerics import EXACT, Numerics
from tiered.verify.baseline import RunnableModel
from tiered.verify.changed_region import RegionPair, changed_region, with_outputs
from tiered.verify.model_pair import ModelPair
from tiered.verify.reference_check import (
    Opinion,
    reference_opinion,
    region_opinion,
    ruling_on_halves,
    ruling_on_refitted,
)

CHOOSE = """g (float[N,3] x, bool[N,3] c) => (float[N,3] y) {
    a = Neg(x)  b = Where(c, a, a)  y = Identity(b) }"""
ZEROS = {"x": np.zeros((2, 3), np.float32), "c": np.ones((2, 3), bool)}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as made:
        yield made


@rewrite(op.Where(var.c, var.x, var.x), opt_level=None)
def drop_where(graph: Graph, c: Value, x: Value) -> Value:
    """Right, though onnxruntime's Where makes +0.0 of -0.0."""
    return x


@rewrite(op.Where(var.c, var.x, var.x), opt_level=None)
def negate(graph: Graph, c: Value, x: Value) -> Value:
    """Wrong."""
    result: Value = graph.op.Neg(x)
    return result


def judged(worker: Worker, before: str, after: str, feeds: Any) -> Opinion:
    return judged_protos(worker, proto(before), proto(after), feeds)


def judged_protos(
    worker: Worker, before: onnx.ModelProto, after: onnx.ModelProto, feeds: Any
) -> Opinion:
    outputs = [worker.run(model, feeds) for model in (before, after)]
    found = compare(outputs[0], outputs[1])
    assert not found.ok
    models = ModelPair(worker, RunnableModel(before), RunnableModel(after), feeds, EXACT)
    return reference_opinion(models, found)


def pair(before: str, after: str, x: Any) -> ModelPair:
    """Return two models of x and y that run in this process."""
    one, two = (
        RunnableModel(proto(f"g (float[N] x) => (float[N] y) {text}")) for text in (before, after)
    )
    return ModelPair(in_process()[1], one, two, {"x": np.array([x], np.float32)}, EXACT)


def failed(reason: str) -> Comparison:
    return Comparison([OutputDifference("y", False, reason=reason)], Numerics.EXACT)


CLIP, TWO, EXP = (
    "{ a = Clip(x)  y = Neg(a) }",
    "{ b = Clip(x)  a = Identity(b)  y = Neg(a) }",
    "{ a = Exp(x)  y = Neg(a) }",
)


def test_the_opinion_names_what_stands_against_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def opinion(before: str, after: str, x: float) -> tuple[bool, str]:
        found = reference_opinion(pair(before, after, x), failed("it differs"))
        return found.is_excused, found.text

    unknown = "equal on onnx.reference, but not on onnxruntime, for no known reason"
    same = "onnxruntime alone: the changed nodes cannot be cut out"
    assert opinion(CLIP, CLIP, 1) == (False, same)
    assert opinion(CLIP, TWO, 1) == (False, unknown)
    assert opinion(CLIP, EXP, np.inf)[0]
    monkeypatch.setattr("tiered.runtime.deviations.DEVIATIONS", ())
    for other in (EXP, TWO):
        is_excused, text = opinion(CLIP, other, np.inf)
        assert not is_excused
        assert text.startswith(
            "onnxruntime and onnx.reference disagree on the unchanged model already: a: 1 of 1"
        ), other
    for most, is_large in ((-1, True), (0, False)):
        monkeypatch.setattr("tiered.verify.reference_check.MOST_READ", most)
        large = "onnxruntime alone: the weights are too large for onnx.reference"
        assert opinion(CLIP, TWO, 1) == (False, large if is_large else unknown)


def test_nodes_around_may_show_a_deviation_of_changed_nodes_that_agree() -> None:
    models = pair("{ a = Neg(x)  y = Where(c, a, a) }", "{ y = Neg(x) }", 0)
    changed = pair("{ y = Neg(x) }", "{ a = Neg(x)  y = Identity(a) }", 1)
    found = failed("1 of 1 elements differ in the sign of zero")
    opinion = region_opinion(changed, found, models)
    assert opinion.text.startswith("equal on onnx.reference, not on onnxruntime, as is known (wh")
    assert not region_opinion(changed, found, changed).is_excused


def test_the_reference_rules_where_it_can_be_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_asked(before: str, after: str, x: float) -> bool:
        ruling = ruling_on_halves(pair(before, after, x))
        assert ruling.failed is None
        return ruling.is_asked

    assert is_asked(CLIP, TWO, 1)
    assert not is_asked(CLIP, CLIP, 1), "no node is changed"
    assert not is_asked(CLIP, EXP, 1), "onnxruntime finds a difference"
    assert not is_asked(CLIP, TWO, np.inf), "onnx.reference computes another number"
    for most, expected in ((4, True), (3, False)):
        monkeypatch.setattr("tiered.verify.reference_check._MOST_RULED", most)
        assert is_asked(CLIP, TWO, 1) == expected, most


def test_the_reference_rules_on_another_interface_where_it_can_be_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = pair(CLIP, CLIP, 1)

    class Before:
        def __init__(self, y: float | None) -> None:
            self.y = y

        def expected_by_reference(self, number: int) -> dict[str, Any]:
            if self.y is None:
                raise RuntimeFailure("it does not run")
            return {"y": np.array([self.y], np.float32)}

    def ruling(by_reference: float | None, known: float) -> tuple[bool, bool, str]:
        outputs = {"y": np.array([known], np.float32)}
        found = ruling_on_refitted(
            Before(by_reference),  # type: ignore[arg-type]  # no model before is needed
            0, models.after, models.feeds, outputs, EXACT, models.worker,
        )  # fmt: skip
        return found.is_asked, found.failed is not None, found.what

    assert ruling(-1, -1) == (True, False, "both models")
    assert ruling(-2, -2) == (True, True, "both models")
    assert ruling(-2, -1) == ruling(None, -1) == (False, False, "")
    for most, is_asked in ((4, True), (3, False)):
        monkeypatch.setattr("tiered.verify.reference_check._MOST_RULED", most)
        assert ruling(-1, -1)[0] == is_asked, most


def test_a_known_deviation_of_onnxruntime_blames_no_pass() -> None:
    result = optimize_model(proto(CHOOSE), passes=[drop_where], verify=True, inputs=[ZEROS])
    (remark,) = [remark for remark in result.remarks if remark.kind == "verify"]
    assert remark.pass_name == "drop_where"
    assert remark.reason.startswith("equal on onnx.reference, not on onnxruntime, as is known (wh")


def test_a_wrong_pass_fails_on_both_runtimes() -> None:
    with pytest.raises(VerificationError) as caught:
        optimize_model(proto(CHOOSE), passes=[negate], verify=True)
    message = str(caught.value)
    assert "\n  judged      onnx.reference agrees: the changed nodes compute another b: " in message


def test_a_disagreement_on_the_unchanged_model_is_reported(worker: Worker) -> None:
    # onnx.reference keeps an infinity, as the standard says, and onnxruntime's Clip does not.
    clip, neg, exp = (
        f"g (float[1] x) => (float[1] y) {{ y = {kind}(x) }}" for kind in ("Clip", "Neg", "Exp")
    )
    feeds = {"x": np.array([np.inf], np.float32)}
    opinion = judged(worker, clip, neg, feeds)
    assert not opinion.is_excused
    assert "disagree on the unchanged model already: y: 1 of 1 elements differ" in opinion.text
    assert judged(worker, clip, exp, feeds).is_excused


def test_without_a_reference_onnxruntime_alone_judges(worker: Worker) -> None:
    header = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]> '
    text = "g (float[2] x) => (float[2] y) { y = com.microsoft.OP(x) }"
    one, two = (
        onnx.parser.parse_model(header + text.replace("OP", kind)) for kind in ("Gelu", "QuickGelu")
    )
    opinion = judged_protos(worker, one, two, {"x": np.array([1, -2], np.float32)})
    assert opinion.text.startswith("onnxruntime alone, as onnx.reference failed")


def test_an_unknown_liberty_is_no_excuse(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.runtime.deviations.DEVIATIONS", ())
    after = CHOOSE.replace("Where(c, a, a)", "Identity(a)")
    opinion = judged(worker, CHOOSE, after, ZEROS)
    assert not opinion.is_excused
    assert opinion.text == "equal on onnx.reference, but not on onnxruntime, for no known reason"


# --- the region -----------------------------------------------------------------------------------

LONG = """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
    a = Neg(x)  b = Mul(a, w)  c = Abs(b)  d = Exp(c)  y = Neg(d) }"""


def ops(region: RegionPair) -> list[list[str]]:
    """Return the operators before and after."""
    return [
        [node.op_type for node in cut.graph.node if not node.output[0].startswith("border")]
        for cut in region.cuts({})
    ]


def test_the_region_has_the_changed_nodes_and_their_borders() -> None:
    region = changed_region(proto(LONG), proto(LONG.replace("Abs(b)", "Relu(b)")))
    assert region is not None
    assert ops(region) == [["Abs"], ["Relu"]]
    assert (region.reads, region.writes) == (("b",), ("c",))


def test_names_of_nodes_do_not_count() -> None:
    other = proto(LONG)
    other.graph.node[1].name = "renamed"
    assert changed_region(proto(LONG), other) is None


def test_other_numbers_of_a_constant_change_who_reads_it() -> None:
    region = changed_region(proto(LONG), proto(LONG.replace("{1, 2}", "{1, 3}")))
    assert region is not None
    assert ops(region) == [["Mul"], ["Mul"]]
    assert region.reads == ("a",)


def test_a_node_that_became_a_constant_is_a_border_still(worker: Worker) -> None:
    before = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Neg(w)  y = Add(x, a) }"
    after = "g (float[2] x) => (float[2] y) <float[2] a = {1, -2}> { y = Add(x, a) }"
    region = changed_region(proto(before), proto(after))
    assert region is not None
    assert (region.reads, region.writes) == ((), ("a",))
    opinion = judged(worker, before, after, {"x": np.ones(2, np.float32)})
    assert "the changed nodes compute another a: 1 of 2" in opinion.text


BODY = """g (bool c, float[2] x) => (float[2] y) { a = Neg(x)
    y = If(c) <then_branch = t () => (float[2] p) { p = OP(a) },
               else_branch = e () => (float[2] q) { q = Abs(x) }> }"""


def test_a_changed_body_is_its_owner_with_its_captured_values(worker: Worker) -> None:
    before, after = BODY.replace("OP", "Relu"), BODY.replace("OP", "Exp")
    region = changed_region(proto(before), proto(after))
    assert region is not None
    assert ops(region) == [["If"], ["If"]]
    assert region.reads == ("c", "a", "x")
    feeds = {"c": np.array(True), "x": np.ones(2, np.float32)}
    assert "onnx.reference agrees" in judged(worker, before, after, feeds).text


def test_a_changed_function_is_its_calls(worker: Worker) -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "f": 1]>
        g (float[2] x) => (float[2] y) { a = Neg(x)  b = f.outer(a)  y = Abs(b) }
        <domain: "f", opset_import: ["": 21, "f": 1]> outer (x) => (y) { y = f.inner(x) }
        <domain: "f", opset_import: ["": 21]> inner (x) => (y) { y = OP(x) }"""
    models = [onnx.parser.parse_model(text.replace("OP", kind)) for kind in ("Exp", "Relu")]
    region = changed_region(*models)
    assert region is not None
    assert (ops(region)[0], region.reads, region.writes) == (["outer"], ("a",), ("b",))
    feeds = {"x": np.array([1, -1], np.float32)}
    assert "onnx.reference agrees" in judged_protos(worker, models[0], models[1], feeds).text


def test_inner_values_can_be_asked_for() -> None:
    probe = with_outputs(proto(LONG), ["b", "y"])
    assert [value.name for value in probe.graph.output] == ["y", "b"]


# --- 16-bit floats --------------------------------------------------------------------------------

SINGLES = """g (float[N] x) => (float[N] y) <float a = {0.5}, float b = {2}> {
    h = Mul(x, a)  m = Mul(h, b)  y = Identity(m) }"""
# The parser takes the bits of a half.
HALVES = SINGLES.replace("float", "float16").replace("0.5", "14336").replace("2}", "16384}")
LARGE = {"x": np.array([60000, 1], np.float16)}


@rewrite(op.Mul(op.Mul(var.x, var.a), var.b), opt_level=None)
def multiply_the_other_way_round(graph: Graph, x: Value, a: Value, b: Value) -> Value | Skip:
    """Wrong in float16, where x * b may be larger than all numbers."""
    if b.const is None or b.const < 1:
        return Skip("done")
    result: Value = graph.op.Mul(graph.op.Mul(x, b), a)
    return result


def test_an_overflow_that_onnxruntime_hides_is_found() -> None:
    wide = {"x": LARGE["x"].astype(np.float32)}
    passes = [multiply_the_other_way_round]
    single = proto(SINGLES)
    assert optimize_model(single, passes=passes, verify=True, inputs=[wide]).verified
    with pytest.raises(VerificationError, match=r"judged +onnx\.reference, on the changed nodes"):
        optimize_model(proto(HALVES), passes=passes, verify=True, inputs=[LARGE])


def test_the_report_names_who_judged_halves() -> None:
    result = optimize_model(proto(HALVES), passes=["eliminate_identity"], verify=True)
    assert result.verify is not None
    (way,) = result.verify.ways
    assert way.judge == "onnx.reference"
    assert str(way).endswith("ran on generated inputs, and the changed nodes on onnx.reference")
    single = proto(SINGLES)
    again = optimize_model(single, passes=["eliminate_identity"], verify=True)
    assert again.verify is not None
    assert [way.judge for way in again.verify.ways] == ["onnxruntime"]


def test_changed_nodes_that_read_much_are_not_given_to_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tiered.verify.reference_check._MOST_RULED", 1)
    passes = [multiply_the_other_way_round]
    result = optimize_model(proto(HALVES), passes=passes, verify=True, inputs=[LARGE])
    assert result.verify is not None
    assert [way.judge for way in result.verify.ways] == ["onnxruntime"]


# onnxruntime has no Mul of bfloat16.
NARROW = SINGLES.replace("float", "bfloat16").replace("0.5", "16128").replace("2}", "16384}")
FEW = {"x": np.array([3, 1], ml_dtypes.bfloat16)}


def test_what_onnxruntime_does_not_open_runs_on_the_reference() -> None:
    passes = ["float_to_bfloat16", "eliminate_identity"]
    result = optimize_model(proto(SINGLES), passes=passes, verify=True)
    assert result.verify is not None
    assert result.verified
    assert [way.judge for way in result.verify.ways] == ["onnx.reference", "onnx.reference"]
    assert optimize_model(proto(NARROW), passes=["eliminate_identity"], verify=True).verified


@rewrite(op.Mul(op.Mul(var.x, var.a), var.b), opt_level=None)
def forget_a_factor(graph: Graph, x: Value, a: Value, b: Value) -> Value:
    """Wrong."""
    result: Value = graph.op.Mul(x, b)
    return result


def test_a_wrong_result_is_found_where_onnxruntime_opens_neither() -> None:
    with pytest.raises(VerificationError, match="forget_a_factor changed output 'y'"):
        optimize_model(proto(NARROW), passes=[forget_a_factor], verify=True, inputs=[FEW])


def test_a_large_result_that_onnxruntime_does_not_open_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tiered.verify.baseline.MOST_READ", -1)
    with pytest.raises(VerificationError, match="opens the model before, but not the result"):
        optimize_model(proto(SINGLES), passes=["float_to_bfloat16"], verify=True)


def test_halves_between_equal_nodes_are_judged_by_the_whole_model() -> None:
    """Mul is the same node before and after, in another type: the changed nodes alone do not run.

    The sum of squares is infinite in halves, which onnxruntime computes in 32 bits.
    """
    text = """g (float[2,8] x) => (float[2,8] y) <float k = {300}> {
        m = Mul(x, k)  s = ReduceSumSquare<axes=[1], keepdims=1>(m)  q = Sqrt(s)  y = Div(m, q) }"""
    header = '<ir_version: 8, opset_import: ["" : 13]>'
    x = np.linspace(1, 2, 16, dtype=np.float32).reshape(2, 8)
    with pytest.raises(VerificationError, match=r"onnx\.reference, on both models"):
        optimize_model(
            onnx.parser.parse_model(f"{header} {text}"),
            passes=["float_to_half"],
            verify=True,
            inputs=[{"x": x}],
        )
