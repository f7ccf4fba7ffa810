"""The mark of a part: the metadata entry `tiered.split`, which says what the whole model is.

By it, `merge` knows which tensors at a cut are outputs of the whole, or are read by parts that are
still to come. The model of all parts has the inputs and outputs of the whole, and no mark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tiered.graph import Model, Value
from tiered.support.errors import ModelError

KEY: Final = "tiered.split"


class SplitMark(NamedTuple):
    """What a model is a part of.

    Attributes:
        inputs, outputs: the names of those of the whole model.
        readers: the numbers of the parts that read a tensor of another part.
        total: the number of parts.
        parts: the numbers of the parts that the model consists of.
        outer: the mark of the whole model, if it is a part itself; else "".
    """

    inputs: Sequence[str]
    outputs: Sequence[str]
    readers: Mapping[str, Sequence[int]]
    total: int
    parts: Sequence[int]
    outer: str

    @property
    def is_whole(self) -> bool:
        """Whether the model consists of all parts."""
        return len(self.parts) == self.total

    def keeps(self, name: str) -> bool:
        """Return whether a tensor that parts read is an output of the model of these parts."""
        return name in self.outputs or not {*self.parts}.issuperset(self.readers.get(name, ()))

    def written(self) -> str:
        """Return the mark as text."""
        return json.dumps(self._asdict(), separators=(",", ":"))


def mark_of(model: Model) -> SplitMark | None:
    """Return the mark of a model; None if it has none.

    Raises:
        ModelError: it cannot be read.
    """
    text = mark_text(model)
    if not text:
        return None
    try:
        found: dict[str, Any] = json.loads(text)
        return _checked(SplitMark(**found))
    except (ValueError, TypeError) as error:
        raise ModelError(
            f"the metadata entry {KEY!r} is not one that split writes: {error}; remove it"
        ) from error


def _checked(mark: SplitMark) -> SplitMark:
    """Return a mark that was read.

    Raises:
        TypeError: a field is of another type.
    """
    numbers = [mark.parts, *dict(mark.readers).values()]
    is_right = (
        all(isinstance(each, list) for each in (mark.inputs, mark.outputs, *numbers))
        and all(isinstance(name, str) for name in (*mark.inputs, *mark.outputs, mark.outer))
        and all(isinstance(number, int) for each in numbers for number in each)
        and isinstance(mark.readers, dict)
        and isinstance(mark.total, int)
    )
    if not is_right:
        raise TypeError("a field is of another type")
    return mark


def joined(first: SplitMark | None, second: SplitMark | None) -> SplitMark | None:
    """Return the mark of the model of two models; None if they are not parts of one split."""
    if first is None or second is None or first._replace(parts=()) != second._replace(parts=()):
        return None
    if not {*first.parts}.isdisjoint(second.parts):
        return None
    return first._replace(parts=sorted([*first.parts, *second.parts]))


def write_marks(
    parts: Sequence[Model], inputs: Iterable[str], outputs: Iterable[str], outer: str
) -> None:
    """Write a mark into each part of a model."""
    made = {value.name for part in parts for value in part.main.outputs}
    readers: dict[str, list[int]] = {}
    for at, part in enumerate(parts):
        for value in part.main.inputs:
            if value.name in made:
                readers.setdefault(value.name, []).append(at)
    whole = SplitMark([*inputs], [*outputs], readers, len(parts), [], outer)
    for at, part in enumerate(parts):
        _write(part, whole._replace(parts=[at]).written())


def finish(model: Model, mark: SplitMark | None, *, keep: bool) -> None:
    """Write the mark of a merged model; all parts get the interface of the whole.

    Args:
        model: the merged model.
        mark: its mark; None if it is no model of parts.
        keep: tensors at a cut stay outputs.
    """
    if mark is None:
        _write(model, "")
        return
    _write(model, mark.outer if mark.is_whole else mark.written())
    if mark.is_whole:
        graph = model.main
        graph.order_inputs(_ordered(graph.inputs, mark.inputs))
        outputs = _ordered(graph.outputs, mark.outputs)
        graph.replace_outputs([each for each in outputs if keep or each.name in mark.outputs])


def _ordered(values: Sequence[Value], names: Sequence[str]) -> list[Value]:
    """Return the values that have some names, in the order of these, and then the others."""
    place = {name: at for at, name in enumerate(names)}
    return sorted(dict.fromkeys(values), key=lambda value: place.get(value.name, len(place)))


def mark_text(model: Model) -> str:
    """Return the mark of a model as text; "" if it has none."""
    return next((e.value for e in model.skeleton.metadata_props if e.key == KEY), "")


def _write(model: Model, text: str) -> None:
    entries = [entry for entry in model.skeleton.metadata_props if entry.key != KEY]
    del model.skeleton.metadata_props[:]
    model.skeleton.metadata_props.extend(entries)
    if text:
        model.skeleton.metadata_props.add(key=KEY, value=text)
