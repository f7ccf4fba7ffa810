"""Problems from two versions of a model: changed nodes, their borders, and known dims."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import numpy as np
import onnx

from tiered.certify.domains.bits import RULES, Bits
from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.call import constant
from tiered.certify.evaluation.evaluate import NameScope, ProofSetting, free
from tiered.certify.evaluation.values import CheckedTensor, Unproved
from tiered.certify.problem import Border, Given, Problem, Side
from tiered.certify.trial_sizes import TrialSizes, assignments
from tiered.graph.core.tensor import Tensor as Stored
from tiered.graph.core.types import TensorType
from tiered.verify.changed_region import RegionPair
from tiered.verify.part_extraction import GraphPart

TypeOf = Callable[[str], Border | None]
"""The type of a value of the main graph, by its name."""
_SIZES: Final = frozenset((onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.BOOL))
_MOST: Final = 64
_MOST_DEEP: Final = 400


def problem_of(region: RegionPair, types: TypeOf, known: KnownSizes) -> Problem:
    """Return the problem of a region.

    Raises:
        Unproved: the sides import other opsets, or a border is no tensor.
    """
    opsets = [
        {each.domain: each.version for each in part.frame.opset_import} for part in region.sides
    ]
    if any(opsets[0][d] != opsets[1][d] for d in opsets[0].keys() & opsets[1].keys()):
        raise Unproved("an opset changed")
    borders: dict[str, Border] = {}
    for name in region.reads:
        border = types(name)
        if border is None:
            raise Unproved(f"the type of {name} is not known")
        borders[name] = border
    sides = tuple(
        side_of(part, nodes, region.writes)
        for part, nodes in zip(region.sides, region.inside, strict=True)
    )
    given = known.of([name for name in borders if _may_be_size(borders[name])])
    return Problem(
        (sides[0], sides[1]), borders, region.writes, {**opsets[0], **opsets[1]}, given, known.sizes
    )


def side_of(part: GraphPart, nodes: Collection[int], results: Sequence[str]) -> Side:
    """Return nodes of a part as one side of a problem."""
    order = part.in_order(nodes)
    read = {name for at in order for name in part.reads[at]} | {*results}
    constants = {
        name: stored(part, name)
        for name in sorted(read)
        if name in part.weights and name not in part.inputs
    }
    return Side([part.nodes[at] for at in order], constants, part.callees)


def stored(part: GraphPart, name: str) -> Stored:
    """Return a constant of a part."""
    weight = part.weights[name]
    return weight if isinstance(weight, Stored) else Stored(weight)


def _may_be_size(border: Border) -> bool:
    return border.dtype in _SIZES and border.dims is not None and len(border.dims) <= 1


class KnownSizes:
    """The integers of a model that depend on dims alone, at any sizes.

    Args:
        part: the model.
        types: of its values.
    """

    def __init__(self, part: GraphPart, types: TypeOf) -> None:
        self.part = part
        self._types = types
        self.sizes = assignments()
        self._found: dict[tuple[object, ...], Array | None] = {}

    def of(self, names: Sequence[str]) -> Given:
        """Return what some values are known to be."""
        return _ProblemsOf(self, names) if names else Given()

    def value(self, name: str, sizes: TrialSizes) -> Array | None:
        """Return the numbers of a value at some sizes; None if they are not known."""
        pending = [name]
        while pending:
            wanted = pending[-1]
            node, key = self._node(wanted), self._key(wanted, sizes)
            if key in self._found:
                pending.pop()
                continue
            reads = self.part.reads[node] if node is not None else ()
            if node is not None and self.part.nodes[node].op_type in ("Shape", "Size"):
                reads = ()
            left = [read for read in reads if self._key(read, sizes) not in self._found]
            if len(pending) > _MOST_DEEP:
                return None
            # One operand that is not known is enough.
            if not left or any(self._found.get(self._key(r, sizes), self) is None for r in reads):
                pending.pop()
                self._found[key] = self._numbers(wanted, node, reads, sizes)
            else:
                pending.append(left[0])
        return self._found[self._key(name, sizes)]

    def _node(self, name: str) -> int | None:
        return self.part.producer.get(name)

    def _key(self, name: str, sizes: TrialSizes) -> tuple[object, ...]:
        # A later value or constant may have the name of one that was removed.
        return name, self._node(name), self._constant(name), id(sizes)

    def _constant(self, name: str) -> Stored | None:
        weight = self.part.weights.get(name)
        return weight if isinstance(weight, Stored) else None

    def _numbers(
        self, name: str, at: int | None, reads: Sequence[str], sizes: TrialSizes
    ) -> Array | None:
        part = self.part
        if at is None:
            if name not in part.weights or name in part.inputs:
                return None
            held = stored(part, name)
            return held.dense() if held.size <= _MOST else None
        known = {read: self._found.get(self._key(read, sizes)) for read in reads}
        if any(numbers is None for numbers in known.values()):
            return None
        node = part.nodes[at]
        opsets = {each.domain: each.version for each in part.frame.opset_import}
        scope = NameScope(ProofSetting(Bits(), RULES, opsets, part.callees, trusts_runtime=False))
        try:
            for read in part.reads[at]:
                numbers = known.get(read)
                scope.values[read] = (
                    self._free(read, sizes) if numbers is None
                    else constant(scope.setting.domain, numbers, _dtype(numbers))
                )  # fmt: skip
            scope.run([node])
            found = scope.find(name)
        except Unproved:
            return None
        if found is None or found.known is None or found.size > _MOST:
            return None
        return np.asarray(found.known)

    def _free(self, name: str, sizes: TrialSizes) -> CheckedTensor:
        border = self._types(name)
        if border is None or (shape := border.shape(sizes)) is None:
            raise Unproved(f"no shape of {name} is known")
        return free(Bits(), TensorType(border.dtype, shape), ("border", name))


def _dtype(numbers: Array) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(numbers.dtype))


class _ProblemsOf(Given):
    def __init__(self, known: KnownSizes, names: Sequence[str]) -> None:
        self._known = known
        self._names = names
        self._found: dict[int, Mapping[str, Array]] = {}

    def at(self, sizes: TrialSizes) -> Mapping[str, Array]:
        # Sizes live as long as what is known at them: their identity stays that of one object.
        known = self._found.get(id(sizes))
        if known is None:
            found = {name: self._known.value(name, sizes) for name in self._names}
            known = self._found[id(sizes)] = {
                name: numbers for name, numbers in found.items() if numbers is not None
            }
        return known
