"""The edits of packing: positions of each token, masks of attention, values of whole sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tiered.extensions.packing.packed_inputs import POSITIONS, SEGMENTS, SEQUENCES, STARTS
from tiered.extensions.packing.packed_values import (
    Abstract,
    AbstractTensor,
    AxisRole,
    ChoiceEdit,
    Edit,
    MaskEdit,
    PoolEdit,
    PositionEdit,
    SumEdit,
    TermEdit,
)
from tiered.graph import DataType, Graph, Node, TensorType, Value
from tiered.support.errors import ModelError


class PackingRewrite:
    """Applies edits to a graph; inputs are made where an edit needs them.

    Attributes:
        graph: the main graph.
        rows: the dims of rows and columns of the new inputs.
        facts: the relation of each value, before the edits.
        max_valid_num: how many sequences the model takes; 0 for any number.
    """

    def __init__(
        self,
        graph: Graph,
        rows: tuple[str, str],
        facts: Mapping[Value, Abstract],
        max_valid_num: int,
    ) -> None:
        self.graph = graph
        self.rows = rows
        self.facts = dict(facts)
        self.sequences: int | str = max_valid_num or SEQUENCES
        self._inputs: dict[str, Value] = {}
        self._made: dict[tuple[object, ...], Value] = {}
        self._terms: dict[Node, list[str]] = {}

    def apply(self, edits: list[Edit]) -> None:
        """Apply all edits; operands before masks, as a mask may be such an operand."""
        for edit in edits:
            if isinstance(edit, PositionEdit):
                self._place(edit)
            elif isinstance(edit, TermEdit):
                self._extend_term(edit)
        for edit in edits:
            if isinstance(edit, MaskEdit):
                self._mask(edit)
        for edit in edits:
            if isinstance(edit, SumEdit):
                self._sum(edit.node)
        for edit in edits:
            if isinstance(edit, PoolEdit):
                self._pool(edit.node)
            elif isinstance(edit, ChoiceEdit):
                self._choose(edit)

    # --- inputs -------------------------------------------------------------------------------

    def _input(self, name: str, *dims: int | str) -> Value:
        """Return one of the new inputs.

        Raises:
            ModelError: the graph has another value of the name.
        """
        if name not in self._inputs:
            if name in self.graph.values:
                raise ModelError(
                    f"packed_transformer: the model has a tensor {name!r}, which is the name of an "
                    "input of packed models; rename it (`rename`)"
                )
            kind = TensorType(DataType.INT64, tuple(dims))
            self._inputs[name] = self.graph.add_input(name, kind)
        return self._inputs[name]

    @property
    def positions(self) -> Value:
        return self._input(POSITIONS, *self.rows)

    @property
    def segments(self) -> Value:
        return self._input(SEGMENTS, *self.rows)

    @property
    def starts(self) -> Value:
        return self._input(STARTS, self.sequences, 2)

    def _once(self, key: tuple[object, ...], make: Callable[[], Value]) -> Value:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _tensor(self, value: Value) -> AbstractTensor:
        fact = self.facts[value]
        assert isinstance(fact, AbstractTensor)
        return fact

    # --- positions ----------------------------------------------------------------------------

    def _place(self, edit: PositionEdit) -> None:
        """Gather an operand by the positions of the tokens of each row."""
        value = edit.node.given(edit.slot)
        roles = self._tensor(value).roles
        shift = edit.rank - len(roles)
        made = self._once(
            (value, shift, edit.batch), lambda: self._placed(value, shift, edit.batch)
        )
        axis = max(edit.batch - shift, 0)
        made = self._once((made, axis, edit.parts), lambda: self._repeated(made, axis, edit.parts))
        self.graph.set_input(edit.node, edit.slot, made)

    def _extend_term(self, edit: TermEdit) -> None:
        """Gather an operand of an Einsum by the positions of each row."""
        value, graph = edit.node.given(edit.slot), self.graph
        made = self._once((value, 1, 0), lambda: self._placed(value, 1, 0))
        made = self._once((made, 0, edit.parts), lambda: self._repeated(made, 0, edit.parts))
        own = self._terms.setdefault(edit.node, list(edit.terms[:-1]))
        own[edit.slot] = edit.label + own[edit.slot]
        graph.set_input(edit.node, edit.slot, made)
        equation = f"{','.join(own)}->{edit.terms[-1]}"
        graph.set_attribute(edit.node, "equation", equation)

    def _repeated(self, value: Value, axis: int, parts: int) -> Value:
        """Return a tensor with each of its rows several times, one after the other."""
        if parts == 1:
            return value
        op, rank = self.graph.op, value.rank
        assert rank is not None
        apart = op.Unsqueeze(value, np.array([axis + 1], np.int64))
        shape = np.ones(rank + 1, np.int64)
        shape[axis + 1] = parts
        rest = op.Shape(value, start=axis + 1)
        target = op.Concat(np.array([0] * axis + [-1], np.int64), rest, axis=0)
        return op.Reshape(op.Expand(apart, shape), target)

    def _placed(self, value: Value, shift: int, batch: int) -> Value:
        """Return a tensor of positions with one more axis of size 1 replaced by the rows.

        Args:
            value: the tensor.
            shift: how many dims of size 1 broadcasting puts before its own.
            batch: the axis of the rows in the result.
        """
        op, roles = self.graph.op, self._tensor(value).roles
        if batch < shift:
            # The result needs the axes from that of the rows on.
            new = shift - batch - 1
            roles, batch = ((None,) * new + roles), 0
            if new:
                value = op.Unsqueeze(value, np.arange(new, dtype=np.int64))
        else:
            batch -= shift
            value = op.Squeeze(value, np.array([batch], np.int64))
            roles = roles[:batch] + roles[batch + 1 :]
        tokens = [axis for axis, role in enumerate(roles) if role is AxisRole.TOKEN]
        others = [axis for axis in range(len(roles)) if axis not in tokens]
        if len(tokens) == 1:
            made = op.Gather(value, self.positions, axis=tokens[0])
            order = [*others[: tokens[0]], -1, tokens[0], *others[tokens[0] :]]
        else:
            made = self._pairs(op.Transpose(value, perm=[*others, *tokens]))
            order = [*others, -1, *tokens]
        wanted = list(range(len(roles)))
        wanted.insert(batch, -1)
        perm = [order.index(axis) for axis in wanted]
        return self._transposed(made, perm)

    def _pairs(self, value: Value) -> Value:
        """Return [..., rows, queries, keys] of [..., positions, positions]."""
        op, rank = self.graph.op, value.rank
        assert rank is not None
        width = op.Gather(op.Shape(value), np.array([-1], np.int64))
        flat = op.Reshape(value, np.array([0] * (rank - 2) + [-1], np.int64))
        index = self._once(
            ("pairs",),
            lambda: op.Add(
                op.Mul(op.Unsqueeze(self.positions, np.array([2], np.int64)), width),
                op.Unsqueeze(self.positions, np.array([1], np.int64)),
            ),
        )
        return op.Gather(flat, index, axis=rank - 2)

    # --- attention ----------------------------------------------------------------------------

    def _mask(self, edit: MaskEdit) -> None:
        """Make the scores of keys of other sequences -inf, in the mask if the scores have one."""
        node = edit.node
        scores = node.given(0)
        fact = self._tensor(scores)
        axis = node.attr("axis", -1) % len(fact.roles)
        adder = scores.producer
        if adder is not None and adder.is_op("Add"):
            for slot, value in enumerate(adder.inputs):
                if value is not None and self._is_mask(value):
                    keys = axis - len(fact.roles) + len(self._tensor(value).roles)
                    self.graph.set_input(adder, slot, self._masked(value, keys, edit.parts))
                    return
        self.graph.set_input(node, 0, self._masked(scores, axis, edit.parts))

    def _is_mask(self, value: Value) -> bool:
        """Return whether a tensor has one number for each pair of tokens of a row."""
        fact, shape = self.facts.get(value), value.shape
        if not isinstance(fact, AbstractTensor) or shape is None:
            return False
        rest = [dim for dim, role in zip(shape, fact.roles, strict=True) if role is None]
        return len(fact.places(AxisRole.TOKEN)) == 2 and all(dim == 1 for dim in rest)

    def _masked(self, value: Value, keys: int, parts: int) -> Value:
        return self._once((value, keys), lambda: self._where_same(value, keys, parts))

    def _where_same(self, value: Value, keys: int, parts: int) -> Value:
        assert value.dtype is not None
        least = np.array(-np.inf, DataType(value.dtype).numpy)
        fact = self._tensor(value)
        (queries,) = [axis for axis in fact.places(AxisRole.TOKEN) if axis != keys]
        (batch,) = (*fact.places(AxisRole.BATCH), *fact.places(AxisRole.HEADS))
        shape = (len(fact.roles), batch, queries, keys)
        same = self._once(shape, lambda: self._same_sequence(*shape))
        if fact.roles[batch] is AxisRole.HEADS:
            key = (same, batch, parts)
            same = self._once(key, lambda: self._repeated(same, batch, parts))
        return self.graph.op.Where(same, value, least)

    def _same_sequence(self, rank: int, batch: int, queries: int, keys: int) -> Value:
        """Return whether query and key are of one sequence, in the axes of the scores."""
        op = self.graph.op
        one, other = (
            op.Unsqueeze(
                self.segments,
                np.array([axis for axis in range(rank) if axis not in (batch, own)], np.int64),
            )
            for own in (queries, keys)
        )
        return op.Equal(one, other)

    # --- sums from the first token on ---------------------------------------------------------

    def _sum(self, node: Node) -> None:
        """Subtract from a sum over a row what it is before the sequence of each token."""
        op, value, total = self.graph.op, node.given(0), node.output
        own = op.like(node, *node.inputs)
        before = own if node.attr("exclusive", 0) else op.Sub(own, value)
        first = self._once(("first",), self._first_columns)
        if value.rank == 2:
            start = op.GatherElements(before, first, axis=1)
        else:
            start = op.GatherND(before, op.Unsqueeze(first, np.array([2], np.int64)), batch_dims=1)
        made = op.Sub(own, start)
        self.facts[made] = self.facts[total]
        self.graph.replace_uses(total, made)
        self.graph.prune([node])

    def _first_columns(self) -> Value:
        """Return the column of the first token of each token's sequence, as [rows, length]."""
        op = self.graph.op
        length = op.Gather(op.Shape(self.positions), np.int64(1))
        columns = op.Range(np.int64(0), length, np.int64(1))
        return op.Sub(columns, self.positions)

    # --- whole sequences ----------------------------------------------------------------------

    def _pool(self, node: Node) -> None:
        """Take the first token of each sequence, or reduce over its tokens."""
        graph, value = self.graph, node.given(0)
        fact = self._tensor(value)
        (batch,), (token,) = fact.places(AxisRole.BATCH), fact.places(AxisRole.TOKEN)
        order = [axis for axis in range(len(fact.roles)) if axis != token]
        others = [axis for axis in order if axis != batch]
        first = self._transposed(value, [batch, token, *others])
        if node.op_type in ("ReduceSum", "ReduceMean"):
            made = self._reduced(first, is_mean=node.op_type == "ReduceMean")
        else:
            made = graph.op.GatherND(first, self.starts)
        made = self._transposed(made, [[batch, *others].index(axis) for axis in order])
        if node.output.rank == len(fact.roles):
            made = graph.op.Unsqueeze(made, np.array([token], np.int64))
        before = node.output
        graph.replace_uses(before, made)
        graph.prune([node])

    def _transposed(self, value: Value, perm: list[int]) -> Value:
        return value if perm == sorted(perm) else self.graph.op.Transpose(value, perm=perm)

    def _reduced(self, value: Value, *, is_mean: bool) -> Value:
        """Return the sum or mean over the tokens of each sequence, of [rows, columns, ...].

        Other tokens of its row count as 0: a product with 0 would be NaN where they are Inf.
        """
        op, dtype, rank = self.graph.op, value.dtype, value.rank
        assert dtype is not None
        assert rank is not None
        row = self._once(("row",), lambda: op.Gather(self.starts, np.int64(0), axis=1))
        own = self._once(("is own", rank), lambda: self._is_own(row, rank))
        axis = np.array([1], np.int64)
        zero = np.array(0, DataType(dtype).numpy)
        total = op.ReduceSum(op.Where(own, op.Gather(value, row), zero), axis, keepdims=0)
        if not is_mean:
            return total
        count = self._once(
            ("length", dtype, rank), lambda: op.ReduceSum(op.Cast(own, to=dtype), axis, keepdims=0)
        )
        return op.Div(total, count)

    def _is_own(self, row: Value, rank: int) -> Value:
        """Return whether the tokens of its row are of a sequence, as [sequences, columns, 1...]."""
        op = self.graph.op
        own = op.Equal(op.Gather(self.segments, row), self._numbers())
        return op.Unsqueeze(own, np.arange(2, rank)) if rank > 2 else own

    def _choose(self, edit: ChoiceEdit) -> None:
        """Take the token of each sequence whose number is the largest of its sequence."""
        op, value, numbers = self.graph.op, edit.node.given(0), edit.chooser.given(0)
        assert numbers.dtype is not None
        own = self._once(("is member",), self._is_member)
        flat = op.Reshape(numbers, np.array([1, -1], np.int64))
        least = np.array(np.iinfo(DataType(numbers.dtype).numpy).min, DataType(numbers.dtype).numpy)
        largest = op.ReduceMax(op.Where(own, flat, least), np.array([1], np.int64), keepdims=1)
        # Of a sequence of smallest numbers no token of another one is taken.
        is_largest = op.Cast(op.And(own, op.Equal(flat, largest)), to=int(DataType.INT32))
        if edit.chooser.attr("select_last_index", 0):
            place = op.ArgMax(is_largest, axis=1, keepdims=0, select_last_index=1)
        else:
            place = op.ArgMax(is_largest, axis=1, keepdims=0)
        tokens = value if AxisRole.FLAT in self._tensor(value).roles else op.Flatten(value, axis=2)
        self.graph.replace_uses(edit.node.output, op.Gather(tokens, place))
        self.graph.prune([edit.node])

    def _is_member(self) -> Value:
        """Return whether a token is of a sequence, as [sequences, rows * columns]."""
        op = self.graph.op
        return op.Equal(self._numbers(), op.Reshape(self.segments, np.array([1, -1], np.int64)))

    def _numbers(self) -> Value:
        """Return the numbers of the sequences, as [sequences, 1]."""
        op = self.graph.op
        count = op.Gather(op.Shape(self.starts), np.int64(0))
        number = op.Add(op.Range(np.int64(0), count, np.int64(1)), np.int64(1))
        return op.Unsqueeze(number, np.array([1], np.int64))
