"""The registries of what is known of operators, found by the name of the aspect."""

from functools import partial

import pytest
from onnx import defs

from tests.registered import rules_forgotten
from tiered import UsageError
from tiered.analysis.aspects import ASPECTS, aspect, holes, known_operators, place_of, rules_of
from tiered.graph.opset.aspect import Aspect


@pytest.mark.parametrize("name", ASPECTS)
def test_every_aspect_is_loaded_with_its_rules(name: str) -> None:
    registry = aspect(name)
    assert isinstance(registry, Aspect)
    assert registry is aspect(name)
    # Scripts alone say of their operators that they are deterministic.
    assert bool(registry.rules) == (name != "deterministic")


def test_an_unknown_aspect_is_an_error_that_names_the_known_ones() -> None:
    for look in (aspect, rules_of, holes):
        with pytest.raises(UsageError) as caught:
            look("layouts")
        message = str(caught.value)
        assert message.startswith(
            "there is no aspect 'layouts' of operators; did you mean 'layout'"
        )
        assert message.endswith(f"; there are {', '.join(ASPECTS)}")


def test_rules_of_an_aspect_follow_from_another_and_its_own_come_first() -> None:
    for name, place in ASPECTS.items():
        if place.follows:
            followed = aspect(place.follows).rules
            assert rules_of(name) == {**followed, **aspect(name).rules}
            assert followed.keys() & aspect(name).rules.keys()
        else:
            assert rules_of(name) is aspect(name).rules
    followers = {name for name, place in ASPECTS.items() if place.follows}
    assert followers == {"layout", "batch", "packing"}


def test_the_known_operators_are_those_of_onnx_and_of_every_rule() -> None:
    with rules_forgotten():
        aspect("count").put(("Scale",), "acme", ())
        known = known_operators()
        assert ("acme", "Scale") in known
    assert known == sorted(set(known))
    own = {schema.name for schema in defs.get_all_schemas() if not schema.domain}
    assert own <= {name for domain, name in known if not domain}
    # Of ONNX's other domains only operators with a rule are known.
    assert not [key for key in known if key[0].endswith(".training")]


def test_a_hole_is_a_known_operator_without_a_rule_of_its_own_or_of_another_aspect() -> None:
    with rules_forgotten():
        aspect("count").put(("Scale",), "acme", ())
        assert ("acme", "Scale") in holes("layout")
        assert ("acme", "Scale") not in holes("count")
        aspect("axes").put(("Scale",), "acme", ())
        assert ("acme", "Scale") not in holes("layout")
        assert ("acme", "Scale") in holes("cost")
    assert ("", "Relu") not in holes("axes")


def test_the_place_of_a_rule_is_the_line_of_its_function_or_its_data() -> None:
    def rule() -> None: ...

    line = rule.__code__.co_firstlineno
    for each in (rule, partial(rule), (3, rule)):
        assert place_of(each) == f"{__name__}:{line}"
    assert place_of((1, 3)) == "(1, 3)"
