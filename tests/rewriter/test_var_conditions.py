"""Conditions on the type of a value: which values meet them, and how they are written."""

from typing import Any

from tests.small import named, parsed
from tiered.rewriter.var_conditions import Condition

MODEL = """(float[2,3] x, float[] unknown, int64[2,N] y) => (float[2,3] z) {
    a = vendor.F(x) r = Reshape(x, t) z = Neg(x) }""".replace("float[] unknown", "int64[K] t")


def condition(*, dtype: Any = None, rank: Any = None, shape: Any = None) -> Condition:
    return Condition.of(dtype=dtype, rank=rank, shape=shape)


def test_all_conditions_on_a_type_must_hold() -> None:
    model = parsed(MODEL)
    for wanted, expected in (
        (condition(), "xyar"),
        (condition(dtype=1), "xr"),
        (condition(dtype=[1, 7]), "xyr"),
        (condition(rank=2), "xy"),
        (condition(rank=range(2)), ""),
        (condition(rank={2, 3}, dtype=7), "y"),
        (condition(shape=(2, 3)), "x"),
        (condition(shape=(2, None)), "xy"),
        (condition(shape=(2, "N")), "y"),
        (condition(shape=[None]), ""),
        (condition(shape=(2, None), dtype=1), "x"),
        (condition(shape=(2, None), rank=3), ""),
        (condition(shape=(...,)), "xy"),
        (condition(shape=(..., 3)), "x"),
        (condition(shape=(2, ..., 3)), "x"),
        (condition(shape=(2, ...)), "xy"),
        (condition(shape=(3, ...)), ""),
        (condition(shape=(..., 2)), ""),
        (condition(shape=(2, 3, ...)), "x"),
        (condition(shape=(2, ..., 2, 3)), ""),
        (condition(shape=(2, 3, ..., 3)), ""),
    ):
        found = "".join(name for name in "xyar" if wanted.holds(named(model, name)))
        assert found == expected, str(wanted)


def test_conditions_are_written_as_they_are_given() -> None:
    for wanted, text in (
        (condition(), ".having()"),
        (condition(dtype=1), ".having(dtype=1)"),
        (condition(dtype=(1, 7), rank=2), ".having(dtype=(1, 7), rank=2)"),
        (condition(rank=(2, 3)), ".having(rank=(2, 3))"),
        (condition(shape=("N",)), ".having(shape=('N',))"),
        (condition(shape=(1, ..., None)), ".having(shape=(1, ..., None))"),
        (Condition(predicate=callable), ".where(callable)"),
        (Condition(predicate=callable, dtypes=(1,)), ".where(callable)"),
    ):
        assert str(wanted) == text
