"""Batches: the nodes that one session computes, within bounds of bytes and of work."""

from collections import deque

import pytest

from tests.small import named, parsed
from tiered import Model, Node
from tiered.rewriter.skip import Skip
from tiered.runtime.fold import session_batches
from tiered.runtime.fold.foldable_nodes import known_nodes
from tiered.runtime.fold.session_batches import TOO_LONG, Batches, Sizes

TEXT = """(float[2] x) => (float[2] y) <float[2] w = {1,2}, float[2] v = {3,4}> {
    a = Neg(w)  b = Add(a, v)  c = Mul(b, w)  y = Add(x, c) }"""
# a and e depend on constants alone; b on a.
TWO = """(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}, float[4] v = {3,4,5,6}> {
    a = Neg(w)  e = Exp(v)  b = Add(a, a)  y = Add(x, b) }"""


def node(model: Model, name: str) -> Node:
    found = named(model, name).producer
    assert found is not None
    return found


def taken(model: Model, batches: Batches, *, ahead: bool = False) -> tuple[list[str], list[str]]:
    """Return the names of the nodes that are taken, and of those that are left."""
    pending = deque(known_nodes(model.main))
    found = batches.take(model.main, pending, {}, ahead=ahead)
    return sorted(n.output.name for n in found), [n.output.name for n in pending]


def reasons(batches: Batches) -> dict[str, str]:
    return {each.output.name: str(reason) for each, reason in batches.refused.items()}


def test_consumers_follow_what_is_taken() -> None:
    model = parsed(TEXT)
    sizes: Sizes = {}
    pending = deque(known_nodes(model.main))
    found = Batches({}, None).take(model.main, pending, sizes)
    assert {each.output.name for each in found} == {"a", "b", "c"}
    assert not pending
    assert {value.name: size for value, size in sizes.items()} == dict.fromkeys("wavbc", 8)


@pytest.mark.parametrize(
    ("memory", "expected", "left"),
    [
        (64, ["a"], ["e", "b"]),  # half of it: w and a are 32 bytes
        (66, ["a", "e"], ["b"]),
        (128, ["a", "e"], ["b"]),
        (130, ["a", "b", "e"], ["y"]),
    ],
)
def test_a_batch_holds_half_of_the_memory(
    memory: int, expected: list[str], left: list[str]
) -> None:
    assert taken(parsed(TWO), Batches({}, memory)) == (expected, left)


def test_all_is_taken_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    assert taken(parsed(TWO), Batches({}, 64), ahead=True) == (["a", "b", "e"], [])
    monkeypatch.setattr(session_batches, "_LARGEST_BATCH", 32)
    assert taken(parsed(TWO), Batches({}, None)) == (["a"], ["e", "b"])
    assert taken(parsed(TWO), Batches({}, 1 << 40)) == (["a"], ["e", "b"])


def test_a_node_that_needs_too_much_memory_is_refused() -> None:
    batches = Batches({}, 62)
    assert taken(parsed(TWO), batches) == ([], [])
    assert reasons(batches) == dict.fromkeys("ae", "computing it takes too much memory")


def test_refused_growing_and_foreign_nodes_are_not_taken() -> None:
    model = parsed(TWO)
    refused = {node(model, "a"): Skip("a reason")}
    batches = Batches(refused, None)
    assert taken(model, batches) == (["e"], [])
    assert batches.refused is refused
    growing = Batches({}, None)
    growing.growing.add(node(model, "e"))
    assert taken(model, growing) == (["a", "b"], [])
    other = parsed(TWO)
    assert Batches({}, None).take(model.main, deque(known_nodes(other.main)), {}) == set()


def test_a_node_is_taken_once() -> None:
    model = parsed(TWO)
    a = node(model, "a")
    assert Batches({}, None).take(model.main, deque([a, a]), {}) == {a, node(model, "b")}


@pytest.mark.parametrize(
    ("largest", "expected"), [(16, ["a", "b", "e"]), (15, []), (-1, ["a", "b", "e"])]
)
def test_constants_may_have_a_largest_size(largest: int, expected: list[str]) -> None:
    batches = Batches({}, None, largest)
    assert taken(parsed(TWO), batches)[0] == expected
    assert reasons(batches) == (
        {} if expected else dict.fromkeys("ae", "the constant exceeds max_tensor_size")
    )


def test_no_size_but_zero_is_a_limit_of_none() -> None:
    empty = parsed("(float[4] x) => (float[4] y) <float[0] w = {}> { a = Neg(w)  y = Neg(x) }")
    assert taken(empty, Batches({}, None, 0))[0] == ["a"]
    assert taken(parsed(TWO), Batches({}, None, 0))[0] == []


def test_a_node_of_too_much_work_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_batches, "_MOST_WORK", 4)
    one = "(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> { a = Neg(w)  y = Neg(x) }"
    assert taken(parsed(one), Batches({}, None)) == (["a"], [])
    monkeypatch.setattr(session_batches, "_MOST_WORK", 3)
    batches = Batches({}, None)
    assert taken(parsed(TWO), batches) == ([], [])
    assert batches.refused == dict.fromkeys(batches.refused, TOO_LONG)
    assert reasons(batches) == dict.fromkeys("ae", "computing it takes too long")


def test_long_computations_are_all_refused_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a, b and e each takes 4 multiplications; d takes 8."""
    text = TWO.replace("e = Exp(v)", "e = Exp(v)  d = Concat<axis = 0>(v, v)")
    monkeypatch.setattr(session_batches, "_MOST_WORK", 19)
    monkeypatch.setattr(session_batches, "_LITTLE_WORK", 4)
    batches = Batches({}, None)
    assert taken(parsed(text), batches)[0] == ["a", "b", "e"]
    assert reasons(batches) == {"d": str(TOO_LONG)}
    monkeypatch.setattr(session_batches, "_MOST_WORK", 20)
    assert taken(parsed(text), Batches({}, None))[0] == ["a", "b", "d", "e"]
    monkeypatch.setattr(session_batches, "_MOST_WORK", 19)
    monkeypatch.setattr(session_batches, "_LITTLE_WORK", 8)
    batches = Batches({}, None)
    assert taken(parsed(text), batches)[0] == []
    assert set(reasons(batches)) == {"a", "b", "d", "e"}


def test_what_waits_for_its_operands_is_taken_ahead_only() -> None:
    text = """(float16[2] x) => (float16[2] y) <float16[2] w = {1,2}> {
        a = Neg(w)  b = Abs(a)  y = Add(x, b) }"""
    for largest in (-1, 4):
        assert taken(parsed(text), Batches({}, None, largest)) == (["a"], [])
        assert taken(parsed(text), Batches({}, None, largest), ahead=True) == (["a", "b"], [])


def test_what_cannot_be_computed_has_its_reason() -> None:
    text = TEXT.replace("a = Neg(w)", "a = RandomUniformLike(w)")
    batches = Batches({}, None)
    assert taken(parsed(text), batches) == ([], [])
    assert reasons(batches) == {"a": "it is random, or nothing is known of it"}
