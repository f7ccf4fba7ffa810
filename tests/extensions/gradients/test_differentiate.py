"""Gradients as further outputs: their names, seeds, and what is refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.extensions.gradients.differences import OnnxRuntime, Reference
from tiered import Model, UsageError, add_gradients
from tiered.extensions.gradients import (
    Expr,
    NoGradient,
    Step,
    are_outputs_already,
    float_values,
    gradient_rule,
)
from tiered.extensions.gradients.differentiate import Gradients, Seed
from tiered.extensions.gradients.rule_registry import GRADIENTS
from tiered.graph import Value
from tiered.testing import parse

TEXT = """(float[2] x, float[2] w, int64 n) => (float[2] y, float l)
    <float[2] bias = {1, 2}, int64[1] axes = {0}> {
        h = Mul(x, w)  y = Add(h, bias)  [mark] l = ReduceSum <keepdims = 0> (y) }"""


def model_of(text: str = TEXT, opset: int = 21) -> Model:
    return Model.from_proto(parse(text, opset=opset))


def values_of(model: Model, *names: str) -> list[Value]:
    return [model.main.values[name] for name in names]


def differentiated(model: Model, of: str, targets: str, **options: Any) -> Gradients:
    return add_gradients(
        model, values_of(model, *of.split()), values_of(model, *targets.split()), **options
    )


def run(model: Model, **feeds: Any) -> dict[str, Any]:
    own = {"x": [1, 2], "w": [3, 4], **feeds}
    arrays = {name: np.array(each, np.float32) for name, each in own.items()}
    return Reference(model.to_proto())({**arrays, "n": np.array(1)})


def test_gradients_are_the_last_outputs_in_the_order_of_the_targets() -> None:
    model = model_of()
    made = differentiated(model, "l", "w bias x h")
    names = [value.name for value in model.main.outputs]
    assert names == ["y", "l", "grad/w", "grad/bias", "grad/x", "grad/h"]
    assert made.outputs == list(model.main.outputs[2:])
    assert [value.type for value in made.outputs] == [
        model.main.values[name].type for name in ("w", "bias", "x", "h")
    ]
    found = run(model)
    np.testing.assert_array_equal(found["grad/w"], [1, 2])
    np.testing.assert_array_equal(found["grad/x"], [3, 4])
    np.testing.assert_array_equal(found["grad/bias"], [1, 1])
    np.testing.assert_array_equal(found["grad/h"], [1, 1])


@pytest.mark.parametrize(
    ("seed", "of", "expected"),
    [("none", "l", [3, 4]), ("ones", "y", [3, 4]), ("ones", "y l", [6, 8]), ("ones", "l", [3, 4])],
)
def test_several_values_are_added_up(seed: Seed, of: str, expected: list[float]) -> None:
    model = model_of()
    made = differentiated(model, of, "x", seed=seed)
    assert [value.name for value in made.seeds] == of.split()
    assert not any(value.is_graph_input for value in made.seeds.values())
    np.testing.assert_array_equal(run(model)["grad/x"], expected)


def test_a_seed_is_an_input_of_the_type_of_its_value() -> None:
    model = model_of()
    made = differentiated(model, "y", "x", seed="input")
    (seed,) = made.seeds.values()
    assert seed.is_graph_input
    assert (seed.name, seed.type) == ("seed/y", model.main.values["y"].type)
    np.testing.assert_array_equal(run(model, **{"seed/y": [1, 10]})["grad/x"], [3, 40])


def test_a_seed_input_with_a_taken_name_gets_another() -> None:
    model = model_of()
    first = differentiated(model, "y", "x", seed="input")
    second = differentiated(model, "y", "w", seed="input")
    names = [next(iter(made.seeds.values())).name for made in (first, second)]
    assert names[0] == "seed/y"
    assert names[1] != "seed/y"


@pytest.mark.parametrize(("of", "dims"), [("y", "2"), ("y", "N"), ("y", "0"), ("y", "1,2")])
def test_several_elements_need_a_seed(of: str, dims: str) -> None:
    model = model_of(f"(float[{dims}] x) => (float[{dims}] y) {{ y = Neg(x) }}")
    with pytest.raises(UsageError, match=r"expected a single number; seed=ones.*input 'seed/y'"):
        differentiated(model, of, "x")


@pytest.mark.parametrize("dims", ["", "[1]", "[1,1]"])
def test_one_element_needs_none(dims: str) -> None:
    model = model_of(f"(float{dims} x) => (float{dims} y) {{ y = Neg(x) }}")
    assert len(differentiated(model, "y", "x").outputs) == 1


@pytest.mark.parametrize(("of", "targets"), [("l", "n"), ("l", "axes"), ("axes", "x")])
def test_integers_are_not_differentiated(of: str, targets: str) -> None:
    with pytest.raises(UsageError, match=r"is int64.*; expected a floating-point tensor"):
        differentiated(model_of(), of, targets, seed="ones")


def test_a_value_of_an_unknown_type_is_refused() -> None:
    model = model_of("(float x) => (float y) { h = com.acme.F(x)  y = Neg(h) }")
    with pytest.raises(UsageError, match="'h' is of an unknown type; expected"):
        differentiated(model, "y", "h")
    assert not model.main.values["h"].is_float
    assert model.main.values["x"].is_float


def test_the_gradient_of_a_gradient_has_one_prefix_more() -> None:
    model = model_of("(float x) => (float y) { y = Mul(x, x) }")
    differentiated(model, "y", "x")
    (second,) = differentiated(model, "grad/x", "x").outputs
    (third,) = differentiated(model, "grad/grad/x", "x").outputs
    assert (second.name, third.name) == ("grad/grad/x", "grad/grad/grad/x")
    found = Reference(model.to_proto())({"x": np.array(3, np.float32)})
    assert [found[name] for name in ("grad/x", second.name, third.name)] == [6, 2, 0]


def test_a_taken_name_gets_the_value_and_two_taken_names_are_an_error() -> None:
    model = model_of()
    differentiated(model, "l", "x")
    assert differentiated(model, "l y", "x", seed="ones").outputs[0].name == "grad/l+y/x"
    with pytest.raises(UsageError, match=r"tensors 'grad/x' and 'grad/l.y/x' already; rename one"):
        differentiated(model, "l y", "x", seed="ones")


@pytest.mark.parametrize("name", ["mark", "h", "x"])
def test_what_is_constant_has_the_gradient_zero(name: str) -> None:
    model = model_of()
    differentiated(model, "l", "x", stop_at=[name])
    np.testing.assert_array_equal(run(model)["grad/x"], [0, 0])


def test_a_stop_that_fits_nothing_is_an_error_with_a_hint() -> None:
    with pytest.raises(UsageError, match=r"stop_at='marc' is no node and no value.*mark"):
        differentiated(model_of(), "l", "x", stop_at=["marc"])


IN_BODIES = {
    "branch": ("""(float x, bool c) => (float y) {
        y = If(c) <then_branch = t () => (float a) { [inner] a = Exp(x) },
                   else_branch = e () => (float b) { b = Neg(x) }> }""", "inner", "a", 0),
    "loop": ("""(float x, bool c) => (float y) <int64 n = {2}> {
        y = Loop(n, c, x) <body = b (int64 i, bool k, float h) => (bool d, float next) {
            d = Identity(k)  [inner] a = Identity(h)  next = Mul(a, h) }> }""", "inner", "a", 8),
    "state": ("""(float x, bool c) => (float y) <int64 n = {2}> {
        y = Loop(n, c, x) <body = b (int64 i, bool k, float h) => (bool d, float next) {
            [inner] d = Identity(k)  next = Mul(h, x) }> }""", "h", "h", 4),
    "branch of a loop": ("""(float x, bool c) => (float y) <int64 n = {2}> {
        y = Loop(n, c, x) <body = b (int64 i, bool k, float h) => (bool d, float next) {
            d = Identity(k)
            next = If(k) <then_branch = t () => (float a) { [inner] a = Exp(h) },
                          else_branch = e () => (float f) { f = Neg(h) }> }> }""", "inner", "a", 0),
    "function": ("""<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float x, bool c) => (float y) { h = Neg(x)  z = own.f(h)  y = Mul(z, x) }
        <domain: "own", opset_import: ["" : 21]> f (x) => (b) { [inner] a = Exp(x)  b = Neg(a) }
        """, "inner", "a", -np.exp(-2)),
}  # fmt: skip
"""Models with a node in a body, its name, that of its output, and the gradient at 2 without it."""


@pytest.mark.parametrize("case", IN_BODIES)
def test_what_counts_as_a_constant_may_be_in_a_body(case: str) -> None:
    text, node, value, expected = IN_BODIES[case]
    for stop in (node, value):
        model = model_of(text)
        differentiated(model, "y", "x", stop_at=[stop])
        made = OnnxRuntime(model.to_proto())({"x": np.array(2, "f4"), "c": np.array(True)})
        np.testing.assert_allclose(made["grad/x"], expected, rtol=1e-6)


def test_the_name_of_a_parameter_says_nothing_of_the_operand() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float x, float a) => (float y) { h = Neg(x)  y = own.f(h) }
        <domain: "own", opset_import: ["" : 21]> f (a) => (b) { b = Mul(a, a) }"""
    model = model_of(text)
    differentiated(model, "y", "x", stop_at=["a"])
    feeds = {"x": np.array(3, np.float32), "a": np.array(0, np.float32)}
    assert OnnxRuntime(model.to_proto())(feeds)["grad/x"] == 6


def test_a_target_that_is_there_twice_is_an_error() -> None:
    model = model_of()
    x, y = values_of(model, "x", "l")
    with pytest.raises(UsageError, match="'x' is a target twice"):
        add_gradients(model, [y], [x, x])


def test_gradients_can_be_asked_to_be_differentiable() -> None:
    model = model_of()
    differentiated(model, "l", "x", again=True)
    assert model.main.outputs[-1].name == "grad/x"


def test_a_gradient_whose_operators_have_no_rule_is_refused_if_asked_for() -> None:
    def rule(step: Step) -> Sequence[Expr | None]:
        made = step.graph.add_node("G", [step.g.value, step.x.value], domain="com.acme")
        return [step.of(value) for value in made.outputs if value]

    gradient_rule("F", domain="com.acme")(rule)
    try:
        model = model_of("(float[2] x) => (float[2] y) { y = com.acme.F(x) }")
        differentiated(model, "y", "x", seed="input")
        with pytest.raises(NoGradient, match=r"com.acme::G.*there is no rule for the operator"):
            differentiated(model, "y", "x", seed="input", again=True)
    finally:
        GRADIENTS.remove("F", "com.acme")


def test_a_constant_of_the_backward_pass_leaves_its_name_to_a_gradient() -> None:
    model = model_of(
        "(float[3] x) => (float[2] h) <int64[1] s = {0}, int64[1] e = {2}> { h = Slice(x, s, e) }"
    )
    model.main.rename_value(model.main.values["x"], "h/axes")
    made = differentiated(model, "h", "h/axes", seed="ones").outputs
    assert [value.name for value in made] == ["grad/h/axes"]
    assert made[0].shape == (3,)


def test_the_gradient_of_an_input_is_its_seed() -> None:
    model = model_of("(float[2] x) => (float[2] y) { y = Mul(x, x) }")
    differentiated(model, "x", "x", seed="input")
    np.testing.assert_array_equal(run(model, **{"seed/x": [5, 6]})["grad/x"], [5, 6])


def test_a_gradient_that_is_zero_needs_a_constant_of_the_shape() -> None:
    model = model_of("(float[2] x) => (float[2] y) { y = Ceil(x) }", opset=7)
    with pytest.raises(NoGradient, match=r"the gradient of 'x' is 0: .*convert_opset raises"):
        differentiated(model, "y", "x", seed="input")


def test_nodes_that_no_gradient_needs_are_removed() -> None:
    model = model_of()
    forward = set(model.main.nodes)
    differentiated(model, "l", "w")
    for node in set(model.main.nodes) - forward:
        assert all(value.users or value.is_graph_output for value in node.outputs if value)


def test_the_same_computation_is_recognised_and_another_is_not() -> None:
    pairs: list[tuple[Seed, Seed]] = [
        ("input", "input"), ("ones", "ones"), ("ones", "input"), ("input", "ones")
    ]  # fmt: skip
    for seed, again in pairs:
        model = model_of()
        of, targets = values_of(model, "y"), values_of(model, "x", "w")
        first = add_gradients(model, of, targets, seed=seed)
        assert not are_outputs_already(model, first, of, targets)
        mark = model.mark()
        second = add_gradients(model, of, targets, seed=again)
        count = len(model.main.nodes)
        assert are_outputs_already(model, second, of, targets) == (seed == again)
        assert len(model.main.nodes) == count
        model.undo_to(mark)


def test_a_name_without_its_computation_proves_nothing() -> None:
    model = model_of("(float[2] x) => (float[2] y, float[2] z) { y = Mul(x, x)  z = Neg(x) }")
    model.main.rename_value(model.main.values["z"], "grad/x")
    of, targets = values_of(model, "y"), values_of(model, "x")
    made = add_gradients(model, of, targets, seed="ones")
    assert made.outputs[0].name == "grad/y/x"
    assert not are_outputs_already(model, made, of, targets)


def test_the_same_computation_is_no_output_already_if_it_is_none_or_of_another_seed() -> None:
    for what in ("the same", "no output", "another seed"):
        model = model_of("(float[2] x, float[1] s) => (float[2] y) { y = Mul(x, x) }")
        graph = model.main
        of, targets = values_of(model, "y"), values_of(model, "x")
        first = add_gradients(model, of, targets, seed="input")
        if what == "no output":
            graph.remove_output(graph.values["grad/x"])
        if what == "another seed":
            seed = graph.values["seed/y"]
            graph.replace_uses(seed, graph.values["s"])
            graph.rename_value(seed, "other")
            graph.rename_value(graph.values["s"], "seed/y")
            graph.add_output(seed)
        second = add_gradients(model, of, targets, seed="input")
        assert first.outputs != second.outputs
        assert are_outputs_already(model, second, of, targets) == (what == "the same"), what


@pytest.mark.parametrize(
    ("patterns", "weights", "names"),
    [
        (["*"], True, ["x", "w", "bias"]),
        (["*"], False, ["x", "w"]),
        (["bias"], False, ["bias"]),
        (["w", "x"], True, ["w", "x"]),
        (["?", "*"], True, ["x", "w", "bias"]),
        (["h", "h"], True, ["h"]),
        (["[wb]*"], True, ["w", "bias"]),
    ],
)
def test_wildcards_are_those_of_shells(
    patterns: list[str], names: list[str], *, weights: bool
) -> None:
    found = float_values(model_of(), patterns, "gradient", weights=weights)
    assert [value.name for value in found] == names


@pytest.mark.parametrize("pattern", ["v*", "X", "axe?"])
def test_a_pattern_that_matches_nothing_is_an_error_of_the_owner(pattern: str) -> None:
    with pytest.raises(UsageError, match="asker: no float input or initializer matches"):
        float_values(model_of(), [pattern], "asker")


def test_a_pattern_of_weights_matches_nothing_without_them() -> None:
    with pytest.raises(UsageError, match="matches 'bia"):
        float_values(model_of(), ["bia*"], "asker", weights=False)
