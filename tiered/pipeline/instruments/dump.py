"""Dump: the model after each pass, as numbered files of a folder."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from tiered.graph.io.export import export_model
from tiered.graph.shape_inference.onnx_inference import DATA_ELEMENTS
from tiered.pipeline.instruments.onnx_text import model_text
from tiered.pipeline.instruments.stacks import Stacks
from tiered.support.amounts import counted
from tiered.support.errors import ModelError
from tiered.support.whole_files import whole_file, write_text

if TYPE_CHECKING:
    from tiered.graph import Model, Stamp
    from tiered.passes.interface.pass_info import PassInfo


class Dump:
    """Writes `000-input.onnx`, then `001-fold_constant.onnx` and so on after each pass.

    Weights of more than 1,024 elements are left out, unless they are asked for: they are inputs of
    the graph, which viewers and shape inference take.

    Args:
        folder: made if it is not there; files of the same names are overwritten.
        every: after every pass, also if it changed nothing.
        text: write the text of `onnx.printer` too, without large weights.
        weights: write all weights, each time.

    Raises:
        ModelError: the folder cannot be made, or (when a pass ran) a file cannot be written.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        every: bool = False,
        text: bool = False,
        weights: bool = False,
    ) -> None:
        self.folder = os.fspath(folder)
        self.files: list[str] = []
        self._every = every
        self._text = text
        self._weights = weights
        self._begun: Stacks[Stamp] = Stacks()
        self._lock = threading.Lock()

    def enter_pass_ctx(self) -> None:
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise ModelError(f"cannot make the folder {self.folder!r}: {error.strerror}") from error

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        if self._begun.top(model) is None:
            self._write(model, "input")
        self._begun.push(model, model.journal.stamp())

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        before = self._begun.pop(model)
        if info.kind != "pipeline" and (self._every or model.journal.moved_since(before)):
            self._write(model, info.name)

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        self._begun.pop(model)

    def _write(self, model: Model, name: str) -> None:
        with self._lock:
            path = os.path.join(self.folder, f"{len(self.files):03d}-{name}.onnx")
            self.files.append(path)
        if self._weights:
            model.save(path)
        else:
            self._write_bare(model, path)
        if self._text:
            write_text(f"{path}.txt", model_text(model))

    @staticmethod
    def _write_bare(model: Model, path: str) -> None:
        """Write a model without its large weights."""
        proto = export_model(model, max_elements=DATA_ELEMENTS)
        with whole_file(path) as file:
            file.write(proto.SerializeToString(deterministic=True))

    def __str__(self) -> str:
        """Log the path of the file."""
        count = len(self.files)
        models = counted(count, "model")
        left_out = (
            "with all weights"
            if self._weights
            else f"weights of more than {DATA_ELEMENTS:,} elements left out, as graph inputs"
        )
        return f"dumped {models} into {self.folder} ({left_out})"
