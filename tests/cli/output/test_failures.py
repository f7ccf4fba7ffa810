import errno
import os

import pytest

from tests.recorded import assert_values
from tiered import parse_pipeline
from tiered.cli.output.failures import (
    failure,
    print_failure,
    ran_out_of_memory,
    short_traceback,
    usage_failure,
)
from tiered.support import errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ModelError("x"), 1),
        (errors.ShapeError("x"), 1),
        (errors.RuntimeFailure("x"), 1),
        (FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "m.onnx"), 1),
        (MemoryError(), 1),
        (RecursionError(), 1),
        (errors.UsageError("x"), 2),
        (errors.PassNotFoundError("x"), 2),
        (errors.OptionError("x"), 2),
        (errors.PipelineSyntaxError("x"), 2),
        (errors.ConfigError("x"), 2),
        (errors.VerificationError("x"), 3),
        (errors.TargetError("x"), 4),
        (errors.PassError("x"), 5),
        (AssertionError("x"), 5),
        (KeyError("x"), 5),
    ],
)
def test_each_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert failure(error).exit_code == code


def test_the_file_is_named_once() -> None:
    said = failure(errors.ModelError("the graph has a cycle"), "dir/m.onnx").text
    assert said == "dir/m.onnx: the graph has a cycle"
    assert failure(errors.ModelError("no file 'dir/m.onnx'"), "dir/m.onnx").text == (
        "no file 'dir/m.onnx'"
    )


def test_a_file_is_not_taken_as_named_because_a_longer_word_holds_its_name() -> None:
    said = failure(errors.ModelError("the graph has no outputs"), "out").text
    assert said == "out: the graph has no outputs"


def test_an_error_of_the_operating_system_says_which_file_and_why() -> None:
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/x/out.onnx")
    assert failure(error, "m.onnx").text == "m.onnx: /x/out.onnx: permission denied"


@pytest.mark.parametrize(
    ("cause", "is_memory"),
    [
        (MemoryError("x"), True), (SystemError("x"), True), (errors.OutOfMemory("x"), True),
        (ImportError("a.so: failed to map segment from shared object"), True),
        (ImportError("out of memory"), False), (errors.Crashed("SIGKILL"), False),
        (RecursionError("x"), False), (errors.MemoryLimitError("x"), False),
    ],
)  # fmt: skip
def test_want_of_memory_is_found_among_the_causes(cause: Exception, is_memory: bool) -> None:
    error = errors.PassError("fold_constant raised")
    error.__cause__ = cause
    assert ran_out_of_memory(error) is is_memory
    assert ran_out_of_memory(cause) is is_memory


@pytest.mark.parametrize("cause", [RecursionError("x"), MemoryError("x")])
def test_a_model_that_exhausts_the_machine_is_no_bug_of_the_pass(cause: Exception) -> None:
    error = errors.PassError("fold_constant raised")
    error.__cause__ = ValueError("x")
    error.__cause__.__cause__ = cause
    assert failure(error, "m.onnx").exit_code == 1
    assert failure(error, "m.onnx").text.endswith(" (fold_constant raised)")


def test_causes_that_go_in_a_circle_end() -> None:
    error, other = ValueError("a"), ValueError("b")
    error.__cause__, other.__cause__ = other, error
    assert failure(error).exit_code == 5


def test_a_bug_is_named_as_such_and_asks_for_a_report() -> None:
    said = failure(ZeroDivisionError("division by zero"), "m.onnx").text
    assert "bug in tiered" in said
    assert "report" in said
    assert "ZeroDivisionError: division by zero" in said
    assert "\n" not in said


def test_what_a_model_puts_into_a_message_cannot_reach_the_terminal() -> None:
    said = failure(errors.ModelError("node 'a\x1b[2J\u202e\udcff' is odd")).text
    assert said == r"node 'a\x1b[2J\u202e\udcff' is odd"


def test_further_lines_of_a_message_are_kept_and_indented() -> None:
    said = failure(errors.VerificationError("p changed 'y'\n  rewrite #1\nreproduce x")).text
    assert said == "p changed 'y'\n  rewrite #1\n  reproduce x"


def test_the_pass_that_broke_a_model_is_on_the_same_line() -> None:
    error = errors.ModelError("tensor 'w' is too short")
    error.add_note("in pass fold_constant\n  changed before it by eliminate_identity")
    assert failure(error, "m.onnx").text == (
        "m.onnx: tensor 'w' is too short (in pass fold_constant)"
    )


def test_a_failed_pass_names_the_passes_before_it() -> None:
    error = errors.PassError("a failed\n  changed before it by b")
    error.add_note("in pass c")
    said = failure(error, "m.onnx").text
    assert said.startswith(
        "m.onnx: a failed\n  changed before it by b\n  in pass c\n  this is a bug"
    )
    assert "please report it" in said


def test_the_traceback_is_short() -> None:
    def deep(level: int) -> None:
        if level == 0:
            raise ValueError("here")
        deep(level - 1)

    with pytest.raises(ValueError, match="here") as caught:
        deep(50)
    text = short_traceback(caught.value)
    assert text.count("\n") < 40
    assert text.endswith("ValueError: here\n")


def test_the_caret_of_a_pipeline_points_at_the_column() -> None:
    with pytest.raises(errors.PipelineSyntaxError) as caught:
        parse_pipeline("fold_constant,fix(inline,")
    caught.value.add_note("in the edit")
    first, line, caret = failure(caught.value).text.split("\n")
    assert first.endswith("at column 26 (in the edit)")
    assert line == "  fold_constant,fix(inline,"
    assert caret.index("^") - line.index("fold") == 25


def caused(
    error: Exception, cause: BaseException | None, context: BaseException | None = None
) -> Exception:
    """Return an error with what caused it."""
    error.__cause__, error.__context__ = cause, context
    return error


def coded(error: errors.PassError, code: int) -> errors.PassError:
    """Return an error with an exit code."""
    error.exit_code = code
    return error


def noted(error: Exception, *notes: str) -> Exception:
    """Return an error with notes."""
    for note in notes:
        error.add_note(note)
    return error


def test_texts_are_recorded() -> None:
    names = {
        **vars(errors),
        "failure": failure,
        "usage_failure": usage_failure,
        "caused": caused,
        "coded": coded,
        "noted": noted,
        "enough": ran_out_of_memory,
        "code": print_failure,
        "os": os,
        "errno": errno,
    }
    assert_values(__file__, names)
