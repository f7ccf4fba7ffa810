"""A refused node becomes nodes that the target takes, all of them, or stays with the reasons."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.recorded import assert_values
from tests.small import content, made_by, named, ops, parsed
from tests.written import Writer
from tiered import Backend, Model, Numerics, UsageError
from tiered.analysis.legalization.legalization_search import legalize_nodes, simplify
from tiered.targets.reading import backend_of

SIN = "(float[2] x) => (float[2] y) { y = Sin(x) }"
RELU = "(float[2] x) => (float[2] y) { y = Relu(x) }"
SWISH = "(float[2] x) => (float[2] y) { y = HardSwish(x) }"
NO_SUCH = "the target has no such operator"


def target(operators: str | Mapping[str, Any], **substitute: str) -> Backend:
    if isinstance(operators, str):
        operators = dict.fromkeys(operators.split(), True)
    profile: dict[str, Any] = {
        "api_version": 1, "name": "chip", "operators": operators,
        "substitute": substitute,
    }  # fmt: skip
    return backend_of(profile, "chip.toml", lambda name: {})


def legalized(
    text: str,
    operators: str | Mapping[str, Any],
    numerics: Numerics = Numerics.REASSOCIATING,
    *,
    leave: Sequence[str] = (),
    **substitute: str,
) -> tuple[Model, list[str]]:
    """Return the model for a target, and why nodes stay."""
    model, reasons = parsed(text), list[str]()
    legalize_nodes(
        model,
        target(operators, **substitute),
        lambda node, skip: reasons.append(f"{node.op_type}: {skip}"),
        numerics=numerics,
        leave=leave,
    )
    model.check_view(types=True)
    return model, reasons


def test_a_body_of_operators_that_the_target_takes_replaces_the_node() -> None:
    model, reasons = legalized(SWISH, "Mul HardSigmoid")
    assert (sorted(ops(model)), reasons) == (["HardSigmoid", "Mul"], [])


def test_nodes_that_are_taken_and_constants_stay() -> None:
    text = "(float[2] x) => (float[2] y) { c = Constant<value = float {2}>()  y = Mul(x, c) }"
    model, reasons = legalized(text, "Mul")
    assert (ops(model), reasons) == (["Constant", "Mul"], [])


def test_what_replaces_a_node_is_replaced_in_turn() -> None:
    model, reasons = legalized(SWISH, "Add Mul Max Min")
    assert not reasons
    assert {*ops(model)} <= {"Add", "Mul", "Max", "Min"}


def test_a_node_without_any_source_stays() -> None:
    model, reasons = legalized(SIN, "Mul")
    assert (ops(model), reasons) == (["Sin"], [f"Sin: {NO_SUCH}; there is no legalization"])


def test_an_operator_that_is_to_stay_stays_and_others_do_not() -> None:
    text = "(float[2] x) => (float[2] y) { s = Softplus(x)  y = HardSwish(s) }"
    model, reasons = legalized(text, "Mul HardSigmoid", leave=["Softplus"])
    assert sorted(ops(model)) == ["HardSigmoid", "Mul", "Softplus"]
    assert reasons == [f"Softplus: {NO_SUCH}; it is to stay as it is"]


def test_a_source_of_a_looser_class_is_not_tried() -> None:
    text = "(float[2] x) => (float[2] y) { y = HardSigmoid(x) }"
    model, reasons = legalized(text, "Add Mul Max Min", Numerics.EXACT)
    assert ops(model) == ["HardSigmoid"]
    assert reasons == [f"HardSigmoid: {NO_SUCH}; the function body is reassociating, not exact"]


def test_all_that_was_tried_is_undone_and_each_reason_is_named() -> None:
    before = parsed(SWISH)
    model, reasons = legalized(SWISH, "Mul Max")
    assert content(model) == content(before)
    (reason,) = reasons
    refused = f"HardSigmoid in it is refused: {NO_SUCH}"
    assert reason == (
        f"HardSwish: {NO_SUCH}; replace_hardswish: {refused}; the function body: {refused}"
    )


def test_substitutes_of_each_other_are_tried_once() -> None:
    wide = {"types": {"T": ["double"]}}
    model, reasons = legalized(SIN, {"Sin": wide, "Cos": wide}, Sin="Cos", Cos="Sin")
    assert ops(model) == ["Sin"]
    refused = "input, output are float; it takes double"
    assert reasons == [f"Sin: {refused}; Cos: Cos in it is refused: {refused}"]


def test_a_custom_operator_is_the_call_of_a_function_that_is_not_legalized() -> None:
    model, reasons = legalized(SIN, "chip::Own", Sin="chip::Own")
    assert (ops(model), reasons) == (["Own"], [])
    (function,) = model.functions
    assert [node.op_type for node in function.nodes] == ["Sin"]


def test_bodies_are_legalized_before_the_nodes_that_have_them() -> None:
    text = """(float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) { p = HardSwish(x) },
                   else_branch = e () => (float[2] q) { q = Sin(x) }> }"""
    model, reasons = legalized(text, "If Mul HardSigmoid")
    assert reasons == [f"Sin: {NO_SUCH}; there is no legalization"]
    inside = [node.op_type for graph in model.graphs() if not graph.is_main for node in graph.nodes]
    assert sorted(inside) == ["HardSigmoid", "Mul", "Sin"]


def test_an_operator_to_leave_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(UsageError, match="there is no operator 'Softmx'; did you mean 'Softmax'"):
        legalized(RELU, "Relu", leave=["Softmx"])


def test_a_map_without_rules_is_an_error() -> None:
    with pytest.raises(UsageError, match="no rule is registered in the map 'own'"):
        legalize_nodes(parsed(RELU), target("Relu"), lambda node, skip: None, maps=("own",))


# --- an expanded body -----------------------------------------------------------------------------


def simplified(text: str) -> Model:
    model = parsed(text)
    simplify(list(model.main.topological_order()))
    model.check_view(types=True)
    return model


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("Identity(x)", []),
        ("Cast<to=1>(x)", []),
        ("CastLike(x, x)", []),
        ("Cast<to=10>(x)", ["Cast"]),
        ("CastLike(u, u)", ["F", "CastLike"]),
        ("Abs(x)", ["Abs"]),
    ],
)
def test_a_copy_is_removed(line: str, left: list[str]) -> None:
    result = "float16" if "10" in line else "float"
    before = "u = own.F(x) " if "u" in line else ""
    model = simplified(f"(float[2] x) => ({result}[2] y) {{ {before} a = {line}  y = Neg(a) }}")
    assert ops(model) == [*left, "Neg"]


def test_a_copy_that_is_an_output_stays() -> None:
    assert ops(simplified("(float[2] x) => (float[2] y) { y = Identity(x) }")) == ["Identity"]
    text = "(float[2] x) => (float[2] y) { a = Neg(x)  y = Identity(a) }"
    assert ops(simplified(text)) == ["Neg", "Identity"]


def test_a_constant_becomes_an_initializer_unless_it_is_an_output() -> None:
    model = simplified(
        """(float[2] x) => (float[2] y, float d) {
        c = Constant<value = float {2}>()  d = Constant<value = float {3}>()  y = Mul(x, c) }"""
    )
    assert sorted(ops(model)) == ["Constant", "Mul"]
    assert named(model, "c").producer is None
    assert made_by(model, "d").op_type == "Constant"


@pytest.mark.parametrize(("size", "is_folded"), [(1024, True), (1025, False)])
def test_small_results_of_constants_are_computed(size: int, is_folded: bool) -> None:
    model = simplified(
        f"""(float x) => (float[N] y) <int64[1] n = {{{size}}}> {{
        a = ConstantOfShape<value = float[1] {{2}}>(n)  b = Neg(a)  y = Add(x, b) }}"""
    )
    assert ops(model) == (["Add"] if is_folded else ["ConstantOfShape", "Neg", "Add"])
    if is_folded:
        other = made_by(model, "y").inputs[1]
        assert other is not None
        np.testing.assert_array_equal(other.const, np.full(size, -2, np.float32))


def test_large_constants_are_not_computed_with() -> None:
    for size, left in ((1024, ["Add"]), (1025, ["ReduceMax", "Add"])):
        many = ",".join(["1"] * size)
        model = simplified(
            f"(float x) => (float y) <float[{size}] c = {{{many}}}> "
            "{ a = ReduceMax<keepdims=0>(c)  y = Add(x, a) }"
        )
        assert ops(model) == left


def test_only_what_others_read_becomes_a_constant() -> None:
    model = simplified(
        """(float[2] x) => (float[2] y) <float[2] c = {1,2}> {
        a = Neg(c)  b = Abs(a)  s = Shape(x)  y = Add(x, b) }"""
    )
    assert ops(model) == ["Shape", "Add"]
    assert [value.name for value in model.main.initializers] == ["b"]


def test_what_is_an_output_or_random_or_read_by_no_other_stays() -> None:
    model = simplified(
        """(float[2] x) => (float[2] y, float[2] z) <float[2] c = {1,2}> {
        z = Neg(c)  r = RandomUniform<shape=[2]>()  a = Add(c, r)  b = Add(a, z)  y = Add(x, b)
        }"""
    )
    assert sorted(ops(model)) == ["Add", "Add", "Add", "Neg", "RandomUniform"]


@pytest.mark.parametrize(
    "call",
    [
        "RandomNormalLike(c)",
        "com.microsoft.Gelu(c)",
        """If(t) <then_branch = g () => (float[2] p) { p = Neg(c) },
                  else_branch = h () => (float[2] q) { q = Abs(c) }>""",
    ],
)
def test_random_numbers_bodies_and_other_domains_are_not_computed(call: str) -> None:
    model = simplified(
        f"""(float[2] x) => (float[2] y) <float[2] c = {{1,2}}, bool t = {{1}}> {{
        a = {call}  y = Add(x, a) }}"""
    )
    assert len(ops(model)) == 2


def test_known_elements_of_shapes_are_folded() -> None:
    model = simplified(
        """(float[2,3] x) => (float[3,2] y, int64[2] z) <int64[2] at = {1,0}> {
        s = Shape(x)  z = Identity(s)  t = Gather(s, at)  y = Reshape(x, t) }"""
    )
    assert "Gather" not in ops(model)
    shape = made_by(model, "y").inputs[1]
    assert shape is not None
    assert shape.const is not None
    assert shape.const.dtype == np.int64
    np.testing.assert_array_equal(shape.const, [3, 2])


def test_elements_that_are_dynamic_or_an_output_are_not_folded() -> None:
    model = simplified("(float[N,3] x) => (int64[2] y) { s = Shape(x)  y = Neg(s) }")
    assert ops(model) == ["Shape", "Neg"]
    assert ops(simplified("(float[2,3] x) => (int64[2] y) { y = Shape(x) }")) == ["Shape"]


@pytest.mark.parametrize(
    ("operands", "left"),
    [
        ("x, e", ["Neg"]),
        ("e, x", ["Neg"]),
        ("x, e, x", ["Concat", "Neg"]),
        ("x, x", ["Concat", "Neg"]),
    ],
)
def test_empty_operands_of_a_concat_are_dropped(operands: str, left: list[str]) -> None:
    model = simplified(
        f"""(float[2,3] x, float[2,0] e) => (float[2,N] y)
        {{ a = Concat<axis=1>({operands})  y = Neg(a) }}"""
    )
    assert ops(model) == left
    if "Concat" in left:
        assert [value.name for value in made_by(model, "a").inputs if value] == ["x", "x"]


def test_a_concat_that_is_an_output_or_of_nothing_stays() -> None:
    for text in (
        "(float[2] x, float[0] e) => (float[2] y) { y = Concat<axis=0>(x, e) }",
        "(float[0] x, float[0] e) => (float[0] y) { a = Concat<axis=0>(x, e)  y = Neg(a) }",
    ):
        assert ops(simplified(text))[0] == "Concat"


@pytest.mark.parametrize(
    ("sizes", "outputs", "is_read_past"),
    [
        ("{3,0}", "float[2,3] y", True),
        ("{2,1}", "float[2,2] y", False),
        ("{3,0}", "float[2,3] y, float[2,0] z", False),
    ],
)
def test_a_split_whose_only_part_is_all_is_read_past(
    sizes: str, outputs: str, is_read_past: bool
) -> None:
    more = "z = Neg(b)" if "z" in outputs else ""
    model = simplified(
        f"""(float[2,3] x) => ({outputs}) <int64[2] s = {sizes}>
        {{ a, b = Split<axis=1>(x, s)  y = Neg(a)  {more} }}"""
    )
    (operand,) = made_by(model, "y").inputs
    assert operand is not None
    assert (operand.name == "x") == is_read_past


def test_a_split_is_read_past_along_its_axis_if_the_size_is_known() -> None:
    for first, outputs, expected in (
        ("a, b = Split(x, s)", "float[3,2] y", "x"),
        ("a, b = Split(x, s)", "float[3,2] y, float[3,2] a", "a"),
        ("u = own.F(x)  a, b = Split(u, s)", "float[3,2] y", "a"),
        ("a, b, = own.F(x)", "float[3,2] y", "a"),
    ):
        model = simplified(
            f"(float[3,2] x) => ({outputs}) <int64[2] s = {{3,0}}> {{ {first}  y = Neg(a) }}"
        )
        assert made_by(model, "y").given(0).name == expected, first


# --- whole results --------------------------------------------------------------------------------


def simple(text: str) -> None:
    """Print the outputs of a model as expressions after its nodes were made simple."""
    _print(simplified(text))


def legal(
    text: str,
    operators: str | Mapping[str, Any],
    numerics: str = "reassociating",
    leave: Sequence[str] = (),
    **substitute: str,
) -> None:
    """Print the outputs of a model for a target as expressions, and why nodes stay."""
    model, reasons = legalized(text, operators, Numerics(numerics), leave=leave, **substitute)
    _print(model)
    for reason in reasons:
        print(reason)


def _print(model: Model) -> None:
    write = Writer()
    print("; ".join(f"{value.name} = {write(value)}" for value in model.main.outputs))


def test_whole_results() -> None:
    names = {"SIN": SIN, "RELU": RELU, "SWISH": SWISH, "simple": simple, "legal": legal}
    assert_values(__file__, names)
