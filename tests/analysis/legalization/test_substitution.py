from pathlib import Path

import numpy as np
import onnx
import pytest

from tiered import Model, PassContext, Skip, get_backend, pipeline_for, substitute
from tiered.analysis.legalization.substitution import Substitution
from tiered.runtime import run
from tiered.targets.reading import backend_of
from tiered.testing import parse

PROFILE = """
api_version = 1
name = "own"
doc = "."
shapes = "static"
[dtypes]
activations = ["float"]
[operators]
Relu = true
"own::Select" = { inputs = ["C:B", "X:T", "Y:T"], outputs = ["Z:T"], types = { B = ["bool"] } }
[substitute]
Where = "own::Select"
"""


def test_a_target_of_static_shapes_takes_its_own_operator(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(PROFILE)
    backend = get_backend(str(tmp_path / "own.toml"))
    model = Model.from_proto(
        parse(
            "(bool[2] c, float[2] x, float[2] y) => (float[2] z) { w = Where(c, x, y) z = Relu(w) }"
        )
    )
    with PassContext(opt_level=3, backend=backend, strict=True):
        pipeline_for(backend)(model)
    assert [(node.domain, node.op_type) for node in model.main.topological_order()] == [
        ("own", "Select"),
        ("", "Relu"),
    ]
    assert backend.coverage(model).is_met
    onnx.checker.check_model(model.to_proto(), full_check=True)


IMAGE = "(float[1,2,4,4] x) => (float[1,2,2,2] p, float[1,2,2,2] q, int64[1,2,2,2] i)"
POOL = "MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)"


@pytest.mark.parametrize(
    ("text", "table", "overloads"),
    [
        (
            "(float[2,4] x) => (float[2,4] a, float[2,4] b) { a = HardSwish(x) b = Selu(x) }",
            {"HardSwish": "chip::Own", "Selu": "chip::Own"},
            ["", "Selu_1_1"],
        ),
        (
            "(float[2,4] x) => (float[4,4] a, float[6,4] b, float[6,4] c) "
            "{ a = Concat<axis=0>(x, x) b = Concat<axis=0>(x, x, x) n = Neg(x) "
            "c = Concat<axis=0>(x, n, x) }",
            {"Concat": "chip::Own"},
            ["", "Concat_3_1", "Concat_3_1"],
        ),
        (
            "(float[2,4] x) => (float[2,2] a, float[2,2] b, float[2,1] c, float[2,1] d, float[2,2] "
            "e) <int64[2] two = {2,2}, int64[3] three = {1,1,2}> "
            "{ a, b = Split<axis=1>(x, two) c, d, e = Split<axis=1>(x, three) }",
            {"Split": "chip::Own"},
            ["", "Split_2_3"],
        ),
        (f"{IMAGE} {{ p = {POOL} q, i = {POOL} }}", {"MaxPool": "chip::Own"}, ["", "MaxPool_1_2"]),
        (f"{IMAGE} {{ q, i = {POOL} p = {POOL} }}", {"MaxPool": "chip::Own"}, ["", "MaxPool_1_1"]),
        (
            "(float[2,4] x) => (float[2,4] a, float[2,4] b) <float one = {1}> "
            "{ a = Clip(x, , one) b = Clip(x, one) }",
            {"Clip": "chip::Own"},
            ["", ""],
        ),
    ],
    ids=["operators", "operands", "outputs", "indices", "indices first", "absent operands"],
)
def test_a_call_is_of_a_function_with_its_own_operator_and_operands(
    text: str, table: dict[str, str], overloads: list[str]
) -> None:
    operators = {"chip::Own": True, "Neg": True}
    profile = {"api_version": 1, "name": "chip", "operators": operators, "substitute": table}
    backend = backend_of(profile, "chip.toml", lambda name: {})
    before = parse(text)
    model = Model.from_proto(before)
    with PassContext(opt_level=1, backend=backend):
        pipeline_for(backend)(model)
    after = model.to_proto()
    calls = [node for node in after.graph.node if node.domain]
    assert [call.overload for call in calls] == overloads
    onnx.checker.check_model(after, full_check=True)
    generator = np.random.default_rng(0)
    shape = [dim.dim_value for dim in before.graph.input[0].type.tensor_type.shape.dim]
    inputs = {"x": generator.standard_normal(shape).astype(np.float32)}
    expected, actual = run(before, inputs), run(after, inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, err_msg=name)
    assert backend.coverage(model).is_met
    with PassContext(opt_level=1, backend=backend):
        pipeline_for(backend)(model)
    assert model.to_proto().SerializeToString() == after.SerializeToString()


def test_overloads_need_a_new_file() -> None:
    model = Model.from_proto(
        parse(
            '<ir_version: 8, opset_import: ["" : 14]> g (float[2] x) => (float[2] a, float[2] b) '
            "{ a = HardSwish(x) b = Selu(x) }"
        )
    )
    swish, selu = model.main.topological_order()
    assert not isinstance(substitute(swish, "chip", "Own"), Skip)
    made = substitute(selu, "chip", "Own")
    assert str(made) == "chip::Own has another body; overloads need IR 10"
    assert [function.id for function in model.functions] == [("chip", "Own", "")]


def test_a_call_in_a_function_with_parameters_stays() -> None:
    model = Model.from_proto(
        parse(
            '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[2] x) => (float[2] y) '
            '{ y = own.F<alpha = 2.0>(x) } <domain: "own", opset_import: ["" : 21]> '
            "F <alpha> (a) => (b) { b = LeakyRelu<alpha: float = @alpha>(a) }"
        )
    )
    (function,) = model.functions
    (node,) = function.nodes
    made = substitute(node, "chip", "Own")
    assert str(made) == "the node has bodies or attributes of a call"


OWN = """<ir_version: 10, opset_import: ["" : 21, "chip" : 1]>
    g (float[2] x) => (float[2] y, float[2] z) { y = LeakyRelu(x)  z = chip.Own(x) }
    <domain: "chip", opset_import: ["" : 21]> Own <alpha: float = 0.01> (a) => (b) { BODY }"""
LEAKY = "b = LeakyRelu<alpha: float = @alpha>(a)"


def test_a_function_of_that_name_is_called_if_it_holds_the_operator() -> None:
    for body, old, new, overload in (
        (LEAKY, "", "", ""),
        (f"{LEAKY}  c = Neg(a)", "", "", "LeakyRelu_1_1"),
        (LEAKY.replace("LeakyRelu", "Elu"), "", "", "LeakyRelu_1_1"),
        (LEAKY.replace("LeakyRelu", "chip.LeakyRelu"), "", "", "LeakyRelu_1_1"),
        (LEAKY.replace("(a)", "(c)"), "(a) => (b)", "(a, c) => (b)", "LeakyRelu_1_1"),
        (f"c = Neg(a)  {LEAKY}", "", "", "LeakyRelu_1_1"),
        (LEAKY, "(a) => (b)", "(a) => (b, a)", "LeakyRelu_1_1"),
        ("b = LeakyRelu<alpha=0.01>(a)", "", "", "LeakyRelu_1_1"),
        ("b = LeakyRelu(a)", "", "", "LeakyRelu_1_1"),
        ("", "(a) => (b)", "(a) => (a)", "LeakyRelu_1_1"),
    ):
        text = OWN.replace("BODY", body).replace(old, new) if old else OWN.replace("BODY", body)
        model = Model.from_proto(onnx.parser.parse_model(text))
        node = model.main.nodes[0]
        made = substitute(node, "chip", "Own")
        assert not isinstance(made, Skip)
        assert made[0] is not None
        assert made[0].producer is not None
        assert made[0].producer.proto.overload == overload, (body, new)
        assert len(model.functions) == (2 if overload else 1)


def test_what_has_no_substitute_stays_with_the_reason() -> None:
    own = """<ir_version: 10, opset_import: ["" : 21, "chip" : 1]>
        g (float[2] x) => (float[2] y) { y = chip.Own(x) }
        <domain: "chip", opset_import: ["" : 21]> Own (a) => (b) { b = Sin(a) }"""
    branch = """<ir_version: 10, opset_import: ["" : 21]> g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) { p = Neg(x) },
                   else_branch = e () => (float[2] q) { q = Abs(x) }> }"""
    old = '<ir_version: 7, opset_import: ["" : 14]> g (float[2] x) => (float[2] y) { y = Sin(x) }'
    for text, reason in (
        (own, "it is the body of chip::Own"),
        (branch, "the node has bodies or attributes of a call"),
        (old, "before IR 8 there are no local functions: tiered convert --ir 8"),
    ):
        model = Model.from_proto(onnx.parser.parse_model(text))
        graph = model.functions[0] if model.functions else model.main
        before = model.to_proto().SerializeToString()
        assert str(Substitution("chip", "Own").apply(graph.nodes[0])) == reason
        assert model.to_proto().SerializeToString() == before


def test_the_types_of_outputs_are_kept_where_they_are_known() -> None:
    text = """(float[1,2,4,4] x) => (float[1,2,2,2] p, int64[1,2,2,2] i, float u, float v) {
        p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)
        , i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)  w = acme.Any(x)  u = acme.Any(w)
        v = acme.Make() }"""
    for place, types, operands in (
        (0, ["float[1,2,2,2]"], 1),
        (1, ["None", "int64[1,2,2,2]"], 1),
        (2, ["None"], 1),
        (4, ["float[]"], 0),
    ):
        model = Model.from_proto(parse(text))
        made = substitute(model.main.nodes[place], "chip", "Own")
        assert not isinstance(made, Skip)
        (function,) = model.functions
        assert [str(value and value.type) for value in made] == types
        assert len(function.inputs) == operands


def test_names_and_operands_of_the_call() -> None:
    text = """(float[2] x, float m) => (float[2] y, float[2] z, float[4] w) {
        [own] y = Sin(x)  z = Clip(x, m)  w = Concat<axis=0>(x, x) }"""
    for place, name, operands, given in ((0, "own_1", 1, 1), (1, "Own", 3, 3), (2, "Own", 2, 2)):
        model = Model.from_proto(parse(text))
        made = substitute(model.main.nodes[place], "chip", "Own")
        assert not isinstance(made, Skip)
        assert made[0] is not None
        call = made[0].producer
        assert call is not None
        (function,) = model.functions
        found = call.name, len(function.inputs), len(call.inputs)
        assert found == (name, operands, given)


def test_an_operator_of_onnx_needs_no_function() -> None:
    text = '<ir_version: 7, opset_import: ["" : 14]> g (float[2] x) => (float[2] y) { y = Sin(x) }'
    model = Model.from_proto(onnx.parser.parse_model(text))
    assert Substitution("", "Cos").apply(model.main.nodes[0]) is None
    assert [node.op_type for node in model.main.nodes] == ["Cos"]
    assert not model.functions
