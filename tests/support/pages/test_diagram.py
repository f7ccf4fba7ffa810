from tiered.support.pages.diagram import places_of


def test_producers_are_above_consumers() -> None:
    assert places_of(3, ((0, 1), (1, 2))) == ((0, 0), (1, 0), (2, 0))


def test_a_source_is_directly_above_its_first_consumer() -> None:
    chain_and_constant = places_of(4, ((0, 1), (1, 2), (3, 2)))
    assert chain_and_constant[3][0] == chain_and_constant[2][0] - 1


def test_edges_do_not_cross_where_they_need_not() -> None:
    _, _, left, right = places_of(4, ((0, 3), (1, 2)))
    above_left, above_right, *_ = places_of(4, ((0, 3), (1, 2)))
    assert (above_left[1] < above_right[1]) == (right[1] < left[1])


def test_no_two_nodes_share_a_place() -> None:
    places = places_of(7, ((0, 3), (1, 3), (2, 3), (3, 4), (3, 5), (3, 6)))
    assert len(set(places)) == 7


def test_a_cycle_is_drawn_too() -> None:
    assert places_of(3, ((0, 1), (1, 2), (2, 1))) == ((0, 0), (1, 0), (1, 1))


def test_nothing_is_nothing() -> None:
    assert places_of(0, ()) == ()
