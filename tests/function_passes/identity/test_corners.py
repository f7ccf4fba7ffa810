"""What the passes of this folder do in corners: absent operands, unknown dims, first and last."""

from pathlib import Path

from tests.written import check_corners


def test_passes_do_what_is_written_down() -> None:
    check_corners(Path(__file__).with_name("corners.txt"))
