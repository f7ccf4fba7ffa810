"""The sections of a run's page about passes: rounds, times, effects, skipped and declined."""

from typing import Any

import pytest

from tiered.passes.interface.pass_info import NodeNote, PassInfo
from tiered.pipeline.instruments.run_page import pass_sections as module
from tiered.pipeline.instruments.run_page.pass_sections import (
    TimelineRun,
    declined,
    groups_of,
    letters,
    milliseconds,
    operators,
    outcome_of,
    passes,
    reason_of,
    runs_of,
    skipped,
    timeline,
)
from tiered.pipeline.instruments.tracing.changes import Change, NodeState
from tiered.pipeline.instruments.tracing.events import Rewrite, Span
from tiered.support.numerics import Numerics
from tiered.support.pages.charts import Chart, Point, Tick


def span(name: str = "p", *children: Span, **fields: Any) -> Span:
    known = PassInfo._fields
    info = PassInfo(name, **{key: fields.pop(key) for key in list(fields) if key in known})
    made = {"text": name, "outcome": "ran", **fields}
    return Span(info, "m", 1, 0.0, children=list(children), **made)


def pipe(name: str, *children: Span, text: str = "") -> Span:
    return span(name, *children, kind="pipeline", text=text or name)


def shown(runs: list[TimelineRun]) -> list[tuple[str, int, str]]:
    return [(run.span.name, run.round, run.group) for run in runs]


# --- runs -----------------------------------------------------------------------------------------


def test_runs_are_the_passes_that_are_no_pipelines_with_those_below_them() -> None:
    inner = span("b", span("c", needed_by="b"))
    spans = [pipe("all", span("a"), pipe("group", inner)), span("d", outcome="skipped")]
    assert shown([*runs_of(spans)]) == [("a", 0, ""), ("b", 0, ""), ("c", 0, ""), ("d", 0, "")]


def test_rounds_of_a_fixed_point_begin_where_a_pass_runs_again() -> None:
    fix = pipe("fix", *map(span, "abab"), span("a"), text="fix(a,b)")
    after = span("e")
    assert shown([*runs_of([pipe("all", fix, after)])]) == [
        ("a", 1, "fix(a,b)"), ("b", 1, "fix(a,b)"), ("a", 2, "fix(a,b)"), ("b", 2, "fix(a,b)"),
        ("a", 3, "fix(a,b)"), ("e", 0, ""),
    ]  # fmt: skip


def test_the_passes_that_a_pass_named_fix_needs_are_in_no_round() -> None:
    assert shown([*runs_of([span("fix", span("a"), span("a"))])]) == [
        ("fix", 0, ""), ("a", 0, ""), ("a", 0, "")
    ]  # fmt: skip


def test_a_pass_that_another_one_needs_begins_no_round() -> None:
    fix = pipe("fix", span("a"), span("a", needed_by="b"), span("b"), text="fix(a,b)")
    assert [run.round for run in runs_of([fix])] == [1, 1, 1]


def test_a_fixed_point_inside_another_has_rounds_of_its_own() -> None:
    inner = pipe("fix", span("b"), span("b"), text="fix(b)")
    fix = pipe("fix", inner, inner, span("c"), text="outer")
    assert shown([*runs_of([fix])]) == [
        ("b", 1, "fix(b)"), ("b", 2, "fix(b)"), ("b", 1, "fix(b)"), ("b", 2, "fix(b)"),
        ("c", 2, "outer"),
    ]  # fmt: skip


def test_groups_inside_a_fixed_point_are_in_its_round() -> None:
    fix = pipe(
        "fix", pipe("g", span("a"), span("b")), pipe("g", span("a"), span("b")), text="fix(g)"
    )
    assert [run.round for run in runs_of([fix])] == [1, 1, 2, 2]


def test_fixed_points_are_named_in_order() -> None:
    runs = [*runs_of([pipe("fix", span("a"), text="one"), pipe("fix", span("b"), text="two")])]
    assert groups_of(runs) == {"one": "A", "two": "B"}
    assert groups_of([TimelineRun(span(), 0)]) == {}


@pytest.mark.parametrize(
    ("place", "name"), [(0, "A"), (25, "Z"), (26, "AA"), (51, "AZ"), (52, "BA"), (701, "ZZ"),
                        (702, "AAA")]
)  # fmt: skip
def test_names_of_groups_go_on_after_z(place: int, name: str) -> None:
    assert letters(place) == name


def test_times_are_in_milliseconds() -> None:
    assert milliseconds(1.23456) == "1,234.56 ms"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"changed": True}, "changed"),
        ({}, "ran"),
        ({"outcome": "skipped"}, "skipped"),
        ({"outcome": "failed", "undone": True}, "failed"),
        ({"outcome": "failed", "changed": True}, "failed"),
        ({"undone": True, "changed": True}, "undone"),
    ],
)
def test_what_came_of_a_pass(fields: dict[str, Any], text: str) -> None:
    assert outcome_of(span(**fields)) == text


# --- the timeline ---------------------------------------------------------------------------------


def ran(before: int, after: int, name: str = "p", number: int = 0, **fields: Any) -> TimelineRun:
    made = span(name, nodes_before=before, nodes_after=after, **fields)
    return TimelineRun(made, number, "fix" if number else "")


def test_the_timeline_has_the_passes_that_ran() -> None:
    runs = [
        ran(5, 4, "a"),
        ran(4, 4, "b", seconds=0.25),
        TimelineRun(span("s", outcome="skipped"), 0),
    ]
    made = timeline(runs, times=True)
    table = made.data["table"]
    assert table.headers[-1] == "time"
    assert [row[1] for row in table.rows] == ["a", "b"]
    assert [row[5] for row in table.rows] == ["5 → 4", ""]
    assert table.rows[1][-1] == "250.00 ms"
    assert (made.data["left_out"], made.data["total"]) == (0, 2)
    assert "from 5 to 4" in made.data["chart"].name
    without = timeline(runs, times=False)
    assert without.data["bars"] == ()
    assert without.data["table"].headers[-1] == "reason"


def test_all_of_a_timeline() -> None:
    runs = [
        ran(5, 8, "a", seconds=1 / 7, reason="why"),
        ran(8, 6, "b", seconds=1 / 3, changed=True)._replace(round=1, group="fix(b)"),
        ran(6, 6, "b", needed_by="c")._replace(round=2, group="fix(b)"),
        ran(6, 6, "c")._replace(round=1, group="fix(c)"),
    ]
    data = timeline(runs, times=True).data
    assert data["chart"] == Chart(
        "Nodes left after each pass, 4 runs: from 5 to 6",
        "passes in the order of the run",
        "nodes",
        (Tick(224.0, "0"), Tick(174.0, "2"), Tick(124.0, "4"), Tick(74.0, "6"), Tick(24.0, "8")),
        (Point(290.0, 24.0, "a: 5 to 8 nodes"), Point(508.0, 74.0, "b: 8 to 6 nodes")),
        "72,99 290,99 290,24 508,24 508,74 726,74 726,74 944,74 944,74",
        ((290.0, 218.0, "A1"), (508.0, 218.0, "A2"), (726.0, 218.0, "B1")),
    )
    assert data["bars"] == [
        (72.0, 218.0, 0.4286, "a: 142.86 ms"),
        (290.0, 218.0, 1.0, "b: 333.33 ms"),
        (508.0, 218.0, 0.0, "b: 0.00 ms"),
        (726.0, 218.0, 0.0, "c: 0.00 ms"),
    ]
    assert data["table"].rows == [
        [1, "a", None, "ran", 0, "5 → 8", "why", "142.86 ms"],
        [2, "b", "A1", "changed", 0, "8 → 6", "", "333.33 ms"],
        [3, "b", "A2", "ran", 0, "", "required by c", "0.00 ms"],
        [4, "c", "B1", "ran", 0, "", "", "0.00 ms"],
    ]
    assert data["groups"].rows == [["A", 2, 1, "b"], ["B", 1, 1, "c"]]
    one = timeline([ran(1, 1, number=1)], times=True).data
    assert one["bars"] == [(72.0, 872.0, 0.0, "p: 0.00 ms")]
    assert one["chart"].bands == ((72.0, 872.0, "A1"),)


def test_a_timeline_of_nothing_is_one() -> None:
    made = timeline([], times=True)
    assert (made.data["total"], made.data["left_out"], made.data["groups"]) == (0, 0, None)
    assert "0 runs: from 0 to 0" in made.data["chart"].name


def test_the_first_runs_are_shown_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RUNS", 2)
    made = timeline([ran(5, 5)] * 3, times=False)
    assert (len(made.data["table"].rows), made.data["left_out"], made.data["total"]) == (2, 1, 3)


def test_the_largest_effects_are_named() -> None:
    runs = [ran(100 - at, 99 - at, f"p{at}") for at in range(8)] + [ran(92, 50, "big")]
    points = timeline(runs, times=False).data["chart"].points
    assert len(points) == 6
    assert points[-1].about == "big: 92 to 50 nodes"
    assert timeline([ran(5, 5)], times=False).data["chart"].points == ()


def test_rounds_are_bands_with_the_name_of_their_group() -> None:
    runs = [ran(5, 5), ran(5, 4, number=1), ran(4, 4, number=1), ran(4, 3, number=2), ran(3, 3)]
    bands = timeline(runs, times=False).data["chart"].bands
    assert [name for _, _, name in bands] == ["A1", "A2"]
    assert bands[0][1] == pytest.approx(2 * bands[1][1], abs=0.2)
    assert [row[2] for row in timeline(runs, times=False).data["table"].rows] == [
        None, "A1", "A1", "A2", None
    ]  # fmt: skip


def test_the_time_of_a_pass_is_without_those_that_it_needed() -> None:
    child = span("c", seconds=0.75, needed_by="p")
    made = span("p", child, seconds=1.0)
    (bar,) = timeline([TimelineRun(made, 0)], times=True).data["bars"]
    assert bar[3] == "p: 250.00 ms"
    (less,) = timeline([TimelineRun(span("p", child, seconds=0.5), 0)], times=True).data["bars"]
    assert less[3] == "p: 0.00 ms"


# --- each pass ------------------------------------------------------------------------------------


def rows(*runs: TimelineRun, times: bool = True) -> tuple[list[Any], list[Any]]:
    made = passes(list(runs), lambda text: text.replace("/data/me/", ""), times=times)
    return made.data["active"], made.data["idle"]


def test_runs_of_one_pass_are_one_row() -> None:
    rewrite = Rewrite(1, "p", "law", "g", "", (), (), (), 0.0)
    one = ran(9, 7, rewrites=[rewrite], changed=True, reason="why", seconds=0.001)
    two = ran(7, 8, rewrites=[rewrite] * 2, needed_by="q", seconds=0.002)
    (row,), idle = rows(one, two, TimelineRun(span("s", outcome="skipped"), 0))
    assert idle == []
    assert (row["runs"], row["rewrites"], row["nodes"]) == (2, 3, "-1 node")
    assert (row["time"], row["why"]) == ("3.00 ms", "why; required by q")
    assert rows(one, times=False)[0][0]["time"] == ""


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [(1, 1, ""), (1, 2, "+1 node"), (1, 3, "+2 nodes"), (3, 2, "-1 node")],
)
def test_the_effect_on_the_number_of_nodes_has_a_sign(before: int, after: int, text: str) -> None:
    (row,) = [*rows(ran(before, after, changed=True))[0]]
    assert row["nodes"] == text


@pytest.mark.parametrize(
    ("fields", "is_active"),
    [
        ({}, False),
        ({"changed": True}, True),
        ({"error": "died in /data/me/model.onnx"}, True),
        ({"found": (NodeNote("", "", "in /data/me/x", ""),)}, True),
        ({"missed": (NodeNote("", "", "m", "m"),)}, False),
    ],
)
def test_passes_with_news_are_active(fields: dict[str, Any], is_active: bool) -> None:
    active, idle = rows(ran(1, 1, **fields))
    assert (len(active), len(idle)) == (int(is_active), int(not is_active))
    for row in active:
        assert "/data/me" not in str(row)


@pytest.mark.parametrize(
    ("info", "level", "promise"),
    [
        ({"opt_level": 2}, "2", "exact"),
        ({"opt_level": None, "changes_interface": True}, "opt-in", "exact, interface"),
        ({"analysis": True}, "0", "changes nothing"),
        ({"numerics": Numerics.REASSOCIATING}, "0", "reassociating"),
    ],
)
def test_level_and_promise_of_a_pass(info: dict[str, Any], level: str, promise: str) -> None:
    _, (row,) = rows(ran(1, 1, law="a law", **info))
    assert (row["level"], row["promise"], row["law"]) == (level, promise, "a law")


def test_a_description_is_without_its_arguments() -> None:
    prose = "One\nline.\n\nAnother\nparagraph:\n  - a list\n\nArgs:\n    x: no.\n"
    assert reason_of(span(prose=prose)) == "One line.\n\nAnother paragraph:\n  - a list"
    assert reason_of(span(prose="Only.\n\nRaises:\n    E: no.")) == "Only."


# --- skipped and declined -------------------------------------------------------------------------


def test_skipped_passes_of_one_reason_are_a_group_from_three_on() -> None:
    runs = [
        TimelineRun(span(name, outcome="skipped", reason="level", law=f"law {name}"), 0)
        for name in "abc"
    ]
    runs += [TimelineRun(span(name, outcome="skipped", reason="other"), 0) for name in "de"]
    made = skipped([*runs, runs[0], ran(1, 1)])
    assert made is not None
    assert made.data["groups"] == {"level": {"a": "law a", "b": "law b", "c": "law c"}}
    assert made.data["single"] == [("d", "other", ""), ("e", "other", "")]
    assert made.data["total"] == 5
    assert skipped([ran(1, 1)]) is None


def declining(*notes: NodeNote, text: str = "p", rewritten: str = "") -> TimelineRun:
    made = span(text, missed=notes)
    if rewritten:
        state = NodeState(1, "Add", rewritten, (), ())
        made.rewrites.append(Rewrite(1, "p", "law", "g", "", (Change(state, None),), (), (), 0.0))
    return TimelineRun(made, 0)


def test_declined_nodes_are_grouped_by_pass_operator_and_reason() -> None:
    made = declined([
        declining(NodeNote("Add", "a", "3 is odd", "{} is odd"),
                  NodeNote("Add", "b", "5 is odd", "{} is odd"),
                  NodeNote("Mul", "c", "plain", "plain")),
        declining(NodeNote("Add", "d", "plain", "plain"), text="q"),
    ])  # fmt: skip
    assert made is not None
    by_pass = made.data["by_pass"]
    assert list(by_pass) == ["p", "q"]
    odd, plain = by_pass["p"]
    assert (odd["op"], odd["reason"], odd["count"]) == ("Add", "{} is odd", 2)
    assert odd["nodes"] == [("a", "3 is odd"), ("b", "5 is odd")]
    assert plain["nodes"] == [("c", "")]
    assert declined([ran(1, 1)]) is None


def test_one_reason_is_said_once() -> None:
    same = NodeNote("Add", "a", "3 is odd", "{} is odd")
    made = declined([declining(same, same._replace(label="b"))])
    assert made is not None
    (entry,) = made.data["by_pass"]["p"]
    assert (entry["reason"], entry["nodes"]) == ("3 is odd", [("a", ""), ("b", "")])


def test_a_node_that_was_rewritten_after_all_was_not_declined() -> None:
    note = NodeNote("Add", "a", "why", "why")
    assert declined([declining(note, rewritten="a")]) is None
    assert declined([declining(note, rewritten="b")]) is not None
    # By another pass.
    assert declined([declining(note), declining(text="q", rewritten="a")]) is not None


def test_names_of_declined_nodes_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [NodeNote("Add", f"n{at}", "why", "why") for at in range(5)]
    monkeypatch.setattr(module, "MOST_NAMES", 3)
    made = declined([declining(*notes)])
    assert made is not None
    (entry,) = made.data["by_pass"]["p"]
    assert (entry["count"], len(entry["nodes"])) == (5, 3)
    monkeypatch.setattr(module, "NAME_BUDGET", 4)
    made = declined([declining(*notes)])
    assert made is not None
    assert len(made.data["by_pass"]["p"][0]["nodes"]) == 2


def test_operators_that_changed_come_first() -> None:
    made = operators({"Add": 5, "Mul": 2, "Neg": 1, "Same": 9}, {"Add": 2, "Mul": 6, "Same": 9})
    assert [row[:3] for row in made.rows] == [
        ("Mul", 2, 6), ("Add", 5, 2), ("Neg", 1, 0), ("Same", 9, 9)
    ]  # fmt: skip
    assert [row[:3] for row in operators({}, {"New": 1}).rows] == [("New", 0, 1)]
