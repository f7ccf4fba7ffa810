"""Models that differ from a model in one thing which a pass may not have expected.

All is by fixed rules, so that the variants of a model are the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import zip_longest
from typing import Any, Final

import numpy as np
import onnx
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from tests.conformance.judge import all_nodes, nodes_below

Array = np.ndarray[Any, Any]
Edit = Callable[[ModelProto], None]
"""Changes a model, perhaps to one that is not valid."""
Change = tuple[str, Edit]

OPSETS: Final = (23, 18, 13, 12, 11, 10, 8, 7)
ELEMENTS: Final = (
    (TensorProto.FLOAT, TensorProto.DOUBLE),
    (TensorProto.FLOAT, TensorProto.FLOAT16),
    (TensorProto.FLOAT, TensorProto.INT32),
    (TensorProto.INT8, TensorProto.UINT8),
    (TensorProto.UINT8, TensorProto.INT8),
)
FLAGS: Final = (
    "allowzero", "ceil_mode", "count_include_pad", "exclusive", "interleaved", "keepdims",
    "noop_with_empty_axes", "reverse", "saturate", "transA", "transB",
)  # fmt: skip
OPTIONAL: Final = onnx.defs.OpSchema.FormalParameterOption.Optional
LISTS: Final = (onnx.defs.OpSchema.AttrType.INTS, onnx.defs.OpSchema.AttrType.FLOATS)


def changes_of(model: ModelProto, first: int) -> Iterator[Change]:
    """Yield what may be changed of a model, with its name: kinds take turns, from `first` on."""
    first %= len(KINDS)
    for turn in zip_longest(*(kind(model) for kind in (*KINDS[first:], *KINDS[:first]))):
        yield from (change for change in turn if change is not None)


def changed(model: ModelProto, edit: Edit) -> ModelProto:
    """Return a copy with a change; it says nothing of the shapes of what its nodes make."""
    made = ModelProto()
    made.CopyFrom(model)
    for function in made.functions:
        del function.value_info[:]
    for graph in _graphs(made):
        del graph.value_info[:]
        for value in graph.output:
            _no_rank(value)
    edit(made)
    return made


# --- operands and attributes ----------------------------------------------------------------------


def _operands(model: ModelProto) -> Iterator[Change]:
    """Leave out each optional operand, and exchange or repeat the first two."""
    for at, node in enumerate(all_nodes(model)):
        schema = _schema(model, node)
        for place, formal in enumerate(schema.inputs[: len(node.input)] if schema else ()):
            if node.input[place] and formal.option == OPTIONAL:
                inputs = [*node.input]
                inputs[place] = ""
                while inputs and not inputs[-1]:
                    inputs.pop()
                yield f"node {at} without {formal.name}", partial(_set_inputs, at, inputs)
        if len(node.input) > 1 and node.input[0] != node.input[1]:
            first, second, *others = node.input
            exchanged, twice = [second, first, *others], [first, first, *others]
            yield f"node {at} with operands exchanged", partial(_set_inputs, at, exchanged)
            yield f"node {at} with one operand twice", partial(_set_inputs, at, twice)


def _attributes(model: ModelProto) -> Iterator[Change]:
    """Leave out each attribute, give it another value, and add those that have a default."""
    for at, node in enumerate(all_nodes(model)):
        for attribute in node.attribute:
            name = attribute.name
            if attribute.ref_attr_name or attribute.graphs or attribute.HasField("g"):
                continue
            yield f"node {at} without {name}", partial(_set_attribute, at, name, None)
            for value in _other_values(name, helper.get_attribute_value(attribute)):
                yield f"node {at} with {name}={value}", partial(_set_attribute, at, name, value)
        schema = _schema(model, node)
        present = {attribute.name for attribute in node.attribute}
        for name, declared in sorted(schema.attributes.items() if schema else ()):
            default = declared.default_value
            if name not in present and default.type == AttributeProto.INT:
                value = default.i + 1
                yield f"node {at} with {name}={value}", partial(_set_attribute, at, name, value)


def _results(model: ModelProto) -> Iterator[Change]:
    """Name each optional output that a node has not, as one that nobody wants."""
    for at, node in enumerate(all_nodes(model)):
        schema = _schema(model, node)
        if schema is not None and len(schema.outputs) > len(node.output):
            yield f"node {at} with an output of no name", partial(_add_output, at)


def _add_output(at: int, made: ModelProto) -> None:
    [*all_nodes(made)][at].output.append("")


def _other_values(name: str, value: Any) -> list[Any]:
    if value in (0, 1) and name in FLAGS:
        return [1 - value]
    if isinstance(value, int):
        return [value + 1, -1 - value]
    if isinstance(value, float):
        return [value + 0.5]
    if isinstance(value, list) and value and isinstance(value[0], int):
        others = [[*reversed(value)], [each + 1 for each in value]]
        return [other for other in others if other != value]
    return []


def _set_inputs(at: int, inputs: list[str], made: ModelProto) -> None:
    [*all_nodes(made)][at].input[:] = inputs


def _set_attribute(at: int, name: str, value: Any, made: ModelProto) -> None:
    node = [*all_nodes(made)][at]
    kept = [each for each in node.attribute if each.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)
    if value is not None:
        node.attribute.append(helper.make_attribute(name, value))


# --- types ----------------------------------------------------------------------------------------


def _unknown_types(model: ModelProto) -> Iterator[Change]:
    """Let the ranks of all inputs, all their dims, their first ones, or one rank be unknown."""
    every = range(len(model.graph.input))
    yield "no ranks", partial(_forget, _no_rank, every)
    yield "symbolic dims", partial(_forget, _no_dims, every)
    yield "symbolic first dims", partial(_forget, _no_first_dim, every)
    if len(every) > 1:
        for at in every:
            yield f"no rank of input {at}", partial(_forget, _no_rank, [at])


def _forget(what: Callable[[ValueInfoProto], None], which: Iterable[int], made: ModelProto) -> None:
    for at in which:
        what(made.graph.input[at])


def _no_rank(value: ValueInfoProto) -> None:
    if value.type.HasField("tensor_type"):
        value.type.tensor_type.ClearField("shape")


def _no_dims(value: ValueInfoProto) -> None:
    for at, dim in enumerate(value.type.tensor_type.shape.dim):
        dim.dim_param = f"{value.name}_{at}"


def _no_first_dim(value: ValueInfoProto) -> None:
    for dim in value.type.tensor_type.shape.dim[:1]:
        dim.dim_param = "batch"


def _sizes(model: ModelProto) -> Iterator[Change]:
    """Let each size be 1, 0 or one more: of inputs and constants, and where a constant says it."""
    sizes = {
        dim.dim_value
        for value in model.graph.input
        for dim in value.type.tensor_type.shape.dim
        if dim.HasField("dim_value")
    }
    for size in sorted(sizes):
        for new in (1, 0, size + 1):
            if new != size:
                yield f"{size} is {new}", partial(_set_size, size, new, True)
                yield f"{size} is {new} in shapes", partial(_set_size, size, new, False)


def _set_size(size: int, new: int, is_said: bool, made: ModelProto) -> None:
    for value in made.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value == size:
                dim.dim_value = new
    for tensor in made.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if tensor.data_type == TensorProto.INT64:
            array = np.where(array == size, new, array) if is_said else array
        else:
            for axis in [axis for axis, dim in enumerate(array.shape) if dim == size]:
                array = np.take(array, np.arange(new) % max(size, 1), axis) if size else array
        tensor.CopyFrom(numpy_helper.from_array(np.asarray(array), tensor.name))


def _elements(model: ModelProto) -> Iterator[Change]:
    """Let all values of an element type have another one."""
    for old, new in ELEMENTS:
        label = f"{TensorProto.DataType.Name(old)} is {TensorProto.DataType.Name(new)}"
        yield label, partial(_set_element, old, new)


def _set_element(old: int, new: int, made: ModelProto) -> None:
    tensors: list[TensorProto] = []
    for graph in _graphs(made):
        tensors += graph.initializer
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.tensor_type.elem_type == old:
                value.type.tensor_type.elem_type = new
    for node in all_nodes(made):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                tensors.append(attribute.t)
            if attribute.name in ("to", "dtype", "output_dtype") and attribute.i == old:
                attribute.i = new
    for tensor in tensors:
        if tensor.data_type == old:
            with np.errstate(all="ignore"):
                array = numpy_helper.to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(new))
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


# --- constants ------------------------------------------------------------------------------------


def _constants(model: ModelProto) -> Iterator[Change]:
    """Let each initializer be an input, a default, a node, or shared."""
    for at, tensor in enumerate(model.graph.initializer):
        value = helper.make_tensor_value_info(tensor.name, tensor.data_type, [*tensor.dims])
        if all(each.name != tensor.name for each in model.graph.input):
            for is_kept in (False, True):
                label = f"{tensor.name} is an input{', too' * is_kept}"
                yield label, partial(_make_input, at, value, is_kept)
            yield f"{tensor.name} is a Constant", partial(_make_node, at)
        yield f"{tensor.name} has one more user", partial(_add_user, value)


def _contents(model: ModelProto) -> Iterator[Change]:
    """Give each initializer another rank, or other elements."""
    for at, tensor in enumerate(model.graph.initializer):
        for label, array in _other_contents(numpy_helper.to_array(tensor)):
            yield f"{tensor.name} {label}", partial(_set_content, at, array)


def _make_input(at: int, value: ValueInfoProto, is_kept: bool, made: ModelProto) -> None:
    if not is_kept:
        del made.graph.initializer[at]
    made.graph.input.append(value)


def _make_node(at: int, made: ModelProto) -> None:
    tensor = made.graph.initializer.pop(at)
    made.graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], value=tensor))


def _set_content(at: int, array: Array, made: ModelProto) -> None:
    tensor = made.graph.initializer[at]
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _other_contents(array: Array) -> Iterator[tuple[str, Array]]:
    if array.dtype == object:
        return
    yield "with a dim more", array[np.newaxis]
    if array.dtype == bool:
        yield "inverted", ~array
        return
    one = array.dtype.type(1)
    if array.size == 1:
        yield "twice", np.concatenate([array.ravel()] * 2)
    elif array.size:
        yield "with another last one", _with_last(array, (array.ravel()[:1] + one)[0])
        yield "its first one alone", np.asarray(array.ravel()[0])
        yield "empty", array[:0]
    yield "plus 1", np.asarray(array + one)
    yield "zero", np.zeros_like(array)
    if array.dtype.kind != "u":
        yield "negated", np.asarray(-array)
    if array.dtype.kind == "f" and array.size:
        yield "with a NaN", _with_last(array, np.nan)
        yield "with an infinity", _with_last(array, np.inf)
        yield "halved", np.asarray(array * array.dtype.type(0.5))
    if array.ndim and array.shape[0] == 1:
        yield "with a dim less", array[0]


def _with_last(array: Array, value: Any) -> Array:
    made = array.copy()
    made.flat[-1] = value
    return made


# --- users, bodies, functions ---------------------------------------------------------------------


def _users(model: ModelProto) -> Iterator[Change]:
    """Let each value that a node makes be an output, have one more user, or one in a body."""
    outputs = {value.name for value in model.graph.output}
    values = {value.name: value for value in (*_inferred(model), *model.graph.output)}
    for node in model.graph.node:
        for value in [values[name] for name in node.output if name in values]:
            if value.name not in outputs:
                yield f"{value.name} is an output", partial(_make_output, value)
            yield f"{value.name} has one more user", partial(_add_user, value)
            yield f"{value.name} has a user in a body", partial(_add_user_in_body, value)


def _inferred(model: ModelProto) -> list[ValueInfoProto]:
    return [*onnx.shape_inference.infer_shapes(model).graph.value_info]


def _make_output(value: ValueInfoProto, made: ModelProto) -> None:
    made.graph.output.append(value)


def _add_user(value: ValueInfoProto, made: ModelProto) -> None:
    name = f"{value.name}_again"
    made.graph.node.append(helper.make_node("Identity", [value.name], [name]))
    made.graph.output.append(_info(name, value.type))


def _add_user_in_body(value: ValueInfoProto, made: ModelProto) -> None:
    body = GraphProto(name="body")
    _add_user(value, holder := ModelProto(graph=body))
    _add_if(made, holder.graph, [_info(f"{value.name}_out", value.type)])


def _bodies(model: ModelProto) -> Iterator[Change]:
    """Put all nodes in the branches of an If, which reads inputs and constants of the model."""
    made = {name for node in model.graph.node for name in node.output}
    if all(value.name in made for value in model.graph.output):
        yield "in branches", _move_to_branches


def _move_to_branches(made: ModelProto) -> None:
    body, outputs = GraphProto(name="body"), [*made.graph.output]
    body.node.extend(made.graph.node)
    body.output.extend(outputs)
    _rename_made(body, "_then")
    for field in ("node", "output"):
        made.graph.ClearField(field)
    _add_if(made, body, outputs)


def _add_if(made: ModelProto, body: GraphProto, outputs: list[ValueInfoProto]) -> None:
    """Add an If with a body in both branches, whose outputs the model has, too."""
    made.graph.input.append(helper.make_tensor_value_info("condition", TensorProto.BOOL, []))
    other = GraphProto()
    other.CopyFrom(body)
    _rename_made(other, "_else")
    names = [value.name for value in outputs]
    made.graph.node.append(
        helper.make_node("If", ["condition"], names, then_branch=body, else_branch=other)
    )
    made.graph.output.extend(outputs)


def _rename_made(body: GraphProto, ending: str) -> None:
    """Rename what the nodes of a body make."""
    names = {name: name + ending for node in body.node for name in node.output if name}
    values = [*body.output]
    for node in nodes_below(body.node):
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for attribute in node.attribute:
            for graph in (*attribute.graphs, attribute.g):
                values += graph.output
    for value in values:
        value.name = names.get(value.name, value.name)


def _functions(model: ModelProto) -> Iterator[Change]:
    """Put all nodes in a local function, whose inputs have no types; constants are its nodes."""
    names = [each.name for each in (*model.graph.input, *model.graph.output)]
    names += [tensor.name for tensor in model.graph.initializer]
    if len(set(names)) == len(names) and not model.graph.sparse_initializer:
        yield "in a function", _move_to_function


def _move_to_function(made: ModelProto) -> None:
    graph = made.graph
    inputs, outputs = ([value.name for value in side] for side in (graph.input, graph.output))
    constants = [helper.make_node("Constant", [], [t.name], value=t) for t in graph.initializer]
    nodes = [*constants, *graph.node]
    made.functions.append(
        helper.make_function("variants", "Body", inputs, outputs, nodes, made.opset_import)
    )
    made.opset_import.add(domain="variants", version=1)
    for field in ("node", "initializer"):
        graph.ClearField(field)
    graph.node.append(helper.make_node("Body", inputs, outputs, domain="variants"))


def _references(model: ModelProto) -> Iterator[Change]:
    """Put all nodes in a local function, and let an attribute of one of them be its parameter."""
    for _, move in _functions(model):
        for at, node in enumerate(all_nodes(model)):
            for attribute in node.attribute:
                if not attribute.ref_attr_name and not attribute.graphs and not attribute.g.node:
                    label = f"node {at} with {attribute.name} of a function"
                    yield label, partial(_refer, move, at, attribute.name)


def _refer(move: Edit, at: int, name: str, made: ModelProto) -> None:
    node = [*all_nodes(made)][at]
    (attribute,) = [each for each in node.attribute if each.name == name]
    value = AttributeProto()
    value.CopyFrom(attribute)
    attribute.CopyFrom(AttributeProto(name=name, type=value.type, ref_attr_name=name))
    move(made)
    made.functions[-1].attribute.append(name)
    made.graph.node[0].attribute.append(value)


def _domains(model: ModelProto) -> Iterator[Change]:
    """Let each node be an operator of the same name in another domain."""
    for at in range(len([*all_nodes(model)])):
        yield f"node {at} of another domain", partial(_set_domain, at)


def _set_domain(at: int, made: ModelProto) -> None:
    [*all_nodes(made)][at].domain = "others"
    made.opset_import.add(domain="others", version=1)


# --- opsets ---------------------------------------------------------------------------------------


def _opsets(model: ModelProto) -> Iterator[Change]:
    """Let the model be of another opset."""
    own = next((entry.version for entry in model.opset_import if not entry.domain), None)
    for version in OPSETS:
        if own not in (None, version):
            yield f"opset {version}", partial(_set_opset, version)


def _set_opset(version: int, made: ModelProto) -> None:
    """Set the version; constants become the attributes that they were then."""
    imports = [*made.opset_import, *(e for each in made.functions for e in each.opset_import)]
    for entry in imports:
        if not entry.domain:
            entry.version = version
    tensors = {tensor.name: tensor for tensor in made.graph.initializer}
    for node in all_nodes(made):
        schema = _schema(made, node)
        if schema is None or len(node.input) <= len(schema.inputs):
            continue
        formals = onnx.defs.get_schema(node.op_type, node.domain).inputs
        for formal, name in [*zip(formals, node.input, strict=False)][len(schema.inputs) :]:
            declared = schema.attributes.get(formal.name)
            if name in tensors and declared is not None and 0 not in tensors[name].dims:
                value = numpy_helper.to_array(tensors[name]).ravel().tolist()
                value = value if declared.type in LISTS else value[0]
                node.attribute.append(helper.make_attribute(formal.name, value))
        del node.input[len(schema.inputs) :]


KINDS: Final[tuple[Callable[[ModelProto], Iterator[Change]], ...]] = (
    _unknown_types,
    _operands,
    _results,
    _constants,
    _contents,
    _users,
    _attributes,
    _sizes,
    _elements,
    _bodies,
    _functions,
    _references,
    _domains,
    _opsets,
)


# --- the parts of a model -------------------------------------------------------------------------


def _graphs(model: ModelProto) -> list[GraphProto]:
    found = [model.graph]
    for node in all_nodes(model):
        for attribute in node.attribute:
            found += attribute.graphs
            if attribute.HasField("g"):
                found.append(attribute.g)
    return found


def _schema(model: ModelProto, node: NodeProto) -> onnx.defs.OpSchema | None:
    versions = {entry.domain: entry.version for entry in model.opset_import}
    try:
        return onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return None


def _info(name: str, type_: TypeProto) -> ValueInfoProto:
    return ValueInfoProto(name=name, type=type_)
