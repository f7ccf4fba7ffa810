"""The index of passes says what their files say."""

from pathlib import Path

from tiered.passes.index.build import PATH, index_text


def test_the_index_is_what_the_files_of_the_passes_say() -> None:
    kept, now = (text.splitlines() for text in (Path(PATH).read_text(), index_text()))
    others = {line.split('"')[1] for line in set(kept) ^ set(now) if '"' in line}
    assert kept == now, f"{', '.join(sorted(others))} changed: `make index` writes the index anew"
