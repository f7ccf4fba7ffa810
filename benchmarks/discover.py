"""Which rules the pipeline lacks, and how far it converges: graphs of up to a few operators.

    python -m benchmarks.discover --state build/discovery --jobs 2

A line for each base and level: the members of classes of several graphs, by their number of
operators, the share that ends in a cheapest graph of its class, the share that ends with the fewest
nodes, and the share of classes that end in one form. Then the rules that are missing, those that
save nodes first. A run that was stopped goes on where it was. All of them, and the spellings of
equal cost in which classes end, are in `exceptions.md` beside the results.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import cyclopts

from tiered.extensions.discovery.grammar import BASES
from tiered.extensions.discovery.rule_convergence import (
    LEVELS,
    Missing,
    Spelling,
    Surveyed,
    survey,
    tasks_of,
)


def main(
    state: Path | None = None,
    jobs: int = 1,
    operators: int = 3,
    most: int = 30_000,
    seed: int = 0,
    levels: tuple[int, ...] = LEVELS,
    rows: int = 40,
    bases: tuple[str, ...] = (),
) -> None:
    """Print what was found.

    Args:
        state: a folder in which results are kept.
        jobs: processes.
        operators: the most operators of a graph.
        most: the most graphs of each number of operators, for each base.
        seed: which graphs are extended where there are more.
        levels: of the pipeline.
        rows: the rules that are printed for each level.
        bases: the names of the starts; all by default.
    """
    found: list[Surveyed] = []
    starts = [base for base in BASES if not bases or base.name in bases]
    tasks = tasks_of(starts, levels, operators=operators, most=most, seed=seed)
    for one, was_known in survey(tasks, state=None if state is None else str(state), jobs=jobs):
        found.append(one)
        print(f"-O{one.task.level} {one.task.base:9} {shares([one])}{' *' * was_known}", flush=True)
    for level in levels:
        of_level = [one for one in found if one.task.level == level]
        print(f"-O{level} {'all':9} {shares(of_level)}")
        for text in [text for each in of_level for text in each.failed][:rows]:
            print(f"  failed: {text}")
        for count, each in merged(of_level)[:rows]:
            saved = f"{each.nodes} nodes" if each.nodes > 0 else f"{each.moved} bytes"
            print(f"  {count:5}  {each.law}  ({saved}; {each.left}  =>  {each.best})")
    if state is not None:
        page = state / "exceptions.md"
        page.write_text(exceptions(found), encoding="utf-8")
        print(f"all of them, and all spellings: {page}")


def exceptions(found: list[Surveyed]) -> str:
    """Return a page of all classes that do not end in one cheapest form, in Markdown."""
    lines = ["# Where the pipeline does not converge"]
    for level in sorted({one.task.level for one in found}):
        of_level = [one for one in found if one.task.level == level]
        starts = ", ".join(one.task.base for one in of_level)
        lines += ["", f"## -O{level}: {starts}", "", shares(of_level), ""]
        rules = merged(of_level)
        lines += [f"{len(rules):,} rules that are missing:", ""]
        lines += [
            "| members | nodes | bytes | left | cheapest | may vary |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {count} | {each.nodes} | {each.moved} | `{each.left}` | `{each.best}` "
            f"| {', '.join(each.varies)} |"
            for count, each in rules
        ]
        pairs = spellings(of_level)
        lines += ["", f"{len(pairs):,} pairs of spellings of equal cost:", ""]
        lines += ["| classes | one form | another |", "|---|---|---|"]
        lines += [f"| {each.count} | `{each.one}` | `{each.other}` |" for each in pairs]
    return "\n".join([*lines, ""])


def spellings(found: list[Surveyed]) -> list[Spelling]:
    """Return the spellings of several tasks, most frequent first."""
    merged: dict[str, Spelling] = {}
    for each in (each for one in found for each in one.spellings):
        known = merged.setdefault(each.law, Spelling(each.law, 0, each.one, each.other))
        known.count += each.count
    return sorted(merged.values(), key=lambda each: (-each.count, each.law))


def shares(found: list[Surveyed]) -> str:
    """Return the shares of several tasks together."""
    members, cheapest, fewest = (
        sum((Counter(getattr(each, name)) for each in found), Counter[int]())
        for name in ("members", "cheapest", "fewest")
    )
    total = sum(members.values())
    parts = [f"{n}: {cheapest[n] / members[n]:.1%} of {members[n]:,}" for n in sorted(members)]
    classes = sum(each.classes for each in found)
    return (
        f"cheapest {sum(cheapest.values()) / max(total, 1):.2%} of {total:,} "
        f"({', '.join(parts)}), fewest nodes {sum(fewest.values()) / max(total, 1):.2%}, one form "
        f"{sum(each.confluent for each in found) / max(classes, 1):.1%} of {classes:,} classes"
    )


def merged(found: list[Surveyed]) -> list[tuple[int, Missing]]:
    """Return the rules of several tasks with how often they occurred."""
    counts: Counter[str] = Counter()
    first: dict[str, Missing] = {}
    for one in found:
        for each in one.missing:
            counts[each.law] += each.count
            known = first.setdefault(each.law, each)
            if len(each.left) < len(known.left):
                first[each.law] = each
    order = sorted(first.values(), key=lambda each: (each.nodes <= 0, -counts[each.law], each.law))
    return [(counts[each.law], each) for each in order]


if __name__ == "__main__":
    cyclopts.run(main)
