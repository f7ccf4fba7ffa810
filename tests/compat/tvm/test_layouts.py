"""ConvertLayout, as TVM writes it."""

from pathlib import Path

from tests.recorded import assert_values
from tiered.compat.tvm.layouts import ConvertLayout


def test_layouts_are_those_of_images() -> None:
    names = {"shown": lambda *args, **options: str(ConvertLayout(*args, **options))}
    assert_values(Path(__file__).with_suffix(".txt"), names)
