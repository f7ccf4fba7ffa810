"""Rounds and iterations, on a machine without time of its own."""

from itertools import groupby

import pytest

from tests.extensions.measurement.fakes import Machine
from tiered.extensions.measurement.latency_result import Bench
from tiered.extensions.measurement.trials import TrialPlan, Trials, measure, order
from tiered.runtime.opening import Opening


def measured(machine: Machine, count: int, plan: TrialPlan) -> Trials:
    trials = Trials(count)
    measure(trials, plan, machine.open, now=lambda: machine.now)
    return trials


def bench_of(machine: Machine, count: int, plan: TrialPlan | None = None) -> Bench:
    found = measured(machine, count, plan or TrialPlan(120.0))
    names = tuple(f"{place}.onnx" for place in range(count))
    return Bench(names, (1,) * count, tuple(found.usable), Opening(), "wall")


def test_each_model_is_first_and_last_equally_often() -> None:
    assert [order(2, iteration) for iteration in range(4)] == [[0, 1], [1, 0], [1, 0], [0, 1]]
    assert [order(2, iteration) for iteration in range(4, 8)] == [[0, 1], [1, 0], [1, 0], [0, 1]]
    for place in (0, -1):
        ends = [order(3, iteration)[place] for iteration in range(6)]
        assert sorted(ends) == [0, 0, 1, 1, 2, 2]


def test_a_round_has_processes_of_its_own_and_models_alternate() -> None:
    machine = Machine([0.002, 0.001])
    found = measured(machine, 2, TrialPlan(120.0, rounds=2, iterations=3))
    kinds = [kind for kind, _ in machine.log]
    assert (kinds.count("open"), kinds.count("close")) == (4, 4)
    first = machine.log[: kinds.index("close")]
    assert first[:2] == [("open", 0), ("open", 1)]
    assert [place for _, place in first[-6:]] == [0, 1, 1, 0, 1, 0]
    assert [each.is_whole for each in found.rounds] == [True, True]
    assert [each.complete for each in found.rounds] == [3, 3]


def test_a_block_of_a_fast_model_has_more_runs() -> None:
    (found,) = measured(Machine([0.01, 0.001]), 2, TrialPlan(120.0, rounds=1, iterations=4)).rounds
    assert found.runs == [4, 20]
    assert found.median(0) == pytest.approx(0.01)
    assert found.started == [0.5, 0.5]
    assert found.memory == [1000, 1000]


@pytest.mark.parametrize("runs", [1, 5, 12, 60, 1000])
def test_the_limit_of_runs_is_what_is_timed(runs: int) -> None:
    found = measured(Machine([0.01, 0.001]), 2, TrialPlan(600.0, runs=runs))
    assert [sum(each.runs[place] for each in found.rounds) for place in (0, 1)] == [runs, runs]
    assert len(found.rounds) == min(12, runs)


def test_the_limit_of_time_ends_the_rounds() -> None:
    machine = Machine([1.0, 1.0])
    found = measured(machine, 2, TrialPlan(60.0))
    assert 60 <= machine.now <= 70
    assert len(found.usable) >= 8
    assert all(each.complete >= 1 for each in found.rounds)


def test_a_model_that_takes_longer_than_the_limit_is_measured_once() -> None:
    found = measured(Machine([100.0]), 1, TrialPlan(60.0))
    assert [each.complete for each in found.usable] == [1]


def test_inputs_follow_each_other() -> None:
    (found,) = measured(
        Machine([0.01]), 1, TrialPlan(60.0, rounds=1, iterations=4, samples=3)
    ).rounds
    assert found.memory == [1000]  # the fourth iteration is on the first sample again


def test_what_is_there_before_an_interruption_is_usable() -> None:
    machine = Machine([0.01, 0.02])
    machine.is_interrupted = lambda: len(machine.log) > 250
    trials = Trials(2)
    with pytest.raises(KeyboardInterrupt):
        measure(trials, TrialPlan(120.0), machine.open, now=lambda: machine.now)
    assert [each.is_whole for each in trials.rounds] == [True, True, False]
    assert trials.usable == trials.rounds[:2]


@pytest.mark.parametrize(("logged", "usable"), [(5, 0), (40, 1)])
def test_an_interrupted_first_round_is_usable_from_its_first_iteration(
    logged: int, usable: int
) -> None:
    machine = Machine([0.01, 0.02])
    machine.is_interrupted = lambda: len(machine.log) > logged
    trials = Trials(2)
    with pytest.raises(KeyboardInterrupt):
        measure(trials, TrialPlan(120.0), machine.open, now=lambda: machine.now)
    assert len(trials.usable) == usable


def test_a_model_and_itself_do_not_differ_in_97_of_100() -> None:
    plan = TrialPlan(120.0, iterations=5)
    verdicts = [
        bench_of(Machine([0.004, 0.004], seed=seed, process=0.05, noise=0.1), 2, plan).ratios[0]
        for seed in range(300)
    ]
    assert sum(each.verdict == "no difference" for each in verdicts) >= 291


@pytest.mark.parametrize(("factor", "verdict"), [(0.97, "faster"), (1.03, "slower")])
def test_three_per_cent_are_found_on_a_machine_that_drifts(factor: float, verdict: str) -> None:
    plan = TrialPlan(120.0)
    verdicts = [
        bench_of(
            Machine([0.004, 0.004 * factor], seed=seed, process=0.008, noise=0.05, drift=0.02),
            2,
            plan,
        )
        .ratios[0]
        .verdict
        for seed in range(20)
    ]
    assert verdicts.count(verdict) >= 19


def test_all_that_is_opened_and_timed() -> None:
    for seconds, plan, rounds, now, log in (
        ([0.1, 0.01], TrialPlan(60, rounds=2, iterations=2), "2 [2, 2], 2 [2, 2]", 2.96,
         "o0 o1 t0*2 t1*2 t0 t1*2 t0 c1 c0 o1 o0 t1*2 t0*2 t1 t0 t1 t0 c0 c1"),
        ([0.099], TrialPlan(60, rounds=1, iterations=2), "2 [2]", 1.292, "o0 t0*4 c0"),
        ([0.1], TrialPlan(1.0, rounds=2, iterations=9), "1 [1], 1 [1]", 1.6,
         "o0 t0*3 c0 o0 t0*3 c0"),
        ([0.1], TrialPlan(1.25, rounds=1, iterations=9), "6 [6]", 1.3, "o0 t0*8 c0"),
        ([0.05], TrialPlan(0.5, rounds=3, iterations=9), "5 [5]", 1.2, "o0 t0*7 c0"),
        ([0.01, 0.02], TrialPlan(60, rounds=2, runs=5, iterations=2), "2 [2, 2], 2 [3, 3]", 2.51,
         "o0 o1 t0*2 t1*2 t0 t1*2 t0 c1 c0 o1 o0 t1*2 t0*2 t1 t0 t1 t0 c0 c1"),
        ([1e-6], TrialPlan(60, rounds=1, iterations=1), "1 [100]", 0.5, "o0 t0*3 c0"),
        ([0.0025], TrialPlan(60, rounds=1, iterations=2, samples=2), "2 [4]", 0.527,
         "o0 t0*5 c0"),
        ([0.25], TrialPlan(0.75, rounds=3, iterations=4), "1 [1]", 1.25, "o0 t0*3 c0"),
        ([0.25], TrialPlan(1.25, rounds=3, iterations=4), "1 [1]", 1.25, "o0 t0*3 c0"),
        ([0.25], TrialPlan(2.0, rounds=1, iterations=9), "4 [4]", 2.0, "o0 t0*6 c0"),
        ([0.25], TrialPlan(0.0, rounds=2, iterations=4), "1 [1]", 1.25, "o0 t0*3 c0"),
    ):  # fmt: skip
        assert told(Machine(seconds), plan) == (rounds, now, log), plan


def told(machine: Machine, plan: TrialPlan) -> tuple[str, float, str]:
    """Return the iterations and runs of each round, the time, and what was opened and timed."""
    found, said = Trials(len(machine._seconds)), list[str]()
    measure(found, plan, machine.open, say=said.append, now=lambda: machine.now)
    assert said == [f"round {at} of {plan.rounds}" for at in range(1, len(found.rounds) + 1)]
    assert all(each.is_whole for each in found.rounds)
    log = [
        f"{kind[0]}{place}" + (f"*{count}" if count > 1 else "")
        for (kind, place), each in groupby(machine.log) for count in [len(list(each))]
    ]  # fmt: skip
    rounds = ", ".join(f"{each.complete} {each.runs}" for each in found.rounds)
    return rounds, round(machine.now, 3), " ".join(log)
