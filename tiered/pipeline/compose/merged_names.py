"""The names of the tensors and nodes of a second model, so that both models can be one."""

from __future__ import annotations

from functools import partial

import onnx

from tiered.graph import Model, Value
from tiered.graph.io.protos import nodes_of
from tiered.pipeline.compose.connections import Joints
from tiered.pipeline.compose.merged_dims import free_name
from tiered.rewriter.idioms.main_tensors import make_room
from tiered.support.errors import ModelError


def rename_tensors(first: Model, second: Model, joints: Joints, prefix: str) -> list[str]:
    """Rename the tensors of the second model: connected ones as in the first, others apart.

    Weights of equal name and content keep their name: they are one weight.

    Returns:
        The names of the tensors of the second model that the first one has already.
    """
    _join_targets(second, joints)
    kept = {value for _, value in joints.shared}
    if not prefix:
        kept |= _equal_weights(first, second)
    final = _final_names(first, second, joints, kept, prefix)
    graph, taken = second.main, _names(first) | {*final.values()}
    # By way of names that no graph has, as one may want the name of another.
    for value in final:
        graph.rename_value(value, second.names.fresh(f"merged {value.name}"))
    held = _names(second)
    for value, name in final.items():
        if name in held:
            make_room(second, name, lambda wanted: free_name(wanted, taken | _names(second)))
        graph.rename_value(value, name)
    return [value.name for value in kept] + [source.name for source, _ in joints.connected]


def _join_targets(second: Model, joints: Joints) -> None:
    """Let inputs that are the same output of the first model be one input."""
    known: dict[Value, Value] = {}
    kept = []
    for source, target in joints.connected:
        first = known.setdefault(source, target)
        if first is target:
            kept.append((source, target))
        else:
            second.main.replace_uses(target, first)
            second.main.remove_input(target)
    joints.connected[:] = kept


def _equal_weights(first: Model, second: Model) -> set[Value]:
    """Return the weights of the second model that the first one has, under the same names."""
    own = {value.name: value for value in first.main.initializers if not value.is_graph_input}
    found, outputs = set(), set(second.main.outputs)
    for value in second.main.initializers:
        other = own.get(value.name)
        if other is None or value.is_graph_input or value in outputs:
            continue
        assert value.default is not None
        assert other.default is not None
        if not value.default.is_sparse and value.default.key() == other.default.key():
            found.add(value)
    return found


def _final_names(
    first: Model, second: Model, joints: Joints, kept: set[Value], prefix: str
) -> dict[Value, str]:
    """Return the new names of the tensors that do not keep theirs.

    Inner tensors of the first model make room for outputs of the second.

    Raises:
        ModelError: an input or output of the second model has the name of a tensor of the first.
    """
    targets = {target: source for source, target in joints.connected}
    moved = [v for v in second.main.values.values() if v not in targets and v not in kept]
    outputs = {*second.main.outputs}
    shown = {v: prefix + v.name for v in moved if v.is_graph_input or v in outputs}
    own, taken = _names(first), _names(first) | {*shown.values()}
    for value, name in shown.items():
        if name in first.main.values and value in outputs and not _is_inner(first, name):
            raise ModelError(
                f"both models have a tensor {name!r}, which is an output of the second; rename it, "
                "or give a prefix"
            )
        if name in first.main.values and value.is_graph_input:
            raise ModelError(
                f"input {name!r} of the second model is a tensor of the first; connect or rename "
                "it, or give a prefix"
            )
        if name in own:
            taken |= {*make_room(first, name, partial(free_name, taken=taken))}
    wanted = dict(shown)
    for value in moved:
        if value not in shown:
            wanted[value] = free_name(prefix + value.name, taken)
            taken.add(wanted[value])
    final = {value: name for value, name in wanted.items() if value.name != name}
    return final | {target: source.name for target, source in targets.items()}


def _is_inner(model: Model, name: str) -> bool:
    value = model.main.values[name]
    return not value.is_graph_input and not value.output_of


def _names(model: Model) -> set[str]:
    """Return the names of the tensors of the main graph and its bodies."""
    graphs = (graph for graph in model.graphs() if not graph.root.is_function)
    return {name for graph in graphs for name in graph.values}


def rename_nodes(proto: onnx.ModelProto, taken: set[str], prefix: str) -> None:
    """Rename the nodes of a model whose names are taken; all of them with a prefix."""
    for node in nodes_of(proto):
        if node.name:
            node.name = free_name(prefix + node.name, taken)
            taken.add(node.name)
