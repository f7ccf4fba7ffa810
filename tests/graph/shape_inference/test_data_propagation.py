"""Data propagation: the elements that each rule infers, and that onnxruntime computes for all dims."""

import math
import re
from collections.abc import Mapping
from random import Random

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tiered import Model, ModelError, TensorType
from tiered.graph.core.value import LARGEST
from tiered.graph.shape_inference.rules.shape_rule import VALUES
from tiered.graph.shape_inference.symbolic_dims import Element, Poly
from tiered.runtime import run
from tiered.testing import parse

EXPECTED = {
    "Abs": ("Abs(s)", "n m 3"),
    "Add": ("Add(s, one)", "1+n 1+m 4"),
    "And": ("And(known, open)", "False ?"),
    "Cast": ("Cast<to=6>(s)", "n m 3"),
    "CastLike": ("CastLike(half, s)", "2 ?"),
    "Clip": ("Clip(s, nought)", "n m 3"),
    "Concat": ("Concat<axis=0>(s, one)", "n m 3 1"),
    "ConstantOfShape": ("ConstantOfShape<value = int64[1] {7}>(two)", "7 7"),
    "Div": ("Div(twice, two)", "n m 3"),
    "Equal": ("Equal(s, minus)", "False False False"),
    "Expand": ("Expand(n, two)", "n n"),
    "Flatten": ("Flatten<axis=0>(s)", "n m 3"),
    "Gather": ("Gather(s, at)", "3 n"),
    "Greater": ("Greater(s, minus)", "True True True"),
    "GreaterOrEqual": ("GreaterOrEqual(s, zero)", "True True True"),
    "Identity": ("Identity(s)", "n m 3"),
    "Less": ("Less(s, minus)", "False False False"),
    "LessOrEqual": ("LessOrEqual(s, minus)", "False False False"),
    "Max": ("Max(s, minus)", "n m 3"),
    "Min": ("Min(s, minus)", "-1 -1 -1"),
    "Mod": ("Mod(twice, two)", "0 0 0"),
    "Mul": ("Mul(s, n)", "n*n m*n 3*n"),
    "Neg": ("Neg(three)", "-3"),
    "Not": ("Not(known)", "True False"),
    "Or": ("Or(known, open)", "? True"),
    "Range": ("Range(nought, three, unit)", "0 1 2"),
    "ReduceProd": ("ReduceProd<keepdims=0>(s)", "3*m*n"),
    "ReduceSum": ("ReduceSum<keepdims=0>(s)", "3+m+n"),
    "Relu": ("Relu(s)", "n m 3"),
    "Reshape": ("Reshape(s, minus)", "n m 3"),
    "Shape": ("Shape<start=1>(x)", "m 3"),
    "Size": ("Size(x)", "3*m*n"),
    "Slice": ("Slice(s, minus, far, zero, minus)", "3 m n"),
    "Split": ("Split<num_outputs=3>(s)", "n"),
    "Squeeze": ("Squeeze(n, zero)", "n"),
    "Sub": ("Sub(s, n)", "0 m+-1*n 3+-1*n"),
    "Transpose": ("Transpose<perm=[0]>(s)", "n m 3"),
    "Unsqueeze": ("Unsqueeze(three, zero)", "3"),
    "Where": ("Where(known, two, one)", "1 2"),
}
"""An expression for each operator, and the elements that its rule infers."""

GIVEN = (
    "<int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] minus = {-1},"
    " int64[1] far = {-9}, int64[2] at = {2,0}, int64 nought = {0}, int64 unit = {1},"
    " int64 three = {3}, int64[1] three1 = {3}, int64[3] ends = {3,0,2}, bool[2] known = {0,1}, int64[1] five = {5}, float[2] half = {2,0.5}>"
)
BEGIN = "s = Shape(x) n = Gather(s, zero) twice = Add(s, s) big = Less(n, five) open = Concat<axis=0>(big, big)"


def shown(element: Element) -> str:
    return "?" if element is None else str(element)


@pytest.mark.parametrize("op_type", sorted(op_type for _, op_type in VALUES.rules))
def test_elements_that_a_rule_infers_for_dynamic_dims(op_type: str) -> None:
    expression, expected = EXPECTED[op_type]
    outputs = "y, y1, y2" if op_type == "Split" else "y"
    model = Model.from_proto(
        parse(
            f"(float[n,m,3] x) => (int64[?] o) {GIVEN} {{ {BEGIN} {outputs} = {expression}"
            " o = Cast<to=7>(y) }"
        )
    )
    model.refresh_types()
    elements = model.main.values["y"].elements
    assert elements is not None
    assert " ".join(map(shown, elements.ravel().tolist())) == expected


@pytest.mark.parametrize(
    ("start", "end", "expected"), [(-9, -9, "n"), (9, -9, "3 m n"), (-9, 9, ""), (-2, -3, "m")]
)
def test_a_slice_with_a_negative_step_starts_inside_the_operand(
    start: int, end: int, expected: str
) -> None:
    model = Model.from_proto(
        parse(
            f"(float[n,m,3] x) => (int64[?] y) <int64[1] b = {{{start}}}, int64[1] e = {{{end}}},"
            " int64[1] zero = {0}, int64[1] minus = {-1}> { s = Shape(x)"
            " y = Slice(s, b, e, zero, minus) }"
        )
    )
    model.refresh_types()
    elements = model.main.values["y"].elements
    assert elements is not None
    assert " ".join(map(shown, elements.ravel().tolist())) == expected
    feeds = {"x": np.zeros((5, 7, 3), np.float32)}
    sizes = {"n": 5, "m": 7}
    result = run(model.to_proto(), feeds)["y"].tolist()
    assert result == [sizes.get(name) or int(name) for name in expected.split()]


@pytest.mark.parametrize(
    ("expression", "expected"), [("Mul(i, j)", "?"), ("Add(i, j)", "?"), ("Identity(i)", "n")]
)
def test_arithmetic_on_dims_in_32_bits_may_wrap(expression: str, expected: str) -> None:
    model = Model.from_proto(
        parse(
            "(float[n] x, float[m] z) => (int64[1] y) { s = Shape(x) t = Shape(z)"
            f" i = Cast<to=6>(s) j = Cast<to=6>(t) p = {expression} y = Cast<to=7>(p) }}"
        )
    )
    model.refresh_types()
    elements = model.main.values["y"].elements
    assert (shown(None) if elements is None else shown(elements.item())) == expected


STEPS = (
    ("v", "Add(v, w)"), ("v", "Sub(v, w)"), ("v", "Mul(v, w)"), ("v", "Min(v, w)"), ("v", "Max(w, v)"),
    ("v", "Div(v, c)"), ("v", "Mod(v, c)"), ("v", "Mod<fmod=1>(v, c)"), ("v", "Neg(v)"),
    ("v", "Identity(v)"), ("v", "Where(b, v, w)"), ("v", "Where(b, w, v)"), ("v", "Reshape(v, minus)"),
    ("v", "Slice(v, minus, far, zero, minus)"), ("v", "Transpose<perm=[0]>(v)"), ("v", "Expand(k, three1)"),
    ("v", "ConstantOfShape<value = int64[1] {5}>(three1)"), ("i", "Cast<to=6>(v)"), ("v", "Cast<to=7>(i)"),
    ("l", "Concat<axis=0>(v, k)"), ("v", "Gather(l, ends)"), ("k", "ReduceSum(v)"),
    ("k", "ReduceProd(v)"), ("k", "Gather(v, one)"), ("k", "Slice(v, one, two)"), ("k", "Shape(v)"),
    ("f", "Squeeze(k)"), ("f", "Gather(v, unit)"), ("k", "Unsqueeze(f, zero)"), ("f", "Size(v)"),
    ("b", "Equal(v, w)"), ("b", "Less(v, w)"), ("b", "Greater(w, v)"), ("b", "LessOrEqual(v, w)"),
    ("b", "GreaterOrEqual(v, w)"), ("b", "Not(b)"), ("b", "And(b, b)"), ("b", "Or(b, b)"),
    ("b", "Cast<to=9>(v)"), ("v", "Cast<to=7>(b)"),
)  # fmt: skip
"""Kinds of results with expressions: v has 3 integers, k 1, l 4, f is a scalar, i int32, b boolean."""


def random_chains(random: Random) -> tuple[str, list[str]]:
    """Return a model of shape arithmetic as a string, and the names of its results."""
    known = {"v": ["s", "t"], "k": ["n", "m"], "l": [], "f": [], "i": [], "b": []}
    lines = ["s = Shape(x)", "t = Shape(z)", "n = Gather(s, zero)", "m = Gather(t, zero)"]
    for _ in range(random.randint(4, 16)):
        kind, step = random.choice(STEPS)
        operator, _, operands = step.removesuffix(")").partition("(")
        chosen = []
        for operand in operands.split(", "):
            fitting = known["v"] + known["k"] if operand == "w" else known.get(operand, [operand])
            fitting = ["two", "five", "minus"] if operand == "c" else fitting
            chosen += [random.choice(fitting)] if fitting else []
        if len(chosen) == operands.count(",") + 1:
            name = f"y{len(lines)}"
            lines.append(f"{name} = {operator}({', '.join(chosen)})")
            known[kind].append(name)
    names = [line.partition(" ")[0] for line in lines]
    outputs = ", ".join(f"int64[?] o_{name}" for name in names)
    lines += [f"o_{name} = Cast<to=7>({name})" for name in names]
    return f"(float[n,m,3] x, float[m,2,n] z) => ({outputs}) {GIVEN} {{ {' '.join(lines)} }}", names


def value_of(element: Element, dims: Mapping[str, int]) -> int:
    assert element is not None
    if not isinstance(element, Poly):
        return int(element)
    return sum(factor * math.prod(dims[name] for name in names) for names, factor in element.terms)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30))
def test_onnxruntime_computes_the_inferred_elements_for_all_dims(seed: int) -> None:
    random = Random(seed)
    text, names = random_chains(random)
    proto = parse(text)
    model = Model.from_proto(proto)
    model.refresh_types()
    for _ in range(3):
        dims = {"n": random.randint(0, 4), "m": random.randint(0, 4)}
        x, z = np.zeros((dims["n"], dims["m"], 3), "f"), np.zeros((dims["m"], 2, dims["n"]), "f")
        found = run(proto, {"x": x, "z": z})
        for name in names:
            elements = model.main.values[name].elements
            if elements is None:
                continue
            computed = found[f"o_{name}"]
            assert elements.shape == computed.shape
            for element, number in zip(elements.flat, computed.flat, strict=True):
                assert element is None or value_of(element, dims) == number, (name, dims, text)


def test_unnamed_dims_of_inputs_have_distinct_names_that_are_never_saved() -> None:
    source = parse(
        "(float[?,?] x, float[?,2] z) => (float[?,?] y) { h = Relu(x) y = MatMul(h, z) }"
    )
    model = Model.from_proto(source)
    dims = [dim for value in model.main.inputs for dim in value.shape or ()]
    assert len(set(dims)) == 4
    hidden = model.main.nodes_of("Relu")[0].output
    assert hidden.shape == model.main.inputs[0].shape
    # Callers decide it: nothing that is inferred inside makes it a number.
    assert not model.dims.learn(str(dims[0]), 3)
    assert model.to_proto() == source
    saved = model.to_proto(annotate=True)
    assert not any(
        dim.dim_param for info in saved.graph.value_info for dim in info.type.tensor_type.shape.dim
    )


def test_invented_names_of_dims_do_not_contradict_a_declared_input() -> None:
    model = Model.from_proto(parse("(float[?,2] x) => (float[?,2] y) { y = Relu(x) }"))
    (x,) = model.main.inputs
    named = x.type
    model.check_view()
    model.main.set_type(x, TensorType(1, (None, 2)))
    model.main.set_type(x, named)
    with pytest.raises(ModelError, match=re.escape("declared float[?,2], it cannot be stated as")):
        model.main.set_type(x, TensorType(1, (3, 2)))
    model.check_view()


def test_elements_are_inferred_before_any_type_is_asked_for() -> None:
    model = Model.from_proto(
        parse(
            "(float[n,3] x, float[1,1,1,1] one) => (float[a,b,c,d] y)"
            " { s = Shape(x) t = Concat<axis=0>(s, s) y = Expand(one, t) }"
        )
    )
    elements = model.main.values["t"].elements
    assert elements is not None
    assert " ".join(map(shown, elements.ravel().tolist())) == "n 3 n 3"


def test_what_an_edit_makes_known_of_elements_is_known_of_the_shapes_below() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21, "vendor": 1]>
        g (float[n,3] x) => (float[?,?] y)
        <int64 i = {0}, int64[1] rest = {3}, int64[1] axes = {0}, float one = {1}> {
            a = vendor.Unknown(x)  s = Shape(a)  d = Gather(s, i)  u = Unsqueeze(d, axes)
            t = Concat<axis = 0>(u, rest)  e = Expand(one, t)  y = Neg(e)
        }"""
    )
    model = Model.from_proto(proto)
    model.refresh_types()
    values = model.main.values
    assert values["e"].shape not in (None, ("n", 3))
    assert values["t"].elements is not None  # computed, and dropped by the edit
    (unknown,) = model.main.nodes_of("Unknown", "vendor")
    model.main.replace(unknown, [values["x"]])
    model.refresh_types()
    assert values["e"].shape == values["y"].shape == ("n", 3)


def test_small_tensors_are_known_up_to_a_number_of_elements() -> None:
    for size, is_known in ((LARGEST, True), (LARGEST + 1, False)):
        text = f"""(float[2] x) => (float[2] z) <int64[1] n = {{{size}}}> {{
            y = ConstantOfShape<value = int64[1] {{3}}>(n)  z = Neg(x) }}"""
        elements = Model.from_proto(parse(text)).main.values["y"].elements
        assert (elements is not None) is is_known, size


def test_of_elements_those_that_their_dtype_holds_are_known() -> None:
    text = """(float[2] x) => (int32[2] y) <int64[2] c = {5,5000000000}> { y = Cast<to = 6>(c) }"""
    elements = Model.from_proto(parse(text)).main.values["y"].elements
    assert elements is not None
    assert elements.tolist() == [5, None]
