"""The types and elements of corner cases: all values of a model, beside the text of it."""

from pathlib import Path

from tests.graph.shape_inference.typed import known_of
from tests.recorded import assert_recorded


def test_what_is_known_of_each_value() -> None:
    assert_recorded(Path(__file__).with_name("variants.txt"), {"=": known_of})
