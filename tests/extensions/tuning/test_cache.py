"""The cache of gains: by decision, blocks, form and machine; and what is no cache."""

import json
from pathlib import Path

import pytest

from tests.extensions.tuning.fakes import O2, O3, without
from tiered.extensions.measurement.medians import MedianInterval
from tiered.extensions.tuning.cache import GainCache
from tiered.extensions.tuning.model_forms import Choice, ModelForm
from tiered.extensions.tuning.race import Gain
from tiered.support.errors import ModelError

GAIN = Gain(MedianInterval(0.9, 0.95, 0.99, 0.998), 14, "better")


def test_searches_at_the_same_time_keep_each_others_gains(tmp_path: Path) -> None:
    gain = Gain(MedianInterval(0.9, 0.9, 0.9, 1.0), 4, "better")
    one, two = GainCache(str(tmp_path), "here"), GainCache(str(tmp_path), "here")
    one.keep(O3, without("a", "h1"), gain)
    two.keep(O3, without("b", "h1"), gain)
    one.save()
    two.save()
    after = GainCache(str(tmp_path), "here")
    assert [after.gain(O3, without(name, "h1")) for name in "ab"] == [gain, gain]


def test_a_cache_that_is_none_is_an_error(tmp_path: Path) -> None:
    cache = GainCache(str(tmp_path), "here")
    cache.save()
    (path,) = tmp_path.iterdir()
    for text in ("{", "[]", '{"format": 1, "gains": {"a": [1, 1]}}',
                 '{"format": 1, "gains": {"a": ["x", 1, 1, 1, 4, "better"]}}'):  # fmt: skip
        path.write_text(text)
        with pytest.raises(ModelError, match="no cache of tiered; delete it"):
            GainCache(str(tmp_path), "here")
    with pytest.raises(ModelError, match="--cache"):
        GainCache(str(path / "below"), "here")


def kept(folder: Path, form: ModelForm = O3, *choices: Choice, gain: Gain = GAIN) -> GainCache:
    """Save gains of decisions, and return the cache read again."""
    cache = GainCache(str(folder), "here")
    for choice in choices:
        cache.keep(form, choice, gain)
    cache.save()
    return GainCache(str(folder), "here")


def test_a_gain_comes_back_as_it_was_and_is_counted(tmp_path: Path) -> None:
    cache = kept(tmp_path, O3, without("a", "h1"))
    assert cache.hits == 0
    assert cache.gain(O3, without("a", "h1")) == GAIN
    assert cache.gain(O3, without("b", "h1")) is None
    assert cache.hits == 1


@pytest.mark.parametrize("verdict", ["better", "worse", "no difference"])
def test_verdicts_are_kept(tmp_path: Path, verdict: str) -> None:
    gain = Gain(GAIN.ratio, 4, verdict)
    assert kept(tmp_path, O3, without("a", "h"), gain=gain).gain(O3, without("a", "h")) == gain


def test_undecided_gains_and_those_without_blocks_are_measured_again(tmp_path: Path) -> None:
    undecided = Gain(GAIN.ratio, 4, "undecided")
    assert kept(tmp_path, O3, without("a", "h"), gain=undecided).gain(O3, without("a", "h")) is None
    assert kept(tmp_path, O3, without("a")).gain(O3, without("a")) is None


OTHERS = {
    "level": (O2, without("a", "h1", "h2"), "here"),
    "backend": (ModelForm(3, "npu"), without("a", "h1", "h2"), "here"),
    "blocks": (O3, without("a", "h1"), "here"),
    "order of blocks": (O3, without("a", "h2", "h1"), "here"),
    "decision": (O3, Choice("with a", required=("a",), blocks=("h1", "h2")), "here"),
    "edit": (O3, Choice("edit", edits=("drop a",), blocks=("h1", "h2")), "here"),
    "machine": (O3, without("a", "h1", "h2"), "elsewhere"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_gain_is_of_its_form_blocks_decision_and_machine(tmp_path: Path, other: str) -> None:
    kept(tmp_path, O3, without("a", "h1", "h2"))
    form, choice, machine = OTHERS[other]
    assert GainCache(str(tmp_path), machine).gain(form, choice) is None


def test_names_of_nodes_do_not_count(tmp_path: Path) -> None:
    cache = kept(tmp_path, O3, without("fuse_gelu@n1", "h1"))
    assert cache.gain(O3, without("fuse_gelu@other", "h1")) == GAIN
    assert cache.gain(ModelForm(3, disabled=("x",)), without("fuse_gelu@n1", "h1")) == GAIN


def test_without_a_folder_nothing_is_written(tmp_path: Path) -> None:
    cache = GainCache(None, "here")
    cache.keep(O3, without("a", "h1"), GAIN)
    cache.save()
    assert cache.gain(O3, without("a", "h1")) == GAIN
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_made_and_the_file_says_what_it_is(tmp_path: Path) -> None:
    kept(tmp_path / "a" / "b", O3, without("b", "h1"), without("a", "h1"))
    (path,) = (tmp_path / "a" / "b").iterdir()
    found = json.loads(path.read_text())
    assert (found["format"], found["machine"]) == (1, "here")
    assert list(found["gains"]) == ["3  without a at h1", "3  without b at h1"]
    assert found["gains"]["3  without a at h1"] == [0.9, 0.95, 0.99, 0.998, 14, "better"]


def test_a_file_of_another_version_is_forgotten(tmp_path: Path) -> None:
    kept(tmp_path, O3, without("a", "h1"))
    (path,) = tmp_path.iterdir()
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    assert GainCache(str(tmp_path), "here").gain(O3, without("a", "h1")) is None


@pytest.mark.parametrize(
    "text",
    ['{"gains": {}}', '{"format": 1}', '{"format": 1, "gains": []}',
     '{"format": 1, "gains": {"a": 3}}', '{"format": 1, "gains": {"a": []}}',
     '{"format": 1, "gains": {"a": [1, 1, 1, 1, 4, "undecided"]}}',
     '{"format": 1, "gains": {"a": [1, 1, 1, 1, 4, 5, "better"]}}',
     '{"format": 1, "gains": {"a": [1, 1, 1, null, 4, "better"]}}'],
)  # fmt: skip
def test_a_file_that_is_no_cache_is_an_error(tmp_path: Path, text: str) -> None:
    kept(tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(text)
    with pytest.raises(ModelError, match="is no cache of tiered; delete it"):
        GainCache(str(tmp_path), "here")


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(ModelError, match=r"--cache '.*f'"):
        GainCache(str(tmp_path / "f"), "here")
