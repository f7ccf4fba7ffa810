"""The data of a trace: spans, and the rewrites in them."""

import pytest

from tiered.passes.interface.pass_info import NodeNote, PassInfo, PassResult
from tiered.pipeline.instruments.tracing.changes import Change, NodeState
from tiered.pipeline.instruments.tracing.events import Rewrite, Span, as_data


def state(number: int, name: str) -> NodeState:
    return NodeState(number, "Relu", name, ("x",), (f"{name}_out", ""))


A, B, C, D = (state(number, name) for number, name in enumerate("abcd"))


def rewrite(*changes: Change, anchor: str = "", undone: bool = False) -> Rewrite:
    return Rewrite(5, "p", "law", "g", anchor, changes, (), (), 0.0, undone)


def test_a_rewrite_has_the_nodes_before_and_after_and_their_tensors() -> None:
    made = rewrite(
        Change(A, None), Change(B, B._replace(outputs=("b_out", "more"))), Change(None, C)
    )
    assert made.before == [A, B]
    assert [each.label for each in made.after] == ["b", "c"]
    assert made.values == ["a_out", "b_out", "more", "c_out"]
    assert [made.touches(name) for name in "abcd"] == [True, True, True, False]


@pytest.mark.parametrize(
    ("changes", "anchor", "undone", "text"),
    [
        ([], "n", False, "#5 law at 'n'"),
        ([], "n", True, "#5 law at 'n' (undone)"),
        ([], "", False, "#5 law"),
        ([Change(A, A)], "", False, "#5 law of 'a'"),
        ([Change(A, None), Change(None, B)], "", True, "#5 law of 'a', 'b' (undone)"),
        ([Change(each, None) for each in (A, B, C)], "", False, "#5 law of 'a', 'b', 'c'"),
        ([Change(each, None) for each in (A, B, C, D)], "", False,
         "#5 law of 'a', 'b', 'c' and 1 more"),
    ],
)  # fmt: skip
def test_a_rewrite_is_a_line(changes: list[Change], anchor: str, undone: bool, text: str) -> None:
    assert str(rewrite(*changes, anchor=anchor, undone=undone)) == text


def test_old_nodes_and_new_ones_are_lines() -> None:
    made = rewrite(Change(A, None), Change(B, C), Change(None, D))
    assert list(made.lines()) == [
        '- [a] a_out, "" = Relu (x)',
        '- [b] b_out, "" = Relu (x)',
        '+ [c] c_out, "" = Relu (x)',
        '+ [d] d_out, "" = Relu (x)',
    ]


def span(name: str, kind: str = "rewrite") -> Span:
    return Span(PassInfo(name, kind=kind), "m", 1, 0.0)


def test_a_span_is_walked_before_those_below_it() -> None:
    whole, inner, one, two = span("w", "pipeline"), span("i", "pipeline"), span("a"), span("b")
    whole.children += [inner, two]
    inner.children.append(one)
    assert [each.name for each in whole.walk()] == ["w", "i", "a", "b"]
    assert (whole.is_pipeline, one.is_pipeline) == (True, False)


def test_an_undo_reaches_all_below() -> None:
    whole, one, other = span("w", "pipeline"), span("a"), span("b")
    whole.children.append(one)
    one.rewrites.append(rewrite(Change(A, None)))
    other.rewrites.append(rewrite(Change(A, None)))
    whole.undo()
    assert (whole.undone, one.undone, one.rewrites[0].undone) == (True, True, True)
    assert (other.undone, other.rewrites[0].undone) == (False, False)


def test_a_span_takes_over_the_result() -> None:
    made, note = span("a"), NodeNote("Add", "n", "r", "r")
    info = PassInfo("a", kind="rewrite")
    made.complete(
        PassResult(info, "a{k=1}", True, "why", True, 2, 7, error="e", needed_by="q",
                   missed=(note,), found=(note, note))
    )  # fmt: skip
    assert (made.text, made.reason, made.needed_by, made.error) == ("a{k=1}", "why", "q", "e")
    assert (made.changed, made.edits, made.missed, made.found) == (True, 7, (note,), (note, note))
    made.complete(PassResult(info, "a", True, "why"))
    assert (made.error, made.changed) == ("", False)


def test_a_node_is_plain_data() -> None:
    assert as_data(None) is None
    assert as_data(A) == {
        "id": 0, "op": "Relu", "name": "a", "inputs": ["x"], "outputs": ["a_out", ""]
    }  # fmt: skip
