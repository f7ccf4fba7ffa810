"""Operators have one name, with their domain if it is not onnx's own."""

from tiered.support.operator_name import operator_name


def test_an_operator_is_named_with_its_domain() -> None:
    names = [operator_name("", "Relu"), operator_name("acme", "Scale")]
    assert names == ["Relu", "acme::Scale"]
