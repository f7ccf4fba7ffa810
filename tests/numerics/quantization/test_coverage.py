"""What stays float is counted among the multiply-adds, and listed with its reason."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, PassContext, QuantizationSettings, get_pass, quantize_model
from tiered.graph.queries.multiply_adds import multiply_adds
from tiered.numerics.quantization.quantization_report import report_of
from tiered.targets import get_backend
from tiered.testing import parse

pytestmark = pytest.mark.usefixtures("exact_products")


def _model(text: str, opset: int = 17, **shapes: tuple[int, ...]) -> onnx.ModelProto:
    proto = parse(text, opset=opset)
    random = np.random.default_rng(0)
    proto.graph.initializer.extend(
        numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)
        for name, shape in shapes.items()
    )
    return proto


RECURRENT = """
(float[5,1,8] x) => (float[5,1,4] y)
{ h = %s<hidden_size=16>(x, w, r) s = Squeeze<axes=[1]>(h) y = MatMul(s, v) }
"""


@pytest.mark.parametrize(("op_type", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers_count_and_are_listed(op_type: str, gates: int) -> None:
    weights = {"w": (1, gates * 16, 8), "r": (1, gates * 16, 16), "v": (16, 4)}
    proto = _model(RECURRENT % op_type, 12, **weights)
    found = quantize_model(Model.from_proto(proto), QuantizationSettings(samples=1, measures=True))
    report = report_of(found, found.shapes)
    recurrent, product = report.rows
    assert (recurrent.reason, product.reason) == (f"there is no integer {op_type}", "")
    assert (recurrent.macs, product.macs) == (5 * gates * 16 * (8 + 16), 5 * 16 * 4)
    assert report.share_of_macs == product.macs / (product.macs + recurrent.macs)
    assert (report.quantized, len(report.rows)) == (1, 2)


@pytest.mark.parametrize(
    ("text", "opset", "macs"),
    [
        ("(float[2,3,5,8] q, float[2,3,7,8] k, float[2,3,7,6] v) => (float[2,3,5,6] y) "
         "{ y = Attention(q, k, v) }", 23, 2 * 3 * 5 * 7 * (8 + 6)),
        ("(float[2,5,24] q, float[2,7,24] k, float[2,7,18] v) => (float[2,5,18] y) "
         "{ y = Attention<q_num_heads=3, kv_num_heads=3>(q, k, v) }", 23, 2 * 3 * 5 * 7 * (8 + 6)),
        ('(float[2,3,4] a, float[2,4,5] b) => (float[2,3,5] y) '
         '{ y = Einsum<equation="bij,bjk->bik">(a, b) }', 17, 2 * 3 * 4 * 5),
        ('(float[6,2,3,4] a, float[2,4,5] b) => (float[6,2,3,5] y) '
         '{ y = Einsum<equation="...ij,...jk">(a, b) }', 17, 6 * 2 * 3 * 4 * 5),
        ('(float[3,4] a) => (float[4,3] y) { y = Einsum<equation="ij->ji">(a) }', 17, 0),
        ("(float[3,N] a, float[N,4] b) => (float[3,4] y) "
         '{ y = Einsum<equation="ij,jk->ik">(a, b) }', 17, 0),
    ],
)  # fmt: skip
def test_multiply_adds_of_layers(text: str, opset: int, macs: int) -> None:
    model = Model.from_proto(parse(text, opset=opset))
    model.refresh_types()
    (node,) = model.main.nodes
    assert multiply_adds(node, lambda value: value.static_shape) == macs


def test_an_einsum_of_one_operand_is_no_layer() -> None:
    text = '(float[3,4] a) => (float[4,3] y) { y = Einsum<equation="ij->ji">(a) }'
    found = quantize_model(Model.from_proto(parse(text, opset=17)), QuantizationSettings())
    assert found.plan.kept == []


def test_dynamic_quantisation_lists_them_too() -> None:
    weights = {"w": (1, 64, 8), "r": (1, 64, 16), "v": (16, 4)}
    ctx = PassContext.isolated()
    model = Model.from_proto(_model(RECURRENT % "LSTM", 12, **weights))
    get_pass("quantize_dynamic").apply(model, ctx)
    said = [str(each) for each in ctx.remarks]
    assert any("there is no dynamic integer LSTM" in each for each in said)
    assert any("1 of 2 products are integer" in each for each in said)


@pytest.mark.parametrize(("batch", "count"), [("N", 3), ("1", 0)])
def test_what_a_target_of_integers_does_not_take_is_listed(batch: str, count: int) -> None:
    text = (
        f"(float[{batch},3,8,8] x) => (float[{batch},4,1,1] y) "
        "{ a = Conv(x, w) s = Sigmoid(a) m = Mul(a, s) y = GlobalAveragePool(m) }"
    )
    said: list[str] = []
    found = quantize_model(
        Model.from_proto(_model(text, w=(4, 3, 3, 3))),
        QuantizationSettings(samples=1),
        said.append,
        backend=get_backend("int8_npu"),
    )
    report = report_of(found, found.shapes)
    reason = "dynamic dims N; it takes static shapes"
    names = ("Sigmoid", "Mul", "GlobalAveragePool")
    assert report.floating == (tuple((name, 1, reason) for name in names) if count else ())
    assert ("3 other operators stay float" in said) == bool(count)
    assert [each["op_type"] for each in report.record()["floating"]] == list(names[:count])


@pytest.mark.parametrize("share", [1 / 64, 1.0])
def test_a_product_of_numbers_of_no_size_stays_float(share: float) -> None:
    """No range has room for them, and they are no masks."""
    proto = _model("(float[N,16] x) => (float[N,8] y) { y = MatMul(x, w) }", w=(16, 8))
    x = np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)
    x.reshape(-1)[: int(64 * share)] = 1e31
    x.reshape(-1)[-1] = 1
    found = quantize_model(Model.from_proto(proto), QuantizationSettings(inputs=[{"x": x}]))
    assert not found.plan.units
    ((_, reason),) = found.plan.kept
    assert reason == "numbers of 1e+30 or more were seen"
