"""Partitions: convex together, maximal, deterministic; and the rules for small ones."""

import networkx as nx
import pytest
from hypothesis import given, settings, strategies as st

from tests.extensions.partition.graphs import (
    TAKEN,
    assert_same_outputs,
    is_acyclic,
    labels,
    mergeable,
    model,
    random_models,
)
from tiered import Model, ModelError, UsageError, get_pass
from tiered.extensions.partition import (
    CapabilityBasedPartitioner,
    OperatorSupport,
    fuse_partitions,
    generate_pattern_op_partitions,
    propose_partitions,
)


def takes(*operators: str) -> OperatorSupport:
    return OperatorSupport(dict.fromkeys(operators))


# --- brute force ----------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(random_models(), st.booleans())
def test_partitions_are_acyclic_and_maximal(of: Model, connected: bool) -> None:
    found = propose_partitions(
        of,
        takes(*TAKEN["a"], "If"),
        allows_single_node_partition=True,
        skip_horizontal_fusion=connected,
    )
    groups = [part.nodes for part in found]
    assert is_acyclic(of.main, groups)
    assert mergeable(of.main, groups, adjacent=connected) == []
    if connected:
        assert all(nx.is_weakly_connected(of.main.dag.subgraph(group)) for group in groups)


@settings(max_examples=35, deadline=None)
@given(random_models(largest=12, targets="ab-"), st.booleans())
def test_partitions_of_several_targets_form_no_cycle(of: Model, connected: bool) -> None:
    support = {name: takes(*operators, "If") for name, operators in TAKEN.items()}
    found = propose_partitions(
        of, support, allows_single_node_partition=True, skip_horizontal_fusion=connected
    )
    groups = [part.nodes for part in found]
    assert is_acyclic(of.main, groups)
    for target in TAKEN:
        own = [part.nodes for part in found if part.target == target]
        others = [part.nodes for part in found if part.target != target]
        pairs = mergeable(of.main, [*own, *others], adjacent=connected)
        assert [pair for pair in pairs if max(pair) < len(own)] == []


@settings(max_examples=35, deadline=None)
@given(random_models(largest=14, targets="ab-"))
def test_the_order_of_partitions_has_no_back_edges(of: Model) -> None:
    found = propose_partitions(of, {"a": takes("Neg", "Add"), "b": takes("Abs", "Mul")})
    place = {node: part.id for part in found for node in part.nodes}
    reached = {node: place.get(node, -1) for node in of.main.nodes}
    for node in of.main.topological_order():
        before = max((reached[source] for source in node.predecessors), default=-1)
        assert node not in place or before <= place[node]
        reached[node] = max(before, reached[node])


# --- convexity ------------------------------------------------------------------------------------

DIAMOND = "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Sin(a)  y = Add(a, b) }"


def test_a_path_that_leaves_and_returns_separates() -> None:
    of = model(DIAMOND)
    found = propose_partitions(of, takes("Neg", "Add"), allows_single_node_partition=True)
    assert [labels(part.nodes) for part in found] == [["a"], ["y"]]


def test_a_capture_of_a_body_is_a_path_too() -> None:
    of = model(
        "g (float[2] x, bool c) => (float[2] y) { a = Neg(x) "
        "b = If <then_branch = t () => (float[2] p) { p = Sin(a) }, "
        "else_branch = e () => (float[2] q) { q = Sin(x) }> (c)  y = Neg(b) }"
    )
    found = propose_partitions(of, takes("Neg"), allows_single_node_partition=True)
    assert [labels(part.nodes) for part in found] == [["a"], ["y"]]


def test_two_targets_that_feed_each_other_form_no_cycle() -> None:
    of = model(
        "g (float[2] x) => (float[2] p, float[2] q) "
        "{ a = Neg(x)  b = Abs(x)  p = Abs(a)  q = Neg(b) }"
    )
    found = propose_partitions(
        of, {"a": takes("Neg"), "b": takes("Abs")}, allows_single_node_partition=True
    )
    assert [(part.target, labels(part.nodes)) for part in found] == [
        ("b", ["b"]), ("a", ["a", "q"]), ("b", ["p"]),
    ]  # fmt: skip


def test_an_if_is_taken_whole_or_not_at_all() -> None:
    of = model(
        "g (float[2] x, bool c) => (float[2] y) { a = Neg(x) "
        "b = If <then_branch = t () => (float[2] p) { p = Sin(a) }, "
        "else_branch = e () => (float[2] q) { q = Neg(x) }> (c)  y = Neg(b) }"
    )
    refused = propose_partitions(of, takes("Neg", "If"), allows_single_node_partition=True)
    assert [labels(part.nodes) for part in refused] == [["a"], ["y"]]
    taken = propose_partitions(of, takes("Neg", "If", "Sin"))
    assert [labels(part.nodes) for part in taken] == [["a", "b", "y"]]


# --- rules ----------------------------------------------------------------------------------------

PARALLEL = (
    "g (float[2] x) => (float[2] p, float[2] q) { a = Neg(x)  p = Neg(a)  b = Neg(x)  q = Neg(b) }"
)


def test_horizontal_fusion_can_be_switched_off() -> None:
    of = model(PARALLEL)
    assert len(propose_partitions(of, takes("Neg"))) == 1
    found = propose_partitions(of, takes("Neg"), skip_horizontal_fusion=True)
    assert [labels(part.nodes) for part in found] == [["a", "p"], ["b", "q"]]


def test_a_single_compute_node_is_dropped_unless_allowed() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  b = Sin(a)  y = Identity(b) }")
    support = takes("Neg", "Identity")
    assert CapabilityBasedPartitioner(of, support).propose_partitions() == []
    (kept,) = CapabilityBasedPartitioner(of, support, True).propose_partitions()
    assert labels(kept.nodes) == ["a"]  # an Identity alone computes nothing
    named = CapabilityBasedPartitioner(of, support, allowed_single_node_partition_ops=["Neg"])
    assert [labels(part.nodes) for part in named.propose_partitions()] == [["a"]]


def test_non_compute_operators_at_the_ends_can_be_removed() -> None:
    of = model(
        "g (float[2] x) => (float[2] y) "
        "{ i = Identity(x)  a = Neg(i)  m = Identity(a)  b = Neg(m)  y = Cast<to=1>(b) }"
    )
    partitioner = CapabilityBasedPartitioner(
        of, takes("Neg", "Identity", "Cast"), non_compute_ops=["Cast"]
    )
    (whole,) = partitioner.propose_partitions()
    assert whole.size() == len(whole) == 5
    (found,) = partitioner.remove_bookend_non_compute_ops([whole])
    assert labels(found.nodes) == ["a", "m", "b"]


def test_a_constant_belongs_to_the_partition_that_alone_reads_it() -> None:
    of = model(
        "g (float[2] x) => (float[2] y, float[2] z) { k = Constant<value_float=2.0>() "
        "s = Constant<value_float=3.0>()  a = Mul(x, k)  b = Mul(a, s)  z = Sin(b)  y = Sub(z, s) }"
    )
    (part,) = propose_partitions(of, takes("Mul"))
    assert labels(part.nodes) == ["k", "a", "b"]
    assert [value.name for value in part.inputs] == ["x", "s"]
    assert [value.name for value in part.boundary.variables] == ["x"]
    assert [value.name for value in part.outputs] == ["b"]


@pytest.mark.parametrize("key", ["tiered.device", "tiered.stage"])
def test_partitions_never_cross_marks_of_devices(key: str) -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  c = Neg(b)  y = Neg(c) }")
    for node in of.main.nodes[2:]:
        of.main.set_metadata(node, {key: "1"})
    found = propose_partitions(of, {"npu": takes("Neg")})
    assert [(p.target, labels(p.nodes)) for p in found] == [
        ("npu", ["a", "b"]), ("npu", ["c", "y"]),
    ]  # fmt: skip
    calls = fuse_partitions(found)
    assert [call.metadata for call in calls] == [{}, {key: "1"}] or key == "tiered.stage"


def test_the_same_model_has_the_same_partitions() -> None:
    text = PARALLEL.replace("Neg(b)", "Sin(b)")
    first, second = (
        [labels(p.nodes) for p in propose_partitions(model(text), takes("Neg"))] for _ in range(2)
    )
    assert first == second == [["a", "p", "b"]]


def test_a_partitioner_needs_a_view() -> None:
    with pytest.raises(UsageError, match=r"Model\.from_proto"):
        CapabilityBasedPartitioner(model(DIAMOND).to_proto(), takes("Neg"))  # type: ignore[arg-type]  # on purpose


def test_pattern_partitions_are_the_union_of_patterns_and_support() -> None:
    of = model(DIAMOND)
    text = "(p, q) => (r) { s = Sin(q)  r = Add(p, s) }"
    (both,) = generate_pattern_op_partitions(of, [text], takes("Neg"))
    assert labels(both.nodes) == ["a", "b", "y"]
    (one,) = generate_pattern_op_partitions(of.main, op_support=takes("Neg"))
    assert labels(one.nodes) == ["a"]
    with pytest.raises(UsageError, match="needs patterns"):
        generate_pattern_op_partitions(of)


def test_literals_may_be_ignored() -> None:
    of = model("g (float[2] x) => (float[2] y) { y = LeakyRelu<alpha=0.3>(x) }")
    text = "(p) => (q) { q = LeakyRelu<alpha=0.1>(p) }"
    assert generate_pattern_op_partitions(of, [text]) == []
    assert len(generate_pattern_op_partitions(of, [text], ignore_literals=True)) == 1


# --- fusing ---------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(random_models(largest=8, targets="ab-"))
def test_fusing_then_inlining_gives_the_same_model(of: Model) -> None:
    before, source = of.main.structural_hash(), of.to_proto()
    fuse_partitions(propose_partitions(of, takes("Neg", "Add", "Abs", "If")))
    of.check_view()
    of.check()
    assert_same_outputs(source, of.to_proto())
    get_pass("inline", domains=("tiered.partition",)).apply(of)
    of.check_view()
    assert not any(node.domain for node in of.main.nodes)
    assert of.main.structural_hash() == before


def test_partitions_that_overlap_or_form_a_cycle_are_refused() -> None:
    of = model(DIAMOND)
    a, b, y = of.main.nodes
    with pytest.raises(ModelError, match="'a' is in two partitions"):
        fuse_partitions([[a, b], [a, y]])
    with pytest.raises(ModelError, match="form a cycle"):
        fuse_partitions([[a, y]])
    with pytest.raises(ModelError, match="no nodes"):
        fuse_partitions([[]])
    assert labels(of.main.nodes) == ["a", "b", "y"]
    assert fuse_partitions([]) == []


def test_the_partitioner_returns_the_graph_with_calls() -> None:
    of = model(PARALLEL)
    graph = CapabilityBasedPartitioner(of, takes("Neg")).partition_and_fuse()
    assert graph is of.main
    assert [(node.domain, node.op_type) for node in graph.nodes] == [
        ("tiered.partition", "fused_0")
    ]


def test_which_constants_are_inside_and_what_the_ends_are() -> None:
    text = """g (float[2] x) => (float[2] y, OUT) { k = Constant<value_float=2.0>()
        a = Mul(x, k)  b = Mul(a, k)  z = Sin(b)  y = Sub(z, x) }"""
    for output, operators, note, whole, inner in (
        ("float[2] z", ["Mul"], "", "k a b", "a b"),
        ("float[2] z, float k", ["Mul"], "", "a b", "a b"),
        ("float[2] z", ["Mul"], "k", "a b", "a b"),
        ("float[2] z", ["Mul", "Constant"], "", "k a b", "a b"),
    ):
        proto = model(text.replace("OUT", output)).to_proto()
        for name in note:
            annotation = proto.graph.quantization_annotation.add(tensor_name="x")
            annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=name)
        partitioner = CapabilityBasedPartitioner(Model.from_proto(proto), takes(*operators))
        (part,) = partitioner.propose_partitions()
        assert " ".join(labels(part.nodes)) == whole, (output, operators, note)
        (part,) = partitioner.remove_bookend_non_compute_ops([part])
        assert " ".join(labels(part.nodes)) == inner, (output, operators, note)
        found = [value.name for value in part.outputs]
        assert found == ["b"], (output, operators, note)


def test_a_value_that_an_annotation_names_is_an_output() -> None:
    proto = model(
        "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  y = Sin(b) }"
    ).to_proto()
    annotation = proto.graph.quantization_annotation.add(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="a")
    (part,) = propose_partitions(Model.from_proto(proto), takes("Neg"))
    assert [value.name for value in part.outputs] == ["a", "b"]
