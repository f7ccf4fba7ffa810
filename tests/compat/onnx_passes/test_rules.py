"""Rules of a pattern, a check and a rewrite that are methods."""

from typing import Any

import onnx
import pytest

import tiered
from tests.compat.onnx_passes.small_classes import BreakAdds, DropNeg
from tests.recorded import assert_values
from tests.small import model, ops
from tiered import Model
from tiered.compat.onnx_passes import (
    RewriteRulePass,
    pass_of,
    rule_values,
)
from tiered.support.errors import (
    UsageError,
)


def test_a_rule_is_a_pattern_a_check_and_a_rewrite() -> None:
    assert ops(DropNeg()(model())) == ["Relu", "Relu", "Abs"]
    text = "g (float[2] x, float[2] z) => (float[2] y) { a = Add(x, z)  y = Add(a, a) }"
    given = model(text)
    with tiered.PassContext() as ctx:
        pass_of(BreakAdds)(given)
    first = given.main.topological_order()[0]
    assert first.inputs == (given.main.inputs[0],) * 2
    assert "the check returned False" in str(ctx.remarks)


def test_outputs_and_domains_are_named_as_in_onnxscript() -> None:
    class Split(RewriteRulePass):
        def pattern(self, op: Any, x: Any) -> Any:
            first, second = op.Split(x, _outputs=["first", "second"], num_outputs=2)
            return op.Add(first, second)

        def check(self, op: Any, x: Any, second: Any) -> bool:
            return bool(second.shape == (1,))

        def rewrite(self, op: Any, x: Any, first: Any) -> Any:
            assert first.producer.op_type == "Split"
            low, high = op.Split(x, num_outputs=2, _outputs=2)
            return op.Gelu(op.Sub(low, high), _domain="com.microsoft")

    text = """g (float[2] x) => (float[1] y) { a, b = Split<num_outputs=2>(x)  y = Add(a, b) }"""
    made = Split()(model(text))
    (gelu,) = made.main.nodes_of("Gelu", "com.microsoft")
    assert gelu.attributes == {}
    assert "com.microsoft" in made.opset_imports
    wide = text.replace("[2]", "[4]").replace("[1]", "[2]")
    assert ops(Split()(model(wide))) == ["Split", "Add"]


def test_the_anchor_may_be_an_output_with_a_name_and_other_attributes() -> None:
    class Softmaxes(RewriteRulePass):
        def pattern(self, op: Any, x: Any) -> Any:
            return op.Softmax(x, _allow_other_attributes=True, _outputs=["_out"])

        def rewrite(self, op: Any, x: Any, _out: Any) -> Any:
            axis = _out.producer.attributes["axis"]
            return op.Exp(op.LogSoftmax(x, axis=axis))

    made = Softmaxes()(model("g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis=0>(x) }"))
    assert ops(made) == ["LogSoftmax", "Exp"]
    assert made.main.nodes[0].attributes["axis"] == 0


def test_a_pattern_may_be_of_another_domain() -> None:
    class Own(RewriteRulePass):
        def pattern(self, op: Any, x: Any) -> Any:
            return op.Own(x, _domain="d")

        def rewrite(self, op: Any, x: Any) -> Any:
            return op.Relu(x)

    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2] x) => (float[2] y) { y = d.Own(x) }"""
    made = Own()(Model.from_proto(onnx.parser.parse_model(text)))
    assert ops(made) == ["Relu"]


def test_numbers_are_constants_in_patterns_and_replacements() -> None:
    class Doubles(RewriteRulePass):
        def pattern(self, op: Any, x: Any) -> Any:
            return op.Mul(x, 2.0)

        def rewrite(self, op: Any, x: Any) -> Any:
            return op.Div(x, 0.5)

    text = "g (double[2] x) => (double[2] y) <double two = {2}> { y = Mul(two, x) }"
    made = Doubles()(model(text))
    (div,) = made.main.nodes_of("Div")
    assert div.inputs[1].const == 0.5
    assert div.inputs[1].dtype == div.inputs[0].dtype
    assert ops(Doubles()(model(text.replace("{2}", "{3}")))) == ["Mul"]


def test_a_rule_whose_result_matches_again_is_applied_once() -> None:
    class Swap(RewriteRulePass):
        def pattern(self, op: Any, x: Any, y: Any) -> Any:
            return op.Add(x, y)

        def rewrite(self, op: Any, x: Any, y: Any) -> Any:
            return op.Add(y, x)

    class Grow(RewriteRulePass):
        def pattern(self, op: Any, x: Any) -> Any:
            return op.Softmax(x)

        def rewrite(self, op: Any, x: Any) -> Any:
            return op.Softmax(op.Mul(x, op.Constant(value_float=1.0)))

    text = (
        "g (float[2] x, float[2] z) => (float[2] y) { a = Add(x, z) b = Add(a, x) y = Softmax(b) }"
    )
    swapped = Swap()(model(text))
    assert [[value.name for value in node.inputs] for node in swapped.main.nodes_of("Add")] == [
        ["z", "x"], ["x", "a"],
    ]  # fmt: skip
    assert ops(Grow()(model(text))) == ["Add", "Add", "Constant", "Mul", "Softmax"]


def test_values_of_a_rule_have_their_const_value() -> None:
    class DropOnes(RewriteRulePass):
        def pattern(self, op: Any, x: Any, c: Any) -> Any:
            return op.Mul(x, c)

        def check(self, op: Any, x: Any, c: Any) -> bool:
            assert x.const_value is None
            assert x != c
            assert x.name == "x"
            assert repr(x) == repr(x.value)
            return c.const_value is not None and bool((c.const_value.numpy() == 1).all())

        def rewrite(self, op: Any, x: Any, c: Any) -> Any:
            return op.Identity(x)

    text = "g (float[2] x) => (float[2] y) <float[2] c = {1, 1}> { y = Mul(x, c) }"
    assert ops(DropOnes()(model(text))) == ["Identity"]
    assert ops(DropOnes()(model(text.replace("1, 1", "1, 2")))) == ["Mul"]


def _rule(pattern: Any, rewrite: Any, **more: Any) -> Any:
    """Return the instance of a class of these methods."""
    return type("Own", (RewriteRulePass,), {"pattern": pattern, "rewrite": rewrite, **more})()


SPLIT = "g (float[2] x) => (float[1] y, float[1] z) { y, z = Split<num_outputs=2>(x) }"


def test_all_outputs_of_a_node_are_replaced_in_order() -> None:
    def pattern(self: Any, op: Any, x: Any) -> Any:
        return op.Split(x, num_outputs=2, _outputs=2)

    def rewrite(self: Any, op: Any, x: Any) -> Any:
        first, second = op.Split(op.Neg(x), num_outputs=2, _outputs=2)
        return first, op.Exp(second)

    made = _rule(pattern, rewrite)(model(SPLIT))
    producers = [value.producer for value in made.main.outputs]
    assert [node.op_type for node in producers if node is not None] == ["Split", "Exp"]
    assert [value.name for value in made.main.outputs] == ["y", "z"]


@pytest.mark.parametrize(
    "pattern",
    [
        lambda self, op, x: (op.Relu(x), op.Neg(x)),
        lambda self, op, x: tuple(reversed(op.Split(x, num_outputs=2, _outputs=2))),
        lambda self, op, x: (x, op.Neg(x)),
        lambda self, op, x: op.Split(x, num_outputs=3, _outputs=3)[::2],
    ],
)
def test_values_of_several_nodes_or_in_another_order_are_no_pattern(pattern: Any) -> None:
    with pytest.raises(UsageError, match="Own: a pattern of several values has the outputs of one"):
        _rule(pattern, lambda self, op, x: (x, x)).as_pass()


def test_a_pattern_without_a_value_is_refused() -> None:
    with pytest.raises(UsageError, match="Own: a pattern of several values"):
        _rule(lambda self, op, x: (), lambda self, op, x: x).as_pass()


def test_a_replacement_takes_only_what_it_names() -> None:
    def check(self: Any, op: Any, z: Any) -> bool:
        return bool(z.name == "z")

    made = _rule(
        lambda self, op, x, z: op.Sub(x, z),
        lambda self, op, x, *rest, **more: op.Neg(x),
        check=check,
    )
    text = "g (float[2] x, float[2] z) => (float[2] y, float[2] w) { y = Sub(x, z)  w = Sub(z, x) }"
    assert sorted(ops(made(model(text)))) == ["Neg", "Sub"]


def test_an_operator_of_a_domain_may_be_called_in_two_ways() -> None:
    def by_call(self: Any, op: Any, x: Any) -> Any:
        return op("com.microsoft").Gelu(x)

    def by_keyword(self: Any, op: Any, x: Any) -> Any:
        return op.Gelu(x, _domain="com.microsoft")

    for rewrite in (by_call, by_keyword):
        made = _rule(lambda self, op, x: op.Neg(x), rewrite)(
            model("g (float[2] x) => (float[2] y) { y = Neg(x) }")
        )
        (node,) = made.main.nodes
        assert (node.domain, node.op_type) == ("com.microsoft", "Gelu")


def test_other_attributes_match_only_on_request() -> None:
    text = "g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis=0>(x) }"
    strict = _rule(lambda self, op, x: op.Softmax(x), lambda self, op, x: op.Exp(x))
    loose = _rule(
        lambda self, op, x: op.Softmax(x, _allow_other_attributes=True),
        lambda self, op, x: op.Exp(x),
    )
    assert ops(strict(model(text))) == ["Softmax"]
    assert ops(loose(model(text))) == ["Exp"]


def test_special_names_are_no_operators() -> None:
    seen: list[bool] = []

    def pattern(self: Any, op: Any, x: Any) -> Any:
        seen.append(hasattr(op, "__wrapped__"))
        return op.Neg(x)

    _rule(pattern, lambda self, op, x: x).as_pass()
    assert seen == [False]


def test_an_unnamed_output_is_skipped() -> None:
    def pattern(self: Any, op: Any, x: Any) -> Any:
        return op.Split(x, num_outputs=2, _outputs=["", "second"])

    def check(self: Any, op: Any, second: Any) -> bool:
        return bool(second.name == "z")

    def rewrite(self: Any, op: Any, x: Any) -> Any:
        return op.Split(op.Neg(x), num_outputs=2, _outputs=2)

    assert ops(_rule(pattern, rewrite, check=check)(model(SPLIT))) == ["Neg", "Split"]


def test_rules_are_recorded() -> None:
    def ran(pattern: Any, rewrite: Any, text: str, check: Any = None) -> object:
        kept = {"pattern": staticmethod(pattern), "rewrite": staticmethod(rewrite)}
        if check is not None:
            kept["check"] = staticmethod(check)
        made = type("Made", (RewriteRulePass,), kept)()(model(text))
        return [
            (node.op_type, [v and v.name for v in node.inputs], dict(node.attributes))
            for node in made.main.topological_order()
        ]

    names = {
        "ran": ran, "tiered": tiered, "rule_values": rule_values,
        "SPLIT": "g (float[2] x) => (float[1] y) { a, b = Split<num_outputs=2>(x) y = Add(a, b) }",
        "NEG": "g (float[2] x) => (float[2] y) { a = Neg(x) y = Neg(a) }",
        "SOFT": "g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis=0>(x) }",
        "MUL": "g (float[2] x) => (float[2] y) <float[2] w = {1,1}> { y = Mul(x, w) }",
        "of": model("g (float[2] x) => (float[2] y) <float[2] w = {1,1}> { y = Mul(x, w) }"),
    }  # fmt: skip
    assert_values(__file__, names)
