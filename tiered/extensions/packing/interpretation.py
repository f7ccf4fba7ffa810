"""The abstract interpretation of a graph along its sequences, and the edits that packing needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tiered.extensions.packing.packed_values import (
    Abstract,
    AbstractTensor,
    AxisRole,
    Edit,
    PackedSizes,
    PackingRefusal,
    Refused,
    Roles,
    constant_tensor,
)
from tiered.graph import Graph, Node, Value
from tiered.graph.core.types import Dim
from tiered.graph.opset.aspect import Aspect
from tiered.graph.queries.determinism import is_deterministic
from tiered.graph.shape_inference.symbolic_dims import (
    Poly,
    divide,
    is_invented,
    multiply,
    size_of_dim,
)

_NAME: Final = re.compile(r"[^\W\d][\w.]*")

Rule = Callable[["Interpretation", Node], AbstractTensor | tuple[AbstractTensor, ...]]
"""Returns the relations of the outputs of a node; raises Refusal."""

PACKINGS: Final[Aspect[Rule]] = Aspect("packing")


class Interpretation:
    """What is known of each value of a graph, and the edits that make it true.

    Attributes:
        graph: the main graph.
        token: the dim of sequences.
        batch: the dims of batches.
        facts: the relation of each value.
        edits: what has to change, in the order of the nodes.
        ones: dims that are 1 for every sequence, which shape inference does not know.
    """

    def __init__(self, graph: Graph, token: str, batch: frozenset[str]) -> None:
        self.graph = graph
        self.token = token
        self.batch = batch
        self.facts: dict[Value, Abstract] = {}
        self.edits: list[Edit] = []
        self.ones: set[Dim] = set()

    def run(self, rule_of: Callable[[Node], Rule | None]) -> None:
        """Interpret all nodes, in topological order."""
        for node in self.graph.topological_order():
            found = self._outputs(node, rule_of)
            for value, fact in zip(node.outputs, found, strict=False):
                if value is not None:
                    self.facts[value] = fact

    # --- operands -----------------------------------------------------------------------------

    def fact(self, value: Value) -> Abstract:
        """Return what is known of a value; one without a producer or entry is constant."""
        found = self.facts.get(value)
        if found is None:
            if value.rank is None:
                raise PackingRefusal(f"the rank of {value.name!r} is unknown")
            found = self.facts[value] = constant_tensor(value.rank)
        return found

    def tensor(self, node: Node, slot: int) -> AbstractTensor:
        """Return the relation of an operand that is used as a tensor.

        Raises:
            Refusal: it is a size, or a row number.
        """
        value = node.given(slot)
        found = self.fact(value)
        if isinstance(found, PackedSizes):
            raise PackingRefusal("it computes with a size of the batch or of sequences")
        assert isinstance(found, AbstractTensor)
        if found.is_row_number:
            raise PackingRefusal("it computes with row numbers")
        return found

    def constant(self, node: Node, slot: int, what: str) -> None:
        """Check that an operand, if there is one, is the same in both runs.

        Raises:
            Refusal: it is not.
        """
        value = node.input(slot)
        if value is None:
            return
        found = self.fact(value)
        if not isinstance(found, AbstractTensor) or not found.is_constant:
            raise PackingRefusal(f"its {what} depends on the sequence")

    # --- dims ---------------------------------------------------------------------------------

    def mentions(self, size: object) -> bool:
        """Return whether a dim or size depends on the batch or on the length of sequences."""
        if isinstance(size, Poly):
            return any(self.mentions(name) for names, _ in size.terms for name in names)
        if not isinstance(size, str):
            return False
        return bool(({self.token} | self.batch) & set(_NAME.findall(size)))

    def role_of(self, dim: Dim) -> AxisRole | None:
        """Return the role of an axis along which all elements are equal.

        Raises:
            Refusal: the dim mixes sizes of batch and sequences with others.
        """
        if dim == self.token:
            return AxisRole.TOKEN
        if dim in self.batch:
            return AxisRole.BATCH
        dims = self.graph.model.dims
        size, tokens = dims.size(dim), dims.size(self.token)
        rows = [dims.size(name) for name in sorted(self.batch)]
        if tokens is not None and any(r is not None and size == multiply(r, tokens) for r in rows):
            return AxisRole.FLAT
        if self.parts_of(dim) is not None:
            return AxisRole.HEADS
        if self.mentions(dim):
            raise PackingRefusal(f"it makes a dim {size} of the sizes of batch and sequences")
        return None

    def parts_of(self, dim: Dim) -> int | None:
        """Return how often a dim has each row of the batch; None if that is no fixed number."""
        size = self.graph.model.dims.size(dim)
        if not isinstance(size, Poly):
            return None
        quotients = [divide(size, size_of_dim(name)) for name in sorted(self.batch)]
        return next((each for each in quotients if isinstance(each, int)), None)

    def batch_axis(self, value: Value | None, roles: Roles) -> tuple[int, int]:
        """Return the axis of the batch, and how often each row is in it; (-1, 1) without one.

        Args:
            value: the tensor.
            roles: of its axes.

        Raises:
            Refusal: there are several, or the number of its heads is unknown.
        """
        axes = [axis for axis, role in enumerate(roles) if role in (AxisRole.BATCH, AxisRole.HEADS)]
        if not axes:
            return -1, 1
        if len(axes) > 1:
            raise PackingRefusal("several axes have the batch")
        if roles[axes[0]] is AxisRole.BATCH:
            return axes[0], 1
        parts = None if value is None else self.parts_of(value.dim(axes[0]))
        if parts is None:
            raise PackingRefusal("the number of heads beside the batch is unknown")
        return axes[0], parts

    # --- nodes --------------------------------------------------------------------------------

    def _outputs(self, node: Node, rule_of: Callable[[Node], Rule | None]) -> tuple[Abstract, ...]:
        """Return what is known of the outputs of a node."""
        if node.is_op("Constant"):
            return (constant_tensor(node.output.rank),)
        count = len(node.outputs)
        known = len(self.edits)
        try:
            if node.is_op("Shape") or node.is_op("Size"):
                return (self._shape(node),)
            reads = node.reads
            facts = [self.fact(value) for value in reads]
            for fact in facts:
                if isinstance(fact, Refused):
                    return (fact,) * count
            sizes = self._sizes(node, facts)
            if sizes is not None:
                return (sizes,)
            made = self._by_rule(node, facts, rule_of(node))
            for value, fact in zip(node.outputs, made, strict=True):
                if value is not None:
                    self._check_axes(value, fact.roles)
        except PackingRefusal as refusal:
            del self.edits[known:]
            return (Refused(node, str(refusal)),) * count
        return made

    def _shape(self, node: Node) -> Abstract:
        value = node.given(0)
        found = self.facts.get(value)
        elements = node.output.elements
        if elements is not None and not any(
            element is None or self.mentions(element) for element in elements.ravel()
        ):
            return constant_tensor(node.output.rank)
        return PackedSizes(isinstance(found, AbstractTensor) and found.is_pooled)

    def _sizes(self, node: Node, facts: list[Abstract]) -> Abstract | None:
        """Return what is known of arithmetic with sizes; None for other nodes."""
        given = [fact for fact in facts if isinstance(fact, PackedSizes)]
        rest = [fact for fact in facts if isinstance(fact, AbstractTensor)]
        if not given or len(node.outputs) != 1 or not all(fact.is_constant for fact in rest):
            return None
        elements = node.output.elements
        if elements is None or any(element is None for element in elements.ravel()):
            return None
        if len(set(given)) > 1:
            raise PackingRefusal("it joins sizes of rows and of sequences")
        if any(self.mentions(element) for element in elements.ravel()):
            return given[0]
        return constant_tensor(elements.ndim)

    def _by_rule(
        self, node: Node, facts: list[Abstract], rule: Rule | None
    ) -> tuple[AbstractTensor, ...]:
        if rule is not None and (node.domain or node.schema is not None):
            made = rule(self, node)
            return made if isinstance(made, tuple) else (made,)
        constant = all(isinstance(fact, AbstractTensor) and fact.is_constant for fact in facts)
        if not constant or not is_deterministic(node):
            raise PackingRefusal("the operator may mix tokens: it has no rule")
        return tuple(
            constant_tensor(None if value is None else value.rank) for value in node.outputs
        )

    def _check_axes(self, value: Value, roles: Roles) -> None:
        """Check that no axis without a role has a size that differs between the runs."""
        shape = value.shape
        if shape is None or len(shape) != len(roles):
            raise PackingRefusal(f"the rank of {value.name!r} is unknown")
        for dim, role in zip(shape, roles, strict=True):
            if role is not None or dim in self.ones:
                continue
            is_unknown = dim is None or is_invented(dim)
            if self.mentions(dim) or (is_unknown and any(roles)):
                raise PackingRefusal(
                    f"a dim of its result, {dim}, has no known relation to the tokens"
                )
