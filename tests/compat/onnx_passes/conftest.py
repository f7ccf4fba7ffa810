from collections.abc import Iterator

import pytest

from tests.registered import passes_forgotten
from tiered.compat.onnx_passes.groups import GROUPS


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    """Forget the classes that a test registers."""
    with passes_forgotten():
        yield
    GROUPS.clear()
