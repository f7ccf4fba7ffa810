"""Checks as an instrument: a pass that breaks one is undone."""

import pytest

from tests.small import content, drop_neg, fuse_relu, look, model, ops
from tiered import Model, PassContext, Sequential
from tiered.pipeline.instruments import Checks
from tiered.support.errors import PostconditionError, UsageError


def has_neg(model: Model) -> bool:
    return bool(model.main.nodes_of("Neg"))


def test_a_pass_that_breaks_a_check_is_undone() -> None:
    given = model()
    before = content(given)
    expected = "check has_neg failed after drop_neg of the model: it returned False"
    with (
        PassContext(3, instruments=[Checks(has_neg)]),
        pytest.raises(PostconditionError, match=expected),
    ):
        Sequential([fuse_relu, drop_neg])(given)
    assert content(given) == before


def test_on_error_skip_undoes_that_pass_only() -> None:
    given = model()
    with PassContext(3, on_error="skip", instruments=[Checks(has_neg, "final_check")]) as ctx:
        Sequential([fuse_relu, drop_neg, look])(given)
    assert ops(given) == ["Relu", "Neg", "Abs"]
    assert [result.name for result in ctx.report.failed()] == ["drop_neg"]


def test_a_pass_that_changes_nothing_is_not_checked() -> None:
    asked: list[Model] = []
    with PassContext(instruments=[Checks(asked.append)]):
        look(model())
        assert not asked
        fuse_relu(model())
    assert len(asked) == 1


@pytest.mark.parametrize("check", [3, lambda: None, "infer_shapes", fuse_relu])
def test_what_is_no_check_is_refused(check: object) -> None:
    with pytest.raises(UsageError, match=r"check"):
        Checks(check)  # type: ignore[arg-type]  # the point
