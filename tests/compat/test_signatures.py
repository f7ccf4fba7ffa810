"""Functions whose parameters are made at run time."""

import inspect

from tiered.compat.signatures import with_parameters


def test_a_function_has_the_parameters_that_it_is_given() -> None:
    def called(*values: int, **options: int) -> tuple[object, object]:
        """Return what it is given."""
        return values, options

    for options, signature in ((None, "(a, b)"), ({}, "(a, b)"), ({"c": 3}, "(a, b, *, c=3)")):
        made = with_parameters(called, ["a", "b"], options)
        assert (str(inspect.signature(made)), made.__doc__) == (signature, called.__doc__)
        assert made(1, 2, c=4) == ((1, 2), {"c": 4})
