"""The polynomials of TVM's FastMath, as operators."""

import numpy as np

from tests.small import named, parsed
from tests.written import Writer
from tiered.rewriter.idioms.polynomials import fast_exponential, polynomial


def test_the_highest_power_comes_first() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    found = polynomial(model.main, named(model, "x"), (2, 3, 4))
    assert Writer()(found) == "Add(Mul(x, Add(Mul(x, 2.0), 3.0)), 4.0)"
    assert Writer()(polynomial(model.main, named(model, "x"), (5,))) == "5.0"


def test_half_of_each_power_of_two_is_looked_up() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    found = Writer()(fast_exponential(model.main, named(model, "x")))
    assert found.endswith("Cast<to=6>(Add(Where(IsNaN(#3), 0.0, #3), 150.0))))")
    assert "#3=Floor(Add(Mul(#2, 1.4426950216293335), 0.5))" in found
    assert "#1=Sub(#2=Clip(x, -104.0, 89.0), Mul(#3" in found
    (table,) = (each for each in model.main.initializers if each.shape == (279,))
    assert table.const is not None
    assert table.const.tolist() == [float(np.float32(2.0**power)) for power in range(-151, 128)]
    assert table.const.dtype == np.float32
