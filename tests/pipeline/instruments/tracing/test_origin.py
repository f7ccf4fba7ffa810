"""Where a node came from, by the rewrites of a trace."""

from typing import Any

from tests.small import drop_neg, fuse_relu, keep_abs, model
from tiered import (
    Graph,
    PassContext,
    Sequential,
    Value,
    function_pass,
    op,
    rewrite,
    var,
)
from tiered.pipeline.instruments import Trace
from tiered.pipeline.instruments.tracing.changes import Change, NodeState
from tiered.pipeline.instruments.tracing.events import Rewrite
from tiered.pipeline.instruments.tracing.origin import Origin, origin_of

PIPELINE = Sequential([fuse_relu, drop_neg, keep_abs], name="two")


def traced(pass_: Any = PIPELINE, **settings: Any) -> Trace:
    trace = Trace()
    with PassContext(instruments=[trace], **settings):
        pass_(model())
    return trace


@rewrite(op.Relu(var.x), opt_level=0)
def relu_to_clip(graph: Graph, x: Value) -> Value:
    """Relu(x) => Max(Neg(Neg(x)), 0), of no meaning."""
    return graph.op.Abs(graph.op.Neg(x))


def test_where_a_node_came_from() -> None:
    given, trace = model(), Trace()
    with PassContext(instruments=[trace]):
        Sequential([fuse_relu, relu_to_clip, drop_neg], opt_level=0)(given)
    for asked in ("node_b", given.main.nodes_of("Abs")[1]):
        origin = trace.origin(asked)
        assert (origin.op_type, origin.label) == ("Abs", "node_b")
        assert origin.roots() == ["node_a", "node_b"]
        assert [r.pass_name for r in origin.rewrites()] == ["fuse_relu", "relu_to_clip"]
    assert str(trace.origin("node_b")).splitlines() == [
        "Abs 'node_b': made by relu_to_clip, #2 op.Relu(var.x) at 'node_b'",
        "  Relu 'node_b': made by fuse_relu, #1 op.Relu(op.Relu(var.x)) at 'node_b'",
        "    Relu 'node_a': of the file",
        "    Relu 'node_b': of the file",
    ]
    assert str(trace.origin("node_y")) == "'node_y': of the file"
    gone = trace.origin("node_a")
    assert gone.removed_by is trace.changes("fuse_relu")[0]
    assert str(gone) == (
        "Relu 'node_a': of the file; removed by fuse_relu, #1 op.Relu(op.Relu(var.x)) at 'node_b'"
    )


def test_where_a_node_came_from_in_a_pass_that_numbers_nothing() -> None:
    @function_pass(opt_level=0)
    def all_at_once(graph: Graph, ctx: PassContext) -> None:
        for node in graph.nodes_of("Relu"):
            graph.replace(node, [graph.op.Abs(node.inputs[0])], since=graph.model.peek_serial() - 2)

    given, trace = model(), Trace()
    with PassContext(instruments=[trace]):
        all_at_once(given)
    first = next(node for node in given.main.nodes if node.output.name == "a")
    assert trace.origin(first).roots() == ["node_a"]


def test_a_node_with_another_operator_is_of_the_one_before() -> None:
    @function_pass(opt_level=0)
    def change_operator(graph: Graph, ctx: PassContext) -> None:
        for node in list(graph.nodes_of("Relu")):
            graph.set_operator(node, "Exp" if node.label == "node_a" else "Neg")

    given, trace = model(), Trace()
    with PassContext(instruments=[trace]):
        change_operator(given)
    line = "#1 change_operator of 'node_a', 'node_b'"
    assert str(trace.changes("change_operator")[0]) == line
    first = next(iter(given.main.nodes_of("Exp")))
    for asked in ("node_a", first):
        assert str(trace.origin(asked)).splitlines() == [
            f"Exp 'node_a': made by change_operator, {line}",
            "  Relu 'node_a': of the file",
        ]


def state(number: int, name: str, op_type: str = "Relu") -> NodeState:
    return NodeState(number, op_type, name, ("x",), (f"{name}_out",))


def made(
    number: int, *changes: tuple[NodeState | None, NodeState | None], anchor: str = ""
) -> Rewrite:
    both = tuple(Change(*each) for each in changes)
    return Rewrite(number, f"pass{number}", "law", "g", anchor, both, (), (), 0.0)


def test_a_node_that_no_rewrite_made_is_of_the_file() -> None:
    origin = origin_of("a", [])
    assert (origin, str(origin)) == (Origin("a", ""), "'a': of the file")
    assert (origin.roots(), origin.rewrites()) == (["a"], [])
    changed = made(1, (state(1, "a"), state(1, "a")))
    assert str(origin_of("a", [changed])) == "Relu 'a': of the file"


def test_a_node_that_was_made_of_nothing_has_no_roots() -> None:
    origin = origin_of("n", [made(1, (None, state(1, "n")))])
    assert origin.roots() == []
    assert [rewrite.number for rewrite in origin.rewrites()] == [1]


def test_a_new_node_is_of_those_that_went_or_else_of_the_changed_ones() -> None:
    a, b, n = state(1, "a"), state(2, "b"), state(3, "n")
    gone = made(1, (a, None), (b, b._replace(inputs=("y",))), (None, n), anchor="b")
    assert origin_of("n", [gone]).roots() == ["a"]
    changed = made(1, (b, b._replace(inputs=("y",))), (None, n), anchor="b")
    assert origin_of("n", [changed]).roots() == ["b"]


def test_in_a_whole_pass_a_node_is_of_what_computed_its_tensors() -> None:
    a, b = state(1, "a"), state(2, "b")
    n = state(3, "n")._replace(outputs=b.outputs)
    whole = made(1, (a, None), (b, None), (None, n))
    assert origin_of("n", [whole]).roots() == ["b"]
    other = made(1, (a, None), (b, None), (None, state(3, "n")))
    assert origin_of("n", [other]).roots() == ["a", "b"]


def test_the_last_rewrite_that_made_a_node_counts_and_only_older_ones_made_its_sources() -> None:
    a = state(1, "a")
    first = made(1, (a, a._replace(op_type="Exp")))
    second = made(2, (a._replace(op_type="Exp"), a._replace(op_type="Neg")))
    origin = origin_of("a", [first, second])
    assert (origin.op_type, origin.rewrite) == ("Neg", second)
    (source,) = origin.sources
    assert (source.op_type, source.rewrite) == ("Exp", first)
    assert source.sources == (Origin("a", "Relu"),)


def test_a_name_that_two_nodes_had_is_that_of_the_last_one() -> None:
    first = made(1, (state(1, "a"), None), (None, state(2, "n", "Exp")))
    second = made(2, (state(2, "n", "Exp"), None), (None, state(3, "n", "Neg")))
    assert origin_of("n", [first, second]).op_type == "Neg"
    third = made(3, (state(3, "n", "Neg"), None))
    gone = origin_of("n", [first, second, third])
    assert (gone.op_type, gone.removed_by) == ("Neg", third)
    assert str(gone).splitlines()[0].endswith("; removed by pass3, #3 law of 'n'")


def test_a_way_of_thousands_of_rewrites_needs_no_stack() -> None:
    count = 3000
    nodes = [state(at, f"n{at}") for at in range(count + 1)]
    rewrites = [
        made(at + 1, (nodes[at], None), (None, nodes[at + 1]), anchor="x") for at in range(count)
    ]
    origin = origin_of(f"n{count}", rewrites)
    assert origin.roots() == ["n0"]
    assert len(origin.rewrites()) == count
    assert len(str(origin).splitlines()) == count + 1
    assert repr(origin).startswith("Origin(label='n3000'")


def test_what_two_sources_share_is_shown_once() -> None:
    # Each level has two nodes, both made of both of the level below: 2 ** 20 ways.
    levels = [[state(2 * at, f"a{at}"), state(2 * at + 1, f"b{at}")] for at in range(21)]
    rewrites = []
    for at in range(20):
        gone = [(node, None) for node in levels[at]]
        new = [(None, node) for node in levels[at + 1]]
        rewrites.append(made(at + 1, *gone, *new, anchor="x"))
    origin = origin_of("a20", rewrites)
    assert origin.roots() == ["a0", "b0"]
    lines = str(origin).splitlines()
    assert len(lines) < 100
    # Both nodes of each level from 1 to 18, below the second one of the level above.
    assert sum(line.endswith("(as above)") for line in lines) == 36
