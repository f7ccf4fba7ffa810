"""extract and split: parts of models, which merge to the models again."""

from pathlib import Path
from typing import Literal

import onnx
import pytest

import tiered
from tests.conformance.cuts import fault
from tiered import Model, ModelError, UsageError
from tiered.testing import parse

MODELS = sorted((Path(__file__).parents[3] / "examples" / "models").glob("*.onnx"))
A = """(float[N,4] x) => (float[N,4] h, float[N,4] q) <float[4] w = {1,2,3,4}> {
    [n] h = Add(x, w)  q = Neg(h) }"""


def names(infos: object) -> list[str]:
    return [info.name for info in infos]  # type: ignore[attr-defined]  # a protobuf list


@pytest.mark.parametrize("path", MODELS, ids=lambda path: str(path.name))
@pytest.mark.parametrize("seed", range(3))
def test_random_parts_are_the_model_again(path: Path, seed: int) -> None:
    assert fault(path, seed) == ""


def test_extract_takes_files_protos_and_views(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    onnx.save(parse(A), path)
    view = Model.load(path)
    for model in (path, str(path), parse(A), view):
        made = tiered.extract(model, ["h"], ["q"])
        assert [node.op_type for node in made.graph.node] == ["Neg"]
    assert len(view.main.nodes) == 2
    with pytest.raises(UsageError, match="inputs takes a list of names, not 'h'"):
        tiered.extract(path, "h")
    with pytest.raises(UsageError, match="expected a path"):
        tiered.extract(3, ["h"])  # type: ignore[arg-type]  # the point


@pytest.mark.parametrize(
    ("text", "cuts"),
    [
        # Branches of one input: nothing is connected.
        ("(float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Relu(x)  z = Exp(x) }", ["y"]),
        # Branches of two inputs.
        ("(float[2] x, float[2] w) => (float[2] y, float[2] z) { y = Relu(x)  z = Exp(w) }", ["y"]),
        # The cut is an output, and read.
        ("(float[2] x) => (float[2] z, float[2] y) { y = Relu(x)  z = Exp(y) }", ["y"]),
        # What the first part makes is read by the last two.
        ("(float[2] x) => (float[2] d) { a = Neg(x)  b = Abs(a)  c = Exp(b)  d = Add(c, a) }",
         ["a", "b"]),
        # An input that a node without readers reads, and one that is an output.
        ("(float[2] u, float[2] x, float[2] v) => (float[2] v, float[2] y) {"
         " d = Neg(u)  a = Abs(x)  y = Exp(a) }", ["a"]),
        # A constant that is an output, and one that both parts read.
        ("(float[2] x) => (float[2] y, float c, float[2] z) {"
         " c = Constant<value_float = 2.0>()  k = Constant<value_float = 3.0>()"
         " a = Mul(x, k)  y = Mul(a, k)  z = Add(y, c) }", ["a"]),
    ],
)  # fmt: skip
def test_parts_are_the_model_again(text: str, cuts: list[str]) -> None:
    model = parse(text)
    parts = tiered.split(model, cuts)
    ways: tuple[Literal["names"] | None, ...] = (None, "names")
    for connect in ways:
        again = tiered.merge(*parts, connect=connect)
        assert names(again.graph.input) == names(model.graph.input)
        assert names(again.graph.output) == names(model.graph.output)
        assert not again.metadata_props
        hashes = [Model.from_proto(each).main.structural_hash() for each in (model, again)]
        assert hashes[0] == hashes[1]


def test_a_part_that_is_split_is_a_part_again() -> None:
    text = """(float[2] x) => (float[2] a, float[2] d) {
        a = Neg(x)  b = Abs(a)  c = Exp(b)  d = Neg(c) }"""
    first, second = tiered.split(parse(text), ["a"])
    halves = tiered.split(second, ["b"])
    again = tiered.merge(first, tiered.merge(*halves))
    assert names(again.graph.output) == ["a", "d"]
    assert not again.metadata_props
    # The outputs of one model are those of another no more.
    other = tiered.merge(first, parse("(float[2] a) => (float[2] y) { y = Abs(a) }"))
    assert names(other.graph.output) == ["y"]
    assert not other.metadata_props


def test_a_mark_that_cannot_be_read_is_an_error() -> None:
    first, second = tiered.split(parse(A), ["h"])
    first.metadata_props[0].value = "{"
    with pytest.raises(ModelError, match=r"'tiered.split' is not one that split writes"):
        tiered.merge(first, second)


def test_parts_pass_on_what_later_parts_read() -> None:
    text = """(float[2] x, float[2] u) => (float[2] y, float[2] a) {
        a = Neg(x)  b = Abs(a)  c = Add(b, a)  d = Mul(c, u)  y = Add(d, a) }"""
    parts = tiered.split(parse(text), ["b", ["d"]])
    assert [names(part.graph.input) for part in parts] == [["x"], ["b", "a", "u"], ["d", "a"]]
    assert [names(part.graph.output) for part in parts] == [["b", "a"], ["d"], ["y"]]
    with pytest.raises(UsageError, match="no node is left to compute a"):
        tiered.split(parse(text), ["b", "a"])
    with pytest.raises(UsageError, match="at least one"):
        tiered.split(parse(text), [])
