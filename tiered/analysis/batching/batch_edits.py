"""The edits that let a model take any batch: sizes, repeated rows, and lifted operators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np

from tiered.analysis.batching.sample_facts import BatchRows, mentions
from tiered.analysis.batching.uniform_values import Array, by_sample
from tiered.graph import DataType, Graph, Model, Node, Value
from tiered.graph.shape_inference.symbolic_dims import Poly, Size
from tiered.rewriter.idioms.windows import Windows, convolved

_ALL: Final = np.iinfo(np.int64).max


class Rewriting:
    """Edits a model; after each edit it computes the same for the present batch.

    Args:
        model: the model.
        source: an input with the batch.
        axis: its axis.
        old: the present size of the batch.
    """

    def __init__(self, model: Model, source: Value, axis: int, old: int) -> None:
        self._model = model
        self._source = source
        self._axis = axis
        self._old = old
        self._batch: Value | None = None
        self._fixed: list[tuple[Value, Callable[[int], Array]]] = []
        self._made: dict[tuple[Graph, Value, BatchRows], Value] = {}

    # --- sizes --------------------------------------------------------------------------------

    @property
    def batch(self) -> Value:
        """The size of the batch, as a vector of one element of the main graph."""
        if self._batch is None or self._batch.graph is None:
            op = self._model.main.op
            shape = op.Shape(self._source)
            self._batch = op.Gather(shape, np.array([self._axis], np.int64), axis=0)
        return self._batch

    def vector(self, graph: Graph, pieces: Sequence[Size | None], present: Value | None) -> Value:
        """Return a vector of sizes; where a piece is None, it has the present element."""
        op, parts = graph.op, list[Value]()
        numbers: list[int] = []

        def flush() -> None:
            if numbers:
                parts.append(graph.constant(np.array(numbers, np.int64), "sizes"))
                numbers.clear()

        for at, piece in enumerate(pieces):
            if isinstance(piece, int):
                numbers.append(piece)
                continue
            flush()
            if piece is None:
                assert present is not None
                parts.append(op.Gather(present, np.array([at], np.int64), axis=0))
            else:
                factor = _factor(piece)
                size = self.batch
                parts.append(size if factor == 1 else op.Mul(size, np.array([factor], np.int64)))
        flush()
        made = parts[0] if len(parts) == 1 else op.Concat(*parts, axis=0)
        known = [piece for piece in pieces if piece is not None]
        if len(known) == len(pieces):
            self._fixed.append((made, lambda size: _numbers(known, size)))
        return made

    def fix(self, size: int) -> None:
        """Make constants of what follows from a batch of a fixed size."""
        if self._batch is not None:
            self._fixed.append((self._batch, lambda size: np.array([size], np.int64)))
        for value, array in self._fixed:
            if value.graph is not None and value.producer is not None:
                constant = value.owner.constant(array(size), value.name)
                value.owner.replace(value.producer, [constant])

    # --- edits --------------------------------------------------------------------------------

    def set_input(self, node: Node, slot: int, value: Value) -> None:
        """Let a node read another value."""
        before = node.inputs[slot]
        node.owner.set_input(node, slot, value)
        self._drop(before)

    def _drop(self, value: Value | None) -> None:
        if value is not None and value.graph is not None:
            if value.producer is not None:
                value.owner.prune([value.producer])
            else:
                value.owner.discard(value)

    def replace(self, node: Node, build: Callable[[], Value]) -> None:
        """Let a new value take the place of the output of a node."""
        since = self._model.peek_serial()
        node.owner.replace(node, [build()], since=since)

    def set_target(self, node: Node, pieces: Sequence[Size | None], slot: int = 1) -> None:
        """Give a node another shape operand."""
        present = node.input(slot)
        if present is not None:
            made = self.vector(node.owner, pieces, present)
            self.set_input(node, slot, made)
            return
        # An attribute before opset 5.
        node.owner.set_attribute(node, "shape", [int(str(piece)) for piece in pieces])

    def move(self, node: Node, rows: BatchRows, made: BatchRows) -> None:
        """Let a Reshape give the samples of its operand an axis of their own, by Transposes."""
        self.replace(node, lambda: self._moved(node, rows, made))

    def _moved(self, node: Node, rows: BatchRows, made: BatchRows) -> Value:
        op, value, shape = node.owner.op, node.given(0), node.output.static_shape
        assert shape is not None
        split = op.Reshape(value, np.array(self._split(value, rows, -1), np.int64))
        rank = _rank(value) + 2
        others = [axis for axis in range(rank) if axis != rows.axis + 1]
        first = op.Transpose(split, perm=[rows.axis + 1, *others])
        rest = (*shape[: made.axis], *shape[made.axis + 1 :])
        flat: Value = op.Reshape(first, np.array([-1, *rest], np.int64))
        perm = [*range(1, made.axis + 1), 0, *range(made.axis + 1, len(shape))]
        return flat if not made.axis else op.Transpose(flat, perm=perm)

    def set_end(self, node: Node, number: int) -> None:
        """Let a Slice end with the last element of one of its axes."""
        ends = node.input(2)
        if ends is None:
            numbers = list(node.attr("ends"))
            numbers[number] = int(_ALL)
            node.owner.set_attribute(node, "ends", numbers)
            return
        array = ends.const
        if array is not None:
            array = array.copy()
            array[number] = np.iinfo(array.dtype).max
            self.set_input(node, 2, node.owner.constant(array, ends.name))
            return
        assert ends.elements is not None
        pieces: list[Size | None] = [None] * len(ends.elements)
        pieces[number] = int(_ALL)
        self.set_input(node, 2, self.vector(node.owner, pieces, ends))

    def first(self, graph: Graph, value: Value, rows: BatchRows) -> Value:
        """Return a value with the first sample alone; they are all equal."""
        if self._old == 1:
            return value
        array = value.const
        if array is not None:
            part = by_sample(array, rows, self._old)[0]
            shape = list(array.shape)
            shape[rows.axis] //= self._old
            return graph.constant(part.reshape(shape), value.name)
        op, parts, axis = graph.op, value, rows.axis
        if not rows.is_whole:
            axis += 1
            parts = op.Reshape(value, np.array(self._split(value, rows, self._old), np.int64))
        bounds = [np.array([each], np.int64) for each in (0, 1, axis)]
        made: Value = op.Slice(parts, *bounds)
        if not rows.is_whole:
            made = op.Reshape(made, np.array(self._merged(value, rows), np.int64))
        return made

    def spread(self, graph: Graph, value: Value, rows: BatchRows) -> Value:
        """Return a value that is repeated for each sample."""
        key = (graph, value, rows)
        if key not in self._made or self._made[key].graph is None:
            self._made[key] = self._spread(graph, value, rows)
        return self._made[key]

    def _spread(self, graph: Graph, value: Value, rows: BatchRows) -> Value:
        op, rank = graph.op, _rank(value)
        one = self.first(graph, value, rows)
        pieces: list[Size | None] = [1] * rank
        pieces[rows.axis] = _BATCH
        if rows.is_whole:
            made: Value = op.Expand(one, self.vector(graph, pieces, None))
            return made
        split = op.Reshape(one, np.array(self._split(value, rows, 1), np.int64))
        shape: list[Size | None] = [1] * (rank + 2)
        shape[rows.axis + 1] = _BATCH
        wide = op.Expand(split, self.vector(graph, shape, None))
        merged: Value = op.Reshape(wide, np.array(self._merged(value, rows), np.int64))
        return merged

    def _split(self, value: Value, rows: BatchRows, batch: int) -> list[int]:
        """Return a target that makes three axes of that of the batch."""
        sizes = self._sizes(value, rows)
        assert isinstance(rows.outer, int)
        assert isinstance(rows.inner, int)
        parts = [rows.outer, batch, rows.inner]
        return [*sizes[: rows.axis], *parts, *sizes[rows.axis + 1 :]]

    def _merged(self, value: Value, rows: BatchRows) -> list[int]:
        sizes = self._sizes(value, rows)
        return [*sizes[: rows.axis], -1, *sizes[rows.axis + 1 :]]

    def _sizes(self, value: Value, rows: BatchRows) -> list[int]:
        """Return the sizes of a value; 0 copies those before the batch."""
        dims = value.shape
        assert dims is not None
        found = []
        for at, dim in enumerate(dims):
            assert at <= rows.axis or isinstance(dim, int)
            found.append(dim if isinstance(dim, int) else 0)
        return found

    def number(self, node: Node, local: Array, axis: int, factors: Array) -> None:
        """Let the index of a Gather take the rows of each sample.

        Args:
            node: the Gather or GatherND.
            local: the index of one sample, of size 1 along the axis of the batch.
            axis: that axis of the index.
            factors: what each further sample adds.
        """
        op = node.owner.op
        place = [-1 if at == axis else 1 for at in range(local.ndim)]
        count = op.Squeeze(self.batch, np.array([0], np.int64))
        samples = op.Range(np.int64(0), count, np.int64(1))
        samples = op.Reshape(samples, np.array(place, np.int64))
        offsets = op.Mul(samples, factors.astype(np.int64))
        made = op.Add(offsets, local.astype(np.int64))

        def array(size: int) -> Array:
            numbers = np.arange(size, dtype=np.int64).reshape(place)
            index: Array = numbers * factors + local
            return index.astype(np.int64)

        self._fixed.append((made, array))
        self.set_input(node, 1, made)

    def number_computed(
        self,
        node: Node,
        data: BatchRows,
        rows: BatchRows,
        column: int | None,
        columns: int | None,
    ) -> None:
        """Let a computed index of the rows of one sample take those of each sample.

        Args:
            node: the Gather or GatherND.
            data: the samples of its data.
            rows: the axis of the index that becomes the batch, and the places of each sample there.
            column: which of the last indices counts along the batch; None for all.
            columns: how many there are.
        """
        op, source, index = node.owner.op, node.given(0), node.given(1)
        offsets = self._samples(node.owner, _rank(index), rows.axis, rows.inner)
        if not data.is_whole:
            total = op.Gather(op.Shape(source), np.array([data.axis], np.int64), axis=0)
            offsets = op.Mul(offsets, op.Div(total, self.batch))
        if column is not None and columns is not None:
            one_hot = (np.arange(columns) == column).astype(np.int64)
            offsets = op.Mul(offsets, one_hot)
        if index.dtype != DataType.INT64:
            offsets = op.Cast(offsets, to=index.dtype)
        if data.is_whole:
            # The only row of a sample is 0, or -1.
            kept = np.zeros(()) if columns is None else np.arange(columns) != column
            assert index.dtype is not None
            index = op.Mul(index, kept.astype(DataType(index.dtype).numpy))
        self.set_input(node, 1, op.Add(offsets, index))

    def _samples(self, graph: Graph, rank: int, axis: int, inner: Size = 1) -> Any:
        """Return the numbers of the samples along an axis of a tensor; the others have size 1.

        Each number is there `inner` times.
        """
        op, place = graph.op, [-1 if at == axis else 1 for at in range(rank)]
        count = op.Squeeze(self.batch, np.array([0], np.int64))
        samples = op.Range(np.int64(0), count, np.int64(1))
        if inner != 1:
            assert isinstance(inner, int)
            column = op.Reshape(samples, np.array([-1, 1], np.int64))
            samples = op.Add(column, np.zeros((1, inner), np.int64))
        return op.Reshape(samples, np.array(place, np.int64))

    def number_rows(self, node: Node, slot: int, rows: BatchRows) -> None:
        """Let an operand have the number of the sample of each row, of one axis."""
        made = self._samples(node.owner, 1, 0, rows.inner)
        self.set_input(node, slot, made)

    def count_from(self, node: Node, slot: int, axis: int, step: int, start: Array) -> None:
        """Let a constant operand that counts the samples count those of any batch.

        Args:
            node: the node.
            slot: the operand.
            axis: its axis of the batch.
            step: what each further sample adds.
            start: the numbers of the first sample, of size 1 along the axis.
        """
        op, value = node.owner.op, node.given(slot)
        offsets = op.Mul(self._samples(node.owner, start.ndim, axis), np.int64(step))
        self.set_input(node, slot, op.Add(op.Cast(offsets, to=value.dtype), start))

    def shift(self, node: Node, slot: int, step: int) -> None:
        """Add a number for each sample to an operand that has the batch first.

        Args:
            node: the node.
            slot: the operand, int64.
            step: what each further sample adds.
        """
        value = node.given(slot)
        self.set_input(node, slot, self._shifted(value, step))

    def shift_output(self, node: Node, place: int, step: int) -> None:
        """Add a number for each sample to an output, int64, that has the batch first."""
        since = self._model.peek_serial()
        values = [*node.owner.op.like(node, *node.inputs, outputs=len(node.outputs))]
        values[place] = self._shifted(values[place], step)
        node.owner.replace(node, values, since=since)

    def _shifted(self, value: Value, step: int) -> Value:
        op = value.owner.op
        numbers = self._samples(value.owner, _rank(value), 0)
        made: Value = op.Add(value, op.Mul(numbers, np.int64(step)))
        return made

    def take_places(self, node: Node) -> None:
        """Let a Gather along axis 1 take a place for each sample: a GatherND."""
        op, index = node.owner.op, node.given(1)

        def build() -> Value:
            columns = op.Unsqueeze(index, np.array([-1], np.int64))
            taken = op.GatherND(node.inputs[0], columns, batch_dims=1)
            made: Value = op.Unsqueeze(taken, np.array([1], np.int64))
            return made

        self.replace(node, build)

    def convolve(
        self, node: Node, windows: Windows, kernels: int, group: int, x: BatchRows
    ) -> None:
        """Let a Conv have kernels for each sample: a product of matrices.

        Args:
            node: the Conv; its kernels, and a bias, have those of each sample one after the other.
            windows: those of its image.
            kernels: how many each sample has.
            group: how many groups each sample has.
            x: the samples of the image: its axis 0, or channels of each along axis 1.
        """
        graph, image, weight = node.owner, node.given(0), node.given(1)
        sizes = [axis.size for axis in windows.axes]
        channels = weight.dim(1)
        assert isinstance(channels, int)

        def build() -> Value:
            op, parts = graph.op, image
            if x.axis:
                target = [-1, channels * group, *sizes]
                parts = op.Reshape(image, np.array(target, np.int64))
            made = convolved(
                graph, windows, parts, weight, node.input(2),
                kernels=kernels, group=group, by_sample=True,
            )  # fmt: skip
            if not x.axis:
                return made
            merged: Value = op.Reshape(made, np.array([1, -1, *windows.counts], np.int64))
            return merged

        self.replace(node, build)

    def spread_output(self, body: Graph, at: int, rows: BatchRows) -> None:
        """Repeat an output of a body for each sample."""
        outputs = list(body.outputs)
        outputs[at] = self.spread(body, outputs[at], rows)
        body.set_graph_outputs(outputs, body.output_infos)

    def lift(self, node: Node, rows: BatchRows, carried: Collection[int]) -> None:
        """Compute an operator with the axis of the batch as three: outer, sample, inner.

        Args:
            node: the node.
            rows: the samples of its result.
            carried: the operands that carry samples.
        """
        self.replace(node, lambda: self._lifted(node, rows, carried))

    def _lifted(self, node: Node, rows: BatchRows, carried: Collection[int]) -> Value:
        graph, output = node.owner, node.output
        inputs: list[Any] = []
        for slot, value in enumerate(node.inputs):
            own = -1 if value is None else rows.axis - _rank(output) + _rank(value)
            if value is None or own < 0:
                inputs.append(value)
            else:
                made = self._in_three(graph, value, rows.on(own), is_carried=slot in carried)
                inputs.append(made)
        build: Any = graph.op.named(node.op_type)
        result = build(*inputs, name=node.name, **node.attributes)
        merged: Value = graph.op.Reshape(result, np.array(self._merged(output, rows), np.int64))
        return merged

    def _in_three(self, graph: Graph, value: Value, rows: BatchRows, *, is_carried: bool) -> Value:
        if is_carried:
            target = self._split(value, rows, -1)
        elif value.dim(rows.axis) == 1:
            sizes = self._sizes(value, rows)
            target = [*sizes[: rows.axis], 1, 1, 1, *sizes[rows.axis + 1 :]]
        else:
            value = self.first(graph, value, rows)
            target = self._split(value, rows, 1)
        made: Value = graph.op.Reshape(value, np.array(target, np.int64))
        return made


def _rank(value: Value) -> int:
    """Return the rank of a value, which the analysis knows."""
    rank = value.rank
    assert rank is not None
    return rank


def _numbers(pieces: Sequence[Size], batch: int) -> Array:
    sizes = [piece if isinstance(piece, int) else _factor(piece) * batch for piece in pieces]
    return np.array(sizes, np.int64)


_BATCH: Final = Poly(((("batch",), 1),))


def _factor(size: Size) -> int:
    """Return the number that is multiplied with the batch."""
    assert isinstance(size, Poly)
    ((names, factor),) = size.terms
    assert len(names) == 1
    assert mentions(size, names[0])
    return factor
