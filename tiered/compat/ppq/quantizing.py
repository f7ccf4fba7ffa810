"""QuantableGraph and TargetPlatform: quantisation of a graph by PPQ's names."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from tiered.compat.ppq.elements import Operation, QuantableOperation
from tiered.compat.ppq.graph import BaseGraph
from tiered.errors import ModelError, UsageError
from tiered.graph import Model
from tiered.quantization.configs.observed import Unknown, activate_configs
from tiered.quantization.configs.qdq import write_configs
from tiered.quantization.configs.quantable import (
    QuantFunction,
    dequantize_model,
    quantise_node,
    quantised_numbers,
    restore_model,
)
from tiered.quantization.configs.tensors import OperationQuantizationConfig
from tiered.verify.samples import Source

BaseQuantFunction = QuantFunction
PPQLinearQuantFunction = quantised_numbers


class TargetPlatform(Enum):
    """Where an operation runs."""

    UNSPECIFIED = -2
    SOI = -1
    FP32 = 0
    INT8 = 1
    TRT_INT8 = 101
    PPL_CUDA_INT8 = 201
    PPL_DSP_INT8 = 301
    HOST_INT8 = 402
    NXP_INT8 = 501
    QNN_DSP_INT8 = 801
    ORT_OOS_INT8 = 901

    @classmethod
    def is_quantized_platform(cls, platform: TargetPlatform) -> bool:
        """Return whether a platform computes on integers."""
        return platform.name.endswith("INT8")


class QuantableGraph:
    """The methods of PPQ's QuantableGraph.

    Args:
        graph: the main graph of a model, or another graph of it.
    """

    def __init__(self, graph: BaseGraph) -> None:
        self.graph = graph

    @property
    def _model(self) -> Model:
        model = self.graph.graph.model
        assert isinstance(model, Model)
        return model

    def quantize_operation(
        self,
        operation_name: str,
        target_platform: TargetPlatform,
        quantization_config: OperationQuantizationConfig,
    ) -> QuantableOperation:
        """Give an operation configs and a platform; it is a QuantableOperation from now on.

        Raises:
            UsageError: the platform does not compute on integers.
            ModelError: there is no such operation, or the configs do not fit it.
        """
        if not TargetPlatform.is_quantized_platform(target_platform):
            raise UsageError(f"{target_platform.name} is no platform that computes on integers")
        operation = self._operation(operation_name)
        quantise_node(operation._node, quantization_config)
        operation.platform = target_platform.name
        return QuantableOperation(operation._node)

    def dequantize_operation(self, operation_name: str) -> Operation:
        """Return an operation to float.

        Raises:
            ModelError: there is no such operation.
        """
        operation = self._operation(operation_name)
        if isinstance(operation, QuantableOperation):
            operation.dequantize()
        return operation

    def dequantize_graph(self) -> None:
        """Return all operations of the model to float."""
        dequantize_model(self._model)

    def restore_quantize_state(self) -> None:
        """Undo `dequantize_graph`."""
        restore_model(self._model)

    def activate(self, samples: Sequence[Source] = ()) -> list[Unknown]:
        """Measure ranges on samples, and activate configs; return those without a range."""
        return activate_configs(self._model, samples)

    def export(self) -> None:
        """Write the configs into the model as Q/DQ; operations have none after that.

        Raises:
            ModelError: a config has no scale yet, or ONNX cannot say what it does.
        """
        write_configs(self._model)

    def _operation(self, name: str) -> Operation:
        if name not in self.graph.operations:
            raise ModelError(f"graph {self.graph.graph.name!r} has no operation {name!r}")
        return self.graph.operations[name]
