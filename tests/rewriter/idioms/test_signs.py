"""Who reads the sign of a zero, while edits are made, and what is never negative."""

from typing import Any, Final

import pytest

from tiered.graph import Model, Value
from tiered.rewriter.idioms.signs import is_never_negative, zero_sign_matters
from tiered.testing import parse

CHAIN = "(float[4] x) => (float[4] y) { a = Neg(x)  b = Abs(a)  c = Neg(b)  y = Sqrt(c) }"
INSIDE = """(float[4] x, bool p) => (float[4] y) {
    a = Neg(x)
    r = If(p) <then_branch = t () => (float[4] u) { u = Neg(a) },
               else_branch = e () => (float[4] v) { v = Identity(a) }>
    y = Abs(r) }"""


def of(model: Model, name: str) -> Value:
    value = model.main.value(name)
    assert value is not None
    return value


def matters(model: Model, name: str) -> bool:
    return zero_sign_matters(of(model, name))


def test_a_new_reader_is_seen_and_one_that_went_is_not() -> None:
    model = Model.from_proto(parse(CHAIN))
    assert not any(matters(model, name) for name in "abcxy")
    mark = model.mark()
    model.main.replace(model.main.nodes_of("Sqrt")[0], [model.main.op.Reciprocal(of(model, "c"))])
    assert [matters(model, name) for name in "cbax"] == [True, True, False, False]
    model.undo_to(mark)
    assert not any(matters(model, name) for name in "abcxy")


def test_what_is_no_longer_erased_is_seen() -> None:
    model = Model.from_proto(parse(CHAIN.replace("Sqrt(c)", "Reciprocal(c)")))
    assert [matters(model, name) for name in "cbax"] == [True, True, False, False]
    model.main.replace_uses(of(model, "b"), of(model, "a"))
    assert [matters(model, name) for name in "cax"] == [True, True, True]


@pytest.mark.parametrize("branch", [0, 1])
def test_a_reader_inside_a_body_is_seen(branch: int) -> None:
    model = Model.from_proto(parse(INSIDE))
    assert not matters(model, "a")
    body = model.main.nodes_of("If")[0].bodies[branch]
    last = body.outputs[0].producer
    assert last is not None
    body.replace(last, [body.op.Reciprocal(of(model, "a"))])
    assert matters(model, "a")
    assert matters(model, "x")


def test_the_reader_of_a_result_of_a_body_is_seen() -> None:
    model = Model.from_proto(parse(INSIDE))
    assert not matters(model, "a")
    result = model.main.nodes_of("If")[0].output
    model.main.replace(model.main.nodes_of("Abs")[0], [model.main.op.Reciprocal(result)])
    assert matters(model, "a")


READS: Final = {
    "y = Div(x, w)": "w",
    "y = Reciprocal(x)": "x",
    "y = Pow(x, w)": "x",
    "y = Pow(x, minus)": "x",
    "y = Pow(x, zero)": "",
    "y = Add(x, w)": "",
    "y = vendor.F(x, , w)": "wx",
    "n = Cast<to=7>(x) y = vendor.F(n)": "",
    "n = vendor.G(x) m = Add(n, w) y = Div(x, m)": "mnwx",
    "y = ai.onnx.ml.Binarizer(x)": "",
    "n = Cast<to=8>(x) y = Identity(w)": "x",
    "n = Cast<to=7>(x) y = Identity(w)": "",
}
ERASES: Final = {
    "Neg(x)": False,
    "Cosh(x)": True,
    "ai.onnx.ml.Scaler(x)": False,
    "Mul(x, x)": True,
    "Mul(x, w)": False,
    "Add(x, x)": False,
    "Add(x, one)": True,
    "Add(one, x)": True,
    "Sub(x, minus)": True,
    "Mul(x, one)": False,
    "Add(x, zero)": False,
    "Add(x, w)": False,
    "Pow(x, two)": True,
    "Pow(x, half)": True,
    "Pow(x, inf)": True,
    "Pow(x, one)": False,
    "Pow(x, mixed)": False,
    "Clip(x, one)": True,
    "Clip(x, zero)": False,
    "Clip(x, , one)": False,
    "Max(x, w, one)": True,
    "Max(x, mixed)": False,
    "Max(x, zero)": False,
    "Min(x, one)": False,
}
NUMBERS: Final = (
    "float one = {1}, float minus = {-1}, float zero = {0}, float two = {2}, float half = {0.5},"
    " float inf = {inf}, float[2] mixed = {0, 3}, float[2] even = {2, -4},"
    " float[2] signed = {0, -0.0}"
)


def given(nodes: str) -> Model:
    text = (
        '<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 1, "vendor": 1]> g'
        " (float[4,2] x, float[4,2] w, int32[2] i, int64[1] a) => (float[4,2] y)"
    )
    return Model.from_proto(parse(f"{text} <{NUMBERS}> {{ {nodes} }}"))


def test_some_operators_read_the_sign_of_a_zero() -> None:
    for nodes, names in READS.items():
        model = given(nodes)
        found = "".join(
            name for name in "mnwx" if name in model.main.values and matters(model, name)
        )
        assert found == names, nodes


def test_some_operators_compute_the_same_for_both_zeros() -> None:
    for call, erases in ERASES.items():
        model = given(f"t = {call} y = Reciprocal(t)")
        assert matters(model, "t"), call
        assert matters(model, "x") is not erases, call


def test_a_state_of_a_loop_is_read_where_its_next_value_is() -> None:
    model = given(
        "y = Loop(a, , x) <body = b (int64 k, bool c, float[4,2] s) => (bool d, float[4,2] t)"
        " { d = Identity(c) r = Neg(w) u = Reciprocal(s) t = Add(r, u) }>"
    )
    assert matters(model, "x")
    assert matters(model, "w")
    assert matters(model, "y") is False


def test_a_value_that_is_in_no_graph_may_matter() -> None:
    model = given("t = Neg(x) y = Neg(w)")
    unused = of(model, "t")
    assert not zero_sign_matters(unused)
    node = unused.producer
    assert node is not None
    model.main.remove_node(node)
    assert zero_sign_matters(unused)


NEVER_NEGATIVE: Final = {
    # Whether no element is below 0, and whether none is -0.0 either.
    "Identity(x)": (False, False),
    "Identity(mixed)": (True, True),
    "Identity(signed)": (True, False),
    "Identity(minus)": (False, False),
    "Abs(x)": (True, True),
    "Abs(i)": (False, False),
    "vendor.Abs(x)": (False, False),
    "Exp(x)": (True, True),
    "Mul(x, x)": (True, True),
    "Mul(i, i)": (False, False),
    "Mul(x, w)": (False, False),
    "Add(x, x)": (False, False),
    "Pow(x, two)": (True, True),
    "Pow(x, even)": (True, True),
    "Pow(x, mixed)": (False, False),
    "Pow(x, w)": (False, False),
    "Pow(i, two)": (False, False),
    "Max(x, one)": (True, True),
    "Max(x, zero)": (False, False),
    "Min(x, one)": (False, False),
    "Relu(x)": (True, False),
    "Clip(x, zero)": (True, False),
    "Clip(x, half)": (True, True),
    "Clip(x, zero, one)": (True, False),
    "Clip(x, one, minus)": (False, False),
    "Clip(x, one, zero)": (True, False),
    "Clip(x, , one)": (False, False),
    "Clip(x, minus, one)": (False, False),
}
MADE_OF: Final = {
    # r is a Relu, which may be -0.0, and e an Exp.
    "Add(r, e)": (True, False),
    "Add(r, one)": (True, True),
    "Add(r, zero)": (True, False),
    "Add(x, one)": (False, False),
    "Mul(e, r)": (True, False),
    "Mul(e, x)": (False, False),
    "Div(r, e)": (True, False),
    "Div(e, e)": (True, True),
    "Div(e, r)": (False, False),
    "Div(x, e)": (False, False),
    "Sqrt(e)": (True, True),
    "Sqrt(x)": (False, False),
    "ReduceSum<keepdims=1>(e, a)": (True, True),
    "Transpose<perm=[1,0]>(e)": (True, True),
    "Gather(e, i)": (False, False),
    "Neg(e)": (False, False),
}


def is_never(model: Model, **given: Any) -> bool:
    return is_never_negative(of(model, "t"), **given)


def test_which_values_are_never_negative() -> None:
    rows = {f"t = {call}": expected for call, expected in NEVER_NEGATIVE.items()}
    rows |= {f"r = Relu(x) e = Exp(w) t = {call}": each for call, each in MADE_OF.items()}
    for nodes, expected in rows.items():
        model = given(f"{nodes} y = Neg(w)")
        assert (is_never(model), is_never(model, no_minus_zero=True)) == expected, nodes


def test_the_search_for_a_negative_value_is_limited() -> None:
    model = given("e = Exp(x) t = Sqrt(e) y = Div(t, e)")
    assert not is_never(model, depth=1)
    assert is_never(model, depth=2)
    assert not is_never_negative(of(model, "y"), depth=2)
    assert is_never_negative(of(model, "y"), depth=3)
    roots = "".join(f" v{at + 1} = Sqrt(v{at})" for at in range(16))
    model = given(f"v0 = Exp(x){roots} y = Neg(x)")
    assert is_never_negative(of(model, "v15"))
    assert not is_never_negative(of(model, "v16"))
