"""A walk over a graph: names, bodies and functions, and operators without a rule."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, INT64, call, free, known
from tiered.certify.domains.bits import RULES, Bits
from tiered.certify.domains.terms import leaf, seed_of
from tiered.certify.evaluation.evaluate import (
    NameScope,
    ProofSetting,
    _counted,
    free as free_tensor,
    free_terms,
    is_known_function,
    name_of,
    opaque,
    types_of_results,
)
from tiered.certify.evaluation.values import CheckedTensor, Unproved
from tiered.graph.core.types import tensor_type

HEADER = '<ir_version: 10, opset_import: ["": 21, "own": 1]>'


def setting(opset: int = 21, **held: Any) -> ProofSetting:
    given = {"trusts_runtime": True, "functions": {}, **held}
    return ProofSetting(Bits(), RULES, {"": opset, "own": 1}, **given)


def ran(text: str, *, given: ProofSetting | None = None, head: str = "float[2] x, float[2] z",
        functions: str = "") -> NameScope:  # fmt: skip
    """Evaluate the nodes of a graph on unknowns."""
    model = onnx.parser.parse_model(f"{HEADER} g ({head}) => (float y) {{ {text} }} {functions}")
    own = {(f.domain, f.name, f.overload): f for f in model.functions}
    scope = NameScope(given or setting(functions=own))
    for info in model.graph.input:
        dtype = info.type.tensor_type.elem_type
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        scope.values[info.name] = free(info.name, *shape, dtype=dtype)
    scope.run(model.graph.node)
    return scope


def found(scope: NameScope, name: str = "y") -> CheckedTensor:
    made = scope.find(name)
    assert made is not None
    return made


def are_same(one: CheckedTensor, other: CheckedTensor) -> bool:
    return one.shape == other.shape and bool((one.terms == other.terms).all())


# --- names ----------------------------------------------------------------------------------------


def test_each_value_has_a_name() -> None:
    scope = ran("a = Add(x, z)  y = Neg(a)")
    assert are_same(found(scope), found(ran("b = Add(z, x)  y = Neg(b)")))
    with pytest.raises(Unproved, match="no value 'nowhere' is known"):
        scope.find("nowhere")


def test_inner_names_hide_outer_ones() -> None:
    outer = NameScope(setting())
    outer.values.update(x=free("x", 2), z=free("z", 2))
    inner = NameScope(outer.setting, outer)
    inner.values["x"] = free("other", 2)
    assert inner.find("x") is inner.values["x"]
    assert inner.find("z") is outer.values["z"]
    assert inner.axioms is outer.axioms


def test_equal_nodes_on_equal_operands_are_evaluated_once() -> None:
    given = setting()
    first = ran("y = Exp(x)", given=given)
    scope = NameScope(given)
    scope.values["x"] = first.values["x"]
    node = onnx.helper.make_node("Exp", ["x"], ["other"])
    scope.run([node])
    assert scope.find("other") is first.find("y")
    scope.run([onnx.helper.make_node("Sin", ["x"], ["sin"])])
    assert not are_same(found(scope, "sin"), found(first))


def test_small_equal_constants_are_one_object() -> None:
    given = setting()
    one, two = known([1, 2]), known([1, 2])
    assert given.shared(one) is one
    assert given.shared(two) is one
    assert given.shared(known([2, 1])) is not one
    large = known(np.zeros(1025, np.int64))
    assert given.shared(large) is large
    assert given.shared(known(np.zeros(1025, np.int64))) is not large
    x, again = free("x", 2), free("x", 2)
    assert given.shared(x) is x
    assert given.shared(again) is again


def test_axioms_are_kept_with_the_node_that_used_them() -> None:
    given = setting()
    scope = ran("y = Add(x, z)", given=given)
    assert found(scope).terms is not None
    assert {name for each in scope.axioms.values() for name in each} == {"add-commutes"}


# --- dims that depend on data ---------------------------------------------------------------------


def test_a_size_that_depends_on_data_is_one_for_each_key() -> None:
    scope = NameScope(setting())
    with pytest.raises(Unproved, match="a shape depends on data"):
        scope.size(("key",))
    sizes = {"data 0": 4, "data 1": 5}
    tried = NameScope(setting(sizes=sizes))
    assert [tried.size(("a",)), tried.size(("b",)), tried.size(("a",))] == [4, 5, 4]


def test_what_was_asked_is_noted() -> None:
    given = setting(trusts_runtime=False)
    scope = NameScope(given)
    assert given.asked == set()
    assert scope.trusts_runtime is False
    assert given.asked == {"trusts_runtime"}
    assert NameScope(setting(unrolls=True)).unrolls
    assert not scope.unrolls


# --- bodies and functions -------------------------------------------------------------------------

FUNCTION = """<domain: "own", opset_import: ["": 21, "own": 1]>
    F <alpha, beta: float = 0.5> (p, q) => (r) {
        s = Elu<alpha: float = @alpha>(p)  r = Add(s, q) }"""


def test_a_call_computes_what_its_nodes_compute() -> None:
    scope = ran("y = own.F<alpha = 2.0>(x, z)", functions=FUNCTION)
    plain = ran("s = Elu<alpha = 2.0>(x)  y = Add(s, z)")
    assert are_same(found(scope), found(plain))
    other = ran("y = own.F<alpha = 3.0>(x, z)", functions=FUNCTION)
    assert not are_same(found(scope), found(other))
    default = ran("y = own.F(x, z)", functions=FUNCTION)
    assert are_same(found(default), found(ran("s = Elu(x)  y = Add(s, z)")))


def test_a_default_of_a_function_is_used_where_the_call_has_none() -> None:
    function = FUNCTION.replace("@alpha", "@beta")
    made = ran("y = own.F(x, z)", functions=function)
    assert are_same(found(made), found(ran("s = Elu<alpha = 0.5>(x)  y = Add(s, z)")))
    given = ran("y = own.F<beta = 0.25>(x, z)", functions=function)
    assert are_same(found(given), found(ran("s = Elu<alpha = 0.25>(x)  y = Add(s, z)")))


def test_attributes_reach_the_bodies_of_a_function() -> None:
    function = """<domain: "own", opset_import: ["": 21, "own": 1]>
        F <alpha> (c, p) => (r) { r = If(c)<
            then_branch = t () => (float[2] u) { u = Elu<alpha: float = @alpha>(p) },
            else_branch = e () => (float[2] v) { v = Identity(p) }> }"""
    head = "bool c, float[2] x"
    made = ran("y = own.F<alpha = 2.0>(c, x)", functions=function, head=head)
    plain = ran(
        """y = If(c)<then_branch = t () => (float[2] u) { u = Elu<alpha = 2.0>(x) },
                     else_branch = e () => (float[2] v) { v = Identity(x) }>""",
        head=head,
    )
    assert are_same(found(made), found(plain))


def test_functions_without_an_end_are_too_deep() -> None:
    function = """<domain: "own", opset_import: ["": 21, "own": 1]>
        F (p, q) => (r) { r = own.F(p, q) }"""
    with pytest.raises(Unproved, match="bodies or functions nested too deep"):
        ran("y = own.F(x, z)", functions=function)


def body(text: str) -> onnx.GraphProto:
    return onnx.parser.parse_graph(text)


def test_a_body_reads_its_inputs_constants_and_what_is_around_it() -> None:
    scope = ran("y = Neg(x)")
    made = scope.body(
        body("b (float[2] p) => (float[2] q, float[2] x) <float[2] k = {1,2}> {"
             " s = Add(p, k)  q = Mul(s, z) }"),
        [free("p", 2)],
    )  # fmt: skip
    assert len(made) == 2
    assert made[1] is scope.find("x")
    assert len(np.unique(made[0].terms)) == 2
    with pytest.raises(Unproved, match="no value 'q' is known"):
        scope.find("q")


def test_bodies_that_have_no_terms() -> None:
    scope = ran("y = Neg(x)")
    sparse = body("b () => (float[2] q) { q = Neg(x) }")
    sparse.sparse_initializer.add()
    with pytest.raises(Unproved, match="a body has sparse constants"):
        scope.body(sparse, [])
    scope.values["none"] = None
    with pytest.raises(Unproved, match="a body has an output that is no tensor"):
        scope.body(body("b () => (float[2] none) { q = Neg(x) }"), [])


# --- operators without a rule ---------------------------------------------------------------------

X = free("x", 4)


def one(made: Any) -> CheckedTensor:
    (result,) = made
    assert result is not None
    return result  # type: ignore[no-any-return]  # a tensor


def test_an_operator_without_a_rule_is_a_function_of_all_that_it_reads() -> None:
    made = one(opaque(call("LpNormalization", X)))
    assert (made.dtype, made.shape) == (FLOAT, (4,))
    assert made.key == one(opaque(call("LpNormalization", X))).key
    nodes = [call("LpNormalization", X, p=1), call("Hardmax", X),
             call("LpNormalization", free("z", 4))]  # fmt: skip
    others = [one(opaque(each)).key for each in nodes]
    assert len({made.key, *others}) == 4
    x = free("m", 2, 2)
    assert one(opaque(call("Hardmax", x, opset=11))).key != one(opaque(call("Hardmax", x))).key


def test_a_negative_axis_is_counted_from_the_front() -> None:
    x = free("x", 2, 3)
    for op in ("Hardmax", "LpNormalization"):
        assert one(opaque(call(op, x, axis=-1))).key == one(opaque(call(op, x, axis=1))).key
        assert one(opaque(call(op, x, axis=-2))).key != one(opaque(call(op, x, axis=1))).key


def test_zeros_that_may_be_absent_are_absent() -> None:
    x, w, r = free("x", 5, 1, 3), free("w", 1, 4, 3), free("r", 1, 4, 4)
    zero = known(np.zeros((1, 8)), np.float32)
    plain = call("RNN", x, w, r, hidden_size=4)
    with_bias = call("RNN", x, w, r, zero, hidden_size=4)
    other = call("RNN", x, w, r, known(-np.zeros((1, 8)), np.float32), hidden_size=4)
    lengths = call("RNN", x, w, r, None, known([0], np.int32), hidden_size=4)
    ones = call("RNN", x, w, r, known(np.ones((1, 8)), np.float32), hidden_size=4)
    unknown = call("RNN", x, w, r, free("b", 1, 8), hidden_size=4)
    calls = (plain, with_bias, other, lengths, ones, unknown)
    keys = [one(opaque(each)).key for each in calls]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 5


def test_known_operands_are_computed_by_the_runtime() -> None:
    made = one(opaque(call("Hardmax", known([1, 5, 2], np.float32))))
    assert made.known is not None
    assert made.known.tolist() == [0, 1, 0]
    numbers, twice = known([1, 2], np.float32), known([2], np.float32)
    resized = one(opaque(call("Resize", numbers, None, twice, mode="nearest")))
    assert resized.known is not None
    assert resized.known.tolist() == [1, 1, 2, 2]


def test_a_result_that_is_absent_has_no_name() -> None:
    scope = NameScope(setting(opset=9))
    scope.values.update({name: free(name, 2) for name in "sbmv"}, x=free("x", 1, 2))
    node = onnx.helper.make_node("BatchNormalization", ["x", *"sbmv"], ["y", "", ""])
    scope.run([node])
    assert found(scope).shape == (1, 2)
    with pytest.raises(Unproved, match="no value '' is known"):
        scope.find("")


def test_two_random_operators_are_never_equal() -> None:
    first, second = (
        one(opaque(call("RandomUniformLike", X, outputs=(name,)))) for name in ("a", "b")
    )
    assert first.key != second.key
    assert first.key == one(opaque(call("RandomUniformLike", X, outputs=("a",)))).key
    scope = ran("a = RandomUniformLike(x)  b = RandomUniformLike(x)  y = Sub(a, b)")
    assert not are_same(found(scope, "a"), found(scope, "b"))


@pytest.mark.parametrize(
    ("op", "domain", "is_known"),
    [
        ("Add", "", True), ("RandomNormal", "", False),
        ("Bernoulli", "", False), ("Multinomial", "", False), ("Nothing", "", False),
        ("Add", "own", False),
    ],
)  # fmt: skip
def test_which_operators_give_equal_results_for_equal_operands(
    op: str, domain: str, is_known: bool
) -> None:
    assert is_known_function(op, domain, 21) is is_known


@pytest.mark.parametrize("op", ["If", "Loop", "Scan", "SequenceMap"])
def test_bodies_are_no_functions_of_operands(op: str) -> None:
    with pytest.raises(Unproved, match=f"{op} has no rule"):
        opaque(call(op, X))


def test_types_of_results_are_inferred_from_sizes_and_numbers() -> None:
    pool = call("MaxPool", free("x", 1, 1, 4), outputs=("y", ""), kernel_shape=[2])
    assert types_of_results(pool, ("key",)) == [tensor_type(FLOAT, (1, 1, 3)), None]
    both = types_of_results(call("TopK", X, known([3]), outputs=("v", "i")), ("key",))
    assert both == [tensor_type(FLOAT, (3,)), tensor_type(INT64, (3,))]
    with pytest.raises(Unproved, match="a shape depends on data"):
        types_of_results(call("Unique", X), ("key",))
    for op, label in (("Nothing", "Nothing"), ("own::Nothing", "own::Nothing")):
        with pytest.raises(Unproved, match=f"no rule for {label}, and no shape of its results"):
            types_of_results(call(op, X), ("key",))
    with pytest.raises(Unproved, match="onnx infers no shape of MatMul"):
        types_of_results(call("MatMul", free("a", 2, 3), free("b", 4, 5)), ("key",))


def test_rules_that_do_not_fit_are_not_proved() -> None:
    scope = NameScope(setting())
    scope.values.update(x=free("x", 2), k=known([1, 2]))
    with pytest.raises(Unproved, match="Tile does not fit its operands: "):
        scope.run([onnx.helper.make_node("Tile", ["x", "k"], ["y"])])


def test_unknowns_are_those_of_their_key() -> None:
    kind = tensor_type(FLOAT, (2, 3))
    made = free_tensor(Bits(), kind, ("a", 1))
    assert made.key == (FLOAT, (2, 3), ("a", 1))
    assert (made.terms == free_terms(("a", 1), (2, 3))).all()
    assert (made.terms == leaf(seed_of("free", ("a", 1)), (2, 3))).all()
    given = setting()
    assert given.free(kind, ("a",)) is given.free(kind, ("a",))
    assert given.free(kind, ("a",)) is not given.free(kind, ("b",))
    assert given.free(tensor_type(INT64, (2, 3)), ("a",)) is not given.free(kind, ("a",))


# --- limits ---------------------------------------------------------------------------------------


def test_bodies_and_calls_are_nested_up_to_a_depth() -> None:
    for depth, calls, is_deep in ((64, 0, False), (0, 64, False), (32, 32, False), (33, 32, True)):
        if is_deep:
            with pytest.raises(Unproved, match="nested too deep"):
                NameScope(setting(), None, depth, calls)
            continue
        scope = NameScope(setting(), None, depth, calls)
        assert (scope.depth, scope.calls) == (depth, calls)
        with pytest.raises(Unproved, match="nested too deep" if depth + calls == 64 else ""):
            scope.body(body("b () => (float[2] q) { q = Neg(p) }"), [])
    last = NameScope(setting(), None, 63, 0)
    assert last.body(body("b (float[2] p) => (float[2] q) { q = Neg(p) }"), [X])[0].shape == (4,)
    function = '<domain: "own", opset_import: ["": 21]> F (p) => (q) { q = Neg(p) }'
    (made,) = onnx.parser.parse_model(f"{HEADER} g () => () {{}} {function}").functions
    last = NameScope(setting(functions={("own", "F", ""): made}), None, 0, 63)
    last.values["x"] = X
    last.run([onnx.helper.make_node("F", ["x"], ["y"], domain="own")])
    assert found(last).shape == (4,)
    assert NameScope(setting()).depth == NameScope(setting()).calls == 0


def test_what_a_rule_knows_of_a_tensor_keeps_it_apart() -> None:
    given = setting()
    one, two = known([1, 2]), known([1, 2])
    two.form = "a form"
    assert given.shared(one) is one
    assert given.shared(two) is two
    exact = known([1, 2])
    exact.exact = FLOAT
    assert given.shared(exact) is exact
    border = known(np.zeros(1024, np.int64))
    assert given.shared(border) is border
    assert given.shared(known(np.zeros(1024, np.int64))) is border


def test_an_operator_of_another_domain_with_the_name_of_a_body_has_none() -> None:
    for op in ("If", "Loop"):
        with pytest.raises(Unproved, match=f"no rule for own::{op}, and no shape of its results"):
            ran(f"y = own.{op}(x)")
        with pytest.raises(Unproved, match=f"no rule for own::{op}, and no shape"):
            opaque(call(f"own::{op}", X))


def test_operands_of_a_function_may_be_absent() -> None:
    function = """<domain: "own", opset_import: ["": 21]>
        F (p, lost, q) => (r) { s = Clip(p, lost, q)  r = Neg(s) }"""
    for arguments, plain in (("x", "Clip(x)"), ("x, , k", "Clip(x, , k)")):
        text = "k = Constant<value_float = 1.0>()  {}"
        made = ran(text.format(f"y = own.F({arguments})"), functions=function)
        other = ran(text.format(f"s = {plain}  y = Neg(s)"))
        assert are_same(found(made), found(other)), arguments


def test_an_opset_of_a_function_counts_in_it() -> None:
    function = """<domain: "own", opset_import: ["": 12]>
        F (p) => (r) { r = Softmax(p) }"""
    head = "float[2,3,4] x"
    made = ran("y = own.F(x)", functions=function, head=head)
    old = ran("y = Softmax(x)", given=setting(opset=12), head=head)
    assert are_same(found(made), found(old))
    assert not are_same(found(made), found(ran("y = Softmax(x)", head=head)))


def test_a_parameter_without_a_value_is_the_default_of_the_operator() -> None:
    made = ran("y = own.F(x, z)", functions=FUNCTION)
    assert are_same(found(made), found(ran("s = Elu(x)  y = Add(s, z)")))
    keeping = FUNCTION.replace("@alpha>", "@alpha, beta = 1>").replace("Elu", "Selu")
    keeping = keeping.replace("beta = 1", "gamma = 3.0")
    one = ran("y = own.F<alpha = 2.0>(x, z)", functions=keeping)
    other = ran("s = Selu<alpha = 2.0, gamma = 3.0>(x)  y = Add(s, z)")
    assert are_same(found(one), found(other))


def test_axes_are_counted_for_operators_that_have_them() -> None:
    x = free("x", 2, 3)
    rows: list[tuple[str, tuple[dict[str, Any], ...], bool]] = [
        ("Hardmax", ({"axis": 1}, {"axis": -1}), True),
        ("Hardmax", ({"axis": 0}, {"axis": -2}), True),
        ("Hardmax", ({}, {"axis": -1}), False),  # another text, though the same
        ("LpNormalization", ({"axis": -1, "p": 1}, {"axis": 1, "p": 1}), True),
    ]
    for op, attributes, is_same in rows:
        keys = [one(opaque(call(op, x, **each))).key for each in attributes]
        assert (keys[0] == keys[1]) == is_same, (op, attributes)


def test_outputs_that_are_there_count_for_batch_normalization_alone() -> None:
    x, three = free("x", 1, 3, 2, 2), [free(name, 3) for name in "sbmv"]
    keys = []
    for names in (("y",), ("y", "", "", "", "")):
        norm = call("BatchNormalization", x, *three, outputs=names, opset=9)
        made = opaque(norm)[0]
        assert made is not None
        keys.append(made.key)
    assert keys[0] != keys[1]
    image = free("image", 1, 1, 4)
    pools = [
        opaque(call("MaxPool", image, outputs=names, kernel_shape=[2]))
        for names in (("y", "i"), ("y", ""))
    ]
    first, second = (each[0] for each in pools)
    assert first is not None
    assert second is not None
    assert first.key == second.key
    assert pools[1][1] is None
    both = [each.key for each in pools[0] if each is not None]
    assert len({*both}) == 2


def test_numbers_of_small_operands_decide_shapes() -> None:
    for size, is_known in ((1024, True), (1025, False)):
        shape = known(np.ones(size, np.int64))
        made = call("Expand", free("x", 1), shape)
        if is_known:
            (kind,) = types_of_results(made, ("key",))
            assert kind is not None
            assert kind.shape is not None
            assert len(kind.shape) == size
        else:
            with pytest.raises(Unproved):
                types_of_results(made, ("key",))


def test_a_draw_of_known_operands_is_not_known() -> None:
    x = known([1, 2], np.float32)
    first = one(opaque(call("RandomUniformLike", x)))
    assert first.known is None
    assert one(opaque(call("RandomNormal", shape=[2]))).shape == (2,)


def test_an_absent_result_has_no_tensor() -> None:
    scope = ran("y, = MaxPool<kernel_shape = [1]>(x)", head="float[1,1,4] x")
    assert found(scope).shape == (1, 1, 4)


def test_dims_that_depend_on_data_are_those_of_a_name_or_a_place() -> None:
    assert [name_of(dim, 1, 2) for dim in ("N", None)] == ["N", (1, 2)]


def test_other_axes_are_as_they_are_written() -> None:
    for op, axis, counted in (("Softmax", -1, -1), ("Hardmax", -1, 1), ("Hardmax", 0, 0)):
        (attribute,) = _counted(call(op, free("x", 2, 3), axis=axis)).attribute
        assert attribute.i == counted
