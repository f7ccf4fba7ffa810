"""The driver: where it looks, in which order, when it ends, and what it costs."""

import contextlib
import random
from collections.abc import Callable
from typing import Any

import onnx
import pytest
from onnx import helper

from tests.graph.editor import Editor, fresh
from tests.small import content, made_by, model, named, ops, parsed
from tiered import Graph, Model, Node, Pass, PassContext, Skip, Value, chain, op, rewrite, var
from tiered.passes.kinds.body import Body
from tiered.rewriter import (
    PatternError,
    Rule,
    apply_rule,
    driver,
    match as matcher,
    worklist as looking,
)
from tiered.rewriter.worklist import Affected, Worklist
from tiered.support.errors import ModelError, PassError


def relus(count: int, kind: str = "Relu") -> onnx.ModelProto:
    """Return a chain of one operator."""
    nodes = [helper.make_node(kind, [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(count)]
    ends = [helper.make_tensor_value_info(f"v{at}", 1, [2, 3]) for at in (0, count)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@rewrite(op.Relu(op.Relu(var.x)), opt_level=0)
def once(graph: Graph, x: Value) -> Value:
    """Relu(Relu(x)) => Relu(x)."""
    result: Value = graph.op.Relu(x)
    return result


def law(name: str, pattern: Any, function: Callable[..., Any]) -> Pass:
    function.__name__ = name
    return rewrite(pattern, opt_level=0)(function)


def looks(monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """Return the list of all nodes that the driver will match."""
    seen: list[Node] = []

    def match_node(programs: Any, node: Node) -> Any:
        seen.append(node)
        return matcher.match_node(programs, node)

    monkeypatch.setattr(driver, "match_node", match_node)
    return seen


# --- where it looks -------------------------------------------------------------------------------


def test_only_nodes_of_the_right_operator_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = looks(monkeypatch)
    once.apply(model("g (float[2] x) => (float[2] y) { a = Neg(x) b = Relu(a) y = Abs(b) }"))
    assert [node.op_type for node in seen] == ["Relu"]


def test_bodies_and_functions_are_looked_at() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2] x, bool c) => (float[2] y) {
        f = d.f(x)
        y = If(c) <then_branch = t () => (float[2] p) { i = Relu(f)  p = Relu(i) },
                   else_branch = e () => (float[2] q) { q = Abs(f) }>
    }
    <domain: "d", opset_import: ["" : 21]> f (v) => (w) { r = Relu(v)  w = Relu(r) }"""
    given = Model.from_proto(onnx.parser.parse_model(text))
    once.apply(given)
    assert [len(graph.nodes_of("Relu")) for graph in given.graphs()] == [0, 1, 0, 1]


def test_a_second_look_looks_at_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Model.from_proto(relus(200, "Abs"))
    once.apply(given)
    seen = looks(monkeypatch)
    once.apply(given)
    assert seen == []


def test_after_an_edit_only_what_it_concerns_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"a{i} = Relu(x) b{i} = Abs(a{i}) " for i in range(100))
    outputs = ", ".join(f"float[2] b{i}" for i in range(100))
    given = model(f"g (float[2] x) => ({outputs}) {{ {text} }}")
    once.apply(given)
    seen = looks(monkeypatch)
    graph = given.main
    (fifty,) = [node for node in graph.nodes if node.name == "node_b50"]
    graph.set_input(fifty, 0, graph.op.Relu(graph.inputs[0]))
    once.apply(given)
    assert len(seen) <= 4


def test_an_edit_deep_in_a_chain_concerns_its_end() -> None:
    end = law(
        "end",
        op.Relu(chain(op.Neg, op.Abs(var.x))),
        lambda graph, x: graph.op.Ceil(x),
    )
    steps = "".join(f"n{i + 1} = Neg(n{i}) " for i in range(20))
    given = model(f"g (float[2] x) => (float[2] y) {{ n0 = Floor(x) {steps} y = Relu(n20) }}")
    end.apply(given)
    assert "Relu" in ops(given)
    graph = given.main
    (first,) = [node for node in graph.nodes if node.name == "node_n1"]
    floor = graph.nodes_of("Floor")
    graph.set_input(first, 0, graph.op.Abs(graph.inputs[0]))
    graph.prune(floor)
    end.apply(given)
    assert ops(given) == ["Ceil"]


def test_an_edit_at_one_root_concerns_the_other() -> None:
    def join(graph: Graph, x: Value) -> tuple[Value, Value]:
        return graph.op.Ceil(x), graph.op.Floor(x)

    both = law("both", op.Relu(var.x) & op.Neg(var.x), join)
    given = model("g (float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Abs(x) }")
    both.apply(given)
    graph = given.main
    (absolute,) = graph.nodes_of("Abs")
    graph.replace(absolute, [graph.op.Neg(graph.inputs[0])])
    both.apply(given)
    assert sorted(ops(given)) == ["Ceil", "Floor"]
    assert [value.name for value in graph.outputs] == ["y", "z"]


# --- what a rule gives ----------------------------------------------------------------------------


def test_each_root_gets_its_value() -> None:
    def swap(graph: Graph, x: Value) -> tuple[Value, Value]:
        halves = graph.op.Split(x, axis=0, num_outputs=2, outputs=2)
        return halves[1], halves[0]

    split = op.Split(var.x, axis=1, num_outputs=2)
    given = model("""g (float[2,2] x) => (float[1,2] p, float[1,2] q) {
        a, b = Split<axis=1, num_outputs=2>(x)  p = Relu(a)  q = Neg(b)
    }""")
    law("swap", split & split.out(1), swap).apply(given)
    (cut,) = given.main.nodes_of("Split")
    assert [user.op_type for value in cut.outputs if value for user in value.readers] == [
        "Neg",
        "Relu",
    ]


def test_another_output_than_the_first_can_be_replaced_alone() -> None:
    given = model("""g (float[2,2] x) => (float[2,1] p, float[2,1] q) {
        p, b = Split<axis=1, num_outputs=2>(x)  q = Neg(b)
    }""")
    second = op.Split(var.x, axis=1, num_outputs=2).out(1)
    split = second.where(lambda node: node.outputs[1].is_used)
    law("second", split, lambda graph, x: graph.op.Ceil(x)).apply(given)
    assert ops(given) == ["Split", "Ceil", "Neg"]


@pytest.mark.parametrize("given", [1, 3])
def test_as_many_values_as_roots(given: int) -> None:
    wrong = law(
        "wrong", op.Relu(var.x) & op.Neg(var.x), lambda graph, x: (graph.op.Abs(x),) * given
    )
    view = model("g (float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Neg(x) }")
    before = content(view)
    with pytest.raises(PassError, match="must return one value for each of 2 roots"):
        wrong.apply(view)
    assert content(view) == before


def test_a_rule_asks_only_for_what_its_pattern_binds() -> None:
    with pytest.raises(PatternError, match="binds no z; it binds node, x"):
        law("asks", op.Relu(var.x), lambda graph, z: z)


def test_a_skip_leaves_no_trace() -> None:
    def half_done(graph: Graph, x: Value) -> Skip:
        graph.op.Neg(x)
        return Skip("it is {}", "no use")

    given = model()
    before, length = content(given), len(given.journal)
    with PassContext() as ctx:
        law("half_done", op.Abs(var.x), half_done)(given)
    assert (content(given), len(given.journal)) == (before, length)
    assert [remark.reason for remark in ctx.remarks] == ["it is no use"]


NEGS = "g (float[2] x) => (float[2] y, float[2] z) { a = Neg(x)  y = Neg(a)  z = Abs(x) }"


def unless_input(graph: Graph, x: Value) -> Value | Skip:
    return Skip("{} is an input", x.name) if x.is_graph_input else x


def test_a_rule_at_one_node_says_why_it_does_not_apply() -> None:
    negs = Rule("negs", op.Neg(var.x), unless_input, "law")
    inner = Rule("inner", op.Neg(op.Neg(var.x)), lambda graph, x: x, "law")
    given = model(NEGS)
    found = [
        driver.rewrite_node(negs, made_by(given, "z"), {}),
        driver.rewrite_node(negs, made_by(given, "a"), {}),
        driver.rewrite_node(inner, made_by(given, "y"), {}),
    ]
    assert list(map(str, found)) == ["the pattern does not match", "x is an input", "None"]
    assert ops(given) == ["Abs", "Identity"]
    shown = model(NEGS.replace("float[2] z)", "float[2] z, float[2] a)"))
    assert driver.rewrite_node(inner, made_by(shown, "y"), {}) is matcher.IS_OUTPUT


def test_filters_and_judges_of_rewrites() -> None:
    negs = Rule("negs", op.Neg(var.x), lambda graph, x: graph.op.Exp(x), "law")

    def ran(**more: Any) -> tuple[list[str], list[str], list[str]]:
        given, skipped, made = model(NEGS), list[str](), list[str]()
        apply_rule(
            negs,
            given,
            {},
            on_skip=lambda node, reason: skipped.append(f"{node.label}: {reason}"),
            on_rewrite=lambda match, edits: made.append(
                f"{match.bindings['x'].name} {bool(edits)}"
            ),
            **more,
        )
        return sorted(ops(given)), skipped, made

    first, no = Skip("only the first"), Skip("no")
    assert ran() == (["Abs", "Exp", "Exp"], [], ["x True", "a True"])
    assert ran(accept=lambda match: None if match.bindings["x"].name == "x" else first) == (
        ["Abs", "Exp", "Neg"], ["node_y: only the first"], ["x True"]
    )  # fmt: skip
    assert ran(approve=lambda edits: no) == (
        ["Abs", "Neg", "Neg"], ["node_a: no", "node_y: no"], []
    )  # fmt: skip
    assert ran(approve=lambda edits: None)[0] == ["Abs", "Exp", "Exp"]
    assert ran(once=True)[2] == ["x True", "a True"]
    assert ran(graphs=[])[2] == []


def test_which_values_replace_a_graph_output() -> None:
    text = """(float[2] x, seq(float[2]) s) => (float[2] y, float[2] i, float[2] v,
        seq(float[2]) t) {
        y = Neg(x)  i = Identity(x)  n = Abs(x)  v = Exp(n)  t = SequenceInsert(s, x) }"""
    given = parsed(text)
    rows = [
        ("y", "n", None),
        ("y", "x", None),  # by an Identity
        ("y", None, None),
        ("n", "x", None),
        ("i", "n", None),
        ("i", "x", "a graph output needs a node of its own"),
        ("i", "y", "a graph output needs a node of its own"),
        ("t", "s", None),
    ]
    for name, other, because in rows:
        after = None if other is None else named(given, other)
        found = driver.why_not_replaceable(made_by(given, name), (after,))
        assert (None if found is None else str(found)) == because, (name, other)


# --- when it ends ---------------------------------------------------------------------------------


def test_a_rule_that_never_ends_is_stopped() -> None:
    again = law("again", op.Relu(var.x), lambda graph, x: graph.op.Relu(x))
    given = model()
    before = content(given)
    with pytest.raises(PassError, match="again does not terminate"):
        again.apply(given)
    assert content(given) == before


def test_the_order_is_the_same_in_every_run() -> None:
    def rewritten() -> list[str]:
        seen: list[str] = []
        given = Model.from_proto(relus(40))
        rule = Rule("once", op.Relu(op.Relu(var.x)), lambda graph, x: graph.op.Relu(x))
        apply_rule(rule, given, {}, on_rewrite=lambda match, _: seen.append(match.node.label))
        return seen

    assert rewritten() == rewritten()


# --- what it costs --------------------------------------------------------------------------------


def test_a_chain_that_collapses_does_so_in_linear_time() -> None:
    def edits(count: int) -> int:
        given = Model.from_proto(relus(count))
        once.apply(given)
        assert len(given.main) == 1
        return len(given.journal)

    # Edits and not seconds, which depend on what else the machine does.
    assert edits(2000) / edits(1000) == pytest.approx(2, rel=0.01)


def test_a_long_chain_takes_few_looks_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = looks(monkeypatch)
    given = Model.from_proto(relus(4_000))
    once.apply(given)
    assert len(given.main) == 1
    assert len(seen) < 3 * 4_000


def test_the_same_model_comes_out_bit_for_bit() -> None:
    first, second = (Model.from_proto(relus(300)) for _ in range(2))
    once.apply(first)
    once.apply(second)
    assert content(first) == content(second)


def test_a_rule_is_not_compiled_for_a_model_without_one_of_its_operators() -> None:
    rule = Rule("halve", op.Mul(op.Erf(var.x) | op.Neg(op.Erf(var.x)), 0.5), lambda graph, x: x)
    assert rule.operators == (frozenset({("", "Mul"), ("", "Erf")}),)
    assert not Body(rule).may_act(model("g (float[2] x) => (float[2] y) { y = Mul(x, x) }"))
    assert "programs" not in vars(rule)


def test_what_a_rule_makes_may_be_what_another_choice_of_its_root_needs() -> None:
    pattern = op.Neg(op.Neg(var.x)) | op.Relu(op.Abs(var.x))
    law("absolute", pattern, lambda graph, x: graph.op.Abs(x)).apply(
        given := model("g (float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) y = Relu(b) }")
    )
    assert [node.op_type for node in given.main.nodes] == ["Abs"]


def test_programs_are_chosen_again_only_when_what_they_lack_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked, missing_operators = [], Rule.missing_operators

    def note(self: Rule, of: Model) -> list[frozenset[tuple[str, str]]]:
        looked.append(len(of.main))
        return missing_operators(self, of)

    monkeypatch.setattr(Rule, "missing_operators", note)
    relus = " ".join(f"a{at + 1} = Relu(a{at})" for at in range(20))
    given = model(f"g (float[2] a0) => (float[2] y) {{ {relus} y = Identity(a20) }}")
    law("drop", op.Relu(var.x) | op.Neg(op.Abs(var.x)), lambda graph, x: x).apply(given)
    assert [node.op_type for node in given.main.nodes] == ["Identity"]
    # To find the anchors, and to choose the programs.
    assert looked == [21, 21]


@pytest.mark.parametrize("seed", range(12))
def test_only_what_is_near_a_rare_operator_is_left_out(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose, edited = random.Random(seed), fresh()
    editor = Editor(edited, lambda things, _: choose.choice(things))
    for _ in range(20):
        with contextlib.suppress(ModelError), edited.transaction():
            editor.step()
    for pattern in (*LAWS, op.Mul(op.Add(var.x, ...), ...) | op.Add(op.Neg(var.x), var.w)):
        rule = Rule("law", pattern, lambda graph: None)
        found = []
        for few in (1, 10**6):
            monkeypatch.setattr(looking, "_FEW", few)
            anchors = Worklist(rule, edited).all_anchors()
            found.append([node for node in anchors if matcher.match_node(rule.programs, node)])
        assert found[0] == found[1]


def test_anchors_far_from_a_rare_operator_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = looks(monkeypatch)
    negs = " ".join(f"a{at + 1} = Neg(a{at})" for at in range(20))
    text = f"g (float[2] x) => (float[2] y) {{ a0 = Abs(x) {negs} y = Relu(a20) }}"
    law("flat", op.Neg(op.Abs(var.x)), lambda graph, x: Skip("no")).apply(model(text))
    assert len(seen) < 4


LAWS = [
    op.Add(var.x, var.w),
    op.Mul(op.Add(var.x, ...), ...),
    op.Add(op.Mul(op.Mul(var.x, ...), ...), ...),
    op.Neg(chain(op.Identity | op.Add, op.Mul(var.x, ...))),
]


@pytest.mark.parametrize("seed", range(12))
def test_both_ways_to_find_what_edits_concern_find_the_same(seed: int) -> None:
    choose, edited = random.Random(seed), fresh()
    editor = Editor(edited, lambda things, _: choose.choice(things))
    begin = edited.journal.stamp()
    for _ in range(12):
        with contextlib.suppress(ModelError), edited.transaction():
            editor.step()
    touched = edited.journal.note_touched()
    for pattern in LAWS:
        rule = Rule("law", pattern, lambda graph: None)
        anchors = Worklist(rule, edited)
        near = Affected(touched, begin.length, rule)
        dirty = [node for node, at in touched.items() if at > begin.length and node.is_live]
        assert [node for node in anchors.all_anchors() if near.holds(node)] == [
            node for node in anchors.all_anchors() if node in set(anchors.affected_by(dirty))
        ]


def test_what_was_undone_was_touched_when_it_was_brought_back() -> None:
    edited = fresh()
    first, second = edited.main.values["a"].producer, edited.main.values["y"].producer
    assert first is not None
    assert second is not None
    edited.main.set_attribute(first, "axis", 1)
    edited.journal.note_touched()
    mark = edited.mark()
    edited.main.set_attribute(second, "axis", 1)
    assert edited.journal.note_touched()[second] == mark + 1
    edited.undo_to(mark)
    assert edited.journal.note_touched()[second] == mark
    assert edited.journal.note_touched()[first] == mark


def _many_users(count: int, operator: str) -> Model:
    text = "".join(f"a{i} = {operator}(v) y{i} = Floor(a{i}) " for i in range(count))
    outputs = ", ".join(f"float[2] y{i}" for i in range(count))
    return model(f"g (float[2] x) => ({outputs}) {{ v = Relu(x) {text} }}")


def test_a_value_with_many_users_is_followed_once_for_all_rewrites(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    above = law("above", op.Floor(op.Neg(var.x)), lambda graph, x: graph.op.Ceil(graph.op.Abs(x)))
    followed: list[Node] = []
    users = looking._users

    def noted(value: Value, wide: dict[Value, None] | None) -> list[Node]:
        found = list(users(value, wide))
        followed.extend(found)
        return found

    monkeypatch.setattr(looking, "_users", noted)
    given = _many_users(300, "Neg")
    above.apply(given)
    assert set(ops(given)) == {"Relu", "Abs", "Ceil"}
    assert len(followed) < 10 * 300


def test_what_another_user_of_such_a_value_makes_possible_is_done() -> None:
    def last_first(graph: Graph, node: Node, x: Value) -> Value | Skip:
        if any(user.id > node.id and user.op_type == "Neg" for user in x.user_nodes):
            return Skip("a later Neg reads it")
        return graph.op.Abs(x)

    given = _many_users(70, "Neg")
    law("last_first", op.Neg(var.x), last_first).apply(given)
    assert "Neg" not in ops(given)


# --- the gate, and outputs ------------------------------------------------------------------------

FOUR = "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  c = Neg(b)  y = Neg(c) }"


def gated(limit: int | None, chosen: str) -> tuple[str, list[str], list[str]]:
    """Return the operators after rewrites that a gate lets pass, those it saw, and the reasons."""
    given, skipped, seen = model(FOUR), list[str](), list[str]()
    given.gate.limit, given.gate.pass_name = limit, "a_pass"
    if chosen:
        given.gate.chosen = lambda at: at[0] == "a_pass" and at[1] in chosen
    given.gate.listeners.append(
        lambda made: seen.append(f"{made.number} {made.law} {made.node_name} {made.graph.name}")
    )
    negs = Rule("negs", op.Neg(var.x), lambda graph, x: graph.op.Exp(x), "law")
    apply_rule(negs, given, {}, on_skip=lambda node, why: skipped.append(f"{node.label}: {why}"))
    return " ".join(ops(given)), seen, [*dict.fromkeys(skipped)]


def test_a_limit_and_a_choice_of_rewrites() -> None:
    because = "not among the rewrites that are tried"
    for limit, chosen, made, nodes, declined in (
        (None, "", "Exp Exp Exp Exp", "abcy", ""), (0, "", "Neg Neg Neg Neg", "", ""),
        (1, "", "Exp Neg Neg Neg", "a", ""), (3, "", "Exp Exp Exp Neg", "abc", ""),
        (None, "node_b node_y", "Neg Exp Neg Exp", "by", "ac"),
        (1, "node_b node_y", "Neg Exp Neg Neg", "b", "a"),
    ):  # fmt: skip
        seen = [f"{number} law node_{name} g" for number, name in enumerate(nodes, 1)]
        skipped = [f"node_{name}: {because}" for name in declined]
        assert gated(limit, chosen) == (made, seen, skipped), (limit, chosen)


def test_once_visits_only_the_nodes_that_were_there() -> None:
    rule = Rule("once", op.Neg(var.x), lambda graph, x: graph.op.Neg(graph.op.Neg(x)), "law")
    given = model(FOUR)
    apply_rule(rule, given, {}, once=True)
    assert ops(given) == ["Neg"] * 8


def test_an_output_that_a_rule_returns_nothing_for_is_unused() -> None:
    text = """g (float[4] x) => (float[2] y, float[2] z) {{
        {} = Split<axis=0, num_outputs=2>(x)  y = Abs({})  z = Abs({}) }}"""
    split = op.Split(var.x, axis=0, num_outputs=2)
    alone = law("alone", split, lambda graph, x: (graph.op.Neg(x), None))
    both = law("both", split, lambda graph, x: (graph.op.Neg(x), graph.op.Exp(x)))
    for rule, outputs, reads, expected in (
        (alone, "a, b", "ab", "output 'b' of 'node_a' is used; return a value"),
        (alone, "a, b", "aa", ["Abs", "Abs", "Neg"]),
        (alone, "a, ", "aa", ["Abs", "Abs", "Neg"]),
        (both, "a, b", "ab", ["Abs", "Abs", "Exp", "Neg"]),
    ):
        given = model(text.format(outputs, *reads))
        before = content(given)
        if isinstance(expected, list):
            rule.apply(given)
            assert sorted(ops(given)) == expected
            continue
        with pytest.raises(PassError) as caught:
            rule.apply(given)
        assert str(caught.value).startswith(expected)
        assert content(given) == before


def test_what_cannot_replace_an_output_is_a_reason() -> None:
    drop = Rule("drop", op.Identity(var.x) | op.Neg(var.x), lambda graph, x: x, "law")
    own = "a graph output needs a node of its own"
    for text, expected, reasons in (
        ("(float[2] x) => (float[2] y) { y = Identity(x) }", ["Identity"], [own]),
        ("(float[2] x) => (float[2] y) { y = Neg(x) }", ["Identity"], [own]),
        ("(float[2] x) => (float[2] y) { a = Abs(x)  y = Identity(a) }", ["Abs"], []),
        ("(uint4[2] x) => (uint4[2] y) { y = Neg(x) }", ["Neg"], [own]),
        ("""(float[2] x, bool p) => (float[2] y) { h = Abs(x)  y = If(p) <
            then_branch = t () => (float[2] u) { u = Identity(h) },
            else_branch = e () => (float[2] v) { v = Abs(h) }> }""", ["Abs", "If"], [own]),
    ):  # fmt: skip
        given, skipped = parsed(text), list[str]()
        apply_rule(drop, given, {}, on_skip=lambda _, why: skipped.append(str(why)))  # noqa: B023  # called at once
        assert (ops(given), skipped) == (expected, reasons), text


@pytest.mark.parametrize("result", [None, "ab"])
def test_several_roots_need_several_values(result: object) -> None:
    wrong = law("wrong", op.Relu(var.x) & op.Neg(var.x), lambda graph, x: result or x)
    view = model("g (float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Neg(x) }")
    with pytest.raises(PassError, match="wrong must return one value for each of 2 roots"):
        wrong.apply(view)
