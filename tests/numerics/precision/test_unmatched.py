"""Names that fit nothing are errors, as one with a typo; operators that no node has are named."""

import pytest

from tests.module_passes.precision.weights import apply, with_weight
from tiered import UsageError

PASSES = [
    "float_to_half",
    "float_to_bfloat16",
    "float_to_mixed",
    "float_to_fp8",
    "fp8_weight",
    "int64_to_int32",
    "quantize",
    "quantize_dynamic",
    "weights_to_int4",
    "weights_to_int8",
]
TEXT = "(float[2,64] x) => (float[2,16] y) { [product] h = MatMul(x, w) [last] y = Relu(h) }"


@pytest.mark.parametrize("name", PASSES)
def test_operators_that_no_node_has(name: str) -> None:
    options: dict[str, object] = {"skip_op_types": ("Relu", "Sin", "Cos")}
    options["skip_nodes"] = ("produc*", "last")
    _, found = apply(name, with_weight(TEXT, (64, 16)), options)
    said = [each.partition(": ")[2] for each in found]
    assert "no node has the operator Sin or Cos" in said
    assert sum("no node has" in each for each in said) == 1


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"skip_op_types": ("MatMull",)}, "no operator 'MatMull'; did you mean 'MatMul'?"),
        ({"skip_nodes": ("prodct*",)}, "no node of .* has the name 'prodct\\*'; did you mean"),
        ({"skip_nodes": ("nosuch",)}, "no node of .* has the name 'nosuch'"),
    ],
)
def test_a_name_that_fits_nothing_is_an_error(
    name: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        apply(name, with_weight(TEXT, (64, 16)), options)


@pytest.mark.parametrize("name", PASSES[:3])
def test_forced_names_that_no_node_has(name: str) -> None:
    _, found = apply(name, with_weight(TEXT, (64, 16)), {"force_op_types": ("Sin",)})
    assert "no node has the operator Sin" in [each.partition(": ")[2] for each in found]
    with pytest.raises(UsageError, match=r"no node of .* has the name 'other'"):
        apply(name, with_weight(TEXT, (64, 16)), {"force_nodes": ("other",)})
