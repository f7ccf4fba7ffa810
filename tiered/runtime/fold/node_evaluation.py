"""Evaluating constant nodes: many in one session, and around those that fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx

from tiered.graph.core.types import write_type
from tiered.graph.io.export import export_node
from tiered.rewriter.skip import Skip
from tiered.runtime.fold.compute_cost import is_fragile
from tiered.runtime.fold.numpy_moves import moved
from tiered.support.errors import RuntimeFailure

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

# What the oldest onnxruntime that tiered takes loads; a newer one loads it as well.
_NEWEST_IR: Final = 13
_NEWEST_OPSET: Final = 26

# What a worker may take to compute constants.
_SECONDS: Final = 20.0
_MEMORY: Final = 4 << 30

# What one session returns before it goes to disk, in bytes.
_LARGEST_SESSION: Final = 1 << 27

# Bytes from which a constant is fed to a session instead of being copied into it.
_FED: Final = 1 << 20

Array = np.ndarray[Any, Any]
OnFailure = Callable[["Value", RuntimeFailure], None]


def evaluate_in_sessions(
    wanted: Iterable[Value], sizes: Mapping[Value, int], refuse: Callable[[Value, Skip], None]
) -> Iterator[tuple[Value, Array]]:
    """Yield each value with its numbers, session by session, so that few are held at a time.

    Args:
        wanted: as for `evaluate`.
        sizes: their bytes.
        refuse: called with each value that cannot be computed, and why.
    """
    for session in _sessions(wanted, sizes):
        results = evaluate(session, lambda value, error: refuse(value, Skip("{}", error)))
        # What was yielded is given up: the next session needs the memory.
        for value in tuple(results):
            yield value, results.pop(value)


def _sessions(wanted: Iterable[Value], sizes: Mapping[Value, int]) -> Iterator[list[Value]]:
    session, held = list["Value"](), 0
    for value in wanted:
        if session and held + sizes[value] > _LARGEST_SESSION:
            yield session
            session, held = [], 0
        session.append(value)
        held += sizes[value]
    if session:
        yield session


def evaluate(wanted: Sequence[Value], on_failure: OnFailure) -> dict[Value, Array]:
    """Return the numbers of values that depend on constants alone.

    Data movement is done by numpy (`moves`). All others are computed in one session, by onnxruntime
    with its optimisations off and by the model's own opset. Where that fails the batch is halved,
    until what cannot be computed is left alone. A node with bodies, or with a kernel that trusts
    its operands, is computed in a process of its own.

    Args:
        wanted: values of one graph that depend on constants alone.
        on_failure: called with each value that cannot be computed, and why.
    """
    found = moved(wanted, ancestors(wanted)[0])
    left = [value for value in wanted if value not in found]
    return found | _computed(left, on_failure) if left else found


def _computed(wanted: Sequence[Value], on_failure: OnFailure) -> dict[Value, Array]:
    # Many runs compute nothing, and loading onnxruntime takes as long as all the rest.
    from tiered.runtime.session import run

    fragile = dict.fromkeys(v for v in wanted if any(map(is_fragile, ancestors([v])[0])))
    if not fragile:
        return _evaluate(wanted, on_failure, run)
    others = [value for value in wanted if value not in fragile]
    from tiered.runtime.worker.client import Worker

    # An odd operand may end, block or fill the process that runs them, so it is not this one.
    with Worker(seconds=_SECONDS, memory=_MEMORY) as worker:
        apart = _evaluate(list(fragile), on_failure, worker.run)
    return apart | _evaluate(others, on_failure, run)


def _evaluate(
    wanted: Sequence[Value],
    on_failure: OnFailure,
    run: Callable[[onnx.ModelProto, dict[str, Any]], dict[str, Any]],
) -> dict[Value, Array]:
    if not wanted:
        return {}
    try:
        outputs = run(*_model_of(wanted))
    except RuntimeFailure as error:
        if len(wanted) == 1:
            on_failure(wanted[0], error)
            return {}
        middle = len(wanted) // 2
        halves = (wanted[:middle], wanted[middle:])
        first, second = (_evaluate(half, on_failure, run) for half in halves)
        return first | second
    return {value: np.asarray(outputs[value.name]) for value in wanted}


def _model_of(wanted: Sequence[Value]) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Return a model that computes the values, and its feeds: the large constants.

    They are inputs because a session copies its initializers, and reads its inputs where they are:
    on disk, for most of them.
    """
    graph = wanted[0].owner
    nodes, constants = ancestors(wanted)
    proto = onnx.ModelProto(ir_version=min(max(graph.model.ir_version, 4), _NEWEST_IR))
    newest = max((node.version for node in nodes if not node.domain), default=0)
    for domain, version in graph.root.opset_imports.items():
        # An operator that has not changed since computes the same at an older opset.
        latest = max(newest, _NEWEST_OPSET) if domain == "" else version
        proto.opset_import.add(domain=domain, version=min(version, latest))
    proto.graph.name = "constants"
    for node in nodes:
        proto.graph.node.add().CopyFrom(export_node(node) if node.bodies else node.proto)
        # Names have no use here, and some files have two nodes of one name.
        proto.graph.node[-1].ClearField("name")
    feeds: dict[str, Array] = {}
    for value in constants:
        tensor = value.tensor
        assert tensor is not None
        if tensor.nbytes >= _FED:
            proto.graph.input.add(name=value.name, type=write_type(value.type))
            feeds[value.name] = tensor.numpy()
        elif tensor.is_on_disk:
            stored = onnx.numpy_helper.from_array(tensor.numpy(), value.name)
            proto.graph.initializer.append(stored)
        else:
            proto.graph.initializer.append(tensor.to_proto(value.name))
    for value in wanted:
        proto.graph.output.add(name=value.name, type=write_type(value.type))
    return proto, feeds


def ancestors(wanted: Iterable[Value]) -> tuple[list[Node], list[Value]]:
    """Return the nodes that compute values, producers first, and the constants which they read."""
    nodes: dict[Node, None] = {}
    constants: dict[Value, None] = {}
    stack: list[tuple[Node, bool]] = [
        (value.producer, False) for value in reversed(list(wanted)) if value.producer is not None
    ]
    while stack:
        node, is_ready = stack.pop()
        if node in nodes:
            continue
        if is_ready:
            nodes[node] = None
            continue
        stack.append((node, True))
        for value in reversed(node.reads):
            if value.tensor is not None:
                constants[value] = None
            elif value.producer is not None:
                stack.append((value.producer, False))
    return list(nodes), list(constants)


def freed_bytes(value: Value, reach: int = 64) -> int:
    """Return the bytes of the nodes and constants that become dead with a value.

    Args:
        value: a value that a node produces.
        reach: how many nodes are looked at.
    """
    reads: Counter[Value] = Counter({value: value.n_users})
    producer, freed = value.producer, 0
    stack = [producer] if producer is not None and _is_done_with(producer, value, reads) else []
    while stack and reach:
        node, reach = stack.pop(), reach - 1
        freed += node.proto.ByteSize()
        for operand in node.inputs:
            if operand is None:
                continue
            reads[operand] += 1
            if reads[operand] < operand.n_users or operand.output_of or operand.pins:
                continue
            if operand.tensor is not None:
                freed += operand.tensor.nbytes
            elif operand.producer is not None and _is_done_with(operand.producer, operand, reads):
                stack.append(operand.producer)
    return freed


def _is_done_with(node: Node, value: Value, reads: Counter[Value]) -> bool:
    """Return whether `reads` has all uses of the other outputs of a node."""
    return all(
        other is None
        or other is value
        or (reads[other] == other.n_users and not other.output_of and not other.pins)
        for other in node.outputs
    )
