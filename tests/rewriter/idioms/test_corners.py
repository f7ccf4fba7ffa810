"""What passes make of models with the modules of this folder, in corners."""

from pathlib import Path

from tests.written import check_corners


def test_models_become_what_is_written_down() -> None:
    check_corners(Path(__file__).with_name("corners.txt"))
