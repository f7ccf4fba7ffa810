"""Checks of a pipeline: what may be one, and what a failure says."""

import copy
import functools

import pytest

from tests.small import model
from tiered import Model, PassError, get_pass
from tiered.passes.policy.pipeline_checks import Check, checks_of
from tiered.support.errors import PassNotFoundError, PostconditionError, UsageError


def has_relu(of: Model) -> bool:
    return bool(of.main.nodes_of("Relu"))


def raises(of: Model) -> None:
    raise KeyError("lost")


def edits(of: Model) -> None:
    of.main.rename_node(of.main.nodes[0], "other")


def of(given: object) -> Check:
    (check,) = checks_of([given])
    return check


def test_a_function_has_its_name_in_brackets_and_an_analysis_its_own() -> None:
    assert of(has_relu) == "<has_relu>"
    assert of("model_overview") == "model_overview"
    assert of(get_pass("model_overview")) == "model_overview"
    assert of(lambda found: None) == "<lambda>"
    assert of(functools.partial(has_relu)) == "<partial>"
    check = of(has_relu)
    assert of(check) is check


def test_checks_are_equal_by_name_and_function() -> None:
    assert of(has_relu) == of(has_relu)
    assert Check("<has_relu>", has_relu) != Check("<has_relu>", raises)
    assert Check("<other>", has_relu) != Check("<has_relu>", has_relu)
    assert Check("<has_relu>", has_relu) != 3
    assert hash(of(has_relu)) == hash("<has_relu>")
    assert copy.deepcopy(check := of(has_relu)) is check
    assert (of(has_relu).suppressed, of(has_relu).of(True).suppressed) == (False, True)


@pytest.mark.parametrize(
    ("given", "because"),
    [
        ("model_overview", "takes a list of checks, not 'model_overview'"),
        (has_relu, "takes a list of checks"),
        (["<has_relu>"], "is a function: give it in Python"),
        ([3], "takes functions of the model and analysis passes, not 3"),
        (["fold_constant"], "fold_constant is no analysis"),
        ([lambda: None], "takes one argument, the model"),
        ([lambda one, two: None], "takes one argument, the model"),
    ],
)
def test_what_is_no_check_is_an_error(given: object, because: str) -> None:
    with pytest.raises(UsageError, match=because):
        checks_of(given)


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(PassNotFoundError):
        of("no_such_pass")


def held(check: object, text: str) -> None:
    of(check).hold(model(f"g (float[2] x) => (float[2] y) {{ y = {text}(x) }}"),
                   PostconditionError, "after mine")  # fmt: skip


def test_a_check_holds_if_it_returns_nothing_or_something_true() -> None:
    held(has_relu, "Relu")
    held(lambda found: None, "Neg")


@pytest.mark.parametrize(
    ("check", "because"),
    [
        (has_relu, "check has_relu failed after mine of .*: it returned False"),
        (raises, "check raises failed after mine of .*: KeyError: 'lost'"),
        (edits, "check edits failed .*is read_only at it"),
    ],
)
def test_a_failure_says_which_check_and_when(check: object, because: str) -> None:
    with pytest.raises(PassError, match=because):
        held(check, "Neg")
