"""The pipeline, judged by small graphs."""

import importlib
import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.discover import exceptions, main
from tiered.extensions.discovery import rule_convergence
from tiered.extensions.discovery.enumeration import enumerated
from tiered.extensions.discovery.expressions import ExpressionTable, GrammarExpr
from tiered.extensions.discovery.grammar import BASES
from tiered.extensions.discovery.judging import Judged, PipelineJudge, model_of
from tiered.extensions.discovery.laws import canonical
from tiered.extensions.discovery.rule_convergence import (
    ConvergenceTask,
    Missing,
    Spelling,
    Surveyed,
    read_surveyed,
    survey,
    surveyed,
    tasks_of,
)
from tiered.runtime import Session
from tiered.support.errors import ModelError

SMALL = ConvergenceTask("matrix", 2, operators=2, most=250)


def test_a_task_has_a_file_of_its_own() -> None:
    tasks = [ConvergenceTask("a", 2), ConvergenceTask("b", 2), ConvergenceTask("a", 3),
             ConvergenceTask("a", 2, 3), ConvergenceTask("a", 2, most=9),
             ConvergenceTask("a", 2, seed=1)]  # fmt: skip
    assert tasks[0].file == "a-2-2-20000-0.json"
    assert len({task.file for task in tasks}) == len(tasks)


def test_the_tasks_are_all_bases_of_each_level() -> None:
    assert len(tasks_of()) == 2 * len(BASES)
    assert {task.level for task in tasks_of()} == {2, 3}
    (only,) = tasks_of(BASES[:1], (3,), 4, 5, 6)
    assert only == ConvergenceTask(BASES[0].name, 3, 4, 5, 6)


def test_the_keys_of_a_record_in_json_are_strings() -> None:
    found = Surveyed(
        ConvergenceTask("matrix", 2), members={1: 3, 2: 4}, cheapest={1: 2}, fewest={2: 1},
        classes=5,
        confluent=4, failed=["no"], missing=[Missing("l", 1, 2, 3, "m", "a", "b", ["v"])],
        spellings=[Spelling("l", 1, "a", "b")],
    )  # fmt: skip
    record = json.loads(json.dumps(asdict(found)))
    assert read_surveyed(record) == found
    del record["spellings"]
    assert read_surveyed(record).spellings == []


def test_the_short_name_is_the_package() -> None:
    assert importlib.import_module("tiered.discovery").surveyed is surveyed


def test_every_graph_that_is_enumerated_is_valid() -> None:
    made = enumerated(BASES[0], "bits", 1, most=300)
    members = [member for _, member in made.members()]
    assert members
    Session(model_of(members))


def test_the_pipeline_keeps_what_graphs_compute() -> None:
    made = enumerated(BASES[0], "bits", 2, most=250)
    members = [member for _, member in made.members()]
    for judged in PipelineJudge(made.meaning.table, 2).judged(members):
        assert judged.form is not None, judged.error
        assert made.meaning.key(judged.form) == made.meaning.key(judged.member), judged.member


def test_a_survey_counts_members_that_end_in_the_cheapest_graph() -> None:
    found = surveyed(SMALL)
    assert found.failed == []
    assert sum(found.members.values()) > 100
    short = sum(each.count for each in found.missing)
    assert sum(found.cheapest.values()) == sum(found.members.values()) - short
    assert 0 < found.confluent <= found.classes


def test_results_are_kept_and_read_again(tmp_path: Path) -> None:
    first = list(survey([SMALL], state=str(tmp_path)))
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text()) == json.loads(json.dumps(asdict(first[0][0])))
    again = list(survey([SMALL], state=str(tmp_path)))
    assert [was_known for _, was_known in (*first, *again)] == [False, True]
    assert again[0][0] == first[0][0] == read_surveyed(asdict(first[0][0]))


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"members": 1}', '{"members": {"a": 1}}'])
def test_a_file_that_holds_no_result_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / SMALL.file).write_text(text)
    with pytest.raises(ModelError, match="holds no result of a task"):
        list(survey([SMALL], state=str(tmp_path)))


def test_the_report_names_each_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert [task.base for task in tasks_of(levels=(2,))] == [base.name for base in BASES]
    main(operators=1, levels=(2,), bases=("matrix",))
    out = capsys.readouterr().out
    assert "-O2 matrix" in out
    assert "-O2 all" in out


def test_spellings_of_equal_cost_are_counted() -> None:
    found = surveyed(SMALL)
    counts = [each.count for each in found.spellings]
    assert 0 < sum(counts) <= found.classes - found.confluent
    assert counts == sorted(counts, reverse=True)
    assert any({"Add", "Sub"} <= {*re.findall(r"\w+", each.law)} for each in found.spellings)


def test_the_page_lists_what_does_not_converge() -> None:
    found = Surveyed(
        ConvergenceTask("matrix", 2),
        members={2: 10}, cheapest={2: 9}, fewest={2: 9}, classes=4, confluent=3,
        missing=[Missing("Abs(Add(x, c))  =>  Abs(x)", 1, 1, 48, "m", "Abs(Add(x, 0.))", "Abs(x)")],
        spellings=[Spelling("Add(x, c)  =>  Sub(x)", 3, "Add(x, 1.)", "Sub(x, -1.)")],
    )  # fmt: skip
    page = exceptions([found, found])
    assert "## -O2: matrix, matrix" in page
    assert "| 2 | 1 | 48 | `Abs(Add(x, 0.))` | `Abs(x)` |  |" in page
    assert "| 6 | `Add(x, 1.)` | `Sub(x, -1.)` |" in page


def test_absent_operands_at_the_end_make_no_other_form() -> None:
    table = ExpressionTable()
    x = table.border("x", 1, (2, 3))
    forms = [
        canonical(table, table.apply("ReduceMax", operands, kind=(1, (1, 1))))
        for operands in ((x, None), (x,))
    ]
    assert forms[0] is forms[1]


class Idle:
    """A pipeline without a pass, that fails on Xor, and on Or among other graphs."""

    def __init__(self, table: ExpressionTable, level: int) -> None:
        self.level = level

    def judged(self, members: Sequence[GrammarExpr]) -> list[Judged]:
        return [
            Judged(each, None, "lost") if str(each).startswith("Or(") else self.alone(each)
            for each in members
        ]

    def alone(self, member: GrammarExpr) -> Judged:
        fails = str(member).startswith("Xor")
        return Judged(member, None, "no Xor") if fails else Judged(member, member)


BOOLS = ConvergenceTask("bools", 2, 1, 5)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_convergence, "PipelineJudge", Idle)
    monkeypatch.setattr(rule_convergence, "MOST_REACHED", 0)


@pytest.mark.usefixtures("idle")
def test_all_that_a_survey_finds() -> None:
    found = surveyed(BOOLS)
    counts = found.members, found.cheapest, found.fewest, found.classes, found.confluent
    assert counts == ({1: 36}, {1: 24}, {1: 24}, 12, 2)
    assert found.failed == ["Xor(x, y): no Xor", "Xor(y, x): no Xor"]
    missing = [
        f"{each.law}: {each.count} {each.nodes} {each.moved} {each.member}"
        for each in found.missing
    ]
    assert missing == [
        "Gather(x)  =>  x: 2 1 12 Gather(x, [0,1])",
        "And(x, c)  =>  x: 1 1 12 And(x, True)",
        "And(x, x)  =>  x: 1 1 12 And(x, x)",
        "Cast(x)  =>  x: 1 1 12 Cast<to=9>(x)",
        "Flatten(x)  =>  x: 1 1 0 Flatten(x)",
        "Or(x, c)  =>  x: 1 1 12 Or(x, False)",
        "Or(x, x)  =>  x: 1 1 12 Or(x, x)",
        "Where(x, x, x)  =>  x: 1 1 12 Where(x, x, x)",
        "Where(y, x, x)  =>  x: 1 1 18 Where(y, x, x)",
    ]
    assert {(each.member, each.best) for each in found.missing} == {
        (each.left, "x") for each in found.missing
    }
    assert [tuple(vars(each).values()) for each in found.spellings] == [
        ("Reshape(x)  =>  Unsqueeze(x)", 2, "Reshape(x, [1,2,3])", "Unsqueeze(x, [0])"),
        ("Slice(x)  =>  Gather(x)", 2, "Slice(x, [1], [2], [0], [1])", "Gather(x, [1])"),
        ("Slice(x)  =>  Split(x)", 2, "Slice(x, [0], [1], [1], [1])", "Split<axis=1>(x, [1,2])"),
        ("Tile(x)  =>  Concat(x, x)", 2, "Tile(x, [2,1])", "Concat<axis=0>(x, x)"),
        ("Slice(x)  =>  Slice(x)", 1, "Slice(x, [0], [1], [0], [1])",
         "Slice(x, [0], [2], [0], [2])"),
    ]  # fmt: skip


@pytest.mark.usefixtures("idle")
def test_known_and_new_tasks_come_in_their_order(tmp_path: Path) -> None:
    tasks = [BOOLS, ConvergenceTask("bools", 3, 0, 5), ConvergenceTask("bools", 2, 0, 5)]
    assert [known for _, known in survey(tasks)] == [False] * 3
    state = str(tmp_path / "new")
    assert [known for _, known in survey(tasks[1:2], state=state)] == [False]
    found = [*survey(tasks, state=state)]
    assert [(each.task, known) for each, known in found] == [
        (tasks[0], False), (tasks[1], True), (tasks[2], False)
    ]  # fmt: skip
    assert all(known for _, known in survey(tasks, state=state, jobs=4))


@pytest.mark.usefixtures("idle")
def test_new_tasks_are_done_by_several_and_one_by_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools: list[int] = []

    def pool(jobs: int) -> ThreadPoolExecutor:
        pools.append(jobs)
        return ThreadPoolExecutor(jobs)

    monkeypatch.setattr(rule_convergence, "ProcessPoolExecutor", pool)
    tasks = [ConvergenceTask("bools", level, 0, 5) for level in (0, 1, 2)]
    state = str(tmp_path)
    assert [was for _, was in survey(tasks[1:2], state=state, jobs=2)] == [False]
    assert [was for _, was in survey(tasks, state=state, jobs=1)] == [False, True, False]
    assert pools == []
    (tmp_path / tasks[0].file).unlink()
    (tmp_path / tasks[2].file).unlink()
    found = [*survey(tasks, state=state, jobs=2)]
    assert [(each.task, was) for each, was in found] == [
        (tasks[0], False), (tasks[1], True), (tasks[2], False)
    ]  # fmt: skip
    assert pools == [2]
