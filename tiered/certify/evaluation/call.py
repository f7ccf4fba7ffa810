"""One node as a rule sees it: its operands as tensors, its attributes, its opset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import onnx

from tiered.certify.evaluation.forms import Dequantized, Fixed
from tiered.certify.evaluation.values import CheckedTensor, Unproved

if TYPE_CHECKING:
    from tiered.certify.domains.terms import Array
    from tiered.graph.core.types import TensorType

Results = Sequence[CheckedTensor | None]


class NoRule(Exception):
    """A rule that does not cover a node: the node is a function of all that it reads."""


class Domain(Protocol):
    """What elements are: terms of bits, or elements of a field."""

    name: str

    def constant(self, numbers: Array) -> Array: ...
    def free(self, key: object, shape: Sequence[int]) -> Array: ...


class Around(Protocol):
    """The graph around a node, as rules use it."""

    depth: int

    @property
    def trusts_runtime(self) -> bool: ...
    @property
    def unrolls(self) -> bool: ...
    def size(self, key: tuple[object, ...]) -> int: ...
    @property
    def opsets(self) -> Mapping[str, int]: ...
    def free(self, kind: TensorType, key: tuple[object, ...]) -> CheckedTensor: ...
    def body(
        self, body: onnx.GraphProto, inputs: Sequence[CheckedTensor]
    ) -> list[CheckedTensor]: ...


class EvaluatedCall:
    """A node, its operands, and the domain in which it is evaluated.

    Attributes:
        scope: the names around it, for bodies.
        axioms: those that its rule used.
        signed_zeros: whether zeros of both signs are different numbers; not over the reals.
    """

    def __init__(
        self,
        node: onnx.NodeProto,
        inputs: Sequence[CheckedTensor | None],
        opset: int,
        domain: Domain,
        scope: Around,
    ) -> None:
        self.node = node
        self.inputs = inputs
        self.opset = opset
        self.domain = domain
        self.scope = scope
        self.axioms: set[str] = set()
        self.signed_zeros = True

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes by name; strings are str."""
        return {each.name: _plain(each) for each in self.node.attribute}

    @property
    def op(self) -> str:
        return str(self.node.op_type)

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute."""
        return self.attributes.get(name, default)

    def has(self, index: int) -> bool:
        """Return whether there is an operand of an index."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def operand(self, index: int) -> CheckedTensor:
        """Return an operand.

        Raises:
            Unproved: it is absent.
        """
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise Unproved(f"{self.op} lacks operand {index}")
        return found

    def integers(self, name: str, index: int | None = None) -> list[int] | None:
        """Return integers that are an attribute in some opsets and an operand in others.

        Raises:
            Unproved: the operand is not known.
        """
        if name in self.attributes:
            found = self.attributes[name]
            return [found] if isinstance(found, int) else list(found)
        if index is None or not self.has(index):
            return None
        return self.operand(index).integers(f"{name} of {self.op}")

    def made(
        self,
        dtype: int,
        shape: Sequence[int],
        make: Callable[[], Array],
        *,
        exact: int | None = None,
    ) -> CheckedTensor:
        """Return a tensor of terms that are made when they are asked for."""
        return CheckedTensor(dtype, shape, make, exact=exact)

    def constant(self, numbers: Array, dtype: int, *, exact: int | None = None) -> CheckedTensor:
        """Return a tensor of known numbers."""
        return constant(self.domain, numbers, dtype, exact=exact)

    def moved(
        self, x: CheckedTensor, move: Callable[[Array], Array], shape: Sequence[int]
    ) -> CheckedTensor:
        """Return a tensor whose elements are those of another one, in other places."""
        if x.known is not None:
            return self.constant(move(x.known), x.dtype, exact=x.exact)
        made = self.made(x.dtype, shape, lambda: move(x.terms), exact=x.exact)
        if isinstance(x.form, Dequantized) and x.form.scale.size == 1:
            made.form = replace(x.form, integers=self.moved(x.form.integers, move, shape))
        elif isinstance(x.form, Fixed):
            made.form = x.form
        return made


def constant(
    domain: Domain, numbers: Array, dtype: int, *, exact: int | None = None
) -> CheckedTensor:
    """Return a tensor of known numbers."""
    return CheckedTensor(
        dtype, numbers.shape, lambda: domain.constant(numbers), numbers, exact=exact
    )


def _plain(attribute: onnx.AttributeProto) -> Any:
    if attribute.ref_attr_name:
        raise Unproved(f"attribute {attribute.name} is a parameter of a function")
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type == onnx.AttributeProto.STRING:
        return value.decode("utf-8", "surrogateescape")
    return value


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front.

    Raises:
        Unproved: there is no such axis.
    """
    if not -rank <= axis < max(rank, 1):
        raise Unproved(f"axis {axis} of a tensor of rank {rank}")
    return axis + rank if axis < 0 else axis
