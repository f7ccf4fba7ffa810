"""`tiered.tune`: decisions of real models; what is measured is made up, or counted."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import tiered
from tests.fake_worker import FakeSession
from tiered.extensions.measurement.latency_bench import How
from tiered.extensions.tuning import tuning
from tiered.extensions.tuning.judges import CommandJudge, SizeJudge
from tiered.extensions.tuning.maker import digest_of
from tiered.extensions.tuning.model_forms import Made, ModelForm
from tiered.extensions.tuning.output_tolerance import OutputTolerance, parse_budget
from tiered.extensions.tuning.tuning import TuningRun, TuningTask, _is_same
from tiered.support.errors import ModelError, UsageError
from tiered.testing import parse

TWO_LAYERS = """(float[2,8] x) => (float[2,8] y) <float w, float b> {
    m = MatMul(x, w)  a = Add(m, b)  r = Relu(a)
    m2 = MatMul(r, w)  a2 = Add(m2, b)  t = Tanh(a2)
    g = Div(t, root)  f = Erf(g)  h = Add(f, one)  k = Mul(t, h)  y = Mul(k, half) }"""
"""At level 3, two Gemms and a Gelu."""
SCALARS = {"root": 2**0.5, "one": 1.0, "half": 0.5}


@pytest.fixture
def net(tmp_path: Path) -> Path:
    model = parse(TWO_LAYERS)
    del model.graph.initializer[:]
    rng = np.random.default_rng(0)
    for name, dims in (("w", (8, 8)), ("b", (8,))):
        array = rng.standard_normal(dims).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    for name, number in SCALARS.items():
        scalar = np.array(number, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(scalar, name))
    for node in model.graph.node:
        node.name = f"/{node.output[0]}"
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    return path


class Counting:
    """A judge whose cost is a function of the file: the same machine everywhere."""

    is_exact = True

    def __init__(self, cost: Callable[[onnx.ModelProto], float], stop: int | None = None) -> None:
        self._cost, self._stop = cost, stop
        self.calls = 0

    def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
        if self.calls == self._stop:
            raise KeyboardInterrupt
        self.calls += 1
        return [math.log(self._cost(onnx.load(form.path))) for form in forms]


def kinds(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def gemms_cost(model: onnx.ModelProto) -> float:
    """A runtime whose Gemm is slow: four nodes' worth."""
    return sum(4.0 if kind == "Gemm" else 1.0 for kind in kinds(model))


def test_a_fusion_that_does_not_pay_is_left_out(net: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    tuned = tiered.tune(net, out, judge=Counting(gemms_cost), backend="portable")
    made = onnx.load(out)
    plain = tiered.optimize(onnx.load(net), opt_level=3)
    assert "Gemm" in kinds(plain)
    assert "Gemm" not in kinds(made)
    assert tuned.beside_reference is not None
    assert tuned.beside_reference.verdict == "better"
    # Leaving the fusion out and decomposing its result make the same graph.
    assert tuned.choices
    assert gemms_cost(made) < min(gemms_cost(plain), gemms_cost(onnx.load(net)))


def test_the_options_the_pipeline_and_the_backend_make_the_same_bytes(
    net: Path, tmp_path: Path
) -> None:
    out, again = tmp_path / "out.onnx", tmp_path / "again.onnx"
    tuned = tiered.tune(net, out, judge=Counting(gemms_cost), backend="portable")
    wanted = out.read_bytes()
    tiered.optimize(net, again, **tuned.settings)
    assert again.read_bytes() == wanted
    tiered.optimize(net, again, passes=tuned.pipeline, backend="portable")
    assert again.read_bytes() == wanted
    profile = tmp_path / "tuned.toml"
    profile.write_text(tuned.backend)
    tiered.optimize(net, again, opt_level=tuned.form.level, backend=str(profile))
    assert again.read_bytes() == wanted


def test_weights_in_a_file_of_their_own_are_part_of_a_form(net: Path, tmp_path: Path) -> None:
    model, apart = onnx.load(net), tmp_path / "apart.onnx"
    onnx.save(model, apart, save_as_external_data=True, location="w.bin", size_threshold=0)
    cost = Counting(gemms_cost)
    tuned = tiered.tune(apart, judge=cost, backend="portable")
    plain = Counting(gemms_cost)
    same = tiered.tune(net, judge=plain, backend="portable")
    # Equal forms are known as such, and the pipeline as text makes the same bytes.
    assert [each.reason for each in tuned.tried] == [each.reason for each in same.tried]
    assert (tuned.remarks, cost.calls) == ((), plain.calls)
    before = digest_of(apart)
    data = tmp_path / "w.bin"
    data.write_bytes(data.read_bytes()[::-1])
    assert digest_of(apart) != before
    data.unlink()
    with pytest.raises(ModelError, match=r"cannot read '.*w\.bin': No such file"):
        digest_of(apart)


def test_a_decision_about_some_nodes_replays_too(net: Path, tmp_path: Path) -> None:
    def cost(model: onnx.ModelProto) -> float:
        nodes = model.graph.node
        slow = [node for node in nodes if node.op_type == "Gemm" and {*node.output} & {"a"}]
        return len(nodes) + 5.0 * len(slow)

    # The two layers differ by their readers alone; make the sizes of the first one other ones.
    model = onnx.load(net)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 4
    first = numpy_helper.from_array(np.ones((4, 8), np.float32), "v")
    model.graph.initializer.append(first)
    model.graph.node[0].input[1] = "v"
    onnx.save(model, net)
    out, again = tmp_path / "out.onnx", tmp_path / "again.onnx"
    tuned = tiered.tune(net, out, judge=Counting(cost), backend="portable")
    scoped = [name for name in tuned.form.disabled if "@" in name]
    assert scoped, [each.text for each in tuned.tried]
    assert kinds(onnx.load(out)).count("Gemm") == 1
    assert "not:" in tuned.pipeline
    assert not tuned.remarks
    profile = tmp_path / "tuned.toml"
    profile.write_text(tuned.backend)
    tiered.optimize(net, again, opt_level=3, backend=str(profile))
    assert again.read_bytes() == out.read_bytes()


def test_what_pays_nowhere_is_the_reference(net: Path) -> None:
    tuned = tiered.tune(net, judge=Counting(lambda model: 1.0), backend="portable")
    assert (str(tuned.form), tuned.choices) == ("-O3 --backend portable", ())
    assert (tuned.pipeline != "", tuned.beside_reference) == (True, None)


def test_the_original_is_written_as_it_is(net: Path, tmp_path: Path) -> None:
    model, out = onnx.load(net), tmp_path / "out.onnx"
    model.graph.node[-1].output[0] = "z"
    model.graph.node.append(onnx.helper.make_node("Identity", ["z"], ["y"], "/last"))
    onnx.save(model, net)
    judge = Counting(lambda model: 1.0 if "Identity" in kinds(model) else 2.0)
    tuned = tiered.tune(net, out, judge=judge, backend="portable")
    assert tuned.to_dict()["is_original"]
    assert (tuned.pipeline, tuned.backend) == ("", "")
    assert kinds(onnx.load(out)) == kinds(onnx.load(net))


def test_a_candidate_that_is_wrong_is_rejected(net: Path, tmp_path: Path) -> None:
    wrong, right = tmp_path / "wrong.onnx", tmp_path / "right.onnx"
    model = onnx.load(net)
    model.graph.name = "peer"
    onnx.save(model, right)
    model.graph.node[2].op_type = "Sigmoid"
    onnx.save(model, wrong)
    out = tmp_path / "out.onnx"
    costs = {"Relu": 2.0, "Sigmoid": 1.0}
    judge = Counting(
        lambda model: costs[kinds(model)[2]] if model.graph.name == "peer"
        and "Gemm" not in kinds(model) else 3.0
    )  # fmt: skip
    tuned = tiered.tune(net, out, candidates=[wrong, right], judge=judge, backend="portable")
    assert tuned.form == ModelForm(None, file=str(right))
    assert kinds(onnx.load(out)) == [*kinds(model)[:2], "Relu", *kinds(model)[3:]]
    assert any("computes something else" in each.reason for each in tuned.tried)


def test_exact_outputs_begin_at_level_2(net: Path) -> None:
    tuned = tiered.tune(net, budget="exact", judge=Counting(lambda model: len(kinds(model))))
    assert str(tuned.reference) == "-O2"
    assert tuned.form.level in (0, 2)


def test_the_size_of_the_file_takes_no_measurement(net: Path) -> None:
    tuned = tiered.tune(net, objective="size", minutes=1)
    assert tuned.beside_original is not None
    assert tuned.beside_original.ratio.median < 1


def test_precision_is_a_decision_where_the_budget_allows_it(net: Path) -> None:
    tuned = tiered.tune(net, objective="size", budget="cosine>=0.9", backend="onnxruntime_cpu")
    tried = {each.text for each in tuned.tried}
    assert "with float_to_half" in tried
    strict = tiered.tune(net, objective="size", backend="onnxruntime_cpu")
    assert not any("half" in each.text for each in strict.tried)


def test_a_proto_is_tuned_and_not_changed(net: Path) -> None:
    model = onnx.load(net)
    before = model.SerializeToString()
    tuned = tiered.tune(model, judge=Counting(gemms_cost), backend="portable")
    assert tuned.choices
    assert model.SerializeToString() == before


def test_the_same_answers_make_the_same_result(net: Path, tmp_path: Path) -> None:
    results = [
        tiered.tune(net, tmp_path / f"{at}.onnx", judge=Counting(gemms_cost)).to_dict()
        for at in range(2)
    ]
    assert results[0] == results[1]
    assert (tmp_path / "0.onnx").read_bytes() == (tmp_path / "1.onnx").read_bytes()
    json.dumps(results[0])


def test_a_killed_search_goes_on(net: Path, tmp_path: Path) -> None:
    log, out = tmp_path / "log.json", tmp_path / "out.onnx"
    with pytest.raises(KeyboardInterrupt):
        tiered.tune(net, out, judge=Counting(gemms_cost, 2), log=log, backend="portable")
    assert log.exists()
    assert not out.exists()
    whole, rest = Counting(gemms_cost), Counting(gemms_cost)
    expected = tiered.tune(net, judge=whole, backend="portable")
    tuned = tiered.tune(net, out, judge=rest, log=log, resume=True, backend="portable")
    assert tuned.form == expected.form
    assert rest.calls == whole.calls - 2
    assert not log.exists()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"inputs": [{"x": np.ones((2, 8), np.float32)}]}, "inputs was ''"),
        ({"input_shapes": {"x": [2, 8]}}, "input shapes was {}"),
        ({"seed": 1}, "seed was 0, not 1"),
    ],
)
def test_a_search_on_other_inputs_is_another_search(
    net: Path, tmp_path: Path, other: dict[str, Any], said: str
) -> None:
    log = tmp_path / "log.json"
    with pytest.raises(KeyboardInterrupt):
        tiered.tune(net, judge=Counting(gemms_cost, 1), log=log, backend="portable")
    with pytest.raises(UsageError, match=said):
        tiered.tune(
            net, judge=Counting(gemms_cost), log=log, resume=True, backend="portable", **other
        )


def test_gains_at_other_sizes_are_other_gains(
    tmp_path: Path, fake_worker: type[FakeSession]
) -> None:
    net, cache = tmp_path / "net.onnx", tmp_path / "cache"
    onnx.save(parse("(float[n,8] x) => (float[n,8] y) { i = Identity(x)  y = Relu(i) }"), net)
    for size in (3, 4):
        tiered.tune(net, dims={"n": size}, cache=cache, minutes=0.001, backend="portable")
    tiered.tune(net, judge=Counting(gemms_cost), cache=cache, backend="portable")
    machines = sorted(json.loads(path.read_text())["machine"] for path in cache.iterdir())
    assert [text.rpartition(", ")[2] for text in machines] == [
        "measured by tests.extensions.tuning.test_tuning.Counting", "n=3", "n=4",
    ]  # fmt: skip


def test_the_cache_serves_a_model_with_equal_blocks(net: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = tiered.tune(net, judge=Counting(gemms_cost), cache=cache, backend="portable")
    longer = onnx.load(net)
    longer.graph.node[-1].output[0] = "z"
    longer.graph.node.append(onnx.helper.make_node("Abs", ["z"], ["y"], "/abs"))
    second = tiered.tune(longer, judge=Counting(gemms_cost), cache=cache, backend="portable")
    assert (first.reused, second.choices) == (0, first.choices)
    assert second.reused > 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"objective": "speed"}, "no objective 'speed'"),
        ({"budget": "any"}, "--budget 'any'"),
        ({"candidates": ["none.onnx"]}, "--candidates 'none.onnx': no such file"),
        ({"measure": "npu"}, "lacks {model}"),
        ({"measure": "npu {model}", "objective": "size"}, "leave --objective size out"),
        ({"measure": "npu {model}", "threads": 2}, "--threads 2 has no effect with --measure"),
        ({"measure": "npu {model}", "runtime_level": "off"}, "--runtime-level off has no effect"),
        ({"objective": "size", "clock": "processor"}, "no effect with --objective size"),
        ({"objective": "memory", "clock": "processor"}, "no effect with --objective memory"),
        ({"minutes": 0}, "minutes are a number above 0"),
        ({"backend": "onnxruntime_cpuu"}, "did you mean"),
        ({"resume": True}, "resume needs the log"),
        ({"provider": "cudda"}, "no provider"),
    ],
)
def test_wrong_settings_are_named(net: Path, settings: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        tiered.tune(net, **settings)  # type: ignore[arg-type]  # that they are wrong is the test


def test_the_model_is_not_overwritten(net: Path) -> None:
    with pytest.raises(UsageError, match="the model that is read"):
        tiered.tune(net, net)
    with pytest.raises(ModelError):
        tiered.tune(net.with_name("none.onnx"))


def test_forms_are_verified_at_the_sizes_that_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = tmp_path / "net.onnx"
    onnx.save(parse("(float[n,8] x) => (float[n,8] y) { i = Identity(x)  y = Relu(i) }"), net)
    asked: list[Any] = []

    def fault(*args: Any) -> str:
        asked.append(args[-1])
        return ""

    monkeypatch.setattr(OutputTolerance, "fault", fault)
    tiered.tune(net, objective="size", dims={"n": 5}, backend="portable")
    tiered.tune(net, objective="size", input_shapes={"x": [7, 8]}, backend="portable")
    assert next(shapes for shapes in asked if shapes != asked[0]) == {"x": [7, 8]}
    assert asked[0] == {"x": [5, -1]}
    with pytest.raises(UsageError, match="no input of the model has a dim 'm'"):
        tiered.tune(net, objective="size", dims={"m": 5})


def test_where_the_reference_exceeds_the_budget_the_original_is_kept(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OutputTolerance, "fault", lambda *args: "output y differs")
    out = tmp_path / "out.onnx"
    tuned = tiered.tune(net, out, judge=Counting(lambda model: 1.0), backend="portable")
    assert tuned.form == ModelForm(None)
    assert kinds(onnx.load(out)) == kinds(onnx.load(net))
    (remark,) = tuned.remarks
    assert "exceeds the budget reassociating: output y differs" in remark


def test_a_result_says_that_the_machine_drifted_and_the_command_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "Tuned", SimpleNamespace(of=lambda *given, **more: given[0].notes))
    drift = (
        "the machine drifted: the last rounds cost {} than the first ones; ratios are not "
        "affected, as the forms of a round drift together"
    )
    failing = CommandJudge("npu {model}")
    failing.failed = (2, "ended with exit code 3")
    failed = "the command failed 2 times; the last time it ended with exit code 3"
    for change, judge, notes in (
        (None, SizeJudge(), []), (1.25, SizeJudge(), [drift.format("25% more")]),
        (0.75, SizeJudge(), [drift.format("25% less")]), (None, CommandJudge("npu {model}"), []),
        (None, failing, [failed]), (1.5, failing, [drift.format("50% more"), failed]),
    ):  # fmt: skip
        run: Any = object.__new__(TuningRun)
        run._log = SimpleNamespace(drift=lambda change=change: change, measured=1)
        run._search = SimpleNamespace(found=SimpleNamespace(notes=[]))
        run._judge, run._cache = judge, SimpleNamespace(hits=0)
        run._reference = run._maker = None
        run._task = SimpleNamespace(budget=None)
        assert run.result(is_complete=True) == notes


def test_which_forms_a_search_begins_with(net: Path) -> None:
    here: Any = How()
    there: Any = SimpleNamespace(opening=lambda: SimpleNamespace(provider="of another device"))
    both = ["", "onnxruntime_cpu"]
    for how, backend, command, backends in (
        (here, None, None, both), (here, "portable", None, ["portable"]),
        (here, None, "npu {model}", [""]), (there, None, None, [""]),
    ):  # fmt: skip
        for budget, levels in (("exact", (2, 0)), ("cosine>=0.9", (3, 2, 0, 4))):
            task = TuningTask(
                str(net), how, budget=parse_budget(budget), backend=backend, command=command,
                candidates=("a.onnx",),
            )  # fmt: skip
            forms, reference = task.starts()
            base = task.budget.reference
            assert reference == ModelForm(base, backends[0])
            assert forms == [
                ModelForm(None),
                *(ModelForm(level, each) for level in levels for each in backends),
                ModelForm(None, file="a.onnx"),
                *(ModelForm(base, each, file="a.onnx") for each in backends),
            ]


def test_a_model_in_memory_is_no_file(net: Path) -> None:
    assert not _is_same(onnx.load(net), str(net))
    assert _is_same(net, f"{net.parent}/./net.onnx")
    assert not _is_same(net, f"{net}.onnx")
