"""The decisions that are offered: which, in which order."""

from tiered.extensions.tuning.blocks import blocks_of
from tiered.extensions.tuning.choices import LOWERING, NOT_TRIED, Probe, choices_of
from tiered.extensions.tuning.model_forms import ModelForm
from tiered.extensions.tuning.output_tolerance import parse_budget
from tiered.graph import Model
from tiered.passes.interface.registry import registry
from tiered.pipeline.instruments import Trace
from tiered.pipeline.optimize import optimize_model
from tiered.testing import parse

NEGS = "(float[2,4] x, float[2,4] z) => (float[2,4] y) { a = Sub(x, z)  y = Sub(a, z) }"


def offered(text: str, form: ModelForm, budget: str = "reassociating") -> list[str]:
    trace, model = Trace(), parse(text)
    result = optimize_model(model, **form.settings, instruments=[trace])
    probe = Probe(lambda: Model.from_proto(model), form.backend)
    found = choices_of(form, result, blocks_of(trace), [probe], parse_budget(budget))
    return [choice.text for choice in found]


def test_passes_that_are_left_aside_exist() -> None:
    names = {*registry.names()}
    assert names >= NOT_TRIED
    assert all(any(name.startswith(start) for name in names) for start in LOWERING)


def test_a_file_as_it_is_offers_nothing() -> None:
    model = parse(NEGS)
    result = optimize_model(model, opt_level=3)
    assert [*choices_of(ModelForm(None), result, {}, [], parse_budget("exact"))] == []


def test_passes_that_lower_come_last() -> None:
    found = offered(NEGS, ModelForm(3))
    assert found[-1].startswith("with replace_sub_with_")


def test_the_budget_decides_what_is_offered() -> None:
    text = "(float[2,4] x) => (float[2,4] y) { y = Exp(x) }"
    assert "with float_to_half" not in offered(text, ModelForm(3, "onnxruntime_cpu"))
    assert "with float_to_half" in offered(text, ModelForm(3, "onnxruntime_cpu"), "cosine>=0.9")


def test_what_is_decided_already_is_not_offered_again() -> None:
    name = "replace_sub_with_add"
    assert f"with {name}" in offered(NEGS, ModelForm(3))
    assert f"with {name}" not in offered(NEGS, ModelForm(3, required=(name,)))
    assert f"with {name}" not in offered(NEGS, ModelForm(3, disabled=(name,)))
