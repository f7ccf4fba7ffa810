"""The mark of a part says what the whole model is, and goes when all parts are there."""

import json

import pytest

from tests.small import parsed
from tiered import ModelError
from tiered.graph import Model
from tiered.pipeline.compose.split_mark import (
    KEY,
    SplitMark,
    finish,
    joined,
    mark_of,
    mark_text,
    write_marks,
)

MARK = SplitMark(["x"], ["y"], {"h": [1, 2]}, 3, [0], "")
PARTS = (
    "(float[2] x) => (float[2] h, float[2] k) { h = Neg(x)  k = Abs(x) }",
    "(float[2] h) => (float[2] y) { y = Abs(h) }",
    "(float[2] h, float[2] k, float[2] w) => (float[2] z) { z = Sum(h, k, w) }",
)


def marked(text: str) -> Model:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    model.skeleton.metadata_props.add(key="other", value="stays")
    if text:
        model.skeleton.metadata_props.add(key=KEY, value=text)
    return model


def test_a_mark_is_read_as_it_is_written() -> None:
    model = marked(MARK.written())
    assert mark_text(model) == MARK.written()
    assert mark_of(model) == MARK
    assert " " not in MARK.written()
    assert mark_of(marked("")) is None
    assert mark_text(marked("")) == ""


OTHERS: list[dict[str, object]] = [
    {"inputs": 1}, {"inputs": [1]}, {"inputs": "x"}, {"outputs": [None]}, {"outer": 1},
    {"readers": []}, {"readers": {"a": 1}}, {"readers": {"a": ["b"]}},
    {"parts": ["0"]}, {"parts": 0}, {"total": "2"},
]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", '{"inputs": []}', '{"odd": 1}', "3"),
        *(json.dumps({**MARK._asdict(), **other}) for other in OTHERS),
    ],
)
def test_a_mark_that_nobody_wrote_is_an_error(text: str) -> None:
    with pytest.raises(ModelError, match=r"entry 'tiered\.split' is not one that split writes"):
        mark_of(marked(text))


@pytest.mark.parametrize(
    ("parts", "expected"), [([0], True), ([0, 1], True), ([1, 2], False), ([0, 1, 2], False)]
)
def test_a_tensor_is_kept_while_parts_are_to_come_that_read_it(
    parts: list[int], expected: bool
) -> None:
    mark = MARK._replace(parts=parts)
    assert mark.keeps("h") is expected
    assert mark.keeps("y")  # an output of the whole
    assert not mark.keeps("nothing")
    assert mark.is_whole is (len(parts) == 3)


def test_parts_of_one_split_join() -> None:
    one, two = MARK, MARK._replace(parts=[2, 1])
    assert joined(one, two) == MARK._replace(parts=[0, 1, 2])
    assert joined(one, None) is None
    assert joined(None, two) is None
    assert joined(one, one) is None
    assert joined(one, two._replace(parts=[0, 2])) is None
    assert joined(one, two._replace(total=4)) is None
    assert joined(one, two._replace(outer="other")) is None


def test_each_part_is_marked_with_its_number_and_the_readers_of_the_cuts() -> None:
    parts = [parsed(text) for text in PARTS]
    parts[0].skeleton.metadata_props.add(key="other", value="stays")
    write_marks(parts, ["x", "w"], ["y", "z"], "outer")
    marks = [mark_of(part) for part in parts]
    assert [mark.parts for mark in marks if mark] == [[0], [1], [2]]
    for mark in marks:
        assert mark is not None
        assert (mark.inputs, mark.outputs) == (["x", "w"], ["y", "z"])
        assert (mark.readers, mark.total, mark.outer) == ({"h": [1, 2], "k": [2]}, 3, "outer")
    assert [entry.key for entry in parts[0].skeleton.metadata_props] == ["other", KEY]


WHOLE = """(float[2] b, float[2] a) => (float[2] h, float[2] z, float[2] y) {
    h = Neg(a)  y = Add(h, b)  z = Abs(h) }"""


@pytest.mark.parametrize(("keep", "outputs"), [(False, ["y", "z"]), (True, ["y", "z", "h"])])
def test_the_model_of_all_parts_has_the_interface_of_the_whole(
    keep: bool, outputs: list[str]
) -> None:
    model = parsed(WHOLE)
    mark = SplitMark(["a", "b"], ["y", "z"], {"h": [1]}, 2, [0, 1], "")
    finish(model, mark, keep=keep)
    assert [value.name for value in model.main.inputs] == ["a", "b"]
    assert [value.name for value in model.main.outputs] == outputs
    assert mark_text(model) == ""
    model.check_view()


def test_a_whole_that_is_a_part_itself_has_its_mark_again() -> None:
    model = parsed(WHOLE)
    outer = MARK.written()
    finish(model, SplitMark(["a", "b"], ["y", "z"], {}, 1, [0], outer), keep=False)
    assert mark_of(model) == MARK


def test_some_parts_keep_a_mark_and_their_interface() -> None:
    model = parsed(WHOLE)
    mark = SplitMark(["a", "b"], ["y", "z"], {"h": [1]}, 3, [0, 1], "")
    finish(model, mark, keep=False)
    assert mark_of(model) == mark
    assert [value.name for value in model.main.outputs] == ["h", "z", "y"]


def test_a_model_of_no_parts_has_no_mark() -> None:
    model = marked(MARK.written())
    finish(model, None, keep=False)
    assert mark_of(model) is None
    assert [entry.key for entry in model.skeleton.metadata_props] == ["other"]
