"""Supports of operators and partitions by the names of torch.fx."""

import operator
from typing import Any

import pytest

from tests.compat.test_executorch_reference import TEXT as REFERENCE, Function, Overload
from tests.recorded import assert_values
from tiered import Model, UsageError
from tiered.compat import executorch
from tiered.compat.executorch import partitioning
from tiered.compat.executorch.partitioning import (
    OperatorSupportBase,
    any_chain,
    chain,
    create_op_support,
    generate_pattern_op_partitions,
    get_source_partitions,
)
from tiered.extensions.partition import create_op_support as create
from tiered.testing import parse

TEXT = "(float[2] x) => (float[2] y) { a = Neg(x) b = Add(a, x) c = Sin(b) y = Mul(c, c) }"
PAIR = "(float[2] x) => (float[2] y) { h = Neg(x) y = Neg(h) }"


def test_the_partitioner_of_executorch() -> None:
    class AddMul(executorch.OperatorSupportBase):
        def is_node_supported(self, submodules: object, node: object) -> bool:
            return getattr(node, "op_type", "") in ("Add", "Mul", "Neg")

    of = Model.from_proto(parse(TEXT))
    partitioner = executorch.CapabilityBasedPartitioner(of, AddMul())
    partitions = partitioner.propose_partitions()
    assert [len(partition) for partition in partitions] == [2]
    graph = partitioner.fuse_partition(partitions)
    assert [node.op_type for node in graph.topological_order()] == ["fused_0", "Sin", "Mul"]


def test_partitions_of_listed_nodes() -> None:
    of = Model.from_proto(parse(TEXT))
    first, second, third, last = of.main.topological_order()
    generate = executorch.generate_partitions_from_list_of_nodes
    found = generate(of, [[first], [second]])
    assert [set(partition.nodes) for partition in found] == [{first, second}]

    class Mul(executorch.OperatorSupportBase):
        def is_node_supported(self, submodules: object, node: object) -> bool:
            return getattr(node, "target", "") == "Mul"

    found = generate(of.main, [[first]], op_support=Mul())
    assert [set(partition.nodes) for partition in found] == [{first}, {last}]
    graph_module = executorch.GraphModule.of(of)
    nodes = [node for node in graph_module.graph.nodes if node.target == "Sin"]
    (only,) = generate(graph_module.graph, pattern_list=[nodes])
    assert list(only.nodes) == [third]
    assert generate(of, []) == []


def test_what_lists_no_nodes_is_an_error() -> None:
    generate = executorch.generate_partitions_from_list_of_nodes
    of, other = (Model.from_proto(parse(TEXT)) for _ in range(2))
    with pytest.raises(UsageError, match="needs a pattern_list, or an op_support, or both"):
        generate(of)
    with pytest.raises(UsageError, match="one support, not one for each target"):
        generate(of, op_support={"cpu": executorch.create_op_support(lambda graph, node: True)})
    for wrong in ("Neg", other.main.nodes[0]):
        with pytest.raises(UsageError, match="is no operator of graph"):
            generate(of, [[wrong]])  # type: ignore[list-item]  # a name is what people write


def test_a_support_gets_nodes_of_torch_fx() -> None:
    """As the partitioner's documentation writes it: `node.op` and `node.target`."""

    class AddMul(executorch.OperatorSupportBase):
        def is_node_supported(self, graph: object, node: Any) -> bool:
            return node.op == "call_function" and node.target in (operator.add, operator.mul)

    partitioner = executorch.CapabilityBasedPartitioner(
        parse(TEXT), AddMul(), allows_single_node_partition=True
    )
    found = [[node.op_type for node in each.nodes] for each in partitioner.propose_partitions()]
    assert sorted(found) == [["Add"], ["Mul"]]


def test_a_partitioner_takes_a_graph_module() -> None:
    proto = parse("(float[2] x) => (float[2] y) { a = Neg(x) b = Abs(a) y = Sin(b) }")
    support = executorch.create_op_support(lambda graph, node: node.op_type != "Sin")
    partitioner = executorch.CapabilityBasedPartitioner(
        graph_module=proto, operator_support=support, allows_single_node_partition=True
    )
    assert [len(partition) for partition in partitioner.propose_partitions()] == [2]


def test_the_graph_of_a_module_is_searched_and_partitioned() -> None:
    """The examples of the reference give `graph_module.graph`."""
    gm = executorch.GraphModule.of(Model.from_proto(parse(PAIR)))
    matches = executorch.SubgraphMatcher("(x) => (y) { y = Neg(x) }").match(gm.graph)
    assert len(matches) == 2
    support = executorch.create_op_support(lambda graph, node: True)
    (found,) = executorch.CapabilityBasedPartitioner(gm.graph, support).propose_partitions()
    assert len(found) == 2


def test_source_partitions_are_filtered() -> None:
    view = Model.from_proto(parse(PAIR))
    for node, name in zip(view.main.nodes, ("layer1/a", "layer2/b"), strict=True):
        view.main.rename_node(node, name)
    wanted = ["layer1", "layer2"]
    assert list(executorch.get_source_partitions(view, wanted)) == wanted
    assert list(executorch.get_source_partitions(
        graph=view, wanted_sources=wanted, filter_fn=lambda node: node.name == "layer2/b"
    )) == ["layer2"]  # fmt: skip


def test_supports_are_chained_over_nodes_of_torch_fx() -> None:
    class AddSupport(executorch.OperatorSupportBase):
        def is_node_supported(self, submodules: Any, node: Any) -> bool:
            return node.op == "call_function" and node.target in [Overload("add.Tensor")]

    relu = executorch.create_op_support(
        lambda submodules, node: node.op == "call_function" and node.target == Function("relu")
    )
    proto = parse(REFERENCE)
    for support, expected in (
        (executorch.any_chain(AddSupport(), relu), [["Add", "Relu"]]),
        (executorch.any_chain(relu), [["Relu"]]),
        (executorch.chain(AddSupport(), relu), []),
        (executorch.chain(executorch.any_chain(AddSupport(), relu), AddSupport()), [["Add"]]),
        ({"npu": AddSupport()}, [["Add"]]),
    ):
        partitioner = executorch.CapabilityBasedPartitioner(
            proto, support, allows_single_node_partition=True
        )
        found = partitioner.propose_partitions()
        assert [sorted(node.op_type for node in each.nodes) for each in found] == expected
    found = executorch.generate_pattern_op_partitions(
        proto, patterns=["(x) => (y) { y = Neg(x) }"], op_support=AddSupport()
    )
    assert [[node.op_type for node in each.nodes] for each in found] == [["Add"]]


def partitions(support: Any, text: str = TEXT) -> list[list[str]]:
    """Return the operators of the partitions of a support, single nodes too."""
    made = executorch.CapabilityBasedPartitioner(
        parse(text), support, allows_single_node_partition=True
    )
    return [sorted(node.op_type for node in each.nodes) for each in made.propose_partitions()]


def of_types(*types: str) -> Any:
    return create_op_support(lambda graph, node: node.target in types)


def test_chains_without_supports_take_all_or_none() -> None:
    assert partitions(chain()) == [["Add", "Mul", "Neg", "Sin"]]
    assert partitions(any_chain()) == []


def test_chains_take_what_all_or_one_of_them_take() -> None:
    two = of_types("Neg", "Add"), of_types("Add", "Sin")
    assert partitions(chain(*two)) == [["Add"]]
    assert partitions(any_chain(*two)) == [["Add", "Neg", "Sin"]]
    assert partitions(chain(any_chain(*two), of_types("Sin", "Mul"))) == [["Sin"]]


def test_a_support_has_a_table_unless_it_says_otherwise() -> None:
    assert partitions(OperatorSupportBase({"Neg": None, "Add": None})) == [["Add", "Neg"]]
    assert partitions(OperatorSupportBase()) == []

    class But(OperatorSupportBase):
        def is_node_supported(self, graph: Any, node: Any) -> bool:
            return node.name != "a" and super().is_node_supported(graph, node)

    assert partitions(But({"Neg": None, "Add": None})) == [["Add"]]


def test_a_support_of_tiered_gets_the_nodes_of_the_view() -> None:
    seen: list[str] = []

    def takes(graph: Any, node: Any) -> bool:
        seen.append(type(node).__name__)
        return bool(node.op_type == "Sin")

    assert partitions(create(takes)) == [["Sin"]]
    assert set(seen) == {"Node"}


def test_partitions_of_sources_are_kept_only_where_all_nodes_pass() -> None:
    view = Model.from_proto(parse(TEXT))
    for node, name in zip(view.main.nodes, ("one/a", "one/b", "two/c", "two/d"), strict=True):
        view.main.rename_node(node, name)
    wanted = ["one", "two"]
    found = get_source_partitions(view.main, wanted)
    assert {name: len(each[0].nodes) for name, each in found.items()} == {"one": 2, "two": 2}
    assert list(get_source_partitions(view, wanted, lambda node: node.op_type != "Neg")) == ["two"]
    assert get_source_partitions(view, wanted, lambda node: node.op_type == "Neg") == {}


def test_patterns_or_a_support_are_needed() -> None:
    with pytest.raises(UsageError):
        generate_pattern_op_partitions(parse(TEXT))
    found = generate_pattern_op_partitions(parse(TEXT), ["(x) => (y) { y = Sin(x) }"])
    assert [[node.op_type for node in each.nodes] for each in found] == [["Sin"]]
    found = generate_pattern_op_partitions(parse(TEXT), None, of_types("Mul"))
    assert [[node.op_type for node in each.nodes] for each in found] == [["Mul"]]


def test_partitions_are_recorded() -> None:
    of = Model.from_proto(parse(TEXT))

    class Named(OperatorSupportBase):
        def is_node_supported(self, graph: Any, node: Any) -> bool:
            return node.op == "call_function" and node.target in ("Neg", "Add", "Mul")

    def shown(partitions: Any) -> object:
        if isinstance(partitions, dict):
            return {key: shown(each) for key, each in partitions.items()}
        return [sorted(node.op_type for node in each.nodes) for each in partitions]

    def proposed(support: Any, *options: Any, **named: Any) -> object:
        made = executorch.CapabilityBasedPartitioner(of, support, *options, **named)
        return shown(made.propose_partitions())

    names = {
        **vars(partitioning), "of": of, "shown": shown, "proposed": proposed, "Named": Named(),
        "nodes": of.main.nodes, "all_of": create_op_support(lambda graph, node: True),
        "sin": create_op_support(lambda graph, node: node.target == "Sin"),
        "own": create(lambda graph, node: node.op_type != "Sin"),
        "pattern": lambda x: x, "PAIR": parse(PAIR), "fx": executorch.GraphModule.of(of).graph,
    }  # fmt: skip
    assert_values(__file__, names)
