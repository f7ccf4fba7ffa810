"""Judges: a command of the user's own, sizes, and onnxruntime, once."""

import math
import shlex
import sys
from pathlib import Path

import onnx
import pytest

from tests.fake_worker import FakeSession
from tiered.extensions.measurement.subjects import samples_of, subject
from tiered.extensions.tuning.judges import (
    CommandJudge,
    RuntimeJudge,
    SizeJudge,
    _number_in,
    objective_of,
)
from tiered.extensions.tuning.model_forms import Made, ModelForm
from tiered.runtime.opening import Opening
from tiered.runtime.worker.client import TimedRuns
from tiered.support.errors import RuntimeFailure, UsageError
from tiered.testing import parse


def made(path: str, nbytes: int = 100) -> Made:
    return Made(ModelForm(3), path, path, nbytes, 1)


def command(code: str) -> str:
    return shlex.join([sys.executable, "-S", "-c", code, "{model}"])


def test_a_command_prints_the_cost(tmp_path: Path) -> None:
    code = "import sys; print('warm'); print('latency of', len(sys.argv[1]), 'is 1.5e1 ms')"
    judge = CommandJudge(command(code))
    costs = judge.costs([made("a.onnx"), made("b.onnx")], 0, apart=False)
    assert costs == [pytest.approx(math.log(15))] * 2


def test_each_form_has_its_own_file() -> None:
    judge = CommandJudge(command("import sys; print(len(sys.argv[1]))"))
    costs = judge.costs([made("long.onnx"), made("b.onnx")], 1, apart=True)
    assert [round(math.exp(cost)) for cost in costs] == [9, 6]


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    spy = tmp_path / "spy"
    judge = CommandJudge(f"{command('import sys; print(len(sys.argv))')} ; touch {spy}")
    (cost,) = judge.costs([made("a; rm -rf $HOME")], 0, apart=False)
    assert math.exp(cost) == pytest.approx(5)  # -c, the model, ;, touch, spy
    assert not spy.exists()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('fast')", "printed 'fast'; expected a number in its last line"),
        ("pass", "printed nothing; expected a number"),
        ("print(-1.5)", r"printed -1\.5; expected a number above 0"),
        ("print('1,234.5 us')", r"printed 1,234\.5; expected a number without commas"),
        ("import sys; print(sys.argv[1])", "printed '{model}'; expected a number"),
        ("print('on core0')", "printed 'on core0'; expected a number"),
        ("print(0)", "printed 0; expected a number above 0"),
        ("raise SystemExit('no device')", "ended with exit code 1 on -O3: no device"),
        ("print('no  device'); raise SystemExit(3)", "ended with exit code 3 on -O3: no device$"),
        ("print(2); raise SystemExit('no device')", "ended with exit code 1 on -O3: no device$"),
        ("raise SystemExit(4)", "ended with exit code 4 on -O3$"),
    ],
)
def test_what_a_command_does_wrong_is_named(code: str, said: str) -> None:
    with pytest.raises(RuntimeFailure, match=said):
        CommandJudge(command(code)).costs([made("a1/2.onnx")], 0, apart=False)


@pytest.mark.parametrize("line", ["[3, 2.5]", "{model} took 2.5ms on core0", "v1: +25e-1"])
def test_the_last_number_of_the_line_is_the_cost(line: str) -> None:
    judge = CommandJudge(command(f"print({line!r})"))
    (cost,) = judge.costs([made("a1/2.onnx")], 0, apart=False)
    assert math.exp(cost) == pytest.approx(2.5)


def test_a_command_that_fails_at_times_is_run_again(tmp_path: Path) -> None:
    code = (
        "import os, sys; p = os.path.join(os.path.dirname(sys.argv[1]), 'runs'); "
        "n = os.path.getsize(p) if os.path.exists(p) else 0; open(p, 'a').write('.'); "
        "sys.exit('busy') if n < 2 else print(4)"
    )
    judge = CommandJudge(command(code))
    assert judge.costs([made(str(tmp_path / "a.onnx"))], 0, apart=False) == [math.log(4)]
    assert judge.failed == (2, "ended with exit code 1 on -O3: busy")


def test_a_command_that_takes_too_long_is_ended() -> None:
    judge = CommandJudge(command("import time; time.sleep(60)"), seconds=0.2)
    with pytest.raises(RuntimeFailure, match=r"took more than 0\.2 s"):
        judge.costs([made("a.onnx")], 0, apart=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [("npu-bench", "lacks {model}"), ("npu 'open {model}", "No closing quotation")],
)
def test_a_wrong_command_is_named(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        CommandJudge(text)


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="cannot run 'no-such-program': No such file"):
        CommandJudge("no-such-program {model}").costs([made("a")], 0, apart=False)


def test_sizes_are_exact() -> None:
    costs = SizeJudge().costs([made("a", 200), made("b", 100)], 0, apart=True)
    assert costs[0] - costs[1] == pytest.approx(math.log(2))
    assert SizeJudge.is_exact


def test_an_objective_is_one_of_three() -> None:
    assert objective_of("size") == "size"
    with pytest.raises(UsageError, match="did you mean 'memory'"):
        objective_of("memroy")


@pytest.mark.parametrize(("objective", "apart"), [("latency", False), ("latency", True)])
def test_onnxruntime_measures_in_processes(tmp_path: Path, objective: str, apart: bool) -> None:
    paths = []
    for name in ("a", "b"):
        paths.append(str(tmp_path / f"{name}.onnx"))
        onnx.save(parse("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }"), paths[-1])
    opening = Opening("off", 1)
    samples, _ = samples_of([subject(paths[0])], opening, inputs=(), seed=0, sizes={}, seconds=60)
    judge = RuntimeJudge(opening, samples, "wall", objective_of(objective), 0.1)
    costs = judge.costs([*map(made, paths)], 1, apart=apart)
    assert len(costs) == 2
    assert all(math.isfinite(cost) and cost < 0 for cost in costs)


def judge_of_memory(folder: Path) -> tuple[RuntimeJudge, list[Made]]:
    paths = [str(folder / f"{name}.onnx") for name in ("a", "b")]
    for path in paths:
        onnx.save(parse("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }"), path)
    opening = Opening("off", 1)
    samples, _ = samples_of([subject(paths[0])], opening, inputs=(), seed=0, sizes={}, seconds=60)
    return RuntimeJudge(opening, samples, "wall", "memory", 0.1), [*map(made, paths)]


def test_the_peak_of_memory_takes_a_process_for_each_form(
    tmp_path: Path, fake_worker: type[FakeSession]
) -> None:
    judge, forms = judge_of_memory(tmp_path)
    before = len(fake_worker.openings)
    assert judge.costs(forms, 0, apart=False) == [math.log(4096)] * 2
    assert len(fake_worker.openings) == before + 2


def test_a_system_that_does_not_know_its_peak_says_so(
    tmp_path: Path, fake_worker: type[FakeSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, forms = judge_of_memory(tmp_path)
    monkeypatch.setattr(FakeSession, "time", lambda *args: TimedRuns([0.1], [0.1], 0.1, None, {}))
    with pytest.raises(RuntimeFailure, match="the peak of memory of a process is not known"):
        judge.costs(forms, 0, apart=False)


def test_which_numbers_are_costs() -> None:
    for text, found in (
        ("latency: 1.5 ms\n\n", 1.5),
        ("a 3\nb 1e-3,\n", 0.001),
        ("0", "c printed 0; expected a number above 0"),
        ("-2", "c printed -2; expected a number above 0"),
        ("1e999", "c printed 1e999; expected a number above 0"),
        ("1,5", "c printed 1,5; expected a number without commas"),
        ("", "c printed nothing; expected a number in its last line: 'latency: 1.25 ms'"),
        ("1\nno", "c printed 'no'; expected a number in its last line: 'latency: 1.25 ms'"),
    ):
        if isinstance(found, float):
            assert _number_in(text, "c") == found
            continue
        with pytest.raises(RuntimeFailure) as raised:
            _number_in(text, "c")
        assert str(raised.value) == found, text
