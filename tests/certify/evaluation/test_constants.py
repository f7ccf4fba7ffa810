"""Nodes whose operands are known are computed by onnxruntime."""

import numpy as np
import pytest

from tests.certify.call import call, known
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
