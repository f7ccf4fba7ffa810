"""One spelling in identifiers, that of ONNX: quantize. Prose is British."""

import io
import tokenize
from pathlib import Path

from tests.house.tree import PACKAGE


def _identifiers(path: Path) -> set[str]:
    text = io.StringIO(path.read_text(encoding="utf-8"))
    tokens = tokenize.generate_tokens(text.readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


def test_identifiers_have_the_spelling_of_onnx() -> None:
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]
    found = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted(files)
        for name in _identifiers(path)
        if "quantis" in name.lower()
    }
    assert found == set()
