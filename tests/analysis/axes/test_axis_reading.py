"""The terms of an Einsum, and the axes of a reduction, as they are written."""

from tests.small import parsed
from tiered import Skip
from tiered.analysis.axes.axis_reading import reduced_axes, terms_of


def test_the_terms_of_an_einsum() -> None:
    for equation, expected in (
        ("ij,jk->ik", (["ij", "jk"], "ik")),
        (" i j , jk -> k i", (["ij", "jk"], "ki")),
        ("ij,jk", (["ij", "jk"], "ik")),
        ("ba", (["ba"], "ab")),
        ("ii", (["ii"], "")),
        ("ij->", (["ij"], "")),
        ("...i->...i", None),
        ("i...->i", None),
        ("i->ii", None),
    ):
        text = f'(float[2,2] x) => (float[A] y) {{ y = Einsum<equation="{equation}">(x, x) }}'
        assert terms_of(parsed(text).main.nodes[0]) == expected, equation


def test_the_axes_of_a_reduction_are_counted_from_the_front_and_sorted() -> None:
    for line, expected in (
        ("ReduceSum(x, a)", (0, 2)),
        ("ReduceSum(x)", (0, 1, 2)),
        ("ReduceSum(x, none)", (0, 1, 2)),
        ("ReduceSum<noop_with_empty_axes=1>(x)", ()),
        ("ReduceSum<noop_with_empty_axes=1>(x, a)", (0, 2)),
        ("ReduceMax(x, zero)", (0,)),
        ("ReduceSum(x, d)", "its axes are not constant"),
        ("ArgMax<axis=-1>(x)", (2,)),
        ("ArgMin(x)", (0,)),
    ):
        text = f"""(float[2,3,4] x, int64[1] d) => (float[A] y)
            <int64[2] a = {{-1,0}}, int64[0] none = {{}}, int64[1] zero = {{0}}> {{ y = {line} }}"""
        found = reduced_axes(parsed(text).main.nodes[0], 3)
        assert (str(found) if isinstance(found, Skip) else found) == expected, line
