"""A trace as a file: JSON lines, and the Trace Event Format."""

import json
from pathlib import Path
from typing import Any

from tests.small import drop_neg, fuse_relu, keep_abs, model
from tiered import (
    PassContext,
    Sequential,
)
from tiered.passes.interface.pass_info import NodeNote, PassInfo
from tiered.pipeline.instruments import Trace
from tiered.pipeline.instruments.tracing.changes import Change, NodeState
from tiered.pipeline.instruments.tracing.events import Rewrite, Span
from tiered.pipeline.instruments.tracing.trace_file import chrome, json_lines

PIPELINE = Sequential([fuse_relu, drop_neg, keep_abs], name="two")


def traced(pass_: Any = PIPELINE, **settings: Any) -> Trace:
    trace = Trace()
    with PassContext(instruments=[trace], **settings):
        pass_(model())
    return trace


def test_json_lines_hold_all_of_it(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    traced().save(file)
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    assert [entry["event"] for entry in entries] == ["pass", "pass", "rewrite", "pass", "pass"]
    whole, fused, made, dropped, kept = entries
    assert [entry.get("parent") for entry in (whole, fused, dropped, kept)] == [None, 1, 1, 1]
    assert made["pass"] == fused["id"]
    assert [c["after"] and c["after"]["name"] for c in made["changes"]] == [None, None, "node_b"]
    assert dropped["outcome"] == "skipped"
    assert kept["missed"][0]["reason"] == "it is Abs after all"


def test_the_chrome_form_nests_by_time(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    traced().save(file)
    events = json.loads(file.read_text())["traceEvents"]
    whole, fused, made, skipped, _ = events
    assert [event["ph"] for event in events] == ["X", "X", "i", "i", "X"]
    assert whole["ts"] <= fused["ts"] <= made["ts"] <= fused["ts"] + fused["dur"]
    assert fused["ts"] + fused["dur"] <= whole["ts"] + whole["dur"]
    assert skipped["name"] == "skipped drop_neg"


STATE = NodeState(7, "Relu", "n", ("x", ""), ("y",))
REWRITE = Rewrite(
    3, "p", "law", "g", "n", (Change(None, STATE), Change(STATE, None)), ("w",), ("v", "u"), 0.5,
    undone=True,
)  # fmt: skip
NOTE = NodeNote("Add", "a", "3 is odd", "{} is odd")


def spans() -> list[Span]:
    inner = Span(
        PassInfo("p", kind="rewrite", opt_level=2), "m.onnx", 4, 0.25, "p{k=1}", 0.5, "failed",
        "why", "q", "error", undone=True, changed=True, edits=9, nodes_before=5, nodes_after=4,
        rewrites=[REWRITE], missed=(NOTE,), found=(NodeNote("", "", "seen", "seen"),),
    )  # fmt: skip
    skipped = Span(
        PassInfo("s", opt_level=None), "m.onnx", 4, 0.75, "s", outcome="skipped", reason="no"
    )
    whole = Span(PassInfo("all", kind="pipeline"), "m.onnx", 4, 0.0, "all", 1.0, "ran")
    whole.children += [inner, skipped]
    return [whole]


def test_a_line_has_all_of_a_pass_and_all_of_a_rewrite() -> None:
    whole, inner, made, skipped = (json.loads(line) for line in json_lines(spans()))
    assert (whole["id"], whole["parent"]) == (1, None)
    assert inner == {
        "event": "pass", "id": 2, "parent": 1, "name": "p", "text": "p{k=1}", "kind": "rewrite",
        "opt_level": 2, "model": "m.onnx", "started": 0.25, "seconds": 0.5, "outcome": "failed",
        "reason": "why", "needed_by": "q", "error": "error", "undone": True, "changed": True,
        "edits": 9, "nodes": [5, 4],
        "missed": [{"op": "Add", "node": "a", "reason": "3 is odd"}],
        "found": [{"op": "", "node": "", "reason": "seen"}],
    }  # fmt: skip
    node = {"id": 7, "op": "Relu", "name": "n", "inputs": ["x", ""], "outputs": ["y"]}
    assert made == {
        "event": "rewrite", "pass": 2, "number": 3, "law": "law", "graph": "g", "anchor": "n",
        "at": 0.5, "undone": True,
        "changes": [{"before": None, "after": node}, {"before": node, "after": None}],
        "added": ["w"], "removed": ["v", "u"],
    }  # fmt: skip
    assert (skipped["id"], skipped["parent"], skipped["opt_level"]) == (3, 1, None)


def test_events_are_in_microseconds_and_by_model() -> None:
    text = "".join(chrome(spans()))
    whole, inner, made, skipped = json.loads(text)["traceEvents"]
    assert (whole["ph"], whole["ts"], whole["dur"], whole["tid"]) == ("X", 0.0, 1e6, 4)
    assert (inner["name"], inner["cat"], inner["ts"], inner["dur"]) == ("p", "rewrite", 2.5e5, 5e5)
    assert (inner["args"]["rewrites"], inner["args"]["declined"]) == (1, 1)
    assert not {"name", "started", "seconds", "missed", "found"} & set(inner["args"])
    assert inner["args"]["outcome"] == "failed"
    assert (made["name"], made["cat"], made["ph"], made["ts"]) == ("#3 law", "rewrite", "i", 5e5)
    shown = '[n] y = Relu (x, "")'
    assert made["args"] == {"anchor": "n", "before": [shown], "after": [shown]}
    assert (skipped["name"], skipped["cat"], skipped["args"]) == (
        "skipped s", "skip", {"reason": "no"}
    )  # fmt: skip
    assert json.loads("".join(chrome([]))) == {"displayTimeUnit": "ms", "traceEvents": []}
    assert list(json_lines([])) == []


def test_numbers_go_on_from_one_span_to_the_next() -> None:
    ids = [json.loads(line).get("id") for line in json_lines([*spans(), *spans()])]
    assert [number for number in ids if number] == [1, 2, 3, 4, 5, 6]
