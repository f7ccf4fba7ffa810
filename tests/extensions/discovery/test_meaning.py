"""What expressions compute: equal keys, equal values, as bits or over the reals."""

import numpy as np
import pytest

from tests.extensions.discovery.making import Maker
from tiered.certify.evaluation.values import Unproved
from tiered.extensions.discovery.grammar import FLOAT
from tiered.extensions.discovery.meaning import DomainName, domain_at


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


@pytest.mark.parametrize(
    ("level", "name"), [(0, "bits"), (1, "bits"), (2, "bits"), (3, "reals"), (4, "reals")]
)
def test_equal_means_the_same_bits_up_to_level_2(level: int, name: DomainName) -> None:
    assert domain_at(level) == name


def test_dtype_and_shape_are_part_of_a_key() -> None:
    make = Maker()
    assert not make.are_equal(make.x, make("Reshape", make.x, [6]))
    assert not make.are_equal(make.x, make("Cast", make.x, to=11))
    assert make.are_equal(make.x, make("Reshape", make("Reshape", make.x, [6]), [2, 3]))


def test_other_borders_have_other_values() -> None:
    make = Maker()
    y = make.meaning.table.border("y", FLOAT, (2, 3))
    assert not make.are_equal(make.x, y)
    assert make.are_equal(make("Add", make.x, y), make("Add", y, make.x))
    assert not make.are_equal(make("Sub", make.x, y), make("Sub", y, make.x))


def test_zero_times_x_is_a_constant_over_the_reals_only() -> None:
    for domain, expected in (("bits", False), ("reals", True)):
        make = Maker(domain)  # type: ignore[arg-type]  # a literal of the loop
        assert make.meaning.is_constant(make("Mul", make.x, 0.0)) == expected
        assert make.meaning.is_constant(make.constant(2.0))
        assert not make.meaning.is_constant(make.x)


def test_all_results_of_an_operator_are_expressions() -> None:
    make = Maker()
    parts = make.meaning.applied("Split", [make.x], (("axis", 1), ("num_outputs", 3)), 3)
    assert [each.output for each in parts] == [0, 1, 2]
    assert [each.shape for each in parts] == [(2, 1)] * 3
    joined = make.meaning.applied("Concat", parts, (("axis", 1),))[0]
    assert make.are_equal(joined, make.x)


def test_a_result_that_is_not_there_has_no_value() -> None:
    make = Maker()
    with pytest.raises(Unproved):
        make.meaning.value(
            make.meaning.table.apply("Relu", [make.x], kind=(FLOAT, (2, 3)), output=1)
        )


def test_a_forgotten_value_is_computed_once_more() -> None:
    make = Maker()
    made = make("Relu", make.x)
    before = make.meaning.key(made)
    make.meaning.forget(made)
    make.meaning.forget(made)
    assert make.meaning.key(made) == before


def test_constants_are_folded_by_their_numbers() -> None:
    make = Maker()
    two = make.meaning.table.constant(np.array([2.0], np.float32))
    assert make.meaning.is_constant(make("Mul", two, two))
    assert make.are_equal(make("Mul", two, two), make("Add", two, two))
    assert make.meaning.is_constant(make("Exp", two))
    assert not make.are_equal(make("Exp", two), two)


def test_a_mask_is_a_result_of_its_own() -> None:
    make = Maker()
    found = make.meaning.applied("Dropout", [make.x], (), 2)
    assert [(each.output, each.dtype, each.shape) for each in found] == [
        (0, 1, (2, 3)),
        (1, 9, (2, 3)),
    ]


def test_results_are_kept_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.extensions.discovery.meaning._MOST_RESULTS", 2)
    make, counts = Maker(), []
    for name in ("Abs", "Neg", "Exp", "Relu", "Sign", "Floor", "Ceil"):
        make(name, make.x)
        counts.append(len(make.meaning._setting.results))
    assert counts == [1, 2, 3, 1, 2, 3, 1]
