"""What a measurement comes to, from rounds that are written down."""

import pytest

from tiered.extensions.measurement.latency_result import Bench, _verdict
from tiered.extensions.measurement.medians import CONFIDENCE, MedianInterval
from tiered.extensions.measurement.trials import Round
from tiered.runtime.opening import Opening
from tiered.support.errors import TargetError, UsageError


def round_of(
    *seconds: float,
    waiting: float = 0.0,
    memory: int | None = 100,
    nodes: dict[str, int] | None = None,
) -> Round:
    count = len(seconds)
    return Round(
        [[each] * 5 for each in seconds], [5] * count, [1.0] * count, [1 - waiting] * count,
        [0.1] * count, [memory] * count, [nodes or {}] * count, is_whole=True,
    )  # fmt: skip


def bench_of(rounds: list[Round], **changes: object) -> Bench:
    names = ("a.onnx", "b.onnx", "c.onnx")[: len(rounds[0].iterations)]
    made = {"opening": Opening(), "clock": "wall", **changes}
    return Bench(names, (10,) * len(names), tuple(rounds), **made)  # type: ignore[arg-type]  # the changes are of any type


def test_a_model_has_medians_over_rounds_and_what_is_beside_them() -> None:
    (found,) = bench_of([round_of(number) for number in range(1, 13)]).models
    assert (found.letter, found.name, found.runs, found.file_bytes) == ("A", "a.onnx", 60, 10)
    assert (found.latency.low, found.latency.median, found.latency.high) == (2, 6.5, 11)
    assert (found.start.median, found.memory) == (0.1, 100)
    assert bench_of([round_of(1.0, memory=None)]).models[0].memory is None


@pytest.mark.parametrize(
    ("seconds", "verdict"), [(0.9, "faster"), (1.1, "slower"), (1.0, "no difference")]
)
def test_a_verdict_needs_an_interval_without_1(seconds: float, verdict: str) -> None:
    found = bench_of([round_of(1.0, seconds)] * 12)
    (ratio,) = found.ratios
    assert (ratio.of, ratio.to, ratio.verdict) == ("B", "A", verdict)
    assert ratio.interval.median == pytest.approx(seconds)


def test_few_rounds_have_no_verdict_and_say_so() -> None:
    found = bench_of([round_of(1.0, 0.5)] * 7)
    assert found.ratios[0].verdict == "too few rounds"
    assert found.remarks == (
        "7 rounds are too few for a 99% interval, which takes 8 "
        "(--rounds, --minutes and --runs limit them)",
    )
    with pytest.raises(TargetError, match="expected B<A: not shown, 7 rounds are too few"):
        found.check(["B<A"])
    assert "1 round is too few" in bench_of([round_of(1.0)]).remarks[0]


def test_an_expectation_holds_is_refuted_or_is_not_shown() -> None:
    steady = bench_of([round_of(1.0, 0.5, 2.0)] * 12)
    steady.check(["B<=0.5001*A", "C>3*B", "A>1.9*B"])
    with pytest.raises(TargetError) as raised:
        steady.check(["B<=0.4*A", "C<A", "B<A"])
    assert str(raised.value).splitlines() == [
        "expected B<=0.4*A: B/A is 0.500 (0.500 to 0.500)",
        "  expected C<A: C/A is 2.000 (2.000 to 2.000)",
    ]
    noisy = bench_of([round_of(1.0, 0.8 + number / 50) for number in range(12)])
    with pytest.raises(TargetError, match=r"expected B<=0\.9\*A: not shown, B/A is .* narrow"):
        noisy.check(["B<=0.9*A"])
    with pytest.raises(UsageError, match="expected two models"):
        noisy.check(["nodes<=5"])


def test_a_drift_of_the_machine_is_reported_and_changes_no_ratio() -> None:
    found = bench_of([round_of(1 + at / 20, 2 + at / 10) for at in range(12)])
    assert found.ratios[0].interval.median == pytest.approx(2)
    assert found.remarks == (
        "the machine drifted: the last rounds were 37% slower than the first ones; ratios are not "
        "affected, as the models alternate",
    )
    (remark,) = bench_of([round_of(1 - at / 20) for at in range(12)]).remarks
    assert remark == "the machine drifted: the last rounds were 43% faster than the first ones"


def test_an_unsteady_or_a_busy_machine_is_reported() -> None:
    (remark,) = bench_of([round_of(1.0), round_of(1.5)] * 6).remarks
    assert remark == "the machine is unsteady: rounds differ by 40%"
    busy = [round_of(1.0, waiting=0.25)] * 12
    (remark,) = bench_of(busy).remarks
    assert remark.startswith("the machine is busy: runs waited for the processor 25% of their time")
    assert bench_of(busy, clock="processor").remarks == ()
    assert bench_of(busy, opening=Opening(threads=2)).remarks == ()
    assert bench_of(busy, opening=Opening(provider="CUDAExecutionProvider")).remarks == ()


def test_nodes_that_the_provider_does_not_take_are_counted() -> None:
    rounds = [round_of(1.0, nodes={"CUDAExecutionProvider": 7, "CPUExecutionProvider": 3})] * 8
    (remark,) = bench_of(rounds, opening=Opening(provider="CUDAExecutionProvider")).remarks
    assert remark == "a.onnx: 3 of 10 nodes are not taken by CUDAExecutionProvider"


def test_an_interrupted_measurement_says_so() -> None:
    found = bench_of([round_of(1.0)] * 12, is_complete=False)
    assert found.remarks == ("interrupted: the figures are those of the rounds until then",)


def test_the_verdict_of_an_interval() -> None:
    for low, high, confidence, verdict in (
        (0.5, 0.6, CONFIDENCE, "faster"), (0.5, 0.6, CONFIDENCE - 1e-9, "too few rounds"),
        (0.5, 1.0, CONFIDENCE, "no difference"), (1.0, 1.5, CONFIDENCE, "no difference"),
        (1.1, 1.5, 1.0, "slower"), (0.9, 1.1, 1.0, "no difference"),
    ):  # fmt: skip
        assert _verdict(MedianInterval(low, 1.0, high, confidence)) == verdict
