"""What edits make better known: the types and elements that change, as text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.graph.shape_inference.typed import known
from tests.recorded import assert_recorded
from tests.small import made_by, named, parsed
from tiered import Model
from tiered.graph import Tensor, TensorType


def test_what_is_known_after_edits() -> None:
    assert_recorded(Path(__file__).with_name("refreshed_types.txt"), {"=": _refreshed})


def _refreshed(_: str, below: list[str]) -> Iterator[str]:
    text, *edits = (line for line in below if line and not line.startswith("  "))
    yield text
    for edit in edits:
        yield edit
        model = parsed(text)
        model.refresh_types()
        before, mark = _all(model), model.mark()
        names: dict[str, Any] = {
            "m": model, "g": model.main, "v": lambda name, model=model: named(model, name),
            "n": lambda name, model=model: made_by(model, name), "np": np, "Tensor": Tensor,
            "Type": TensorType,
        }  # fmt: skip
        exec(edit, names)
        model.refresh_types()
        after = _all(model)
        for name, kind in after.items():
            if before.get(name) != kind:
                yield f"  {name}: {before.get(name, 'new')}  =>  {kind}"
        model.undo_to(mark)
        assert _all(model) == before, edit
    yield ""


def _all(model: Model) -> dict[str, str]:
    return {
        f"{graph.name}/{value.name}": known(value)
        for graph in model.graphs()
        for value in graph.values.values()
    }
