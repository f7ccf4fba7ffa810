"""Blocks: which rewrites are of one block, whatever the names are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tiered.extensions.tuning.blocks import block_of, blocks_of, joined
from tiered.pipeline.instruments.tracing.changes import Change, NodeState
from tiered.pipeline.instruments.tracing.events import Rewrite
from tiered.pipeline.instruments.tracing.surroundings import Surroundings


def rewrite(*nodes: str, law: str = "gelu", constant: str = "", **types: str) -> Rewrite:
    """Return a rewrite of nodes such as "Add a,b y"; values of no given type are float[4]."""
    states, names = list[NodeState](), dict[str, Any]()
    for node in nodes:
        kind, inputs, outputs = (each.split(",") for each in node.split(" "))
        number = int(kind[1]) if len(kind) > 1 else len(states)
        states.append(NodeState(number, kind[0], "n", (*inputs,), (*outputs,)))
        for name in filter(None, [*inputs, *outputs]):
            type_ = types.get(name, "float[4]")
            names[name] = SimpleNamespace(type=type_, is_constant=name == constant)
    changes = tuple(Change(state, None) for state in states)
    around = Surroundings((), {name: value for name, value in names.items() if name != "far"})
    return Rewrite(0, "fuse", law, "main", nodes[0], changes, (), (), 0.0, around=around)


def test_which_rewrites_are_of_one_block() -> None:
    base = ("Mul a,b y", "Add y,c z")
    block = block_of(rewrite(*base))
    for same in (
        rewrite("Mul p,q r", "Add r,s t"), rewrite("Add,7 y,c z", "Mul,3 a,b y"),
    ):  # fmt: skip
        assert block_of(same) == block
    others = [
        rewrite("Mul b,b y", "Add y,c z"), rewrite("Mul a,b y", "Add c,y z"),
        rewrite("Mul a,b y", "Add y,a z"), rewrite("Mul a,b y", "Sub y,c z"),
        rewrite("Mul a,b y"), rewrite(*base, law="other"), rewrite(*base, a="float[5]"),
        rewrite(*base, z="double[4]"), rewrite(*base, constant="b"), rewrite(*base, constant="c"),
        rewrite("Mul a,b y", "Add y, z"), rewrite("Mul a,b y", "Add y,far z"),
        rewrite("Mul ,b y", "Add y, z"), rewrite("Mul far,b y", "Add y,far z"),
        rewrite("Mul far,b y", "Add y,b z"), rewrite("Mul a,b far"), rewrite("Mul a,b "),
    ]  # fmt: skip
    assert len({block, *map(block_of, others)}) == 1 + len(others)


def test_blocks_of_passes_have_the_anchors_of_what_is_not_undone() -> None:
    one, two, other = rewrite("Mul a,b y"), rewrite("Mul c,d z"), rewrite("Mul c,c z")
    undone = rewrite("Mul e,f w")
    undone.undone = True
    late = rewrite("Mul g,h v")
    late.pass_name = "drop"
    trace: Any = SimpleNamespace(rewrites=[one, other, undone, two, late])
    block, second = block_of(one), block_of(other)
    assert blocks_of(trace) == {
        "fuse": {block: ("Mul a,b y", "Mul c,d z"), second: ("Mul c,c z",)},
        "drop": {block: ("Mul g,h v",)},
    }
    assert joined(["b", "a", "b"]) == ("a", "b")
