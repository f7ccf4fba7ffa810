"""Provenance: where a node came from, through any number of rewrites."""

import onnx
import pytest

from tests.small import content, model, proto
from tiered import Graph, Model, PassContext, Sequential, Value, op, proto_pass, rewrite, var
from tiered.function_passes.identity.eliminate_identity import eliminate_identity

CHAIN = "g (float[2] x) => (float[2] y) { a = Relu(x) b = Relu(a) c = Relu(b) y = Neg(c) }"


@rewrite(op.Relu(op.Relu(var.x)), opt_level=0)
def fuse_relu(graph: Graph, x: Value) -> Value:
    """Relu(Relu(x)) => Relu(x)."""
    result: Value = graph.op.Relu(x)
    return result


@rewrite(op.Neg(op.Relu(var.x)), opt_level=0)
def neg_relu_to_min(graph: Graph, x: Value) -> Value:
    """Neg(Relu(x)) => Neg(Max(x, 0)), in two nodes."""
    result: Value = graph.op.Neg(graph.op.Abs(x))
    return result


def described(text: str = CHAIN, **metadata: dict[str, str]) -> Model:
    """Return a model where nodes of some names have metadata."""
    given = proto(text)
    for node in given.graph.node:
        for key, value in metadata.get(node.name, {}).items():
            node.metadata_props.add(key=key, value=value)
    return Model.from_proto(given)


def origins(view: Model, op_type: str) -> list[str]:
    (node,) = view.main.nodes_of(op_type)
    return [origin.name for origin in node.origins]


def test_a_node_of_the_file_came_from_itself() -> None:
    view = model(CHAIN)
    assert origins(view, "Neg") == ["node_y"]


def test_a_new_node_came_from_what_was_matched() -> None:
    view = model("g (float[2] x) => (float[2] y) { a = Relu(x) y = Relu(a) }")
    fuse_relu.apply(view)
    assert origins(view, "Relu") == ["node_a", "node_y"]


def test_origins_survive_several_rewrites() -> None:
    view = model(CHAIN)
    fuse_relu.apply(view)
    neg_relu_to_min.apply(view)
    assert origins(view, "Neg") == ["node_a", "node_b", "node_c", "node_y"]
    assert origins(view, "Abs") == ["node_a", "node_b", "node_c", "node_y"]


def test_origins_can_be_read_after_they_are_gone() -> None:
    view = model(CHAIN)
    fuse_relu.apply(view)
    (relu,) = view.main.nodes_of("Relu")
    assert [origin.op_type for origin in relu.origins] == ["Relu", "Relu", "Relu"]
    assert all(origin.graph is None for origin in relu.origins)


def test_what_is_undone_leaves_no_origins() -> None:
    view = model(CHAIN)
    mark = view.mark()
    fuse_relu.apply(view)
    view.undo_to(mark)
    assert [node.sources for node in view.main.nodes] == [()] * 4


def test_names_are_those_of_what_was_replaced() -> None:
    view = model(CHAIN)
    fuse_relu.apply(view)
    (relu,) = view.main.nodes_of("Relu")
    assert (relu.name, relu.output.name) == ("node_c", "c")


# --- metadata -------------------------------------------------------------------------------------


def metadata(view: Model, op_type: str) -> dict[str, str]:
    (node,) = view.main.nodes_of(op_type)
    return node.metadata


def test_metadata_of_what_was_replaced_goes_over() -> None:
    view = described(
        node_a={"module": "encoder", "line": "3"},
        node_b={"module": "encoder", "line": "4"},
        node_c={"scope": "top"},
    )
    fuse_relu.apply(view)
    assert metadata(view, "Relu") == {"module": "encoder", "line": "3; 4", "scope": "top"}


def test_metadata_that_a_rewrite_writes_itself_stands() -> None:
    @rewrite(op.Neg(var.x), opt_level=0)
    def annotated(graph: Graph, x: Value) -> Value:
        result: Value = graph.op.Abs(x)
        assert result.producer is not None
        graph.set_metadata(result.producer, {"mine": "1"})
        return result

    view = described(node_y={"module": "head"})
    annotated.apply(view)
    assert metadata(view, "Abs") == {"mine": "1"}


def test_a_long_chain_does_not_pile_up_metadata() -> None:
    steps = "".join(f"v{i + 1} = Relu(v{i}) " for i in range(100))
    view = described(
        f"g (float[2] v0) => (float[2] y) {{ {steps} y = Neg(v100) }}",
        **{f"node_v{i}": {"line": str(i)} for i in range(1, 101)},
    )
    fuse_relu.apply(view)
    assert len(metadata(view, "Relu")["line"].split("; ")) == 16


def test_what_several_nodes_would_repeat_one_says() -> None:
    @rewrite(op.Relu(op.Relu(op.Relu(var.x))), opt_level=0)
    def spelled_out(graph: Graph, x: Value) -> Value:
        result: Value = graph.op.Neg(graph.op.Exp(graph.op.Abs(x)))
        return result

    trace = "File model.py, line {}"
    view = described(CHAIN, **{f"node_{at}": {"trace": trace.format(at)} for at in "abc"})
    spelled_out.apply(view)
    a, b, c = (trace.format(at) for at in "abc")
    assert metadata(view, "Abs") == {"trace": f"{a}; {b}; {c}"}
    assert metadata(view, "Exp") == {"trace": a}


def test_fewer_nodes_do_not_say_more_than_those_they_replace() -> None:
    @rewrite(op.Relu(op.Relu(op.Relu(var.x))), opt_level=0)
    def shortened(graph: Graph, x: Value) -> Value:
        result: Value = graph.op.Exp(graph.op.Abs(x))
        return result

    view = described(CHAIN, **{f"node_{at}": {"trace": f"line {at}"} for at in "abc"})
    shortened.apply(view)
    assert metadata(view, "Abs") == {"trace": "line a; line b"}
    assert metadata(view, "Exp") == {"trace": "line a"}


def test_without_metadata_nothing_is_written() -> None:
    view = model(CHAIN)
    fuse_relu.apply(view)
    assert b"tiered" not in content(view)
    assert metadata(view, "Relu") == {}


# --- the switch -----------------------------------------------------------------------------------


def test_origins_are_written_where_the_context_asks_for_it() -> None:
    view = model(CHAIN)
    with PassContext(config={"provenance.metadata": True}):
        fuse_relu(view)
        assert metadata(view, "Relu") == {"tiered.origins": "node_a; node_b; node_c"}
        neg_relu_to_min(view)
    assert metadata(view, "Neg") == {"tiered.origins": "node_a; node_b; node_c; node_y"}
    onnx.checker.check_model(view.to_proto())


def test_what_no_pass_made_gets_no_origins() -> None:
    view = model(CHAIN)
    with PassContext(config={"provenance.metadata": True}):
        fuse_relu(view)
    assert metadata(view, "Neg") == {}


def test_writing_origins_twice_changes_nothing() -> None:
    view = model(CHAIN)
    with PassContext(config={"provenance.metadata": True}):
        fuse_relu(view)
        length = len(view.journal)
        fuse_relu(view)
    assert len(view.journal) == length


def test_many_origins_are_counted() -> None:
    steps = "".join(f"v{i + 1} = Relu(v{i}) " for i in range(20))
    view = model(f"g (float[2] v0) => (float[2] y) {{ {steps} y = Neg(v20) }}")
    with PassContext(config={"provenance.metadata": True}):
        fuse_relu(view)
    text = metadata(view, "Relu")["tiered.origins"]
    assert text.endswith("node_v16; and 4 more")


@pytest.mark.parametrize("passes", [[eliminate_identity], ["eliminate_identity", fuse_relu]])
def test_nodes_that_stay_keep_their_own(passes: list[object]) -> None:
    view = model("g (float[2] x) => (float[2] y) { i = Identity(x) a = Relu(i) y = Neg(a) }")
    Sequential(passes).apply(view)  # type: ignore[arg-type]  # a mixed list
    assert origins(view, "Relu") == ["node_a"]


def test_what_is_exchanged_as_a_whole_keeps_origins_by_name() -> None:
    @proto_pass
    def touch(given: onnx.ModelProto) -> onnx.ModelProto:
        made = onnx.ModelProto()
        made.CopyFrom(given)
        made.graph.doc_string = "touched"
        return made

    view = model(CHAIN)
    fuse_relu.apply(view)
    touch.apply(view)
    assert origins(view, "Relu") == ["node_a", "node_b", "node_c"]


@pytest.mark.parametrize(
    ("marked", "expected"), [("b", {"node_b"}), ("ab", {"node_a", "node_b"}), ("", set())]
)
def test_a_node_that_replaces_a_marked_copy_is_marked(marked: str, expected: set[str]) -> None:
    names = {f"node_{each}": {"tiered.recomputed": "1"} for each in marked}
    view = described(
        "g (float[2] x) => (float[2] y) { a = Relu(x) b = Relu(x) y = Add(a, b) }",
        node_y={"other": "text"},
        **names,
    )
    graph = view.main
    first, second, last = graph.topological_order()
    with graph.rewrite("several nodes, one by one", last):
        for node in (first, second):
            name = node.name
            made = graph.op.Abs(node.inputs[0])
            graph.replace(node, [made])
            assert made.producer is not None
            graph.rename_node(made.producer, name)
        graph.replace(last, [graph.op.Mul(*last.inputs)])
    found = {node.name: node.metadata for node in graph.nodes}
    assert set(found) == {"node_a", "node_b", "Mul"}
    assert {name for name in found if found[name].get("tiered.recomputed") == "1"} == expected


def test_a_fusion_of_marked_copies_is_marked() -> None:
    for marked, expected in (("ab", "1"), ("a", None)):
        names = {f"node_{each}": {"tiered.recomputed": "1"} for each in marked}
        view = described("g (float x) => (float y) { a = Relu(x) b = Relu(a) y = Neg(b) }", **names)
        fuse_relu.apply(view)
        (node,) = view.main.nodes_of("Relu")
        assert node.metadata.get("tiered.recomputed") == expected
