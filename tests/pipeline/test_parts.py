"""extract, split and merge: parts of models, and models of parts."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tiered
from tests.conformance.cuts import fault
from tests.small import loaded_apart
from tiered import Model, ModelError, UsageError
from tiered.runtime import Session
from tiered.testing import parse

MODELS = sorted((Path(__file__).parents[2] / "examples" / "models").glob("*.onnx"))
A = """(float[N,4] x) => (float[N,4] h, float[N,4] q) <float[4] w = {1,2,3,4}> {
    [n] h = Add(x, w)  q = Neg(h) }"""
B = "(float[M,4] h) => (float[M,4] y) <float[4] w = {5,6,7,8}> { [n] t = Mul(h, w)  y = Relu(t) }"
X = np.array([[1, -20, 3, 4]], np.float32)


def names(infos: object) -> list[str]:
    return [info.name for info in infos]  # type: ignore[attr-defined]  # a protobuf list


def dims(info: onnx.ValueInfoProto) -> list[str | int]:
    found = info.type.tensor_type.shape.dim
    return [dim.dim_param or dim.dim_value for dim in found]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: str(path.name))
@pytest.mark.parametrize("seed", range(3))
def test_random_parts_are_the_model_again(path: Path, seed: int) -> None:
    assert fault(path, seed) == ""


def test_extract_takes_files_protos_and_views(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    onnx.save(parse(A), path)
    view = Model.load(path)
    for model in (path, str(path), parse(A), view):
        made = tiered.extract(model, ["h"], ["q"])
        assert [node.op_type for node in made.graph.node] == ["Neg"]
    assert len(view.main.nodes) == 2
    with pytest.raises(UsageError, match="inputs takes a list of names, not 'h'"):
        tiered.extract(path, "h")
    with pytest.raises(UsageError, match="expected a path"):
        tiered.extract(3, ["h"])  # type: ignore[arg-type]  # the point


def test_parts_pass_on_what_later_parts_read() -> None:
    text = """(float[2] x, float[2] u) => (float[2] y, float[2] a) {
        a = Neg(x)  b = Abs(a)  c = Add(b, a)  d = Mul(c, u)  y = Add(d, a) }"""
    parts = tiered.split(parse(text), ["b", ["d"]])
    assert [names(part.graph.input) for part in parts] == [["x"], ["b", "a", "u"], ["d", "a"]]
    assert [names(part.graph.output) for part in parts] == [["b", "a"], ["d"], ["y"]]
    with pytest.raises(UsageError, match="no node is left to compute a"):
        tiered.split(parse(text), ["b", "a"])
    with pytest.raises(UsageError, match="at least one"):
        tiered.split(parse(text), [])


def test_names_functions_and_dims_are_reconciled() -> None:
    made = tiered.merge(parse(A), parse(B))
    assert (names(made.graph.input), names(made.graph.output)) == (["x"], ["q", "y"])
    assert names(made.graph.initializer) == ["w", "w_1"]
    assert [node.name for node in made.graph.node] == ["n", "", "n_1", ""]
    assert dims(made.graph.output[1]) == ["N", 4]
    found = Session(made).run({"x": X})
    h = Session(parse(A)).run({"x": X})["h"]
    np.testing.assert_array_equal(found["y"], Session(parse(B)).run({"h": h})["y"])
    assert names(tiered.merge(parse(A), parse(B), keep=True).graph.output) == ["h", "q", "y"]


def test_the_only_output_is_connected_with_the_only_input() -> None:
    one = parse("(float[2] x) => (float[2] y) { y = Neg(x) }")
    two = parse("(float[2] a) => (float[2] b) { b = Abs(a) }")
    made = tiered.merge(one, two)
    assert [list(node.input) for node in made.graph.node] == [["x"], ["y"]]
    made = tiered.merge(one, two, connect={"y": "a"}, prefix="two_")
    assert names(made.graph.output) == ["two_b"]


def test_opsets_are_reconciled_by_conversion() -> None:
    old = parse("(float[2] x) => (float[2] h) { h = Clip<max = 2.0, min = 0.0>(x) }", opset=9)
    new = parse("(float[2] h) => (float[2] y) { y = Gelu(h) }", opset=20)
    reversed_pair = _renamed(new, "n"), _renamed(old, "o")
    for pair in ((old, new), reversed_pair):
        made = tiered.merge(*pair)
        assert [entry.version for entry in made.opset_import] == [20]
        onnx.checker.check_model(made, full_check=True)


def _renamed(model: onnx.ModelProto, suffix: str) -> onnx.ModelProto:
    """Return a model whose tensors have other names."""
    view = Model.from_proto(model)
    for value in [*view.main.values.values()]:
        view.main.rename_value(value, f"{value.name}_{suffix}")
    return view.to_proto()


FUNCTION = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
    g (float[2] IN) => (float[2] OUT) { OUT = own.f(IN) }
    <domain: "own", opset_import: ["" : 21]> f (x) => (y) { y = OP(x) }"""


@pytest.mark.parametrize(("operator", "count"), [("Neg", 1), ("Exp", 2)])
def test_equal_functions_are_one_and_others_get_a_name(operator: str, count: int) -> None:
    one = FUNCTION.replace("IN", "x").replace("OUT", "h").replace("OP", "Neg")
    two = FUNCTION.replace("IN", "h").replace("OUT", "y").replace("OP", operator)
    made = tiered.merge(parse(one), parse(two))
    assert len(made.functions) == count
    x = np.array([1, 2], np.float32)
    expected = x if operator == "Neg" else np.exp(-x)
    np.testing.assert_allclose(Session(made).run({"x": x})["y"], expected, rtol=1e-6)


def test_inputs_of_equal_name_are_one_input_and_bodies_keep_their_meaning() -> None:
    one = parse("(float[2] x, bool c) => (float[2] h) { t = Neg(x)  h = Abs(t) }")
    two = parse(
        """(float[2] h, bool c) => (float[2] y) {
        y = If(c) <then_branch = g1 () => (float[2] t) { t = Neg(h) },
                   else_branch = g2 () => (float[2] x) { x = Identity(h) }> }"""
    )
    made = tiered.merge(one, two)
    assert names(made.graph.input) == ["x", "c"]
    x = np.array([1, -2], np.float32)
    for c in (True, False):
        y = Session(made).run({"x": x, "c": np.array(c)})["y"]
        np.testing.assert_array_equal(y, -np.abs(x) if c else np.abs(x))


def test_weights_in_other_folders_are_found(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    one = loaded_apart(parse(A), tmp_path / "a")
    two = loaded_apart(parse(B), tmp_path / "b")
    made = tiered.merge(one, two)
    h = np.add(X, [1, 2, 3, 4])
    np.testing.assert_array_equal(Session(made).run({"x": X})["y"], np.maximum(h * [5, 6, 7, 8], 0))


@pytest.mark.parametrize(
    ("first", "second", "options", "error", "message"),
    [
        (A, B, {"connect": {"hh": "h"}}, UsageError, "no output 'hh'; did you mean 'h'"),
        (A, B, {"connect": {"h": "z"}}, UsageError, "no input 'z'; it has h"),
        (A, B, {"connect": {"h": "h", "q": "h"}}, UsageError, "connected twice"),
        (A, "(float[2] a) => (float[2] b) { b = Abs(a) }", {}, UsageError, "nothing connects"),
        (A, "(int64[N,4] h) => (int64[N,4] b) { b = Abs(h) }", {}, ModelError, "cannot be input"),
        (A, "(float[N,4] h) => (float[N,4] q) { q = Abs(h) }", {}, ModelError, "a tensor 'q'"),
        (
            A, "(float[N,4] h, int64 x) => (float[N,4] b) { b = Abs(h) }", {},
            ModelError, "both models have an input 'x'",
        ),
    ],
)  # fmt: skip
def test_models_that_do_not_fit_are_errors(
    first: str, second: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tiered.merge(parse(first), parse(second), **options)


def test_one_model_cannot_be_merged() -> None:
    with pytest.raises(UsageError, match="two models or more, not 1"):
        tiered.merge(parse(A))
