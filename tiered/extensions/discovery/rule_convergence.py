"""The whole enumeration as the judge of the pipeline: missing rules, and how far it converges.

A task is a base at a level. The result of each task is a file in the folder of the state, so that a
run that was stopped goes on with the next task. Nothing depends on the machine or on the order of
tasks.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from tiered.extensions.discovery.enumeration import Class, enumerated
from tiered.extensions.discovery.expressions import GrammarExpr
from tiered.extensions.discovery.grammar import BASES, Base
from tiered.extensions.discovery.judging import Judged, PipelineJudge
from tiered.extensions.discovery.laws import canonical, law_of
from tiered.extensions.discovery.meaning import domain_at
from tiered.extensions.discovery.neighbours import reach
from tiered.support.errors import ModelError
from tiered.support.whole_files import write_json

LEVELS: Final = (2, 3)
MOST_REACHED: Final = 40
"""The rules of each task whose reach is tried."""


@dataclass(frozen=True)
class ConvergenceTask:
    """A base at a level.

    Attributes:
        base: its name.
        level: of the pipeline; equal means the same bits below 3, and over the reals from 3.
        operators: the most operators of a graph.
        most: the most graphs of each number of operators above 1.
        seed: which graphs are extended, if these are not all.
    """

    base: str
    level: int
    operators: int = 2
    most: int = 20_000
    seed: int = 0

    @property
    def file(self) -> str:
        return f"{self.base}-{self.level}-{self.operators}-{self.most}-{self.seed}.json"


@dataclass
class Missing:
    """A rule that the pipeline lacks.

    Attributes:
        law: both sides without their constants.
        count: how many members end so.
        nodes: how many nodes fewer the cheapest graph of the smallest instance has.
        moved: how many bytes fewer it moves.
        member, left, best: the smallest instance, what the pipeline leaves, and the cheapest.
        varies: what may be something else.
    """

    law: str
    count: int
    nodes: int
    moved: int
    member: str
    left: str
    best: str
    varies: list[str] = field(default_factory=list)


@dataclass
class Spelling:
    """Two forms of equal cost in which the members of one class end.

    Attributes:
        law: both without their constants.
        count: how many classes end so.
        one, other: the forms of the first of these classes.
    """

    law: str
    count: int
    one: str
    other: str


@dataclass
class Surveyed:
    """What was found of a task.

    Attributes:
        task: which one.
        members: the graphs in classes of several, by their number of operators.
        cheapest: how many of them end in a cheapest graph of their class.
        fewest: how many end with the fewest nodes.
        classes: the number of classes of several graphs.
        confluent: how many of these end in one form, up to the order of commutative operands.
        failed: errors of the pipeline.
        missing: rules, those that save nodes first, then the most frequent ones.
        spellings: of classes that end in several forms which are all cheapest, most frequent first.
    """

    task: ConvergenceTask
    members: dict[int, int] = field(default_factory=dict)
    cheapest: dict[int, int] = field(default_factory=dict)
    fewest: dict[int, int] = field(default_factory=dict)
    classes: int = 0
    confluent: int = 0
    failed: list[str] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    spellings: list[Spelling] = field(default_factory=list)


def surveyed(task: ConvergenceTask) -> Surveyed:
    """Return what the pipeline makes of all graphs of a task."""
    base = next(each for each in BASES if each.name == task.base)
    domain = domain_at(task.level)
    made = enumerated(base, domain, task.operators, most=task.most, seed=task.seed)
    pairs = [(number, *pair) for number, pair in enumerate(made.members())]
    judge = PipelineJudge(made.meaning.table, task.level)
    found = Surveyed(task)
    forms: dict[int, dict[int, GrammarExpr]] = defaultdict(dict)
    short: dict[str, list[tuple[GrammarExpr, GrammarExpr, GrammarExpr]]] = defaultdict(list)
    judged = judge.judged([member for _, _, member in pairs])
    for (_, group, member), result in zip(pairs, judged, strict=True):
        final = _settled(judge, group, result)
        count = len(member.nodes())
        found.members[count] = found.members.get(count, 0) + 1
        if final.form is None:
            found.failed.append(f"{member}: {final.error}")
            continue
        form = canonical(made.meaning.table, final.form)
        forms[id(group)][form.number] = form
        left, best = final.form.cost, group.best.cost
        found.fewest[count] = found.fewest.get(count, 0) + (left[0] <= best[0])
        found.cheapest[count] = found.cheapest.get(count, 0) + (left <= best)
        if left > best:
            short[law_of(final.form, group.best)].append((member, final.form, group.best))
    found.classes = len(forms)
    found.confluent = sum(len(each) == 1 for each in forms.values())
    found.spellings = _spellings(forms.values())
    found.missing = sorted(
        (_missing(law, cases) for law, cases in short.items()),
        key=lambda each: (each.nodes <= 0, -each.count, each.law),
    )
    smallest = {law: min(cases, key=_size) for law, cases in short.items()}
    for each in found.missing[:MOST_REACHED]:
        _, left_, best_ = smallest[each.law]
        each.varies = reach(left_, best_, task.level, domain)
    return found


def _settled(judge: PipelineJudge, group: Class, result: Judged) -> Judged:
    """Return a result, of a model of its own if it was not the cheapest among others.

    Graphs of one model share constants, and some passes leave a constant with other consumers.
    """
    if result.form is not None and result.form.cost <= group.best.cost:
        return result
    return judge.alone(result.member)


def _size(case: tuple[GrammarExpr, GrammarExpr, GrammarExpr]) -> tuple[int, int, int]:
    member, left, _ = case
    return (*left.cost, len(str(member)))


def _missing(law: str, cases: Sequence[tuple[GrammarExpr, GrammarExpr, GrammarExpr]]) -> Missing:
    member, left, best = min(cases, key=_size)
    nodes, moved = (one - other for one, other in zip(left.cost, best.cost, strict=True))
    return Missing(law, len(cases), nodes, moved, str(member), str(left), str(best))


def _spellings(classes: Iterable[Mapping[int, GrammarExpr]]) -> list[Spelling]:
    """Return in which two forms classes end, of those whose forms all have one cost."""
    found: dict[str, Spelling] = {}
    for forms in classes:
        one, *others = forms.values()
        if others and all(each.cost == one.cost for each in others):
            law = law_of(one, others[0])
            known = found.setdefault(law, Spelling(law, 0, str(one), str(others[0])))
            known.count += 1
    return sorted(found.values(), key=lambda each: (-each.count, each.law))


def survey(
    tasks: Iterable[ConvergenceTask], *, state: str | None = None, jobs: int = 1
) -> Iterator[tuple[Surveyed, bool]]:
    """Yield what was found of each task in order, and whether it was known already.

    Args:
        tasks: what to do.
        state: a folder for the results, which are taken from there if they are known.
        jobs: processes.
    """
    if state is not None:
        os.makedirs(state, exist_ok=True)
    waiting = [(task, _known(task, state)) for task in tasks]
    todo = [task for task, known in waiting if known is None]
    if jobs > 1 and len(todo) > 1:
        with ProcessPoolExecutor(jobs) as pool:
            results = pool.map(_done, todo, [state] * len(todo))
            for _, known in waiting:
                yield (next(results), False) if known is None else (known, True)
        return
    for task, known in waiting:
        yield (_done(task, state), False) if known is None else (known, True)


def _done(task: ConvergenceTask, state: str | None) -> Surveyed:
    found = surveyed(task)
    if state is not None:
        write_json(os.path.join(state, task.file), asdict(found))
    return found


def _known(task: ConvergenceTask, state: str | None) -> Surveyed | None:
    """Return the result of a task that an earlier run has kept; None if there is none.

    Raises:
        ModelError: its file holds none.
    """
    if state is None:
        return None
    path = os.path.join(state, task.file)
    try:
        with open(path, encoding="utf-8") as file:
            return read_surveyed(json.load(file))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{path!r} holds no result of a task ({error}); remove it, and the task runs again"
        ) from error


def read_surveyed(record: Mapping[str, Any]) -> Surveyed:
    """Return a result from its record in JSON, whose keys are strings."""
    counts = {
        name: {int(count): number for count, number in record[name].items()}
        for name in ("members", "cheapest", "fewest")
    }
    return Surveyed(
        task=ConvergenceTask(**record["task"]),
        classes=record["classes"],
        confluent=record["confluent"],
        failed=record["failed"],
        missing=[Missing(**each) for each in record["missing"]],
        spellings=[Spelling(**each) for each in record.get("spellings", ())],
        **counts,
    )


def tasks_of(
    bases: Sequence[Base] = BASES,
    levels: Sequence[int] = LEVELS,
    operators: int = 2,
    most: int = 20_000,
    seed: int = 0,
) -> list[ConvergenceTask]:
    """Return the tasks of some bases at some levels."""
    return [
        ConvergenceTask(base.name, level, operators, most, seed)
        for level in levels
        for base in bases
    ]
