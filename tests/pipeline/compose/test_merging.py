"""merge: several models as one."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tiered
from tests.small import loaded_apart
from tiered import Model, ModelError, UsageError
from tiered.pipeline.compose.merging import has_merged
from tiered.runtime import Session
from tiered.testing import parse

A = """(float[N,4] x) => (float[N,4] h, float[N,4] q) <float[4] w = {1,2,3,4}> {
    [n] h = Add(x, w)  q = Neg(h) }"""
B = "(float[M,4] h) => (float[M,4] y) <float[4] w = {5,6,7,8}> { [n] t = Mul(h, w)  y = Relu(t) }"
X = np.array([[1, -20, 3, 4]], np.float32)


def names(infos: object) -> list[str]:
    return [info.name for info in infos]  # type: ignore[attr-defined]  # a protobuf list


def dims(info: onnx.ValueInfoProto) -> list[str | int]:
    found = info.type.tensor_type.shape.dim
    return [dim.dim_param or dim.dim_value for dim in found]


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


def test_an_input_that_is_an_output_is_connected() -> None:
    one = parse("(float[2] x) => (float[2] x, float[2] g) { g = Neg(x) }")
    made = tiered.merge(one, parse(TWO), connect={"x": "h"}).graph
    assert (names(made.input), names(made.output)) == (["x"], ["g", "y"])
    assert [list(node.input) for node in made.node] == [["x"], ["x"]]


def test_names_decide_what_is_connected() -> None:
    one = parse("(float[2] x) => (float[2] y) { y = Neg(x) }")
    two = parse("(float[2] a) => (float[2] b) { b = Abs(a) }")
    with pytest.raises(UsageError, match=r"nothing connects .* outputs y, .* inputs a,"):
        tiered.merge(one, two)
    apart = tiered.merge(one, two, connect="names")
    assert (names(apart.graph.input), names(apart.graph.output)) == (["x", "a"], ["y", "b"])
    made = tiered.merge(one, two, connect={"y": "a"})
    assert [list(node.input) for node in made.graph.node] == [["x"], ["y"]]
    made = tiered.merge(one, two, connect={"y": "a"}, prefix="two_")
    assert names(made.graph.output) == ["two_b"]


def test_models_of_one_input_are_side_by_side() -> None:
    one = parse("(float[2] x) => (float[2] y) { y = Neg(x) }")
    two = parse("(float[2] x) => (float[2] z) { z = Abs(x) }")
    made = tiered.merge(one, two)
    assert (names(made.graph.input), names(made.graph.output)) == (["x"], ["y", "z"])
    assert [list(node.input) for node in made.graph.node] == [["x"], ["x"]]


def test_an_output_becomes_several_inputs() -> None:
    one = parse("(float[n] x) => (float[n] y) { y = Neg(x) }")
    two = parse("""(float[m] p, float[k] q) => (float[m] z, float[k] w) {
        z = Sub(p, q)  w = Abs(q) }""")
    made = tiered.merge(one, two, connect={"y": ["p", "q"]})
    assert names(made.graph.input) == ["x"]
    assert [dims(info) for info in made.graph.output] == [["n"], ["n"]]
    assert [list(node.input) for node in made.graph.node] == [["x"], ["y", "y"], ["y"]]


B2 = "(float[2,4] h) => (float[2,4] y) { y = Abs(h) }"


@pytest.mark.parametrize(
    ("first", "second", "inputs", "outputs"),
    [
        # A size decides over a name, in both models.
        ("(float[n,4] x, float[n] k) => (float[n,4] h) { h = Neg(x) }", B2,
         [[2, 4], [2]], [[2, 4]]),
        ("(float[2,4] x) => (float[2,4] h) { h = Neg(x) }",
         "(float[m,k] h, float[m] z) => (float[m,k] y) { y = Abs(h) }", [[2, 4], [2]], [[2, 4]]),
        # Names of the first model that the second one makes equal are one name.
        ("(float[n,m] x) => (float[n,m] h) { h = Neg(x) }",
         "(float[k,k] h) => (float[k,k] y) { y = Abs(h) }", [["n", "n"]], [["n", "n"]]),
        # Inputs that are one have the dims of both.
        ("(float[n,?] x) => (float[n,?] u) { u = Neg(x) }",
         "(float[2,c] x) => (float[2,c] y) { y = Abs(x) }", [[2, "c"]], [[2, 0], [2, "c"]]),
        # Another dim of a name that is taken now.
        ("(float[n] x) => (float[n] h) { h = Neg(x) }",
         "(float[m] h, float[n] z) => (float[m] y) { y = Abs(h) }", [["n"], ["n_1"]], [["n"]]),
        # What no tensor joins stays apart, also where sizes are known elsewhere.
        ("(float[n] x, float[3] z) => (float[n] h) { h = Neg(x) }",
         "(float[2] h, float[m] z) => (float[m] y) { y = Abs(z) }", [[2], [3]], [[3]]),
    ],
)  # fmt: skip
def test_dims_of_tensors_that_become_one_are_equal(
    first: str, second: str, inputs: list[Any], outputs: list[Any]
) -> None:
    made = tiered.merge(parse(first), parse(second)).graph
    assert [dims(info) for info in made.input] == inputs
    assert [dims(info) for info in made.output] == outputs


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("(float[n,n] x) => (float[n,n] h) { h = Neg(x) }",
         "(float[2,3] h) => (float[2,3] y) { y = Abs(h) }",
         r"dim 'n' would be both 2 and 3: 'h' is float\[n,n\] and 'h' is float\[2,3\]"),
        ("(float[n] x, float[n] z) => (float[n] h) { h = Neg(x) }",
         "(float[2] h, float[3] z) => (float[3] y) { y = Abs(z) }",
         r"both 2 and 3: 'h' is float\[n\] and 'h' is float\[2\], but 'z' is float\[n\] and"),
        ("(float[2] x, float[3] z) => (float[2] h) { h = Neg(x) }",
         "(float[m] h, float[m] z) => (float[m] y) { y = Abs(h) }",
         "dim 'm' would be both 2 and 3"),
        ("(float[n] x, float[2] z, float[a] u) => (float[n] h) { h = Neg(x) }",
         "(float[m] h, float[m] z, float[3] u, float[m] x) => (float[m] y) { y = Abs(h) }", ""),
    ],
)  # fmt: skip
def test_dims_that_contradict_each_other_are_an_error(
    first: str, second: str, message: str
) -> None:
    if not message:
        made = tiered.merge(parse(first), parse(second)).graph
        assert [dims(info) for info in made.input] == [[2], [2], [3]]
        return
    with pytest.raises(ModelError, match=message):
        tiered.merge(parse(first), parse(second))


def test_weights_of_equal_name_and_content_are_one() -> None:
    weights = "<float[2] w = {1,2}, float[2] v = {3,4}>"
    one = parse(f"(float[2] x) => (float[2] h) {weights} {{ a = Add(x, w)  h = Mul(a, v) }}")
    two = parse(f"(float[2] h) => (float[2] y) {weights.replace('3,4', '3,5')}"
                " { b = Add(h, w)  y = Mul(b, v) }")  # fmt: skip
    made = tiered.merge(one, two)
    assert names(made.graph.initializer) == ["w", "v", "v_1"]
    assert [list(node.input) for node in made.graph.node] == [
        ["x", "w"], ["a", "v"], ["h", "w"], ["b", "v_1"]
    ]  # fmt: skip


def test_opsets_are_reconciled_by_conversion() -> None:
    old = parse("(float[2] x) => (float[2] h) { h = Clip<max = 2.0, min = 0.0>(x) }", opset=9)
    new = parse("(float[2] h) => (float[2] y) { y = Gelu(h) }", opset=20)
    for pair, names_of in (((old, new), ("h", "h")), ((new, old), ("y", "x"))):
        others = _renamed(pair[0], "n"), _renamed(pair[1], "o")
        connect = {f"{names_of[0]}_n": f"{names_of[1]}_o"}
        made = tiered.merge(*others, connect=connect)
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


def test_functions_of_both_models_are_there() -> None:
    one = FUNCTION.replace("IN", "x").replace("OUT", "h").replace("OP", "Neg")
    two = FUNCTION.replace("IN", "h").replace("OUT", "y").replace("OP", "Exp").replace("f (", "g (")
    two = two.replace("own.f(", "own.g(")
    made = tiered.merge(parse(one), parse(two))
    assert [(f.name, f.node[0].op_type) for f in made.functions] == [("f", "Neg"), ("g", "Exp")]
    assert [node.op_type for node in made.graph.node] == ["f", "g"]


def test_types_and_annotations_of_both_models_are_there_once() -> None:
    one = parse("""(float[2] x) => (float[2] h, float[2] g, float[2] r)
        <float[2] w = {1,2}, float[2] a> {
        a = Add(x, w)  h = own.F(a)  g = Neg(a)  t = own.F(a)  r = Relu(t) }""")
    two = parse("""(float[2] h, float[2] g, float[2] r) => (float[2] y)
        <float[2] w = {1,2}, float[2] b> {
        b = Add(h, w)  c = Sum(b, g, r)  y = own.G(c) }""")
    for proto, noted in ((one, "axh"), (two, "bhwy")):
        for name in noted:
            entry = proto.graph.quantization_annotation.add(tensor_name=name)
            entry.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    two.graph.value_info.extend([*two.graph.input[:1]])
    graph = tiered.merge(one, two).graph
    # The types of h and r follow from no operator: they would be lost.
    assert names(graph.value_info) == ["a", "h", "r", "b"]
    assert [entry.tensor_name for entry in graph.quantization_annotation] == [*"axhbwy"]
    assert names(tiered.merge(one, two, keep=True).graph.value_info) == ["a", "b"]
    one.graph.value_info.extend([*one.graph.output[:1]])
    assert names(tiered.merge(one, two).graph.value_info) == ["a", "h", "r", "b"]


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
    expected = np.maximum(h * [5, 6, 7, 8], 0)
    np.testing.assert_array_equal(Session(made).run({"x": X})["y"], expected)
    for first, second in ((one, parse(B)), (parse(A), two)):
        made = tiered.merge(first, second)
        np.testing.assert_array_equal(Session(made).run({"x": X})["y"], expected)


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


def test_names_and_a_prefix_are_for_two_models() -> None:
    one = "(float[2] x) => (float[2] y) { y = Neg(x) }"
    models = [parse(one), parse(one.replace("y", "z")), parse(one.replace("y", "w"))]
    for options in ({"connect": {"y": "x"}}, {"prefix": "p_"}):
        with pytest.raises(UsageError, match="are for two models; merge them two by two"):
            tiered.merge(*models, **options)
    assert tiered.merge(*models[:2], connect={"y": "x"}).graph.output
    assert names(tiered.merge(*models).graph.output) == ["y", "z", "w"]


def test_a_domain_has_one_version() -> None:
    def own(version: int) -> onnx.ModelProto:
        return onnx.parser.parse_model(
            f"""<ir_version: 10, opset_import: ["" : 21, "own" : {version}]> g
            (float[2] x) => (float[2] y{version}) {{ y{version} = own.F(x) }}"""
        )

    with pytest.raises(ModelError, match="the models import own at 1 and 2"):
        tiered.merge(own(1), own(2))


def test_a_model_without_the_standard_domain_needs_no_conversion() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["own" : 1]> g
        (float[2] x) => (float[2] y) { y = own.F(x) }"""
    )
    made = tiered.merge(proto, parse("(float[2] x) => (float[2] z) { z = Neg(x) }"))
    assert {entry.domain: entry.version for entry in made.opset_import} == {"own": 1, "": 21}


def test_training_graphs_cannot_be_merged() -> None:
    second = parse(B)
    second.training_info.add()
    with pytest.raises(ModelError, match="the second model has training graphs"):
        tiered.merge(parse(A), second)


ONE = "(float[2] x) => (float[2] h) { h = Neg(x) }"
TWO = "(float[2] h) => (float[2] y) { y = Abs(h) }"


@pytest.mark.parametrize(
    ("whole", "second", "options", "expected"),
    [
        (None, TWO, {}, True),
        (None, TWO, {"connect": {"h": "h"}}, True),
        (None, TWO, {"connect": {"h": ["h"]}}, True),
        (None, TWO.replace("Abs", "Neg"), {}, False),
        (None, TWO.replace("y", "z"), {}, False),
        (None, TWO.replace("h", "k"), {}, False),
        (ONE, TWO, {}, False),
        ("(float[2] x) => (float[2] h, float[2] y) { h = Neg(x)  y = Abs(h) }", TWO, {}, False),
        (
            "(float[2] x) => (float[2] h, float[2] y) { h = Neg(x)  y = Abs(h) }",
            TWO,
            {"keep": True},
            True,
        ),
        (
            "(float[2] x) => (float[2] p_y) { h = Neg(x)  p_y = Abs(h) }",
            TWO,
            {"prefix": "p_", "connect": {"h": "h"}},
            True,
        ),
    ],
)
def test_a_model_has_another_if_it_computes_its_outputs(
    whole: str | None, second: str, options: dict[str, Any], expected: bool
) -> None:
    made = tiered.merge(parse(ONE), parse(TWO)) if whole is None else parse(whole)
    views = Model.from_proto(made), Model.from_proto(parse(second))
    assert has_merged(*views, **options) is expected
