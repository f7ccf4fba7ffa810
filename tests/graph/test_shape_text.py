"""Shapes and dims as text, in all the spellings that people know."""

import pytest

from tiered.graph.shape_text import parse_dims, parse_shapes
from tiered.support.errors import UsageError


@pytest.mark.parametrize(
    ("entries", "shapes"),
    [
        (["x:1,3,224,224"], {"x": [1, 3, 224, 224]}),
        (["x=1,3"], {"x": [1, 3]}),
        (["x:[1, 3]"], {"x": [1, 3]}),
        (["x:batch,?,-1"], {"x": ["batch", -1, -1]}),
        (["input:0:1,3"], {"input:0": [1, 3]}),
        (["x:1,3 y:2"], {"x": [1, 3], "y": [2]}),
        (["x:1", "y=2"], {"x": [1], "y": [2]}),
        (["x:"], {"x": []}),
    ],
)
def test_spellings(entries: list[str], shapes: dict[str, list[int | str]]) -> None:
    assert parse_shapes(entries) == shapes


@pytest.mark.parametrize(
    "entry",
    [
        *("1,3", "x", "x:1,,3", "x:1;3 :", "x:1 x:2", "x:2.5,3", "x:16;", "x:None", "x:0", "x:-2"),
        *("x:1e3", "x:nan", "x:1,16;,3", "x:batch;"),
    ],
)
def test_what_is_no_shape_is_a_usage_error(entry: str) -> None:
    with pytest.raises(UsageError, match="--input-shape"):
        parse_shapes([entry])


def test_dims_are_sizes_or_names() -> None:
    assert parse_dims(["batch=1, seq=128", "n=m"]) == {"batch": 1, "seq": 128, "n": "m"}
    wrong = {"batch": "takes NAME=SIZE", "a=1,a=2": "'a' is given twice", "a=0": "'0' is not a dim"}
    for entry, message in wrong.items():
        with pytest.raises(UsageError, match=message):
            parse_dims([entry])
