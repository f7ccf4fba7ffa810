"""TorchExecutor: PPQ's name for a run of a graph, here by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tiered.compat.argument_types import checks_arguments
from tiered.compat.ppq.base_graph import BaseGraph
from tiered.extensions.debug.all_values import run
from tiered.graph import Model, Tensor
from tiered.graph.edits import surgery
from tiered.support.amounts import counted
from tiered.support.errors import UsageError

Array = np.ndarray[Any, Any]
Inputs = Array | Sequence[Array] | Mapping[str, Array]


@checks_arguments
class TorchExecutor:
    """Runs the main graph of a model.

    Args:
        graph: it.
        fp16_mode, device: PPQ's; without a meaning here.
    """

    def __init__(self, graph: BaseGraph, fp16_mode: bool = True, device: object = None) -> None:
        if not graph.graph.is_main:
            raise UsageError(f"{graph.graph.name!r} is no main graph; only that of a model runs")
        self._graph = graph

    @property
    def _model(self) -> Model:
        model = self._graph.graph.model
        assert isinstance(model, Model)
        return model

    def forward(self, inputs: Inputs, output_names: Sequence[str] | None = None) -> list[Array]:
        """Return the outputs for some inputs, or the named values of the main graph.

        Raises:
            UsageError: there is no such input or value.
            RuntimeFailure: onnxruntime does not run the model.
        """
        feeds = self._feeds(inputs)
        if output_names is None:
            return list(run(self._model, feeds).values())
        defaults = {
            name: value.default.dense()
            for name, value in self._graph.graph.values.items()
            if name in output_names and value.default is not None
        }
        found = {**defaults, **feeds, **dict(run(self._model, feeds, all_values=True))}
        if unknown := [name for name in output_names if name not in found]:
            raise UsageError(f"the main graph has no value {unknown[0]!r}")
        return [found[name] for name in output_names]

    def tracing_operation_meta(self, inputs: Inputs) -> None:
        """Infer types; values of an unknown type or rank get those of one run.

        The dims of a run are those of its inputs, so they stay unknown. Outputs of the model keep
        their declarations.

        Raises:
            UsageError: there is no such input.
            RuntimeFailure: onnxruntime does not run the model.
        """
        model = self._model
        model.refresh_types()
        for name, array in run(model, self._feeds(inputs), all_values=True):
            value = self._graph.graph.values.get(name)
            if value is None or value.shape is not None or value.is_graph_output:
                continue
            if isinstance(array, np.ndarray):
                dtype = Tensor.of(array).dtype
                surgery.retype(value, dtype=dtype, shape=(None,) * array.ndim)

    tracing_operation_mata = tracing_operation_meta  # PPQ's documents misspell it

    def _feeds(self, inputs: Inputs) -> dict[str, Array]:
        if isinstance(inputs, Mapping):
            return dict(inputs)
        arrays = list(inputs) if isinstance(inputs, list | tuple) else [np.asarray(inputs)]
        names = list(self._graph.inputs)
        if len(arrays) != len(names):
            raise UsageError(
                f"{counted(len(arrays), 'array')} for {counted(len(names), 'input')}: "
                f"{', '.join(names)}"
            )
        return dict(zip(names, arrays, strict=True))
