"""Tensors that are computed again after the peak: which, with what, and why others stay."""

from itertools import pairwise

import pytest

from tiered import Model
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory import memory_plan, recomputation as module
from tiered.extensions.memory.recomputation import LONGEST, TRIED, TRIED_A_NODE, recompute_values
from tiered.graph.core.marks import RECOMPUTED
from tiered.testing import parse

# `a`, of 16 elements, is read before and after `d`, of 32.
TEXT = """(float[4] x) => (float[16] y) <int64[1] zero = {0}> {
    a = Concat<axis=0>(x, x, x, x)  b = ReduceMean(a, zero)
    c = Concat<axis=0>(b, b, b, b, b, b, b, b)  d = Concat<axis=0>(c, c, c, c)
    e = ReduceMean(d, zero)  y = Add(a, e) }"""


def between(line: str, text: str = TEXT) -> str:
    """Return the model with other nodes for `a`."""
    return text.replace("a = Concat<axis=0>(x, x, x, x)", line)


def model_of(text: str, ir_version: int = 10) -> Model:
    proto = parse(text)
    proto.ir_version = ir_version
    return Model.from_proto(proto)


def operators(model: Model) -> list[str]:
    return [node.op_type for node in model.main.topological_order()]


def reasons(text: str, **options: int) -> dict[str, str]:
    done = recompute_values(model_of(text), **options)  # type: ignore[arg-type]  # of any
    return {node.output.name: str(skip) for node, skip in done.kept}


def test_a_tensor_that_the_peak_does_not_read_is_copied_to_its_late_readers() -> None:
    model = model_of(TEXT)
    assert memory_plan(model).peak == 16 + 64 + 32 + 128
    done = recompute_values(model)
    assert (done.copies, done.multiply_adds, done.kept) == (1, 0, ())
    assert memory_plan(model).peak == 16 + 32 + 128
    assert operators(model) == ["Concat", "ReduceMean", "Concat", "Concat", "ReduceMean",
                                "Concat", "Add"]  # fmt: skip
    marks = [node.metadata.get(RECOMPUTED) for node in model.main.topological_order()]
    assert marks == [None] * 5 + ["1", None]
    model.check_view()


def test_a_second_run_finds_nothing_more() -> None:
    model = model_of(TEXT)
    recompute_values(model)
    proto = model.to_proto()
    assert recompute_values(model).copies == 0
    assert model.to_proto() == proto


def test_marks_go_on_after_those_that_are_there() -> None:
    model = model_of(TEXT)
    model.main.set_metadata(model.main.nodes[1], {RECOMPUTED: "7"})
    recompute_values(model)
    copy = model.main.topological_order()[5]
    assert copy.metadata[RECOMPUTED] == "8"


def test_before_ir_10_copies_have_no_mark() -> None:
    model = model_of(TEXT, 8)
    assert recompute_values(model).copies == 1
    assert not any(node.metadata for node in model.main.nodes)


def test_all_late_readers_read_the_copy() -> None:
    model = model_of(TEXT.replace("y = Add(a, e)", "f = Mul(a, a)  g = Add(f, e)  y = Sub(g, a)"))
    recompute_values(model)
    copy = next(n for n in model.main.topological_order() if RECOMPUTED in n.metadata)
    assert {user.op_type for user in copy.output.readers} == {"Mul", "Sub"}
    assert [user.op_type for user in model.main.values["a"].readers] == ["ReduceMean"]


def test_a_chain_is_copied_back_to_what_is_alive_at_the_reader() -> None:
    text = between("p = Concat<axis=0>(x, x, x, x)  q = Softmax(p)  a = Softmax(q)")
    model = model_of(text)
    assert recompute_values(model).copies == 3
    assert memory_plan(model).peak == 16 + 32 + 128


def test_a_view_is_copied_with_its_source() -> None:
    text = between("q = Concat<axis=0>(x, x, x, x)  a = Reshape(q, all)").replace(
        "<int64[1] zero = {0}>", "<int64[1] zero = {0}, int64[1] all = {-1}>"
    )
    model = model_of(text)
    assert recompute_values(model).copies == 2
    assert memory_plan(model).peak < memory_plan(model_of(text)).peak


def test_an_operand_that_the_reader_has_alive_is_read_from_there() -> None:
    text = between("p = Concat<axis=0>(x, x)  a = Concat<axis=0>(p, p)").replace(
        "y = Add(a, e)", "f = Add(a, e)  h = Concat<axis=0>(p, p)  y = Sub(f, h)"
    )
    model = model_of(text)
    recompute_values(model)
    copies = [node for node in model.main.topological_order() if RECOMPUTED in node.metadata]
    assert all(node.op_type == "Concat" for node in copies)


@pytest.mark.parametrize(("length", "copies"), [(11, 12), (12, 1)])
def test_a_chain_is_of_twelve_nodes_at_most(length: int, copies: int) -> None:
    assert LONGEST == 12
    names = ["p", *(f"s{at}" for at in range(length - 1)), "a"]
    chain = " ".join(f"{new} = Softmax({old})" for old, new in pairwise(names))
    text = between(f"p = Concat<axis=0>(x, x, x, x) {chain}")
    done = recompute_values(model_of(text))
    assert done.copies == (copies if length == 11 else 0)


PRODUCT = """(float[4,1] x) => (float[4,4] y) <float[1,4] w = {1,2,3,4}, int64[1] size = {64}> {
    a = MatMul(x, w)  b = ReduceMean<keepdims=0>(a)  d = Expand(b, size)
    e = ReduceMean<keepdims=0>(d)  y = Add(a, e) }"""


@pytest.mark.parametrize(("budget", "copies"), [(0, 0), (15, 0), (16, 1), (100, 1)])
def test_products_take_from_the_budget(budget: int, copies: int) -> None:
    done = recompute_values(model_of(PRODUCT), max_multiply_adds=budget)
    assert (done.copies, done.multiply_adds) == (copies, 16 * copies)
    kept = [str(skip) for _, skip in done.kept]
    assert kept == ([] if copies else ["'a' takes more multiply-adds than the budget"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TEXT.replace("y) <", "y, float[16] a) <"), "'a' is an output of the graph"),
        (
            TEXT.replace("y = Add(a, e)", "y = Add(a, e)  v = Identity(a)").replace(
                "y) <", "y, float[16] v) <"
            ),
            "'a' is an output of the graph",
        ),
        (between("z = Concat<axis=0>(x, x, x, x)  a = RandomNormalLike(z)"),
         "the node of 'a' is random or unknown"),
        (
            TEXT.replace(
                "y = Add(a, e)",
                "k = Cast<to=9>(e) y = If(k) <then_branch = t () => (float[16] p) "
                "{ p = Add(a, e) }, else_branch = f () => (float[16] q) { q = Sub(a, e) }>",
            ),
            "a body reads 'a'",
        ),
        (
            TEXT.replace("<int64[1] zero = {0}>", "<int64[1] zero = {0}, int64[1] all = {-1}>")
            .replace(
                "y = Add(a, e)",
                "k = Cast<to=9>(e) y = If(k) <then_branch = t () => (float[16] p) "
                "{ p = Reshape(a, all) }, else_branch = f () => (float[16] q) { q = Sub(a, e) }>",
            ),
            "a body reads 'a'",
        ),
        (
            between("h = RandomNormalLike(x) i = RandomNormalLike(x)"
                    " a = Concat<axis=0>(h, i, h, i)"),
            "",
        ),
    ],
)  # fmt: skip
def test_what_stays_has_a_reason(text: str, reason: str) -> None:
    found = reasons(text)
    assert found.get("a", "") == reason


def test_what_does_not_lower_the_peak_is_undone() -> None:
    text = """(float[16] x) => (float[16] y) <int64[1] zero = {0}, int64[1] size = {64}> {
        h = RandomNormalLike(x)  i = RandomNormalLike(x)  a = Add(h, i)  b = ReduceMean(a, zero)
        c = Expand(b, size)  d = ReduceMean(c, zero)  y = Mul(a, d) }"""
    model = model_of(text)
    proto = model.to_proto()
    done = recompute_values(model)
    assert [str(skip) for _, skip in done.kept] == ["the peak is no lower without 'a'"]
    assert (done.copies, model.to_proto()) == (0, proto)


def test_the_largest_tensor_comes_first() -> None:
    text = TEXT.replace(
        "b = ReduceMean(a, zero)", "s = Concat<axis=0>(x, x)  t = ReduceMean(s, zero)"
        "  b0 = ReduceMean(a, zero)  b = Add(b0, t)",
    ).replace("y = Add(a, e)", "u = ReduceMean(s, zero)  v = Add(u, e)  y = Add(a, v)")  # fmt: skip
    model = model_of(text)
    done = recompute_values(model)
    assert done.copies == 2
    marks = {node.metadata[RECOMPUTED]: node.output.shape
             for node in model.main.nodes if RECOMPUTED in node.metadata}  # fmt: skip
    assert marks == {"1": (16,), "2": (8,)}


def test_a_graph_without_nodes_has_nothing_to_copy() -> None:
    assert recompute_values(model_of("(float[2] x) => (float[2] x) { }")) == (0, 0, ())


@pytest.mark.parametrize("size", [4, 1000])
def test_dynamic_dims_have_the_given_sizes(size: int) -> None:
    text = TEXT.replace("float[4] x", "float[N] x").replace("float[16] y", "float[M] y")
    model = model_of(text)
    assert recompute_values(model, sizes=LayoutSizes({"N": size}, 16)).copies == 1
    peaks = [memory_plan(each, dims={"N": size}).peak for each in (model_of(text), model)]
    # Before: x, a, c and d; then x, c and d, or x, a and b.
    assert peaks == [20 * size + 160, max(4 * size + 160, 20 * size + 4)]


def test_the_search_ends_when_it_has_visited_enough_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (TRIED, TRIED_A_NODE) == (300_000, 20)
    monkeypatch.setattr(module, "TRIED", 0)
    monkeypatch.setattr(module, "TRIED_A_NODE", 1)
    assert recompute_values(model_of(TEXT)).copies == 0
    monkeypatch.setattr(module, "TRIED_A_NODE", 3)
    assert recompute_values(model_of(TEXT)).copies == 1


def test_a_constant_is_read_and_not_copied() -> None:
    text = between("k = Constant<value_float=2.0>()  p = Concat<axis=0>(x, x, x, x)  a = Mul(p, k)")
    model = model_of(text)
    assert recompute_values(model).copies == 2
    assert [node.op_type for node in model.main.nodes if RECOMPUTED in node.metadata] == [
        "Concat", "Mul",
    ]  # fmt: skip


def test_what_is_alive_anyway_is_read_and_not_copied() -> None:
    line = "p = Concat<axis=0>(x, x)  a = Concat<axis=0>(p, p)"
    outputs = TEXT.replace("y) <", "y, float[8] p) <"), TEXT.replace("y) <", "y, float[16] a) <")
    reads = "f = ReduceMean(c, zero)  g = Add(e, f)  y = Add(a, g)"
    for text, peaks, copied, kept in (
        (between(line), (240, 176), "Concat Concat", []),
        (between(line, outputs[0]), (272, 208), "Concat", ["'p' is an output of the graph"]),
        (between(line).replace("[16] y", "[24] y").replace(
            "y = Add(a, e)", "f = Add(a, e)  y = Concat<axis=0>(f, p)"
        ), (272, 208), "Concat", ["the peak is no lower without 'p'"]),
        (between(line).replace("[16] y", "[25] y").replace("Add(a", "Concat<axis=0>(a, p"),
         (272, 216), "Concat", []),
        (TEXT.replace("y = Add(a, e)", reads), (244, 176), "Concat ReduceMean Concat Concat", []),
        (outputs[1].replace("y = Add(a, e)", reads), (244, 240), "ReduceMean Concat",
         ["'a' is an output of the graph"]),
    ):  # fmt: skip
        model = model_of(text)
        before, done = memory_plan(model).peak, recompute_values(model)
        copies = [node.op_type for node in model.main.topological_order() if node.metadata]
        assert (before, memory_plan(model).peak) == peaks, text
        assert (" ".join(copies), [str(skip) for _, skip in done.kept]) == (copied, kept), text
