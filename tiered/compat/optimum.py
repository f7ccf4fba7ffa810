"""A step after the exporters of optimum: each exported model is optimised in its place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

from tiered.graph import Model
from tiered.graph.io.save import Storage
from tiered.graph.queries.stored_tensors import stored_tensors
from tiered.pipeline.optimize import Settings, optimize_model
from tiered.pipeline.result import OptimizeSummary, summary_of
from tiered.support.errors import ModelError


def post_process_exported_models(
    path: str | os.PathLike[str],
    models_and_onnx_configs: Any,
    onnx_files_subpaths: Sequence[str],
    **settings: Unpack[Settings],
) -> tuple[Any, Sequence[str]]:
    """Optimise what was exported, and return the arguments, as optimum expects.

    Args:
        path: the folder of the export.
        models_and_onnx_configs: what optimum exported; it is returned as it is.
        onnx_files_subpaths: the files in the folder.
        **settings: those of `tiered.optimize`.

    Raises:
        TieredError: as `tiered.optimize`; the model is then as it was exported.
    """
    for name in onnx_files_subpaths:
        optimize_in_place(Path(path, name), **settings)
    return models_and_onnx_configs, onnx_files_subpaths


def optimize_folder(
    path: str | os.PathLike[str], **settings: Unpack[Settings]
) -> dict[str, OptimizeSummary]:
    """Optimise the models of a folder in their places, and return what changed by file.

    Raises:
        ModelError: there is no model in the folder.
        TieredError: as `tiered.optimize`; that model is then as it was.
    """
    files = sorted(Path(path).rglob("*.onnx"))
    if not files:
        raise ModelError(f"no model in {os.fspath(path)!r}; expected files *.onnx")
    return {
        file.relative_to(path).as_posix(): optimize_in_place(file, **settings) for file in files
    }


def optimize_in_place(file: Path, **settings: Unpack[Settings]) -> OptimizeSummary:
    """Optimise a model and write it to its own file, whole or not at all.

    External weights that stay are left where they are; new ones go to `<file>.data`.
    """
    model = Model.load(file)
    tensors = [tensor for _, tensor in stored_tensors(model.graphs())]
    found = optimize_model(model, **settings)
    if any(tensor.is_external for tensor in tensors):
        model.save(file, storage=Storage(share=True))
    else:
        # Weights are read from the file that is replaced, so it stays until the new one is whole.
        with TemporaryDirectory(dir=file.parent, prefix=".tiered-") as folder:
            made = Path(folder, file.name)
            model.save(made)
            os.replace(made, file)
    return summary_of(
        found.context, found.before, found.after, found.seconds, found.verify, str(file)
    )
