"""What `convert_layout` makes of small models: the whole result, as expressions of operators."""

from pathlib import Path

from tests.written import check_corners


def test_models_are_converted_as_is_written_down() -> None:
    check_corners(Path(__file__).with_name("corners.txt"))
