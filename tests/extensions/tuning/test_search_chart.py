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


HEAD = [
    '<line class="grid" x1="795.0" y1="28" x2="795.0" y2="{}"/>',
    '<text class="soft" x="795.0" y="22" text-anchor="middle">1</text>',
    '<text class="soft" x="520.0" y="22" text-anchor="middle">{}</text>',
    '<text class="soft" x="1070.0" y="22" text-anchor="middle">{}</text>',
]


def test_a_row_has_its_interval_on_a_scale_of_logarithms() -> None:
    better, worse, same = (
        Gain(MedianInterval(*ratios, 0.99), 10, "")
        for ratios in ((0.5, 0.8, 0.9), (1.0, 1.25, 3.0), (0.99, 1.0, 1.01))
    )
    tried = Tried("start", "-O2", better, True, ""), Tried("decision", "b", worse, False, "")
    lines = search_svg(tuned(*tried), "a title").splitlines()
    assert 'viewBox="0 0 1200 100"' in lines[0]
    assert 'aria-label="a title"' in lines[0]
    assert "\n".join(lines[3:-1]) == "\n".join([
        *HEAD,
        '<text x="8" y="54">start: -O2</text>',
        '<line class="curve" stroke-width="3" x1="520.0" y1="50" x2="686.8" y2="50"/>',
        '<circle class="bar" cx="565.8" cy="50" r="3"/>',
        '<text class="soft" x="1078" y="54">0.800, taken</text>',
        '<text x="8" y="74">decision: b</text>',
        '<line class="edge" stroke-width="1.5" x1="795.0" y1="70" x2="1070.0" y2="70"/>',
        '<circle class="bar" cx="1024.2" cy="70" r="3"/>',
        '<text class="soft" x="1078" y="74">1.250</text>',
    ]).format(84, 0.77, 1.31)  # fmt: skip
    lines = search_svg(tuned(Tried("start", "a", same, False, ""))).splitlines()
    assert 'viewBox="0 0 1200 80"' in lines[0]
    assert 'aria-label="the search"' in lines[0]
    assert "\n".join(lines[3:-1]) == "\n".join([
        *HEAD,
        '<text x="8" y="54">start: a</text>',
        '<line class="edge" stroke-width="1.5" x1="748.9" y1="50" x2="840.6" y2="50"/>',
        '<circle class="bar" cx="795.0" cy="50" r="3"/>',
        '<text class="soft" x="1078" y="54">1.000</text>',
    ]).format(64, 0.94, 1.06)  # fmt: skip
