"""Passes made of third-party functions: `proto_pass` lifts ModelProto -> ModelProto."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, overload

import onnx

from tiered.graph import Model
from tiered.passes.kinds.body import Body
from tiered.passes.kinds.calling_pass import CallingPass, as_single_rewrite
from tiered.passes.kinds.declared import Declared, in_current_words
from tiered.passes.kinds.decorators import (
    conditions_of,
    defaults_of,
    info_of,
    matches_of,
)
from tiered.passes.pass_run import PassRun
from tiered.support.errors import PassError, UsageError

if TYPE_CHECKING:
    from tiered.passes.execution import Execution

ProtoFunction = Callable[..., Any]


class ProtoPass(CallingPass):
    """A function of a ModelProto; its result replaces the content of the model."""

    def run(self, model: Model, execution: Execution, run: PassRun) -> None:
        """Call the function with a new ModelProto, and take over the result."""
        ctx = execution.ctx
        with as_single_rewrite(self, model.main, run, None):
            call = partial(self._exchange, model)
            run.returned(self.conditions.around(call, model, ctx, self.name), model)

    def _exchange(self, model: Model) -> None:
        given = model.to_proto()
        made = _model_in(self.function(given, **self.options), given, self.name)
        before = model.to_proto()
        if made == before:
            return
        if not self.info.changes_interface:
            made = _with_interface(made, before, self.name)
        model.exchange(made)


@overload
def proto_pass(
    function: ProtoFunction, /, *, opt_level: int | None = None, **declared: Unpack[Declared]
) -> ProtoPass: ...


@overload
def proto_pass(
    *, opt_level: int | None = None, **declared: Unpack[Declared]
) -> Callable[[ProtoFunction], ProtoPass]: ...


def proto_pass(
    function: ProtoFunction | None = None,
    /,
    *,
    opt_level: int | None = None,
    **declared: Unpack[Declared],
) -> ProtoPass | Callable[[ProtoFunction], ProtoPass]:
    """Make a pass of a function that takes a ModelProto and returns one, or edits it in place.

    The result may be a tuple with the model first (onnxsim returns one): a False behind it fails
    the pass. Keyword-only parameters of the types of options become options. The declared interface
    stays; a result with another one fails the pass, unless it declares `changes_interface`.

    Args:
        function: `proto_pass(onnxsim.simplify, name="onnxsim")`; without it, this is a decorator.
        opt_level: the level from which on it runs; None is opt-in.
        declared: see `Declared`.

    Raises:
        UsageError: the pass does not fit together.
    """
    declared = in_current_words(declared)

    def decorate(lifted: ProtoFunction) -> ProtoPass:
        info = info_of(lifted, "proto", opt_level, declared)
        return ProtoPass(
            info=info,
            options=defaults_of(info),
            body=Body(lifted, conditions_of(declared, info.name), matches_of(declared, info.name)),
        )

    return decorate if function is None else decorate(function)


def _model_in(result: object, given: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """Return the model in the result of a function; None means that it edited its argument."""
    if isinstance(result, tuple) and result:
        if any(part is False for part in result[1:]):
            raise PassError(f"{name} reported a failed result: {result[1:]}")
        result = result[0]
    if result is None:
        return given
    if not isinstance(result, onnx.ModelProto):
        raise UsageError(
            f"{name} returned an object of type {type(result).__name__}; expected a ModelProto"
        )
    return result


def _with_interface(made: onnx.ModelProto, before: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """Return a model with its inputs and outputs declared as they were.

    Raises:
        PassError: they differ.
    """
    kept = onnx.ModelProto()
    kept.CopyFrom(made)
    for side in ("input", "output"):
        now, was = getattr(kept.graph, side), getattr(before.graph, side)
        if _facts(now) != _facts(was):
            raise PassError(
                f"{name} changed the {side}s from {_facts(was)} to {_facts(now)}, and does not "
                "declare changes_interface"
            )
        del now[:]
        now.extend(was)
    return kept


def _facts(infos: Sequence[onnx.ValueInfoProto]) -> list[tuple[str, int]]:
    return [(info.name, info.type.tensor_type.elem_type) for info in infos]
