"""`tiered.bench`: its arguments, its inputs, its errors; one measurement is real."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import tiered
from tests.fake_worker import FakeSession
from tiered.extensions.measurement import latency_bench
from tiered.extensions.measurement.latency_bench import How
from tiered.extensions.measurement.subjects import subject
from tiered.extensions.measurement.trials import TrialPlan
from tiered.runtime.opening import CPU, Opening
from tiered.runtime.worker.client import SECONDS
from tiered.support.errors import ModelError, RuntimeFailure, TargetError, UsageError
from tiered.testing import parse

ADD = "(float[n,2] x) => (float[n,2] y) <float[2] w = {1,2}> { y = Add(x, w) }"


def saved(folder: Path, name: str, text: str = ADD) -> Path:
    onnx.save(parse(text), folder / name)
    return folder / name


@pytest.fixture
def pair(tmp_path: Path, fake_worker: type[FakeSession]) -> tuple[Path, Path]:
    """Return two models; the second one takes half the time of the first."""
    return saved(tmp_path, "a.onnx"), saved(tmp_path, "b.onnx")


def test_a_model_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.onnx")
    found = tiered.bench(path, runs=1)
    (model,) = found.models
    assert (model.letter, model.name, model.runs) == ("A", str(path), 1)
    assert 0 < model.latency.low <= model.latency.median <= model.latency.high
    assert model.start.median > 0
    assert model.memory is None or model.memory >= 0
    assert model.file_bytes == path.stat().st_size


def test_models_are_compared_beside_the_first(pair: tuple[Path, Path]) -> None:
    found = tiered.bench(*pair, expect=["B<=0.6*A"])
    (ratio,) = found.ratios
    assert (ratio.of, ratio.to, ratio.verdict) == ("B", "A", "faster")
    assert ratio.interval.median == pytest.approx(0.5)
    assert len(found.rounds) == 12
    with pytest.raises(TargetError, match=r"expected B<=0\.4\*A: B/A is 0\.500"):
        tiered.bench(*pair, expect=["B<=0.4*A, B<A"])


def test_a_model_beside_itself_is_no_different(pair: tuple[Path, Path]) -> None:
    first, _ = pair
    assert tiered.bench(first, first).ratios[0].verdict == "no difference"


def test_models_open_as_is_asked(pair: tuple[Path, Path], fake_worker: type[FakeSession]) -> None:
    found = tiered.bench(pair[0], provider="cpu", threads=2, runtime_level="basic", runs=1)
    assert found.opening == Opening("basic", 2, CPU)
    assert set(fake_worker.openings) == {Opening("basic", 2, CPU)}


def test_more_rounds_are_measured_where_asked(pair: tuple[Path, Path]) -> None:
    assert len(tiered.bench(*pair, rounds=20).rounds) == 20
    assert len(tiered.bench(*pair, rounds=20, runs=9).rounds) == 9


def test_protos_are_measured_too(fake_worker: type[FakeSession]) -> None:
    proto = parse(ADD)
    (model,) = tiered.bench(proto, runs=1).models
    assert "outputs y" in model.name
    assert model.file_bytes == proto.ByteSize()


def test_the_size_of_a_file_has_its_external_data(tmp_path: Path) -> None:
    proto = parse("(float[64] x) => (float[64] y) <float[64] w> { y = Add(x, w) }")
    weight = onnx.numpy_helper.from_array(np.ones(64, np.float32), "w")
    del proto.graph.initializer[:]
    proto.graph.initializer.append(weight)
    path = tmp_path / "a.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="a.data", size_threshold=0)
    data = (tmp_path / "a.data").stat().st_size
    assert data >= 256
    assert subject(path).file_bytes == path.stat().st_size + data


# --- inputs ---------------------------------------------------------------------------------------


def shapes_held(fake: type[FakeSession]) -> list[tuple[int, ...]]:
    return [tuple(feeds["x"].shape) for feeds in fake.held[-1]]


def test_dims_and_shapes_are_those_of_the_inputs(
    pair: tuple[Path, Path], fake_worker: type[FakeSession]
) -> None:
    tiered.bench(*pair, dims={"n": 7}, runs=1)
    assert shapes_held(fake_worker) == [(7, 2)]
    tiered.bench(*pair, input_shapes={"x": [5, 2]}, runs=1)
    assert shapes_held(fake_worker) == [(5, 2)]
    with pytest.raises(UsageError, match="has a dim 'm'"):
        tiered.bench(*pair, dims={"m": 7})
    with pytest.raises(UsageError, match=r"a\.onnx has no input 'z'; it has x"):
        tiered.bench(*pair, input_shapes={"z": [5, 2]})


def test_a_size_that_one_model_fixes_is_that_of_all(
    tmp_path: Path, pair: tuple[Path, Path], fake_worker: type[FakeSession]
) -> None:
    fixed = saved(tmp_path, "fixed.onnx", ADD.replace("n,", "3,"))
    tiered.bench(pair[0], fixed, runs=1)
    assert shapes_held(fake_worker) == [(3, 2)]
    with pytest.raises(UsageError, match=r"for .*fixed\.onnx: 'x' is float32 \[4, 2\]"):
        tiered.bench(pair[0], fixed, dims={"n": 4})


def test_given_inputs_are_used_one_after_the_other(
    pair: tuple[Path, Path], fake_worker: type[FakeSession]
) -> None:
    samples = [{"x": np.ones((size, 2), np.float32)} for size in (2, 9)]
    tiered.bench(*pair, inputs=samples, runs=2)
    assert shapes_held(fake_worker) == [(2, 2), (9, 2)]
    with pytest.raises(UsageError, match="no input 'z'"):
        tiered.bench(*pair, inputs=[{"z": np.ones(1)}])


def test_floats_are_fed_in_the_dtypes_of_each_model(
    tmp_path: Path, pair: tuple[Path, Path], fake_worker: type[FakeSession]
) -> None:
    half = saved(tmp_path, "half.onnx", ADD.replace("float[", "float16["))
    tiered.bench(pair[0], half, runs=1)
    assert {feeds[0]["x"].dtype.name for feeds in fake_worker.held} == {"float32", "float16"}


# --- errors ---------------------------------------------------------------------------------------


def test_models_with_other_inputs_are_named(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    other = saved(tmp_path, "other.onnx", ADD.replace(" x)", " z)").replace("Add(x", "Add(z"))
    with pytest.raises(UsageError) as raised:
        tiered.bench(pair[0], other)
    said = str(raised.value)
    assert "a.onnx and " in said
    assert "have different inputs: only " in said
    assert "a.onnx takes 'x'; only " in said
    assert "other.onnx takes 'z'; " in said


def test_a_model_that_does_not_open_is_named(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    text = "(float[n,2] x) => (float[n,2] y) { y = com.microsoft.Unknown(x) }"
    unknown = saved(tmp_path, "unknown.onnx", text)
    said = r"unknown\.onnx: .* no operator com\.microsoft::Unknown"
    with pytest.raises(RuntimeFailure, match=said):
        tiered.bench(pair[0], unknown)
    broken = saved(tmp_path, "broken.onnx", ADD.replace("Add(x, w)", "Reshape(x, x)"))
    with pytest.raises(RuntimeFailure, match=r"cannot load .*broken\.onnx"):
        tiered.bench(pair[0], broken)
    (tmp_path / "none.onnx").write_bytes(b"no model")
    with pytest.raises(ModelError, match=r"none\.onnx"):
        tiered.bench(tmp_path / "none.onnx")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"provider": "CPUExecutionProvidr"}, r"did you mean '.*'\? \(installed: .*CPUExecution"),
        ({"provider": "NpuOfMine"}, "no provider 'NpuOfMine' here.*installed: "),
        ({"runtime_level": "al"}, "no runtime level 'al'; did you mean 'all'.* basic, extended"),
        ({"clock": "cpu"}, "no clock 'cpu'.*wall, processor"),
        ({"clock": "processor", "threads": 2}, "the clock 'processor' counts one thread"),
        ({"threads": -1}, "threads are 1 or more"),
        ({"minutes": 0.0}, "minutes are a number above 0, not 0"),
        ({"minutes": float("nan")}, "minutes are a number above 0, not nan"),
        ({"runs": 0}, "runs are 1 or more, not 0"),
        ({"rounds": 0}, "rounds are 1 to 200, not 0"),
        ({"rounds": 201}, "rounds are 1 to 200, not 201"),
        ({"expect": "B<=A"}, r"expect takes a list of strings, not 'B<=A'; write \['B<=A'\]"),
        ({"expect": ["C<=A"]}, "no model C; the models are A to B"),
    ],
)
def test_a_wrong_argument_is_an_error(
    pair: tuple[Path, Path], wrong: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        tiered.bench(*pair, **wrong)  # type: ignore[arg-type]  # the point


def test_models_are_one_to_26(pair: tuple[Path, Path]) -> None:
    for models in ((), (pair[0],) * 27):
        with pytest.raises(UsageError, match=f"1 to 26 models, not {len(models)}"):
            tiered.bench(*models)


def test_limits_of_how_to_measure_are_allowed() -> None:
    for how in (How(runs=1), How(rounds=1), How(rounds=200), How(minutes=0.01),
                How(clock="processor")):  # fmt: skip
        assert how.opening() == Opening("all", 1, CPU)
    assert How(threads=0).opening() == Opening("all", 0, CPU)
    with pytest.raises(UsageError, match="minutes are a number above 0, not inf"):
        How(minutes=float("inf")).opening()


def test_the_time_of_the_thread_is_that_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency_bench, "installed_provider", lambda name: name)
    for provider, threads, is_wrong in (
        (CPU, 1, False), (CPU, 2, True), ("other", 1, True), ("other", 0, True),
    ):  # fmt: skip
        how = How(provider=provider, threads=threads, clock="processor")
        if is_wrong:
            with pytest.raises(UsageError, match="counts one thread on the CPU: use threads=1"):
                how.opening()
        else:
            assert how.opening() == Opening("all", 1, CPU)


def test_the_plan_of_a_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def samples(*given: object, seconds: float, **more: object) -> tuple[list[str], list[str]]:
        asked.append(seconds)
        return ["s", "t", "u"], ["f"]

    monkeypatch.setattr(latency_bench, "samples_of", samples)
    for minutes in (0.5, 600.0):
        how = How(minutes=minutes, runs=7, rounds=3, clock="processor")
        job = latency_bench.prepare([parse(ADD)], how, dims={}, input_shapes={})
        assert job.plan == TrialPlan(60 * minutes, 7, 3, samples=3, clock="processor")
        assert (job.inputs, len(job.feeds)) == (("s", "t", "u"), 1)
    assert asked == [max(SECONDS, 30.0), 36000.0]
