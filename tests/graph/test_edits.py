"""Random edits: the view equals a fresh one after each, and undo restores the first bytes."""

import os
import random
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.graph.editor import Editor, edited, fresh, serialized, structure
from tiered.graph import Model
from tiered.graph.io.load import load_model

LONG = int(os.environ.get("TIERED_LONG", "0"))
"""How many long histories to try: `make test-long` sets it."""


def check_against_a_fresh_view(model: Model) -> None:
    model.check_view()
    # Not by from_proto, which rejects the operands of random edits.
    again = Model("", None)
    load_model(again, model.to_proto())
    assert serialized(again) == serialized(model)
    assert structure(again) == structure(model)


def check_history(editor: Editor, steps: int) -> None:
    """Edit step by step, then undo step by step."""
    model = editor.model
    for graph in model.graphs():
        assert graph.dag is not None
    marks = []
    for _ in range(steps):
        mark = model.mark()
        before = edited(model, editor)
        check_against_a_fresh_view(model)
        if before is not None:
            marks.append((mark, before))
    for mark, before in reversed(marks):
        model.undo_to(mark)
        model.check_view()
        assert serialized(model) == before
    assert structure(model) == structure(fresh())


@settings(max_examples=max(LONG, 12))
@given(st.data())
def test_each_edit_keeps_the_invariants_and_undo_restores_the_bytes(
    data: st.DataObject,
) -> None:
    def choose(choices: Sequence[Any], what: str) -> Any:
        return data.draw(st.sampled_from(choices), label=what)

    check_history(Editor(fresh(), choose), data.draw(st.integers(1, 25), label="steps"))


@pytest.mark.parametrize("seed", range(max(LONG, 3)))
def test_a_long_history_keeps_every_invariant_too(seed: int) -> None:
    made = random.Random(seed)
    editor = Editor(fresh(), lambda choices, _: choices[made.randrange(len(choices))])
    check_history(editor, 300 if LONG else 60)
