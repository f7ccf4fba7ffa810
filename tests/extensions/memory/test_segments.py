"""Where a forward pass is cut: the estimate of the peak."""

from tiered.extensions.memory.checkpoints import Extent, best_cuts


def chain(count: int, nbytes: int = 1) -> list[Extent]:
    """Return the tensors of a chain of nodes, each read by the next node and backward."""
    return [Extent(nbytes, at, min(at + 1, count - 1), is_read=True) for at in range(count)]


def test_a_chain_has_about_the_square_root_of_segments() -> None:
    cuts = best_cuts(chain(400), 400)
    assert 14 <= len(cuts) <= 28
    lengths = [high - low for low, high in zip([0, *cuts], [*cuts, 400], strict=True)]
    assert len(cuts) + max(lengths) <= 46  # 2 sqrt(400) = 40


def test_cuts_are_where_little_crosses() -> None:
    # Blocks of 8 nodes: within a block 10 bytes a node are alive to its end, between them 1 byte.
    extents = [
        Extent(1 if at % 8 == 7 else 10, at, at + 1 if at % 8 == 7 else at // 8 * 8 + 7, True)
        for at in range(63)
    ]
    cuts = best_cuts(extents, 64)
    assert cuts
    assert all(cut % 8 == 0 for cut in cuts)


def test_nothing_that_is_read_needs_no_cut() -> None:
    assert best_cuts([], 5) == []
    assert best_cuts([], 0) == []
    assert best_cuts([Extent(4, 0, 1, is_read=False)], 2) == []
