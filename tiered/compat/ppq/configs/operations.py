"""The configs of a node: one for each operand and result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tiered.compat.ppq.configs.tensor_configs import TensorQuantizationConfig
from tiered.support.errors import UsageError


class OperationQuantizationConfig:
    """The configs of a node: one for each place, also for an absent operand."""

    def __init__(
        self,
        input_quantization_configs: Iterable[TensorQuantizationConfig] = (),
        output_quantization_configs: Iterable[TensorQuantizationConfig] = (),
    ) -> None:
        self.input_quantization_config = list(input_quantization_configs)
        self.output_quantization_config = list(output_quantization_configs)
        for each in self:
            if not isinstance(each, TensorQuantizationConfig):
                raise UsageError(f"{each!r} is not a TensorQuantizationConfig")

    def __iter__(self) -> Iterator[TensorQuantizationConfig]:
        yield from self.input_quantization_config
        yield from self.output_quantization_config

    def copy_among(
        self, copies: dict[TensorQuantizationConfig, TensorQuantizationConfig]
    ) -> OperationQuantizationConfig:
        """Return copies of all configs, with copies of their dominators."""
        return OperationQuantizationConfig(
            [each.copy_among(copies) for each in self.input_quantization_config],
            [each.copy_among(copies) for each in self.output_quantization_config],
        )

    def copy(self) -> OperationQuantizationConfig:
        """Return copies of all configs."""
        return OperationQuantizationConfig(
            [each.copy() for each in self.input_quantization_config],
            [each.copy() for each in self.output_quantization_config],
        )
