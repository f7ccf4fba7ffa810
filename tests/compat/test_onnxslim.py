"""`slim` with the arguments of onnxslim's."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tiered
from tests.compat.test_onnxsim import NORM, TEXT, dims
from tests.recorded import assert_values
from tests.small import ops, proto
from tiered.compat import onnxslim
from tiered.support.errors import TargetError, UsageError
from tiered.testing import parse


def test_a_model_is_slimmed_or_written(tmp_path: Path) -> None:
    onnx.save(proto(TEXT), tmp_path / "m.onnx")
    made = onnxslim.slim(proto(TEXT), model_check=True)
    assert made is not None
    assert ops(made) == ["Add", "Abs"]
    out = tmp_path / "out.onnx"
    assert onnxslim.slim(str(tmp_path / "m.onnx"), str(out), save_as_external_data=True) is None
    assert ops(onnx.load(out)) == ["Add", "Abs"]
    assert (tmp_path / "out.onnx.data").exists()


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"skip_optimizations": ["constant_folding"]}, ["Sqrt", "Add", "Abs"]),
        ({"skip_fusion_patterns": ["EliminateIdentity"]}, ["Identity", "Add", "Abs"]),
        ({"size_threshold": 4}, ["Sqrt", "Add", "Abs"]),
        ({"no_shape_infer": True}, ["Add", "Abs"]),
    ],
)
def test_the_arguments_of_slim(settings: Any, left: list[str]) -> None:
    made = onnxslim.slim(proto(TEXT), **settings)
    assert made is not None
    assert sorted(ops(made)) == sorted(left)


def test_slim_computes_in_halves() -> None:
    made = onnxslim.slim(proto(TEXT), dtype="fp16", input_shapes={"x": [4, 2]})
    assert made is not None
    assert made.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
    assert dims(made) == [4, 2]


def test_slim_fixes_shapes_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    made = onnxslim.slim(proto(TEXT), input_shapes=["x:4,2"], verbose=True)
    assert made is not None
    assert dims(made) == [4, 2]
    assert "rewrites" in capsys.readouterr().err
    assert onnxslim.slim(parse(NORM.removeprefix("g ")), inspect=True) is None
    assert "1 Conv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"outputs": ["a"]}, "truncate_on_var"),
        ({"dtype": "fp12"}, "takes fp16, float16, fp32, float32 as dtype"),
        ({"dump_to_disk": True}, "tiered inspect MODEL --json"),
        ({"skip_optimizations": ["folding"]}, "there are constant_folding"),
    ],
)
def test_what_slim_cannot_do_is_refused(settings: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        onnxslim.slim(proto(TEXT), **settings)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"save_as_external_data": True}, "save_as_external_data needs output_model"),
        ({"model_check_inputs": ["x.npy"]}, "model_check_inputs needs model_check=True"),
        ({"inputs": ["x"]}, "slim cuts no models"),
        ({"skip_optimizations": "constant_folding"}, "no optimization 'c'; there are constant_f"),
        ({"input_shapes": "x:4,2"}, "expected a name and dims"),
    ],
)
def test_arguments_that_have_no_effect_are_refused(settings: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        onnxslim.slim(proto(TEXT), **settings)


def test_a_model_without_floats_has_no_halves() -> None:
    with pytest.raises(TargetError, match="no node computes in float, but in integers"):
        onnxslim.slim(proto("g (int64[n] x) => (int64[n] y) { y = Neg(x) }"), dtype="float16")


@pytest.mark.parametrize(
    ("dtype", "kind"), [("fp32", 1), ("float32", 1), (None, 1), ("float16", 10)]
)
def test_floats_stay_unless_halves_are_asked_for(dtype: str | None, kind: int) -> None:
    made = onnxslim.slim(proto(TEXT), dtype=dtype)
    assert made is not None
    assert [
        each.type.tensor_type.elem_type for each in (*made.graph.input, *made.graph.output)
    ] == [kind] * 3


@pytest.mark.parametrize(
    ("limit", "left"), [(7, ["Sqrt", "Add", "Abs"]), ("8B", ["Add", "Abs"]), (8, ["Add", "Abs"])]
)
def test_constants_up_to_a_size_are_folded(limit: int | str, left: list[str]) -> None:
    made = onnxslim.slim(proto(TEXT), size_threshold=limit)
    assert made is not None
    assert sorted(ops(made)) == sorted(left)


TIED = """g (float[2] x) => (float[2] y) <float[2] u = {1,2}, float[2] v = {1,2}> {
    d = Exp(x)  a = Add(x, u)  b = Mul(a, v)  c = Sin(b)  s = Sin(b)  y = Sub(c, s) }"""


@pytest.mark.parametrize(
    ("skipped", "nodes", "weights"),
    [
        ([], ["Add", "Mul", "Sin", "Sub"], 1),
        (["weight_tying"], ["Add", "Mul", "Sin", "Sub"], 2),
        (["subexpression_elimination"], ["Add", "Mul", "Sin", "Sin", "Sub"], 1),
        (["dead_node_elimination"], ["Add", "Exp", "Mul", "Sin", "Sub"], 1),
    ],
)
def test_optimizations_are_skipped_by_their_names(
    skipped: list[str], nodes: list[str], weights: int
) -> None:
    made = onnxslim.slim(proto(TIED), skip_optimizations=skipped)
    assert made is not None
    assert (sorted(ops(made)), len(made.graph.initializer)) == (nodes, weights)


def test_fusions_are_skipped_together() -> None:
    made = onnxslim.slim(proto(NORM), skip_optimizations=["graph_fusion"])
    assert made is not None
    assert ops(made) == ["Conv", "BatchNormalization"]


def test_inferred_types_are_written_unless_skipped(tmp_path: Path) -> None:
    text = "g (float[2,3] x) => (float[3,2] y) { t = Transpose(x) y = Exp(t) }"
    for skip, names in ((False, ["t"]), (True, [])):
        made = onnxslim.slim(proto(text), no_shape_infer=skip)
        assert made is not None
        onnxslim.slim(proto(text), str(tmp_path / "out.onnx"), no_shape_infer=skip)
        for model in (made, onnx.load(tmp_path / "out.onnx")):
            assert [info.name for info in model.graph.value_info] == names
    assert not (tmp_path / "out.onnx.data").exists()


def test_the_model_stays_and_a_check_takes_inputs(tmp_path: Path) -> None:
    given = proto(TEXT)
    np.save(tmp_path / "x.npy", np.ones((3, 2), np.float32))
    files = [str(tmp_path / "x.npy")]
    made = onnxslim.slim(given, model_check=True, model_check_inputs=files)
    assert made is not None
    assert given == proto(TEXT)
    np.save(tmp_path / "x.npy", np.ones((3, 4), np.float32))
    with pytest.raises(UsageError, match="the model takes float32"):
        onnxslim.slim(given, model_check=True, model_check_inputs=files)


@pytest.mark.parametrize(("check", "verify"), [(True, "final"), (False, "off")])
def test_only_a_check_verifies(check: bool, verify: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    real = tiered.optimize_model

    def noted(model: Any, **settings: Any) -> Any:
        asked.append(settings["verify"])
        return real(model, **settings)

    monkeypatch.setattr(tiered, "optimize_model", noted)
    onnxslim.slim(proto(TEXT), model_check=check)
    assert asked == [verify]


def test_a_summary_goes_to_stderr_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    onnxslim.slim(proto(TEXT))
    assert capsys.readouterr().err == ""
    onnxslim.slim(proto(TEXT), verbose=True)
    assert "nodes" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stderr", None)
    assert onnxslim.slim(proto(TEXT), verbose=True) is not None


def test_refused_arguments_of_slim_are_recorded() -> None:
    assert_values(__file__, {"slim": lambda **named: onnxslim.slim(proto(TEXT), **named)})
