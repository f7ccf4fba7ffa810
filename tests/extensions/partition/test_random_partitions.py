"""The partitions of random models, as `random_partitions.txt` has them."""

import random
from typing import Any

import pytest

from tests.extensions.partition.graphs import labels, model
from tests.extensions.partition.test_separate import contents
from tests.recorded import assert_values
from tiered import Model, Node
from tiered.extensions.partition import OperatorSupport, as_models, contraction, propose_partitions
from tiered.extensions.partition.contraction import grouped, has_cycle, order_of_groups
from tiered.extensions.partition.device_marks import device_partitions, mark_devices
from tiered.extensions.partition.partition_charts import to_dot
from tiered.extensions.partition.partition_report import report_of
from tiered.extensions.partition.partitioner import CapabilityBasedPartitioner
from tiered.graph.core.marks import DEVICE, STAGE
from tiered.support.errors import ModelError

TAKEN = {"a": ("Neg", "Add"), "b": ("Abs", "Mul"), "c": ("Sin",)}
"""The operators of each target; none takes Cos and Sub."""


def drawn(seed: int, nodes: int) -> Model:
    """Return a model of one and two operands, with Constants and Identities."""
    draw, values, lines = random.Random(seed), ["x", "z"], list[str]()
    for at in range(nodes):
        one, other, kind = draw.choice(values[-5:]), draw.choice(values), draw.randrange(9)
        if kind == 0:
            lines.append(f"k{at} = Constant<value_floats=[1.0, 2.0]>()  v{at} = Mul({one}, k{at})")
            values.append(f"k{at}")
        elif kind == 1:
            lines.append(f"v{at} = Identity({one})")
        elif kind < 5:
            lines.append(f"v{at} = {draw.choice(('Add', 'Mul', 'Sub'))}({one}, {other})")
        else:
            lines.append(f"v{at} = {draw.choice(('Neg', 'Abs', 'Sin', 'Cos'))}({one})")
        values.append(f"v{at}")
    shown = sorted({draw.choice(values[2:]), values[-1]})
    heads = ", ".join(f"float[2] {name}" for name in shown)
    return model(f"g (float[2] x, float[2] z) => ({heads}) {{ {'  '.join(lines)} }}")


def supports(targets: str, more: tuple[str, ...] = ()) -> dict[str, OperatorSupport]:
    return {name: OperatorSupport(dict.fromkeys((*TAKEN[name], *more))) for name in targets}


def proposed(seed: int, nodes: int, targets: str, **options: Any) -> None:
    """Print the partitions with what crosses their boundaries, and the rows of the report."""
    of = drawn(seed, nodes)
    parts = propose_partitions(of, supports(targets, ("Identity",)), **options)
    for part in parts:
        ends = " ".join(value.name for value in part.inputs)
        made = " ".join(value.name for value in part.outputs)
        print(f"{part.id} {part.target}: {' '.join(labels(part.nodes))}: {ends} -> {made}")
    for row in report_of(of, parts):
        counts = " ".join(f"{name}:{count}" for name, count in row.operators.items())
        print(f"  {row.name}: {row.nodes} {row.bytes_in} {row.bytes_out} {counts}")
    lines = [line.strip().replace("style=filled, ", "") for line in to_dot(of, parts).splitlines()]
    print("  ", " ".join(line for line in lines if line.endswith("];")))


def ends(seed: int, nodes: int, *operators: str) -> None:
    """Print partitions, and what is left without operators at their ends."""
    partitioner = CapabilityBasedPartitioner(
        drawn(seed, nodes), supports("a", ("Identity", "Mul"))["a"], non_compute_ops=[*operators]
    )
    parts = partitioner.propose_partitions()
    print(" | ".join(" ".join(labels(part.nodes)) for part in parts))
    left = partitioner.remove_bookend_non_compute_ops(parts)
    print(" | ".join(" ".join(labels(part.nodes)) for part in left))


def groups(seed: int, nodes: int, targets: str, fixed: str = "", **limits: int) -> None:
    """Print groups, connected and not, with some limits of their search."""
    graph = drawn(seed, nodes).main
    names: dict[str, Node] = {node.label: node for node in graph.nodes}
    kinds = {operator: name for name in targets for operator in TAKEN[name]}
    wanted = {node: kinds[node.op_type] for node in graph.nodes if node.op_type in kinds}
    whole = [[names[name] for name in each.split("+")] for each in fixed.split()]
    wanted = {node: name for node, name in wanted.items() if not any(node in g for g in whole)}
    if has_cycle(graph, whole):
        print("cycle")
        return
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(contraction, name, limit)
        for connected in (False, True):
            found = grouped(graph, wanted, connected=connected, fixed=whole)
            print(" | ".join(f"{each.target}: {' '.join(labels(each.nodes))}" for each in found))
            print("  ", order_of_groups(graph, [each.nodes for each in found]))


def separate(seed: int, nodes: int, targets: str) -> None:
    """Print the models of the parts."""
    of = drawn(seed, nodes)
    parts = propose_partitions(of, supports(targets), allows_single_node_partition=True)
    plan = as_models(of, parts)
    for part in plan.parts:
        print(f"{part.name}: {contents(part.model)}")


def devices(seed: int, nodes: int, sharding: str, pipelining: str = "", **options: Any) -> None:
    """Print the devices and the stages of all nodes, and the partitions of these."""
    of = drawn(seed, nodes)
    try:
        changed = mark_devices(
            of, dict(each.split("=") for each in sharding.split()),
            {name: int(at) for name, at in (each.split("=") for each in pipelining.split())},
            **options,
        )  # fmt: skip
        print(changed, " ".join(
            f"{node.label}:{node.metadata.get(DEVICE, '')}/{node.metadata.get(STAGE, '')}"
            for node in of.main.nodes
        ))  # fmt: skip
        for part in device_partitions(of):
            print(f"  {part.target}: {' '.join(labels(part.nodes))}")
    except ModelError as error:
        print(error)


def test_partitions_are_as_they_are_written_down() -> None:
    shown: dict[str, Any] = {
        each.__name__: each for each in (proposed, ends, groups, separate, devices)
    }
    assert_values(__file__, shown)
