"""The one tree of errors: what was found, where, what was expected, what to do.

`exit_code` is the exit code of the command line. A rule that does not fire returns a `Skip`, never
an error; a bug in tiered is an `assert`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final


class TieredError(Exception):
    """Base of all errors that tiered raises on purpose."""

    exit_code = 1


RAISED: Final = (Exception, SystemExit, GeneratorExit)
"""What code of users may raise: `sys.exit` in it must not end the process without a message."""


class ModelError(TieredError):
    """A model or its file is malformed, unreadable, or cannot be written."""


class CycleError(ModelError):
    """A graph has a cycle. A model that is read has none, so later on a pass made it."""


NAMED: Final = 5
"""How many nodes an error names."""


class OpsetError(ModelError):
    """Nodes have no form at an opset: the model was not converted.

    `blocked` lists all of them, each with `node`, `operator`, `reason` and `graph`; the message
    names the first few.
    """

    def __init__(self, what: str, blocked: Sequence[Any]) -> None:
        shown = "".join(f"\n  {entry}" for entry in blocked[:NAMED])
        more = f"\n  and {len(blocked) - NAMED} more" if len(blocked) > NAMED else ""
        nodes = "1 node" if len(blocked) == 1 else f"{len(blocked)} nodes"
        super().__init__(f"{what}; {nodes} would not mean the same:{shown}{more}")
        self.blocked = tuple(blocked)


class ShapeError(ModelError):
    """Shapes or dtypes disagree with what an operation needs."""


class MemoryLimitError(TieredError):
    """A run holds more memory than it may."""


class RuntimeFailure(TieredError):
    """ONNX Runtime (or the reference evaluator) refused a model or failed while running it."""


class MissingOperator(RuntimeFailure):
    """A model has an operator without a definition that no runtime implements."""


class Crashed(RuntimeFailure):
    """The process that ran a model ended instead of answering."""


class TimedOut(RuntimeFailure):
    """A model ran longer than it may."""


class OutOfMemory(RuntimeFailure):
    """A model needs more memory than it may have."""


class NotVerifiable(RuntimeFailure):
    """The original does not run, so that nothing can be compared with it."""

    exit_code = 4


class HelperError(TieredError):
    """The process that runs models cannot start; the models are not the cause."""


class FleetError(TieredError):
    """The machines of a batch, or their packages, are not as expected."""


class UsageError(TieredError):
    """A wrong name, option or argument."""

    exit_code = 2


class PassNotFoundError(UsageError):
    """No pass, alias or glob of this name."""


class OptionError(UsageError):
    """An option which the pass does not have, or a value which it does not take."""


class PipelineSyntaxError(UsageError):
    """Pipeline text that does not parse."""


class ConfigError(UsageError):
    """An unknown config key, or a value of the wrong type."""


class BackendError(UsageError):
    """A profile of a backend that cannot be read, or has unknown or wrong content."""


class BackendNotFoundError(UsageError):
    """No backend of this name."""


class VerificationError(TieredError):
    """Outputs changed more than the passes promise.

    `rewrites` are the first and the last one of the pass, if one pass is the cause.
    """

    exit_code = 3
    rewrites: tuple[int, int] | None = None


class TargetError(TieredError):
    """The target cannot take the model, or an expectation was not met."""

    exit_code = 4


class SearchLimitError(TieredError, OverflowError):
    """A search reached its limit of candidates."""


class PassError(TieredError):
    """A pass failed; the model was rolled back to the state before it."""

    exit_code = 5


class OperatorError(PassError):
    """A new node does not conform to the schema of its operator; the model was rolled back."""


class PreconditionError(PassError):
    """A precondition of a pass or pipeline does not hold; nothing was changed."""

    exit_code = 1


class PostconditionError(PassError):
    """A postcondition of a pass or pipeline does not hold; the model was rolled back."""


@contextmanager
def original_runs(label: str = "") -> Iterator[None]:
    """Say of the model that results are compared with that it does not run.

    Args:
        label: what begins the message, if anything does.

    Raises:
        NotVerifiable: it does not run; the limits of a run, which may be raised, keep their errors.
    """
    try:
        yield
    except (Crashed, TimedOut, OutOfMemory):
        raise
    except RuntimeFailure as error:
        raise NotVerifiable(f"{label and f'{label}: '}not verified: {error}") from error


def words_of(error: BaseException) -> str:
    """Return what an error says: without the file; the parser of ONNX raises its words as bytes."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    found = error.args[0] if error.args else ""
    return found.decode(errors="replace") if isinstance(found, bytes) else str(error)


def did_you_mean(name: str, candidates: Iterable[str], cutoff: float = 0.6) -> str:
    """Return "; did you mean 'x'?" for the closest candidate, or an empty string.

    Args:
        name: the unknown name.
        candidates: the known names.
        cutoff: the least similarity, from 0 to 1.
    """
    import difflib  # imported only for an error

    close = difflib.get_close_matches(name, list(candidates), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""
