"""Branches, loops and scans: what a proof knows of what they compute."""

import pytest

from tests.certify.test_checker import proof

BODY = (
    "body = b (float[{row}] s, float[{row}] e) => (float[{row}] t, float[{row}] o) "
    "{{ t = Add(s, e)  o = Neg(t) }}"
)


def scan(row: str, held: str = "", y: str = "float[2,3] y") -> str:
    """Return a model that sums slices, and returns the last sum with all the negated ones."""
    return (
        f"(float[2,3] x, float[{row}] i) => (float[{row}] z, {y}) "
        f"{{ z, y = Scan<num_scan_inputs = 1{held}, {BODY.format(row=row)}>(i, x) }}"
    )


def steps(row: str, slices: list[str], stacked: str, y: str = "float[2,3] y") -> str:
    """Return the same model without a Scan: the slices of x in their order."""
    return (
        f"(float[2,3] x, float[{row}] i) => (float[{row}] z, {y}) "
        "<int64 n0 = {0}, int64 n1 = {1}, int64 n2 = {2}> { " + " ".join(slices) + f" {stacked} }}"
    )


def by_rows(order: tuple[int, int], axis: int = 0, *, backwards: bool = False) -> str:
    first, second = order
    outs = "o1, o0" if backwards else "o0, o1"
    return steps(
        "3",
        [
            f"e0 = Gather<axis = 0>(x, n{first}) e1 = Gather<axis = 0>(x, n{second})",
            "t0 = Add(i, e0) z = Add(t0, e1) u0 = Neg(t0) u1 = Neg(z)",
            f"a = Constant<value_ints = [{axis}]>()",
            "o0 = Unsqueeze(u0, a) o1 = Unsqueeze(u1, a)",
        ],
        f"y = Concat<axis = {axis}>({outs})",
        "float[2,3] y" if not axis else "float[3,2] y",
    )


def by_columns() -> str:
    return steps(
        "2",
        [
            *(f"e{at} = Gather<axis = 1>(x, n{at})" for at in range(3)),
            "t0 = Add(i, e0) t1 = Add(t0, e1) z = Add(t1, e2) a = Constant<value_ints = [0]>()",
            "u0 = Neg(t0) u1 = Neg(t1) u2 = Neg(z)",
            *(f"o{at} = Unsqueeze(u{at}, a)" for at in range(3)),
        ],
        "y = Concat<axis = 0>(o0, o1, o2)",
        "float[3,2] y",
    )


SAME = {
    "rows": (scan("3"), by_rows((0, 1))),
    "rows backwards": (scan("3", ", scan_input_directions = [1]"), by_rows((1, 0))),
    "outputs backwards": (
        scan("3", ", scan_output_directions = [1]"), by_rows((0, 1), backwards=True),
    ),
    "outputs as columns": (
        scan("3", ", scan_output_axes = [1]", "float[3,2] y"), by_rows((0, 1), 1),
    ),
    "outputs as the last axis": (
        scan("3", ", scan_output_axes = [-1]", "float[3,2] y"), by_rows((0, 1), 1),
    ),
    "columns": (scan("2", ", scan_input_axes = [1]", "float[3,2] y"), by_columns()),
    "the last axis": (scan("2", ", scan_input_axes = [-1]", "float[3,2] y"), by_columns()),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_a_scan_is_its_body_for_each_slice(name: str) -> None:
    assert proof(*SAME[name]).domain == "bits"


def test_a_scan_in_another_order_is_another_computation() -> None:
    assert proof(scan("3"), by_rows((1, 0))).domain == ""
