"""The types of values that rewrites of a certificate add: inferred from what they read."""

from itertools import pairwise

from tests.small import parsed
from tiered.certify.regions.replayed_types import TypesOfValues
from tiered.verify.live_extract import part_of

HEAD = "(float[N,4] x, float[] r, float[4] w) => (float[A,B] y)"


def types_of(*texts: str, appended: bool = False) -> TypesOfValues:
    """Return the types when the nodes of models come, one after the other."""
    models = [parsed(f"{HEAD} {{ {text} }}") for text in texts]
    found = TypesOfValues(models[0])
    for before, after in pairwise(map(part_of, models)):
        nodes = [*after.nodes][len(before.nodes) if appended else 0 :]
        found.follow((before, after), (frozenset(), frozenset(nodes)))
    return found


def test_values_that_come_have_the_types_that_are_inferred() -> None:
    same = "b = Abs(x)  u = own.F(x)  y = Neg(b)"
    for after, expected in (
        (same, {}),
        ("a = Neg(x)  c = Add(a, w)  y = Neg(c)", {"a": "float[N,4]", "c": "float[N,4]"}),
        ("s, t = Split<axis = 1, num_outputs = 2>(x)  y = Neg(t)",
         {"s": "float[N,2]", "t": "float[N,2]"}),
        (", t = Split<axis = 1, num_outputs = 2>(x)  y = Neg(t)", {"t": "float[N,2]"}),
        ("a = Neg(r)  y = Neg(a)", {"a": "float[?]"}),
        ("a = NonZero(x)  c = Transpose(a)  y = Neg(x)",
         {"a": "int64[2,a[1]]", "c": "int64[c[0],2]"}),
    ):  # fmt: skip
        found = types_of(same, after)
        new = {name: str(found(name)) for name in "acst" if found(name) is not None}
        assert new == expected, after
        assert [str(found(name)) for name in ("b", "x", "u")] == [
            "float[N,4]",
            "float[N,4]",
            "None",
        ]


def test_what_reads_a_value_of_unknown_type_has_none() -> None:
    found = types_of(
        "u = own.F(x)  y = Neg(x)", "u = own.F(x)  y = Neg(x)  a = Neg(u)", appended=True
    )
    assert (found("a"), found("u")) == (None, None)
    assert types_of("y = Neg(x)", "y = Neg(x)  u = own.F(x)", appended=True)("u") is None


def test_dims_of_a_later_rewrite_are_those_of_an_earlier_one() -> None:
    found = types_of(
        "y = Neg(x)",
        "y = Neg(x)  a = NonZero(x)",
        "y = Neg(x)  a = NonZero(x)  c = Neg(a)  d = Shape(a)",
        appended=True,
    )
    assert [str(found(name)) for name in "acd"] == ["int64[2,a[1]]", "int64[2,a[1]]", "int64[2]"]
