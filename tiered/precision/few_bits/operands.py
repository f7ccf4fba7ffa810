"""What weights are multiplied by on samples: rows of the operands of MatMul and Gemm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tiered.calibration.calibrate import SampledModel
from tiered.errors import RuntimeFailure
from tiered.graph import Model, Node, Value
from tiered.precision.measurement import MOST_MEASURED
from tiered.precision.trials import input_count
from tiered.roles.masks import LARGEST
from tiered.verify.samples import Source

Array = np.ndarray[Any, Any]

_ROWS: Final = 256
"""Rows of an operand that are kept of a sample, evenly spaced."""

_TOGETHER: Final = 1 << 26
"""Bytes of rows that are measured in one run of the samples, and in memory together."""

_OTHER_SEEDS: Final = 1 << 16
"""Added to the seed of generated inputs: errors are measured on other ones."""

_HELD: Final = 4
"""One of so many samples is held back, to choose by."""


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
class Operand:
    """Rows that a weight is multiplied by.

    Attributes:
        fitted: rows to compute by, float32 [rows, columns].
        held: rows to choose by, of other samples if there are four.
    """

    fitted: Array
    held: Array

    @classmethod
    def of(cls, samples: Sequence[Array]) -> Operand | None:
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
        self._names: dict[Value, tuple[str, ...]] = {}
        self._rows: dict[str, list[Array]] = {}
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
        if self._running is not None or self.reason:
            return
        found = {value: _operands(nodes) for value, nodes in readers.items()}
        self._names = {value: names for value, names in found.items() if names}
        if not self._names:
            self.reason = "no operand of a MatMul or Gemm of the main graph"
            return
        if not self._sampling.inputs and self._model.nbytes > MOST_MEASURED:
            self.reason = f"more than {MOST_MEASURED:,} bytes of weights, and no inputs are given"
            return
        try:
            self._open()
        except RuntimeFailure as error:
            if self._sampling.inputs:
                raise
            self.reason = str(error).partition("\n")[0]
            return
        for group in self._grouped():
            self._groups.update(dict.fromkeys(group, group))

    def of(self, weight: Value) -> Operand | None:
        """Return what a weight is multiplied by; None if that is not measured.

        Raises:
            RuntimeFailure: onnxruntime does not run the model on the inputs that are given.
        """
        if weight not in self._groups:
            return None
        names = self._names[weight]
        if not set(names) <= self._rows.keys():
            self._measure(self._groups[weight])
        samples = [
            np.concatenate([self._rows[name][number] for name in names])
            for number in range(len(self._feeds))
        ]
        return Operand.of(samples)

    def _open(self) -> None:
        sampling = self._sampling
        running = self._stack.enter_context(SampledModel.of(self._model))
        seed = sampling.seed + _OTHER_SEEDS
        self._feeds = running.samples(sampling.inputs, seed=seed, count=sampling.samples)
        self._running = running

    def _grouped(self) -> Iterator[list[Value]]:
        """Yield weights whose operands are in memory together."""
        group, taken = list[Value](), 0
        for value, names in self._names.items():
            tensor = value.tensor
            assert tensor is not None
            # An operand is as wide as the longer side of a weight, or less.
            width = 4 * _ROWS * len(self._feeds) * len(names) * max(tensor.shape)
            if group and taken + width > _TOGETHER:
                yield group
                group, taken = [], 0
            group.append(value)
            taken += width
        yield group

    def _measure(self, group: Sequence[Value]) -> None:
        """Keep the rows of the operands of a group, and of no other."""
        assert self._running is not None
        wanted = {name for value in group for name in self._names[value]}
        self._rows = {name: [] for name in wanted}
        for feeds in self._feeds:
            for name, array in self._running.stream(feeds, wanted):
                self._rows[name].append(_some_rows(array))


def _operands(readers: Sequence[Node]) -> tuple[str, ...]:
    """Return the names of what readers multiply a weight by; none if that cannot be measured."""
    names = dict[str, None]()
    for node in readers:
        operand = node.input(0)
        if not node.is_op("MatMul") and not (node.is_op("Gemm") and not node.attr("transA", 0)):
            return ()
        if operand is None or operand.is_constant or not operand.owner.is_main:
            return ()
        if not node.owner.is_main:
            return ()
        names[operand.name] = None
    return tuple(names)


def _some_rows(array: Array) -> Array:
    """Return some rows of an operand, in float32."""
    rows = array.reshape(-1, array.shape[-1])
    step = max(-(-len(rows) // _ROWS), 1)
    kept: Array = rows[::step].astype(np.float32)
    return kept
