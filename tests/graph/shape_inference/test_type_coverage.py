"""How many values of a model have types, and the first that has none."""

from tests.small import parsed
from tiered.graph.shape_inference.type_coverage import TypeCoverage, type_coverage


def test_values_with_types_ranks_and_static_shapes_are_counted() -> None:
    for text, counts, untyped, said in (
        ("(float[2,N] x) => (float[?] y) <float[3] w = {1,2,3}> { a = Relu(x)  y = Neg(a) }",
         (4, 4, 4, 1), [], "100 % of 4 values have a type"),
        ("(float[2] x, float[] u) => (float[2] y) { a = acme.Any(x)  b = acme.Any(a)  v = Neg(u)"
         "  y = Neg(x) }",
         (6, 4, 2, 2), ["a", "b"],
         "67 % of 6 values have a type; the first without: 'a' of Any 'a'"),
        ("(float[2] x) => (float[2] y, int64[1] at) { y, at = acme.Any(x)  b = acme.Any(y) }",
         (4, 3, 3, 3), ["b"],
         "75 % of 4 values have a type; the first without: 'b' of Any 'b'"),
    ):  # fmt: skip
        found = type_coverage(parsed(text))
        assert (found.total, found.typed, found.ranked, found.static) == counts, text
        assert [value.name for value in found.untyped] == untyped, text
        assert str(found) == said, text
        assert found.share == counts[1] / counts[0], text


def test_of_many_values_a_share_is_complete_only_if_all_have_types() -> None:
    many = "  ".join(f"r{at} = Neg(x)" for at in range(300))
    text = f"(float[2] x) => (float[2] y) {{ {many}  a = acme.Any(x)  y = Neg(x) }}"
    assert str(type_coverage(parsed(text))).startswith("99 % of 303 values have a type; ")


def test_a_model_without_values_has_all_types() -> None:
    found = TypeCoverage(0, 0, 0, 0, ())
    assert (found.share, str(found)) == (1.0, "100 % of 0 values have a type")
