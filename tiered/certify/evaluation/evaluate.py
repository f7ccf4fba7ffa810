"""Walk a graph: each value gets a tensor, by the rule of the operator that computes it.

An operator without a rule is a function of all that it reads: each element is a hash of the
operator, the whole operands and its place. Random operators and those without a definition have
their names in the hash, too: two of them are never equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import onnx
from onnx import shape_inference
from onnx.defs import OpSchema

from tiered.certify.domains.terms import Array, leaf, seed_of
from tiered.certify.evaluation.call import Domain, EvaluatedCall, NoRule, Results, constant
from tiered.certify.evaluation.values import CheckedTensor, Unproved
from tiered.certify.problem import content_of
from tiered.graph.core.schema import schema_of
from tiered.graph.core.types import TensorType, read_type, tensor_type, write_type
from tiered.support.operator_name import operator_name

FunctionKey = tuple[str, str, str]
Rule = Callable[[EvaluatedCall], Results]
_DEPTH: Final = 64
_SMALL: Final = 1024
_BODIES: Final = frozenset(("If", "Loop", "Scan", "SequenceMap"))


class Kept(NamedTuple):
    """What a node gave, the axioms that it used, and its operands."""

    results: Results
    axioms: set[str]
    inputs: Sequence[CheckedTensor | None]


@dataclass
class ProofSetting:
    """What both sides of a proof share.

    Attributes:
        domain: what elements are.
        rules: the meaning of operators, by name; those of other domains as "domain::Name".
        opsets: the imported versions, by domain.
        functions: the local functions.
        trusts_runtime: whether the axioms of a runtime may be used.
        unrolls: whether loops of known trip counts are evaluated iteration by iteration.
        sizes: where dims that depend on data get theirs; None if they have none.
        results: what nodes gave, by content and operands.
        unknowns: the free tensors, by key.
        dims: the names of dims that depend on data, by key.
        asked: what rules asked of it.
        constants: small known tensors, by content: one object for each.
    """

    domain: Domain
    rules: Mapping[str, Rule]
    opsets: Mapping[str, int]
    functions: Mapping[FunctionKey, onnx.FunctionProto]
    trusts_runtime: bool
    unrolls: bool = False
    sizes: MutableMapping[str, int] | None = None
    results: dict[tuple[object, ...], Kept] = field(default_factory=dict)
    unknowns: dict[tuple[object, ...], CheckedTensor] = field(default_factory=dict)
    dims: dict[tuple[object, ...], str] = field(default_factory=dict)
    asked: set[Literal["trusts_runtime"]] = field(default_factory=set)
    constants: dict[tuple[object, ...], CheckedTensor] = field(default_factory=dict)

    def shared(self, x: CheckedTensor) -> CheckedTensor:
        """Return the first tensor of the same numbers, if a tensor is small and known.

        What reads it is then the same on both sides, wherever the numbers come from.
        """
        if x.known is None or x.form is not None or x.size > _SMALL:
            return x
        return self.constants.setdefault((x.exact, *x.key), x)

    def free(self, kind: TensorType, key: tuple[object, ...]) -> CheckedTensor:
        """Return a tensor of unknowns that a key identifies: one object for each."""
        made = self.unknowns.get((kind, *key))
        if made is None:
            made = self.unknowns[kind, *key] = free(self.domain, kind, key)
        return made


class NameScope:
    """The names of a graph, and of those around it.

    Attributes:
        axioms: those that were used, by the key of the node that used them.
    """

    def __init__(
        self, setting: ProofSetting, outer: NameScope | None = None, depth: int = 0, calls: int = 0
    ) -> None:
        if depth + calls > _DEPTH:
            raise Unproved("bodies or functions nested too deep")
        self.setting = setting
        self.outer = outer
        self.depth = depth
        self.calls = calls
        self.values: dict[str, CheckedTensor | None] = {}
        self.axioms: dict[tuple[object, ...], set[str]] = {} if outer is None else outer.axioms

    @property
    def trusts_runtime(self) -> bool:
        self.setting.asked.add("trusts_runtime")
        return self.setting.trusts_runtime

    @property
    def unrolls(self) -> bool:
        return self.setting.unrolls

    def size(self, key: tuple[object, ...]) -> int:
        """Return the size of a dim that depends on data: any one, but one for each key.

        Raises:
            Unproved: no sizes are tried here.
        """
        setting = self.setting
        if setting.sizes is None:
            raise Unproved("a shape depends on data")
        name = setting.dims.setdefault(key, f"data {len(setting.dims)}")
        return setting.sizes[name]

    @property
    def opsets(self) -> Mapping[str, int]:
        return self.setting.opsets

    def free(self, kind: TensorType, key: tuple[object, ...]) -> CheckedTensor:
        """Return a tensor of unknowns that a key identifies: one object for each."""
        return self.setting.free(kind, key)

    def body(self, body: onnx.GraphProto, inputs: Sequence[CheckedTensor]) -> list[CheckedTensor]:
        """Return the outputs of a body of a node in this graph.

        Raises:
            Unproved: one has no terms.
        """
        inner = NameScope(self.setting, self, self.depth + 1, self.calls)
        if body.sparse_initializer:
            raise Unproved("a body has sparse constants")
        domain = self.setting.domain
        for tensor in body.initializer:
            numbers = onnx.numpy_helper.to_array(tensor)
            held = constant(domain, numbers, tensor.data_type)
            inner.values[tensor.name] = self.setting.shared(held)
        inner.values.update(zip((info.name for info in body.input), inputs, strict=True))
        inner.run(body.node)
        found = [inner.find(info.name) for info in body.output]
        if None in found:
            raise Unproved("a body has an output that is no tensor")
        return [value for value in found if value is not None]

    def find(self, name: str) -> CheckedTensor | None:
        """Return the value of a name.

        Raises:
            Unproved: it has none.
        """
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise Unproved(f"no value {name!r} is known")

    def run(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Evaluate nodes in their order."""
        for node in nodes:
            results = self._results(node)
            for name, result in zip(node.output, results, strict=False):
                if name:
                    self.values[name] = result

    def _results(self, node: onnx.NodeProto) -> Results:
        inputs = [self.find(name) if name else None for name in node.input]
        setting = self.setting
        function = setting.functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            return self._called(node, function, inputs)
        if node.op_type in _BODIES and not node.domain:
            return self._evaluated(node, inputs, ())
        version = _since(node.op_type, node.domain, setting.opsets.get(node.domain, 1))
        key = (content_of(node), version, *(id(x) for x in inputs))
        if not is_known_function(node.op_type, node.domain, setting.opsets.get(node.domain, 1)):
            key = (*key, *node.output)
        known = setting.results.get(key)
        if known is None:
            found = self._evaluated(node, inputs, key)
            results = [None if x is None else setting.shared(x) for x in found]
            # The operands are kept, too: an identity stays that of one object.
            setting.results[key] = known = Kept(results, self.axioms[key], inputs)
        self.axioms[key] = known.axioms
        return known.results

    def _evaluated(
        self, node: onnx.NodeProto, inputs: Sequence[CheckedTensor | None], key: tuple[object, ...]
    ) -> Results:
        setting = self.setting
        call = EvaluatedCall(node, inputs, setting.opsets.get(node.domain, 1), setting.domain, self)
        # Terms are made later, and their rules add axioms then.
        self.axioms[key] = call.axioms
        name = operator_name(node.domain, node.op_type)
        rule = setting.rules.get(name)
        if rule is not None:
            try:
                return rule(call)
            except NoRule:
                pass
            except (IndexError, ValueError) as error:
                raise Unproved(f"{name} does not fit its operands: {error}") from error
        return opaque(call)

    def _called(
        self,
        node: onnx.NodeProto,
        function: onnx.FunctionProto,
        inputs: Sequence[CheckedTensor | None],
    ) -> Results:
        """Return what a call of a local function gives: its nodes are evaluated here."""
        opsets = {each.domain: each.version for each in function.opset_import}
        shared = replace(self.setting, opsets={**self.setting.opsets, **opsets})
        # The depth is that of bodies: a call computes what its nodes would compute here.
        inner = NameScope(shared, None, self.depth, self.calls + 1)
        inner.axioms = self.axioms
        padded = [*inputs, *[None] * (len(function.input) - len(inputs))]
        inner.values.update(zip(function.input, padded, strict=False))
        given = {each.name: each for each in node.attribute}
        defaults = {each.name: each for each in function.attribute_proto}
        inner.run([_bound(each, {**defaults, **given}) for each in function.node])
        return [inner.find(name) for name in function.output]


def _bound(node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """Return a node of a function with the attributes of a call."""
    if not any(each.ref_attr_name or each.HasField("g") for each in node.attribute):
        return node
    made = onnx.NodeProto()
    made.CopyFrom(node)
    del made.attribute[:]
    for each in node.attribute:
        if not each.ref_attr_name:
            made.attribute.append(each)
            if each.HasField("g"):
                body = made.attribute[-1].g
                inner = [_bound(one, attributes) for one in body.node]
                del body.node[:]
                body.node.extend(inner)
        elif each.ref_attr_name in attributes:
            made.attribute.append(attributes[each.ref_attr_name])
            made.attribute[-1].name = each.name
    return made


# --- operators without a rule ---------------------------------------------------------------------


def opaque(call: EvaluatedCall) -> Results:
    """Return results that are hashes of all that an operator reads.

    Raises:
        Unproved: its results have no known shape.
    """
    node = call.node
    if node.op_type in _BODIES and not node.domain:
        raise Unproved(f"{node.op_type} has no rule")
    is_known = is_known_function(call.op, node.domain, call.opset)
    if is_known and all(x is None or x.known is not None for x in call.inputs):
        from tiered.certify.evaluation.constants import run_node

        try:
            return run_node(call)
        except Unproved:
            # What fails at run time is a function of its operands as well.
            pass
    held: list[object] = [None if x is None else x.key for x in _needed(call)]
    if not is_known:
        held.append(("named", tuple(node.output)))
    content = content_of(_counted(call), with_outputs=node.op_type == "BatchNormalization")
    held.append(_since(call.op, node.domain, call.opset))
    types = types_of_results(call, (content, *held))
    made: list[CheckedTensor | None] = []
    for index, kind in enumerate(types):
        if kind is None:
            made.append(None)
            continue
        key = ("opaque", content, index, *held)
        made.append(call.scope.free(kind, key))
    return made


_ZERO_IF_ABSENT: Final = {
    "GRU": (3, 5),
    "LSTM": (3, 5, 6, 7),
    "QLinearConv": (8,),
    "RNN": (3, 5),
}
"""Operands that are zeros where they are absent: biases, first states, peepholes."""


_AXES: Final = frozenset(
    ("Compress", "Hardmax", "LpNormalization", "ScatterElements", "TopK", "Unique")
)
"""Operators without a rule, with an attribute `axis` that counts the axes of the first operand."""


def _counted(call: EvaluatedCall) -> onnx.NodeProto:
    """Return a node with its negative axis as a number from 0 on."""
    node, axis = call.node, call.get("axis")
    if node.domain or call.op not in _AXES or axis is None or axis >= 0:
        return node
    made = onnx.NodeProto()
    made.CopyFrom(node)
    for each in made.attribute:
        if each.name == "axis":
            each.i = axis + call.operand(0).rank
    return made


def _needed(call: EvaluatedCall) -> list[CheckedTensor | None]:
    """Return the operands without those that say what their absence says."""
    places = () if call.node.domain else _ZERO_IF_ABSENT.get(call.op, ())
    found = [
        None if at in places and x is not None and _is_zero(x) else x
        for at, x in enumerate(call.inputs)
    ]
    while found and found[-1] is None:
        found.pop()
    return found


def _is_zero(x: CheckedTensor) -> bool:
    return x.known is not None and not x.known.any() and not np.signbit(x.known).any()


def free(domain: Domain, kind: TensorType, key: tuple[object, ...]) -> CheckedTensor:
    """Return a tensor of unknowns that a key identifies."""
    shape = kind.shape
    assert shape is not None
    sizes = [int(size) for size in shape if isinstance(size, int)]
    return CheckedTensor(
        kind.dtype, sizes, lambda: domain.free(key, sizes), key=(kind.dtype, tuple(sizes), key)
    )


def free_terms(key: object, shape: Sequence[int]) -> Array:
    """Return the terms of a tensor of unknowns."""
    return leaf(seed_of("free", key), shape)


@lru_cache(maxsize=2048)
def is_known_function(op: str, domain: str, opset: int) -> bool:
    """Return whether an operator always gives equal results for equal operands."""
    schema = schema_of(op, domain, opset)
    kind = getattr(schema, "node_determinism", OpSchema.NodeDeterminism.NonDeterministic)
    return kind != OpSchema.NodeDeterminism.NonDeterministic


@lru_cache(maxsize=2048)
def _since(op: str, domain: str, opset: int) -> int:
    """Return the version of an operator in an opset; two versions are two operators."""
    schema = schema_of(op, domain, opset)
    return opset if schema is None else int(schema.since_version)


def types_of_results(call: EvaluatedCall, key: tuple[object, ...]) -> list[TensorType | None]:
    """Return the types of a node's results, as onnx infers them from concrete operands.

    Dims that depend on data have a size for each key.

    Raises:
        Unproved: it infers no shape.
    """
    found = _inferred(call)
    made: list[TensorType | None] = []
    for name in call.node.output:
        if not name:
            made.append(None)
            continue
        proto = found.get(name)
        kind = None if proto is None else read_type(proto)
        if not isinstance(kind, TensorType) or kind.shape is None:
            of = operator_name(call.node.domain, call.node.op_type)
            raise Unproved(f"no rule for {of}, and no shape of its results")
        shape = [
            size if isinstance(size, int) else call.scope.size((*key, name_of(size, len(made), at)))
            for at, size in enumerate(kind.shape)
        ]
        made.append(TensorType(kind.dtype, tuple(shape)))
    return made


def name_of(dim: object, index: int, axis: int) -> object:
    """Return what identifies a dim that depends on data: results may share one by name."""
    return dim if isinstance(dim, str) else (index, axis)


def _inferred(call: EvaluatedCall) -> Mapping[str, Any]:
    schema = schema_of(call.op, call.node.domain, call.opset)
    if schema is None:
        return {}
    bare = onnx.NodeProto()
    bare.CopyFrom(call.node)
    bare.input[:] = ["" if x is None else f"in {at}" for at, x in enumerate(call.inputs)]
    named = {f"in {at}": x for at, x in enumerate(call.inputs) if x is not None}
    types = {name: write_type(tensor_type(x.dtype, x.shape)) for name, x in named.items()}
    data = {
        name: onnx.numpy_helper.from_array(x.known, name)
        for name, x in named.items()
        if x.known is not None and x.size <= _SMALL
    }
    imports = [onnx.helper.make_opsetid(d, v) for d, v in call.scope.opsets.items()]
    try:
        return shape_inference.infer_node_outputs(schema, bare, types, data, opset_imports=imports)
    except Exception as error:  # onnx raises what its C++ raises
        name = operator_name(call.node.domain, call.node.op_type)
        raise Unproved(f"onnx infers no shape of {name}") from error
