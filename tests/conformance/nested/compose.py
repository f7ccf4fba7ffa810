"""One model of several: a part reads the outputs of others or what they read, or is in a body."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

DOMAIN = "nested"


class Part(NamedTuple):
    """A copy of an example with names of its own; its inputs are values of the whole.

    Attributes:
        nodes: its nodes.
        constants: its initializers.
        outputs: its outputs with their types.
        sources: the values of the whole that it reads.
    """

    nodes: list[NodeProto]
    constants: list[TensorProto]
    outputs: list[ValueInfoProto]
    sources: list[ValueInfoProto]


class Whole:
    """A model that grows part by part."""

    def __init__(self, source: random.Random, first: ModelProto) -> None:
        self.random = source
        self.model = ModelProto(ir_version=10)
        self.model.graph.name = "nested"
        for entry in first.opset_import:
            self.model.opset_import.add(domain=entry.domain, version=entry.version)
        self.available: list[ValueInfoProto] = []
        self._count = 0
        self._read = set[str]()

    def takes(self, example: ModelProto) -> bool:
        """Return whether an example has no other version of a domain."""
        versions = {entry.domain: entry.version for entry in self.model.opset_import}
        return all(
            versions.get(entry.domain, entry.version) == entry.version
            for entry in example.opset_import
        )

    @property
    def opset(self) -> int:
        """The opset of the default domain."""
        entries = self.model.opset_import
        return next((entry.version for entry in entries if not entry.domain), 0)

    def add(self, example: ModelProto) -> None:
        """Add an example, its inputs fed as chance will have it."""
        known = {entry.domain for entry in self.model.opset_import}
        for entry in example.opset_import:
            if entry.domain not in known:
                self.model.opset_import.add(domain=entry.domain, version=entry.version)
        sources = self._sources(example)
        forms = (_beside, _beside, _in_branches, _in_function, _in_loop)
        # An early Loop must have a state.
        form = self.random.choice(forms if self.opset >= 11 else forms[:-1])
        outputs = form(self, example, sources)
        self._read.update(source.name for source in sources)
        self.available += outputs

    def done(self) -> ModelProto:
        """Return the model, with every output that no part reads and some others."""
        outputs = [each for each in self.available if not self._is_input(each.name)]
        for value in outputs:
            if value.name not in self._read or self.random.random() < 0.3:
                self.model.graph.output.append(value)
        return self.model

    def fresh(self, name: str) -> str:
        """Return a name that no value has."""
        self._count += 1
        return f"{name}_{self._count}"

    def constant(self, array: np.ndarray) -> str:
        """Return the name of a new initializer of the whole."""
        name = self.fresh("constant")
        self.model.graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def part(self, example: ModelProto, sources: Sequence[ValueInfoProto]) -> Part:
        """Return a copy of an example that reads these values."""
        prefix = self.fresh("p")
        graph = example.graph
        names = {
            value.name: source.name for value, source in zip(_inputs(graph), sources, strict=True)
        }
        copy = GraphProto()
        copy.CopyFrom(graph)
        _rename(copy, lambda name: names.get(name, f"{prefix}_{name}"))
        known = {dim.dim_param for value in graph.input for dim in value.type.tensor_type.shape.dim}
        for value in copy.output:  # the M of one part is not that of another
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param and dim.dim_param not in known:
                    dim.dim_param = f"{prefix}_{dim.dim_param}"
        outputs = self._computed(copy, prefix)
        return Part(list(copy.node), list(copy.initializer), outputs, list(sources))

    def _computed(self, copy: GraphProto, prefix: str) -> list[ValueInfoProto]:
        """Return the outputs; an input that is one too gets an Identity."""
        made = {name for node in copy.node for name in node.output}
        outputs: list[ValueInfoProto] = []
        for value in copy.output:
            if value.name not in made:
                name = self.fresh(f"{prefix}_again")
                copy.node.append(helper.make_node("Identity", [value.name], [name]))
                value.name = name
            if value.name not in {each.name for each in outputs}:
                outputs.append(value)
        return outputs

    def _is_input(self, name: str) -> bool:
        return any(value.name == name for value in self.model.graph.input)

    def _sources(self, example: ModelProto) -> list[ValueInfoProto]:
        """Return a value of the whole for each input of an example."""
        return [self._source(value.type) for value in _inputs(example.graph)]

    def _source(self, wanted: TypeProto) -> ValueInfoProto:
        fitting = [value for value in self.available if value.type == wanted]
        if fitting and self.random.random() < 0.8:
            return self.random.choice(fitting[-6:])
        alike = [value for value in self.available if _has_equal_size(value.type, wanted)]
        if alike and self.random.random() < 0.5:
            return self._reshaped(self.random.choice(alike), wanted)
        value = _info(self.fresh("input"), wanted)
        self.model.graph.input.append(value)
        self.available.append(value)
        return value

    def _reshaped(self, value: ValueInfoProto, wanted: TypeProto) -> ValueInfoProto:
        shape = [dim.dim_value for dim in wanted.tensor_type.shape.dim]
        made = _info(self.fresh("reshaped"), wanted)
        target = self.constant(np.array(shape, np.int64))
        node = helper.make_node("Reshape", [value.name, target], [made.name])
        self.model.graph.node.append(node)
        return made


def _inputs(graph: GraphProto) -> list[ValueInfoProto]:
    defaults = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in defaults]


def _has_equal_size(one: TypeProto, other: TypeProto) -> bool:
    sizes = []
    for kind in (one.tensor_type, other.tensor_type):
        if not kind.HasField("shape") or any(not d.HasField("dim_value") for d in kind.shape.dim):
            return False
        sizes.append(np.prod([dim.dim_value for dim in kind.shape.dim], dtype=np.int64))
    return one.tensor_type.elem_type == other.tensor_type.elem_type and sizes[0] == sizes[1] > 0


def _rename(graph: GraphProto, name_of: Callable[[str], str]) -> None:
    """Rename all values and nodes, in bodies too."""
    for infos in (graph.input, graph.output, graph.value_info, graph.initializer):
        for info in infos:
            info.name = name_of(info.name)
    for node in graph.node:
        node.input[:] = [name and name_of(name) for name in node.input]
        node.output[:] = [name and name_of(name) for name in node.output]
        node.name = node.name and name_of(node.name)
        for attribute in node.attribute:
            bodies = [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())]
            for body in bodies:
                _rename(body, name_of)


# --- where a part is ------------------------------------------------------------------------------


def _beside(
    whole: Whole, example: ModelProto, sources: Sequence[ValueInfoProto]
) -> list[ValueInfoProto]:
    part = whole.part(example, sources)
    whole.model.graph.node.extend(part.nodes)
    whole.model.graph.initializer.extend(part.constants)
    return part.outputs


def _body(whole: Whole, part: Part, name: str) -> GraphProto:
    """Return a body of a part, whose constants are its own or the model's."""
    body = GraphProto(name=whole.fresh(name), node=part.nodes, output=part.outputs)
    is_own = whole.random.random() < 0.6
    (body if is_own else whole.model.graph).initializer.extend(part.constants)
    return body


def _in_branches(
    whole: Whole, example: ModelProto, sources: Sequence[ValueInfoProto]
) -> list[ValueInfoProto]:
    """Both branches hold the part, the second one with an operator more after a float."""
    parts = [whole.part(example, sources) for _ in range(2)]
    node = helper.make_node("If", [_condition(whole)], [], name=whole.fresh("if"))
    outputs = [_info(whole.fresh("chosen"), value.type) for value in parts[0].outputs]
    node.output.extend(value.name for value in outputs)
    _negate(whole, parts[1])
    for name, part in zip(("then_branch", "else_branch"), parts, strict=True):
        node.attribute.append(helper.make_attribute(name, _body(whole, part, name)))
    whole.model.graph.node.append(node)
    return outputs


def _condition(whole: Whole) -> str:
    wanted = helper.make_tensor_type_proto(TensorProto.BOOL, [])
    return whole._source(wanted).name


def _negate(whole: Whole, part: Part) -> None:
    for at, value in enumerate(part.outputs):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT and whole.random.random() < 0.5:
            made = _info(whole.fresh("negative"), value.type)
            part.nodes.append(helper.make_node("Neg", [value.name], [made.name]))
            part.outputs[at] = made


def _in_loop(
    whole: Whole, example: ModelProto, sources: Sequence[ValueInfoProto]
) -> list[ValueInfoProto]:
    """A part that is run twice: an output of the type of an input is the state."""
    part = whole.part(example, sources)
    node = helper.make_node("Loop", [], [], name=whole.fresh("loop"))
    turn, go, on = (whole.fresh(name) for name in ("turn", "go", "on"))
    part.nodes.append(helper.make_node("Identity", [go], [on]))
    pairs = [
        (value, source)
        for value in part.outputs
        for source in part.sources
        if value.type == source.type
    ]
    states = pairs[:1] if whole.random.random() < 0.7 else []
    carried = [value.name for value, _ in states]
    part.outputs.sort(key=lambda value: value.name not in carried)
    body = _body(whole, part, "loop")
    for _, source in states:
        state = _info(whole.fresh("state"), source.type)
        _rename(body, _only(source.name, state.name))
        body.input.append(state)
    body.input.insert(0, _info(turn, helper.make_tensor_type_proto(TensorProto.INT64, [])))
    for field, name in ((body.input, go), (body.output, on)):
        kind = helper.make_tensor_type_proto(TensorProto.BOOL, [])
        field.insert(1 if name == go else 0, _info(name, kind))
    constants = [whole.constant(np.array(2, np.int64)), whole.constant(np.array(True))]
    node.input.extend([*constants, *(source.name for _, source in states)])
    node.attribute.append(helper.make_attribute("body", body))
    outputs = [_after_loop(whole, value, value.name in carried) for value in part.outputs]
    node.output.extend(value.name for value in outputs)
    whole.model.graph.node.append(node)
    return outputs


def _info(name: str, kind: TypeProto) -> ValueInfoProto:
    return ValueInfoProto(name=name, type=kind)


def _only(old: str, new: str) -> Callable[[str], str]:
    return lambda name: new if name == old else name


def _after_loop(whole: Whole, value: ValueInfoProto, is_state: bool) -> ValueInfoProto:
    kind = TypeProto()
    kind.CopyFrom(value.type)
    if not is_state:
        dims = list(value.type.tensor_type.shape.dim)
        del kind.tensor_type.shape.dim[:]
        kind.tensor_type.shape.dim.add(dim_value=2)
        kind.tensor_type.shape.dim.extend(dims)
    return _info(whole.fresh("looped"), kind)


def _in_function(
    whole: Whole, example: ModelProto, sources: Sequence[ValueInfoProto]
) -> list[ValueInfoProto]:
    part = whole.part(example, sources)
    name = whole.fresh("function")
    reads = list(dict.fromkeys(source.name for source in part.sources))
    constants = [
        helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in part.constants
    ]
    function = FunctionProto(
        name=name,
        domain=DOMAIN,
        input=reads,
        output=[value.name for value in part.outputs],
        node=[*constants, *part.nodes],
        opset_import=[entry for entry in whole.model.opset_import if entry.domain != DOMAIN],
    )
    whole.model.functions.append(function)
    if DOMAIN not in {entry.domain for entry in whole.model.opset_import}:
        whole.model.opset_import.add(domain=DOMAIN, version=1)
    outputs = [_info(whole.fresh("called"), value.type) for value in part.outputs]
    call = helper.make_node(name, reads, [value.name for value in outputs], domain=DOMAIN)
    whole.model.graph.node.append(call)
    return outputs


def composed(source: random.Random, examples: Iterable[ModelProto]) -> ModelProto:
    """Return a model of examples, in their order, where their opsets agree."""
    parts = list(examples)
    whole = Whole(source, parts[0])
    for example in parts:
        if whole.takes(example):
            whole.add(example)
    return whole.done()
