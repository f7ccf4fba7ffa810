"""What weights are multiplied by on samples: rows of the operands of MatMul, Gemm and Conv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.analysis.roles.masks import LARGEST
from tiered.graph import Model, Node, Value
from tiered.numerics.calibration.calibrate import SampledModel
from tiered.numerics.precision.few_bits.convolution_rows import ConvolutionWindow
from tiered.numerics.precision.measurement import MOST_MEASURED
from tiered.numerics.precision.narrowed_runs import input_count
from tiered.runtime.inputs.samples import Source, read_samples
from tiered.support.errors import RuntimeFailure

Array = np.ndarray[Any, Any]

_ROWS: Final = 256
"""Rows of an operand that are kept of a sample, evenly spaced."""

_ALL_ROWS: Final = 4096
"""As many at most of all samples."""

_TOGETHER: Final = 1 << 26
"""Bytes of rows that are measured in one run of the samples, and in memory together."""

_OTHER_SEEDS: Final = 1 << 16
"""Added to the seed of generated inputs: errors are measured on other ones."""

_HELD: Final = 4
"""One sample of four is held back, to choose by."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """What operands are measured on.

    Attributes:
        inputs: files or arrays; made without any, for a model of up to 256 MiB of weights.
        seed: of generated inputs.
        samples: how many are made.
    """

    inputs: Sequence[Source] = ()
    seed: int = 0
    samples: int = 8


@dataclass(frozen=True)
class WeightOperand:
    """Rows that a weight is multiplied by.

    Attributes:
        fitted: rows to compute by, float32 [rows, columns].
        held: rows to choose by, of other samples if there are four.
    """

    fitted: Array
    held: Array

    @classmethod
    def of(cls, samples: Sequence[Array]) -> WeightOperand | None:
        """Return the finite rows of some samples; None if there are too few to hold back any."""
        rows = np.concatenate(samples)
        numbers = np.repeat(np.arange(len(samples)), [len(each) for each in samples])
        with np.errstate(invalid="ignore"):
            usable = (np.abs(rows) < LARGEST).all(1)
        rows, numbers = rows[usable], numbers[usable]
        if len(samples) < _HELD:
            numbers = np.arange(len(rows))
        is_held = numbers % _HELD == _HELD - 1
        if is_held.all() or not is_held.any():
            return None
        return cls(rows[~is_held], rows[is_held])


class _ReadRows(NamedTuple):
    """A value, and the windows of it that are rows; None where its last axis is."""

    name: str
    window: ConvolutionWindow | None = None

    def rows(self, array: Array, most: int) -> Array:
        """Return some rows of the value, at most `most`."""
        return _some_rows(array, most) if self.window is None else self.window.rows(array, most)


class Operands:
    """The operands of weights, measured a group of weights at a time. A context manager.

    Args:
        model: as it is when `plan` is called; later edits change nothing here.
        sampling: what they are measured on.
    """

    def __init__(self, model: Model, sampling: Sampling) -> None:
        self._model = model
        self._sampling = sampling
        self._stack = ExitStack()
        self._running: SampledModel | None = None
        self._feeds: Sequence[dict[str, Any]] = ()
        self._groups: dict[Value, list[Value]] = {}
        self._reads: dict[Value, tuple[_ReadRows, ...]] = {}
        self._rows: dict[_ReadRows, list[Array]] = {}
        self.reason = ""
        """Why nothing is measured; empty if it is."""

    def __enter__(self) -> Operands:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def __str__(self) -> str:
        return input_count(len(self._feeds), is_made=not self._sampling.inputs)

    def plan(self, readers: Mapping[Value, Sequence[Node]]) -> None:
        """Say which weights will be asked for, in this order; only the first call has an effect.

        Args:
            readers: the nodes that read each weight, as their operand 1.

        Raises:
            UsageError: a file of inputs belongs to no input.
            ModelError: a file of inputs cannot be read.
        """
        if self._reads or self.reason:
            return
        found = {value: _operands(nodes) for value, nodes in readers.items()}
        self._reads = {value: reads for value, reads in found.items() if reads}
        if not self._reads:
            self.reason = "no operand of a MatMul or Gemm of the main graph"
            return
        if not self._is_open():
            return
        for group in self._grouped():
            self._groups.update(dict.fromkeys(group, group))

    def samples(self) -> Sequence[dict[str, Any]]:
        """Return the samples; none if nothing is measured.

        Raises:
            UsageError, ModelError, RuntimeFailure: as of `plan`.
        """
        return self._feeds if self._is_open() else ()

    def check_inputs(self) -> None:
        """Raise if inputs were given, nothing was measured on them, and they cannot be read.

        Raises:
            UsageError, ModelError: as of `plan`.
        """
        if self._running is None and self._sampling.inputs:
            read_samples(self._sampling.inputs)

    def of(self, weight: Value) -> WeightOperand | None:
        """Return what a weight is multiplied by; None if that is not measured.

        Raises:
            RuntimeFailure: onnxruntime does not run the model on the inputs that are given.
        """
        if weight not in self._groups:
            return None
        reads = self._reads[weight]
        if not set(reads) <= self._rows.keys():
            self._measure(self._groups[weight])
        samples = [
            np.concatenate([self._rows[read][number] for read in reads])
            for number in range(len(self._feeds))
        ]
        return WeightOperand.of(samples)

    def _is_open(self) -> bool:
        """Open the model, if that was not done; return whether it is, or note why not."""
        if self._running is not None or self.reason:
            return not self.reason
        if not self._sampling.inputs and self._model.nbytes > MOST_MEASURED:
            self.reason = f"more than {MOST_MEASURED:,} bytes of weights, and no inputs are given"
            return False
        try:
            self._open()
        except RuntimeFailure as error:
            if self._sampling.inputs:
                raise
            self.reason = str(error).partition("\n")[0]
        return not self.reason

    def _open(self) -> None:
        sampling = self._sampling
        running = self._stack.enter_context(SampledModel.of(self._model))
        seed = sampling.seed + _OTHER_SEEDS
        self._feeds = running.samples(sampling.inputs, seed=seed, count=sampling.samples)
        self._running = running

    def _grouped(self) -> Iterator[list[Value]]:
        """Yield weights whose operands are in memory together."""
        group, taken = list[Value](), 0
        for value, reads in self._reads.items():
            tensor = value.tensor
            assert tensor is not None
            # An operand is as wide as the longer side of a matrix, or less; in groups, as all.
            wide = tensor.size // max(min(tensor.shape[:2]), 1)
            width = 4 * _ROWS * len(self._feeds) * len(reads) * wide
            if group and taken + width > _TOGETHER:
                yield group
                group, taken = [], 0
            group.append(value)
            taken += width
        yield group

    def _measure(self, group: Sequence[Value]) -> None:
        """Keep the rows of the operands of a group, and of no other."""
        assert self._running is not None
        reads = {read for value in group for read in self._reads[value]}
        self._rows = {read: [] for read in reads}
        most = max(min(_ROWS, _ALL_ROWS // len(self._feeds)), 1)
        for feeds in self._feeds:
            for name, array in self._running.stream(feeds, {read.name for read in reads}):
                for read in (each for each in reads if each.name == name):
                    self._rows[read].append(read.rows(array, most))


def _operands(readers: Sequence[Node]) -> tuple[_ReadRows, ...]:
    """Return what readers multiply a weight by; nothing if that cannot be measured."""
    reads = dict[_ReadRows, None]()
    for node in readers:
        operand, weight, window = node.given(0), node.input(1), None
        is_row = node.is_op("MatMul") or (node.is_op("Gemm") and not node.attr("transA", 0))
        if node.is_op("Conv") and weight is not None and weight.tensor is not None:
            window = ConvolutionWindow.of(node, weight.tensor.shape)
        if operand.is_constant or not node.owner.is_main:
            return ()
        if not is_row and window is None:
            return ()
        reads[_ReadRows(operand.name, window)] = None
    return tuple(reads)


def _some_rows(array: Array, most: int) -> Array:
    """Return some rows of an operand, evenly spaced, in float32."""
    rows = array.reshape(-1, array.shape[-1])
    step = max(-(-len(rows) // most), 1)
    kept: Array = rows[::step].astype(np.float32)
    return kept
