"""Records: equality, defaults, errors and copies."""

import copy
import pickle

import pytest

from tiered.support.records import Record


class Stock(Record):
    item: str
    count: int = 0


class Priced(Stock):
    price: float = 1.0


class Other(Record):
    item: str
    count: int = 0


def test_fields_are_given_by_place_or_by_name() -> None:
    assert Stock("bolt", 3) == Stock(count=3, item="bolt")
    assert Stock("bolt").count == 0
    assert str(Stock("bolt")) == "Stock(item='bolt', count=0)"


def test_a_subclass_adds_fields() -> None:
    made = Priced("bolt", 2, 0.5)
    assert (made.item, made.count, made.price) == ("bolt", 2, 0.5)
    assert Stock._fields == ("item", "count")


def test_equal_records_have_one_class_and_equal_fields() -> None:
    assert Stock("bolt") != Stock("nut")
    assert Stock("bolt") != Other("bolt")
    assert len({Stock("bolt"), Stock("bolt", 0), Other("bolt")}) == 2


def test_a_field_cannot_be_set() -> None:
    made = Stock("bolt")
    with pytest.raises(AttributeError, match="'count' of a Stock cannot be set"):
        made.count = 1  # type: ignore[misc]  # what is tested
    with pytest.raises(AttributeError, match="'count' of a Stock cannot be deleted"):
        del made.count
    assert made.changed(count=1) == Stock("bolt", 1)
    assert made == Stock("bolt")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((), {}),
        (("bolt", 1, 2), {}),
        (("bolt",), {"item": "nut"}),
        (("bolt",), {"colour": "red"}),
        ((), {"count": 1, "colour": "red"}),
    ],
)
def test_wrong_fields_are_an_error(values: tuple[object, ...], named: dict[str, object]) -> None:
    kind: type = Stock
    with pytest.raises(TypeError, match=r"Stock takes \('item', 'count'\), not"):
        kind(*values, **named)


def test_copies_are_equal() -> None:
    made = Stock("bolt", 3)
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made
