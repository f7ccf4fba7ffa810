"""Nodes whose operands are known are computed by onnxruntime."""

from collections import OrderedDict

import numpy as np
import onnx
import pytest

from tests.certify.call import call, known
from tiered.certify.evaluation import constants
from tiered.certify.evaluation.constants import run_node
from tiered.certify.evaluation.values import MOST_ELEMENTS, Unproved

X = known([1.0, 5.0, 3.0], np.float32)


def test_absent_operands_and_results_stay_absent() -> None:
    (clipped,) = run_node(call("Clip", X, None, known(2, np.float32)))
    assert clipped is not None
    assert clipped.known is not None
    assert clipped.known.tolist() == [1, 2, 2]
    values, first, places = run_node(call("Unique", X, outputs=("values", "", "places")))
    assert first is None
    assert [
        each.known.tolist() for each in (values, places) if each and each.known is not None
    ] == [
        [1, 3, 5],
        [0, 2, 1],
    ]


def test_operators_of_other_domains_and_what_was_computed_before() -> None:
    node = call("com.microsoft::QuickGelu", X, alpha=0.0)
    for _ in range(2):
        (found,) = run_node(node)
        assert found is not None
        assert found.known is not None
        assert found.known.tolist() == [0.5, 2.5, 1.5]
    assert node.axioms == {"constants-by-runtime"}


def test_what_is_no_tensor_or_too_large_is_not_computed() -> None:
    with pytest.raises(Unproved, match="a constant SequenceConstruct is no tensor"):
        run_node(call("SequenceConstruct", X))
    with pytest.raises(Unproved, match="onnxruntime does not compute a constant Nothing"):
        run_node(call("Nothing", X))
    with pytest.raises(Unproved, match="elements are computed"):
        run_node(call("Not", known(np.zeros(MOST_ELEMENTS + 1), np.bool_)))


def test_few_small_results_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = list[str]()

    def run(node: onnx.NodeProto, *_: object) -> list[np.ndarray]:
        ran.append(node.op_type)
        return [np.zeros(3, np.float32)]

    monkeypatch.setattr(constants, "_run", run)
    monkeypatch.setattr(constants, "_RESULTS", OrderedDict())
    monkeypatch.setattr(constants, "_KEPT", 2)
    for most, counts in ((12, [1, 1, 2, 2, 3, 3, 3, 4]), (11, [1, 2, 3, 4, 5, 6, 7, 8])):
        monkeypatch.setattr(constants, "_KEPT_BYTES", most)
        ran.clear()
        constants._RESULTS.clear()
        found = []
        for op in ("Neg", "Neg", "Abs", "Neg", "Exp", "Exp", "Abs", "Neg"):
            run_node(call(op, X))
            found.append(len(ran))
        assert found == counts


def test_constants_of_at_most_some_elements_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "_run", lambda *_: [np.zeros(3, np.float32)])
    monkeypatch.setattr(constants, "MOST_ELEMENTS", 6)
    assert len(run_node(call("Add", X, X))) == 1
    with pytest.raises(Unproved, match="constants of more than 6 elements are computed"):
        run_node(call("Sum", X, X, known([1], np.float32)))
