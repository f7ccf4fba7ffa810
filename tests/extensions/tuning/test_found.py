"""What a search has come to: only what is proved is the best."""

from tests.extensions.tuning.fakes import O2, O3, without
from tiered.extensions.tuning.found import Found
from tiered.extensions.tuning.model_forms import ModelForm


def test_decisions_add_up() -> None:
    found = Found(O3)
    for name in ("a", "b"):
        found.accept(ModelForm(3, disabled=(name,)), [without(name)])
    assert found.best == ModelForm(3, disabled=("b",))
    assert found.choices == [without("a"), without("b")]


def test_what_is_not_proved_is_not_the_best_until_it_is() -> None:
    found = Found(O3, is_proved=False)
    found.accept(O2, [without("a")])
    assert (found.best, found.choices, found.taken) == (O3, [], [without("a")])
    found.is_proved = True
    found.accept(O2)
    assert (found.best, found.choices) == (O2, [without("a")])


def test_a_form_to_fall_back_to_has_no_decisions() -> None:
    found = Found(O3)
    found.accept(O2, [without("a")])
    found.fall_back(O3)
    assert (found.best, found.choices, found.taken) == (O3, [], [])


def test_what_was_looked_at_keeps_its_order() -> None:
    found = Found(O3)
    found.note("start", "-O2", None, False, "no time was left")
    found.note("decision", "without a", None, True, "better")
    assert [(each.stage, each.text, each.is_taken) for each in found.tried] == [
        ("start", "-O2", False), ("decision", "without a", True),
    ]  # fmt: skip
