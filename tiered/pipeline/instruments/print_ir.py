"""PrintIR: the model before or after passes, as text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from tiered.pipeline.instruments.onnx_text import model_text
from tiered.pipeline.instruments.selected_passes import Which, chooser
from tiered.pipeline.instruments.stacks import Stacks

if TYPE_CHECKING:
    from tiered.graph import Model, Stamp
    from tiered.passes.interface.pass_info import PassInfo


class PrintIR:
    """Prints the model around passes as `onnx.printer` writes it, without large weights.

    Args:
        before: before which passes: True for all, or names and globs.
        after: after which passes.
        only_changed: not after a pass that changed nothing.
        write: takes each text; stderr by default.

    Raises:
        PassNotFoundError: an unknown name, or a glob that fits no pass.
    """

    def __init__(
        self,
        before: Which = False,
        after: Which = True,
        *,
        only_changed: bool = True,
        write: Callable[[str], object] | None = None,
    ) -> None:
        self._wants_before = chooser(before, "before")
        self._wants_after = chooser(after, "after")
        self._only_changed = only_changed
        self._write = write or to_stderr
        self._begun: Stacks[Stamp] = Stacks()

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        self._begun.push(model, model.journal.stamp())
        if info.kind != "pipeline" and self._wants_before(info):
            self._print(model, f"before {info.name}")

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        begun = self._begun.pop(model)
        if info.kind == "pipeline" or not self._wants_after(info):
            return
        if model.journal.moved_since(begun) or not self._only_changed:
            self._print(model, f"after {info.name}")

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        self._begun.pop(model)

    def _print(self, model: Model, when: str) -> None:
        self._write(f"# {when}: {model.label}\n{model_text(model)}\n")


def to_stderr(text: str) -> None:
    """Write a string to the stderr of this moment."""
    if sys.stderr is not None:
        sys.stderr.write(text)
