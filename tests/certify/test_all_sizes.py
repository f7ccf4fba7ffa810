"""A proof at some sizes is one for all sizes only where each index of an axis is treated alike."""

import itertools
from dataclasses import replace

import onnx
import pytest

from tests.certify.test_checker import proof
from tiered import Model
from tiered.certify import all_sizes
from tiered.certify.all_sizes import why_not_for_all
from tiered.certify.checker import Checker
from tiered.certify.problem import Assumed, Border, Given, Problem
from tiered.certify.regions.whole import whole_problem
from tiered.certify.rules.named_sizes import Dependent, Marks, of_integers, sizes_of
from tiered.certify.trial_sizes import TrialSizes
from tiered.graph.shape_inference.symbolic_dims import size_of_dim
from tiered.testing import parse

NK = "(float[N,6] x, float[6] z) => (y)"
ROWS = "(float[N,M,4] x) => (y)"
IMAGES = "(float[N,3,4,4] x) => (y)"
W27 = ",".join(map(str, range(27)))
IF = "(float[N,6] x, bool c) => (y)"
FOR_ALL = {
    "elementwise": (f"{NK} {{ y = Add(x, z) }}", f"{NK} {{ y = Add(z, x) }}"),
    "two Transposes": (
        f"{ROWS} {{ t = Transpose<perm=[1,0,2]>(x)  y = Transpose<perm=[2,1,0]>(t) }}",
        f"{ROWS} {{ y = Transpose<perm=[2,0,1]>(x) }}",
    ),
    "axes of one size": (
        "(float[N,N] x) => (y) { t = Transpose(x)  y = Transpose(t) }",
        "(float[N,N] x) => (y) { y = Identity(x) }",
    ),
    "a Reshape of the fixed axes": (
        f"{NK} <int64[3] s = {{0,2,3}}, int64[2] t = {{-1,6}}> {{ a = Reshape(x, s)"
        "  b = Reshape(a, t)"
        "  y = Mul(b, z) }",
        f"{NK} {{ y = Mul(x, z) }}",
    ),
    "a Reshape by a Shape": (
        f"{NK} <int64[1] a = {{0}}, int64[2] e = {{3,2}}> {{ s = Shape<start=0, end=1>(x)"
        "  t = Concat<axis=0>(s, e)  r = Reshape(x, t)  y = Relu(r) }",
        f"{NK} <int64[3] t = {{0,3,2}}> {{ r = Relu(x)  y = Reshape(r, t) }}",
    ),
    "Unsqueeze, Expand and Squeeze": (
        f"{NK} <int64[1] a = {{1}}, int64[3] s = {{1,1,6}}> {{ u = Unsqueeze(x, a)"
        "  e = Expand(u, s)"
        "  y = Squeeze(e, a) }",
        f"{NK} {{ y = Identity(x) }}",
    ),
    "Concat and Slice along a fixed axis": (
        f"{NK} <int64[1] b = {{6}}, int64[1] e = {{12}}, int64[1] a = {{1}}> {{"
        " c = Concat<axis=1>(x, x)  y = Slice(c, b, e, a) }",
        f"{NK} {{ y = Identity(x) }}",
    ),
    "a product with a weight": (
        "(float[B,S,2] x) => (y) <float[2,3] w = {1,2,3,4,5,6}, float k = {2}> {"
        " p = MatMul(x, w)  y = Mul(p, k) }",
        "(float[B,S,2] x) => (y) <float[2,3] w = {2,4,6,8,10,12}> { y = MatMul(x, w) }",
    ),
    "a sum over a fixed axis": (
        f"{NK} <int64[1] a = {{1}}> {{ n = Neg(x)  m = Neg(n)  y = ReduceSum(m, a) }}",
        f"{NK} <int64[1] a = {{1}}> {{ y = ReduceSum(x, a) }}",
    ),
    "a convolution and its batch norm": (
        f"{IMAGES} <float[2] s = {{4,9}}, float[2] b = {{1,2}}, float[2] m = {{0,3}},"
        " float[2] v = {4,9}, float[2,3,1,1] w = {1,2,3,4,5,6}> { c = Conv(x, w)"
        "  y = BatchNormalization<epsilon = 0.0>(c, s, b, m, v) }",
        f"{IMAGES} <float[2] b = {{1,-7}}, float[2,3,1,1] w = {{2,4,6,12,15,18}}> {{"
        "  y = Conv(x, w, b) }",
    ),
    "pads before a convolution": (
        f"{IMAGES} <int64[8] p = {{0,0,1,1,0,0,1,1}}, float[1,3,3,3] w = {{{W27}}}> {{"
        " a = Pad(x, p)  y = Conv(a, w) }",
        f"{IMAGES} <float[1,3,3,3] w = {{{W27}}}> {{ y = Conv<pads = [1,1,1,1]>(x, w) }}",
    ),
    "pools": (
        f"{IMAGES} {{ n = Neg(x)  m = Neg(n)  a = MaxPool<kernel_shape = [2,2]>(m)"
        "  b = GlobalAveragePool(a)  y = Relu(b) }",
        f'{IMAGES} {{ a = MaxPool<kernel_shape = [2,2], auto_pad = "VALID">(x)'
        "  b = GlobalAveragePool(a)  y = Relu(b) }",
    ),
    "an If": (
        f"{IF} {{ n = Neg(x)  y = If(c)<then_branch = g () => (a) {{ a = Neg(n) }},"
        " else_branch = h () => (b) { m = Exp(n)  b = Mul(m, x) }> }",
        f"{IF} {{ n = Neg(x)  y = If(c)<then_branch = g () => (a) {{ a = Identity(x) }},"
        " else_branch = h () => (b) { m = Exp(n)  b = Mul(x, m) }> }",
    ),
    "sizes themselves": (
        f"{ROWS} <int64 i = {{1}}> {{ s = Shape(x)  y = Gather(s, i) }}",
        f"{ROWS} <int64[1] a = {{0}}> {{ s = Shape<start=1, end=2>(x)  y = Squeeze(s, a) }}",
    ),
}
AT_SOME = {
    "a convolution over an axis": (
        "(float[2,3,N,4] x) => (y) <float[1,3,1,1] w = {1,2,3}> { n = Neg(x)  m = Neg(n)"
        "  y = Conv(m, w) }",
        "(float[2,3,N,4] x) => (y) <float[1,3,1,1] w = {1,2,3}> { y = Conv(x, w) }",
    ),
    "a Pad of the axis": (
        f"{ROWS} <int64[6] p = {{1,0,0,0,0,0}}> {{ n = Neg(x)  m = Neg(n)  y = Pad(m, p) }}",
        f"{ROWS} <int64[6] p = {{1,0,0,0,0,0}}> {{ y = Pad(x, p) }}",
    ),
    "a global pool over the axis": (
        "(float[2,3,N] x) => (y) { n = Neg(x)  m = Neg(n)  r = Relu(m)  y = GlobalMaxPool(r) }",
        "(float[2,3,N] x) => (y) { r = Relu(x)  y = GlobalMaxPool(r) }",
    ),
    "a sum over the axis in a body of If": (
        f"{IF} <int64[1] a = {{0}}> {{ n = Neg(x)  y = If(c)<then_branch = g () => (p) {{"
        " m = Neg(n)  p = ReduceSum(m, a) }, else_branch = h () => (q) { q = ReduceMax(x, a) }> }",
        f"{IF} <int64[1] a = {{0}}> {{ y = If(c)<then_branch = g () => (p) {{"
        " p = ReduceSum(x, a) }, else_branch = h () => (q) { q = ReduceMax(x, a) }> }",
    ),
    "channels of a named size": (
        "(float[2,N,3] x, float[N] s) => (y) { n = Neg(x)  m = Neg(n)"
        "  y = BatchNormalization(m, s, s, s, s) }",
        "(float[2,N,3] x, float[N] s) => (y) { y = BatchNormalization(x, s, s, s, s) }",
    ),
    "a sum over the axis": (
        f"{ROWS} <int64[1] a = {{0}}> {{ n = Neg(x)  m = Neg(n)  y = ReduceSum(m, a) }}",
        f"{ROWS} <int64[1] a = {{0}}> {{ y = ReduceSum(x, a) }}",
    ),
    "Concat along the axis": (
        f"{ROWS} {{ n = Neg(x)  m = Neg(n)  y = Concat<axis=0>(m, m) }}",
        f"{ROWS} {{ y = Concat<axis=0>(x, x) }}",
    ),
    "a Slice that takes more than was tried": (
        f"{ROWS} <int64[1] b = {{0}}, int64[1] e = {{100}}, int64[1] a = {{0}}> {{"
        " y = Slice(x, b, e, a) }",
        f"{ROWS} {{ y = Identity(x) }}",
    ),
    "a Reshape of two axes": (
        f"{ROWS} <int64[2] s = {{-1,4}}> {{ n = Neg(x)  m = Neg(n)  y = Reshape(m, s) }}",
        f"{ROWS} <int64[2] s = {{-1,4}}> {{ y = Reshape(x, s) }}",
    ),
    "a number that is computed from a size": (
        f"{ROWS} {{ s = Size(x)  f = Cast<to=1>(s)  n = Neg(f)  y = Mul(x, n) }}",
        f"{ROWS} {{ s = Size(x)  f = Cast<to=1>(s)  m = Mul(x, f)  y = Neg(m) }}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOR_ALL)
def test_what_does_the_same_at_each_index_is_proved_for_all_sizes(name: str) -> None:
    found = proof(*FOR_ALL[name])
    assert found.is_proved, found.reason
    assert found.is_for_all


@pytest.mark.parametrize("name", AT_SOME)
def test_what_depends_on_sizes_is_proved_at_some(name: str) -> None:
    found = proof(*AT_SOME[name])
    assert found.is_proved, found.reason
    assert not found.is_for_all


def problem_of(name: str, sizes: tuple[TrialSizes, ...] | None = None) -> Problem:
    made = whole_problem(*(Model.from_proto(parse(text)) for text in FOR_ALL[name]))
    if sizes is None:
        return made
    return Problem(made.sides, made.borders, made.outputs, made.opsets, made.given, sizes)


@pytest.mark.parametrize("name", FOR_ALL)
def test_what_is_proved_for_all_sizes_is_proved_at_many(name: str) -> None:
    """The claim is tried: at sizes that are not those of the proof."""
    for values in itertools.product((0, 1, 4, 7), repeat=2):
        assert (
            Checker()
            .prove(problem_of(name, (TrialSizes((2, 3), 3), TrialSizes(values, 3))))
            .is_proved
        )


def test_sizes_without_each_pattern_of_indices_are_not_enough() -> None:
    """At a size of 1, a square is its Transpose."""
    text = "(float[N,N] x) => (y) {{ t = {}(x)  y = Relu(t) }}"
    models = [Model.from_proto(parse(text.format(op))) for op in ("Transpose", "Identity")]
    made = whole_problem(*models)
    small = Problem(
        made.sides, made.borders, made.outputs, made.opsets, made.given, (TrialSizes((1,), 3),)
    )
    assert not Checker().prove(small).is_for_all
    assert not Checker().prove(made).is_proved


def test_the_summary_counts_what_holds_for_all_sizes() -> None:
    from tiered import optimize_model

    model = onnx.ModelProto()
    model.CopyFrom(parse(f"{NK} <float one = {{1}}> {{ a = Mul(x, one)  y = Add(a, z) }}"))
    result = optimize_model(model, certify=True)
    assert result.certify is not None
    assert str(result.certify.findings) == "1 rewrite: 1 bit for bit; 1 of 1 of named sizes for all"


INTS = ",".join(map(str, range(64)))


@pytest.mark.parametrize(
    ("one", "other", "because"),
    [
        ("y = Identity(x)", "y = Transpose(x)", "y has a shape that is the same only at some"),
        ("y = Shape(x)", "y = Identity(two)", "y is computed from sizes"),
        ("y = Identity(two)", "y = Shape(x)", "y is computed from sizes"),
        ("y = Shape(x)", "t = Transpose(x)  y = Shape(t)", "y is computed from sizes"),
        ("y = Shape(x)", "n = Neg(x)  y = Shape(n)", ""),
        ("y = Clip(x, , k)", "y = Min(x, k)", ""),
        ("y = NonZero(x)", "y = NonZero(x)", "NonZero may depend on sizes"),
        ("y = vendor.If(x)", "y = Neg(x)", "If may depend on sizes"),
        ("y = vendor.Neg(x)", "y = Neg(x)", "Neg may depend on sizes"),
        ("y, m = Dropout(x)", "y = Neg(x)", "Dropout has more results"),
        ("y, = Dropout(x)", "y = Neg(x)", ""),
        ("y = If(c)<then_branch = g () => (p) { p = Shape(x) },"
         " else_branch = h () => (q) { q = Shape(x) }>", "y = Shape(x)", "If returns sizes"),
        ("y = If(c)<then_branch = g () => (p) { p = Neg(x) },"
         " else_branch = h () => (q) { q = Transpose(x) }>", "y = Neg(x)",
         "bodies of If return other shapes"),
        ("y = If(c)<then_branch = g () => (p) { p = Neg(x) },"
         " else_branch = h () => (q) { q = Abs(x) }>", "y = Neg(x)", ""),
        ("y = Neg(r)", "y = Neg(r)", "the rank or a size of r is not known"),
        ("y = Reshape(x, many)", "y = Neg(x)", "Reshape of an axis of a named size"),
    ],
)  # fmt: skip
def test_why_a_proof_is_not_one_for_all_sizes(one: str, other: str, because: str) -> None:
    models = [_checked_at_some(nodes) for nodes in (one, other)]
    found = why_not_for_all(whole_problem(*models), [{"N": 2, "M": 3}])
    assert found.startswith(because)
    assert bool(found) is bool(because)


def _checked_at_some(nodes: str) -> Model:
    rank = ", float[] r" if "(r)" in nodes else ""
    text = f"""<ir_version: 10, opset_import: ["": 21, "vendor": 1]> g
        (float[N,M] x, bool c{rank}) => (y) <float k = {{2}}, int64[2] two = {{2,2}},
        int64[64] many = {{{INTS}}}> {{ {nodes} }}"""
    return Model.from_proto(onnx.parser.parse_model(text))


@pytest.mark.parametrize(
    ("proved", "is_enough"),
    [
        ([{"N": 1, "M": 2}], False),
        ([{"N": 2, "M": 2}], True),
        ([{"N": 1, "M": 1}, {"N": 2, "M": 2}], True),
        ([], False),
    ],
)
def test_some_sizes_that_were_tried_hold_each_pattern(
    proved: list[dict[str, int]], is_enough: bool
) -> None:
    problem = whole_problem(*map(_checked_at_some, ("y = Neg(x)", "y = Neg(x)")))
    assert (why_not_for_all(problem, proved) == "") is is_enough


def test_a_local_function_of_an_operator_s_name_is_not_the_operator() -> None:
    problem = whole_problem(*map(_checked_at_some, ("y = Neg(x)", "y = Neg(x)")))
    one, other = problem.sides
    own = replace(other, functions={("", "Neg", ""): onnx.FunctionProto()})
    for sides in ((one, own), (own, one)):
        found = why_not_for_all(replace(problem, sides=sides), [{"N": 2, "M": 2}])
        assert found == "Neg may depend on sizes"


def test_a_border_has_known_dims_and_integers_or_is_sized() -> None:
    problem = whole_problem(*map(_checked_at_some, ("y = Neg(x)", "y = Neg(x)")))
    with pytest.raises(Dependent, match="the rank or a size of x is not known"):
        all_sizes._of_border(problem, "x", Border(1, (2, None)))
    n = size_of_dim("N")
    found = all_sizes._of_border(problem, "x", Border(7, (2,), elements=(n, 3)))
    assert found.integers is not None
    assert found.integers.tolist() == [n, 3]
    plain = all_sizes._of_border(problem, "x", Border(1, (2, n)))
    assert (plain.integers, plain.shape, plain.is_sized) == (None, (2, n), False)
    known = replace(problem, given=Assumed(Given(), {"x": Border(7, (1,))}))
    assert all_sizes._of_border(known, "x", Border(7, (1,))).is_sized


def test_sizes_are_the_same_where_both_are_known() -> None:
    n = size_of_dim("N")
    one, two = (of_integers(sizes_of((n, number), [2])) for number in (1, 2))
    unknown = Marks((2,), None, True)
    for a, b, is_same in ((one, one, True), (one, two, False), (one, unknown, False),
                          (unknown, one, False), (unknown, unknown, False)):  # fmt: skip
        assert all_sizes._are_same_sizes(a, b) is is_same


def test_a_condition_that_depends_on_a_size_and_sparse_constants() -> None:
    branches = "then_branch = g () => (p) { p = Neg(x) }, else_branch = h () => (q) { q = Abs(x) }"
    problem = whole_problem(*[_checked_at_some(f"y = If(c)<{branches}>") for _ in "ab"])
    side = problem.sides[0]
    (node,) = (each for each in side.nodes if each.op_type == "If")
    values = {"x": Marks((2, 3)), "c": Marks((), None, True)}
    with pytest.raises(Dependent, match="If of a size"):
        all_sizes._chosen(problem, side, node, values)
    values["c"] = Marks(())
    assert [each.shape for each in all_sizes._chosen(problem, side, node, values)] == [(2, 3)]
    sparse = onnx.NodeProto()
    sparse.CopyFrom(node)
    sparse.attribute[0].g.sparse_initializer.add()
    with pytest.raises(Dependent, match="a body has sparse constants"):
        all_sizes._chosen(problem, side, sparse, values)
    with pytest.raises(Dependent, match="a value before Neg is not known"):
        all_sizes._run(problem, side, [onnx.helper.make_node("Neg", ["lost"], ["y"])], {})
