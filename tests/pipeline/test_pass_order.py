"""Constraints: which pass stands before which."""

from collections.abc import Iterator

import pytest

from tests.small import drop_neg, fuse_relu, keep_abs, look, registered
from tiered import Sequential
from tiered.compat.executorch import PassManager, this_before_that_pass_constraint
from tiered.support.errors import PassNotFoundError, UsageError


@pytest.fixture(autouse=True)
def _named() -> Iterator[None]:
    with registered(fuse_relu, drop_neg, keep_abs, look):
        yield


def test_an_order_stays_as_given_where_no_constraint_speaks() -> None:
    passes = [drop_neg, look, fuse_relu, keep_abs]
    pipeline = Sequential(passes, constraints=[("fuse_relu", "look")])
    assert pipeline.text == "drop_neg,fuse_relu,look,keep_abs"
    assert Sequential(passes, constraints=[("look", "keep_abs")]) == Sequential(passes)


def test_every_occurrence_and_every_name_of_a_pass_is_meant() -> None:
    passes = "look,constant_folding,look,eliminate_identity"
    pipeline = Sequential(passes, constraints=[("FoldConstant", "look")])
    assert pipeline.text == "fold_constant,look,look,eliminate_identity"


def test_a_group_stands_where_all_that_is_in_it_may() -> None:
    group = Sequential([look, keep_abs], name="inner")
    pipeline = Sequential([group, fuse_relu], constraints=[("fuse_relu", "keep_abs")])
    assert pipeline.text == "fuse_relu,inner(look,keep_abs)"
    within = Sequential([group, drop_neg], constraints=[("keep_abs", "look")])
    assert within.text == "inner(look,keep_abs),drop_neg"


def test_a_pass_that_is_not_there_constrains_nothing() -> None:
    assert Sequential([look], constraints=[("fold_constant", "look")]).text == "look"
    with pytest.raises(PassNotFoundError, match="did you mean 'fold_constant'"):
        Sequential([look], constraints=[("fold_constnat", "look")])


def test_constraints_that_contradict_each_other_are_named() -> None:
    around = [("look", "fuse_relu"), ("fuse_relu", "drop_neg"), ("drop_neg", "look")]
    with pytest.raises(UsageError, match="look before fuse_relu before drop_neg before look"):
        Sequential([look, fuse_relu, drop_neg], constraints=around)


def test_what_is_no_pair_is_no_constraint() -> None:
    with pytest.raises(UsageError, match="a constraint is two names"):
        Sequential([look], constraints=["ab"])  # type: ignore[list-item]  # that is what is tested


def test_the_manager_of_executorch_keeps_to_constraints() -> None:
    manager = PassManager([look, drop_neg, fuse_relu])
    manager.add_constraint(this_before_that_pass_constraint(fuse_relu, "look"))
    assert manager.pipeline.text == "drop_neg,fuse_relu,look"
