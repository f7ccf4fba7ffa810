"""The names of PopRT: `Pass`, `register`, `get_pass`, `get_registered_passes`, `PassManager`.

`proto_pass` converts a subclass of `Pass` into a pass of tiered, which runs in contexts and
pipelines, is undone when it fails, and can be verified.

    @register("drop_names")
    class DropNames(Pass):
        def run(self, onnx_model):
            for node in onnx_model.graph.node:
                node.name = ""
            return onnx_model
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import onnx

import tiered
from tiered.errors import UsageError
from tiered.passes.kinds.proto_pass import proto_pass

__all__ = ["Pass", "PassManager", "get_pass", "get_registered_passes", "register"]

PassClass = TypeVar("PassClass", bound="type[Pass]")

_CLASSES: dict[str, type[Pass]] = {}


class Pass(ABC):
    """A pass over a ModelProto; `run` may edit its argument, which is a copy.

    Attributes:
        name: of the pass; `register` sets it.
        changes_interface: whether it changes inputs or outputs.
    """

    name: str = ""
    changes_interface: bool = False

    @abstractmethod
    def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
        """Return the result of the pass."""

    def __call__(self, onnx_model: Any) -> Any:
        return self.lifted()(onnx_model)

    def lifted(self) -> tiered.Pass:
        """Return the equivalent pass of tiered."""
        return proto_pass(
            self.run,
            name=self.name or type(self).__name__,
            changes_interface=self.changes_interface,
            numerics="exact",
        )

    def traverse_graph(
        self,
        graph: onnx.GraphProto,
        transform: Callable[[onnx.GraphProto, bool], object],
        is_main_graph: bool = True,
    ) -> None:
        """Call a function with a graph and with each body inside it."""
        transform(graph, is_main_graph)
        for node in graph.node:
            for attribute in node.attribute:
                bodies = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
                for body in bodies:
                    self.traverse_graph(body, transform, is_main_graph=False)


def register(name: str) -> Callable[[PassClass], PassClass]:
    """Make a subclass of `Pass` known by a name.

    Raises:
        UsageError: the name is taken.
    """

    def decorate(cls: PassClass) -> PassClass:
        cls.name = name
        tiered.register(cls().lifted())
        _CLASSES[name] = cls
        return cls

    return decorate


def get_pass(name: str, *args: Any, **kwargs: Any) -> Any:
    """Return a pass by its name: a registered class of yours, made anew, or one of ours."""
    if name in _CLASSES:
        return _CLASSES[name](*args, **kwargs)
    if args:
        raise UsageError(f"{name}: expected options by keyword, found positional ones")
    return tiered.get_pass(name, **kwargs)


def get_registered_passes() -> dict[str, tiered.Pass]:
    """Return every pass by its name."""
    return tiered.get_registered_passes()


class PassManager:
    """Runs all of the passes that it is given, whatever their level."""

    def __init__(
        self, used_passes: Iterable[Pass | tiered.Pass | str] = (), gather_ir_passes: bool = False
    ) -> None:
        # gather_ir_passes only saves conversions in PopRT; here nothing is converted in between.
        self.pipeline = tiered.Sequential(
            [p.lifted() if isinstance(p, Pass) else p for p in used_passes]
        )

    def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
        """Return the model after all passes; what is given stays as it is."""
        return self.pipeline.apply(onnx_model)
