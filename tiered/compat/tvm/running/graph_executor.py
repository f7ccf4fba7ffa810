"""`tvm.contrib.graph_executor`: runs a built model, here by onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiered.compat.tvm.running.arrays import NDArray, array
from tiered.compat.tvm.running.built import Built
from tiered.graph import Model
from tiered.runtime import Session
from tiered.support.amounts import counted
from tiered.support.errors import UsageError, did_you_mean

__all__ = ["GraphModule", "NDArray", "array", "create"]


class GraphModule:
    """Runs a built model.

    Args:
        module: what `relay.build` returned, or what its function "default" did.
    """

    def __init__(self, module: Built) -> None:
        model = module.module
        self._session = Session(model.to_proto() if isinstance(model, Model) else model)
        self._weights = module.get_params()
        self._inputs: dict[str, Any] = {}
        self._outputs: list[Any] = []

    def set_input(self, key: int | str | None = None, value: Any = None, **params: Any) -> None:
        """Set an input by its name or number, or several by their names.

        Raises:
            UsageError: the model has no such input, or a weight has other numbers.
        """
        given = dict(params) if key is None else {self._name(key): value, **params}
        for name, each in given.items():
            numbers = np.asarray(each)
            if name in self._session.inputs:
                self._inputs[name] = numbers
            elif name not in self._weights:
                raise UsageError(
                    f"the model has no input {name!r}{did_you_mean(name, self._session.inputs)}"
                )
            elif numbers.tobytes() != self._weights[name].tobytes():
                raise UsageError(f"{name!r} is a weight of the built model: give it to relay.build")

    def _name(self, key: int | str) -> str:
        if isinstance(key, str):
            return key
        if not 0 <= key < len(self._session.inputs):
            raise UsageError(
                f"the model has {counted(len(self._session.inputs), 'input')}, so no input {key}"
            )
        return self._session.inputs[key]

    def run(self, **inputs: Any) -> None:
        """Run the model on the inputs that are set.

        Raises:
            RuntimeFailure: onnxruntime refuses an input, or one is missing.
        """
        self.set_input(**inputs)
        self._outputs = list(self._session.run(self._inputs).values())

    def get_output(self, index: int) -> NDArray:
        """Return an output of the last run.

        Raises:
            UsageError: there was no run, or there is no such output.
        """
        if not 0 <= index < len(self._outputs):
            raise UsageError(
                f"the last run has {counted(len(self._outputs), 'output')}, so no output {index}"
            )
        return array(self._outputs[index])

    def get_num_outputs(self) -> int:
        """Return the number of outputs."""
        return len(self._session.outputs)

    def get_input(self, index: int | str) -> NDArray:
        """Return an input that is set."""
        name = self._name(index)
        if name not in self._inputs:
            raise UsageError(f"the input {name!r} is not set")
        return array(self._inputs[name])


def create(graph_json_str: str, libmod: Built, device: Any = None) -> GraphModule:
    """Return what runs a built model; the graph and the device are accepted, and without effect."""
    return GraphModule(libmod)
