"""What variables and operations have in common: identity, and the names that are missing."""

import pytest

from tests.compat.ppq.small_graphs import graph, quantized
from tests.recorded import assert_values
from tiered import ModelError
from tiered.compat.ppq import Operation, Variable
from tiered.compat.ppq.handles import Handle, UnquantizedError, node_of, value_of


def test_two_of_one_value_or_node_are_equal() -> None:
    on = graph()
    a, relu = on.variables["a"], on.operations["node_a"]
    assert a == Variable(a._value)
    assert a is not on.variables["a"]
    assert hash(a) == hash(Variable(a._value))
    assert a != on.variables["b"]
    assert relu == Operation(relu._node)
    assert hash(relu) == hash(Operation(relu._node))
    assert relu != on.operations["node_b"]
    others: list[object] = [relu, "a", None, a._value]
    assert all(a != other for other in others)
    assert all(relu != other for other in [a, "node_a", None, relu._node])


def test_they_are_printed_by_name() -> None:
    on, _, _ = quantized()
    assert repr(on.variables["x"]) == "Variable('x')"
    assert repr(on.variables["a"]) == "QuantableVariable('a')"
    assert repr(on.operations["node_a"]) == "Operation('node_a', 'Relu')"
    assert repr(on.operations["node_b"]) == "QuantableOperation('node_b', 'Add')"


def test_a_name_of_quantised_ones_is_an_error_of_both_kinds() -> None:
    on = graph()
    for kind in (ModelError, AttributeError, UnquantizedError):
        with pytest.raises(kind, match="Variable 'x' has no stored_value: it is not quantised"):
            _ = on.variables["x"].stored_value
    with pytest.raises(UnquantizedError, match="Operation 'node_b' has no dequantize: it is not q"):
        on.operations["node_b"].dequantize()
    with pytest.raises(UnquantizedError, match="has no config: "):
        on.operations["node_b"].config = 3


def test_a_missing_name_has_a_suggestion_of_public_names() -> None:
    on = graph()
    with pytest.raises(
        AttributeError, match=r"^'Operation' object has no attribute 'tpye'; did.*'type'"
    ):
        _ = on.operations["node_b"].tpye
    with pytest.raises(
        AttributeError, match=r"'Variable' object has no attribute 'valu'; .*'value'"
    ):
        on.variables["x"].valu = 3
    with pytest.raises(AttributeError) as caught:
        _ = on.variables["x"]._valu
    assert "did you mean '_" not in str(caught.value)
    assert not hasattr(on.variables["x"], "zzz")


def test_what_stands_for_nothing_is_none() -> None:
    on = graph()
    a, relu = on.variables["a"], on.operations["node_a"]
    assert (value_of(a), value_of(None)) == (a._value, None)
    assert (node_of(relu), node_of(None)) == (relu._node, None)
    with pytest.raises(NotImplementedError):
        _ = Handle().name


def test_missing_names_are_recorded() -> None:
    on = graph()
    of, _, _ = quantized()
    names = {"a": on.variables["a"], "b": on.operations["node_b"], "qa": of.variables["a"],
             "qb": of.operations["node_b"], "Operation": Operation, "Variable": Variable,
             "on": on, "value_of": value_of, "node_of": node_of}  # fmt: skip
    assert_values(__file__, names)
