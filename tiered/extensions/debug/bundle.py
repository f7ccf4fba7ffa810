"""Reproducers: a folder that shows one failure of one pass, on as little of a model as it takes.

    before.onnx    the part of the model around the rewrite, as it was before it
    after.onnx     the result of the pass; absent if the pass raised
    inputs.npz     inputs on which the two differ, from the run of the whole model
    pipeline.txt   the pass
    failure.json   the failure, its rewrite and node, the settings and the versions

`tiered replay FOLDER` runs the pass on `before.onnx` once more and shows the failure.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from tiered import __version__
from tiered.context import PassContext
from tiered.extensions.debug.pipeline_runs import opened
from tiered.extensions.debug.time_limit import TimeLimit
from tiered.graph import Model
from tiered.passes import Pass
from tiered.passes.interface.registry import ENTRY_POINTS
from tiered.pipeline.optimize import pipeline_of
from tiered.runtime.compare.outputs import compare
from tiered.support.errors import (
    ModelError,
    PassError,
    PassNotFoundError,
    TieredError,
    VerificationError,
    words_of,
)
from tiered.support.numerics import Numerics
from tiered.support.whole_files import whole_file, write_json, write_text
from tiered.verify.custom_ops import using

FORMAT = 1
PACKAGES = ("onnx", "onnxruntime", "numpy", "networkx")


@dataclass(frozen=True)
class Failure:
    """What a bundle shows.

    Attributes:
        kind: "outputs", "view", "error" or "cannot run", as in `Blame`.
        pass_text: the pass; `pass_source` is where it is written.
        symptom: the failure of the whole model.
        shown: the failure of the part, as a replay prints it.
        numerics: the promise of the pass.
        number, law, anchor, before, after: of the rewrite.
        pipeline: all that ran on the whole model.
        settings: of the context.
        model: the file of the whole model.
        nodes: how many nodes the part has, and how many the whole model had.
        versions: of tiered, Python and the packages.
        command: the command that replays the failure.
        dtypes: of inputs with a dtype that npz lacks.
    """

    kind: str
    pass_text: str
    symptom: str
    shown: str
    numerics: str
    number: int
    law: str
    anchor: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    pass_source: str = ""
    pipeline: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    nodes: tuple[int, int] = (0, 0)
    versions: dict[str, str] = field(default_factory=dict)
    command: str = ""
    dtypes: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT


@dataclass(frozen=True)
class Bundle:
    """A reproducer in memory."""

    failure: Failure
    before: onnx.ModelProto
    after: onnx.ModelProto | None
    feeds: Mapping[str, Any]

    def save(self, folder: str | os.PathLike[str]) -> str:
        """Write the bundle into a folder, which is made, and return the folder's name.

        Raises:
            ModelError: it cannot be written.
        """
        name = os.fspath(folder)
        arrays, dtypes = _packed(self.feeds)
        failure = asdict(self.failure)
        failure |= {"dtypes": dtypes, "command": f"tiered replay {name}"}
        try:
            os.makedirs(name, exist_ok=True)
            for file, model in (("before.onnx", self.before), ("after.onnx", self.after)):
                path = os.path.join(name, file)
                if model is not None:
                    Model.from_proto(model).save(path)
                elif os.path.exists(path):
                    os.remove(path)
            with whole_file(os.path.join(name, "inputs.npz")) as inputs:
                np.savez(inputs, **arrays)
        except OSError as error:
            raise ModelError(f"cannot write {name}: {words_of(error)}") from error
        write_text(os.path.join(name, "pipeline.txt"), f"{self.failure.pass_text}\n")
        write_json(os.path.join(name, "failure.json"), failure, indent=2)
        return name


def load_bundle(folder: str | os.PathLike[str]) -> Bundle:
    """Read a bundle.

    Raises:
        ModelError: the folder holds none, or it cannot be read.
    """
    name = os.fspath(folder)
    try:
        with open(os.path.join(name, "failure.json"), encoding="utf-8") as file:
            fields = json.load(file)
        if fields.get("format") != FORMAT:
            raise ModelError(f"{name} is a bundle of another format than {FORMAT}")
        lists: dict[str, Any] = {k: tuple(v) for k, v in fields.items() if isinstance(v, list)}
        failure = Failure(**{**fields, **lists})
        before = onnx.load(os.path.join(name, "before.onnx"))
        after = os.path.join(name, "after.onnx")
        with np.load(os.path.join(name, "inputs.npz")) as arrays:
            feeds = _unpacked(dict(arrays), failure.dtypes)
        return Bundle(failure, before, onnx.load(after) if os.path.exists(after) else None, feeds)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"{name} is no bundle that can be read: {error}") from error


@dataclass(frozen=True)
class Replay:
    """What came of a bundle.

    Attributes:
        fails: whether the failure is shown again.
        symptom: the failure, or a note that there is none.
        ran_pass: whether the pass itself ran; if not, its recorded result was compared.
    """

    fails: bool
    symptom: str
    ran_pass: bool


def replay(bundle: Bundle | str | os.PathLike[str], pass_: Pass | None = None) -> Replay:
    """Run the pass of a bundle on its model, and return whether it still fails.

    Args:
        bundle: a bundle, or its folder.
        pass_: the pass, where no registry knows it. Without it, what the pass made when the bundle
            was written is looked at.

    Raises:
        ModelError: the folder holds no bundle.
        RuntimeFailure: the model of the bundle does not run as it was before the pass.
    """
    held = bundle if isinstance(bundle, Bundle) else load_bundle(bundle)
    failure = held.failure
    if pass_ is None:
        try:
            pass_ = pipeline_of(failure.pass_text)
        except PassNotFoundError:
            if held.after is None:
                raise
            symptom = difference(held.before, held.after, held.feeds, Numerics(failure.numerics))
            return Replay(bool(symptom), symptom or "the outputs agree", False)
    try:
        symptom = symptom_of(pass_, held.before, held.feeds, failure)[0]
    except PassError as error:
        symptom = f"{type(error).__name__}: {error}"
    return Replay(bool(symptom), symptom or "the pass does not fail any more", True)


def symptom_of(
    pass_: Pass, before: onnx.ModelProto, feeds: Mapping[str, Any] | None, failure: Failure
) -> tuple[str, onnx.ModelProto | None]:
    """Run a pass on a model; return the failure after it, and the result.

    Args:
        pass_: the pass.
        before: the model.
        feeds: its inputs; None if there are none to tell by.
        failure: its kind, promise and settings.

    Raises:
        PassError: the pass raised, and did not do so on the whole model.
    """
    view = Model.from_proto(before)
    context = PassContext.isolated(**_seen(failure.settings), instruments=[TimeLimit()])
    try:
        pass_.apply(view, context)
    except TieredError as error:
        if failure.kind != "error":
            raise
        return f"{type(error).__name__}: {error}", None
    try:
        made = view.to_proto()
        if failure.kind == "view":
            view.check_view(types=True)
    except (TieredError, AssertionError) as error:
        return str(error), None
    if failure.kind not in ("outputs", "cannot run") or feeds is None:
        return "", made
    with using(context.backend):
        return difference(before, made, feeds, Numerics(failure.numerics)), made


def _seen(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a pass sees; which passes run is decided."""
    return {name: settings[name] for name in ("opt_level", "backend", "config") if name in settings}


def difference(
    before: onnx.ModelProto, after: onnx.ModelProto, feeds: Mapping[str, Any], numerics: Numerics
) -> str:
    """Return how the outputs of two models differ; "" if they agree.

    Raises:
        RuntimeFailure: the first of them does not run.
    """
    with opened(before) as session:
        expected = session.run(feeds)
    try:
        with opened(after) as session:
            actual = session.run({name: feeds[name] for name in session.inputs if name in feeds})
    except TieredError as error:
        return str(error)
    found = compare(expected, actual, numerics)
    return "" if found.ok else f"{found} (promised: {numerics})"


def replayed_error(found: Replay, bundle: Bundle, folder: str) -> VerificationError:
    """Return the final error of a command that wrote a bundle."""
    failure = bundle.failure
    how = "" if found.ran_pass else " (its recorded result; the pass itself is unknown here)"
    where = f", at node {failure.anchor!r}" if failure.anchor else ""
    nodes = "".join(
        f"\n{sign} {line}"
        for sign, lines in (("-", failure.before), ("+", failure.after))
        for line in lines
    )
    return VerificationError(
        f"{folder}: {failure.pass_text} is wrong{where}{how}\n{found.symptom}\n"
        f"law {failure.law}{nodes}"
    )


def versions() -> dict[str, str]:
    """Return the versions of tiered, Python, the packages it works with, and plug-ins."""
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    plugins = {
        point.dist.name: point.dist.version
        for point in importlib.metadata.entry_points(group=ENTRY_POINTS)
        if point.dist is not None
    }
    return {"tiered": __version__, "python": platform.python_version(), **packages, **plugins}


def _packed(feeds: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return arrays as npz takes them, and the dtypes of those that it would forget."""
    arrays: dict[str, Any] = {}
    dtypes: dict[str, str] = {}
    for name, value in feeds.items():
        array = np.asarray(value)
        if hasattr(ml_dtypes, array.dtype.name):
            dtypes[name] = array.dtype.name
            array = array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)
        elif array.dtype.kind == "O":
            dtypes[name] = "object"
            array = array.astype(str)
        arrays[name] = array
    return arrays, dtypes


def _unpacked(arrays: Mapping[str, Any], dtypes: Mapping[str, str]) -> dict[str, Any]:
    found = dict(arrays)
    for name, dtype in dtypes.items():
        narrow = getattr(ml_dtypes, dtype, None)
        found[name] = found[name].astype(object) if narrow is None else found[name].view(narrow)
    return found
