"""`simplify` with the arguments of onnxsim's."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.recorded import assert_values
from tests.small import ops, proto
from tiered.compat import onnxsim
from tiered.extensions.debug import compare_models
from tiered.support.errors import UsageError, VerificationError

TEXT = """g (float[n,2] x) => (float[n,2] y, float[n,2] z) <float[2] w = {1,2}> {
    a = Identity(x)  k = Sqrt(w)  y = Add(a, k)  z = Abs(a) }"""
NORM = """g (float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {2}, float[1] s = {2},
    float[1] b = {1}, float[1] m = {0}, float[1] v = {1}> {
    c = Conv(x, w)  y = BatchNormalization<epsilon=0.0>(c, s, b, m, v) }"""


def dims(made: onnx.ModelProto) -> list[int]:
    return [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]


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


REFUSED = (
    *("custom_lib", "profile", "ort_profile", "merge_ort_profile", "range_opt", "certify"),
    *("check_hazards", "check_gradients"),
)


@pytest.mark.parametrize("name", REFUSED)
def test_each_refused_argument_is_named_if_it_is_set(name: str) -> None:
    settings: dict[str, Any] = {name: "x"}
    with pytest.raises(UsageError, match=f"^simplify has no {name}: "):
        onnxsim.simplify(proto(TEXT), **settings)
    assert onnxsim.simplify(proto(TEXT), **{name: None})[1]  # type: ignore[arg-type]  # as above


def test_the_provider_of_the_processor_is_the_only_one() -> None:
    assert onnxsim.simplify(proto(TEXT), providers=["CPUExecutionProvider"])[1]
    both = ["CPUExecutionProvider", "CUDAExecutionProvider"]
    with pytest.raises(UsageError, match=r"CPUExecutionProvider only, not on \['CPUE"):
        onnxsim.simplify(proto(TEXT), providers=both)


@pytest.mark.parametrize(
    ("given", "version"), [(None, 21), (22, 22), ("latest", onnx.defs.onnx_opset_version())]
)
def test_the_opset_is_a_number_or_the_latest(given: Any, version: int) -> None:
    made, _ = onnxsim.simplify(proto(TEXT), target_opset_version=given)
    assert made.opset_import[0].version == version


def test_another_opset_is_an_error() -> None:
    wrong: Any = "newest"
    with pytest.raises(UsageError, match="is a number or \"latest\", not 'newest'"):
        onnxsim.simplify(proto(TEXT), target_opset_version=wrong)
    with pytest.raises(UsageError, match="there is no opset 99"):
        onnxsim.simplify(proto(TEXT), target_opset_version=99)


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        ("7B", ["Sqrt", "Add", "Abs"]),
        ("8B", ["Add", "Abs"]),
        ("1%", ["Sqrt", "Add", "Abs"]),
        ("99%", ["Add", "Abs"]),
    ],
)
def test_constants_up_to_a_size_or_share_are_folded(limit: str, left: list[str]) -> None:
    """The model has about 200 bytes, its one weight 8."""
    assert sorted(ops(onnxsim.simplify(proto(TEXT), tensor_size_threshold=limit)[0])) == sorted(
        left
    )


def test_what_a_file_holds_is_what_is_returned(tmp_path: Path) -> None:
    text = "g (float[2,3] x) => (float[3,2] y) { t = Transpose(x) y = Exp(t) }"
    out = tmp_path / "out.onnx"
    for skip in (False, True):
        made, _ = onnxsim.simplify(proto(text), skip_shape_inference=skip, output_path=str(out))
        assert onnx.load(out) == made


@pytest.mark.parametrize(("threshold", "is_apart"), [("1B", True), ("1GB", False), ("100%", True)])
def test_weights_of_a_file_are_beside_it_from_a_size_on(
    tmp_path: Path, threshold: str, is_apart: bool
) -> None:
    out = tmp_path / "out.onnx"
    settings: dict[str, Any] = {"skip_constant_folding": True, "output_path": str(out)}
    onnxsim.simplify(proto(TEXT), external_data_threshold=threshold, **settings)
    assert (tmp_path / "out.onnx.data").exists() is is_apart
    assert sorted(ops(onnx.load(out))) == ["Abs", "Add", "Sqrt"]


def test_the_old_name_of_shapes_counts_if_the_new_one_is_not_given() -> None:
    made, _ = onnxsim.simplify(proto(TEXT), input_shapes={"x": [4, 2]})
    assert dims(made) == [4, 2]
    both: dict[str, Any] = {"input_shapes": {"x": [4, 2]}, "overwrite_input_shapes": {"x": [5, 2]}}
    assert dims(onnxsim.simplify(proto(TEXT), **both)[0]) == [5, 2]


def test_a_default_is_no_only_input() -> None:
    text = "g (float[n] x, float[n] w) => (float[n] y) <float[2] w = {1,2}> { y = Add(x, w) }"
    made, _ = onnxsim.simplify(
        proto(text), overwrite_input_shapes={None: [2]}, mutable_initializer=True
    )
    assert dims(made) == [2]


def test_an_output_is_removed_once() -> None:
    with pytest.raises(UsageError, match="the model has no output 'y'; it has z"):
        onnxsim.simplify(proto(TEXT), unused_output=["y", "y"])


def test_a_wrong_rewrite_is_what_is_compared_with() -> None:
    """The check compares with the model as the user's rewriter returns it."""

    def other(model: onnx.ModelProto) -> onnx.ModelProto:
        return proto(TEXT.replace("Abs", "Neg"))

    made, is_right = onnxsim.simplify(proto(TEXT), custom_rewriter=other, check_n=1)
    assert (ops(made), is_right) == (["Add", "Neg"], True)
    same, _ = onnxsim.simplify(proto(TEXT), custom_rewriter=lambda model: False)
    assert ops(same) == ["Add", "Abs"]


def test_a_difference_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*models: Any, **settings: Any) -> Any:
        assert (settings["rtol"], settings["atol"]) == (1e-4, 1e-5)
        raise VerificationError("another output")

    monkeypatch.setattr(onnxsim, "compare_models", wrong)
    assert onnxsim.simplify(proto(TEXT), check_n=1)[1] is False
    assert onnxsim.simplify(proto(TEXT))[1] is True


@pytest.mark.parametrize(
    ("fill", "feed"),
    [("ones", [[1, 1], [1, 1]]), ("zeros", [[0, 0], [0, 0]]), ("arange", [[0, 1], [2, 3]])],
)
def test_inputs_of_the_check_are_filled(
    fill: str, feed: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fed: list[Any] = []
    real = compare_models

    def noted(before: Any, after: Any, **settings: Any) -> Any:
        fed.extend(settings["inputs"])
        return real(before, after, **settings)

    monkeypatch.setattr(onnxsim, "compare_models", noted)
    shapes: dict[str | None, list[int]] = {"x": [2, 2]}
    assert onnxsim.simplify(proto(TEXT), check_n=1, input_fill=fill, test_input_shapes=shapes)[1]
    assert [each["x"].tolist() for each in fed] == [feed]
    assert fed[0]["x"].dtype == np.float32
    own = {"x": np.full((2, 2), 7, np.float32)}
    onnxsim.simplify(proto(TEXT), check_n=1, input_fill=fill, input_data=own)
    assert fed[1]["x"] is own["x"]


def test_passes_are_added_whatever_their_level() -> None:
    given = proto(TEXT)
    given.metadata_props.add(key="author", value="somebody")
    settings: dict[str, Any] = {"skipped_optimizers": ["eliminate_identity"]}
    made, _ = onnxsim.simplify(given, extra_optimizers=["strip"], **settings)
    assert sorted(ops(made)) == ["Abs", "Add", "Identity"]
    assert not made.metadata_props
    assert onnxsim.simplify(given, **settings)[0].metadata_props


def test_arguments_of_simplify_are_recorded() -> None:
    two = "g (float[n] x, float[n] z) => (float[n] y) { y = Add(x, z) }"

    def made(text: str = TEXT, **settings: Any) -> object:
        found, is_right = onnxsim.simplify(proto(text), **settings)
        return sorted(ops(found)), is_right, dims(found)

    names = {"made": made, "TWO": two, "tanh": lambda given: proto(
        "g (float[n,2] x) => (float[n,2] y) { y = Tanh(x) }"), "np": np}  # fmt: skip
    assert_values(__file__, names)
