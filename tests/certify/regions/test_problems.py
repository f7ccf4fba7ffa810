"""Problems of regions: sides, borders, constants, and integers that depend on dims alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.small import parsed
from tiered import Model
from tiered.certify.evaluation.values import Unproved
from tiered.certify.problem import Border
from tiered.certify.regions import problems
from tiered.certify.regions.problems import KnownSizes, problem_of, side_of, stored
from tiered.certify.regions.watched_rewrites import border_of
from tiered.certify.trial_sizes import TrialSizes
from tiered.graph.core.tensor import Tensor
from tiered.testing import parse
from tiered.verify.changed_region import RegionPair, changed_nodes, region_of
from tiered.verify.part_extraction import GraphPart

FLOAT, INT64 = int(onnx.TensorProto.FLOAT), int(onnx.TensorProto.INT64)
HEAD = "(float[N,3] x) => (float[?] y)"
# s is N, q is [3, N], and t is their product
SIZES = f"""{HEAD} <int64 zero = {{0}}, int64[1] one = {{1}}, int64[1] three = {{3}}> {{
    shape = Shape(x)  n = Gather(shape, zero)  s = Unsqueeze(n, one)  w = Squeeze(s)
    last = Slice(shape, one, three)  q = Concat<axis = 0>(last, shape)
    r = Reshape(x, q)  t = Mul(last, one)  m = ReduceMax(x)  k = Size(x)  y = Neg(r) }}"""


def part_of(text: str) -> tuple[GraphPart, Callable[[str], Border | None]]:
    model = parsed(text)
    return GraphPart.of(parse(text, opset=21)), lambda name: border_of(model, name)


def known(text: str) -> KnownSizes:
    return KnownSizes(*part_of(text))


def at(n: int) -> TrialSizes:
    made = TrialSizes((n,), 3)
    made["N"] = n
    return made


# --- integers that depend on dims alone -----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [("shape", [5, 3]), ("n", 5), ("last", [3]), ("q", [3, 5, 3]), ("t", [3]), ("k", 15),
     ("zero", 0)],
)  # fmt: skip
def test_integers_of_dims_are_known_at_sizes(name: str, expected: Any) -> None:
    text = SIZES.replace("s = Unsqueeze(n, one)", "s = Neg(n)")
    found = known(text).value(name, at(5))
    assert found is not None
    assert found.tolist() == expected


@pytest.mark.parametrize("name", ["x", "m", "y", "nowhere"])
def test_other_values_are_not_known(name: str) -> None:
    assert known(SIZES).value(name, at(5)) is None


def test_each_of_the_sizes_has_its_own_integers() -> None:
    given = known(SIZES)
    two, four = at(2), at(4)
    for sizes, expected in ((two, 2), (four, 4), (two, 2)):
        found = given.value("n", sizes)
        assert found is not None
        assert found == expected


def test_an_overridable_default_is_not_known() -> None:
    proto = parse("(float[2] x, int64[2] d) => (float[2] y) { s = Neg(d)  y = Neg(x) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.array([1, 2]), "d"))
    model = Model.from_proto(proto)
    given = KnownSizes(GraphPart.of(proto), lambda name: border_of(model, name))
    assert given.value("d", at(2)) is None
    assert given.value("s", at(2)) is None
    assert side_of(given.part, [*given.part.nodes], ["d"]).constants == {}


@pytest.mark.parametrize(("size", "is_known"), [(64, True), (65, False)])
def test_only_few_integers_are_known(size: int, is_known: bool) -> None:
    numbers = ",".join("1" for _ in range(size))
    head = f"(float[N] x) => (float[N] y) <int64[{size}] c = {{{numbers}}}>"
    text = f"{head} {{ s = Neg(c)  y = Neg(x) }}"
    given = known(text)
    assert (given.value("c", at(2)) is not None) is is_known
    assert (given.value("s", at(2)) is not None) is is_known


def test_what_is_computed_from_nothing_or_is_large_is_not_known() -> None:
    text = """(float[N] x) => (float[N] y) <int64[1] most = {64}, int64[1] more = {65}> {
        r = RandomNormal<shape = [2]>()  a = ConstantOfShape(most)  b = ConstantOfShape(more)
        s = SequenceEmpty()  y = Neg(x) }"""
    found = {name: known(text).value(name, at(2)) for name in "rabs"}
    assert [name for name, each in found.items() if each is not None] == ["a"]
    given = known(text).of([*"rabs"]).at(at(2))
    assert {name: each.shape for name, each in given.items()} == {"a": (64,)}


def test_long_chains_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def chain(length: int) -> str:
        nodes = " ".join(f"v{i + 1} = Neg(v{i})" for i in range(length))
        return f"(float[N] x) => (float[N] y) {{ v0 = Shape(x) {nodes} y = Neg(x) }}"

    found = known(chain(300)).value("v300", at(4))
    assert found is not None
    assert found.tolist() == [4]
    assert known(chain(410)).value("v410", at(4)) is None
    monkeypatch.setattr(problems, "_MOST_DEEP", 4)
    assert known(chain(3)).value("v3", at(4)) is not None
    assert known(chain(4)).value("v4", at(4)) is None


def test_what_has_no_shape_has_no_integers() -> None:
    text = "(float[2] x) => (float[?] y) { i = NonZero(x)  s = Shape(i)  y = Neg(x) }"
    part = GraphPart.of(parse(text))
    assert KnownSizes(part, lambda _: None).value("s", at(2)) is None
    assert KnownSizes(part, lambda name: Border(INT64, (-1,), name)).value("s", at(2)) is None
    fixed = KnownSizes(part, lambda name: Border(INT64, (1, 5), name)).value("s", at(2))
    assert fixed is not None
    assert fixed.tolist() == [1, 5]


def test_given_values_are_those_that_are_known() -> None:
    given = known(SIZES).of(["n", "m", "q"])
    sizes = at(5)
    found = given.at(sizes)
    assert {name: each.tolist() for name, each in found.items()} == {"n": 5, "q": [3, 5, 3]}
    assert given.at(sizes) is found
    assert known(SIZES).of([]).at(sizes) == {}


def test_a_later_value_of_the_same_name_is_another_one() -> None:
    given, sizes = known(SIZES), at(5)
    assert given.value("n", sizes) == 5
    number = given.part.producer["n"]
    given.part.exchange([number], {99: onnx.helper.make_node("Size", ["x"], ["n"])})
    assert given.value("n", sizes) == 15
    given.part.weights["c"] = first = Tensor.of(np.array([1]))
    assert given.value("c", sizes) == 1
    given.part.weights["c"] = Tensor.of(np.array([2]))
    assert given.value("c", sizes) == 2
    assert first is not given.part.weights["c"]


# --- problems -------------------------------------------------------------------------------------

BEFORE = f"""{HEAD} <float[3] w = {{1,2,3}}> {{
    shape = Shape(x)  a = Mul(x, w)  b = Neg(a)  r = Reshape(b, shape)  y = Neg(r) }}"""
AFTER = BEFORE.replace("Mul(x, w)", "Mul(w, x)").replace("Reshape(b, shape)", "Identity(b)")


def region(before: str = BEFORE, after: str = AFTER) -> RegionPair:
    sides = GraphPart.of(parse(before)), GraphPart.of(parse(after))
    found = region_of(sides, changed_nodes(sides))
    assert found is not None
    return found


def test_the_problem_of_a_region() -> None:
    _, types = part_of(BEFORE)
    given = KnownSizes(GraphPart.of(parse(BEFORE)), types)
    found = problem_of(region(), types, given)
    assert {name: str(border) for name, border in found.borders.items()} == {
        "x": "float[N,3]", "shape": "int64[2]", "b": "float[N,3]"
    }  # fmt: skip
    assert found.outputs == ("a", "r")
    assert found.opsets == {"": 21}
    assert [[node.op_type for node in side.nodes] for side in found.sides] == [
        ["Mul", "Reshape"], ["Mul", "Identity"]
    ]  # fmt: skip
    assert [list(side.constants) for side in found.sides] == [["w"], ["w"]]
    assert found.given.at(at(5))["shape"].tolist() == [5, 3]
    assert found.sizes == given.sizes


def test_a_border_without_a_type_has_no_problem() -> None:
    _, types = part_of(BEFORE)
    given = KnownSizes(GraphPart.of(parse(BEFORE)), types)
    with pytest.raises(Unproved, match="the type of x is not known"):
        problem_of(region(), lambda name: None if name == "x" else types(name), given)


def test_another_opset_has_no_problem() -> None:
    _, types = part_of(BEFORE)
    given = KnownSizes(GraphPart.of(parse(BEFORE)), types)
    found = region()
    found.sides[1].frame.opset_import[0].version = 20
    with pytest.raises(Unproved, match="an opset changed"):
        problem_of(found, types, given)
    found.sides[1].frame.opset_import[0].version = 21
    found.sides[1].frame.opset_import.add(domain="own", version=1)
    assert problem_of(found, types, given).opsets == {"": 21, "own": 1}
    found.sides[0].frame.opset_import.add(domain="first", version=2)
    assert problem_of(found, types, given).opsets == {"": 21, "own": 1, "first": 2}


def test_only_vectors_and_numbers_of_integers_may_be_sizes() -> None:
    asked: list[str] = []

    class Asked(KnownSizes):
        def of(self, names: Any) -> Any:
            asked.extend(names)
            return super().of(names)

    before = """(int64[2] i, int64[2,2] m, float[2] f, int32 n, bool b, int8 e, int64[] u)
        => (float[?] y) { y = own.Op(i, m, f, n, b, e, u) }"""
    after = before.replace("own.Op", "own.Other")
    head = '<ir_version: 10, opset_import: ["": 21, "own": 1]> g'
    protos = [onnx.parser.parse_model(f"{head} {text}") for text in (before, after)]
    model, sides = Model.from_proto(protos[0]), [*map(GraphPart.of, protos)]
    made = region_of((sides[0], sides[1]), changed_nodes((sides[0], sides[1])))
    assert made is not None
    given = Asked(sides[0], lambda name: border_of(model, name))
    problem_of(made, lambda name: border_of(model, name), given)
    assert asked == ["i", "n", "b"]


def test_a_side_has_its_nodes_in_order_and_the_constants_that_it_reads() -> None:
    part, _ = part_of(BEFORE)
    side = side_of(part, {2, 1}, ["b"])
    assert [node.op_type for node in side.nodes] == ["Mul", "Neg"]
    assert list(side.constants) == ["w"]
    assert side_of(part, {2}, ["b"]).constants == {}
    assert list(side_of(part, (), ["w"]).constants) == ["w"]
    assert side.functions == {}
    held = stored(part, "w")
    assert held.numpy().tolist() == [1, 2, 3]
    part.weights["w"] = held
    assert stored(part, "w") is held
