"""The places of TVM's modules: each is a module here under another name."""

import importlib

from tests.recorded import assert_values
from tiered.compat import tvm


def test_places_of_modules_are_recorded() -> None:
    def at(place: str, name: str = "") -> object:
        found = importlib.import_module(f"tiered.compat.tvm.{place}")
        if not name:
            return "itself" if found is tvm else found.__name__
        made = getattr(found, name)
        if isinstance(made, list):
            return sorted(made)
        return f"{made.__module__}.{made.__qualname__}"

    assert_values(__file__, {"at": at, "tvm": tvm, "importlib": importlib})
