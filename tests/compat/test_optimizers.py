"""The functions of other optimizers: the same arguments, the same results."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import ops, proto
from tiered.compat import onnxoptimizer, onnxsim, onnxslim
from tiered.support.errors import PassNotFoundError, UsageError
from tiered.testing import parse

TEXT = """g (float[n,2] x) => (float[n,2] y, float[n,2] z) <float[2] w = {1,2}> {
    a = Identity(x)  k = Sqrt(w)  y = Add(a, k)  z = Abs(a) }"""
NORM = """g (float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {2}, float[1] s = {2},
    float[1] b = {1}, float[1] m = {0}, float[1] v = {1}> {
    c = Conv(x, w)  y = BatchNormalization<epsilon=0.0>(c, s, b, m, v) }"""


def dims(made: onnx.ModelProto) -> list[int]:
    return [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]


# --- onnxsim --------------------------------------------------------------------------------------


def test_a_model_or_a_file_is_simplified(tmp_path: Path) -> None:
    onnx.save(proto(TEXT), tmp_path / "m.onnx")
    given = proto(TEXT)
    for source in (given, str(tmp_path / "m.onnx")):
        made, is_right = onnxsim.simplify(source, check_n=2)
        assert (ops(made), is_right) == (["Add", "Abs"], True)
    assert given == proto(TEXT)


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"skip_constant_folding": True}, ["Sqrt", "Add", "Abs"]),
        ({"perform_optimization": False}, ["Identity", "Add", "Abs"]),
        ({"skipped_optimizers": ["eliminate_identity"]}, ["Identity", "Add", "Abs"]),
        ({"unused_output": ["z"]}, ["Add"]),
        ({"tensor_size_threshold": "4B"}, ["Sqrt", "Add", "Abs"]),
        ({"tensor_size_threshold": "1KB", "include_subgraph": True}, ["Add", "Abs"]),
    ],
)
def test_the_arguments_of_simplify(settings: Any, left: list[str]) -> None:
    made, is_right = onnxsim.simplify(proto(TEXT), **settings)
    assert (sorted(ops(made)), is_right) == (sorted(left), True)


def test_shapes_of_inputs_are_overwritten_or_only_tested() -> None:
    named: list[dict[str | None, list[int]]] = [{"x": [4, 2]}, {None: [4, 2]}]
    for shapes in named:
        made, _ = onnxsim.simplify(proto(TEXT), overwrite_input_shapes=shapes)
        assert dims(made) == [4, 2]
    made, is_right = onnxsim.simplify(proto(TEXT), check_n=1, test_input_shapes={"x": [4, 2]})
    assert (dims(made), is_right) == ([0, 2], True)
    data = {"x": np.ones((3, 2), np.float32)}
    assert onnxsim.simplify(proto(TEXT), check_n=1, input_data=data)[1]
    two = proto("g (float[n] x, float[n] z) => (float[n] y) { y = Add(x, z) }")
    with pytest.raises(UsageError, match="a shape without a name needs one input"):
        onnxsim.simplify(two, overwrite_input_shapes={None: [1]})


def test_norms_and_defaults_are_kept_on_request() -> None:
    assert ops(onnxsim.simplify(proto(NORM))[0]) == ["Conv"]
    kept = onnxsim.simplify(proto(NORM), skip_fuse_bn=True)[0]
    assert ops(kept) == ["Conv", "BatchNormalization"]
    text = "g (float[2] x, float[2] w = {1,2}) => (float[2] y) { y = Add(x, w) }"
    for mutable, count in ((False, 1), (True, 2)):
        made, _ = onnxsim.simplify(proto(text), mutable_initializer=mutable)
        assert len(made.graph.input) == count


def test_inferred_types_are_written_unless_skipped() -> None:
    text = "g (float[2,3] x) => (float[3,2] y) { t = Transpose(x) y = Exp(t) }"
    assert [v.name for v in onnxsim.simplify(proto(text))[0].graph.value_info] == ["t"]
    assert not onnxsim.simplify(proto(text), skip_shape_inference=True)[0].graph.value_info


def test_what_simplify_cannot_do_is_refused() -> None:
    with pytest.raises(UsageError, match=r"tiered.verify.register_operator"):
        onnxsim.simplify(proto(TEXT), custom_lib="lib.so")
    with pytest.raises(UsageError, match="the model has no output 'q'; it has y, z"):
        onnxsim.simplify(proto(TEXT), unused_output=["q"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"profile": "p.json"}, "simplify has no profile: tiered.Trace"),
        ({"certify": True}, "simplify has no certify: check_n"),
        ({"providers": ["CUDAExecutionProvider"]}, "CPUExecutionProvider only"),
        ({"input_fill": "twos"}, "one of random, ones, zeros, arange"),
    ],
)
def test_arguments_without_a_counterpart_are_refused(settings: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        onnxsim.simplify(proto(TEXT), **settings)


def test_the_model_is_rewritten_and_converted_first() -> None:
    def drop_sqrt(model: onnx.ModelProto) -> bool | None:
        nodes = [node for node in model.graph.node if node.op_type == "Sqrt"]
        for node in nodes:
            node.op_type = "Exp"
        return None if nodes else False

    made, _ = onnxsim.simplify(proto(TEXT), custom_rewriter=drop_sqrt, skip_constant_folding=True)
    assert sorted(ops(made)) == ["Abs", "Add", "Exp"]
    opsets = '<domain: "rules", opset_import: ["" : 21]>'
    rules = [
        (
            onnx.parser.parse_function(f"{opsets} a (x) => (y) {{ y = Abs(x) }}"),
            onnx.parser.parse_function(f"{opsets} b (x) => (y) {{ y = Sqrt(x) }}"),
        )
    ]
    made, _ = onnxsim.simplify(proto(TEXT), function_rewrite_rules=rules)
    assert sorted(ops(made)) == ["Add", "Sqrt"]
    with pytest.raises(ValueError, match="not both"):
        onnxsim.simplify(proto(TEXT), custom_rewriter=drop_sqrt, function_rewrite_rules=rules)
    made, _ = onnxsim.simplify(proto(TEXT), target_opset_version=18)
    assert made.opset_import[0].version == 18


def test_weights_may_count_as_variables(tmp_path: Path) -> None:
    given = proto(TEXT)
    made, is_right = onnxsim.simplify(given, initializers_as_constants=False, check_n=1)
    assert (sorted(ops(made)), is_right) == (["Abs", "Add", "Sqrt"], True)
    assert [value.name for value in made.graph.input] == ["x"]


def test_the_check_has_tolerances_and_fills(tmp_path: Path) -> None:
    out = str(tmp_path / "out.onnx")
    settings: dict[str, Any] = {"check_n": 1, "check_rtol": 1e-3, "check_atol": 1e-3}
    for fill in ("ones", "zeros", "arange"):
        assert onnxsim.simplify(proto(TEXT), input_fill=fill, output_path=out, **settings)[1]
    assert sorted(ops(onnx.load(out))) == ["Abs", "Add"]


# --- onnxoptimizer --------------------------------------------------------------------------------


def test_passes_run_in_their_order_whatever_their_level() -> None:
    names = ["eliminate_identity", "fuse_bn_into_conv"]
    assert set(names) <= set(onnxoptimizer.get_fuse_and_elimination_passes())
    assert "fold_constant" in onnxoptimizer.get_available_passes()
    assert ops(onnxoptimizer.optimize(proto(NORM), names)) == ["Conv"]
    assert ops(onnxoptimizer.optimize(proto(NORM))) == ["Conv"]
    made = onnxoptimizer.optimize(proto(TEXT), ["eliminate_identity"], fixed_point=True)
    assert ops(made) == ["Sqrt", "Add", "Abs"]
    with pytest.raises(PassNotFoundError, match="did you mean 'eliminate_identity'"):
        onnxoptimizer.optimize(proto(TEXT), ["eliminate_identiy"])
    with pytest.raises(ValueError, match=r"takes an onnx\.ModelProto, not str"):
        onnxoptimizer.optimize("model.onnx")  # type: ignore[arg-type]  # what is wrong


# --- onnxslim -------------------------------------------------------------------------------------


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
