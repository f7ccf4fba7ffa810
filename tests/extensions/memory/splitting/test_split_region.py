"""The nodes that are computed in parts: what is inside, what is not, and how long it takes."""

import pytest

from tests.extensions.memory.graphs import ATTENTION, fan_out
from tiered import Model
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory.splitting import split_region as module
from tiered.extensions.memory.splitting.split_region import (
    MOST_NODES,
    SearchWork,
    SplitRegion,
    region_around,
)
from tiered.rewriter import Skip
from tiered.testing import parse

SIZES = LayoutSizes()


def found(text: str, name: str, axis: int) -> SplitRegion | Skip:
    return region_around(Model.from_proto(parse(text)).main.values[name], axis, SIZES)


def region_of(text: str, name: str, axis: int) -> SplitRegion:
    region = found(text, name, axis)
    assert isinstance(region, SplitRegion), region
    return region


def nodes(region: SplitRegion) -> dict[str, int]:
    """Return the axis of each node, by the name of its output."""
    return {node.output.name: cut.axis for node, cut in region.nodes.items()}


def inner(region: SplitRegion) -> dict[str, int]:
    return {value.name: axis for value, axis in region.inner.items()}


@pytest.mark.parametrize(
    ("text", "name", "axis", "because"),
    [
        (ATTENTION, "q", 0, "it is an input"),
        (ATTENTION, "y", 0, "it is an output"),
        (ATTENTION, "s", 1, "p (Softmax) needs all of it"),
        (ATTENTION, "p", 1, "p (Softmax) has no parts along axis 1"),
        (ATTENTION.replace("MatMul(p, v)", "Softmax<axis=0>(p)").replace("8,4] y", "8,64] y"),
         "p", 0, "needs all of it"),
        (
            "(float[4,4] x) => (float[4,4] y) { a = Tanh(x) b = Softmax<axis=0>(a) y = Add(a, b) }",
            "a", 0, "needs all of it",
        ),
        (
            "(float[4] x, bool c) => (float[4] y) { a = Tanh(x) y = If(c) <"
            "then_branch = t () => (float[4] p) { p = Sin(a) }, "
            "else_branch = f () => (float[4] q) { q = Cos(a) }> }",
            "a", 0, "a body reads it",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_inside_has_a_reason(text: str, name: str, axis: int, because: str) -> None:
    found = region_around(Model.from_proto(parse(text)).main.values[name], axis, SIZES)
    assert not isinstance(found, SplitRegion)
    assert because in str(found)


def test_the_work_around_a_tensor_is_linear_in_the_readers_of_its_neighbour() -> None:
    used = []
    for users in (200, 400):
        work = SearchWork(1 << 40)
        region_around(fan_out(users).main.values["m0"], 0, SIZES, work)
        used.append((1 << 40) - work.left)
    assert used[1] < 2.5 * used[0]


def test_a_tensor_is_inside_with_its_producer_and_its_readers() -> None:
    text = "(float[8,4] x) => (float[8,4] y) { a = Tanh(x)  b = Sin(a)  y = Softmax(b) }"
    region = region_of(text, "a", 0)
    assert inner(region) == {"a": 0, "b": 0}
    assert nodes(region) == {"a": 0, "b": 0, "y": 0}
    assert [value.name for value in region.results()] == ["y"]
    assert [value.name for value in region.border()] == ["x", "y"]


def test_along_an_axis_that_a_reader_needs_whole_the_region_ends_before_it() -> None:
    text = "(float[8,4] x) => (float[8,4] y) { a = Tanh(x)  b = Sin(a)  y = Softmax(b) }"
    region = region_of(text, "a", 1)
    assert inner(region) == {"a": 1}
    assert [value.name for value in region.results()] == ["b"]


def test_the_axis_follows_what_moves_it() -> None:
    text = """(float[2,8,4] x) => (float[4,2,8] y) {
        a = Tanh(x)  t = Transpose<perm=[2,0,1]>(a)  y = Sin(t) }"""
    assert inner(region_of(text, "a", 1)) == {"a": 1, "t": 2}


@pytest.mark.parametrize(("small", "is_inside"), [(4, False), (5, True)])
def test_neighbours_of_more_than_half_of_its_size_are_inside(
    small: int, *, is_inside: bool
) -> None:
    text = f"""(float[6,8] x) => (float[6,{small}] y) <float[8,{small}] w = {{W}}> {{
        a = Tanh(x)  b = MatMul(a, w)  y = Sin(b) }}""".replace("W", ",".join(["1"] * 8 * small))
    assert ("b" in inner(region_of(text, "a", 0))) == is_inside


def test_weights_and_inputs_are_at_no_border_inside() -> None:
    region = region_of(ATTENTION, "s", 0)
    assert [value.name for value in region.border()] == ["q", "k", "v", "y"]
    assert inner(region) == {"s": 0, "p": 0}


def test_equal_regions_have_equal_keys() -> None:
    model = Model.from_proto(parse(ATTENTION))
    one, other = (region_around(model.main.values[name], 0, SIZES) for name in ("s", "p"))
    assert isinstance(one, SplitRegion)
    assert isinstance(other, SplitRegion)
    assert one.key == other.key
    assert SplitRegion().key == frozenset()


def test_a_path_that_leaves_and_returns_is_taken_in_or_refused() -> None:
    text = """(float[8,4] x) => (float[8,4] y) {
        a = Tanh(x)  b = Sin(a)  c = CODE  y = Add(b, c) }"""
    # c is beside: with it inside no path returns.
    assert "c" in inner(region_of(text.replace("CODE", "Cos(a)"), "a", 0))
    # Softmax needs whole columns, so that the region is cut along rows only.
    assert isinstance(found(text.replace("CODE", "Softmax<axis=0>(a)"), "a", 0), Skip)
    assert "c" in inner(region_of(text.replace("CODE", "Softmax<axis=0>(a)"), "a", 1))


def test_a_region_that_can_grow_no_more_is_the_last_closed_one() -> None:
    text = """(float[8,4] x) => (float[8,4] y) {
        a = Tanh(x)  b = Sin(a)  c = Softmax<axis=0>(b)  y = Add(b, c) }"""
    region = region_of(text, "a", 0)
    assert inner(region) == {"a": 0}
    assert [value.name for value in region.results()] == ["b"]


@pytest.mark.parametrize(("readers", "fits"), [(3, True), (4, False)])
def test_a_region_has_so_many_nodes_at_most(
    readers: int, monkeypatch: pytest.MonkeyPatch, *, fits: bool
) -> None:
    assert MOST_NODES == 64
    monkeypatch.setattr(module, "MOST_NODES", 4)
    result = region_around(fan_out(readers).main.values["a"], 0, SIZES)
    assert isinstance(result, SplitRegion) == fits
    if not fits:
        assert str(result) == "more than 4 nodes belong to it"


def test_work_is_counted_down() -> None:
    work = SearchWork(3)
    assert work.spend(3)
    assert not work.spend(1)
    assert work.left == -1


def test_without_work_a_region_grows_no_more() -> None:
    text = "(float[8,4] x) => (float[8,4] y) { a = Tanh(x)  b = Sin(a)  c = Cos(b)  y = Neg(c) }"
    model = Model.from_proto(parse(text))
    small = region_around(model.main.values["a"], 0, SIZES, SearchWork(2))
    whole = region_around(model.main.values["a"], 0, SIZES)
    assert isinstance(whole, SplitRegion)
    assert inner(whole) == {"a": 0, "b": 0, "c": 0}
    assert isinstance(small, Skip) or len(small.inner) < 3


def test_what_is_inside_how_each_node_is_cut_and_the_border() -> None:
    for text, name, axis, expected in (
        ("(float[8,4] x) => (float[8,4] y) { a = Tanh(x) y = Sin(a) }",
         "a", 0, "a:0 | a:0 y:0 | y | x y"),
        ("(float[8,4] x) => (float[8,4] y) { a = Tanh(x) y = Sin(a) }",
         "a", 1, "a:1 | a:1 y:1 | y | x y"),
        ("(float[8,4] x) => (float[8,4] y) { a = Tanh(x) y = Add(a, a) }",
         "a", 0, "a:0 | a:0 y:0 | y | x y"),
        ("(float[8,4] x) => (float[8,4] y) { a = Tanh(x) t = Transpose(a) y = Transpose(t) }",
         "a", 0, "a:0 t:1 | a:0 t:1 y:0 | y | x y"),
        ("(float[4,4] x) => (float[4,4] y) { a = Tanh(x) t = Transpose(a) y = Add(a, t) }",
         "a", 0, "a path leaves the region at 't' and returns"),
        ("(float[8,4] x) => (float[8,4] y) { a = Tanh(x) b = Softmax<axis=0>(a) y = Add(a, b) }",
         "a", 0, "b (Softmax) needs all of it"),
        ("(float[8,4] x) => (float[8,4] y) { a = Tanh(x) b = Softmax<axis=0>(a) y = Add(a, b) }",
         "a", 1, "a:1 b:1 | a:1 b:1 y:1 | y | x y"),
        ("(float[8,4] x, float[4,16] w) => (float[8,16] y) { a = Tanh(x) y = MatMul(a, w) }",
         "a", 0, "a:0 | a:0 y:0 | y | x w y"),
        ("(float[8,4] x, float[4,16] w) => (float[8,16] y) { a = Tanh(x) y = MatMul(a, w) }",
         "a", 1, "y (MatMul) needs all of it"),
        ("(float[8,4] x) => (float[8,4] y, float[8,4] a) { a = Tanh(x) y = Sin(a) }",
         "a", 0, "it is an output"),
        ("(float[8,4] x) => (float[8] y) <int64[1] k = {1}> { a = Tanh(x) y = "
         "ReduceSum<keepdims=0>(a, k) }",
         "a", 0, "a:0 | a:0 y:0 | y | x y"),
        ("(float[8,4] x) => (float[8] y) <int64[1] k = {1}> { a = Tanh(x) y = "
         "ReduceSum<keepdims=0>(a, k) }",
         "a", 1, "y (ReduceSum) needs all of it"),
        ("(float[1,4] x) => (float[1,4] y) { a = Tanh(x) y = Sin(a) }",
         "a", 0, "y (Sin) needs all of it"),
        ("(float[N,4] x) => (float[N,4] y) { a = Tanh(x) y = Sin(a) }",
         "a", 0, "a (Tanh) has no parts along axis 0"),
        ("(float[N,4] x) => (float[N,4] y) { a = Tanh(x) y = Sin(a) }",
         "a", 1, "a (Tanh) has no parts along axis 1"),
        ("(float[8,6] x) => (float[8,6] y) { a = Tanh(x) b, c = Split<axis=1, num_outputs=2>(a) "
         "y = Concat<axis=1>(c, b) }",
         "a", 0, "b (Split) needs all of it"),
        ("(float[8,6] x) => (float[8,3] y) { a = Tanh(x) y, c = Split<axis=1, num_outputs=2>(a) }",
         "a", 0, "a:0 | a:0 y:0 | y | x y"),
        ("(float[8,4] x, float[8,4] z) => (float[8,4] y) { a = Tanh(x) b = Sin(z) c = Add(a, b) "
         "d = Cos(c) y = Mul(d, b) }",
         "a", 0, "a:0 b:0 c:0 d:0 | a:0 c:0 b:0 y:0 d:0 | y | x z y"),
        ("(float[8,4] x) => (float[8,4] y) { a = Tanh(x) b = Sin(a) c = Cos(b) d = Neg(c) y = "
         "Add(d, b) }",
         "b", 1, "b:1 a:1 c:1 d:1 | b:1 c:1 y:1 a:1 d:1 | y | y x"),
        ("(float[8,4] x) => (float[8,4] y, float[8,4] z) { a = Tanh(x) b = Softmax<axis=0>(a) y "
         "= Sin(a) z = Mul(b, x) }",
         "a", 1, "a:1 b:1 | a:1 b:1 y:1 z:1 | y z | x y z"),
        ("(float[8,4] x) => (float[4,8] y) { a = Tanh(x) t = Transpose(a) y = Softmax(t) }",
         "a", 0, "a:0 | a:0 t:1 | t | x t"),
        ("(float[8,4] x) => (float[4,8] y) { a = Tanh(x) t = Transpose(a) y = Softmax(t) }",
         "a", 1, "a:1 t:0 | a:1 t:0 y:0 | y | x y"),
        (ATTENTION,
         "s", 0, "s:0 p:0 | s:0 p:0 y:0 | y | q k v y"),
        (ATTENTION,
         "p", 0, "p:0 s:0 | p:0 y:0 s:0 | y | v y q k"),
        ("(float[8,4] x) => (float[8,4] y) { a = Tanh(x) y = own.F(a) }",
         "a", 0, "y (F) needs all of it"),
        ("(float[8,4] x) => (float[8,4] y) { a = own.F(x) y = Tanh(a) }",
         "a", 0, "a (F) has no parts along axis 0"),
        ("(float[8,8] x, float[8,8] z) => (float[8,8] y) { a = Tanh(x) b = Sin(z) "
         "c = MatMul(a, b) d = Add(a, b) y = Add(c, d) }",
         "a", 0, "a:0 c:0 d:0 | a:0 c:0 d:0 y:0 | y | x b y"),
        ("(float[8,4] x, int64[2] s) => (float[N,M] y) { a = Tanh(x) y = Reshape(a, s) }",
         "a", 0, "y (Reshape) needs all of it"),
        ("(float[8,4] x) => (float[8,4] y) { a = Tanh(x) b = Sin(a) c = Transpose(a) "
         "d = Transpose(c) y = Add(b, d) }",
         "a", 0, "a:0 b:0 c:1 d:0 | a:0 b:0 c:1 y:0 d:0 | y | x y"),
        ('(float[8,4] x, float[8,4] h) => (float[8,4] y) <float f = {1}> { a = Tanh(x) '
         'b = Max(a, h) y = Clip(b, "", f) }',
         "a", 0, "a:0 b:0 | a:0 b:0 y:0 | y | x h y"),
    ):  # fmt: skip
        assert written(found(text, name, axis)) == expected, (text, axis)


def test_a_region_grows_as_far_as_its_work_goes() -> None:
    for text, steps in (
        ("""(float[8,4] x) => (float[8,4] y) { a = Tanh(x)  b = Sin(a)  c = Cos(b)
            d = Abs(c)  e = Sign(a)  y = Add(e, d) }""",
         ((0, "a:0 | a:0 b:0 e:0 | b e | x b e"),
          (22, "a:0 b:0 | a:0 b:0 e:0 c:0 | e c | x e c"),
          (59, "a:0 b:0 e:0 c:0 d:0 | a:0 b:0 e:0 c:0 y:0 d:0 | y | x y"))),
        # A small tensor beside the region leads back into it.
        ("""(float[8,4] x) => (float[8,4] y) <int64[1] one = {1}> { a = Tanh(x)  b = Sin(a)
            m = ReduceMax(b, one)  n = Neg(m)  c = Cos(b)  y = Add(c, n) }""",
         ((0, "a:0 | a:0 b:0 | b | x b"),
          (15, "a:0 b:0 | a:0 b:0 m:0 c:0 | m c | x m c"),
          (56, "a:0 b:0 c:0 m:0 n:0 | a:0 b:0 m:0 c:0 y:0 n:0 | y | x y"))),
    ):  # fmt: skip
        model = Model.from_proto(parse(text))
        found: list[tuple[int, str]] = []
        for left in range(60):
            around = region_around(model.main.values["a"], 0, SIZES, SearchWork(left))
            if not found or found[-1][1] != written(around):
                found.append((left, written(around)))
        assert tuple(found) == steps, text


def written(region: SplitRegion | Skip) -> str:
    """Return the inner tensors and the nodes with their axes, the results, and the border."""
    if isinstance(region, Skip):
        return str(region)
    axes = [" ".join(f"{name}:{axis}" for name, axis in part.items())
            for part in (inner(region), nodes(region))]  # fmt: skip
    ends = [" ".join(value.name for value in part) for part in (region.results(), region.border())]
    return " | ".join((*axes, *ends))
