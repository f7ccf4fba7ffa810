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
