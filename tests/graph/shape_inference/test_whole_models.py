"""What is inferred of whole models, with bodies, functions and declarations, as text."""

from pathlib import Path

from tests.graph.shape_inference.typed import inferred_of
from tests.recorded import assert_recorded


def test_what_is_known_of_all_values() -> None:
    assert_recorded(Path(__file__).with_name("whole_models.txt"), {"=": inferred_of})
