"""The chart of a search."""

from tiered.extensions.measurement.medians import MedianInterval
from tiered.extensions.tuning.found import Tried
from tiered.extensions.tuning.model_forms import ModelForm
from tiered.extensions.tuning.race import Gain
from tiered.extensions.tuning.search_chart import search_svg
from tiered.extensions.tuning.tuning_result import Tuned


def tuned(*tried: Tried) -> Tuned:
    return Tuned(ModelForm(3), ModelForm(3), tried, (), None, None, "", "", 1, 1, 0, 0, True, ())


def test_each_measured_decision_has_a_row() -> None:
    gain = Gain(MedianInterval(0.9, 0.95, 0.97, 0.99), 10, "better")
    svg = search_svg(
        tuned(
            Tried("decision", "without <a>", gain, True, "better"),
            Tried("decision", "without b", None, False, "no time was left"),
        )
    )
    assert svg.count("<circle") == 1
    assert "decision: without &lt;a&gt;" in svg
    assert "0.950, taken" in svg
    assert search_svg(tuned()).startswith("<svg")
