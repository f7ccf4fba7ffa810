"""legalize: what a target refuses becomes what it takes, or stays."""

import numpy as np
import onnx
import pytest

from tiered import (
    Graph,
    Model,
    PassContext,
    Skip,
    UsageError,
    Value,
    get_pass,
    op,
    optimize,
    register,
    rewrite,
    substitute,
    var,
)
from tiered.passes.interface.registry import registry
from tiered.runtime import make_inputs, run
from tiered.support.errors import BackendError
from tiered.support.numerics import Numerics
from tiered.targets import Backend
from tiered.targets.reading import backend_of
from tiered.testing import assert_rewrites, assert_unchanged, parse


def target(operators: dict[str, object], **others: object) -> Backend:
    table = {"api_version": 1, "name": "chip", "operators": operators, **others}
    return backend_of(table, "chip.toml", lambda name: {})


COMPARES = target({"Greater, Less, Equal, Or": True})
SOFTSIGN = "(float[3] x) => (float[3] y) { y = Softsign(x) }"
SWISH = "(float[3] x) => (float[3] y) { y = HardSwish(x) }"


def test_an_exact_body_replaces_the_operator() -> None:
    assert_rewrites(
        "legalize",
        "(float[3] a, float[3] b) => (bool[3] y) { y = GreaterOrEqual(a, b) }",
        "(float[3] a, float[3] b) => (bool[3] y) { g = Greater(a, b) e = Equal(a, b) y = Or(g, e) }",
        backend=COMPARES,
    )


def test_a_body_that_rounds_needs_the_class() -> None:
    backend = target({"Abs, Add, Div": True})
    assert_unchanged(
        "legalize",
        SOFTSIGN,
        because="the target has no such operator; the function body is reassociating, not exact",
        backend=backend,
    )
    assert_rewrites(
        "legalize",
        SOFTSIGN,
        "(float[3] x) => (float[3] y) <float one = {1}> { a = Abs(x) s = Add(one, a) y = Div(x, s) }",
        backend=backend,
        numerics="reassociating",
    )


def test_the_class_sets_the_level() -> None:
    made = get_pass("legalize").with_options(numerics="approximate")
    assert (made.info.numerics, made.info.opt_level) == (Numerics.APPROXIMATE, 4)
    assert made.with_options(numerics="exact").info.numerics is Numerics.EXACT
    backend = target({"Abs, Add, Div": True})
    rounding = get_pass("legalize").with_options(numerics="reassociating")
    for level, kept in ((2, 1), (3, 0)):
        with PassContext.isolated(opt_level=level, backend=backend):
            model = rounding(Model.from_proto(parse(SOFTSIGN)))
        assert len(model.main.nodes_of("Softsign")) == kept


def test_new_nodes_are_legalized_in_turn() -> None:
    assert_rewrites(
        "legalize",
        SWISH,
        "(float[3] x) => (float[3] y) <float a = {0.16666667}, float b = {0.5}, float z = {0}, "
        "float o = {1}> { p = Mul(x, a) s = Add(p, b) l = Min(s, o) h = Max(l, z) y = Mul(x, h) }",
        backend=target({"Mul, Add, Max, Min": True}),
        numerics="reassociating",
    )


def test_a_body_with_a_refused_node_is_rolled_back() -> None:
    assert_unchanged(
        "legalize",
        "(float[3] a, float[3] b) => (bool[3] y) { y = GreaterOrEqual(a, b) }",
        because="the target has no such operator; the function body: Or in it is refused: "
        "the target has no such operator",
        backend=target({"Greater, Equal": True}),
    )


def test_an_operator_without_a_body_stays() -> None:
    assert_unchanged(
        "legalize",
        "(float[3] x) => (float[3] y) { y = Sin(x) }",
        because="the target has no such operator; there is no legalization",
        backend=COMPARES,
    )


def test_a_rule_for_the_nodes_around_an_operator_is_named() -> None:
    assert_unchanged(
        "legalize",
        "(float[3] x) => (float[3] y) { y = Sqrt(x) }",
        because="replace_div_by_sqrt_with_pow: the operator is not the root of its pattern",
        backend=COMPARES,
        numerics="reassociating",
    )


def test_without_a_backend_nothing_happens() -> None:
    assert_unchanged("legalize", SWISH)


def test_shapes_of_a_body_are_constants_where_they_are_known() -> None:
    backend = target(
        {
            "Add, Cast, Concat, Div, Flatten, Mul, ReduceMean, Reciprocal, Sqrt, Sub": True,
            "Reshape": {"constant": ["shape"]},
        }
    )
    source = parse(
        "(float[2,4] x) => (float[2,4] y) <float[4] s = {1,2,3,4}> { y = LayerNormalization(x, s) }"
    )
    model = Model.from_proto(source)
    legalize = get_pass("legalize").with_options(numerics="reassociating", maps=())
    legalize.apply(model, PassContext.isolated(opt_level=3, backend=backend))
    assert backend.coverage(model).is_met, [str(gap) for gap in backend.coverage(model).gaps]
    inputs = {"x": onnx.numpy_helper.to_array(onnx.helper.make_tensor("x", 1, (2, 4), range(8)))}
    before, after = run(source, inputs), run(model.to_proto(), inputs)
    assert abs(before["y"] - after["y"]).max() < 1e-6


# --- substitutes ------------------------------------------------------------------------------------

SUBSTITUTES = target(
    {"Where": False, "chip::WhereV2": True},
    substitute={"Where": {"with": "chip::WhereV2", "types": {"T": ["float"]}}},
)
WHERE = "(bool[2] c, float[2] a, float[2] b) => (float[2] y) { y = Where(c, a, b) }"


def test_a_substitute_is_a_call_that_every_runtime_runs() -> None:
    model = Model.from_proto(parse(WHERE))
    legalize = get_pass("legalize")
    legalize.apply(model, PassContext.isolated(backend=SUBSTITUTES))
    assert [node.callee[:2] for node in model.main.nodes] == [("chip", "WhereV2")]
    proto = model.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    inputs = {name: onnx.numpy_helper.to_array(each) for name, each in _inputs().items()}
    assert run(proto, inputs)["y"].tolist() == run(parse(WHERE), inputs)["y"].tolist()
    again = Model.from_proto(proto)
    legalize.apply(again, PassContext.isolated(backend=SUBSTITUTES))
    assert again.to_proto().SerializeToString() == proto.SerializeToString()


def _inputs() -> dict[str, onnx.TensorProto]:
    make = onnx.helper.make_tensor
    return {"c": make("c", 9, (2,), [1, 0]), "a": make("a", 1, (2,), [1, 2]),
            "b": make("b", 1, (2,), [3, 4])}  # fmt: skip


def test_a_substitute_has_conditions() -> None:
    assert_unchanged(
        "legalize",
        WHERE.replace("float", "int32"),
        because="replace_where_with_mul_add is reassociating",
        backend=SUBSTITUTES,
    )


def test_an_old_file_has_no_functions() -> None:
    assert_unchanged(
        "legalize",
        f'<ir_version: 7, opset_import: ["" : 13]> g {WHERE}',
        because="the target has no such operator; chip::WhereV2: before IR 8 there are no local "
        "functions",
        backend=SUBSTITUTES,
    )


def test_a_substitute_is_an_operator_of_the_target() -> None:
    with pytest.raises(BackendError, match=r"no operator chip::W in \[operators\]"):
        target({"Where": False}, substitute={"Where": "chip::W"})


def test_a_functions_own_body_is_no_call_of_it() -> None:
    model = Model.from_proto(parse(WHERE))
    (node,) = model.main.nodes
    made = substitute(node, "chip", "WhereV2")
    assert not isinstance(made, Skip)
    (function,) = model.functions
    (inner,) = function.nodes
    assert str(substitute(inner, "chip", "WhereV2")) == "it is the body of chip::WhereV2"


# --- registered legalizations -----------------------------------------------------------------------


@rewrite(op.Mish(var.x), opt_level=None, legalizes=True)
def mish_of_chip(graph: Graph, x: Value) -> Value:
    """Mish(x)  =>  x * Tanh(Softplus(x))"""
    return graph.op.Mul(x, graph.op.Tanh(graph.op.Softplus(x)))


def test_a_registered_rule_comes_before_the_body() -> None:
    register(mish_of_chip)
    try:
        assert_rewrites(
            "legalize",
            "(float[3] x) => (float[3] y) { y = Mish(x) }",
            "(float[3] x) => (float[3] y) { s = Softplus(x) t = Tanh(s) y = Mul(x, t) }",
            backend=target({"Mul, Tanh, Softplus": True}),
        )
    finally:
        registry.unregister("mish_of_chip")


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        (
            "(float[1,4,6] x, float[4,2,3] w) => (float[1,4,4] y) { y = Conv<group=2>(x, w) }",
            "Gather, MatMul, Reshape",
        ),
        (
            "(float[1,4,6] x, float[4,4,1] w) => (float[1,4,6] y) { y = Conv(x, w) }",
            "MatMul, Reshape",
        ),
        (
            "(float[1,4,6] x) => (float[1,4,5] y) { y = MaxPool<kernel_shape=[2]>(x) }",
            "Gather, ReduceMax, Reshape",
        ),
        ("(float[1,4,6] x) => (float[1,4,1] y) { y = GlobalAveragePool(x) }", "ReduceMean"),
        ("(float[1,4,6] x) => (float[1,4,1] y) { y = GlobalAveragePool(x) }", "AveragePool"),
        (
            "(float[2,4] x, float[4] s) => (float[2,4] y) { y = LayerNormalization(x, s) }",
            "Add, Div, Mul, ReduceMean, Sqrt, Sub",
        ),
        (
            "(float[2,4,3] x, float[4] s) => (float[2,4,3] y) "
            "{ y = InstanceNormalization(x, s, s) }",
            "Add, Div, Mul, ReduceMean, Reshape, Sqrt, Sub",
        ),
        (
            "(float[2,2,3] x) => (float[2,2,3] y) <float[2] v = {1,2}> "
            "{ y = BatchNormalization(x, v, v, v, v) }",
            "Add, Mul",
        ),
        ("(float[2] x) => (float[2] y) { y = Sigmoid(x) }", "Add, Div, Exp, Neg"),
        (
            "(float[2,3] a, float[3,2] b, float[2] c) => (float[2,2] y) { y = Gemm(a, b, c) }",
            "Add, MatMul",
        ),
        (
            "(float[8] x) => (uint8[8] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear(x) }",
            "Add, Cast, Clip, Div, Greater, Identity, Max, Min, "
            "ReduceMax, ReduceMin, Round, Sub, Where",
        ),
    ],
)
def test_what_comes_of_operators(text: str, operators: str) -> None:
    backend = target({operators: True})
    source = parse(text)
    model = Model.from_proto(source)
    legalize = get_pass("legalize").with_options(numerics="reassociating")
    legalize.apply(model, PassContext.isolated(opt_level=3, backend=backend))
    assert backend.coverage(model).is_met, [str(gap) for gap in backend.coverage(model).gaps]
    feeds = make_inputs(source, seed=1).feeds
    before, after = run(source, feeds), run(model.to_proto(), feeds)
    for name, expected in before.items():
        np.testing.assert_allclose(after[name], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dims", ["2,3,4,5", "2,3,4,5,6"])
def test_issue_40_affine_grid_of_constant_size_is_legal(dims: str) -> None:
    rank = dims.count(",") - 1
    out = ",".join([*dims.split(",")[:1], *dims.split(",")[2:], str(rank)])
    model = parse(
        f"(float[2,{rank},{rank + 1}] t) => (float[{out}] y) <int64[{rank + 2}] s = {{{dims}}}>"
        " { y = AffineGrid(t, s) }"
    )
    made = optimize(model, opt_level=3, backend="tensorrt")
    onnx.checker.check_model(made, full_check=True)
    assert not {"AffineGrid", "If"} & {node.op_type for node in made.graph.node}
    feeds = make_inputs(model).feeds
    np.testing.assert_allclose(run(made, feeds)["y"], run(model, feeds)["y"], atol=1e-6)
    assert len(optimize(made, opt_level=3, backend="tensorrt").graph.node) == len(made.graph.node)


@pytest.mark.parametrize("backend", ["openvino_npu", "qnn_htp", "webnn"])
def test_issue_40_nested_branches_are_legal_in_one_run(backend: str) -> None:
    model = parse(
        "(float[2] x, bool c, bool d) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a)"
        " { p = Neg(x) a = If(d) <then_branch = u () => (float[2] e) { e = Abs(p) },"
        " else_branch = v () => (float[2] f) { f = Relu(p) }> },"
        " else_branch = w () => (float[2] b) { b = Exp(x) }> }"
    )
    made = optimize(model, opt_level=3, backend=backend)
    assert "If" not in {node.op_type for node in made.graph.node}
    assert optimize(made, opt_level=3, backend=backend) == made


def test_issue_40_a_constant_that_a_body_returns_has_a_type() -> None:
    text = (
        "(bool c) => (int64[?] y) { y = If(c) <then_branch = t () => (a) <int64[1] a = {1}> { },"
        " else_branch = e () => (b) <int64[1] b = {2}> { }> }"
    )
    onnx.checker.check_model(Model.from_proto(parse(text)).to_proto(), full_check=True)


def test_operators_that_are_named_stay() -> None:
    assert_unchanged(
        "legalize",
        "(float[3] a, float[3] b) => (bool[3] y) { y = GreaterOrEqual(a, b) }",
        because="the target has no such operator; it is to stay as it is",
        backend=COMPARES,
        leave=["GreaterOrEqual"],
    )


@pytest.mark.parametrize("backend", [None, COMPARES])
def test_an_operator_to_leave_that_does_not_exist_is_an_error(backend: Backend | None) -> None:
    model = parse("(float[2] x) => (float[2] y) { y = Exp(x) }")
    with pytest.raises(UsageError, match="there is no operator 'Sofmax'; did you mean 'Softmax'"):
        optimize(model, passes=[get_pass("legalize", leave=["Sofmax"])], backend=backend)
    known = get_pass("legalize", leave=["Softmax", "com.microsoft::Gelu"])
    optimize(model, passes=[known], backend=backend)
