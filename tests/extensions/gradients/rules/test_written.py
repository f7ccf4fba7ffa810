"""The whole gradients of small models, operator by operator, as `written.txt` has them.

A model is its opset and its text. The lines after it are the gradients of its inputs, each one
expression: `#0=` numbers a node that is read again, `{x -> y}` is a body. Where there is no
gradient, the line is the error.
"""

from pathlib import Path

from tests.extensions.gradients.written import adjoints


def test_gradients_are_as_they_are_written_down() -> None:
    expected: list[tuple[str, list[str]]] = []
    for line in Path(__file__).with_name("written.txt").read_text().splitlines():
        if line.startswith("  "):
            expected[-1][1].append(line.strip())
        else:
            expected.append((line, []))
    for model, gradients in expected:
        opset, _, text = model.partition(" ")
        assert adjoints(text, int(opset)) == gradients, model
