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


def test_what_is_wrong_is_said_with_what_is_expected() -> None:
    spelling, kept = (
        "expected a name and dims, as in x:1,3,224,224",
        ", a name, or ? to keep the dim",
    )
    for entry, message in {
        "x": f"--input-shape 'x': {spelling}",
        "x:1 x:2": "--input-shape: 'x' is given twice",
        "x:1,0": f"--input-shape 'x:1,0': '0' is not a dim; expected a size from 1 on{kept}",
        "x:a;": f"--input-shape 'x:a;': 'a;' is not a dim; expected a size from 1 on{kept}",
    }.items():
        with pytest.raises(UsageError) as caught:
            parse_shapes([entry])
        assert str(caught.value) == message
    for entry in ("x", "x:1 x:2", "x:1,0"):
        with pytest.raises(UsageError, match=r"^input_shapes"):
            parse_shapes([entry], "input_shapes")
    for entry, message in {
        "=1": "--dim takes NAME=SIZE, not '=1'",
        "a": "--dim takes NAME=SIZE, not 'a'",
        "a=1, a=2": "--dim: 'a' is given twice",
        "a=0": "--dim 'a=0': '0' is not a dim; expected a size from 1 on or a name",
        "a=?": "--dim 'a=?': '?' is not a dim; expected a size from 1 on or a name",
    }.items():
        with pytest.raises(UsageError) as caught:
            parse_dims([entry])
        assert str(caught.value) == message
    assert parse_shapes(["x:*,1,?,-1 y:2"]) == {"x": [-1, 1, -1, -1], "y": [2]}
    assert parse_shapes(["x:1, 3  y:4 ,5"]) == {"x": [1, 3], "y": [4, 5]}
