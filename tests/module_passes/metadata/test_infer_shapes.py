import pytest

from tiered import Model, get_pass
from tiered.testing import assert_unchanged, parse

PASS = "infer_shapes"


def test_types_are_known_and_the_interface_stays() -> None:
    proto = parse("(float[2,3] x) => (float[a,b] y) { t = Transpose(x) y = Relu(t) }")
    model = Model.from_proto(proto)
    get_pass(PASS).apply(model)
    assert [model.main.values[name].shape for name in ("t", "y")] == [(3, 2), (3, 2)]
    assert model.to_proto() == proto


def test_what_an_edit_makes_more_exact_is_noticed_below_it() -> None:
    model = Model.from_proto(
        parse(
            "(float[6] x, int64[2] s = {2,3}) => (float[a,b] y) { h = Reshape(x, s) y = Relu(h) }"
        )
    )
    infer = get_pass(PASS)
    infer.apply(model)
    assert model.main.values["y"].static_shape is None
    get_pass("remove_initializer_from_input").apply(model)
    infer.apply(model)
    assert model.main.values["y"].shape == (2, 3)


def test_the_users_value_info_stays() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[2] x) => (float[2] y) <float[2] h> { h = d.Mystery(x) y = Relu(h) }"
    )
    model = Model.from_proto(parse(text))
    get_pass(PASS).apply(model)
    assert model.main.values["h"].shape == (2,)
    assert model.to_proto() == parse(text)


def test_once_everything_is_known_there_is_nothing_to_do() -> None:
    assert_unchanged(PASS, "(float[2] x) => (float[2] y) { y = Relu(x) }")


def test_annotate_writes_the_types_of_inner_values() -> None:
    text = "(float[2,N] x) => (float[N,2] y) { t = Transpose(x) y = Relu(t) }"
    annotated = get_pass("shape_inference", annotate=True)
    made = annotated(parse(text))
    (info,) = made.graph.value_info
    dims = info.type.tensor_type.shape.dim
    assert (info.name, dims[0].dim_param, dims[1].dim_value) == ("t", "N", 2)
    assert annotated(made) == made


BODIES = """<ir_version: VERSION, opset_import: ["" : 21, "l" : 1]>
g (float[2] x, bool c) => (float[2] y) {
    z = l.f(x)
    y = If(c) <then_branch = t () => (float[2] b) { a = Neg(x) b = Relu(a) },
               else_branch = e () => (float[2] d) { d = Abs(z) }>
}
<domain: "l", opset_import: ["" : 21]> f (p) => (r) { q = Neg(p) r = Abs(q) }"""


@pytest.mark.parametrize(("version", "in_function"), [("8", 0), ("10", 1)])
def test_annotate_reaches_bodies_and_not_functions_of_an_older_ir(
    version: str, in_function: int
) -> None:
    made = get_pass("infer_shapes", annotate=True)(parse(BODIES.replace("VERSION", version)))
    assert [info.name for info in made.graph.value_info] == ["z"]
    branches = [a.g for a in made.graph.node[1].attribute if a.name == "then_branch"]
    assert [info.name for info in branches[0].value_info] == ["a"]
    assert len(made.functions[0].value_info) <= in_function
