import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, PassContext, UsageError, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "remove_unused_functions"
HEADER = '<ir_version: 10, opset_import: ["" : 21, "local" : 1, "other" : 1]> '
MAIN = HEADER + "g (float[2] x) => (float[2] y) { y = local.f(x) }"


def function(name: str, body: str = "Neg(v)", domain: str = "local") -> str:
    return f' <domain: "{domain}", opset_import: ["" : 21, "local" : 1, "other" : 1]> {name} (v) => (u) {{ u = {body} }}'


def test_unreachable_functions_are_removed() -> None:
    used = MAIN + function("f", "local.g(v)") + function("g")
    unused = function("h", "local.i(v)") + function("i") + function("f", domain="other")
    assert_rewrites(PASS, used + unused, used)
    assert_undone(PASS, used + unused)


def test_functions_that_only_each_other_call_go() -> None:
    text = MAIN + function("f") + function("p", "local.q(v)") + function("q", "local.p(v)")
    model = Model.from_proto(parse(text))
    get_pass(PASS).apply(model, PassContext.isolated())
    assert [function.function_name for function in model.functions] == ["f"]


def test_a_call_from_a_body_counts() -> None:
    assert_unchanged(
        PASS,
        HEADER
        + "g (float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a) { a = local.f(x) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }"
        + function("f"),
    )


def test_an_entry_function_stays_with_all_that_it_calls() -> None:
    text = MAIN + function("f") + function("h", "local.i(v)") + function("i") + function("j")
    for entry in ("h", "local.h"):
        model = Model.from_proto(parse(text))
        get_pass(PASS, entry_functions=[entry]).apply(model, PassContext.isolated())
        assert [function.function_name for function in model.functions] == ["f", "h", "i"]


def test_an_entry_function_that_does_not_exist_is_an_error() -> None:
    model = Model.from_proto(parse(MAIN + function("f")))
    with pytest.raises(UsageError, match=r"no function 'main'; it has local\.f"):
        get_pass(PASS, entry_functions=["main"]).apply(model, PassContext.isolated())


def test_overloads_are_functions_of_their_own() -> None:
    proto = parse(MAIN + function("f") + function("f", "Exp(v)"))
    proto.functions[1].overload = "second"
    proto.graph.node[0].overload = "second"
    made = assert_undone(PASS, proto)
    assert [function.overload for function in made.functions] == ["second"]


def test_a_function_that_training_calls_stays() -> None:
    proto = parse(MAIN + function("f") + function("h"))
    training = proto.training_info.add()
    training.algorithm.CopyFrom(
        onnx.parser.parse_graph(
            "a (bool c, float[2] x) => (float[2] z) { z = If(c) <then_branch = t () => (float[2] a) { a = local.h(x) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }"
        )
    )
    model = Model.from_proto(proto)
    get_pass(PASS).apply(model, PassContext.isolated())
    assert len(model.functions) == 2
