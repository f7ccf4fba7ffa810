"""Terms of lists: equal ones for equal lists, other ones for lists that differ anywhere."""

import numpy as np

from tiered.certify.domains.elements import affine
from tiered.certify.domains.terms import Array, digest, leaf, listed, negated, seed_of
from tiered.certify.rules.windows import Windows

SEED = seed_of("list of a test")


def numbers(*shape: int) -> Array:
    return leaf(seed_of("numbers of a test"), shape)


def test_lists_differ_in_each_element_each_order_and_each_sign() -> None:
    row = numbers(6)
    swapped = [row[[*range(at), at + 1, at, *range(at + 2, 6)]] for at in range(5)]
    signs = [negated(row, np.arange(6) == at) for at in range(6)]
    pairs = [negated(row, (np.arange(6) // 2) == at) for at in range(3)]
    others = [np.where(np.arange(6) == at, numbers(7)[-1], row) for at in range(6)]
    lists = [row, *swapped, *signs, *pairs, *others]
    assert len({digest(listed(SEED, each)) for each in lists}) == len(lists)


def test_many_lists_have_as_many_terms() -> None:
    made = listed(SEED, numbers(200, 200, 3))
    assert len(np.unique(made)) == made.size


def test_a_window_is_the_list_of_its_elements() -> None:
    x, filler = numbers(2, 4, 5, 6), leaf(seed_of("filler"), ())
    windows = Windows((5, 6), (3, 2), (2, 1), (1, 2), (1, 0, 1, 1))
    whole = np.concatenate([x.reshape(2, 4, -1), np.broadcast_to(filler, (2, 4, 1))], axis=2)
    lists = whole[:, :, windows.places].reshape(2, 2, 2, *windows.places.shape)
    lists = lists.transpose(0, 1, 3, 2, 4).reshape(2, 2, len(windows.places), -1)
    assert (windows.rows(SEED, x, filler, 2) == listed(SEED, lists)).all()


def test_tensors_of_elements_differ_in_each_number() -> None:
    """Numbers of few bits, whose bytes are mostly zeros."""
    rows = [affine(np.zeros(3), np.zeros(3), scale, offset)
            for scale in (0.0, 1.0, 2.0, 4.0) for offset in (0.0, 1.0, 2.0, 4.0)]  # fmt: skip
    for at in range(3):
        row = affine(np.zeros(3), np.zeros(3), 1.0, 1.0)
        row["o"][at] = 2.0
        rows.append(row)
    assert len({digest(row) for row in rows}) == len(rows)
