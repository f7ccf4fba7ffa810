import gc
import sys
from collections.abc import Iterator

import pytest

from tiered.support.loading import paused_collector


@pytest.fixture
def young() -> Iterator[None]:
    """Run the collector only when asked, and leave it as it was."""
    before, was_enabled = gc.get_threshold(), gc.isenabled()
    gc.set_threshold(1_000_000)
    gc.enable()
    gc.unfreeze()  # the tests are frozen, and Python 3.12 starts with some objects frozen
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*before)
        (gc.enable if was_enabled else gc.disable)()


def _is_old(thing: object) -> bool:
    return any(thing is other for other in gc.get_objects(generation=2))


@pytest.mark.usefixtures("young")
@pytest.mark.parametrize("loads", [True, False])
def test_only_loaded_code_is_old_at_once(loads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with paused_collector():
        made: list[object] = [[]]
        if loads:
            monkeypatch.setitem(sys.modules, "tests.support.loaded_here", sys)
    assert gc.isenabled()
    assert _is_old(made) is loads


@pytest.mark.usefixtures("young")
def test_what_a_program_froze_stays_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        assert frozen
        with paused_collector():
            monkeypatch.setitem(sys.modules, "tests.support.loaded_here", sys)
        assert gc.get_freeze_count() >= frozen - 100  # some were freed meanwhile
    finally:
        gc.unfreeze()
