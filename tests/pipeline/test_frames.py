"""The stack trace of a failing rule is short: one frame per pipeline, and few for the rest."""

import traceback

import pytest

from tests.small import proto, registered
from tiered import Graph, PassError, Value, default_pipeline, op, optimize, rewrite, var
from tiered.pipeline import Pipeline

MOST_FRAMES = 15


@rewrite(op.Relu(op.Relu(var.x)), opt_level=0)
def raise_on_relu(graph: Graph, x: Value) -> Value:
    """Raise."""
    raise ZeroDivisionError


def _deepest(pipeline: Pipeline) -> str:
    """Return the name of the first pass within the most pipelines."""
    depths: dict[str, int] = {}

    def visit(inner: Pipeline, depth: int) -> None:
        for pass_ in inner:
            if isinstance(pass_, Pipeline):
                visit(pass_, depth + 1)
            else:
                depths.setdefault(pass_.name, depth)

    visit(pipeline, 0)
    return max(depths, key=lambda name: depths[name])


def test_few_frames_lie_between_optimize_and_a_failing_rule() -> None:
    deepest = _deepest(default_pipeline())
    edit = f"before {deepest}: raise_on_relu"
    with registered(raise_on_relu), pytest.raises(PassError, match="raise_on_relu") as raised:
        optimize(proto(), edits=[edit])
    error: BaseException | None = raised.value
    frames = []
    # The rule's own error begins where the error that names the pass was made.
    while error is not None:
        frames.append([frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)])
        error = error.__cause__
    named, own = frames
    assert named[1] == "optimize"
    assert own[-1] == "raise_on_relu"
    between = [*named[2:], *own[:-1]]
    assert len(between) <= MOST_FRAMES, between
