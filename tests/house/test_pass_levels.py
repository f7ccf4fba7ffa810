"""The level of each pass is listed, and fits its promise."""

from tests.pass_levels import declared, listed
from tiered.passes.index.table import INDEX
from tiered.support.numerics import LEVEL_OF


def test_each_pass_is_listed_as_it_is_declared() -> None:
    found = {name: declared(entry.info) for name, entry in INDEX.items()}
    assert found == listed()
    assert list(found) == sorted(listed())


def test_a_level_is_that_of_the_promise_or_higher() -> None:
    for name, entry in INDEX.items():
        info = entry.info
        least = None if info.changes_interface else LEVEL_OF[info.numerics]
        is_high = info.opt_level is None or (least is not None and info.opt_level >= least)
        assert is_high, f"{name} is of level {info.opt_level}, and {info.numerics.value}"
