"""Rules that all targets share: standard operators, newer ones, and what needs no kernel."""

import pytest

from tests.small import made_by, parsed
from tiered.support.errors import UsageError
from tiered.targets.shared_rules import (
    Refusal,
    check_operator,
    in_newer_opset,
    is_no_operator,
    is_standard,
    newer_operator,
)


@pytest.mark.parametrize(
    ("op_type", "domain", "expected"),
    [
        ("Relu", "", True),
        ("Normalizer", "ai.onnx.ml", True),
        ("Normalizer", "", False),
        ("Adagrad", "ai.onnx.preview.training", False),
        ("Gelu", "com.microsoft", False),
        ("Nothing", "", False),
    ],
)
def test_the_standard_is_what_onnx_defines(op_type: str, domain: str, expected: bool) -> None:
    assert is_standard(op_type, domain) is expected


def test_a_refusal_names_what_is_taken_instead() -> None:
    assert str(Refusal("axis 0", ("1", "-1"))) == "axis 0; it takes 1, -1"
    assert str(Refusal("axis 0")) == "axis 0"


def test_an_operator_that_neither_has_is_a_typo() -> None:
    own = [("acme", "Fast"), ("", "Slow")]
    for name in ("Softmax", "Slow", "acme::Fast", "nobody::Anything"):
        check_operator(name, own)
    with pytest.raises(UsageError, match=r"no operator 'Softmx'.*'Softmax'"):
        check_operator("Softmx", own)
    with pytest.raises(UsageError, match="no operator 'acme::Slow'"):
        check_operator("acme::Slow", own)


@pytest.mark.parametrize(
    ("op_type", "opset", "first"),
    [
        ("Gelu", 19, 20),
        ("Gelu", 18, 20),
        ("FastGelu", 19, 20),
        ("Gelu", 20, None),
        ("LayerNormalization", 16, 17),
        ("LayerNormalization", 17, None),
        ("Nothing", 16, None),
    ],
)
def test_the_first_opset_of_an_operator_is_named(
    op_type: str, opset: int, first: int | None
) -> None:
    name = "Gelu" if op_type == "FastGelu" else op_type
    expected = f"ONNX has {name} from opset {first} on; the model's opset is {opset}"
    found = in_newer_opset(op_type, opset)
    assert found == (None if first is None else Refusal(expected))


def test_only_operators_of_a_runtime_or_early_ones_are_newer() -> None:
    text = "(float[2] x) => (float[2] y) { a = com.microsoft.Gelu(x)  y = Relu(a) }"
    old, new = parsed(text, opset=19), parsed(text, opset=20)
    assert newer_operator(made_by(old, "a")) is not None
    assert newer_operator(made_by(new, "a")) is None
    assert newer_operator(made_by(old, "y")) is None
    early = "(float[2] x, float[2] s) => (float[2] y) { y = LayerNormalization(x, s) }"
    assert newer_operator(made_by(parsed(early, opset=16), "y")) is not None


def test_constants_and_markers_need_no_kernel() -> None:
    of = parsed(
        "(float[2] x) => (float[2] y) { c = Constant<value_float = 1.0>()  m = tiered.q.Mark(x)"
        "  o = acme.Constant(m)  y = Add(o, c) }"
    )
    kinds = {
        node.op_type if not node.domain else node.domain: is_no_operator(node)
        for node in of.main.nodes
    }
    assert kinds.pop("Constant", True)  # it may be an initializer by now
    assert kinds == {"tiered.q": True, "acme": False, "Add": False}
