"""What the steps of a compiled pattern match: operands, constants, alternatives, chains."""

from typing import Any

import onnx
import pytest

from tests.rewriter.patterns import X_TO_Y, bound, matches, names
from tests.small import made_by, model, parsed
from tiered import Model, Tensor
from tiered.rewriter import (
    Match,
    Pattern,
    chain,
    compile_pattern,
    const,
    find_matches,
    match_node,
    op,
    opt,
    rest,
    var,
)

# --- operands -------------------------------------------------------------------------------------


def test_a_variable_is_any_value() -> None:
    assert bound(op.Relu(var.a), "{ y = Relu(x) }") == {"a": "x"}


def test_a_variable_twice_is_the_same_value() -> None:
    twice = op.Mul(var.a, var.a)
    assert matches(twice, "{ y = Mul(x, x) }")
    assert not matches(twice, "{ r = Relu(x) y = Mul(x, r) }")


def test_operands_agree_in_number() -> None:
    assert not matches(op.Clip(var.a), "<float low = {0}> { y = Clip(x, low) }")
    assert not matches(op.Clip(var.a, var.low), "{ y = Clip(x) }")


def test_an_absent_operand_at_the_end_is_as_good_as_none() -> None:
    assert matches(op.Clip(var.a), "{ y = Clip(x, , ) }")


def test_an_optional_operand_may_be_absent() -> None:
    pattern = op.Clip(var.a, opt.low, opt.high)
    assert bound(pattern, "<float high = {0}> { y = Clip(x, , high) }") == {
        "a": "x",
        "low": None,
        "high": "high",
    }


def test_dots_are_one_operand_or_all_that_remain() -> None:
    assert matches(op.Clip(..., var.low), "<float low = {0}> { y = Clip(x, low) }")
    for operands in ("x", "x, low", "x, low, low"):
        text = f"<float low = {{0}}> {{ y = Clip({operands}) }}"
        assert matches(op.Clip(var.a, ...), text)


def test_the_rest_is_a_tuple() -> None:
    pattern = op.Concat(var.first, rest.others, axis=0)
    body = "{ r = Relu(x) y = Concat<axis=0>(r, x, x) }"
    assert bound(pattern, body)["others"] == ("x", "x")
    assert bound(pattern, "{ y = Concat<axis=0>(x) }")["others"] == ()


def test_either_order_of_a_commutative_operator() -> None:
    pattern = op.Add(op.Relu(var.a), var.b)
    for body in ("{ r = Relu(x) y = Add(r, x) }", "{ r = Relu(x) y = Add(x, r) }"):
        assert bound(pattern, body) == {"a": "x", "b": "x"}
    assert not matches(op.Sub(op.Relu(var.a), var.b), "{ r = Relu(x) y = Sub(x, r) }")


@pytest.mark.parametrize("kind", ["Sum", "Max", "Min", "Mean"])
def test_variadic_operators_of_two_commute(kind: str) -> None:
    pattern = getattr(op, kind)(op.Relu(var.a), var.b)
    assert matches(pattern, f"{{ r = Relu(x) y = {kind}(x, r) }}")
    assert not matches(pattern, f"{{ r = Relu(x) y = {kind}(x, r, x) }}")


def test_the_order_that_fits_everything_is_found() -> None:
    pattern = op.Add(op.Mul(var.a, var.b), op.Mul(var.b, var.c))
    body = "{ r = Relu(x) n = Neg(x) p = Mul(n, r) q = Mul(x, n) y = Add(p, q) }"
    assert bound(pattern, body) == {"a": "r", "b": "n", "c": "x"}


# --- constants ------------------------------------------------------------------------------------


def test_a_number_stands_for_a_constant() -> None:
    pattern = op.Mul(var.a, 0.5)
    assert matches(pattern, "<float half = {0.5}> { y = Mul(half, x) }")
    assert matches(pattern, "{ half = Constant<value_float=0.5>() y = Mul(x, half) }")
    assert not matches(pattern, "<float half = {0.25}> { y = Mul(half, x) }")


def test_a_constant_with_a_name_is_bound() -> None:
    assert bound(op.Mul(var.a, const(name="k")), "<float k0 = {3}> { y = Mul(x, k0) }")["k"] == "k0"


def test_a_default_that_callers_may_feed_is_no_constant() -> None:
    signature = "g (float[2,3] x, float[1] k) => (float[2,3] y)"
    assert not matches(op.Mul(var.a, const()), "<float[1] k = {3}> { y = Mul(x, k) }", signature)


# --- the shape of a pattern -----------------------------------------------------------------------


def test_alternatives_are_tried_in_order() -> None:
    pattern = op.Neg(op.Relu(var.a) | op.Abs(var.b) | var.c)
    assert bound(pattern, "{ r = Relu(x) y = Neg(r) }") == {"a": "x", "b": None, "c": None}
    assert bound(pattern, "{ r = Abs(x) y = Neg(r) }") == {"a": None, "b": "x", "c": None}
    assert bound(pattern, "{ r = Ceil(x) y = Neg(r) }") == {"a": None, "b": None, "c": "r"}


def test_a_later_choice_is_taken_where_an_earlier_one_leads_nowhere() -> None:
    pattern = op.Add(op.Relu(var.a) | var.b, var.a)
    assert bound(pattern, "{ r = Relu(x) y = Add(r, x) }") == {"a": "x", "b": None}
    assert bound(
        pattern,
        "{ r = Relu(x) y = Sub(r, r) z = Add(r, r) }",
        X_TO_Y.replace("(float[2,3] y)", "(float[2,3] y, float[2,3] z)"),
    ) == {"a": "r", "b": "r"}


def test_what_a_choice_of_the_root_does_not_bind_is_none_too() -> None:
    pattern = op.Relu(var.a) | op.Neg(var.b)
    assert bound(pattern, "{ y = Neg(x) }") == {"a": None, "b": "x"}


def test_another_output_than_the_first() -> None:
    body = "{ a, b = Split<axis=1, num_outputs=2>(x) y = Relu(b) }"
    split = op.Split(var.a, axis=1, num_outputs=2)
    assert matches(op.Relu(split.out(1)), body)
    assert not matches(op.Relu(split), body)


def test_two_outputs_of_one_node() -> None:
    split = op.Split(var.a, axis=1, num_outputs=2)
    pattern = op.Add(split, split.out(1))
    assert matches(pattern, "{ a, b = Split<axis=1, num_outputs=2>(x) y = Add(a, b) }")
    two = "{ a, b = Split<axis=1, num_outputs=2>(x) c, d = Split<axis=1, num_outputs=2>(x) "
    assert not matches(pattern, two + "y = Add(a, d) }")


def test_one_object_is_one_node_wherever_it_occurs() -> None:
    relu = op.Relu(var.a)
    assert matches(op.Mul(relu, relu), "{ r = Relu(x) y = Mul(r, r) }")
    assert not matches(op.Mul(relu, relu), "{ r = Relu(x) s = Relu(x) y = Mul(r, s) }")


def test_two_that_are_written_alike_may_be_one_node_or_two() -> None:
    pattern = op.Mul(op.Relu(var.a), op.Relu(var.a))
    assert matches(pattern, "{ r = Relu(x) y = Mul(r, r) }")
    assert matches(pattern, "{ r = Relu(x) s = Relu(x) y = Mul(r, s) }")


def test_two_that_differ_are_two_nodes() -> None:
    pattern = op.Mul(op.Relu(var.a).bind("p"), op.Relu(var.a).bind("q"))
    assert not matches(pattern, "{ r = Relu(x) y = Mul(r, r) }")
    assert matches(pattern, "{ r = Relu(x) s = Relu(x) y = Mul(r, s) }")


def test_a_pattern_across_domains() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
    g (float[2] x) => (float[2] y) { r = com.microsoft.Gelu(x)  y = Relu(r) }"""
    view = Model.from_proto(onnx.parser.parse_model(text))
    pattern = op.Relu(op("com.microsoft").Gelu(var.a))
    assert len(list(find_matches(view.main, pattern))) == 1
    assert not list(find_matches(view.main, op.Relu(op.Gelu(var.a))))


def test_an_operator_of_an_unknown_domain_is_taken_as_it_is_written() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "mine" : 1]>
    g (float[2] x) => (float[2] y) { y = mine.Twist<angle=3>(x, x) }"""
    view = Model.from_proto(onnx.parser.parse_model(text))
    assert list(find_matches(view.main, op("mine").Twist(var.a, var.a, angle=3)))
    assert not list(find_matches(view.main, op("mine").Twist(var.a, var.a)))


def test_a_node_is_bound_by_a_name() -> None:
    pattern = op.Relu(op.Neg(var.a).bind("inner"))
    assert bound(pattern, "{ n = Neg(x) y = Relu(n) }")["inner"] == "node_n"


# --- chains ---------------------------------------------------------------------------------------


def test_a_chain_is_one_or_more() -> None:
    pattern = op.Relu(chain(op.Cast | op.Identity, var.a).bind("links"))
    assert bound(pattern, "{ i = Identity(x) c = Cast<to=1>(i) y = Relu(c) }") == {
        "a": "x",
        "links": ("node_c", "node_i"),
    }
    assert bound(pattern, "{ i = Identity(x) y = Relu(i) }")["links"] == ("node_i",)
    assert not matches(pattern, "{ y = Relu(x) }")


def test_a_chain_ends_where_what_follows_matches() -> None:
    pattern = op.Relu(chain(op.Neg, op.Abs(var.a)))
    assert matches(pattern, "{ a = Abs(x) n = Neg(a) m = Neg(n) y = Relu(m) }")
    assert not matches(pattern, "{ a = Ceil(x) n = Neg(a) y = Relu(n) }")


def test_a_chain_is_as_long_as_it_may_be() -> None:
    pattern = op.Relu(chain(op.Neg, var.a).bind("links"))
    alone = "{ n = Neg(x) m = Neg(n) y = Relu(m) }"
    assert bound(pattern, alone)["a"] == "x"
    body = "{ n = Neg(x) m = Neg(n) y = Relu(m) z = Abs(n) }"
    signature = "g (float[2,3] x) => (float[2,3] y, float[2,3] z)"
    assert bound(pattern, body, signature)["a"] == "n"


def test_a_chain_may_end_in_one_of_its_own_kind() -> None:
    pattern = op.Relu(chain(op.Neg, op.Neg(var.a).bind("last")).bind("links"))
    body = "{ n = Neg(x) m = Neg(n) k = Neg(m) y = Relu(k) }"
    assert bound(pattern, body) == {"a": "x", "last": "node_n", "links": ("node_k", "node_m")}


def test_a_chain_of_ten_thousand_needs_no_stack() -> None:
    steps = "".join(f"v{i + 1} = Neg(v{i}) " for i in range(10_000))
    body = f"{{ v0 = Abs(x) {steps} y = Relu(v10000) }}"
    assert len(bound(op.Relu(chain(op.Neg, op.Abs(var.a)).bind("n")), body)["n"]) == 10_000


NO: dict[str, Any] = {"a": None, "b": "h"}
CHAIN = chain(op.Neg, op.Abs(var.a))
NEG = op.Neg(var.a)
SAME = op.Mul(op.Concat(rest.all, axis=0), op.Concat(rest.all, axis=0))
STEPS: list[tuple[Pattern, str, dict[str, Any] | None]] = [
    # A choice that fails somewhere inside leaves no trace, and the next one is tried.
    (op.Relu(op.Clip(var.a, var.low) | var.b), "h = Clip(x) y = Relu(h)", {**NO, "low": None}),
    (op.Relu(op.Neg(op.Abs(var.a) | op.Exp(var.a)) | var.b), "h = Neg(x) y = Relu(h)", NO),
    (op.Relu(op.Clip(var.a, op.Neg(var.a)) | var.b), "h = Clip(x) y = Relu(h)", NO),
    (op.Relu(op.Add(op.Neg(var.a), op.Neg(var.c)) | var.b), "n = Neg(x) h = Add(n, n) y = Relu(h)",
     {**NO, "c": None}),
    (op.Relu(op.Clip(var.a) | var.b), "h = Clip(x, one) y = Relu(h)", NO),
    (op.Relu(SAME | var.b),
     "p = Concat<axis=0>(x, z) q = Concat<axis=0>(x, x) h = Mul(p, q) y = Relu(h)",
     {"all": None, "b": "h"}),
    (op.Relu(CHAIN | var.b), "h = Neg(x) y = Relu(h)", NO),
    (op.Relu(op.Abs(op.Neg(op.Exp(var.a))) | op.Abs(op.Neg(var.b))),
     "n = Neg(x) m = Abs(n) y = Relu(m)", {"a": None, "b": "x"}),
    # The first choice and the longest chain count.
    (op.Relu(op.Neg(var.a) | var.b), "h = Neg(x) y = Relu(h)", {"a": "x", "b": None}),
    (op.Relu(chain(op.Neg, var.a)), "p = Neg(x) q = Neg(p) y = Relu(q)", {"a": "x"}),
    (op.Relu(chain(op.Neg, var.a) | var.b), "h = Neg(x) y = Relu(h)", {"a": "x", "b": None}),
    (op.Relu(op.Concat(rest.all, axis=0) | var.b), "h = Concat<axis=0>(x, z) y = Relu(h)",
     {"all": ("x", "z"), "b": None}),
    (op.Add(op.Neg(...).bind("p") | op.Abs(...).bind("q"), ...),
     "n = Neg(x) m = Abs(x) y = Add(n, m)", {"p": "node_n", "q": None}),
    (op.Relu(op.Add(op.Neg(...), ...).bind("p") | var.q),
     "m = Abs(x) n = Neg(x) h = Add(m, n) y = Relu(h)", {"p": "node_h", "q": None}),
    # Absent operands.
    (op.Clip(var.a, const()), "y = Clip(x)", None),
    (op.Clip(var.a, op.Neg(var.b) | const()), "y = Clip(x)", None),
    (op.Clip(var.a, chain(op.Neg, var.b)), "y = Clip(x)", None),
    (op.Mul(var.a, const().having(rank=1)), "y = Mul(x, one)", None),
    # Domains, and the order of operands.
    (op.Relu(op.Abs(op("d").F(var.a))), "n = e.F(x) m = Abs(n) y = Relu(m)", None),
    (op.Relu(op.Sub(op.Neg(var.a), var.b)), "n = Neg(x) m = Sub(x, n) y = Relu(m)", None),
    (op.Relu(op.Max(op.Neg(var.a), rest.b)), "n = Neg(x) m = Max(x, n) y = Relu(m)", None),
    (op.Relu(op.Max(op.Neg(var.a), var.b, var.c)), "n = Neg(x) m = Max(x, n, z) y = Relu(m)", None),
    (op.Relu(op.Max(opt.a, op.Neg(var.b))), "n = Neg(x) m = Max(n) y = Relu(m)", None),
    (op.Relu(op.Max(op.Neg(var.a), var.b)), "n = Neg(x) m = Max(z, n) y = Relu(m)",
     {"a": "x", "b": "z"}),
    # All that remain.
    (op.Concat(rest.all, axis=0), "y = Concat<axis=0>(x)", {"all": ("x",)}),
    (op.Concat(var.a, var.b, rest.all, axis=0), "y = Concat<axis=0>(x)", None),
    (op.Concat(var.a, var.b, rest.all, axis=0), "y = Concat<axis=0>(x, z)",
     {"a": "x", "b": "z", "all": ()}),
    (SAME, "p = Concat<axis=0>(x, z) q = Concat<axis=0>(x, z) y = Mul(p, q)", {"all": ("x", "z")}),
    # Equal patterns may match one node, and one pattern object one node only.
    (op.Add(op.Neg(var.a), op.Neg(var.a)), "n = Neg(x) y = Add(n, n)", {"a": "x"}),
    (op.Add(NEG, NEG), "n = Neg(x) y = Add(n, n)", {"a": "x"}),
    (op.Add(NEG, NEG), "n = Neg(x) m = Neg(x) y = Add(n, m)", None),
    (op.Add(CHAIN, CHAIN), "e = Abs(x) n = Neg(e) y = Add(n, n)", {"a": "x"}),
    (op.Add(CHAIN, CHAIN), "e = Abs(x) n = Neg(e) m = Neg(e) y = Add(n, m)", None),
    # A chain ends at other outputs, at nodes that are taken, and where there are no operands.
    (op.Relu(chain(op.Split, var.a)), "p, q = Split<num_outputs=2>(x) y = Relu(q)", None),
    (op.Add(op.Neg(var.a), chain(op.Neg | op.Abs, var.b)), "n = Neg(x) m = Abs(n) y = Add(n, m)",
     {"a": "x", "b": "n"}),
    (op.Relu(chain(op.RandomNormal | op.Neg, var.a)),
     "r = RandomNormal<shape=[2,3]>() n = Neg(r) y = Relu(n)", {"a": "r"}),
]  # fmt: skip


def test_what_steps_bind() -> None:
    for pattern, nodes, expected in STEPS:
        text = "g (float[2,3] x, float[2,3] z) => (float[2,3] y) <float one = {1}>"
        view = model(f"{text} {{ {nodes} }}")
        match = match_node(compile_pattern(pattern), made_by(view, "y"))
        bindings = match.bindings.items() if isinstance(match, Match) else None
        found = None if bindings is None else {name: names(value) for name, value in bindings}
        assert found == expected, (str(pattern), nodes)


def test_a_sparse_constant_is_none_of_a_pattern() -> None:
    weights = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [7.0])
    places = onnx.helper.make_tensor("", onnx.TensorProto.INT64, [1], [2])
    view = parsed("(float[3] x) => (float[3] y) <float[3] k = {0, 0, 7}> { y = Mul(x, k) }")
    node, programs = made_by(view, "y"), compile_pattern(op.Mul(var.a, const()))
    assert isinstance(match_node(programs, node), Match)
    sparse = Tensor(onnx.helper.make_sparse_tensor(weights, places, [3]))
    view.main.set_input(node, 1, view.main.constant(sparse))
    assert match_node(programs, node) is None


def test_operands_are_those_of_the_newest_form() -> None:
    view = parsed("(float[1,3] x) => (float[3] y) { y = Squeeze<axes=[0]>(x) }", opset=11)
    pattern = op.Squeeze(var.a, const([0]))
    assert isinstance(match_node(compile_pattern(pattern), made_by(view, "y")), Match)
