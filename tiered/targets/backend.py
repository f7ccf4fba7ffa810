"""Backend: a target as data, and the decision whether it takes a node."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.types import TensorType
from tiered.support.amounts import counted
from tiered.targets.coverage import Coverage, coverage_of
from tiered.targets.custom import CustomOperator
from tiered.targets.operator_rule import (
    ANY,
    NO_DTYPES,
    Bounds,
    Operand,
    OperatorRule,
    Substitute,
    data_parameter,
    dtype_name,
    dtype_names,
    operands_of,
    refusals,
)
from tiered.targets.pipeline_edits import PipelineEdit
from tiered.targets.quantized import (
    Quantization,
    QuantizedDtypes,
    integers_of,
    quantized_dtype,
)
from tiered.targets.shared_rules import (
    NO_OPERATOR,
    Layout,
    QuantizationForm,
    Refusal,
    is_no_operator,
    is_standard,
)

if TYPE_CHECKING:
    from tiered.graph import Model, Node, Value

API_VERSION: Final = 1
"""The newest `api_version` of a profile; it grows when the meaning of profiles changes."""

_PLAIN: Final = (OperatorRule(),)

Shapes = Literal["dynamic", "static"]
Unlisted = Literal["refused", "standard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Tolerances for results on the target, as in `compare`."""

    rtol: float | None = None
    atol: float | None = None
    min_cosine: float | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Backend:
    """A target: the nodes it takes, its preferences, and its edits of the default pipeline.

    Args:
        name: the name for --backend.
        doc: one line.
        sources: the sources of the facts.
        limits: facts that the profile does not model.
        shapes: "static" if every dim must be a number.
        opset: the supported versions of the default domain.
        ir_version: the supported IR versions.
        max_rank: the largest rank of any tensor.
        layout: the preferred layout of images.
        layouts: the preferred layout of single operators, by name.
        activations: dtypes of data, if the rule of the operator has none; empty allows any.
        weights: dtypes of constants, likewise.
        emulated: dtypes without a kernel of their own, and the dtype that they are cast to.
        unlisted: "refused" refuses operators without a rule, "standard" takes those of ONNX.
        operators: the rules by (domain, operator); one rule that holds is enough.
        substitutes: by (domain, operator), the operators to use in its place, first choice first.
        quantization: the form of quantised models that it runs.
        verification: tolerances for its results.
        custom_operators: definitions of custom operators, to verify models with them.
        edits: edits of the default pipeline.
        api_version: of the profile.
    """

    name: str
    doc: str = ""
    sources: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    shapes: Shapes = "dynamic"
    opset: Bounds = ANY
    ir_version: Bounds = ANY
    max_rank: int | None = None
    layout: Layout = "any"
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    activations: frozenset[int] = NO_DTYPES
    weights: frozenset[int] = NO_DTYPES
    emulated: Mapping[int, int] = field(default_factory=dict)
    unlisted: Unlisted = "refused"
    operators: Mapping[tuple[str, str], tuple[OperatorRule, ...]] = field(default_factory=dict)
    substitutes: Mapping[tuple[str, str], tuple[Substitute, ...]] = field(default_factory=dict)
    quantization: Quantization = field(default_factory=Quantization)
    verification: Verification = Verification()
    custom_operators: tuple[CustomOperator, ...] = ()
    edits: tuple[PipelineEdit, ...] = ()
    api_version: int = API_VERSION

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Backend {self.name!r}, {counted(len(self.operators), 'operator')}>"

    @cached_property
    def digest(self) -> str:
        """The sha256 of the profile: equal for equal profiles."""
        said = repr([(item.name, _ordered(getattr(self, item.name))) for item in fields(self)])
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def quantization_form(self) -> QuantizationForm:
        """The form of quantised models that it runs."""
        return self.quantization.form

    @property
    def computes_floats(self) -> bool:
        """Whether it has operators for float32, and not only for quantised data."""
        return not self.activations or DataType.FLOAT in self.activations

    # --- operators -------------------------------------------------------------------------------

    def rules(self, op_type: str, domain: str = "") -> Sequence[OperatorRule]:
        """Return the rules of an operator; one that holds is enough. Empty: it is refused."""
        listed = self.operators.get((domain, op_type))
        if listed is not None:
            return listed
        takes = self.unlisted == "standard" and is_standard(op_type, domain)
        return _PLAIN if takes else ()

    def has(self, node: Node) -> bool:
        """Return whether the target has the operator of a node; the node may be removed already.

        True for a Constant, which is data, and for a call that is replaced by its body.
        """
        return is_no_operator(node) or bool(self.rules(node.op_type, node.domain))

    def supports(
        self, op_type: str, domain: str = "", dtype: int | None = None, version: int | None = None
    ) -> bool:
        """Return whether the target has an operator, for data of a dtype, at a version.

        `refusals` checks the other conditions of a rule: ranks, attributes, constants.
        """
        return any(
            (version is None or rule.versions.holds(version))
            and (
                dtype is None
                or self._may_be(dtype, rule.data_dtypes() or self.activations, exact=rule.exact)
            )
            for rule in self.rules(op_type, domain)
        )

    def has_kernel(self, op_type: str, domain: str = "", dtype: int | None = None) -> bool:
        """Return whether an operator has a kernel of its own, so that a fusion into it pays.

        False for an operator that runs as its function body, or with casts around it.
        """
        return any(
            not rule.composite
            and (dtype is None or dtype in (rule.data_dtypes() or self.activations or {dtype}))
            for rule in self.rules(op_type, domain)
        )

    def is_slow(self, op_type: str, domain: str = "", dtype: int | None = None) -> bool:
        """Return whether an operator is slower than its parts, for data of a dtype."""
        rules = [
            rule
            for rule in self.rules(op_type, domain)
            if dtype is None or dtype in (rule.data_dtypes() or {dtype})
        ]
        return bool(rules) and all(rule.slow for rule in rules)

    def may_be_slow(self, op_type: str, domain: str = "") -> bool:
        """Return whether an operator is slower than its parts, for data of some dtype."""
        return any(rule.slow for rule in self.rules(op_type, domain))

    def preferred_layout(self, op_type: str) -> Layout:
        """Return the preferred layout of an operator."""
        return self.layouts.get(op_type, self.layout)

    # --- nodes ------------------------------------------------------------------------------------

    def takes(self, node: Node) -> bool:
        """Return whether the target takes a node."""
        return not self.refusals(node)

    def refusals(self, node: Node) -> tuple[Refusal, ...]:
        """Return why the target does not take a node; empty if it does.

        A call of a local function is taken: the body of the function is checked instead.
        """
        if node.is_op("Constant"):
            return ()  # it holds data
        rules = self.rules(node.op_type, node.domain)
        is_certain = self._has_only_rules and not node.is_early
        if is_certain and any(rule.is_unconditional for rule in rules):
            return ()
        if not rules:
            is_call = node.owner.model.function(*node.callee) is not None
            return () if is_call else (NO_OPERATOR,)
        found = [self._against(rule, node) for rule in rules]
        return (*min(_merged(found), key=len), *self._against_shapes(node))

    def runs_slowly(self, node: Node) -> bool:
        """Return whether the only kernel for a node is slower than its parts."""
        if not self.may_be_slow(node.op_type, node.domain):
            return False
        rules = self.rules(node.op_type, node.domain)
        return all(rule.slow or self._against(rule, node) for rule in rules)

    @cached_property
    def before_quantization(self) -> Backend:
        """This target for models that are yet to be quantised.

        What it takes in the dtype of quantised data, it takes in float32 too; and so the weights
        and biases of these operators.
        """
        given = self.quantization
        dtypes = QuantizedDtypes(given.activations, frozenset({given.weights, DataType.INT32}))
        return replace(
            self,
            activations=dtypes.with_float(self.activations),
            weights=dtypes.with_float(self.weights),
            operators={
                key: tuple(dtypes.floating_rule(rule) for rule in rules)
                for key, rules in self.operators.items()
            },
        )

    def operands_in_integers(self, node: Node) -> tuple[Value, ...]:
        """Return the float32 operands and results that must be quantised for a node to be taken.

        Empty if the target takes the node as it is, or not even when they are quantised.
        """
        floating = self.before_quantization
        if any(floating._against_shapes(node)):
            return ()
        own = self.rules(node.op_type, node.domain)
        for rule, wider in zip(own, floating.rules(node.op_type, node.domain), strict=True):
            if not floating._against(wider, node):
                wrong = self._of_wrong_dtypes(rule, operands_of(node, rule.signature))
                return tuple(operand.value for operand, _, _ in wrong)
        return ()

    def substitutes_of(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield (domain, operator) of each substitute that the profile allows for a node."""
        for substitute in self.substitutes.get((node.domain, node.op_type), ()):
            if not self._against(substitute.rule, node):
                yield substitute.key

    def coverage(self, model: Model) -> Coverage:
        """Return which nodes of a model the target takes, and why it does not take the others."""
        return coverage_of(model, self)

    @property
    def _has_only_rules(self) -> bool:
        """Whether the rules alone decide about a node, without limits of shapes and dtypes."""
        is_dynamic = self.shapes == "dynamic" and self.max_rank is None
        return is_dynamic and not self.activations and not self.weights

    def _against(self, rule: OperatorRule, node: Node) -> list[Refusal]:
        found = list(refusals(rule, node))
        if rule.types or rule.dtypes or rule.rank != ANY or self.activations or self.weights:
            operands = operands_of(node, rule.signature)
            found += self._against_dtypes(rule, self._judged(rule, node, operands))
            if rule.rank != ANY:
                found += _against_rank(operands, rule.rank)
        if rule.note:
            return [refusal._replace(found=f"{refusal.found} ({rule.note})") for refusal in found]
        return found

    def _judged(self, rule: OperatorRule, node: Node, operands: list[Operand]) -> list[Operand]:
        """Return the operands whose dtypes count: of Q and DQ in QDQ units, the integers alone.

        The dtypes of a target are those between DequantizeLinear and QuantizeLinear; a rule of Q or
        DQ that names dtypes of its own is about all operands.
        """
        if self.quantization.form != "qdq" or rule.dtypes or rule.types:
            return operands
        integers = integers_of(node)
        return operands if integers is None else [o for o in operands if o.value is integers]

    def _allowed(
        self, rule: OperatorRule, operand: Operand, parameter: str, own: frozenset[str]
    ) -> frozenset[int] | None:
        for key in (operand.name, operand.parameter):
            if key in rule.types:
                return rule.types[key]
        # Its type parameter may have another name in another version of the operator.
        for key in sorted(operand.other_parameters - own):
            if key in rule.types:
                return rule.types[key]
        if operand.parameter != parameter:
            return None
        return rule.dtypes or (self.weights if operand.is_constant else self.activations) or None

    def _against_dtypes(self, rule: OperatorRule, operands: list[Operand]) -> Iterator[Refusal]:
        """Yield one refusal for each unsupported dtype, with all its operands."""
        wrong: dict[tuple[int | None, frozenset[int]], list[str]] = {}
        for operand, dtype, allowed in self._of_wrong_dtypes(rule, operands):
            wrong.setdefault((dtype, allowed), []).append(operand.name)
        for (dtype, allowed), names in wrong.items():
            said = "of unknown dtype" if dtype is None else dtype_name(dtype)
            yield Refusal(f"{_listed(names)} {said}", dtype_names(allowed))

    def _of_wrong_dtypes(
        self, rule: OperatorRule, operands: list[Operand]
    ) -> Iterator[tuple[Operand, int | None, frozenset[int]]]:
        """Yield each operand of a dtype that a rule refuses, the dtype, and those that it takes."""
        parameter = data_parameter(operands)
        own = frozenset(operand.parameter for operand in operands)
        for operand in operands:
            allowed = self._allowed(rule, operand, parameter, own)
            if allowed is None or not isinstance(operand.value.type, TensorType | None):
                continue
            dtype = self._dtype_of(operand)
            if dtype is None and not operand.is_input:
                continue  # it follows from the inputs
            if dtype is None or not self._may_be(dtype, allowed, exact=rule.exact):
                yield operand, dtype, allowed

    def _may_be(self, dtype: int, allowed: frozenset[int], *, exact: bool) -> bool:
        if not allowed or dtype in allowed:
            return True
        return not exact and self.emulated.get(dtype) in allowed

    def _dtype_of(self, operand: Operand) -> int | None:
        """Return the dtype of an operand; inside a QDQ unit its quantised dtype."""
        value = operand.value
        if self.quantization.form != "qdq" or value.dtype not in (DataType.FLOAT, DataType.FLOAT16):
            return value.dtype
        return quantized_dtype(value, is_input=operand.is_input) or value.dtype

    def _against_shapes(self, node: Node) -> Iterator[Refusal]:
        if self.shapes == "dynamic" and self.max_rank is None:
            return
        values = [value for value in (*node.inputs, *node.outputs) if value is not None]
        values = [value for value in values if isinstance(value.type, TensorType | None)]
        rank = max((value.rank or 0 for value in values), default=0)
        if self.max_rank is not None and rank > self.max_rank:
            yield Refusal(f"rank {rank}", (f"at most {self.max_rank}",))
        if self.shapes == "static" and (dynamic := _dynamic(values)):
            yield Refusal(dynamic, ("static shapes",))


def _listed(names: Sequence[str]) -> str:
    """Return names with their verb: "X is", "A, B are"; a variadic name once."""
    several = list(dict.fromkeys(names))
    return f"{', '.join(several)} {'is' if len(several) == 1 else 'are'}"


def _dynamic(values: Sequence[Value]) -> str:
    """Return why the shapes of some values are not static, or "" if they are."""
    if any(value.shape is None for value in values):
        return "an unknown rank"
    dims = [dim for value in values for dim in value.shape or () if not isinstance(dim, int)]
    # Names that inference invented are not in the file.
    named = [dim for dim in dict.fromkeys(dims) if dim is not None and "unk__" not in dim]
    return f"dynamic dims{' ' if named else ''}{', '.join(named)}" if dims else ""


def _against_rank(operands: Sequence[Operand], rank: Bounds) -> Iterator[Refusal]:
    """Check the rank of the first input, or else of the first output."""
    for first in operands[:1]:
        found = first.value.rank
        if found is not None and not rank.holds(found):
            yield Refusal(f"{first.name} has rank {found}", (f"rank {rank}",))


def _merged(found: Sequence[list[Refusal]]) -> list[list[Refusal]]:
    """Return the refusals of each rule; equal findings list what the rules accept."""
    takes: dict[str, dict[str, None]] = {}
    for refused in found:
        for refusal in refused:
            takes.setdefault(refusal.found, {}).update(dict.fromkeys(refusal.takes))
    return [
        [refusal._replace(takes=tuple(takes[refusal.found])) for refusal in refused]
        for refused in found
    ]


def _ordered(value: object) -> object:
    if isinstance(value, Mapping):
        return sorted((repr(key), _ordered(item)) for key, item in value.items())
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, OperatorRule):
        return [(item.name, _ordered(getattr(value, item.name))) for item in fields(value)]
    return [_ordered(item) for item in value] if isinstance(value, tuple) else value
