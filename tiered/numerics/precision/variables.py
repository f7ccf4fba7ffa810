"""Type variables: the values and operands of a model that have one element type together.

The schema of each operator, at the opset of the model, says which operands and outputs share a
type, and which types it may be. What an If, Loop or Scan passes on has one type inside and outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from onnx import AttributeProto
from onnx.defs import OpSchema

from tiered.graph import DataType, Graph, Model, Node, TensorType, Value
from tiered.graph.core.schema import schema_of
from tiered.graph.queries.formals import formal_of, output_formal_of
from tiered.graph.queries.op_traits import MOVES_ELEMENTS
from tiered.numerics.precision.narrowing import Narrowing

DTYPE_ATTRIBUTES: Final = {
    "Bernoulli": "dtype", "BlackmanWindow": "output_datatype", "Cast": "to",
    "ConstantOfShape": "value", "EyeLike": "dtype", "HammingWindow": "output_datatype",
    "HannWindow": "output_datatype", "MelWeightMatrix": "output_datatype",
    "RandomNormal": "dtype", "RandomNormalLike": "dtype", "RandomUniform": "dtype",
    "RandomUniformLike": "dtype",
}  # fmt: skip
"""Operators of ONNX whose attribute decides the element type of the output."""

_OF_ATTRIBUTE: Final = {"LayerNormalization": "stash_type"}
"""Operators whose second output and all further have the type that an attribute names."""

_TYPED: Final = frozenset(
    {AttributeProto.FLOATS, AttributeProto.INTS, AttributeProto.TENSOR, AttributeProto.TENSORS}
)
"""Attributes of other domains than ONNX's whose numbers may be of the type of an operand."""

_ANY_INPUT: Final = frozenset({"Cast", "CastLike", "Shape", "Size", "IsNaN", "IsInf"})
"""Operators that read a tensor of either type as it is."""


class VariableUse(NamedTuple):
    """A place where a value is read: an operand of a node, or an output of a graph."""

    reader: Node | Graph
    place: int


@dataclass(eq=False, slots=True)
class TypeVariable:
    """Values and operands of one type.

    Attributes:
        values: what is computed in the type, or enters a body in it.
        uses: where a value is read in the type.
        kept: why the type stays float; empty if it may be narrower.
        is_free: whether either type will do, so that the number of Casts decides.
    """

    values: list[Value] = field(default_factory=list)
    uses: list[VariableUse] = field(default_factory=list)
    kept: str = ""
    is_free: bool = True
    node: Node | None = None

    def keep(self, reason: str) -> None:
        """Keep the type as it is, if there is a reason."""
        if reason and not self.kept:
            self.kept, self.is_free = reason, False


def variables_of(model: Model, narrowing: Narrowing, *, keeps_io: bool) -> list[TypeVariable]:
    """Return the type variables of all tensors of the wide type, in bodies too.

    Args:
        model: the model; its local functions stay as they are.
        narrowing: decides about single nodes and values.
        keeps_io: whether inputs and outputs of the main graph keep their types.
    """
    refusal = _why_no_casts(model)
    found = _Collector(narrowing, refusal)
    wide = narrowing.wide
    for value in model.main.inputs:
        if value.dtype == wide and keeps_io:
            found.new("an input of the model").values.append(value)
        elif value.dtype == wide:
            kept = refusal or _why_no_cast(model, narrowing.low) or narrowing.refuse(value)
            found.new(kept, is_free=False).values.append(value)
    for graph in _graphs(model.main):
        for node in graph.topological_order():
            found.visit(node)
    for place, value in enumerate(model.main.outputs):
        if value.dtype == wide and keeps_io:
            found.new("an output of the model").uses.append(VariableUse(model.main, place))
    return found.variables


def _why_no_cast(model: Model, low: DataType) -> str:
    """Return why no Cast can make a narrower type; empty if one can."""
    cast = schema_of("Cast", "", model.opset())
    has_cast = cast is not None and low in formal_of(cast, 0).dtypes
    return "" if has_cast else f"Cast has no {low.name.lower()}"


def _why_no_casts(model: Model) -> str:
    """Return why no Cast can be added to a model; empty if they can."""
    cast = schema_of("Cast", "", model.opset())
    is_named = cast is not None and cast.attributes["to"].type == OpSchema.AttrType.STRING
    return "the Cast of this opset names dtypes by strings: convert to opset 6" if is_named else ""


def _graphs(graph: Graph) -> Iterator[Graph]:
    yield graph
    for node in graph.body_nodes:
        for body in node.bodies:
            yield from _graphs(body)


class _Collector:
    def __init__(self, narrowing: Narrowing, refusal: str) -> None:
        self.narrowing = narrowing
        self.wide, self.low = narrowing.wide, narrowing.low
        self.refusal = refusal
        self.variables: list[TypeVariable] = []

    def new(
        self, kept: str = "", *, is_free: bool = True, node: Node | None = None
    ) -> TypeVariable:
        made = TypeVariable(kept=kept, is_free=is_free and not kept, node=node)
        self.variables.append(made)
        return made

    def visit(self, node: Node) -> None:
        """Collect the variables of one node."""
        if node.is_op("Constant"):
            return
        if node.is_op("If"):
            self._visit_if(node)
        elif node.is_op("Loop"):
            self._visit_loop(node)
        elif node.is_op("Scan") and node.version > _SCAN_OF_BATCHES:
            self._visit_scan(node)
        else:
            self._visit_operator(node)

    # --- operators --------------------------------------------------------------------------------

    def _visit_operator(self, node: Node) -> None:
        reason = self._kept(node)
        by_parameter: dict[str, TypeVariable] = {}
        for place, value in enumerate(node.inputs):
            if value is None or value.dtype != self.wide:
                continue
            if not reason and place == 0 and self._takes_both(node):
                continue
            variable = self._of_parameter(node, place, True, reason, by_parameter)
            variable.uses.append(VariableUse(node, place))
            variable.keep(self.narrowing.refuse(value, node, place))
        for place, value in enumerate(node.outputs):
            if value is not None and value.dtype == self.wide:
                variable = self._of_parameter(node, place, False, reason, by_parameter)
                if place and (named := _OF_ATTRIBUTE.get(node.op_type)):
                    variable.keep(f"attribute '{named}' names the dtype")
                variable.values.append(value)
                variable.keep(self.narrowing.refuse(value))
        for body in node.bodies:
            self._keep_interface(body)

    def _takes_both(self, node: Node) -> bool:
        """Return whether a node reads its first operand as it is, in either type."""
        schema = node.schema
        is_listed = node.op_type in _ANY_INPUT and schema is not None
        return is_listed and self.low in formal_of(schema, 0).dtypes

    def _kept(self, node: Node) -> str:
        """Return why a node stays as it is; empty if its schema decides."""
        if self.refusal:
            return self.refusal
        if node.schema is None:
            return "an operator that ONNX does not define"
        if node.bodies:
            return f"a body of {node.op_type}"
        if node.is_op("BitCast"):
            return "its result depends on the bits"
        if node.domain and any(proto.type in _TYPED for proto in node.attribute_protos().values()):
            return "numbers of an attribute may decide the dtype"
        operands = [value for value in (*node.inputs, *node.outputs) if value is not None]
        if any(not isinstance(value.type, TensorType) for value in operands):
            return "a sequence, or a tensor of unknown type"
        return self.narrowing.keep(node)

    def _of_parameter(
        self, node: Node, place: int, is_input: bool, reason: str, known: dict[str, TypeVariable]
    ) -> TypeVariable:
        schema = node.schema
        formal = schema and (formal_of if is_input else output_formal_of)(schema, place)
        name = formal.parameter if formal else ""
        if name not in known:
            kept = reason
            if not kept and formal and self.low not in formal.dtypes:
                kept = f"{node.op_type} has no {self.low.name.lower()}"
            known[name] = self.new(kept, is_free=_is_free(node, name), node=node)
        return known[name]

    def _keep_interface(self, body: Graph) -> None:
        """Keep the inputs and outputs of a body that an operator other than If, Loop, Scan has."""
        variable = self.new("the interface of a body")
        variable.values += [value for value in body.inputs if value.dtype == self.wide]
        outputs = enumerate(body.outputs)
        variable.uses += [
            VariableUse(body, place) for place, value in outputs if value.dtype == self.wide
        ]

    # --- control flow -----------------------------------------------------------------------------

    def _join(
        self,
        node: Node,
        *,
        operands: tuple[int, ...] = (),
        inside: Value | None = None,
        results: tuple[tuple[Graph, int], ...] = (),
        output: Value | None = None,
    ) -> None:
        """Make one variable of what a body passes on."""
        values = [value for value in (inside, output) if value is not None]
        read = [value for place in operands if (value := node.inputs[place]) is not None]
        read += [body.outputs[place] for body, place in results]
        if not any(value.dtype == self.wide for value in (*values, *read)):
            return
        kept, schema = self.refusal or self.narrowing.keep(node), node.schema
        assert schema is not None, "If, Loop and Scan have one in each opset that has them"
        if self.low not in output_formal_of(schema, 0).dtypes:
            kept = f"{node.op_type} has no {self.low.name.lower()}"
        if any(value.dtype != self.wide for value in (*values, *read)):
            kept = "a value of unknown type"
        variable = self.new(kept, node=node)
        variable.values += values
        variable.uses += [VariableUse(node, place) for place in operands]
        variable.uses += [VariableUse(body, place) for body, place in results]
        for value in (*values, *read):
            variable.keep(self.narrowing.refuse(value))

    def _visit_if(self, node: Node) -> None:
        for place, output in enumerate(node.outputs):
            results = tuple((body, place) for body in node.bodies)
            self._join(node, results=results, output=output)

    def _visit_loop(self, node: Node) -> None:
        (body,) = node.bodies
        states = len(body.inputs) - 2
        for at in range(states):
            self._join(
                node,
                operands=(2 + at,),
                inside=body.inputs[2 + at],
                results=((body, 1 + at),),
                output=node.outputs[at],
            )
        for at in range(states, len(node.outputs)):
            self._join(node, results=((body, 1 + at),), output=node.outputs[at])

    def _visit_scan(self, node: Node) -> None:
        (body,) = node.bodies
        states = len(node.inputs) - node.attr("num_scan_inputs")
        for at in range(states):
            self._join(
                node,
                operands=(at,),
                inside=body.inputs[at],
                results=((body, at),),
                output=node.outputs[at],
            )
        for at in range(states, len(node.inputs)):
            self._join(node, operands=(at,), inside=body.inputs[at])
        for at in range(states, len(node.outputs)):
            self._join(node, results=((body, at),), output=node.outputs[at])


_SCAN_OF_BATCHES: Final = 8
"""The version of Scan that iterates over batches; its first operand is of another kind."""


def _is_free(node: Node, parameter: str) -> bool:
    """Return whether a node moves or converts the elements of a type, in either type alike."""
    if node.op_type in MOVES_ELEMENTS:
        schema = node.schema
        return schema is None or any(formal.type_str == parameter for formal in schema.outputs)
    return node.op_type in DTYPE_ATTRIBUTES or node.op_type == "CastLike"
