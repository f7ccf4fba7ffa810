import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, ModelError, PassContext, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "inline"
HEADER = '<ir_version: 10, opset_import: ["" : 21, "local" : 1]> '
UNARY = HEADER + "g (float[2] x) => (float[2] y) { y = local.f(x) } "


def function(name: str, signature: str, body: str, opset: int = 21, domain: str = "local") -> str:
    return f'<domain: "{domain}", opset_import: ["" : {opset}, "local" : 1]> {name} {signature} {{ {body} }} '


def names(proto: onnx.ModelProto) -> list[str]:
    return [node.name for node in proto.graph.node]


def test_a_call_becomes_the_body() -> None:
    text = UNARY + function("f", "(a) => (b)", "c = Add(a, a) b = Relu(c)")
    assert_rewrites(PASS, text, "g (float[2] x) => (float[2] y) { c = Add(x, x) y = Relu(c) }")
    made = assert_undone(PASS, text)
    assert not made.functions
    assert [entry.domain for entry in made.opset_import] == [""]


def test_names_of_copies_start_with_the_call() -> None:
    made = assert_undone(
        PASS,
        HEADER
        + "g (float[2] x) => (float[2] y) { [layer1] h = local.f(x) y = local.f(h) } "
        + function("f", "(a) => (b)", "[add] c = Add(a, a) b = Relu(c)"),
    )
    assert names(made) == ["layer1/add", "layer1/Relu", "f/add", "f/Relu"]
    assert [node.output[0] for node in made.graph.node] == ["layer1/c", "h", "f/c", "y"]


def test_two_calls_of_a_nameless_call_do_not_collide() -> None:
    made = assert_undone(
        PASS,
        HEADER
        + "g (float[2] x) => (float[2] y) { h = local.f(x) y = local.f(h) } "
        + function("f", "(a) => (b)", "c = Add(a, a) b = Relu(c)"),
    )
    onnx.checker.check_model(made, full_check=True)
    assert len(set(names(made))) == 4


ATTRIBUTES = function(
    "f<alpha, beta: float = 0.25>",
    "(a) => (b, c)",
    "b = LeakyRelu<alpha: float = @alpha>(a) c = LeakyRelu<alpha: float = @beta>(a)",
)


@pytest.mark.parametrize(
    ("given", "alpha", "beta"),
    [
        ("<alpha=0.5, beta=0.75>", "<alpha=0.5>", "<alpha=0.75>"),
        ("<alpha=0.5>", "<alpha=0.5>", "<alpha=0.25>"),
        ("", "", "<alpha=0.25>"),
    ],
)
def test_attributes_are_bound_or_default_or_removed(given: str, alpha: str, beta: str) -> None:
    assert_rewrites(
        PASS,
        HEADER
        + f"g (float[2] x) => (float[2] y, float[2] z) {{ y, z = local.f{given}(x) }} "
        + ATTRIBUTES,
        f"(float[2] x) => (float[2] y, float[2] z) {{ y = LeakyRelu{alpha}(x) z = LeakyRelu{beta}(x) }}",
        # onnxruntime does not know of defaults and demands every attribute.
        runtime="onnxruntime" if "beta" in given else "none",
    )


def test_attributes_are_bound_in_bodies_and_through_nested_calls() -> None:
    text = (
        HEADER
        + "g (float[2] x, bool c) => (float[2] y) { y = local.f<k=0.5>(x, c) } "
        + function(
            "f<k>",
            "(a, c) => (b)",
            "b = If(c) <then_branch = t () => (p) { p = local.h<m: float = @k>(a) }, else_branch = e () => (q) { q = LeakyRelu<alpha: float = @k>(a) }>",
        )
        + function("h<m>", "(v) => (u)", "u = Elu<alpha: float = @m>(v)")
    )
    assert_rewrites(
        PASS,
        text,
        "(float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] p) { p = Elu<alpha=0.5>(x) }, else_branch = e () => (float[2] q) { q = LeakyRelu<alpha=0.5>(x) }> }",
    )
    assert_undone(PASS, text)


def test_optional_inputs_that_the_call_leaves_out_are_absent() -> None:
    clip = function("f", "(a, lo, hi) => (b)", "b = Clip(a, lo, hi)")
    text = (
        HEADER
        + "g (float[2] x, float h) => (float[2] y, float[2] z) { y = local.f(x) z = local.f(x, , h) } "
        + clip
    )
    assert_rewrites(
        PASS,
        text,
        "(float[2] x, float h) => (float[2] y, float[2] z) { y = Clip(x) z = Clip(x, , h) }",
    )


def test_an_input_as_output_and_a_duplicate_output() -> None:
    text = (
        HEADER
        + "g (float[2] x) => (float[2] y, float[2] z, float[2] p, float[2] q) { k = Exp(x) p, q, r = local.f(x) y = Neg(r) l, m, n = local.f(k) z = Add(m, n) } "
        + function("f", "(a) => (a, b, b)", "b = Relu(a)")
    )
    assert_rewrites(
        PASS,
        text,
        "(float[2] x) => (float[2] y, float[2] z, float[2] p, float[2] q) { k = Exp(x) p = Identity(x) q = Relu(x) y = Neg(q) m = Relu(k) z = Add(m, m) }",
        runtime="none",
    )
    assert_undone(PASS, text)


def test_unused_outputs_are_not_inlined() -> None:
    assert_rewrites(
        PASS,
        HEADER
        + "g (float[2] x) => (float[2] y) { y, z = local.f(x) } "
        + function("f", "(a) => (b, c)", "b = Relu(a) t = Exp(a) c = Neg(t)"),
        "(float[2] x) => (float[2] y) { y = Relu(x) }",
    )


def test_calls_in_calls_and_in_bodies() -> None:
    text = (
        HEADER
        + "g (float[2] x, bool c) => (float[2] y) { t = local.outer(x) y = If(c) <then_branch = p () => (float[2] a) { a = local.inner(t) }, else_branch = e () => (float[2] b) { b = Neg(t) }> } "
        + function("outer", "(v) => (u)", "w = local.inner(v) u = local.inner(w)")
        + function("inner", "(v) => (u)", "u = Relu(v)")
    )
    assert_rewrites(
        PASS,
        text,
        "(float[2] x, bool c) => (float[2] y) { s = Relu(x) t = Relu(s) y = If(c) <then_branch = p () => (float[2] a) { a = Relu(t) }, else_branch = e () => (float[2] b) { b = Neg(t) }> }",
    )
    assert_undone(PASS, text)


def test_a_body_of_the_function_captures_operands() -> None:
    text = (
        HEADER
        + "g (float[2] x, int64 n) => (float[2] y) { k = Exp(x) y = local.f(k, n) } "
        + function(
            "f",
            "(a, n) => (b)",
            "go = Constant<value = bool {1}>() s = Neg(a) b = Loop(n, go, a) <body = l (int64 i, bool g, float[2] v) => (bool g2, float[2] v2) { g2 = Identity(g) w = Add(v, s) v2 = Mul(w, a) }>",
        )
    )
    assert_rewrites(
        PASS,
        text,
        "(float[2] x, int64 n) => (float[2] y) { k = Exp(x) go = Constant<value = bool {1}>() s = Neg(k) y = Loop(n, go, k) <body = l (int64 i, bool g, float[2] v) => (bool g2, float[2] v2) { g2 = Identity(g) w = Add(v, s) v2 = Mul(w, k) }> }",
    )
    made = assert_undone(PASS, text)
    assert made.graph.node[-1].attribute[0].g.node[1].name == "f/Add"


def test_overloads_are_told_apart() -> None:
    proto = parse(
        HEADER
        + "g (float[2] x) => (float[2] y, float[2] z) { y = local.f(x) z = local.f(x) } "
        + function("f", "(a) => (b)", "b = Relu(a)")
        + function("f", "(a) => (b)", "b = Neg(a)")
    )
    proto.functions[1].overload = "negative"
    proto.graph.node[1].overload = "negative"
    assert [node.op_type for node in assert_undone(PASS, proto).graph.node] == ["Relu", "Neg"]


def test_a_large_constant_is_there_once() -> None:
    numbers = ",".join(["1"] * 1000)
    text = (
        HEADER
        + "g (float[1000] x, bool c) => (float[1000] y) { s = local.f(x) t = local.f(s) y = If(c) <then_branch = p () => (float[1000] a) { a = local.f(t) }, else_branch = e () => (float[1000] b) { b = Neg(t) }> } "
        + function(
            "f", "(v) => (u)", f"w = Constant<value = float[1000] {{{numbers}}}>() u = Add(v, w)"
        )
    )
    made = assert_undone(PASS, text)
    assert [tensor.name for tensor in made.graph.initializer] == ["f/w"]
    assert [node.op_type for node in made.graph.node] == ["Add", "Add", "If"]


def test_a_domain_that_only_the_function_used_is_imported() -> None:
    header = '<ir_version: 10, opset_import: ["" : 21, "local" : 1]> '
    text = (
        header
        + "g (float[2] x) => (float[2] y) { y = local.f(x) } "
        + '<domain: "local", opset_import: ["" : 21, "com.microsoft" : 1]> f (a) => (b) { b = com.microsoft.QuickGelu(a) }'
    )
    made = assert_undone(PASS, text)
    assert {entry.domain: entry.version for entry in made.opset_import} == {
        "": 21,
        "com.microsoft": 1,
    }


def test_an_opset_at_which_the_operators_are_the_same_will_do() -> None:
    assert_rewrites(
        PASS,
        UNARY + function("f", "(a) => (b)", "c = Add(a, a) b = Relu(c)", opset=14),
        "(float[2] x) => (float[2] y) { c = Add(x, x) y = Relu(c) }",
    )


def test_an_operator_that_is_another_one_at_the_opset_of_the_caller_stays() -> None:
    assert_unchanged(
        PASS,
        UNARY + function("f", "(a) => (b)", "c = ReduceSum<axes=[0]>(a) b = Add(a, c)", opset=11),
        because="ReduceSum differs between opsets 11 and 21",
    )


def test_an_unknown_operator_at_another_version_stays() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "local" : 1, "odd" : 2]> g (float[2] x) => (float[2] y) { y = local.f(x) } <domain: "local", opset_import: ["" : 21, "odd" : 1]> f (a) => (b) { b = odd.Op(a) }',
        because="Op differs between opsets 1 and 2",
    )


@pytest.mark.parametrize("key", ["tiered.keep", "tiered.skip_optimization", "tiered.compiler"])
@pytest.mark.parametrize(
    ("marked", "because"),
    [("function", "the function is marked to be kept"), ("call", "the call is marked to be kept")],
)
def test_marked_functions_stay(key: str, marked: str, because: str) -> None:
    proto = parse(
        UNARY
        + function("f", "(a) => (b)", "b = local.h(a)")
        + function("h", "(a) => (b)", "b = Relu(a)")
    )
    holder = proto.functions[0] if marked == "function" else proto.graph.node[0]
    holder.metadata_props.add(key=key, value="1")
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(PASS).apply(model, ctx)
    assert any(because in remark.reason for remark in ctx.remarks)
    made = model.to_proto()
    assert [node.op_type for node in made.graph.node] == ["f"]
    if marked == "function":
        # What the kept function calls is inlined into it.
        assert [[node.op_type for node in each.node] for each in made.functions] == [["Relu"]]


def test_a_domain_of_ours_stays() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "tiered.cpu" : 1]> g (float[2] x) => (float[2] y) { y = tiered.cpu.f(x) } <domain: "tiered.cpu", opset_import: ["" : 21]> f (a) => (b) { b = Relu(a) }',
        because="the function is marked to be kept",
    )


def test_a_domain_is_inlined_when_it_is_asked_for() -> None:
    assert_rewrites(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "tiered.cpu" : 1]> g (float[2] x) => (float[2] y) { y = tiered.cpu.f(x) } <domain: "tiered.cpu", opset_import: ["" : 21]> f (a) => (b) { b = Relu(a) }',
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Relu(x) }',
        domains=("tiered.cpu",),
    )


def test_a_marked_call_is_inlined_when_its_domain_is_asked_for() -> None:
    proto = parse(UNARY + function("f", "(a) => (b)", "b = Relu(a)"))
    proto.graph.node[0].metadata_props.add(key="tiered.compiler", value="npu")
    made = assert_undone(PASS, proto, domains=("local",))
    assert [node.op_type for node in made.graph.node] == ["Relu"]
    assert made.graph.node[0].metadata_props[0].value == "npu"


def test_only_functions_of_the_chosen_domains_are_inlined() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "one" : 1, "two" : 1]> g (float[2] x) => (float[2] y) { a = one.f(x) y = two.f(a) } '
        + function("f", "(a) => (b)", "b = Relu(a)", domain="one")
        + function("f", "(a) => (b)", "b = one.f(a)", domain="two")
    )
    made = assert_undone(PASS, text, only=("one",))
    assert [(node.domain, node.op_type) for node in made.graph.node] == [("", "Relu"), ("two", "f")]
    assert [[node.op_type for node in each.node] for each in made.functions] == [["Relu"]]
    assert_unchanged(PASS, made, because="the domain of the function is not chosen", only=("one",))


@pytest.mark.parametrize("other", ["f", "p"])
def test_a_model_whose_functions_call_themselves_is_refused(other: str) -> None:
    text = UNARY + function("f", "(a) => (b)", f"c = Relu(a) b = local.{other}(c)")
    if other == "p":
        text += function("p", "(a) => (b)", "b = local.f(a)")
    with pytest.raises(ModelError, match=r"the local function 'local.f' calls itself"):
        Model.from_proto(parse(text))


def test_an_unreachable_recursion_stays() -> None:
    call = function("p", "(a) => (b)", "b = local.p(a)")
    assert_unchanged(PASS, UNARY.replace("local.f", "Relu") + call, because="calls itself")


def test_functions_that_double_again_and_again_stay() -> None:
    text = UNARY.replace("local.f", "local.f0")
    for depth in range(60):
        text += function(
            f"f{depth}", "(a) => (b)", f"c = local.f{depth + 1}(a) b = local.f{depth + 1}(c)"
        )
    text += function("f60", "(a) => (b)", "b = Relu(a)")
    assert_unchanged(
        PASS,
        text,
        because="inlining would make 1,000,000,000,000,000,000 nodes, more than max_nodes=200000",
    )


def test_the_limit_counts_nodes_after_inlining() -> None:
    text = UNARY + function("f", "(a) => (b)", "c = Add(a, a) b = Relu(c)")
    assert_unchanged(PASS, text, because="more than max_nodes=1", max_nodes=1)
    assert_rewrites(
        PASS, text, "(float[2] x) => (float[2] y) { c = Add(x, x) y = Relu(c) }", max_nodes=2
    )


def test_once_leaves_functions_that_are_shared() -> None:
    text = (
        HEADER
        + "g (float[2] x) => (float[2] y) { p = local.twice(x) q = local.twice(p) y = local.single(q) } "
        + function("twice", "(a) => (b)", "b = local.below(a)")
        + function("single", "(a) => (b)", "b = Exp(a)")
        + function("below", "(a) => (b)", "b = Neg(a)")
    )
    after = (
        HEADER
        + "g (float[2] x) => (float[2] y) { p = local.twice(x) q = local.twice(p) y = Exp(q) } "
        + function("twice", "(a) => (b)", "b = Neg(a)")
    )
    assert_rewrites(PASS, text, after, once=True)
    assert_unchanged(
        PASS, after, because="the function is called from more than one place", once=True
    )


def test_a_standard_name_is_ambiguous() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Relu(x) } <domain: "", opset_import: ["" : 21]> Relu (a) => (b) { b = Neg(a) }',
        because="a standard operator has the same name",
    )


def test_an_output_that_would_be_absent_stays() -> None:
    assert_unchanged(
        PASS,
        HEADER
        + "g (float[2] x) => (float[2] y) { y, z = local.f(x) } "
        + function("f", "(a, o) => (b, o)", "b = Relu(a)"),
        because="an output is an absent input of the call",
    )


def test_a_call_with_a_graph_attribute_stays() -> None:
    proto = parse(UNARY + function("f", "(a) => (b)", "b = Relu(a)"))
    body = parse("(float[2] x) => (float[2] y) { y = Relu(x) }").graph
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("body", body))
    check_declined(proto, because="an attribute of the call is a graph")


def check_declined(proto: onnx.ModelProto, because: str) -> None:
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(PASS).apply(model, ctx)
    assert len(model.journal) == 0
    assert any(because in remark.reason for remark in ctx.remarks)


def test_a_default_that_the_caller_may_need_stays() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "tiered.k" : 1, "local" : 1]> g (float[2] x) => (float[2] y) { y = tiered.k.outer(x) } '
        + function("outer<k>", "(v) => (u)", "u = local.f<m: float = @k>(v)", domain="tiered.k")
        + function("f<m: float = 0.5>", "(v) => (u)", "u = Elu<alpha: float = @m>(v)")
    )
    assert_unchanged(PASS, text, because="an optional attribute has a function default")


def test_declared_types_of_unknown_operators_come_along_without_names_of_dims() -> None:
    proto = parse(
        '<ir_version: 10, opset_import: ["" : 21, "local" : 1, "odd" : 1]> g (float[N] x) => (float[M] y) { y = local.f(x) } '
        '<domain: "local", opset_import: ["" : 21, "odd" : 1]> f (a) => (b) { c = odd.Op(a) b = Relu(c) }'
    )
    proto.functions[0].value_info.append(onnx.helper.make_tensor_value_info("c", 1, ["N", 3]))
    made = assert_undone(PASS, proto)
    assert made.graph.value_info[0].name == "f/c"
    dims = made.graph.value_info[0].type.tensor_type.shape.dim
    assert [(dim.dim_value, dim.dim_param) for dim in dims] == [(0, ""), (3, "")]


def test_other_names_of_the_pass() -> None:
    assert get_pass("InlineFunctions").name == PASS
    assert get_pass("inline_once").name == PASS


def test_a_call_in_an_unused_body_is_removed_with_it() -> None:
    text = (
        HEADER
        + "g (float[2] x, bool c) => (float[2] y) { k = If(c) <"
        + "then_branch = t () => (float[2] p) { p = local.outer(x) },"
        + "else_branch = e () => (float[2] q) { q = Abs(x) }>"
        + " h = local.first(x, k) y = Relu(h) } "
        + function("first", "(a, b) => (r)", "r = Exp(a)")
        + function("outer", "(a) => (r)", "r = local.inner(a)")
        + function("inner", "(a) => (r)", "r = Neg(a)")
    )
    made = assert_undone(PASS, text)
    assert [node.op_type for node in made.graph.node] == ["Exp", "Relu"]
