"""Two models on the same inputs, and their changed nodes alone on the values that they read."""

import numpy as np
import pytest
from onnx import numpy_helper

from tests.small import proto
from tests.verify.in_process import InProcess, in_process
from tiered.support.errors import RuntimeFailure
from tiered.support.numerics import Numerics, Promise
from tiered.verify.baseline import RunnableModel
from tiered.verify.model_pair import ModelPair, unprefixed

BEFORE = "g (float[2] x) => (float[2] y) { a = Exp(x)  b = Neg(a)  y = Abs(b) }"
RIGHT = "g (float[2] x) => (float[2] y) { a = Exp(x)  b = Neg(a)  y = Identity(a) }"
WRONG = "g (float[2] x) => (float[2] y) { a = Exp(x)  b = Neg(a)  y = Identity(b) }"
X = np.array([0, 1], np.float32)


def pair(after: str, before: str = BEFORE) -> tuple[InProcess, ModelPair]:
    here, worker = in_process()
    models = RunnableModel(proto(before)), RunnableModel(proto(after))
    return here, ModelPair(worker, *models, {"x": X, "unread": X}, Promise(Numerics.EXACT))


def test_outputs_of_both_are_compared_by_the_promise() -> None:
    here, right = pair(RIGHT)
    assert right.compared().ok
    assert right.compared().numerics == Numerics.EXACT
    assert len(here.opened) == 2
    assert all(each.is_closed for each in here.opened)
    _, wrong = pair(WRONG)
    assert not wrong.compared().ok
    before, after = wrong.ran
    assert (before["y"] == -after["y"]).all()
    assert wrong.protos == (proto(BEFORE), proto(WRONG))


def test_the_reference_runs_both_on_demand() -> None:
    here, right = pair(RIGHT)
    before, after = right.run_reference()
    assert np.allclose(before["y"], np.exp(X))
    assert np.allclose(after["y"], np.exp(X))
    assert [how["runtime"] for how in here.how] == ["reference", "reference"]


def test_changed_nodes_run_on_the_values_that_they_read() -> None:
    here, wrong = pair(WRONG)
    changed = wrong.changed
    assert changed is not None
    assert wrong.changed is changed
    assert (set(changed.feeds), changed.size) == ({"b"}, 1)
    assert np.allclose(changed.feeds["b"], -np.exp(X))
    assert changed.promise is wrong.promise
    assert here.runs == 1
    before, after = changed.ran
    assert np.allclose(before["y"], np.exp(X))
    assert np.allclose(after["y"], -np.exp(X))
    assert not changed.compared().ok


def test_values_that_are_fed_need_no_run() -> None:
    here, first = pair("g (float[2] x) => (float[2] y) { a = Sin(x)  b = Neg(a)  y = Abs(b) }")
    changed = first.changed
    assert changed is not None
    assert changed.feeds["x"] is X
    assert here.runs == 0


def test_without_a_change_nothing_is_cut_out() -> None:
    assert pair(BEFORE)[1].changed is None


def test_results_have_the_names_of_the_model() -> None:
    assert unprefixed({"border y": 1, "z": 2, "a border x": 3}) == {"y": 1, "z": 2, "a border x": 3}


def test_an_input_that_is_not_fed_is_an_error() -> None:
    _, worker = in_process()
    made = RunnableModel(proto(BEFORE))
    with pytest.raises(RuntimeFailure, match="onnxruntime failed while running model"):
        _ = ModelPair(worker, made, made, {}, Promise(Numerics.EXACT)).ran


def with_default(op: str, ir_version: int = 10) -> RunnableModel:
    model = proto(f"g (float[2] x, float[2] w) => (float[2] y) {{ a = Exp(x)  y = {op}(a, w) }}")
    model.ir_version = ir_version
    zeros = numpy_helper.from_array(np.zeros(2, np.float32), "w")
    model.graph.initializer.append(zeros)
    return RunnableModel(model)


def test_defaults_are_fed_where_the_sample_has_them() -> None:
    """With its default, the models agree: a difference on the user's numbers would be excused."""
    _, worker = in_process()
    models = with_default("Add"), with_default("Sub")
    promise = Promise(Numerics.EXACT)
    assert ModelPair(worker, *models, {"x": X}, promise).compared().ok
    fed = ModelPair(worker, *models, {"x": X, "w": X}, promise)
    assert not fed.compared().ok
    before, after = fed.run_reference()
    assert not np.array_equal(before["y"], after["y"])
    assert fed.changed is not None
    assert set(fed.changed.feeds) == {"a", "w"}
    assert not fed.changed.compared().ok


def test_in_old_files_defaults_cannot_be_fed() -> None:
    _, worker = in_process()
    models = with_default("Add", 3), with_default("Sub", 3)
    assert ModelPair(worker, *models, {"x": X, "w": X}, Promise(Numerics.EXACT)).compared().ok
