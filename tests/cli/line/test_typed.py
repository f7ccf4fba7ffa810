"""The command line that pages say they were made by."""

import pytest

from tiered.cli.line.typed import typed_line, typing


@pytest.mark.parametrize(
    ("tokens", "line"),
    [
        ([], ""),
        (["a.onnx"], "tiered a.onnx"),
        (["a b.onnx", "--html", "p.html", "-O3"], "tiered 'a b.onnx' -O3"),
        (["a.onnx", "--html=p.html", "--htmls", "x"], "tiered a.onnx --htmls x"),
        (["a.onnx", "--html"], "tiered a.onnx"),
        (["--html", "p.html"], ""),
    ],
)
def test_the_option_of_the_page_itself_is_left_out(tokens: list[str], line: str) -> None:
    with typing(tokens):
        assert typed_line("--html") == line
    assert typed_line("--html") == ""
