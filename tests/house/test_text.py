"""What no tracked text may hold."""

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import ROOT, text_files

# Folders that are somebody's machine, and hosts that are somebody's choice of package registry.
MACHINE_PATH = re.compile(r"(?<![\w.*-])/(?:home|Users|root|work|opt|mnt)/\w|\b[A-Z]:\\\w")
REGISTRY = re.compile(r"pypi\.org|pythonhosted\.org|anaconda\.org|npmjs\.\w+|conda\.io")
SUPPRESSION = re.compile(r"#\s*(?:noqa|type:\s*ignore)(?P<rest>.*)")
CODE_AND_REASON = re.compile(r"(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*|\[[\w, -]+\])\W+\w+.*")


def _hits(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in text_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_knows_the_machine_that_it_was_written_on() -> None:
    assert _hits(MACHINE_PATH) == []


def test_no_file_names_a_package_registry() -> None:
    assert _hits(REGISTRY) == []


def test_what_silences_a_checker_says_which_rule_and_why() -> None:
    bare = []
    for path in text_files():
        if path.suffix != ".py" or not SUPPRESSION.search(path.read_text(encoding="utf-8")):
            continue  # to read tokens takes long
        for line, comment in _comments(path):
            found = SUPPRESSION.search(comment)
            if found and not CODE_AND_REASON.match(found["rest"]):
                bare.append(f"{path.relative_to(ROOT)}:{line}: {comment}")
    assert bare == []


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
