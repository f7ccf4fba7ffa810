"""How far a missing rule reaches: what of its instance may be something else."""

import numpy as np
import pytest

from tests.extensions.discovery.making import Maker
from tiered.extensions.discovery.enumeration import enumerated
from tiered.extensions.discovery.expressions import Array, ExpressionTable, GrammarExpr
from tiered.extensions.discovery.grammar import BASES
from tiered.extensions.discovery.judging import Judged
from tiered.extensions.discovery.meaning import DomainName
from tiered.extensions.discovery.neighbours import RuleChange, _changed, _changes, _other, reach


def test_a_missing_rule_has_its_reach() -> None:
    made = enumerated(BASES[0], "bits", 1, most=400)
    meaning = made.meaning
    (x, *_) = BASES[0].leaves(meaning.table)
    (mirrored,) = meaning.applied("Trilu", [x], (("upper", 1),))
    (twice,) = meaning.applied("Trilu", [mirrored], (("upper", 1),))
    # Level 0 has no such rule.
    assert {"the dim 2 of x", "the dim 3 of x"} <= {*reach(twice, mirrored, 0, "bits")}


def test_operators_are_changed_only_where_they_read_as_many_values() -> None:
    meaning = enumerated(BASES[0], "reals", 0, most=1).meaning
    (x, *_) = BASES[0].leaves(meaning.table)
    (one,) = meaning.applied("Max", [x], ())
    (two,) = meaning.applied("Max", [one, x], ())
    assert not [each for each in reach(two, one, 0, "reals") if each.startswith("Max")]


def changes(source: GrammarExpr, target: GrammarExpr) -> list[str]:
    return [each.what for each in _changes(source, target)]


def test_dims_constants_and_operators_are_changed() -> None:
    make = Maker()
    source = make("Add", make("Abs", make.x), 2.0)
    target = make("Abs", make.x)
    assert changes(source, target) == [
        "the dim 2 of x", "the dim 3 of x", "the constant 2.", "Abs: Exp", "Abs: Ceil"
    ]  # fmt: skip


def test_an_operator_of_one_side_or_with_attributes_stays() -> None:
    make = Maker()
    found = changes(make("Abs", make("Neg", make.x)), make("Neg", make.x))
    assert not [each for each in found if each.startswith("Abs:")]
    soft = make("Softmax", make.x, axis=0)
    assert [each for each in changes(soft, soft) if ":" in each] == []
    pair = make("Add", make.x, make.x)
    assert [each for each in changes(pair, pair) if ":" in each] == [
        "Add: Mul", "Add: Sub", "Add: Max"
    ]  # fmt: skip


def test_dims_of_one_stay() -> None:
    make = Maker()
    x = make.meaning.table.border("z", 1, (1, 3))
    assert changes(x, x) == ["the dim 3 of z"]


@pytest.mark.parametrize(
    ("array", "other"),
    [
        (np.array([1.0, 0], np.float32), np.array([1.05, 0.3], np.float32)),
        (np.array([True, False]), np.array([False, True])),
        (np.array([0, 5]), np.array([1, 6])),
        (np.array(3, np.int8), np.array(4, np.int8)),
    ],
)
def test_other_numbers_have_the_same_dtype(array: Array, other: Array) -> None:
    found = _other(array)
    np.testing.assert_array_equal(found, other)
    assert found.dtype == array.dtype


def test_a_change_is_of_a_whole_side() -> None:
    make, other = Maker(), Maker()
    number = make.constant(2.0)
    source = make("Add", make("Abs", make.x), number)
    change = RuleChange("", {"Abs": "Exp"}, {number.number: np.array(3, np.float32)}, {2: 6})
    made = _changed(source, change, other.meaning)
    assert str(made) == "Add(Exp(x), 3.)"
    assert made.shape == (6, 3)
    same = _changed(source, RuleChange("", {}, {}, {}), other.meaning)
    assert str(same) == str(source)


class Judge:
    """A pipeline that makes Abs(x) of each Ceil, fails on Exp, and leaves all else alone."""

    def __init__(self, table: ExpressionTable, level: int) -> None:
        self.table = table

    def alone(self, member: GrammarExpr) -> Judged:
        if "Exp" in str(member):
            return Judged(member, None, "no Exp")
        if "Ceil" in str(member):
            x = next(each for each in member.walk() if not each.is_operator)
            form = self.table.apply("Abs", [x], kind=(member.dtype, member.shape))
            return Judged(member, form)
        return Judged(member, member)


def test_the_changes_with_which_a_rule_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.extensions.discovery.neighbours.PipelineJudge", Judge)
    make = Maker()
    twice = make("Relu", make("Relu", make.x))
    (clip,) = make.meaning.applied("Clip", [make.x, None, make.constant(2.0)], ())
    (again,) = make.meaning.applied("Clip", [clip, None, make.constant(2.0)], ())
    cases: tuple[tuple[GrammarExpr, GrammarExpr, DomainName, list[str]], ...] = (
        (twice, make("Relu", make.x), "bits",
         ["the dim 2 of x", "the dim 3 of x", "Relu: Abs"]),
        (make("Abs", make("Abs", make.x)), make("Abs", make.x), "bits",
         ["the dim 2 of x", "the dim 3 of x"]),
        (again, clip, "bits", ["the dim 2 of x", "the dim 3 of x", "the constant 2."]),
        (make("Mul", make.x, 1.0), make.x, "bits", ["the dim 2 of x", "the dim 3 of x"]),
        (make("Add", make("Add", make.x, 1.0), 2.0), make("Add", make.x, 3.0), "reals",
         ["the dim 2 of x", "the dim 3 of x", "Add: Sub"]),
    )  # fmt: skip
    for source, target, domain, expected in cases:
        assert reach(source, target, 0, domain) == expected, str(source)
