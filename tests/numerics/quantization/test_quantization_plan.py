"""Which products are quantised, and between which values."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.small import made_by, named, parsed
from tiered import DataType, Model, Node, Value
from tiered.numerics.quantization import quantization_plan
from tiered.numerics.quantization.quantization_plan import (
    NO_PRODUCTS,
    QUANTIZED_ALREADY,
    QuantizationPlan,
    activated,
    is_layer,
    is_quantized,
    plan_of,
    range_of_constant,
    without,
)
from tiered.numerics.quantization.scheme import Scheme, scheme_of
from tiered.testing import parse

TWO = """(float[2,3] x) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}> {
    a = MatMul(x, w) b = Relu(a) y = MatMul(b, w) }"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(float[2] x) => (float[2] y) { a = Neg(x) y = Relu(a) }", "y"),
        ("(float[2] x) => (float[2] y) { a = Neg(x) y = Clip(a) }", "y"),
        ("(float[2] x) => (float[2] y) { a = Neg(x) y = Exp(a) }", "a"),
        ("(float[2] x) => (float[2] y) { a = Neg(x) y = own.Relu(a) }", "a"),
        ("(float[2] x) => (float[2] y, float[2] z) { a = Neg(x) y = Relu(a) z = Abs(a) }", "a"),
        ("(float[2] x) => (float[2] y, float[2] a) { a = Neg(x) y = Relu(a) }", "a"),
        # A limit of the Clip, not what it clips.
        ("(float x, float[2] z) => (float[2] y) { a = Neg(x) y = Clip(z, a) }", "a"),
        (
            """(float[2] x, bool c) => (float[2] y) { a = Neg(x) y = If (c) <
            then_branch = t () => (float[2] u) { u = Relu(a) },
            else_branch = e () => (float[2] v) { v = Identity(x) }> }""",
            "a",
        ),
    ],
)
def test_the_activation_that_alone_reads_a_result_comes_before_its_quantisation(
    text: str, expected: str
) -> None:
    of = parsed(text)
    assert activated(named(of, "a")) is named(of, expected)


def test_a_value_and_those_that_share_its_scale_have_one_representative() -> None:
    of = parsed("(float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) y = Neg(b) }")
    a, b, y = (named(of, name) for name in ("a", "b", "y"))
    plan = QuantizationPlan([], [], groups={a: b, b: y, y: y})
    assert {plan.group(each) for each in (a, b, y)} == {y}
    assert plan.group(named(of, "x")) is named(of, "x")


def test_products_of_floats_are_units_with_their_weights() -> None:
    of = parsed(TWO)
    plan = plan_of(of, Scheme())
    assert [unit.node.output.name for unit in plan.units] == ["a", "y"]
    assert [unit.weights for unit in plan.units] == [[named(of, "w")]] * 2
    assert [unit.data for unit in plan.units] == [[named(of, "x")], [named(of, "b")]]
    assert plan.why_nothing() is None


def test_what_stays_float_is_kept_with_its_reason() -> None:
    of = parsed(TWO)
    first = made_by(of, "a")
    plan = plan_of(of, Scheme(), lambda node: "the user keeps it" if node is first else "")
    assert [unit.node.output.name for unit in plan.units] == ["y"]
    assert plan.kept == [(first, "the user keeps it")]
    left = without(plan, {made_by(of, "y"): "it loses too much"}, Scheme())
    assert left.units == []
    assert [reason for _, reason in left.kept] == ["the user keeps it", "it loses too much"]
    assert "no product is quantised" in str(left.why_nothing())
    assert [unit.node.output.name for unit in plan.units] == ["y"], "the first plan is as it was"


def test_a_model_without_products_says_so() -> None:
    of = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert plan_of(of, scheme_of(None)).why_nothing() is NO_PRODUCTS


def test_a_quantised_model_stays_and_needs_no_reason() -> None:
    text = """(float[2,3] x) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9},
        float s = {0.1}> {
        q = QuantizeLinear(x, s) d = DequantizeLinear(q, s) y = MatMul(d, w) }"""
    of = parsed(text)
    assert is_quantized(of)
    plan = plan_of(of, Scheme())
    assert [reason for _, reason in plan.kept] == [QUANTIZED_ALREADY]
    assert plan.why_nothing() is None
    wide = Scheme(activations=DataType.UINT16)
    plan = plan_of(parsed(text, opset=19), wide)
    assert [why for _, why in plan.kept] == ["uint16 needs opset 21, the model has 19"]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("MatMul(x, x)", True),
        ('Einsum<equation = "ij,jk->ik">(x, x)', True),
        ('Einsum<equation = "ij->ji">(x)', False),
        ("Add(x, x)", False),
        ("own.MatMul(x, x)", False),
    ],
)
def test_a_layer_sums_products_of_two(operator: str, expected: bool) -> None:
    of = parsed(f"(float[2,2] x) => (float[2,2] y) {{ y = {operator} }}")
    assert is_layer(made_by(of, "y")) is expected


HELD = """float[3,4] w = {1,2,3,4,5,6,7,8,9,8,7,6}, float[4] b = {1,2,3,4}, float[1] one = {1},
    float[1,4] row = {1,2,3,4}, float[0,4] none = {}, int8[3,4] q = {1,2,3,4,5,6,7,8,9,8,7,6},
    float s = {0.5}, float[2,3] left = {1,2,3,4,5,6}, float[2,1,1] filter = {1,2},
    float[2] c = {1,2}, float[1] bad = {1}, float[4] lost = {1,2,3,4}"""


def planned(nodes: str, scheme: Scheme | None = None) -> QuantizationPlan:
    """Return the plan of a model in which `bad` and `lost` have NaN."""
    of = parse(
        f"""(float[2,3] x, double[2,3] d, float[3,4] z, float[4] v, float[2,1,8] i, float[3,4] j)
        => (float[?,?] y) <{HELD}> {{ {nodes} }}""",
        opset=21,
    )
    for tensor in of.graph.initializer:
        if tensor.name in ("bad", "lost"):
            numbers = np.full(tuple(tensor.dims), np.nan, np.float32)
            tensor.CopyFrom(numpy_helper.from_array(numbers, tensor.name))
    return plan_of(Model.from_proto(of), Scheme() if scheme is None else scheme)


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ('y = Einsum<equation = "ij,jk->ik">(x, w)', "there is no integer Einsum"),
        ("a = Cast<to = 11>(w)  e = MatMul(d, a)  y = Cast<to = 1>(e)",
         "operands are of double, not of float"),
        ("y = MatMul(left, w)", "no operand is data"),
        ("e = Slice(x, n0, n0, n1)  y = MatMul(e, none)", "the weight is empty"),
        ("a = Mul(w, bad)  y = Gemm(x, w)", ""),
        ("r = Reshape(x, six)  y = MatMul(r, bad)", "the weight has NaN or Inf"),
        ("k = DequantizeLinear(q, s)  y = MatMul(x, k)", ""),
    ],
)  # fmt: skip
def test_a_product_stays_float_for_its_operands(nodes: str, reason: str) -> None:
    ints = "n0 = Constant<value_ints = [0]>()  n1 = Constant<value_ints = [1]>()"
    plan = planned(f"{ints}  six = Constant<value_ints = [6,1]>()  {nodes}")
    assert [why for _, why in plan.kept] == ([reason] if reason else [])
    assert len(plan.units) == (not reason)


def test_an_operator_that_the_target_lacks_stays_float() -> None:
    plan = planned("y = MatMul(x, w)", Scheme(operators=frozenset({"Gemm"})))
    assert [reason for _, reason in plan.kept] == ["the target has no integer MatMul"]


def test_an_operand_that_is_dequantised_already_has_no_role() -> None:
    (unit,) = planned("k = DequantizeLinear(q, s)  y = MatMul(x, k)").units
    assert unit.roles == {0: "data"}


@pytest.mark.parametrize(
    ("call", "bias"),
    [
        ("Gemm(x, w, b)", 2),
        ("Gemm(x, w)", None),
        ("Gemm(x, w, v)", None),
        ("Gemm(x, w, row)", None),
        ("Gemm(x, w, one)", None),
        ("Gemm(x, w, bad)", None),
        ("Gemm(x, w, lost)", None),
        ("Gemm<alpha = 0.5>(x, w, b)", None),
        ("Gemm<beta = 0.5>(x, w, b)", None),
        ("Gemm(x, z, b)", None),
        ("Gemm(left, z, b)", None),
        ("Conv(i, filter, c)", 2),
        ("Conv(i, filter, one)", None),
    ],
)
def test_a_constant_bias_of_a_number_for_each_channel_is_added_in_integers(
    call: str, bias: int | None
) -> None:
    (unit,) = planned(f"y = {call}").units
    assert unit.bias == bias


def test_a_constant_has_ends_where_it_has_integers() -> None:
    of = parsed(f"(float[3,4] x) => (float[3,4] y) <{HELD}> {{ y = Add(x, w)  a = Neg(none) }}")
    assert [range_of_constant(named(of, name)) for name in ("w", "x", "none")] == [
        (1.0, 9.0),
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("pool", "reads"),
    [
        ("kernel_shape = [2]", True),
        ("kernel_shape = [2], dilations = [1]", True),
        ("kernel_shape = [2], dilations = [2]", False),
        ("kernel_shape = [2], ceil_mode = 1, count_include_pad = 1", False),
        ("kernel_shape = [2], ceil_mode = 1", True),
        ("kernel_shape = [2], count_include_pad = 1", True),
    ],
)
def test_a_pool_that_runtimes_misread_reads_floats(pool: str, reads: bool) -> None:
    of = parsed(
        f"""(float[2,1,8] i) => (float[?,?,?] y) <float[2,1,1] filter = {{1,2}}> {{
            a = Conv(i, filter)  y = AveragePool<{pool}>(a) }}"""
    )
    plan = plan_of(of, Scheme())
    a = named(of, "a")
    assert (a in plan.pairs) is reads
    assert (made_by(of, "y") in plan.pairs.get(a, {})) is reads


def test_of_a_result_that_no_node_reads_there_is_no_pair() -> None:
    of = parsed(
        """(float[2,1,8] i) => (int64[3] y) <float[2,1,1] filter = {1,2}> {
            a = Conv(i, filter)  y = Shape(a) }"""
    )
    assert named(of, "a") not in plan_of(of, Scheme()).pairs


@pytest.mark.parametrize(
    ("moves", "outputs", "has_pair"),
    [
        ("h = Transpose<perm = [1,0]>(k)", "float[3,2] k", True),
        ("h = Identity(k)", "float[3,2] k", False),
        ("h = own.Transpose(k)", "float[3,2] k", False),
        ("t = Transpose<perm = [1,0]>(k)  h = Neg(t)", "float[3,2] k", False),
        ("h = Transpose<perm = [1,0]>(k)", "float[2,3] h, float[3,2] k", False),
        ("t = Transpose(k)  u = Transpose(t)  h = Transpose(u)", "float[3,2] k", True),
        ("t = Transpose(k)  z = Abs(t)  h = Transpose<perm = [0,1]>(t)", "float[3,2] k", False),
    ],
)
def test_an_output_that_is_moved_to_a_product_has_a_pair_too(
    moves: str, outputs: str, has_pair: bool
) -> None:
    of = parsed(
        f"""(float[3,2] x) => (float[2,4] y, {outputs}) <float[3,4] w = {{1,2,3,4,5,6,7,8,9,8,7,6}},
        float[2,3] h>
        {{ k = Neg(x)  {moves}  y = MatMul(h, w) }}"""
    )
    plan = plan_of(of, Scheme())
    k, h = named(of, "k"), named(of, "h")
    assert h in plan.pairs
    assert (k in plan.pairs) is (has_pair or h is k)
    if has_pair:
        assert plan.group(k) is plan.group(h)


def test_only_results_of_integer_kernels_are_quantised_by_themselves() -> None:
    for scheme, is_integer in (
        (Scheme(), False),
        (Scheme(integer_results=frozenset({"MatMul"})), True),
    ):
        of = parsed(TWO.replace("Relu", "Exp"))
        assert (named(of, "a") in plan_of(of, scheme).pairs) is is_integer


def test_a_kernel_of_integers_makes_a_model_quantised() -> None:
    of = parsed(
        """(uint8[2,2] x) => (uint8[2,2] y) <float s = {1}, uint8 z = {0}> {
        y = QLinearMatMul(x, s, z, x, s, z, s, z) }"""
    )
    assert is_quantized(of)
    assert not is_quantized(parsed(TWO))


# --- whole plans ----------------------------------------------------------------------------------


def shown(plan: QuantizationPlan) -> str:
    """Return a plan as text: what is quantised or not; pairs with their readers; shared scales."""
    units = [f"{unit.node.output.name}{dict(unit.roles)}" for unit in plan.units]
    others = [
        f"{node.op_type}[{' '.join(value.name for value in values)}]"
        for node, values in plan.others.items()
    ]
    floats = [f"{node.op_type}: {reason}" for node, reason in (*plan.kept, *plan.floating)]
    pairs = [
        f"{value.name}>{','.join(node.op_type for node in nodes)}"
        for value, nodes in plan.pairs.items()
    ]
    groups = [f"{value.name}={plan.group(value).name}" for value in plan.groups]
    text = f"{', '.join([*units, *others, *floats])} | {' '.join(pairs)} | {' '.join(groups)}"
    return text.replace("{0: 'data', 1: 'weight'}", "").rstrip(" |")


def in_integers(node: Node) -> list[Value]:
    """Return all floats of a node, but for two operators."""
    values = () if node.op_type in ("Exp", "Sin") else (*node.inputs, *node.outputs)
    return [value for value in values if value is not None and value.dtype == DataType.FLOAT]


STRICT = Scheme(
    in_integers=in_integers,
    why_float=lambda node: "" if node.is_op("Sin") else f"no {node.op_type}",
)


def image(nodes: str) -> Model:
    return parsed(
        f"""(float[1,2,4,4] x, int64[4] n) => (float[A,B,C,D] y) <float[2,2,1,1] k = {{1,2,3,4}},
        float[2,2] v = {{1,2,3,4}}, float zero = {{0}}, float six = {{6}}> {{ {nodes} }}"""
    )


def test_a_plan_has_pairs_where_kernels_of_integers_read_and_compute() -> None:
    for nodes, with_floats, without_floats in (
        (
            "a = Conv(x, k)  r = Relu(a)  t = Transpose(r)  y = Neg(t)",
            "a | x>Conv r>Transpose t>Neg | r=t",
            "a, Relu[a r], Transpose[r t], Neg[t y] | x>Conv r>Transpose t>Neg y> | r=t",
        ),
        (
            "a = Conv(x, k)  b = Conv(x, k)  s = Add(a, b)  r = Relu(s)  y = Conv(r, k)",
            "a, b, y | x>Conv,Conv r>Conv a>Add b>Add",
            "a, b, y, Add[a b s], Relu[s r] | x>Conv,Conv r>Conv a>Add b>Add y>",
        ),
        (
            "a = Conv(x, k)  b = Conv(x, k)  s = Add(a, b)  y = Neg(s)",
            "a, b | x>Conv,Conv a>Add b>Add",
            "a, b, Add[a b s], Neg[s y] | x>Conv,Conv a>Add b>Add s>Neg y>",
        ),
        (
            "a = Conv(x, k)  s = Add(a, x)  c = Conv(s, k)  y = Neg(c)",
            "a, c | x>Conv s>Conv a>Add c>Neg",
            "a, c, Add[a x s], Neg[c y] | x>Conv,Add s>Conv a>Add c>Neg y>",
        ),
        (
            "a = Conv(x, k)  m, , l = Split<axis=3, num_outputs=3>(a)  y = Neg(m)",
            "a | x>Conv a>Split m>Neg l> | a=l m=l",
            "a, Split[a m l], Neg[m y] | x>Conv a>Split m>Neg l> y> | a=l m=l",
        ),
        (
            "a = Conv(x, k)  u = Clip(v, , six)  y = Neg(a)",
            "a | x>Conv a>Neg",
            "a, Clip[v six u], Neg[a y] | x>Conv a>Neg v>Clip six>Clip u> y>",
        ),
        (
            "a = Conv(x, k)  m, i = MaxPool<kernel_shape=[1,1]>(a)  y = Neg(m)  z = Cast<to=1>(i)",
            "a | x>Conv a>MaxPool m>Neg | a=m",
            "a, MaxPool[a m], Neg[m y], Cast[z] | x>Conv a>MaxPool m>Neg y> z> | a=m",
        ),
        (
            "a = Conv(x, k)  y = Reshape(a, n)",
            "a | x>Conv a>Reshape",
            "a, Reshape[a y] | x>Conv a>Reshape y> | y=a",
        ),
        (
            "a = Conv(x, k)  p, q = Split<axis=1,num_outputs=2>(a)  y = Neg(q)  z = Abs(p)",
            "a | x>Conv a>Split p>Abs q>Neg | a=q p=q",
            "a, Split[a p q], Neg[q y], Abs[p z] | x>Conv a>Split p>Abs q>Neg y> z> | a=q p=q",
        ),
        (
            "a = Conv(x, k)  , q = Split<axis=1,num_outputs=2>(a)  y = Relu(q)",
            "a | x>Conv a>Split",
            "a, Split[a q], Relu[q y] | x>Conv a>Split q>Relu y> | q=a",
        ),
        (
            "a = Conv(x, k)  y, q = Split<axis=1,num_outputs=2>(a)  r = Relu(q)  z = Neg(r)",
            "a | x>Conv a>Split q>Relu | a=q",
            "a, Split[a y q], Relu[q r], Neg[r z] | x>Conv a>Split q>Relu y> r>Neg z> | a=q y=q",
        ),
        (
            "a = Conv(x, k)  b = Neg(x)  y = Concat<axis=1>(a, b)",
            "a | x>Conv a>Concat",
            "a, Neg[x b], Concat[a b y] | x>Conv,Neg a>Concat b>Concat y> | b=a y=a",
        ),
        (
            "a = Conv(x, k)  b = Conv(x, k)  c = Concat<axis=1>(a, b)  y = Neg(c)",
            "a, b | x>Conv,Conv a>Concat b>Concat c>Neg | a=c b=c",
            "a, b, Concat[a b c], Neg[c y] | x>Conv,Conv a>Concat b>Concat c>Neg y> | a=c b=c",
        ),
        (
            "a = Conv(x, k)  m = MaxPool<kernel_shape=[1,1], dilations=[2,2]>(a)  "
            "y = AveragePool<kernel_shape=[1,1], dilations=[2,2]>(m)",
            "a | x>Conv a>MaxPool m> | a=m",
            "a, MaxPool[a m], AveragePool[m y] | x>Conv a>MaxPool m>AveragePool y> | a=m y=m",
        ),
        (
            "a = Conv(x, k)  y = Exp(x)",
            "a | x>Conv",
            "a, Exp: no Exp | x>Conv a>",
        ),
        (
            "y = Conv(x, k)",
            "y | x>Conv",
            "y | x>Conv y>",
        ),
        (
            "y = Conv(x, k)  b = Neg(y)",
            "y | x>Conv",
            "y, Neg[y b] | x>Conv y>Neg b>",
        ),
        (
            "a = Conv(x, k)  q = Mod(n, n)  y = Relu(a)",
            "a | x>Conv",
            "a, Relu[a y] | x>Conv y>",
        ),
        (
            "a = MatMul(x, v)  y = Neg(a)",
            "a | x>MatMul",
            "a, Neg[y] | x>MatMul y>",
        ),
        (
            "a = Conv(x, k)  y = Exp(a)  b = Sin(a)",
            "a | x>Conv a>Exp,Sin",
            "a, Exp: no Exp | x>Conv a>Exp,Sin",
        ),
        (
            "a = Clip(x, zero, six)  y = Add(a, x)",
            "",
            "Clip[x zero six a], Add[a x y] | x>Clip,Add zero>Clip six>Clip a>Add y>",
        ),
        (
            "a = Add(x, x)  r = Relu(a)  y = Max(r, x)",
            "",
            "Add[x x a], Relu[a r], Max[r x y] | x>Add,Max r>Max y> | x=r y=r",
        ),
        (
            "a = Exp(x)  y = Neg(n)",
            "",
            "Neg[y], Exp: no Exp | y>",
        ),
        (
            "y = Softmax(x)  c = Constant<value_float=1.0>()  e = Exp(zero)",
            "",
            "Softmax[x y], Constant[c], Exp: no Exp | x>Softmax y> c>",
        ),
        (
            'y = Einsum<equation="abij,jk->abik">(x, v)',
            "Einsum: there is no integer Einsum",
            "Einsum[x v y] | x>Einsum v>Einsum y>",
        ),
    ):
        for scheme, expected in ((Scheme(), with_floats), (STRICT, without_floats)):
            assert shown(plan_of(image(nodes), scheme)) == expected, nodes


def test_roles_and_the_user_keep_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = "a = Conv(x, k)  s = Sin(a)  t = Tanh(s)  u = Abs(t)  c = Conv(u, k)  y = Neg(c)"
    model = image(nodes)
    a, t, u, c = (made_by(model, name) for name in "atuc")

    def keep(node: Node) -> str:
        return "the user keeps it" if node is u else ""

    monkeypatch.setattr(quantization_plan, "few_bit_roles", lambda _: {c: "a role", t: "a role"})
    plan = plan_of(model, STRICT, keep)
    reasons = "Conv: a role, Tanh: a role, Abs: no Abs"
    assert shown(plan) == f"a, Neg[c y], {reasons} | x>Conv a>Sin c>Neg y>"
    left = without(plan, {a: "it loses", made_by(model, "y"): "too much"}, STRICT)
    assert shown(left) == "Conv: a role, Conv: it loses, Tanh: a role, Abs: no Abs, Neg: too much"
    assert [node for node, _ in left.kept] == [c, a]
    assert shown(without(plan, {a: "it loses"}, STRICT)).endswith("Abs: no Abs | c>Neg y>")
    assert [why for _, why in plan_of(model, Scheme(), keep).kept] == ["a role"]


def test_a_plan_has_something_where_only_other_operators_are_integers() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert plan_of(model, STRICT).why_nothing() is None


def test_more_reasons_for_which_a_product_stays_float() -> None:
    def reasons(text: str) -> list[str]:
        return [reason for _, reason in plan_of(parsed(text), Scheme()).kept]

    weight = "float[2,2] w = {1,2,3,4}"
    unknown = "{ a = own.Any(x)  y = MatMul(a, w) }"
    assert reasons(f"(float[2,2] x) => (float[A,B] y) <{weight}> {unknown}") == [
        "operands are of unknown type, not of float"
    ]
    for ir, reason in ((3, ["as all are before IR 4"]), (4, [])):
        header = f'<ir_version: {ir}, opset_import: ["" : 11]> g'
        inputs = "(float[2,2] x, float[2,2] w)"
        found = reasons(f"{header} {inputs} => (float[2,2] y) <{weight}> {{ y = MatMul(x, w) }}")
        assert [part for why in found for part in why.split(": ")[0].split(", ")[1:]] == reason


def test_an_output_of_the_model_that_a_body_moves_has_no_pair() -> None:
    of = parsed(
        """(float[3,2] x, bool c) => (float[2,4] y, float[3,2] k)
        <float[3,4] w = {1,2,3,4,5,6,7,8,9,8,7,6}> { k = Neg(x)  y = If(c) <
            then_branch = t () => (float[2,4] p) { h = Transpose(k)  p = MatMul(h, w) },
            else_branch = e () => (float[2,4] q) { q = own.F(x) }> }"""
    )
    plan = plan_of(of, Scheme())
    assert [value.name for value in plan.pairs] == ["h", "k"]


def test_a_sparse_weight_has_no_integers() -> None:
    for is_sparse, reason in ((True, "the weight is sparse"), (False, "the weight is empty")):
        tensor = SimpleNamespace(is_sparse=is_sparse, size=0)
        value = cast("Value", SimpleNamespace(tensor=tensor))
        assert quantization_plan.weight_refusal(value) == reason


def test_a_sparse_bias_is_not_added_in_integers() -> None:
    proto = parse(
        "(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> { y = Gemm(x, w, b) }"
    )
    values = numpy_helper.from_array(np.array([5], np.float32), "b")
    indices = numpy_helper.from_array(np.array([1]))
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [2]))
    (unit,) = plan_of(Model.from_proto(proto), Scheme()).units
    assert unit.bias is None
