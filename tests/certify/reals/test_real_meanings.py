"""Gather and If over the reals, by what is known of indices and conditions."""

import numpy as np
import onnx
import pytest

from tests.certify.call import INT64
from tests.certify.reals.field import number, ran, unknown
from tiered.certify.evaluation.values import Unproved


def test_a_gather_takes_elements_or_depends_on_the_indices() -> None:
    x = unknown("x", 2, 3)
    assert (ran("Gather", x, number([1, 0], np.int64)).terms == x.terms[[1, 0]]).all()
    other = ran("Gather", x, unknown("at", 2, dtype=INT64))
    assert other.shape == (2, 3)
    assert not (other.terms == x.terms[[1, 0]]).all()
    assert not (other.terms == x.terms).all()


def test_an_if_of_an_unknown_condition_has_no_rule() -> None:
    one, two = (
        onnx.parser.parse_graph(f"g () => (p) {{ p = Constant<value_floats = [{number}.0]>() }}")
        for number in (1, 2)
    )
    held = {"then_branch": one, "else_branch": two}
    found = ran("If", number(False, np.bool_), **held).known
    assert found is not None
    assert found.tolist() == [2.0]
    with pytest.raises(Unproved, match="an If of an unknown condition"):
        ran("If", unknown("c", dtype=int(onnx.TensorProto.BOOL)), **held)
