"""Small graphs, grouped by what they compute."""

import numpy as np
import pytest

from tiered.certify.evaluation.values import Unproved
from tiered.extensions.discovery.enumeration import enumerated
from tiered.extensions.discovery.expressions import Expr, Table
from tiered.extensions.discovery.grammar import BASES, FLOAT
from tiered.extensions.discovery.meaning import DomainName, Meaning

MATRIX = BASES[0]


class Maker:
    """Expressions over x, float[2,3]."""

    def __init__(self, domain: DomainName = "bits") -> None:
        self.meaning = Meaning(Table(), domain)
        self.x = self.meaning.table.border("x", FLOAT, (2, 3))

    def __call__(self, op: str, *operands: Expr | float | list[int], **attributes: object) -> Expr:
        held = [each if isinstance(each, Expr) else self.constant(each) for each in operands]
        return self.meaning.applied(op, held, tuple(attributes.items()))[0]

    def constant(self, number: float | list[int]) -> Expr:
        dtype = np.int64 if isinstance(number, list) else np.float32
        return self.meaning.table.constant(np.asarray(number, dtype))

    def are_equal(self, one: Expr, other: Expr) -> bool:
        return self.meaning.key(one) == self.meaning.key(other)


def test_a_move_passes_an_operator_whose_kernel_knows_no_places() -> None:
    make = Maker()
    moved = make("Transpose", make.x, perm=[1, 0])
    assert make.are_equal(make("Relu", moved), make("Transpose", make("Relu", make.x), perm=[1, 0]))
    assert not make.are_equal(
        make("Exp", moved), make("Transpose", make("Exp", make.x), perm=[1, 0])
    )


def test_a_view_passes_every_elementwise_operator() -> None:
    make = Maker()
    first = make("Exp", make("Reshape", make.x, [6]))
    assert make.are_equal(first, make("Reshape", make("Exp", make.x), [6]))


def test_over_the_reals_a_move_passes_them_all() -> None:
    make = Maker("reals")
    moved = make("Transpose", make.x, perm=[1, 0])
    assert make.are_equal(make("Exp", moved), make("Transpose", make("Exp", make.x), perm=[1, 0]))


def test_sums_in_another_order_are_equal_over_the_reals_only() -> None:
    for domain, expected in (("bits", False), ("reals", True)):
        make = Maker(domain)  # type: ignore[arg-type]  # a literal of the loop
        first = make("Add", make("Add", make.x, 1.0), 2.0)
        assert make.are_equal(first, make("Add", make.x, 3.0)) is expected


def test_an_operator_that_does_not_fit_has_no_value() -> None:
    make = Maker()
    with pytest.raises(Unproved):
        make("Reshape", make.x, [7])


def test_attributes_with_their_default_are_not_written() -> None:
    make = Maker()
    assert make("Softmax", make.x, axis=-1) is make("Softmax", make.x)


def test_the_cost_counts_shared_nodes_once_and_no_views() -> None:
    make = Maker()
    flat = make("Reshape", make("Relu", make.x), [6])
    assert make("Add", flat, flat).cost == (3, 4 * 6 * 2 + 4 * 6 * 2)
    deep = make("Reshape", flat, [1, 6])
    assert make("Add", deep, flat).cost == (4, 4 * 6 * 2 + 4 * 6 * 2)


def test_the_enumeration_is_deterministic_and_bounded() -> None:
    first, second = (enumerated(MATRIX, "bits", 2, most=300) for _ in range(2))
    texts = [[str(member) for _, member in made.members()] for made in (first, second)]
    assert texts[0] == texts[1]
    other = enumerated(MATRIX, "bits", 2, most=300, seed=1)
    assert [str(member) for _, member in other.members()] != texts[0]


def test_a_class_has_its_cheapest_graph() -> None:
    made = enumerated(MATRIX, "bits", 2, most=300)
    for group, member in made.members():
        assert group.best.cost <= member.cost
        assert made.meaning.key(group.best) == made.meaning.key(member)
