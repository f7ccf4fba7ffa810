"""What differs only as people run it is said, and no pass is undone for it."""

from typing import Any

import numpy as np
import pytest

from tests.runtime.test_deviations import recurrent
from tests.small import proto
from tiered import QUANTIZED, Graph, Value, op, optimize_model, rewrite, var
from tiered.runtime.deviations import DEVIATIONS, installed
from tiered.runtime.opening import Setting
from tiered.runtime.worker.client import Worker
from tiered.support.errors import RuntimeFailure
from tiered.verify.baseline import Baseline, Outputs
from tiered.verify.deployment import Deployment

PRODUCT = "g (double[3,4] x, double[3] v) => (double[4] y) { i = Identity(v)  y = MatMul(i, x) }"
FEEDS = {"x": np.arange(12.0).reshape(3, 4), "v": np.array([1.0, 10, 100])}


@rewrite(op.MatMul(op.Identity(var.v), var.x), opt_level=3, numerics="reassociating")
def turn(graph: Graph, v: Value, x: Value) -> Value:
    """Right, though onnxruntime's optimisations are wrong about it."""
    result: Value = graph.op.MatMul(graph.op.Transpose(x, perm=[1, 0]), v)
    return result


def said(passes: Any, text: Any, feeds: Any, **settings: Any) -> list[str]:
    given = proto(text) if isinstance(text, str) else text
    result = optimize_model(
        given, passes=passes, verify=settings.pop("verify", True), inputs=[feeds], **settings
    )
    return [remark.reason for remark in result.remarks if remark.kind == "verify"]


@pytest.mark.parametrize("how", ["each", "final"])
def test_a_difference_in_the_default_session_is_remarked(how: str) -> None:
    (known,) = (d for d in DEVIATIONS if d.name == "transpose_into_product_with_vector")
    if not known.is_of(installed()):
        pytest.skip("this onnxruntime has mended it")
    (remark,) = said([turn], PRODUCT, FEEDS, verify=how)
    assert remark.startswith("in onnxruntime's default session, with its optimisations, the result")
    assert "y: 4 of 4 elements differ" in remark
    assert "off they agree" in remark
    assert "it computes the result otherwise there" in remark
    assert "transpose_into_product_with_vector" in remark


def test_equal_outputs_in_the_default_session_need_no_remark() -> None:
    assert said(["eliminate_identity"], PRODUCT, FEEDS) == []


def test_the_default_session_can_be_left_out() -> None:
    off = {"verify.default_session": False}
    assert said([turn], PRODUCT, FEEDS, config=off) == []


def test_a_difference_by_packed_constants_is_remarked() -> None:
    x = np.random.default_rng(1).standard_normal((5, 1, 32)).astype(np.float32)
    remarks = said(["eliminate_identity"], recurrent("computed"), {"x": x})
    for remark in remarks:  # some processors add up both alike
        assert remark.startswith("with onnxruntime's own number of threads and packed constants")
        assert "packed_constants" in remark


def test_a_failure_in_the_default_session_is_remarked(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Worker.open

    def opened(self: Worker, model: Any, **settings: Any) -> Any:
        if settings.get("setting") == "default" and b"Transpose" in model:
            raise RuntimeFailure("an optimiser fails")
        return original(self, model, **settings)

    monkeypatch.setattr(Worker, "open", opened)
    (remark,) = said([turn], PRODUCT, FEEDS)
    assert remark.endswith("the original runs, but not the result: an optimiser fails")
    # An original that does not run there either says nothing of the passes.
    before = PRODUCT.replace(
        "i = Identity(v)  y = MatMul(i, x)",
        """t = Transpose<perm = [1,0]>(x)
        i = Identity(v)  y = MatMul(t, i)""",
    )
    assert said(["eliminate_identity"], before, FEEDS) == []


def test_a_change_of_the_interface_is_where_comparing_begins() -> None:
    text = "g (float[N,3] x) => (float[N,3] y) { i = Identity(x)  y = Relu(i) }"
    feeds = {"x": np.ones((1, 3), np.float32)}
    passes = ["const_batch_size", "eliminate_identity"]
    assert said(passes, text, feeds, required=["const_batch_size"]) == []


@rewrite(op.Neg(op.Identity(var.v)), opt_level=3, numerics=QUANTIZED)
def skip_identity(graph: Graph, v: Value) -> Value:
    result: Value = graph.op.Neg(v)
    return result


@pytest.mark.parametrize(("by", "remarks"), [(1.5, 0), (2.5, 1)])
def test_the_original_may_be_off_by_a_quantisation_too(
    monkeypatch: pytest.MonkeyPatch, by: float, remarks: int
) -> None:
    """The result is off by so many times what is promised, in the default session."""
    outputs = Deployment._outputs

    def off(self: Deployment, state: Baseline, setting: Setting) -> list[Outputs]:
        made = outputs(self, state, setting)
        if setting == "default" and state is self.after:
            return [{name: value * (1 + by / 64) for name, value in each.items()} for each in made]
        return made

    monkeypatch.setattr(Deployment, "_outputs", off)
    text = "g (float[2] v) => (float[2] y) { i = Identity(v)  y = Neg(i) }"
    said_now = said([skip_identity], text, {"v": np.ones(2, np.float32)})
    assert len(said_now) == remarks
