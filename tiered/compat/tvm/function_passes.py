"""`module_pass` and `function_pass`: passes of functions and classes with TVM's signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tiered
from tiered.compat.returned_model import take_over, take_over_graph
from tiered.context import PassContext
from tiered.graph import Graph, Model
from tiered.passes import Pass
from tiered.support.errors import UsageError


def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
) -> Any:
    """Make a pass of a function `(mod, ctx)`, or constructors of passes of a class.

    `mod` is a `tiered.Model`. It is edited in place, or another `Model` or ModelProto is returned,
    which becomes its content.
    """

    def of_models(**declared: Any) -> Callable[[Callable[..., Any]], Pass]:
        def decorate(function: Callable[..., Any]) -> Pass:
            def transform(model: Model, ctx: PassContext) -> object:
                return take_over(model, function(model, ctx), ctx)

            return tiered.module_pass(**declared)(transform)

        return decorate

    return _decorated(pass_func, opt_level, name, required, of_models, "transform_module")


def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
) -> Any:
    """Make a pass of a function `(func, mod, ctx)`, or constructors of passes of a class.

    `func` is a `tiered.Graph`. It is edited in place and returned, or a graph of another model is
    returned, whose content it gets. Bodies are graphs too, which can only be edited in place.
    """

    def of_graphs(**declared: Any) -> Callable[[Callable[..., Any]], Pass]:
        def decorate(function: Callable[..., Any]) -> Pass:
            def transform(graph: Graph, ctx: PassContext) -> object:
                model = graph.model
                before = [each.id for each in model.functions]
                made = function(graph, model, ctx)
                if [each.id for each in model.functions] != before:
                    raise UsageError(
                        f"{declared['name']} added or removed a function: a function pass must "
                        "not, a module pass may"
                    )
                if not isinstance(made, Graph) or made is graph:
                    return made
                take_over_graph(graph, made)
                return None

            return tiered.function_pass(**declared)(transform)

        return decorate

    return _decorated(pass_func, opt_level, name, required, of_graphs, "transform_function")


def _name_of(given: Any) -> str:
    """Return the name of a function or class; one without a name is a function."""
    name = str(getattr(given, "__name__", ""))
    return name if name.isidentifier() else "function"


def _decorated(
    pass_func: Any,
    opt_level: int | None,
    name: str | None,
    required: Iterable[str] | None,
    make: Callable[..., Callable[[Callable[..., Any]], Pass]],
    method: str,
) -> Any:
    if opt_level is None:
        raise UsageError("opt_level is missing: expected the lowest level at which the pass runs")

    def decorate(given: Any) -> Any:
        declared = {
            "opt_level": opt_level,
            "name": name or _name_of(given),
            "required": tuple(required or ()),
        }
        if not isinstance(given, type):
            return make(**declared)(given)
        if not callable(getattr(given, method, None)):
            raise UsageError(f"{declared['name']}: the class of a pass must have a method {method}")

        def construct(*args: Any, **kwargs: Any) -> Pass:
            return make(**declared)(getattr(given(*args, **kwargs), method))

        construct.__doc__ = given.__doc__
        return construct

    return decorate if pass_func is None else decorate(pass_func)
