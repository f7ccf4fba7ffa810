"""The name of the processor."""

import platform
from pathlib import Path

import pytest

from tiered.support import processor


def test_the_name_of_the_processor_is_that_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = tmp_path / "cpuinfo"
    monkeypatch.setattr(processor, "_FACTS", facts)
    monkeypatch.setattr(platform, "processor", lambda: "another")
    assert processor.processor_name() == "another"
    for text, name in (
        ("vendor_id : V\nmodel name\t: Fast CPU\nmodel name : Two\n", "Fast CPU"),
        ("vendor_id : V\n", "another"),
        ("model name : \n", "another"),
    ):
        facts.write_text(text, encoding="utf-8")
        assert processor.processor_name() == name
