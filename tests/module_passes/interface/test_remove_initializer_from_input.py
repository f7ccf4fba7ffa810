from tiered import Model, Value, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "remove_initializer_from_input"


def test_a_default_becomes_a_constant() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, float[2] w = {1,2}) => (float[2] y) { y = Add(x, w) }",
        "(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }",
    )


def test_the_other_inputs_keep_their_order() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, float[2] w = {1,2}, float[2] z, float[2] v = {3,4}) => (float[2] y)"
        " { a = Add(x, w) b = Mul(z, v) y = Sub(a, b) }",
        "(float[2] x, float[2] z) => (float[2] y) <float[2] w = {1,2}, float[2] v = {3,4}>"
        " { a = Add(x, w) b = Mul(z, v) y = Sub(a, b) }",
    )


def test_before_ir_4_the_version_is_raised() -> None:
    model = Model.from_proto(
        parse(
            '<ir_version: 3, opset_import: ["" : 8]>'
            " g (float[2] x, float[2] w = {1,2}) => (float[2] y) { y = Add(x, w) }"
        )
    )
    get_pass(PASS).apply(model)
    assert model.ir_version == 4
    assert [value.name for value in model.main.inputs] == ["x"]


def test_a_constant_has_the_type_of_its_contents() -> None:
    proto = parse("(float[2] x, float[2] w = {1,2}) => (float[2] y) { y = Add(x, w) }")
    proto.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "N"
    model = Model.from_proto(proto)
    weight = model.main.inputs[1]
    mark = model.mark()
    assert _described(weight) == "float[N], constant: False"
    get_pass(PASS).apply(model)
    assert _described(weight) == "float[2], constant: True"
    model.undo_to(mark)
    assert _described(weight) == "float[N], constant: False"


def _described(value: Value) -> str:
    return f"{value.type}, constant: {value.is_constant}"


def test_without_defaults_nothing_happens() -> None:
    assert_unchanged(PASS, "(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }")


def test_no_level_implies_it() -> None:
    info = get_pass(PASS).info
    assert info.opt_level is None
    assert info.changes_interface
