"""Errors: their exit codes, and messages that name what was meant."""

import pytest

from tiered.support import errors
from tiered.support.errors import (
    NotVerifiable,
    OpsetError,
    RuntimeFailure,
    TieredError,
    TimedOut,
    did_you_mean,
    original_runs,
    words_of,
)

CODES = {
    "TieredError": 1,
    "ModelError": 1,
    "NotVerifiable": 4,
    "UsageError": 2,
    "OptionError": 2,
    "BackendNotFoundError": 2,
    "VerificationError": 3,
    "TargetError": 4,
    "PassError": 5,
    "OperatorError": 5,
    "PreconditionError": 1,
    "PostconditionError": 5,
}


@pytest.mark.parametrize("name", CODES)
def test_an_error_has_the_exit_code_of_its_kind(name: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, TieredError)
    assert kind.exit_code == CODES[name]


def test_all_errors_are_in_one_tree() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    assert len(kinds) > 25
    assert all(issubclass(kind, TieredError) for kind in kinds if issubclass(kind, Exception))


@pytest.mark.parametrize(
    ("count", "said", "shown"),
    [(1, "1 node would", 1), (5, "5 nodes would", 5), (7, "7 nodes would", 5)],
)
def test_the_first_five_nodes_that_block_are_named(count: int, said: str, shown: int) -> None:
    error = OpsetError("opset 9", [f"entry {at}" for at in range(count)])
    assert str(error).startswith(f"opset 9; {said} not mean the same:")
    assert str(error).count("\n  entry") == shown
    assert ("and 2 more" in str(error)) is (count == 7)
    assert len(error.blocked) == count


def test_the_closest_name_is_proposed_if_it_is_close() -> None:
    names = ["fuse_bn_into_conv", "fold_constant"]
    assert did_you_mean("fold_constants", names) == "; did you mean 'fold_constant'?"
    assert did_you_mean("xyz", names) == ""
    assert did_you_mean("fold", names, cutoff=0.3) == "; did you mean 'fold_constant'?"


def test_a_model_that_does_not_run_cannot_be_compared_with() -> None:
    for label, said in (
        ("a.onnx", "a.onnx: not verified: no kernel"),
        ("", "not verified: no kernel"),
    ):
        with pytest.raises(NotVerifiable) as caught, original_runs(label):
            raise RuntimeFailure("no kernel")
        assert str(caught.value) == said
    with pytest.raises(TimedOut), original_runs():
        raise TimedOut("too long")


def test_the_words_of_an_error_are_text() -> None:
    for error, words in (
        (ValueError(b"in bytes"), "in bytes"), (ValueError("in text"), "in text"),
        (ValueError(), ""), (ValueError("one", "two"), "('one', 'two')"),
        (OSError(5, "no disk", "a file"), "no disk"), (OSError("no words"), "no words"),
        (OSError(5, ""), "[Errno 5] "),
    ):  # fmt: skip
        assert words_of(error) == words
