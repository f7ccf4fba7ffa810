"""One spelling in identifiers, that of ONNX: quantize. Prose is British."""

import io
import tokenize
from pathlib import Path

from tests.house.tree import PACKAGE

OTHER = "quantis"


def _identifiers(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    if OTHER not in text.lower():  # to read tokens takes long
        return set()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


def test_identifiers_have_the_spelling_of_onnx() -> None:
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]
    found = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted(files)
        for name in _identifiers(path)
        if OTHER in name.lower()
    }
    assert found == set()
