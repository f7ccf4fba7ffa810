"""Matching and rewriting: `python -m benchmarks.rewrite --help`.

Every fusion of the registry is matched over whole models, and so is the equivalent rule by
onnxscript's rewriter where that is installed: the same models, in one process, in turns. Neither
rewrites anything. Then chains of nodes that collapse entirely, of n and of 2 n nodes. All times are
medians of processor time, without the garbage collector.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import cyclopts
import onnx
from onnx import helper
from rich.console import Console
from rich.table import Column, Table

from tiered import Graph, Model, Pass, Skip, Value, get_registered_passes, op, rewrite, var
from tiered.rewriter import Match, Pattern
from tiered.rewriter.driver import apply_rule
from tiered.rewriter.pattern import Chain, OpPattern
from tiered.rewriter.rule import Rule
from tiered.support.loading import paused_collector

MATCHING_LIMIT = 0.1
"""What matching may take, relative to onnxscript's rewriter."""
CHAIN_LIMIT = 2.6
"""What a chain may take, relative to one of half its length."""

_DECLINED = Skip("only looking")

_console = Console()


class Look(NamedTuple):
    """What it takes to look for one pattern in one model, and how often it is there."""

    matches: int
    seconds: float


class Row(NamedTuple):
    """One fusion on one model: its name, the operators of its pattern, and what each found."""

    name: str
    operators: int
    ours: Look
    theirs: Look | None

    @property
    def ratio(self) -> float:
        """How long ours takes, relative to theirs; 0 where they have no such rule."""
        return self.ours.seconds / self.theirs.seconds if self.theirs else 0.0


@rewrite(op.Neg(op.Neg(var.x)), opt_level=None)
def cancel_negations(graph: Graph, x: Value) -> Value:
    """Drop two negations at once."""
    return x


# --- matching -------------------------------------------------------------------------------------


def fusions() -> dict[str, Rule]:
    """Return the rules of all passes that fuse by a pattern."""
    found = sorted(get_registered_passes().items())
    return {
        name: rule
        for name, pass_ in found
        if name.startswith("fuse_") and isinstance(rule := getattr(pass_, "rule", None), Rule)
    }


def matching(proto: onnx.ModelProto, rounds: int) -> list[Row]:
    """Measure every fusion over one model, ours and onnxscript's in turns."""
    model, peer = Model.from_proto(proto), _Peer(proto) if _has_peer() else None
    rows = []
    for name, rule in fusions().items():
        looks: list[Callable[[], int]] = [partial(count_matches, rule, model)]
        if peer and (theirs := peer.matcher(rule.pattern)):
            looks.append(theirs)
        ours, *others = in_turns(looks, rounds)
        rows.append(Row(name, operators(rule.pattern), ours, others[0] if others else None))
    return rows


def in_turns(looks: Sequence[Callable[[], int]], rounds: int) -> list[Look]:
    """Return what each one finds, and the median of the seconds that it takes."""
    # The first look compiles patterns and fills caches.
    matches = [look() for look in looks]
    times: list[list[float]] = [[] for _ in looks]
    for _ in range(rounds):
        for look, taken in zip(looks, times, strict=True):
            started = time.process_time()
            look()
            taken.append(time.process_time() - started)
    return [Look(*found) for found in zip(matches, map(statistics.median, times), strict=True)]


def count_matches(rule: Rule, model: Model) -> int:
    """Return how often the driver matches a rule, all guards held, in its first look at a model."""
    found = 0

    def accept(match: Match) -> Skip:
        nonlocal found
        found += 1
        return _DECLINED

    apply_rule(rule, model, {}, accept=accept)
    return found


def operators(pattern: Pattern) -> int:
    """Return how many operators a pattern has."""
    return len({id(part) for part in pattern.walk() if isinstance(part, OpPattern | Chain)})


class _Peer:
    """onnxscript's view of a model."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        import onnx_ir
        import onnxscript.optimizer

        self.model: Any = onnx_ir.serde.deserialize_model(proto)
        # Its rewriter does so each time, before it begins; here it is done once.
        onnxscript.optimizer.basic_constant_propagation(self.model.graph)
        self.opset = next(o.version for o in proto.opset_import if o.domain in ("", "ai.onnx"))

    def matcher(self, pattern: Pattern) -> Callable[[], int] | None:
        """Return what counts the matches of a pattern, or None where there is no such rule."""
        from benchmarks.onnxscript_rules import Inexpressible, matches, rules_of

        try:
            rules = rules_of(pattern, self.opset)
        except Inexpressible:
            return None
        return lambda: matches(rules, self.model)


def _has_peer() -> bool:
    return importlib.util.find_spec("onnxscript") is not None


# --- collapsing -----------------------------------------------------------------------------------


def chain(op_type: str, nodes: int) -> Model:
    """Return a model that is one chain of nodes."""
    made = [
        helper.make_node(op_type, [f"v{at}"], [f"v{at + 1}"], name=f"n{at}") for at in range(nodes)
    ]
    ends = [helper.make_tensor_value_info(f"v{at}", 1, [2]) for at in (0, nodes)]
    graph = helper.make_graph(made, "chain", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 21)]
    return Model.from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=10))


CHAINS: dict[str, tuple[str, Pass | str]] = {
    "Identity(x) => x": ("Identity", "eliminate_identity"),
    "Relu(Relu(x)) => Relu(x)": ("Relu", "eliminate_idempotent"),
    "Neg(Neg(x)) => x": ("Neg", cancel_negations),
}
"""Laws that leave one node of a chain, and what the chain consists of."""


def collapsing(law: str, nodes: int, rounds: int) -> float:
    """Return the median seconds in which a chain becomes one node."""
    op_type, named = CHAINS[law]
    pass_ = get_registered_passes()[named] if isinstance(named, str) else named
    times = []
    for _ in range(rounds):
        model = chain(op_type, nodes)
        started = time.process_time()
        pass_.apply(model)
        times.append(time.process_time() - started)
        assert len(model.main) == 1
    return statistics.median(times)


# --- the command ----------------------------------------------------------------------------------


def main(
    *,
    models: Annotated[Path, cyclopts.Parameter(help="a folder of models")] = Path(
        "examples/models"
    ),
    nodes: Annotated[int, cyclopts.Parameter(help="of the longest chain")] = 20_000,
    rounds: Annotated[int, cyclopts.Parameter(help="of each measurement")] = 7,
    check: Annotated[bool, cyclopts.Parameter(help="fail where a limit is not met")] = False,
) -> None:
    """Measure matching beside onnxscript's rewriter, and chains that collapse."""
    over = []
    with paused_collector():
        for file in sorted(models.glob("*.onnx")):
            rows = matching(onnx.load(file, load_external_data=False), rounds)
            _print_matching(file.stem, rows)
            over += [f"{file.stem} {r.name}" for r in rows if r.ratio > MATCHING_LIMIT]
        over += [law for law, ratio in _chains(nodes, rounds).items() if ratio > CHAIN_LIMIT]
    if check and over:
        sys.exit(f"over the limit: {', '.join(over)}")


def _print_matching(title: str, rows: list[Row]) -> None:
    table = Table(Column("pattern", min_width=32), "operators", "matches", "ms", title=title)
    for header in ("onnxscript: matches", "ms", "ratio"):
        table.add_column(header)
    for row in rows:
        cells = [row.name, str(row.operators), str(row.ours.matches), _ms(row.ours.seconds)]
        if row.theirs:
            cells += [str(row.theirs.matches), _ms(row.theirs.seconds), f"{row.ratio:.4f}"]
        table.add_row(*cells)
    both = [(row.ours.seconds, row.theirs.seconds) for row in rows if row.theirs]
    if both:
        ours, theirs = map(sum, zip(*both, strict=True))
        table.add_row("all", "", "", _ms(ours), "", _ms(theirs), f"{ours / theirs:.4f}")
    _console.print(table)


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3f}"


def _chains(nodes: int, rounds: int) -> dict[str, float]:
    ratios = {}
    table = Table("law", f"{nodes // 2} nodes, s", f"{nodes} nodes, s", "ratio", title="chains")
    for law in CHAINS:
        half, whole = (collapsing(law, count, rounds) for count in (nodes // 2, nodes))
        ratios[law] = whole / half
        table.add_row(law, f"{half:.3f}", f"{whole:.3f}", f"{ratios[law]:.2f}")
    _console.print(table)
    return ratios


if __name__ == "__main__":
    cyclopts.run(main)
