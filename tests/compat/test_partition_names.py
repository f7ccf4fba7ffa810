"""The names of ExecuTorch and TVM for partitions and regions."""

import operator
from typing import Any

import pytest

from tiered import Model, UsageError
from tiered.compat import executorch, tvm
from tiered.support.errors import BackendNotFoundError
from tiered.testing import parse

TEXT = "(float[2] x) => (float[2] y) { a = Neg(x) b = Add(a, x) c = Sin(b) y = Mul(c, c) }"


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


def test_the_flow_of_tvm() -> None:
    table = [("onnxruntime_cpu.neg_add", "(x, z) => (y) { n = Neg(x)  y = Add(n, z) }")]
    flow = tvm.transform.Sequential(
        [
            tvm.transform.MergeComposite(table),
            tvm.transform.AnnotateTarget("llvm"),
            tvm.transform.MergeCompilerRegions(),
            tvm.transform.PartitionGraph(),
        ]
    )
    made = flow(parse(TEXT))
    assert {node.domain for node in made.graph.node} <= {"tiered.onnxruntime_cpu"}
    assert {f.domain for f in made.functions} == {"tiered.composite", "tiered.onnxruntime_cpu"}
    assert tvm.AnnotateTarget(["llvm"]).name == "annotate_target"
    with pytest.raises(UsageError, match="weights stay inputs"):
        tvm.PartitionGraph(bind_constants=True)


def test_devices_of_tvm() -> None:
    made = tvm.RewriteAnnotatedOps("cpu")(parse(TEXT))
    assert {e.value for node in made.graph.node for e in node.metadata_props} == {"cpu"}
    assert tvm.RewriteAnnotatedOps(1)(parse(TEXT)) == made
    assert tvm.transform.RewriteAnnotatedOps(fallback_device=2).options["fallback_device"] == "cuda"
    with pytest.raises(UsageError, match="there is no device type 99: 1 is cpu"):
        tvm.RewriteAnnotatedOps(99)


def test_targets_have_the_name_of_the_documentation() -> None:
    made = tvm.AnnotateTarget(target=["llvm", "cuda"])
    assert made == tvm.AnnotateTarget(["llvm", "cuda"])
    with pytest.raises(BackendNotFoundError, match="dnnl"):
        tvm.AnnotateTarget(target=["dnnl", "xyzlib"])
    with pytest.raises(UsageError, match="takes the targets once"):
        tvm.AnnotateTarget(["llvm"], target=["cuda"])


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
