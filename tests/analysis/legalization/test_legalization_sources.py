"""The ways to express a refused node, in the order in which they are tried, and each by itself."""

from typing import Literal

import onnx
import pytest

from tests.registered import passes_forgotten
from tiered import (
    Backend,
    Graph,
    Model,
    Node,
    Numerics,
    Skip,
    UsageError,
    Value,
    legalize_by,
    op,
    register,
    rewrite,
    var,
)  # fmt: skip
from tiered.analysis.legalization import legalization_sources
from tiered.analysis.legalization.legalization_sources import (
    FunctionBody,
    RegisteredRule,
    Source,
    check_maps,
    sources_of,
)
from tiered.analysis.legalization.substitution import Substitution
from tiered.passes.interface.registry import registry
from tiered.targets.reading import backend_of
from tiered.testing import parse

TEXT = "(float[2,3] x, float[3] s) => (float[2,3] y) { y = LayerNormalization(x, s) }"
HARD_SIGMOID = "(float[2] x) => (float[2] y) { y = HardSigmoid(x) }"
RELU = "(float[2] x) => (float[2] y) { y = Relu(x) }"


def target(**substitute: str) -> Backend:
    profile = {
        "api_version": 1, "name": "chip", "operators": {"Max": True, "chip::Own": True},
        "substitute": substitute,
    }  # fmt: skip
    return backend_of(profile, "chip.toml", lambda name: {})


def node_of(text: str, opset: int = 21) -> Node:
    (node,) = Model.from_proto(parse(text, opset=opset)).main.nodes
    return node


def sources(text: str, *maps: str, opset: int = 21, **substitute: str) -> list[Source]:
    return list(sources_of(node_of(text, opset), target(**substitute), maps or ("default",)))


def test_the_table_of_the_target_comes_first_and_the_function_body_last() -> None:
    body = FunctionBody(Numerics.REASSOCIATING)
    expected: list[Source] = [Substitution("chip", "Own"), body]
    assert sources(HARD_SIGMOID) == expected[1:]
    assert sources(HARD_SIGMOID, HardSigmoid="chip::Own") == expected
    assert body.name == "the function body"


def test_a_body_that_only_moves_elements_is_exact() -> None:
    text = "(float[2] x, float16[2] t) => (float16[2] y) { y = CastLike(x, t) }"
    assert sources(text) == [FunctionBody(Numerics.EXACT)]


def test_rules_of_the_maps_that_are_asked_for_are_between() -> None:
    rule = RegisteredRule("lower_layernorm", registry.named("lower_layernorm").info.numerics)
    body = FunctionBody(Numerics.REASSOCIATING)
    expected: list[Source] = [rule, body]
    assert sources(TEXT) == expected
    assert sources(TEXT, "own") == expected[1:]


def test_a_rule_with_an_option_of_its_class_is_tried_with_each() -> None:
    text = "(int64[2] x) => (int64[2] y) { y = Neg(x) }"
    found = [each for each in sources(text) if each.name == "legalize_float_ops"]
    expected: list[Source] = [
        RegisteredRule("legalize_float_ops", Numerics.EXACT, "numerics"),
        RegisteredRule("legalize_float_ops", Numerics.APPROXIMATE, "numerics"),
    ]
    assert found == expected


def test_an_operator_of_an_opset_without_a_body_has_no_source() -> None:
    text = "(float[2] x) => (float[2] y) { y = Sin(x) }"
    assert sources(text) == []


def test_a_rule_is_for_operators_of_its_domain() -> None:
    text = "(int64[2] x) => (int64[2] y) { y = com.microsoft.Neg(x) }"
    assert sources(text) == []


def test_a_map_without_rules_is_an_error() -> None:
    check_maps(())
    check_maps(("default",))
    with pytest.raises(UsageError) as caught:
        check_maps(("default", "defaul"))
    assert str(caught.value) == (
        "no rule is registered in the map 'defaul' of legalizations; there are default"
        "; did you mean 'default'?"
    )
    with passes_forgotten():

        @register
        @rewrite(op.Relu(var.x), opt_level=None, legalizes="own")
        def to_abs(graph: Graph, x: Value) -> Value:
            """Relu(x)  =>  Abs(x)"""
            made: Value = graph.op.Abs(x)
            return made

        check_maps(("own", "default"))
        own = RegisteredRule("to_abs", Numerics.EXACT)
        expected: list[Source] = [own, FunctionBody(Numerics.REASSOCIATING)]
        assert sources(RELU, "own") == expected
        node = node_of(RELU)
        assert own.apply(node) is None
        assert not node.is_live


def test_a_rule_is_applied_with_its_option() -> None:
    with passes_forgotten():

        @register
        @rewrite(op.Relu(var.x), opt_level=None, legalizes="own", numerics_option="numerics")
        def choose(
            graph: Graph, x: Value, *, numerics: Literal["exact", "approximate"] = "exact"
        ) -> Value | Skip:
            """Relu(x)  =>  Abs(x), where that is chosen"""
            if numerics == "exact":
                return Skip("it is {}", numerics)
            made: Value = graph.op.Abs(x)
            return made

        node = node_of(RELU)
        graph = node.owner
        exact, loose = (each for each in sources(RELU, "own") if isinstance(each, RegisteredRule))
        assert str(exact.apply(node)) == "it is exact"
        assert loose.apply(node) is None
        assert [each.op_type for each in graph.nodes] == ["Abs"]


def test_a_rule_is_for_the_root_of_its_pattern() -> None:
    rule = RegisteredRule("lower_layernorm", Numerics.REASSOCIATING)
    assert str(rule.apply(node_of(RELU))) == "the operator is not the root of its pattern"


def test_a_function_body_takes_the_place_of_its_node() -> None:
    node = node_of(RELU)
    model = node.owner.model
    assert FunctionBody(Numerics.EXACT).apply(node) is None
    assert not node.is_live
    assert [each.op_type for each in model.main.nodes_of("Max")] == ["Max"]
    assert not model.functions


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_body_with_mixed_dtypes_is_declined(dtype: str) -> None:
    """The epsilon in ONNX's body of MeanVarianceNormalization is a float, whatever x is."""
    text = f"({dtype}[2,3,4] x) => ({dtype}[2,3,4] y) {{ y = MeanVarianceNormalization(x) }}"
    declined = FunctionBody(Numerics.REASSOCIATING).apply(node_of(text))
    told = str(declined).replace(dtype, "T")
    assert told == "its body is not valid: Add: operand 1 (B) is float, and A is T"


def test_a_body_of_an_opset_with_other_meanings_is_declined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = onnx.helper.make_function(
        "tiered.body",
        "HardSigmoid",
        ["x"],
        ["y"],
        [onnx.helper.make_node("Upsample", ["x", "x"], ["y"])],
        [onnx.helper.make_opsetid("", 9)],
    )
    monkeypatch.setattr(legalization_sources, "function_body", lambda node: body)
    declined = FunctionBody(Numerics.REASSOCIATING).apply(node_of(HARD_SIGMOID))
    assert str(declined) == "its body has Upsample, which is deprecated in Upsample-10"


def test_a_node_is_replaced_by_the_rule_of_a_pass() -> None:
    model = Model.from_proto(parse(TEXT))
    (node,) = model.main.nodes
    assert legalize_by(node, "lower_layernorm") is None
    assert "LayerNormalization" not in [each.op_type for each in model.main.nodes]


def test_what_was_begun_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    @rewrite(op.Relu(var.x), opt_level=None, legalizes=True)
    def begin(graph: Graph, x: Value) -> Value | Skip:
        """Relu(x)  =>  an Abs, and then a reason against it"""
        return Skip("{} is not what is wanted", graph.op.Abs(x).label)

    monkeypatch.setattr(registry, "named", lambda name: begin)
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Relu(x) }"))
    mark = model.mark()
    (node,) = model.main.nodes
    assert "is not what is wanted" in str(legalize_by(node, "begin"))
    assert not model.changed_since(mark)
    assert [each.op_type for each in model.main.nodes] == ["Relu"]


def test_a_pass_that_is_no_legalization_is_an_error() -> None:
    (node,) = Model.from_proto(parse(TEXT)).main.nodes
    with pytest.raises(UsageError, match=r"fuse_gelu is not a legalization; .*lower_layernorm"):
        legalize_by(node, "fuse_gelu")
