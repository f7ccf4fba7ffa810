"""The life of a pass: what is in preview waits to be asked for, what is deprecated says so."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.small import registered
from tiered import Graph, PassContext, Sequential, Value, op, rewrite, var
from tiered.support.errors import PassNotFoundError, UsageError
from tiered.testing import parse

TEXT = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[4] x) => (float[4] y) { a = Neg(x) b = Neg(a) c = Abs(b) y = Abs(c) }
"""


@rewrite(op.Neg(op.Neg(var.x)), opt_level=1, life="preview")
def early_neg(graph: Graph, x: Value) -> Value:
    """Drop pairs of Neg."""
    return x


@rewrite(op.Abs(op.Abs(var.x)), opt_level=1, life="deprecated", replacement="eliminate_nop_abs")
def late_abs(graph: Graph, x: Value) -> Value:
    """Drop the second Abs."""
    return graph.op.Abs(x)


def drop(graph: Graph, x: Value) -> Value:
    """Drop the node."""
    return x


PIPELINE = Sequential([early_neg, late_abs])


@pytest.fixture(autouse=True)
def _named() -> Iterator[None]:
    with registered(early_neg, late_abs):
        yield


def operators(context: PassContext) -> list[str]:
    with context:
        return [node.op_type for node in PIPELINE(parse(TEXT)).graph.node]


@pytest.mark.parametrize("level", [1, 4])
def test_no_level_runs_a_pass_in_preview(level: int) -> None:
    context = PassContext(opt_level=level)
    assert operators(context) == ["Neg", "Neg", "Abs"]
    assert context.decide("early_neg").reason == "in preview: runs only when required"


@pytest.mark.parametrize("entry", ["early_neg", "life:preview"])
def test_a_pass_in_preview_runs_when_required(entry: str) -> None:
    assert operators(PassContext(opt_level=1, required=[entry])) == ["Abs"]


def test_deprecated_passes_can_be_disabled_together() -> None:
    context = PassContext(opt_level=1, disabled=["life:deprecated"])
    assert operators(context) == ["Neg", "Neg", "Abs", "Abs"]


def test_a_deprecated_pass_that_runs_names_its_replacement() -> None:
    context = PassContext(opt_level=1)
    operators(context)
    said = [str(each) for each in context.remarks if each.kind == "deprecated"]
    assert said == ["late_abs: deprecated: use eliminate_nop_abs"]


def test_the_remarks_of_other_passes_name_none() -> None:
    context = PassContext(opt_level=1, disabled=["late_abs"])
    operators(context)
    assert not [each for each in context.remarks if each.kind == "deprecated"]


def test_a_stage_that_there_is_not_is_an_error() -> None:
    with pytest.raises(UsageError, match="'life:new': expected life:preview or life:stable"):
        PassContext(required=["life:new"])


def test_a_stage_without_passes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.passes.policy.selectors.passes_by_life", lambda _: ())
    with pytest.raises(PassNotFoundError, match="'life:preview' fits no pass: none is preview"):
        PassContext(required=["life:preview"])


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"life": "old"}, "life is one of preview, stable, deprecated, not 'old'"),
        ({"life": "deprecated"}, "a deprecated pass has a replacement"),
        ({"replacement": "fuse_gelu"}, "a deprecated pass has a replacement"),
    ],
)
def test_a_life_that_does_not_fit_is_an_error(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rewrite(op.Abs(var.x), opt_level=1, name="other", **declared)(drop)
