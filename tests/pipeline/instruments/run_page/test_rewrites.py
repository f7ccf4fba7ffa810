"""The rewrites of a run as compact data for the script of the page."""

from typing import Any

import pytest

from tests.small import parsed
from tiered.graph import TensorType
from tiered.pipeline.instruments.run_page import rewrites as module
from tiered.pipeline.instruments.run_page.rewrites import OF_RUN, rewrites_data
from tiered.pipeline.instruments.tracing.changes import Change, NodeState
from tiered.pipeline.instruments.tracing.events import Rewrite
from tiered.pipeline.instruments.tracing.surroundings import Surroundings, ValueState


def state(number: int, name: str, inputs: str = "x", op_type: str = "Relu") -> NodeState:
    return NodeState(number, op_type, name, tuple(inputs), (name,))


FLOATS = TensorType(1, (2,))
A, B, N = state(1, "a"), state(2, "b", "a"), state(3, "n")


def rewrite(
    *changes: tuple[NodeState | None, NodeState | None],
    near: tuple[NodeState, ...] = (),
    values: dict[str, ValueState] | None = None,
    number: int = 1,
    **fields: Any,
) -> Rewrite:
    both = tuple(Change(*each) for each in changes)
    around = Surroundings(near, values or {})
    made = {"added": (), "removed": (), "at": 0.0, **fields}
    return Rewrite(number, "fuse", "law", "g", "b", both, around=around, **made)


def data_of(*rewrites: Rewrite, **more: Any) -> dict[str, Any]:
    return rewrites_data(rewrites, more.pop("reasons", {}), **more)


def diagram(data: dict[str, Any], items: list[Any]) -> list[tuple[int, str]]:
    """Return the kind of each item, with the name of its node or value."""
    strings, states = data["strings"], data["states"]
    return [
        (kind, strings[number] if kind == 3 else strings[states[number][2]])
        for kind, number, _, _ in items
    ]


def test_nodes_and_names_are_written_once() -> None:
    data = data_of(rewrite((A, None), (B, None), (None, N)), rewrite((A, None), number=2))
    assert len(data["states"]) == 3
    assert len(set(data["strings"])) == len(data["strings"])
    assert [row[0] for row in data["rewrites"]] == [1, 2]
    assert data["total"] == 2
    strings = data["strings"]
    first = data["rewrites"][0]
    assert [strings[at] for at in first[1:5]] == ["fuse", "law", "g", "b"]
    row = data["states"][0]
    assert (row[0], strings[row[1]], strings[row[2]]) == (1, "Relu", "a")
    assert [strings[at] for at in row[3]] == ["x"]


def test_each_side_has_its_nodes_and_the_values_at_its_border() -> None:
    data = data_of(rewrite((A, None), (B, None), (None, N)))
    before, after = data["rewrites"][0][6:8]
    assert diagram(data, before) == [(2, "a"), (2, "b"), (3, "x"), (3, "b")]
    assert diagram(data, after) == [(2, "n"), (3, "x"), (3, "n")]
    # From x down: layers grow.
    layers = {name: item[2] for item, (_, name) in zip(before, diagram(data, before), strict=True)}
    assert layers["x"] < layers["a"]


CLIP = NodeState(4, "Clip", "c", ("a", "", "h"), ("b", "", "c"))
ALL = rewrite(
    (A, None),
    (CLIP, CLIP._replace(inputs=("n", "", "h"))),
    (None, N._replace(inputs=("x", "w"))),
    near=(state(7, "next", "bn"), state(8, "far", "q"), state(9, "x", "i")),
    values={"x": ValueState(FLOATS, False)},
    added=("w",),
    number=5,
)  # fmt: skip


def test_all_of_a_rewrite() -> None:
    data = data_of(ALL, proofs={5: "by cases"})
    words = "Relu a x Clip c h b next n i w fuse law g float[2]"
    before = [(2, 0, 1, 0), (1, 1, 2, 0), (0, 2, 3, 0), (0, 3, 0, 0), (3, 5, 1, 1), (3, 4, 3, 1)]
    after = [
        *[(1, 4, 2, 0), (2, 5, 1, 0), (0, 2, 3, 0), (0, 3, 0, 0), (3, 5, 1, 1), (3, 4, 3, 1)],
        (3, 10, 0, 1),
    ]
    assert data == {
        "strings": words.split(),
        "states": [
            [1, 0, 1, [2], [1]],
            [4, 3, 4, [1, -1, 5], [6, -1, 4]],
            [7, 0, 7, [6, 8], [7]],
            [9, 0, 2, [9], [2]],
            [4, 3, 4, [8, -1, 5], [6, -1, 4]],
            [3, 0, 8, [2, 10], [8]],
        ],
        "types": {"2": 14},
        "rewrites": [[5, 11, 12, 13, 6, 0, before, after, 0, {}, [10], []]],
        "reasons": {},
        "proofs": {"5": "by cases"},
        "nodes": [],
        "total": 1,
    }


def test_sizes_are_counted_in_bytes() -> None:
    encoder = module._Encoder()
    assert [encoder.string(name) for name in ("ab", "ab", "c")] == [0, 0, 1]
    assert encoder.size == len('"ab","c",')
    encoder.state(NodeState(3, "c", "ab", ("ab", ""), ()))
    assert encoder.size == len('"ab","c",[3,1,0,[0,-1],[]],')


def test_a_changed_node_is_no_new_one_and_untouched_ones_are_beside() -> None:
    near = (state(7, "next", "b"), state(8, "far", "q"))
    data = data_of(rewrite((B, B._replace(inputs=("x",))), (A, None), near=near))
    before, after = data["rewrites"][0][6:8]
    assert [kind for kind, _ in diagram(data, before)][:3] == [1, 2, 0]
    assert diagram(data, after)[:2] == [(1, "b"), (0, "next")]
    assert "far" not in [name for _, name in (*diagram(data, before), *diagram(data, after))]


def test_a_side_without_nodes_shows_the_neighbours_of_the_other() -> None:
    near = (state(7, "next", "a"),)
    data = data_of(rewrite((A, None), near=near))
    assert diagram(data, data["rewrites"][0][7]) == [(0, "next"), (3, "a")]


def test_absent_operands_have_no_name() -> None:
    clip = NodeState(1, "Clip", "c", ("x", "", "h"), ("y", ""))
    data = data_of(rewrite((clip, None)))
    row = data["states"][0]
    assert row[3][1] == row[4][1] == -1
    assert -1 not in (row[3][0], row[3][2], row[4][0])


def test_types_that_differ_from_those_on_record_are_beside_the_rewrite() -> None:
    one = rewrite((A, None), values={"x": ValueState(FLOATS, True), "y": ValueState(None, False)})
    two = rewrite((A, None), number=2, values={"x": ValueState(FLOATS, False)})
    data = data_of(one, two, rewrite((A, None), number=3, values=one.around.values))
    strings = data["strings"]
    types = {strings[int(value)]: strings[kind] for value, kind in data["types"].items()}
    assert types == {"x": "float[2] const"}
    others = [row[9] for row in data["rewrites"]]
    assert (others[0], others[2]) == ({}, {})
    assert [strings[kind] for kind in others[1].values()] == ["float[2]"]


def test_constants_undone_rewrites_reasons_and_proofs() -> None:
    made = rewrite((A, None), added=("w",), removed=("v", "u"), undone=True)
    data = data_of(
        made, rewrite((A, None), number=2), reasons={"fuse": "because", "other": "no"},
        proofs={1: "bit for bit", 9: "no"},
    )  # fmt: skip
    first, second = data["rewrites"]
    assert (first[5], second[5]) == (1, 0)
    assert [data["strings"][at] for at in first[10]] == ["w"]
    assert [data["strings"][at] for at in first[11]] == ["v", "u"]
    assert data["reasons"] == {"fuse": "because"}
    assert data["proofs"] == {"1": "bit for bit"}
    assert data_of(made)["proofs"] == {}


def test_large_rewrites_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NODES", 2)
    monkeypatch.setattr(module, "MOST_NEAR", 1)
    monkeypatch.setattr(module, "MOST_INPUTS", 1)
    olds = [(state(at, f"n{at}", "xy"), None) for at in range(5)]
    near = (state(8, "p", "x"), state(9, "q", "x"))
    data = data_of(rewrite(*olds, near=near, added=("a", "b", "c")))
    (row,) = data["rewrites"]
    nodes = [entry for entry in diagram(data, row[6]) if entry[0] != 3]
    assert nodes == [(2, "n0"), (2, "n1"), (0, "p")]
    assert row[8] == 3
    assert len(row[10]) == 2
    assert len(data["states"][0][3]) == 1


def test_beyond_the_budget_rewrites_are_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUDGET", 1)
    data = data_of(*(rewrite((A, None), number=number) for number in (1, 2, 3)))
    assert [row[0] for row in data["rewrites"]] == [1]
    assert data["total"] == 3


def test_nodes_of_the_result_that_no_rewrite_touched_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = parsed("(float[2] x) => (float[2] y) { a = Neg(x)  y = com.microsoft.Gelu(a) }")
    first, second = model.main.topological_order()
    touched = NodeState(first.id, "Neg", "a", ("x",), ("a",))
    data = rewrites_data([rewrite((None, touched))], {}, model)
    ((number, op_type, name),) = data["nodes"]
    assert number == second.id
    assert data["strings"][op_type] == "com.microsoft::Gelu"
    assert data["strings"][name] == second.label
    assert data_of(rewrite((A, None)))["nodes"] == []
    monkeypatch.setattr(module, "NODE_BUDGET", 0)
    assert rewrites_data([], {}, model)["nodes"] == []


def test_the_section_of_rewrites_has_the_words_of_the_page() -> None:
    section = OF_RUN.section("Rewrites", 7)
    assert (section.data["total"], section.data["unit"]) == (7, "rewrite")
    assert section.data["none"] == "The run made no rewrite."
