"""The default target: what every runtime can be expected to have."""

import pytest

from tests.small import parsed
from tiered.targets.any_runtime import ANY_RUNTIME

MODEL = """<ir_version: 10, opset_import: ["": 13, "vendor": 1, "tiered.own": 1, "f": 1,
    "com.microsoft": 1, "ai.onnx.ml": 3]> g (float[2] x) => (float[2] y) {
        c = Constant<value_float = 1.0>()
        y = CALL }
    <domain: "f", opset_import: ["": 13]> F (v) => (u) { u = Neg(v) }"""
LACKING = ("the target has no such operator",)
EARLY = ("ONNX has LayerNormalization from opset 17 on; the model's opset is 13",)


@pytest.mark.parametrize(
    ("call", "has", "reasons"),
    [
        ("Neg(x)", True, ()),
        ("Constant<value_float = 2.0>()", True, ()),
        ("tiered.own.Mark(x)", True, ()),
        ("ai.onnx.ml.Normalizer(x)", True, ()),
        ("vendor.Neg(x)", False, LACKING),
        ("com.microsoft.BiasGelu(x, c)", False, LACKING),
        ("f.F(x)", False, ()),
        ("LayerNormalization(x, c)", True, EARLY),
    ],
)
def test_operators_of_onnx_and_functions_are_for_every_runtime(
    call: str, has: bool, reasons: tuple[str, ...]
) -> None:
    node = parsed(MODEL.replace("CALL", call)).main.nodes[-1]
    assert ANY_RUNTIME.has(node) is has
    assert tuple(map(str, ANY_RUNTIME.refusals(node))) == reasons
    assert not ANY_RUNTIME.runs_slowly(node)
    assert not ANY_RUNTIME.may_be_slow(node.op_type, node.domain)


def test_a_runtime_of_no_name_takes_any_layout_and_dtype() -> None:
    assert str(ANY_RUNTIME) == "portable"
    assert (ANY_RUNTIME.edits, ANY_RUNTIME.quantization_form) == ((), "none")
    assert (ANY_RUNTIME.layout, dict(ANY_RUNTIME.layouts)) == ("any", {})
    assert [ANY_RUNTIME.supports(*each) for each in (("Conv",), ("Wurst",), ("Conv", "own"))] == [
        True, False, False,
    ]  # fmt: skip
