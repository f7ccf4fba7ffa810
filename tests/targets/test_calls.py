"""Nodes of local functions are judged in each of their calls; the model stays as it was."""

import pytest

from tests.small import content
from tiered import Model, Node
from tiered.graph import Function
from tiered.targets import calls
from tiered.targets.calls import judged_in_calls
from tiered.targets.shared_rules import Refusal
from tiered.testing import parse

TEXT = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
g (float[2] x, double[3] z) => (float[2] y, double[3] w) { y = d.f(x)  w = d.f(z) }
<domain: "d", opset_import: ["" : 21, "d" : 1]> f (a) => (c) { b = d.h(a)  c = Neg(b) }
<domain: "d", opset_import: ["" : 21]> h (a) => (c) { c = Abs(a) }"""


def view(text: str = TEXT) -> Model:
    return Model.from_proto(parse(text))


def judged(model: Model, *refused: str) -> dict[str, tuple[str, ...]]:
    """Return what is found of each operator, if some dtypes are refused."""
    functions = {function.id: function for function in model.functions}

    def called(node: Node) -> Function | None:
        return functions.get(node.callee)

    def judge(node: Node) -> tuple[Refusal, ...]:
        found = f"{node.op_type} {node.output.type}"
        return (Refusal(found),) if any(each in found for each in refused) else ()

    found = judged_in_calls(model, [model.main], called, judge)
    return {node.op_type: tuple(map(str, refusals)) for node, refusals in found.items()}


def test_a_node_is_judged_with_the_types_of_a_call() -> None:
    model = view()
    before = content(model)
    assert judged(model) == {"Abs": (), "Neg": ()}
    assert judged(model, "double") == {"Abs": ("Abs double[3]",), "Neg": ("Neg double[3]",)}
    assert judged(model, "Neg float") == {"Abs": (), "Neg": ("Neg float[2]",)}
    assert content(model) == before
    assert list(model.notes) == []


def test_the_first_bad_call_counts() -> None:
    assert judged(view(), "Neg")["Neg"] == ("Neg float[2]",)


def test_a_model_without_calls_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_EXPANDED", 0)
    model = view("(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert judged(model, "Neg") == {}
    assert list(model.notes) == []


def test_too_many_calls_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_EXPANDED", 1)
    model = view()
    assert judged(model, "Neg") == {}
    (note,) = model.notes
    assert "too often to judge each of their calls" in str(note)
    for most, count in ((3, 0), (4, 2)):  # both calls have two nodes
        monkeypatch.setattr(calls, "MOST_EXPANDED", most)
        assert len(judged(model, "Neg")) == count


def test_nodes_of_bodies_are_judged_too() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2] x, bool k) => (float[2] y) { y = d.f(x, k) }
    <domain: "d", opset_import: ["" : 21]> f (a, k) => (c) { c = If(k) <
        then_branch = t () => (p) { p = Neg(a) }, else_branch = e () => (q) { q = Abs(a) }> }"""
    assert judged(view(text), "Abs") == {"If": (), "Neg": (), "Abs": ("Abs float[2]",)}


def test_a_call_that_cannot_be_inlined_is_not_judged() -> None:
    abs_of = '<domain: "{}", opset_import: ["" : {}]> {} (a, b) => ({}) {{ c = Abs(a) }}'
    head = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2] x) => (float[2] y) {{ y = {} }}"""
    for call, function, found in [
        ("d.f(x, x)", ("d", 21, "f", "c"), {"Abs": ()}),
        ("d.f(x)", ("d", 21, "f", "c"), {"Abs": ()}),
        ("d.f(x)", ("d", 21, "f", "c, b"), {}),  # an absent input is a result
        ("d.f(x, x)", ("d", 21, "f", "c, b"), {"Abs": ()}),
        ("d.f(x, x)", ("d", 12, "f", "c"), {}),  # Abs-6
        ("Relu(x)", ("", 21, "Relu", "c"), {}),  # ONNX defines it
    ]:
        model = view(f"{head.format(call)}\n{abs_of.format(*function)}")
        assert judged(model) == found, (call, function)


def test_operators_without_a_schema_are_judged_at_any_opset() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1, "own" : 2]>
    g (float[2] x) => (float[2] y) { y = d.f(x) }
    <domain: "d", opset_import: ["own" : 1]> f (a) => (c) { c = own.Gate(a) }"""
    assert list(judged(view(text))) == ["Gate"]
