"""OperatorRule: the conditions under which a target takes an operator, as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.schema import NEWEST, Schema, schema_of
from tiered.targets.shared_rules import NO_OPERATOR, Refusal, newer_operator

if TYPE_CHECKING:
    from tiered.graph import Node, Value

NONE: Final[frozenset[str]] = frozenset()
NO_DTYPES: Final[frozenset[int]] = frozenset()
_BYTES: Final = (DataType.INT8, DataType.UINT8)


class Bounds(NamedTuple):
    """A range of numbers, both ends included; None is open."""

    low: float | None = None
    high: float | None = None

    def holds(self, number: float) -> bool:
        """Return whether a number is within the bounds."""
        return (self.low is None or number >= self.low) and (
            self.high is None or number <= self.high
        )

    def nearest(self, number: float) -> float:
        """Return the number within the bounds that is nearest to one."""
        at_least = number if self.low is None else max(number, self.low)
        return at_least if self.high is None else min(at_least, self.high)

    def __str__(self) -> str:
        match self:
            case (None, None):
                return "any"
            case (low, None):
                return f"{low} or more"
            case (None, high):
                return f"at most {high}"
            case (low, high):
                return str(low) if low == high else f"{low} to {high}"


ANY: Final = Bounds()


@dataclass(frozen=True, slots=True)
class AttributeRule:
    """The allowed values of an attribute: a list, or numbers within bounds."""

    values: tuple[Any, ...] = ()
    bounds: Bounds = ANY

    def holds(self, value: Any) -> bool:
        """Return whether a value, or each element of a list, is allowed."""
        if self.values:
            return value in self.values
        items = value if isinstance(value, tuple) else (value,)
        return all(isinstance(item, int) and self.bounds.holds(item) for item in items)

    @property
    def takes(self) -> tuple[str, ...]:
        """The allowed values as text."""
        return tuple(map(_shown, self.values)) if self.values else (str(self.bounds),)


@dataclass(frozen=True, kw_only=True)
class OperatorRule:
    """Conditions under which a target takes an operator; all must hold.

    Args:
        versions: opset versions that last changed the operator (`Node.version`).
        opset: versions of the operator's domain that the model imports.
        types: the dtypes of a type parameter of the schema ("T") or of one operand ("X"). A type
            parameter of another version of the operator counts for the same operands.
        dtypes: the dtypes of the operator's data, if `types` has no entry for it.
        rank: rank of its data operands.
        constant: operands, by their name in the operator's newest form, that must be constants.
        elements: bounds of the elements of constant operands.
        attributes: allowed values; a missing attribute has its schema's default.
        signature: the inputs, then the outputs as "name:type parameter", for operators that onnx
            does not know.
        exact: whether `emulated` dtypes are refused.
        composite: whether it runs as its function body, not as a kernel of its own.
        slow: whether its kernel is slower than its parts: passes do not create it.
        in_qdq: whether the rule also holds between 8-bit DequantizeLinear and QuantizeLinear.
        note: added to each refusal.
    """

    versions: Bounds = ANY
    opset: Bounds = ANY
    types: Mapping[str, frozenset[int]] = field(default_factory=dict)
    dtypes: frozenset[int] = NO_DTYPES
    rank: Bounds = ANY
    constant: tuple[str, ...] = ()
    elements: Mapping[str, Bounds] = field(default_factory=dict)
    attributes: Mapping[str, AttributeRule] = field(default_factory=dict)
    signature: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    exact: bool = False
    composite: bool = False
    slow: bool = False
    in_qdq: bool = True
    note: str = ""

    @property
    def is_unconditional(self) -> bool:
        """Whether the rule takes every node of its operator."""
        return not (
            self.types
            or self.dtypes
            or self.constant
            or self.elements
            or self.attributes
            or not self.in_qdq
            or any(bounds != ANY for bounds in (self.versions, self.opset, self.rank))
        )

    def __str__(self) -> str:
        parts = [f"version {self.versions}"] if self.versions != ANY else []
        parts += [f"opset {self.opset}"] if self.opset != ANY else []
        parts += [f"{key}: {' '.join(dtype_names(types))}" for key, types in self.types.items()]
        parts += [" ".join(dtype_names(self.dtypes))] if self.dtypes else []
        parts += [f"rank {self.rank}"] if self.rank != ANY else []
        parts += [f"constant {', '.join(self.constant)}"] if self.constant else []
        parts += [f"{key} holds {bounds}" for key, bounds in self.elements.items()]
        parts += [f"{key}={' '.join(rule.takes)}" for key, rule in self.attributes.items()]
        parts += ["runs as its function body"] if self.composite else []
        parts += ["slow"] if self.slow else []
        parts += [] if self.in_qdq else ["not in a QDQ unit"]
        return "; ".join(parts + ([self.note] if self.note else [])) or "any"

    def data_dtypes(self) -> frozenset[int]:
        """Return the dtypes of the data that the rule names; empty if it names none."""
        named = next((self.types[key] for key in ("T", "T1") if key in self.types), NO_DTYPES)
        return self.dtypes or named or next(iter(self.types.values()), NO_DTYPES)


class Substitute(NamedTuple):
    """An operator to use in the place of another one, and the conditions for it."""

    key: tuple[str, str]
    rule: OperatorRule


class Operand(NamedTuple):
    """An input or output of a node, with its name and type parameter in the schema."""

    value: Value
    name: str
    parameter: str
    is_input: bool
    other_parameters: frozenset[str] = NONE
    """The names of its type parameter in all versions of the operator."""

    @property
    def is_constant(self) -> bool:
        """Whether it is an input that holds a constant, quantised or not."""
        return self.is_input and holds_constant(self.value)


def holds_constant(value: Value) -> bool:
    """Return whether a value is a constant, or a DequantizeLinear of constants."""
    producer = value.producer
    if producer is None or not producer.is_op("DequantizeLinear"):
        return value.is_constant
    return all(operand is None or operand.is_constant for operand in producer.inputs)


@lru_cache(maxsize=1024)
def parameter_names(op_type: str, domain: str) -> Mapping[tuple[bool, int], frozenset[str]]:
    """Return the type parameters of each operand in all versions of an operator.

    The key is (is an input, position). Empty for an operator that onnx does not know.
    """
    names: dict[tuple[bool, int], set[str]] = {}
    for is_input, at, formal in _formals(op_type, domain):
        names.setdefault((is_input, at), set()).add(formal.type_str)
    return {place: frozenset(found) for place, found in names.items()}


def type_keys(op_type: str, domain: str) -> frozenset[str]:
    """Return the names of all operands and type parameters of all versions of an operator."""
    formals = [formal for _, _, formal in _formals(op_type, domain)]
    names = {name for formal in formals for name in (formal.name, formal.type_str)}
    return frozenset(name for name in names if "(" not in name)


def operand_names(op_type: str, domain: str) -> tuple[str, ...]:
    """Return the names of the inputs in the newest form of an operator; () for an unknown one."""
    schema = schema_of(op_type, domain, NEWEST)
    return () if schema is None else tuple(formal.name for formal in schema.inputs)


def _formals(op_type: str, domain: str) -> Iterator[tuple[bool, int, Any]]:
    """Yield (is an input, position, formal) for each operand of each version."""
    version = NEWEST
    while (schema := schema_of(op_type, domain, version)) is not None:
        for is_input, formals in ((True, schema.inputs), (False, schema.outputs)):
            for at, formal in enumerate(formals):
                yield is_input, at, formal
        version = schema.since_version - 1


def operands_of(node: Node, signature: tuple[tuple[str, ...], tuple[str, ...]]) -> list[Operand]:
    """Return the present operands with the names of the schema, or else of the signature."""
    schema = node.schema
    others = {} if schema is None else parameter_names(node.op_type, node.domain)
    made: list[Operand] = []
    for values, names, is_input in (
        (node.inputs, _names(schema, signature[0], is_input=True), True),
        (node.outputs, _names(schema, signature[1], is_input=False), False),
    ):
        for at, value in enumerate(values):
            if value is not None:
                # The last formal of a variadic operator is that of all further operands.
                name, parameter = names[min(at, len(names) - 1)] if names else (f"#{at}", "")
                place = is_input, min(at, len(names) - 1)
                made.append(Operand(value, name, parameter, is_input, others.get(place, NONE)))
    return made


def _names(
    schema: Schema | None, written: Sequence[str], *, is_input: bool
) -> list[tuple[str, str]]:
    if schema is None:
        parts = (entry.partition(":") for entry in written)
        return [(name, parameter) for name, _, parameter in parts]
    formals = schema.inputs if is_input else schema.outputs
    return [(formal.name, formal.type_str) for formal in formals]


def data_parameter(operands: Iterable[Operand]) -> str:
    """Return the type parameter of the data: T if it exists, else that of the first operand."""
    parameters = [operand.parameter for operand in operands]
    if "T" in parameters:
        return "T"
    # An operand of a single dtype has "tensor(int64)" as its parameter.
    return next((name for name in (*parameters, "") if "(" not in name), "")


def _early_refusals(rule: OperatorRule, node: Node) -> Iterator[Refusal]:
    """Yield why a rule is not for an operator at an opset where ONNX does not have it yet.

    It is for such operators only if it says so by `versions`.
    """
    opset = node.owner.root.opset(node.domain)
    if rule.versions == ANY:
        yield newer_operator(node) or NO_OPERATOR
    elif not rule.versions.holds(opset):
        yield Refusal(f"version {opset} of the operator", (f"version {rule.versions}",))


def refusals(rule: OperatorRule, node: Node) -> Iterator[Refusal]:
    """Yield the violated conditions of a rule except dtypes, cheap ones first."""
    if node.is_early:
        yield from _early_refusals(rule, node)
    elif not rule.versions.holds(node.version):
        yield Refusal(f"version {node.version} of the operator", (f"version {rule.versions}",))
    if not rule.opset.holds(opset := node.owner.opset(node.domain)):
        yield Refusal(f"opset {opset}", (f"opset {rule.opset}",))
    for name, attribute in rule.attributes.items():
        value = node.attr(name)
        if value is not None and not attribute.holds(value):
            yield Refusal(f"{name} is {_shown(value)}", attribute.takes)
    for name in rule.constant:
        value = _operand(node, name, rule)
        if value is not None and not holds_constant(value):
            yield Refusal(f"{name} is not a constant")
    for name, bounds in rule.elements.items():
        yield from _out_of_bounds(_operand(node, name, rule), name, bounds)
    if not rule.in_qdq and _is_in_qdq(node):
        yield Refusal("it is in a QDQ unit")


def _operand(node: Node, name: str, rule: OperatorRule) -> Value | None:
    """Return an operand by its name in the newest form, or in the signature of the rule."""
    if node.schema is None:
        names = [known for known, _ in _names(None, rule.signature[0], is_input=True)]
        if name in names:
            return node.input(names.index(name))
    return node.operand(name)


def _is_in_qdq(node: Node) -> bool:
    """Return whether a node is between 8-bit DequantizeLinear and QuantizeLinear."""
    source, result = node.producer(0), node.outputs[0] if node.outputs else None
    if source is None or result is None or not source.is_op("DequantizeLinear"):
        return False
    readers = result.readers
    if result.is_graph_output or not all(reader.is_op("QuantizeLinear") for reader in readers):
        return False
    ends = (source.given(0), *(reader.output for reader in readers))
    return bool(readers) and all(end.dtype in _BYTES for end in ends)


def _out_of_bounds(value: Value | None, name: str, bounds: Bounds) -> Iterator[Refusal]:
    if value is None or value.const is None or value.const.size == 0:
        return
    low, high = value.const.min().item(), value.const.max().item()
    worst = low if not bounds.holds(low) else high
    if not bounds.holds(worst):
        yield Refusal(f"{name} holds {worst}", (str(bounds),))


def dtype_name(dtype: int) -> str:
    """Return ONNX's name of a dtype: float, float16, int8."""
    return DataType(dtype).name.lower()


def dtype_names(dtypes: Iterable[int]) -> tuple[str, ...]:
    """Return the names of dtypes, in ONNX's order."""
    return tuple(dtype_name(dtype) for dtype in sorted(dtypes))


def _shown(value: Any) -> str:
    return "[" + ",".join(map(str, value)) + "]" if isinstance(value, tuple) else str(value)
