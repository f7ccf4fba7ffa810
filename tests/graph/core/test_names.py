"""Fresh names depend only on those that are taken."""

import pytest

from tiered.graph.core.names import TakenNames


def taken(*names: str) -> TakenNames:
    made = TakenNames()
    for name in names:
        made.take(name)
    return made


def test_a_fresh_name_is_the_first_that_is_free() -> None:
    names = taken("a", "b", "b_1", "b_3")
    assert (names.fresh("c"), names.fresh("a"), names.fresh("b")) == ("c", "a_1", "b_2")
    names.take("b_2")
    assert names.fresh("b") == "b_4"
    names.release("b_3")
    assert names.fresh("b") == "b_3"
    names.release("b_1")
    assert names.fresh("b") == "b_1"


def test_the_release_of_a_later_name_does_not_skip_an_earlier_one() -> None:
    names = taken("b", "b_2")
    assert names.fresh("b") == "b_1"
    names.take("b_9")
    names.take("b_x")
    names.release("b_9")
    names.release("b_x")
    assert names.fresh("b") == "b_1"


def test_a_name_is_free_after_its_last_bearer() -> None:
    names = taken("a", "a", "b")
    assert [names.is_unique(name) for name in "abc"] == [False, True, False]
    names.release("a")
    assert names.is_unique("a")
    names.release("a")
    assert "a" not in names
    assert "b" in names


def test_names_taken_in_a_block_that_raises_are_free() -> None:
    names = taken("a")

    def fail() -> None:
        with names.kept_on_error():
            names.take("b")
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        fail()
    assert "b" not in names
    with names.kept_on_error():
        names.take("b")
    assert "b" in names
