import pytest

from tiered import Model, UsageError
from tiered.graph.opset.aspect import Aspect
from tiered.testing import parse


def _first(x: int) -> int:
    return x


def _second(x: int) -> int:
    return -x


def test_a_rule_is_found_by_domain_and_name() -> None:
    colours: Aspect[object] = Aspect("colour")
    assert colours.rule("Relu", "Neg")(_first) is _first
    colours.rule("Relu", domain="acme")(_second)
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { a = acme.Relu(x) y = Relu(a) }"))
    assert [colours.of(node) for node in model.main.nodes] == [_second, _first]
    assert colours.find(("acme", "Neg")) is None


def test_a_rule_may_be_of_several_domains() -> None:
    colours: Aspect[object] = Aspect("colour")
    colours.rule("Quant", domain=("a", "b"))(_first)
    assert colours.rules == {("a", "Quant"): _first, ("b", "Quant"): _first}


@pytest.mark.parametrize("rule", [_first, _second])
def test_a_second_rule_is_an_error_and_registers_nothing(rule: object) -> None:
    colours: Aspect[object] = Aspect("colour")
    colours.rule("Relu", domain="acme")(_first)
    with pytest.raises(UsageError, match="there is a colour rule for acme::Relu already"):
        colours.rule("Neg", "Relu", domain="acme")(rule)
    assert colours.rules == {("acme", "Relu"): _first}


def test_a_decorator_names_operators() -> None:
    colours: Aspect[object] = Aspect("colour")
    with pytest.raises(UsageError, match="colour_rule takes names of operators"):
        colours.rule()
    with pytest.raises(UsageError, match="paint takes names of operators"):
        Aspect[object]("colour", "paint").rule(_first)  # type: ignore[arg-type]  # no brackets


def test_a_rule_is_removed() -> None:
    colours: Aspect[object] = Aspect("colour")
    colours.rule("Relu")(_first)
    colours.remove("Relu")
    colours.remove("Relu")
    colours.rule("Relu")(_second)
    assert colours.find(("", "Relu")) is _second
