"""Calls with constant attributes or operands get a function that has them inside."""

import numpy as np
import onnx
import pytest

from tests.small import named
from tiered.graph import Model, Node, Tensor
from tiered.rewriter.idioms.functions import specialization
from tiered.rewriter.idioms.functions.outlining import KEPT
from tiered.rewriter.idioms.functions.specialization import Specializer
from tiered.rewriter.skip import Skip

IMPORTS = 'opset_import: ["" : 21, "f" : 1]'
SCALE = f"""<domain: "f", {IMPORTS}>
    scale <alpha: float = 0.5> (v, w) => (u) {{
        t = LeakyRelu<alpha: float = @alpha>(v)  u = Mul(t, w) }}"""


def model_of(nodes: str, *functions: str, weights: str = "float[2] w = {1,2}") -> Model:
    text = f"""<ir_version: 10, {IMPORTS}>
        g (float[2] x, float[2] z) => (float[2] y) <{weights}> {{ {nodes} }}"""
    return Model.from_proto(onnx.parser.parse_model("\n".join((text, *(functions or (SCALE,))))))


def specialize(model: Model, *, parameters_only: bool = False) -> list[str]:
    """Specialise a model; return the reasons of the calls that stay."""
    reasons: list[str] = []

    def note(node: Node, skip: Skip) -> None:
        reasons.append(f"{node.output.name}: {skip}")

    Specializer(model, note, parameters_only=parameters_only).run()
    model.check_view()
    onnx.checker.check_model(model.to_proto(), full_check=True)
    return reasons


def functions(model: Model) -> dict[str, list[str]]:
    return {
        each.function_name: [node.op_type for node in each.topological_order()]
        for each in model.functions
    }


def test_constant_operands_and_attributes_go_inside() -> None:
    model = model_of("y = f.scale<alpha = 0.25>(x, w)")
    assert specialize(model) == []
    assert functions(model) == {"scale_1": ["Constant", "LeakyRelu", "Mul"]}
    (call,), (made,) = model.main.nodes, model.functions
    assert (call.op_type, [value and value.name for value in call.inputs]) == ("scale_1", ["x"])
    assert not call.attributes
    constant, leaky, _ = made.topological_order()
    assert leaky.attr("alpha") == 0.25
    assert constant.output.const is not None
    assert constant.output.const.tolist() == [1, 2]
    assert constant.output.name == "w"


def test_equal_constants_share_a_function_and_others_do_not() -> None:
    nodes = "a = f.scale(x, w)  b = f.scale(a, same)  c = f.scale(b, other)  y = f.scale(c, z)"
    weights = "float[2] w = {1,2}, float[2] same = {1,2}, float[2] other = {1,3}"
    model = model_of(nodes, weights=weights)
    assert specialize(model) == ["y: no attribute or operand is constant"]
    assert [node.op_type for node in model.main.topological_order()] == [
        "scale_1", "scale_1", "scale_2", "scale"
    ]  # fmt: skip
    assert set(functions(model)) == {"scale", "scale_1", "scale_2"}


def test_a_default_that_no_call_gives_stays_a_default() -> None:
    model = model_of("y = f.scale(x, w)")
    specialize(model)
    proto = model.to_proto().functions[0]
    assert [(each.name, each.f) for each in proto.attribute_proto] == [("alpha", 0.5)]


def test_parameters_alone_are_bound_with_the_defaults() -> None:
    model = model_of("a = f.scale(x, w)  y = f.scale<alpha = 0.25>(a, w)")
    assert specialize(model, parameters_only=True) == []
    assert functions(model) == {"scale_1": ["LeakyRelu", "Mul"], "scale_2": ["LeakyRelu", "Mul"]}
    alphas = [each.topological_order()[0].attr("alpha") for each in model.functions]
    assert alphas == [0.5, 0.25]
    assert [len(node.inputs) for node in model.main.nodes] == [2, 2]
    proto = model.to_proto()
    assert not any(each.attribute or each.attribute_proto for each in proto.functions)


def test_parameters_alone_leave_functions_that_refer_to_none() -> None:
    plain = f'<domain: "f", {IMPORTS}> scale <alpha> (v, w) => (u) {{ u = Mul(v, w) }}'
    model = model_of("y = f.scale<alpha = 0.25>(x, w)", plain)
    assert specialize(model, parameters_only=True) == ["y: no attribute or operand is constant"]


@pytest.mark.parametrize(("size", "is_inside"), [(256, True), (257, False)])
def test_constants_of_more_than_1024_bytes_stay_operands(size: int, is_inside: bool) -> None:
    numbers = ",".join(["1"] * size)
    text = f"""<ir_version: 10, {IMPORTS}>
        g (float[{size}] x) => (float[{size}] y) <float[{size}] w = {{{numbers}}}> {{
        y = f.scale(x, w) }}"""
    model = Model.from_proto(onnx.parser.parse_model(f"{text}\n{SCALE}"))
    assert specialize(model) == ([] if is_inside else ["y: no attribute or operand is constant"])


@pytest.mark.parametrize("marked", ["the call", "the function"])
def test_what_is_marked_stays(marked: str) -> None:
    model = model_of("y = f.scale(x, w)")
    if marked == "the call":
        model.main.set_metadata(model.main.nodes[0], {KEPT: "1"})
    else:
        proto = model.to_proto()
        proto.functions[0].metadata_props.add(key=KEPT, value="1")
        model = Model.from_proto(proto)
    assert specialize(model) == ["y: the call or its function is marked"]


def test_constants_go_down_the_calls_and_functions_without_a_call_go() -> None:
    outer = f"""<domain: "f", {IMPORTS}> outer (a, b) => (c) {{ c = f.scale(a, b) }}"""
    model = model_of("y = f.outer(x, w)", outer, SCALE)
    assert specialize(model) == []
    assert functions(model) == {
        "outer_1": ["Constant", "scale_1"], "scale_1": ["Constant", "LeakyRelu", "Mul"]
    }  # fmt: skip


def test_calls_in_bodies_are_seen() -> None:
    nodes = """c = Squeeze(k)
        y = If(c) <then_branch = t () => (float[2] p) { p = f.scale(x, w) },
                   else_branch = e () => (float[2] q) { q = Neg(x) }>"""
    model = model_of(nodes, weights="float[2] w = {1,2}, bool[1] k = {1}")
    assert specialize(model) == []
    assert list(functions(model)) == ["scale_1"]


def test_attributes_are_bound_in_bodies() -> None:
    pick = f"""<domain: "f", {IMPORTS}> pick <alpha> (v, k) => (u) {{
        u = If(k) <then_branch = t () => (p) {{ p = LeakyRelu<alpha: float = @alpha>(v) }},
                   else_branch = e () => (q) {{ q = Neg(v) }}> }}"""
    nodes = "k = Squeeze(b)  y = f.pick<alpha = 0.25>(x, k)"
    model = model_of(nodes, pick, weights="bool[1] b = {1}")
    specialize(model)
    body = model.functions[0].nodes_of("If")[0].bodies[0]
    assert body.nodes[0].attr("alpha") == 0.25


def test_an_operand_that_is_the_result_becomes_a_constant() -> None:
    model = model_of("y = f.same(w)", f'<domain: "f", {IMPORTS}> same (v) => (v) {{ }}')
    specialize(model)
    assert functions(model) == {"same_1": ["Constant"]}


def test_a_function_without_the_default_domain_imports_it() -> None:
    inner = '<domain: "f", opset_import: ["f" : 1]> outer (a, b) => (c) { c = f.scale(a, b) }'
    model = model_of("y = f.outer(x, w)", inner, SCALE)
    specialize(model)
    made = next(each for each in model.functions if each.function_name == "outer_1")
    assert made.opset("") == 21


def test_a_name_that_is_taken_is_passed_over() -> None:
    taken = f'<domain: "f", {IMPORTS}> scale_1 (v) => (u) {{ u = Neg(v) }}'
    model = model_of("a = f.scale_1(x)  y = f.scale(a, w)", taken, SCALE)
    specialize(model)
    assert [node.op_type for node in model.main.topological_order()] == ["scale_1", "scale_2"]


def test_beyond_the_limit_equal_constants_still_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialization, "MOST", 1)
    nodes = "a = f.scale(x, w)  b = f.scale(a, other)  y = f.scale(b, w)"
    model = model_of(nodes, weights="float[2] w = {1,2}, float[2] other = {1,3}")
    assert specialize(model) == ["b: 1 functions were made, more are not"]
    assert [node.op_type for node in model.main.topological_order()] == [
        "scale_1", "scale", "scale_1"
    ]  # fmt: skip


def test_a_constant_that_is_computed_elsewhere_is_no_constant() -> None:
    model = model_of("k = Neg(w)  y = f.scale(x, k)")
    assert specialize(model) == ["y: no attribute or operand is constant"]
    model.main.become_constant(named(model, "k"), Tensor.of(np.array([-1, -2], np.float32)))
    assert specialize(model) == []
