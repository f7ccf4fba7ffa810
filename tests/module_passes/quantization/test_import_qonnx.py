"""import_qonnx: both runtimes compute QONNX's operators as numpy does, bit for bit."""

from itertools import product

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from tests import qonnx
from tiered import Model, PassContext, get_pass, optimize_model
from tiered.runtime import Reference, Session, run, run_reference
from tiered.runtime.deviations import DEVIATIONS, installed

DOMAIN = "qonnx.custom_op.general"
RUNTIMES = (run, run_reference)
OPENED = (Session, Reference)


def parsed(text: str, opset: int = 17, ir: int = 8, domain: str = DOMAIN) -> onnx.ModelProto:
    header = f'<ir_version: {ir}, opset_import: ["": {opset}, "{domain}": 1]>'
    return onnx.parser.parse_model(f"{header} g {text}".replace("q.", domain + "."))


def imported(proto: onnx.ModelProto) -> tuple[onnx.ModelProto, list[str]]:
    """Return the model with functions, valid and at rest, and the remarks."""
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass("import_qonnx").apply(model, ctx)
    model.check_view(types=True)
    made = model.to_proto()
    onnx.checker.check_model(made, full_check=True)
    again = Model.from_proto(made)
    get_pass("import_qonnx").apply(again, PassContext.isolated())
    assert again.to_proto() == made
    return made, [str(remark).removeprefix("import_qonnx: ") for remark in ctx.remarks]


def grid_of(scale: qonnx.Array) -> qonnx.Array:
    """Return halves and quarters of steps, and special numbers, for each scale along axis 1."""
    steps = np.concatenate([np.arange(-600, 601) / 4, qonnx.SPECIAL]).astype(np.float32)
    return np.broadcast_to(steps, (2, 3, steps.size)) * np.broadcast_to(scale, (2, 3, 1))


ATTRIBUTES = list(product((0, 1), (0, 1), qonnx.ROUNDINGS))
"""signed, narrow, rounding_mode."""


def attributes_text(signed: int, narrow: int, mode: str) -> str:
    return f'<signed = {signed}, narrow = {narrow}, rounding_mode = "{mode}">'


def outputs_text(count: int, dims: str) -> str:
    return ", ".join(f"float[{dims}] y{at}" for at in range(count))


@pytest.mark.parametrize("opset", [13, 17, 21])
def test_quant_on_the_whole_grid_of_parameters(opset: int) -> None:
    nodes = " ".join(
        f"y{at} = q.Quant{attributes_text(*each)}(x, s, z, b)" for at, each in enumerate(ATTRIBUTES)
    )
    text = (
        "(float[N,3,L] x, float[1,C,1] s, float z, float[1] b) => "
        f"({outputs_text(len(ATTRIBUTES), 'N,3,L')}) {{ {nodes} }}"
    )
    made, _ = imported(parsed(text, opset))
    assert len({tuple(call.attribute) for call in made.functions}) == 1
    scales = [qonnx.floats([[[0.25]]]), qonnx.floats([[[0.1], [1.0], [3.0]]])]
    runtimes = [opened(made) for opened in OPENED]
    bits = [1, 2, 3, 4, 5, 6, 7, 8, 16, 25, 32] if opset == 17 else [1, 5, 25]
    for scale, zero, width in product(scales, (0.0, 3.0, -0.5), bits):
        x = grid_of(scale)
        feeds = {"x": x, "s": scale, "z": np.float32(zero), "b": qonnx.floats([width])}
        with np.errstate(all="ignore"):
            wanted = [qonnx.quant(x, scale, np.float32(zero), width, *each) for each in ATTRIBUTES]
        for runtime in runtimes:
            found = runtime.run(feeds)
            for at, each in enumerate(ATTRIBUTES):
                assert qonnx.same_bits(found[f"y{at}"], wanted[at]), (runtime, width, zero, each)


def test_trunc_by_bits() -> None:
    modes = list(qonnx.ROUNDINGS)
    nodes = " ".join(
        f'y{at} = q.Trunc<rounding_mode = "{mode}">(x, s, z, i, o)' for at, mode in enumerate(modes)
    )
    text = (
        "(float[N,3,L] x, float[1,C,1] s, float z, float i, float o) => "
        f"({outputs_text(len(modes), 'N,3,L')}) {{ {nodes} }}"
    )
    made, _ = imported(parsed(text))
    scale = qonnx.floats([[[0.1], [1.0], [3.0]]])
    for zero, before, after in [(0.0, 8, 4), (4.0, 9, 8), (1.0, 6, 6), (0.0, 4, 6)]:
        x = grid_of(scale)
        feeds = {"x": x, "s": scale, "z": np.float32(zero)}
        feeds |= {"i": np.float32(before), "o": np.float32(after)}
        for runtime in RUNTIMES:
            found = runtime(made, feeds)
            with np.errstate(all="ignore"):
                for at, mode in enumerate(modes):
                    expected = qonnx.trunc_by_bits(x, scale, np.float32(zero), before, after, mode)
                    assert qonnx.same_bits(found[f"y{at}"], expected), (runtime, mode, zero)


@pytest.mark.parametrize("out_scale", [[[[0.5]]], [[[0.4], [4.0], [48.0]]]])
def test_trunc_by_scale(out_scale: list[list[list[float]]]) -> None:
    nodes = " ".join(
        f"y{at} = q.Trunc{attributes_text(*each)}(x, s, z, i, t, u, o)"
        for at, each in enumerate(ATTRIBUTES)
    )
    text = (
        "(float[N,3,L] x, float z, float i, float u, float o) => "
        f"({outputs_text(len(ATTRIBUTES), 'N,3,L')}) {{ {nodes} }}"
    )
    proto = parsed(text)
    scale = qonnx.floats([[[0.1], [1.0], [3.0]]] if len(out_scale[0]) == 3 else [[[0.125]]])
    out = qonnx.floats(out_scale)
    proto.graph.initializer.extend(
        numpy_helper.from_array(array, name) for array, name in [(scale, "s"), (out, "t")]
    )
    made, _ = imported(proto)
    for zero, width in [(0.0, 1), (0.0, 4), (4.0, 8), (1.0, 6)]:
        x = grid_of(scale)
        feeds = {"x": x, "z": np.float32(zero), "i": np.float32(8), "u": np.float32(zero)}
        feeds["o"] = np.float32(width)
        for runtime in RUNTIMES:
            found = runtime(made, feeds)
            with np.errstate(all="ignore"):
                for at, each in enumerate(ATTRIBUTES):
                    expected = qonnx.trunc_by_scale(x, scale, np.float32(zero), out, width, *each)
                    assert qonnx.same_bits(found[f"y{at}"], expected), (runtime, width, each)


@pytest.mark.parametrize("shape", [(), (1,), (3, 1)])
def test_bipolar_quant(shape: tuple[int, ...]) -> None:
    proto = parsed("(float[N,3,L] x) => (float[N,3,L] y) { y = q.BipolarQuant(x, s) }")
    scale = np.linspace(0.5, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    proto.graph.initializer.append(numpy_helper.from_array(scale, "s"))
    made, _ = imported(proto)
    x = grid_of(qonnx.floats([1]))
    for runtime in RUNTIMES:
        assert qonnx.same_bits(runtime(made, {"x": x})["y"], qonnx.bipolar(x, scale))


@pytest.mark.parametrize(
    ("shape", "layout", "axis"),
    [
        ((2, 3), "NCHW", 1),
        ((2, 3, 4, 5), "NCHW", 1),
        ((2, 4, 5, 3), "NHWC", 3),
        ((2, 3), "NHWC", 1),
        ((2, 4, 3), "NCHW", 2),
        ((3,), "NCHW", 0),
        ((0, 3, 4, 5), "NCHW", 1),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 15])
def test_multi_threshold(
    shape: tuple[int, ...], layout: str, axis: int, channels: int, count: int
) -> None:
    dims = ",".join(map(str, shape))
    proto = parsed(
        f"(float[{dims}] x, float[C,T] t) => (float[{dims}] y) {{ y = q.MultiThreshold"
        f'<out_scale = 0.1, out_bias = -0.7, out_dtype = "INT4", data_layout = "{layout}">(x, t) }}'
    )
    made, _ = imported(proto)
    random = np.random.default_rng(0)
    x = random.integers(-9, 9, shape).astype(np.float32)
    if x.size:
        x.reshape(-1)[:3] = [np.nan, np.inf, -0.0]
    thresholds = np.sort(random.integers(-9, 9, (channels, count))).astype(np.float32)
    expected = qonnx.multi_threshold(x, thresholds, 0.1, -0.7, axis)
    # The deviation "reduce_of_nothing" of onnxruntime: no element, or no threshold, to count.
    (deviation,) = (each for each in DEVIATIONS if each.name == "reduce_of_nothing")
    deviates = deviation.is_of(installed()) and not (x.size and count)
    for runtime in RUNTIMES if not deviates else [run_reference]:
        assert qonnx.same_bits(runtime(made, {"x": x, "t": thresholds})["y"], expected)


CONSTANTS = "<float s = {0.5}, float z = {0}, float b = {4}>"


def test_absent_attributes_are_written_and_the_operator_stays() -> None:
    proto = parsed(f"(float[N] x) => (float[N] y) {CONSTANTS} {{ y = q.Quant(x, s, z, b) }}")
    made, _ = imported(proto)
    node = made.graph.node[0]
    assert (node.op_type, node.domain) == ("Quant", DOMAIN)
    values = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    assert values == {"signed": 1, "narrow": 1, "rounding_mode": b"ROUND"}
    x = qonnx.floats([-9, -0.3, 0.7, 9])
    assert qonnx.same_bits(
        run(made, {"x": x})["y"], qonnx.quant(x, np.float32(0.5), np.float32(0), 4)
    )


def test_the_most_frequent_mode_keeps_the_name() -> None:
    text = f"""(float[N] x) => (float[N] y) {CONSTANTS} {{
        a = q.Quant<rounding_mode = "FLOOR">(x, s, z, b)
        c = q.Quant<rounding_mode = "round">(a, s, z, b)
        y = q.Quant<rounding_mode = "HALF_EVEN">(c, s, z, b) }}"""
    made, _ = imported(parsed(text))
    assert [node.op_type for node in made.graph.node] == ["Quant_FLOOR", "Quant", "Quant"]
    assert sorted(each.name for each in made.functions) == ["Quant", "Quant_FLOOR"]


def test_nodes_in_bodies_and_functions_and_the_older_domain() -> None:
    text = f"""(float[2] x, bool c) => (float[2] y) {CONSTANTS} {{
        y = If (c) <then_branch = g1 () => (float[2] t) {{ t = q.Quant(x, s, z, b) }},
                    else_branch = g2 () => (float[2] e) {{ e = Neg(x) }}> }}"""
    made, _ = imported(parsed(text, domain="onnx.brevitas"))
    x = qonnx.floats([0.3, -7])
    found = run(made, {"x": x, "c": np.array(True)})["y"]
    assert qonnx.same_bits(found, qonnx.quant(x, np.float32(0.5), np.float32(0), 4))


def test_types_follow_the_broadcast() -> None:
    model = Model.from_proto(
        parsed(
            "(float[N,3] x, float[2,1,1] s, float z, float b) => (float[2,N,3] y) "
            "{ a = q.Quant(x, s, z, b) b1 = q.BipolarQuant(a, s) c = q.Trunc(b1, s, z, b, b) "
            "y = q.MultiThreshold(c, x) }"
        )
    )
    assert {str(node.output.type) for node in model.main.nodes} == {"float[2,N,3]"}


def test_types_follow_from_the_functions_too() -> None:
    text = """(float[N,3] x, float[3] s, float z, float b) => (float[N,3] y) {
        a = q.Quant(x, s, z, b) c = q.BipolarQuant(a, s) d = q.Trunc(c, s, z, b, b)
        y = Identity(d) }"""
    made, _ = imported(parsed(text))
    nodes = Model.from_proto(made).main.nodes
    assert {str(node.output.type) for node in nodes} == {"float[N,3]"}


def test_an_operator_that_the_model_defines_has_the_type_of_its_function() -> None:
    proto = parsed("(float[N,3] x) => (int64[2] y) { a = q.BipolarQuant(x, x) y = Identity(a) }")
    header = f'<domain: "{DOMAIN}", opset_import: ["": 17]>'
    text = f"{header} BipolarQuant (x, s) => (y) {{ y = Shape (x) }}"
    proto.functions.append(onnx.parser.parse_function(text))
    model = Model.from_proto(proto)
    model.check_view(types=True)
    assert str(model.main.nodes[0].output.type) == "int64[2]"


def test_inline_leaves_standard_operators() -> None:
    proto = parsed(f"(float[N] x) => (float[N] y) {CONSTANTS} {{ y = q.Quant(x, s, z, b) }}")
    made, _ = imported(proto)
    result = optimize_model(made, passes=["inline", "fold_constant"], verify=True).model
    assert {node.domain for node in result.main.nodes} == {""}
    assert not result.functions
    x = np.concatenate([np.arange(-30, 30) / 8, qonnx.SPECIAL]).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = qonnx.quant(x, np.float32(0.5), np.float32(0), 4)
    assert qonnx.same_bits(run(result.to_proto(), {"x": x})["y"], expected)


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ("q.Quant(x, s, z)", "Quant does not take 3 operands"),
        ("q.Quant(x, d, z, b)", "an operand is not float32"),
        ("q.Quant(x, s, z, many)", "the bit width is not one number"),
        ("q.Quant(x, s, z, half)", "the bit width is 2.5"),
        ('q.Quant<rounding_mode = "ODD">(x, s, z, b)', "the rounding mode ODD is not known"),
        ("q.Trunc(x, s, z, b, x, z, b)", "a scale is not constant"),
        ("q.Trunc(x, s, z, b, three, z, b)", "the scales differ by no power of two"),
        ('q.MultiThreshold<data_layout = "NWC">(x, t)', "the data layout 'NWC' is not known"),
        ('q.MultiThreshold<data_layout = "NHWC">(x, t)', "NHWC data has rank 1"),
        ("q.MultiThreshold(s, t)", "the data has no channels"),
    ],
)
def test_why_not(node: str, reason: str) -> None:
    weights = (
        "<float s = {0.5}, float z = {0}, float b = {4}, double d = {1}, float[2] many = {4, 4}, "
        "float half = {2.5}, float three = {1.5}, float[1,1] t = {1}>"
    )
    proto = parsed(f"(float[N] x) => (float[N] y) {weights} {{ y = {node} }}")
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass("import_qonnx").apply(model, ctx)
    assert ctx.remarks[0].reason == reason
    assert not model.functions


def reasons_of(proto: onnx.ModelProto) -> list[str]:
    """Return the reasons of a model that stays as it is."""
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass("import_qonnx").apply(model, ctx)
    assert model.to_proto() == proto
    return [remark.reason for remark in ctx.remarks]


def test_models_that_cannot_have_the_functions() -> None:
    text = f"(float[N] x) => (float[N] y) {CONSTANTS} {{ y = q.Quant(x, s, z, b) }}"
    assert reasons_of(parsed(text, ir=7)) == ["before IR 8 there are no local functions"]
    assert reasons_of(parsed(text, opset=12)) == ["the opset is below 13"]
    proto = parsed(text)
    proto.functions.append(function("Quant"))
    assert reasons_of(proto) == ["the model defines the operator"]


def test_one_operator_is_defined_for_all_its_nodes_or_none() -> None:
    text = f"""(float[N] x) => (float[N] y) {CONSTANTS} {{
        a = q.Quant<rounding_mode = "ODD">(x, s, z, b)  y = q.Quant(a, s, z, b) }}"""
    assert sorted(reasons_of(parsed(text))) == [
        "another node of the operator is declined",
        "the rounding mode ODD is not known",
    ]


def test_a_taken_name_is_not_called() -> None:
    text = f"""(float[N] x) => (float[N] y) {CONSTANTS} {{
        a = q.Quant<rounding_mode = "CEIL">(x, s, z, b)
        y = q.Quant<rounding_mode = "FLOOR">(a, s, z, b) }}"""
    proto = parsed(text)
    proto.functions.append(function("Quant_FLOOR"))
    assert reasons_of(proto) == ["the model has a function Quant_FLOOR"]


def test_attributes_of_a_call_are_not_known() -> None:
    proto = parsed("(float[N] x, float s) => (float[N] y) { y = q.call<wide = 1>(x, s) }")
    header = f'<domain: "{DOMAIN}", opset_import: ["": 17, "{DOMAIN}": 1]>'
    text = (
        f"{header} call <wide> (x, s) => (y) {{ y = {DOMAIN}.Quant<signed: int = @wide>(x,s,s,s) }}"
    )
    proto.functions.append(onnx.parser.parse_function(text))
    assert reasons_of(proto) == ["attribute 'signed' is a function parameter"]


def function(name: str) -> onnx.FunctionProto:
    header = f'<domain: "{DOMAIN}", opset_import: ["": 17]>'
    return onnx.parser.parse_function(
        f"{header} {name} <signed, narrow, rounding_mode> (x, s, z, b) => (y) {{ y = Neg (x) }}"
    )
