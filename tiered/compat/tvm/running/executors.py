"""`relay.create_executor` and `relay.optimize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tiered.compat.tvm.running.built import build
from tiered.compat.tvm.running.graph_executor import GraphModule
from tiered.compat.tvm.running.modules import IRModule
from tiered.compat.tvm.target import Target
from tiered.graph import Model
from tiered.support.errors import UsageError

_KINDS: Final = ("aot", "debug", "graph", "vm")


class Executor:
    """What `create_executor` returns; `evaluate()` builds the model."""

    def __init__(self, mod: Any, target: Any, params: Mapping[str, Any] | None) -> None:
        self._arguments = (mod, target, params)

    def evaluate(self, expr: Any = None) -> Callable[..., Any]:
        """Return a function of the inputs, by place or by name, that runs the model.

        Its result is an array, or a list of several. `expr` is accepted if it is the main graph.
        """
        mod, target, params = self._arguments
        if expr is not None and not (isinstance(mod, Model) and expr is mod.main):
            raise UsageError("evaluate takes the main graph of the module only, or nothing")
        own = mod.copy() if isinstance(mod, Model) else mod
        runs = GraphModule(build(own, target, params=params))

        def run(*args: Any, **kwargs: Any) -> Any:
            for at, each in enumerate(args):
                runs.set_input(at, each)
            runs.run(**kwargs)
            found = [runs.get_output(at) for at in range(runs.get_num_outputs())]
            return found[0] if len(found) == 1 else found

        return run


def create_executor(
    kind: str = "debug",
    mod: Any = None,
    device: Any = None,
    target: str | Target | None = "llvm",
    params: Mapping[str, Any] | None = None,
) -> Executor:
    """Return what runs a module, here by onnxruntime; `kind` and `device` are without effect.

    Raises:
        UsageError: there is no such kind, or no module.
    """
    if kind not in _KINDS:
        raise UsageError(f"there is no executor {kind!r} ({', '.join(_KINDS)})")
    if mod is None:
        raise UsageError("create_executor needs a module: mod=")
    return Executor(mod, target, params)


def optimize(
    mod: Any,
    target: str | Target | Mapping[Any, Any] | None = None,
    params: Mapping[str, Any] | None = None,
) -> tuple[IRModule, dict[str, Any]]:
    """Return the optimised model, as `relay.build` does, and its weights."""
    built = build(mod, target, params=params)
    module = built.module
    view = module if isinstance(module, Model) else Model.from_proto(module)
    return IRModule.of(view), built.get_params()
