"""Options that fit no node are reported: a name with a typo keeps nothing."""

import pytest

from tests.module_passes.precision.weights import apply, with_weight

PASSES = [
    "float_to_half",
    "float_to_bfloat16",
    "float_to_mixed",
    "float_to_fp8",
    "fp8_weight",
    "int64_to_int32",
    "weights_to_int4",
    "weights_to_int8",
]
TEXT = "(float[2,64] x) => (float[2,16] y) { [product] h = MatMul(x, w) [last] y = Relu(h) }"


@pytest.mark.parametrize("name", PASSES)
def test_names_and_operators_that_no_node_has(name: str) -> None:
    options: dict[str, object] = {"skip_op_types": ("MatMull", "Relu", "Sin")}
    options["skip_nodes"] = ("prodct*", "last")
    _, found = apply(name, with_weight(TEXT, (64, 16)), options)
    said = [each.partition(": ")[2] for each in found]
    assert "no node has the operator MatMull or Sin" in said
    assert "no node has the name prodct*" in said
    assert sum("no node has" in each for each in said) == 2


@pytest.mark.parametrize("name", PASSES[:3])
def test_forced_names_that_no_node_has(name: str) -> None:
    options: dict[str, object] = {"force_op_types": ("Sin",), "force_nodes": ("other",)}
    _, found = apply(name, with_weight(TEXT, (64, 16)), options)
    said = [each.partition(": ")[2] for each in found]
    assert "no node has the operator Sin" in said
    assert "no node has the name other" in said
