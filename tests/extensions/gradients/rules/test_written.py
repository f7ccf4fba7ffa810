"""The whole gradients of small models, operator by operator, as `written.txt` has them.

A model is its opset and its text. The lines after it are the gradients of its inputs, each one
expression: `#0=` numbers a node that is read again, `{x -> y}` is a body. Where there is no
gradient, the line is the error.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.extensions.gradients.written import adjoints
from tests.recorded import assert_recorded


def _gradients(opset: int, text: str, _: list[str]) -> Iterator[str]:
    return (f"  {line}" for line in adjoints(text, opset))


def test_gradients_are_as_they_are_written_down() -> None:
    said = {str(opset): partial(_gradients, opset) for opset in range(7, 27)}
    assert_recorded(Path(__file__).with_name("written.txt"), said)
