"""Laws without constants, and one form for operands in any order."""

import numpy as np

from tests.extensions.discovery.making import Maker
from tiered.extensions.discovery.expressions import GrammarExpr
from tiered.extensions.discovery.laws import canonical, law_of

KIND = (1, (2, 3))


def test_a_law_has_no_constants_and_no_settings() -> None:
    make = Maker()
    table = make.meaning.table
    one, two = make.constant(1.0), make.constant(2.0)
    for source, target, law in (
        (make("Add", make.x, 1.0), make.x, "Add(x, c)  =>  x"),
        (make("Sub", make.x, 1.0), make("Sub", 1.0, make.x), "Sub(x)  =>  Sub(c, x)"),
        (table.apply("Clip", [make.x, None, two], kind=KIND), one, "Clip(x)  =>  c"),
        (table.apply("Clip", [make.x, one, two], kind=KIND), one, "Clip(x)  =>  c"),
        (table.apply("Max", [make.x, one, two], kind=KIND), one, "Max(x, c, c)  =>  c"),
        (make("Where", make("Cast", make.x, to=9), 1.0, make.x), make("Softmax", make.x, axis=0),
         "Where(Cast(x), c, x)  =>  Softmax(x)"),
        (table.apply("RandomNormal", [], kind=KIND), make("Neg", make("Neg", make.x)),
         "RandomNormal()  =>  Neg(Neg(x))"),
    ):  # fmt: skip
        assert law_of(source, target) == law


def test_one_form_for_operands_in_any_order() -> None:
    make = Maker()
    table = make.meaning.table
    y, one = table.border("y", 1, (2, 3)), make.constant(1.0)

    def made(op: str, *operands: GrammarExpr | None, domain: str = "") -> GrammarExpr:
        return table.apply(op, operands, {"axis": 3}, kind=KIND, domain=domain, output=1)

    for op, operands, domain, expected in (
        ("Add", (y, make.x), "", "Add<axis=3, result=1>(x, y)"),
        ("Add", (one, make("Neg", y)), "", "Add<axis=3, result=1>(1., Neg(y))"),
        ("Add", (make("Neg", y), one), "", "Add<axis=3, result=1>(1., Neg(y))"),
        ("Add", (y, make.x), "own", "Add<axis=3, result=1>(y, x)"),
        ("Sub", (y, make.x), "", "Sub<axis=3, result=1>(y, x)"),
        ("Add", (y, None), "", "Add<axis=3, result=1>(_, y)"),
        ("Clip", (y, None, one), "", "Clip<axis=3, result=1>(y, _, 1.)"),
        ("Clip", (y, None, None), "", "Clip<axis=3, result=1>(y)"),
        ("Rand", (), "", "Rand<axis=3, result=1>()"),
        ("Neg", (make("Add", y, make.x),), "", "Neg<axis=3, result=1>(Add(x, y))"),
    ):
        found = canonical(table, made(op, *operands, domain=domain))
        assert (str(found), found.domain, found.dtype, found.shape) == (expected, domain, *KIND)
    assert canonical(table, make.x) is make.x
    assert canonical(table, table.constant(np.array(1, np.float32))) is one
