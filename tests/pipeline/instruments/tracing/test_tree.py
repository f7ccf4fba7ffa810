"""A trace as a tree: what is shown, and what shares a line."""

import re
from typing import Any

import pytest

from tests.small import drop_neg, fuse_relu, keep_abs, look, model
from tiered import (
    PassContext,
    Sequential,
    optimize,
)
from tiered.passes.interface.pass_info import NodeNote, PassInfo
from tiered.passes.policy.decide import OPT_IN
from tiered.pipeline.instruments import Trace
from tiered.pipeline.instruments.tracing.events import Rewrite, Span
from tiered.pipeline.instruments.tracing.tree import Shown, tree_of

PIPELINE = Sequential([fuse_relu, drop_neg, keep_abs], name="two")


def traced(pass_: Any = PIPELINE, **settings: Any) -> Trace:
    trace = Trace()
    with PassContext(instruments=[trace], **settings):
        pass_(model())
    return trace


def test_it_prints_as_a_tree() -> None:
    lines = [re.sub(r"  \d+\.\d\d ms", "", line) for line in str(traced()).splitlines()]
    assert lines == [
        "two(fuse_relu,drop_neg,keep_abs)  4 -> 3 nodes",
        "├─ fuse_relu  1 rewrite  4 -> 3 nodes",
        "│       #1 op.Relu(op.Relu(var.x)) at 'node_b'",
        "├─ drop_neg  skipped: needs opt_level 3; it is 2, the default",
        "└─ keep_abs",
    ]


def test_passes_that_did_nothing_share_a_line_unless_asked_for() -> None:
    trace = traced(Sequential([look, keep_abs, fuse_relu, drop_neg]))
    assert "2 passes that changed nothing" in trace.tree()
    assert "look" in trace.tree(idle=True)
    assert "skipped" not in trace.tree(skipped=False)
    assert "#1" not in trace.tree(rewrites=0)
    assert "1 Abs unchanged: it is Abs after all" in trace.tree(remarks=True)


def test_opt_in_passes_that_were_not_asked_for_share_a_line() -> None:
    trace = Trace()
    optimize(model().to_proto(), instruments=[trace])
    lines = str(trace).splitlines()
    assert sum("opt-in" in line for line in lines) * 5 < str(trace.tree(idle=True)).count("opt-in")
    shared = re.compile(r"passes that changed nothing .* ms; \d+ opt-in passes$")
    assert any(map(shared.search, lines))
    assert "opt-in" not in trace.tree(skipped=False)


def span(name: str = "p", **fields: Any) -> Span:
    info = PassInfo(name, kind=fields.pop("kind", "rewrite"))
    made = {"text": name, "outcome": "ran", "seconds": 0.001, **fields}
    return Span(info, "m", 1, 0.0, **made)


def tree(*spans: Span, rewrites: int = 3, **shown: bool) -> list[str]:
    flags = {"skipped": True, "idle": False, "remarks": False, **shown}
    return list(tree_of(spans, Shown(rewrites=rewrites, **flags)))


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "p  1.00 ms"),
        ({"text": "p{k=1}"}, "p{k=1}  1.00 ms"),
        ({"outcome": "skipped", "reason": "why"}, "p  skipped: why"),
        ({"nodes_before": 3, "nodes_after": 1}, "p  1.00 ms  3 -> 1 node"),
        ({"nodes_before": 3, "nodes_after": 3}, "p  1.00 ms"),
        ({"needed_by": "q"}, "p  1.00 ms  needed by q"),
        ({"outcome": "failed", "error": "one\ntwo"}, "p  1.00 ms  failed and undone: one"),
        ({"outcome": "failed"}, "p  1.00 ms  failed and undone: "),
        ({"outcome": "failed", "error": "e", "undone": True}, "p  1.00 ms  failed and undone: e"),
        ({"undone": True}, "p  1.00 ms  undone"),
        ({"outcome": "running"}, "p  1.00 ms  still running"),
        ({"text": "x" * 61}, "x" * 61 + "  1.00 ms"),
        ({"text": "x" * 61, "kind": "pipeline"}, "p  1.00 ms"),
        ({"text": "x" * 60, "kind": "pipeline"}, "x" * 60 + "  1.00 ms"),
    ],
)
def test_the_line_of_a_pass(fields: dict[str, Any], line: str) -> None:
    assert tree(span(**fields))[0] == line


def rewrite_of(number: int) -> Rewrite:
    return Rewrite(number, "p", "law", "g", "n", (), (), (), 0.0)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (0, []),
        (1, ["     #1 law at 'n'", "     and 2 more"]),
        (3, ["     #1 law at 'n'", "     #2 law at 'n'", "     #3 law at 'n'"]),
        (4, ["     #1 law at 'n'", "     #2 law at 'n'", "     #3 law at 'n'"]),
    ],
)
def test_the_first_rewrites_are_listed(shown: int, expected: list[str]) -> None:
    made = span(rewrites=[rewrite_of(number) for number in (1, 2, 3)], changed=True)
    head, *rest = tree(made, rewrites=shown)
    assert head == "p  1.00 ms  3 rewrites"
    assert rest == expected


def test_findings_are_shown_and_declined_nodes_on_demand() -> None:
    notes = (
        NodeNote("Conv", "a", "3 is odd", "{} is odd"),
        NodeNote("Conv", "b", "5 is odd", "{} is odd"),
        NodeNote("Add", "c", "3 is odd", "{} is odd"),
    )
    made = span(found=(NodeNote("", "", "seen", "seen"),), missed=notes)
    assert tree(made)[1:] == ["     seen"]
    assert tree(made, remarks=True)[1:] == [
        "     seen", "     2 Conv unchanged: 5 is odd", "     1 Add unchanged: 3 is odd"
    ]  # fmt: skip


def whole(*children: Span) -> Span:
    return span("all", kind="pipeline", children=list(children))


def test_members_are_branches_below_their_pipeline() -> None:
    inner = whole(span("a", changed=True), span("b", changed=True))
    inner.rewrites.append(rewrite_of(1))
    assert tree(whole(inner, span("c", changed=True))) == [
        "all  1.00 ms",
        "├─ all  1.00 ms  1 rewrite",
        "│  │    #1 law at 'n'",
        "│  ├─ a  1.00 ms",
        "│  └─ b  1.00 ms",
        "└─ c  1.00 ms",
    ]


def test_passes_without_news_share_a_line() -> None:
    parked = span("d", outcome="skipped", reason=f"{OPT_IN}, and more")
    skipped = span("e", outcome="skipped", reason="disabled")
    quiet = [span("a"), span("b"), parked]
    assert tree(whole(*quiet, skipped))[1:] == [
        "├─ 2 passes that changed nothing  2.00 ms; 1 opt-in pass",
        "└─ e  skipped: disabled",
    ]
    assert tree(whole(*quiet, skipped), skipped=False)[1:] == [
        "└─ 2 passes that changed nothing  2.00 ms"
    ]
    assert len(tree(whole(*quiet, skipped), idle=True)) == 5
    assert tree(whole(parked, parked))[1:] == ["└─ 2 opt-in passes"]
    assert tree(whole(span("a")))[1:] == ["└─ a  1.00 ms"]  # one alone is named


@pytest.mark.parametrize(
    ("fields", "is_news"),
    [
        ({"changed": True}, True),
        ({"found": (NodeNote("", "", "f", "f"),)}, True),
        ({"outcome": "failed", "error": "e"}, True),
        ({"missed": (NodeNote("", "", "m", "m"),)}, False),
        ({"children": [span("c")]}, True),
    ],
)
def test_what_is_news(fields: dict[str, Any], is_news: bool) -> None:
    lines = tree(whole(span("a"), span("b", **fields)))
    assert ("2 passes that changed nothing" not in lines[1]) is is_news
    if "missed" in fields:
        shown = tree(whole(span("a"), span("b", **fields)), remarks=True)
        assert "2 passes" not in shown[1]
