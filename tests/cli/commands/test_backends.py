import importlib.metadata
import json
from collections.abc import Callable

import pytest

from tests.cli.conftest import Cli
from tests.saturation import products_that
from tiered.runtime.byte_products import ByteProducts
from tiered.runtime.worker.client import Worker
from tiered.targets import known


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plug-in that gives a backend whose module is not there."""
    point = importlib.metadata.EntryPoint("brittle", "no_such_module:backend", known.ENTRY_POINTS)
    monkeypatch.setattr(known, "_plugged", lambda: {"brittle": point})


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("backends")


@pytest.mark.usefixtures("broken")
def test_a_broken_plug_in_is_listed_beside_the_others(cli: Cli) -> None:
    ended = cli("backends")
    assert ended.code == 0
    assert "onnxruntime_cpu" in ended.out
    assert "broken: backend 'brittle' cannot be loaded" in " ".join(ended.out.split())
    summaries = {entry["name"]: entry for entry in json.loads(cli("backends", "--json").out)}
    assert "No module named 'no_such_module'" in summaries["brittle"]["error"]
    assert summaries["onnxruntime_cpu"]["shapes"]


@pytest.mark.usefixtures("broken")
def test_a_broken_plug_in_that_is_asked_for_is_an_error(cli: Cli) -> None:
    ended = cli("backends", "brittle")
    assert ended.code == 2
    assert "no_such_module" in ended.err


@pytest.mark.parametrize(
    ("answer", "says"), [("exact", "exact"), ("saturate", "saturate (no VNNI)")]
)
def test_a_target_that_keeps_to_7_bits_says_whether_this_processor_needs_that(
    cli: Cli, answer: ByteProducts, says: str
) -> None:
    with products_that(answer):
        shown = cli("backends", "onnxruntime_cpu").out
        described = json.loads(cli("backends", "onnxruntime_cpu", "--json").out)
    assert f"  8-bit products on this processor: {says}\n" in shown
    assert described["byte_products"] == answer


def test_other_targets_run_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Worker, "open")
    assert "8-bit products" not in cli("backends", "qnn_htp").out
    assert "byte_products" not in json.loads(cli("backends", "qnn_htp", "--json").out)
