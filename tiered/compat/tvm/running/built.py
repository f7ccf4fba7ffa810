"""`relay.build`: what it returns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

import tiered
from tiered.compat.tvm.running.modules import model_with
from tiered.compat.tvm.target import Target
from tiered.graph import Model
from tiered.support.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from tiered.compat.tvm.running.devices import Device

__all__ = ["Built", "build"]


class Built:
    """The optimised model as `relay.build` returns it.

    It is also the triple of older versions, and has all that the model itself has:

        graph, lib, params = relay.build(mod, target, params=params)

    Attributes:
        module: the model: a ModelProto for one, else the `tiered.Model`.
    """

    def __init__(self, module: Model | onnx.ModelProto) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def __eq__(self, other: object) -> bool:
        mine = other.module if isinstance(other, Built) else other
        return bool(self.module == mine)

    __hash__ = None  # type: ignore[assignment]  # as a ModelProto

    def __iter__(self) -> Iterator[Any]:
        return iter((self.get_graph_json(), self, self.get_params()))

    def __getitem__(self, name: str) -> Callable[[Device], Built]:
        """Return the function that loads the model on a device: `lib["default"](dev)`.

        Raises:
            UsageError: another name than "default".
        """
        if name != "default":
            raise UsageError(f"a built model has one function, 'default', not {name!r}")
        return lambda device: self

    def _view(self) -> Model:
        return self.module if isinstance(self.module, Model) else Model.from_proto(self.module)

    def get_lib(self) -> Built:
        """Return the part that runs: the whole model."""
        return self

    def get_params(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the weights of the main graph by name."""
        values = self._view().main.initializers
        return {value.name: value.const for value in values if value.const is not None}

    def get_graph_json(self) -> str:
        """Return the main graph as JSON: its inputs and weights, then its nodes in order."""
        graph = self._view().main
        places: dict[Any, tuple[int, int, int]] = {}
        nodes: list[dict[str, Any]] = []
        for value in (*graph.inputs, *(v for v in graph.initializers if v not in graph.inputs)):
            places[value] = (len(nodes), 0, 0)
            nodes.append({"op": "null", "name": value.name, "inputs": []})
        for node in graph.topological_order():
            read = [places[value] for value in node.inputs if value is not None]
            for at, made in enumerate(node.outputs):
                places[made] = (len(nodes), at, 0)
            nodes.append({"op": node.op_type, "name": node.label, "inputs": read})
        arguments = [at for at, node in enumerate(nodes) if node["op"] == "null"]
        heads = [places[value] for value in graph.outputs]
        return json.dumps({"nodes": nodes, "arg_nodes": arguments, "heads": heads})


def build(
    mod: Any,
    target: str | Target | Mapping[Any, Any] | None = None,
    target_host: str | Target | None = None,
    params: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Built:
    """Return the model optimised for a target, at the level of the context around the call.

    Args:
        mod: a `tiered.Model`, which is edited; or a ModelProto, a main graph or a
            `relay.Function`, which stay.
        target: the target; without it, that of the context.
        target_host: accepted, and without effect, as `host` of a Target.
        params: other numbers for weights, by name.
        settings: more of `tiered.optimize`.

    Raises:
        UsageError: the model has no such weight, or weights are given as the host.
        ModelError: a weight has another dtype or shape.
    """
    if not isinstance(target_host, str | Target | None):
        raise UsageError(
            "the third argument of build is target_host, as in TVM; weights are params={...}"
        )
    model = mod if isinstance(mod, Model) else model_with(mod).copy()
    with model.transaction():
        _bind(model, params or {})
        if target is not None:
            settings["backend"] = Target(target).backend
        result = tiered.optimize_model(model, **settings).model
    return Built(result.to_proto() if isinstance(mod, onnx.ModelProto) else result)


def _bind(model: Model, params: Mapping[str, Any]) -> None:
    """Let weights have other numbers; those that are equal stay."""
    for name, given in params.items():
        value = model.main.values.get(name)
        if value is None or value.default is None:
            known = [each.name for each in model.main.initializers]
            raise UsageError(f"build: the model has no weight {name!r}{did_you_mean(name, known)}")
        if value.producer is not None:
            raise UsageError(f"build: {name!r} is computed by a node, so it is no parameter")
        array = np.asarray(given)
        before = value.default.numpy()
        is_alike = (array.dtype, array.shape) == (before.dtype, before.shape)
        if not is_alike or array.tobytes() != before.tobytes():
            model.main.assign(value, array)
