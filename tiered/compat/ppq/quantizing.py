"""QuantableGraph and TargetPlatform: quantisation of a graph by PPQ's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

from tiered.compat.argument_types import checks_arguments
from tiered.compat.ppq.base_graph import BaseGraph
from tiered.compat.ppq.configs.config_reading import read_configs
from tiered.compat.ppq.configs.observed import Unknown, activate_configs
from tiered.compat.ppq.configs.operations import OperationQuantizationConfig
from tiered.compat.ppq.configs.policies import QuantizationPolicy, RoundingPolicy
from tiered.compat.ppq.configs.qdq import write_configs
from tiered.compat.ppq.configs.quantable import (
    QuantFunction,
    dequantize_model,
    quantize_node,
    quantized_numbers,
    restore_model,
)
from tiered.compat.ppq.configs.states import QuantizationStates
from tiered.compat.ppq.configs.tensor_configs import TensorQuantizationConfig
from tiered.compat.ppq.elements import Operation, QuantableOperation
from tiered.graph import Model
from tiered.numerics.calibration.observers import Method
from tiered.runtime.inputs.samples import Source
from tiered.support.errors import ModelError, UsageError, did_you_mean

_OBSERVERS: Final[Mapping[str, Method]] = {
    "minmax": "minmax",
    "percentile": "percentile",
    "mse": "mse",
    "kl": "entropy",
    "entropy": "entropy",
}
"""Methods of calibration by PPQ's names of observers."""

BaseQuantFunction = QuantFunction
PPQLinearQuantFunction = quantized_numbers


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
    ONNX = -101
    ONNXRUNTIME = -102
    NATIVE = -103

    @classmethod
    def is_quantized_platform(cls, platform: TargetPlatform) -> bool:
        """Return whether a platform computes on integers."""
        return platform.name.endswith("INT8")


@checks_arguments
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
        quantize_node(operation._node, quantization_config)
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

    def load(self) -> list[Unknown]:
        """Take Q/DQ out of the model; operations that read them get configs.

        `export` writes the same Q/DQ again.

        Returns:
            Each DequantizeLinear that stays, with the reason.
        """
        return read_configs(self._model)

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


def create_default_quant_config(
    op: Operation,
    num_of_bits: int,
    quant_min: int,
    quant_max: int,
    observer_algorithm: str,
    policy: QuantizationPolicy,
    rounding: RoundingPolicy,
    exponent_bits: int = 0,
) -> OperationQuantizationConfig:
    """Return configs for all operands and results of an operation, INITIAL where they are data.

    Operands that are not data by the operation's socket, as the bounds of a Clip, are FP32. Change
    single configs afterwards: policy, codes and channel axis are open until a config has a scale.

    Raises:
        UsageError: an unknown observer, a policy for each channel, or bits of an exponent.
    """
    if exponent_bits:
        raise UsageError(f"codes are integers, without {exponent_bits} bits of an exponent")
    if policy.is_per_channel:
        raise UsageError(
            "operands have different axes: start with PER_TENSOR, then set policy and channel_axis "
            "of the config of the weight"
        )
    if observer_algorithm not in _OBSERVERS:
        hint = did_you_mean(observer_algorithm, _OBSERVERS)
        raise UsageError(f"no observer {observer_algorithm!r}{hint} ({', '.join(_OBSERVERS)})")

    def config(*, is_data: bool) -> TensorQuantizationConfig:
        return TensorQuantizationConfig(
            policy,
            num_of_bits,
            quant_min,
            quant_max,
            rounding=rounding,
            observer_algorithm=_OBSERVERS[observer_algorithm],
            state=QuantizationStates.INITIAL if is_data else QuantizationStates.FP32,
        )

    inputs, outputs = op.socket.inputs, op.socket.outputs
    return OperationQuantizationConfig(
        [config(is_data=each) for each in inputs], [config(is_data=each) for each in outputs]
    )
