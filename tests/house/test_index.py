"""The index of passes says what their files say."""

from pathlib import Path

from tiered.passes.index.build import PATH, index_text


def test_the_index_is_what_the_files_of_the_passes_say() -> None:
    kept, now = (text.split("\n\n") for text in (Path(PATH).read_text(), index_text()))
    others = {entry.split('"')[1] for entry in set(kept) ^ set(now)}
    assert kept == now, f"{', '.join(sorted(others))} changed: `make index` writes the index anew"


def test_the_lines_of_the_index_are_short_but_for_the_types_of_options() -> None:
    lines = Path(PATH).read_text().splitlines()
    assert [line for line in lines if len(line) > 100 and "Literal[" not in line] == []
