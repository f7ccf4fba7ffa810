"""Passes that return another model, as in TVM and torch.fx: it becomes the content of the model."""

from __future__ import annotations

import onnx

import tiered
from tiered.context import PassContext
from tiered.graph import Model
from tiered.passes.run import edited_by
from tiered.passes.validity import check_result


def checked(pass_: tiered.Pass) -> tiered.Pass:
    """Return a pass for a direct call: `final_check` follows it, as in `tiered.optimize`."""
    return tiered.Sequential([pass_, "final_check"])


def take_over(model: Model, outcome: object, ctx: PassContext) -> object:
    """Let a model have the content of the one that a pass returned, if that is another one.

    Args:
        model: the model that the pass was called with.
        outcome: its result: a `Model` or a ModelProto, alone or in a `PassResult`.
        ctx: the context of the pass.

    Returns:
        None; a result that is no model is returned as it is.

    Raises:
        ModelError: the other model is not valid, and this one was.
    """
    made = edited_by(outcome)
    if made is model or made is None:
        return None
    if not isinstance(made, Model | onnx.ModelProto):
        return outcome
    proto = made.to_proto() if isinstance(made, Model) else made
    if proto != model.to_proto():
        model.exchange(proto)
        check_result(model, ctx)
    return None
