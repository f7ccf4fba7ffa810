"""Make forms of a model: each one a file in a folder of its own, and equal ones once."""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
from typing import Final

import onnx

from tiered.extensions.measurement.subjects import MeasuredModel, ModelLike, subject
from tiered.extensions.tuning.model_forms import Made, ModelForm
from tiered.graph import Model
from tiered.pipeline.instruments import Trace
from tiered.pipeline.optimize import optimize_model
from tiered.pipeline.result import OptimizeResult
from tiered.support.errors import ModelError, TieredError, UsageError

_CHUNK: Final = 1 << 20
_FILE: Final = "model.onnx"


class Maker:
    """Makes forms of one model.

    Args:
        model: the file or the proto.
        folder: for the files.
    """

    def __init__(self, model: ModelLike, folder: str) -> None:
        self._model = model
        self._folder = folder
        self._made: dict[ModelForm, Made | str] = {}
        self._files = itertools.count()

    @property
    def model(self) -> ModelLike:
        """The model that forms are made of."""
        return self._model

    def made(self, form: ModelForm) -> Made | None:
        """Return a form; None if it cannot be made."""
        found = self._made.get(form)
        if found is None:
            try:
                found = self._new(form, self.view(form))
            except TieredError as error:
                found = str(error).splitlines()[0]
            self._made[form] = found
        return None if isinstance(found, str) else found

    def failure(self, form: ModelForm) -> str:
        """Return why a form cannot be made."""
        found = self._made.get(form)
        return found if isinstance(found, str) else ""

    def view(self, form: ModelForm) -> Model:
        """Return the model of a form.

        Raises:
            TieredError: it cannot be made.
        """
        return self.loaded(form) if form.level is None else self.result(form).model

    def result(self, form: ModelForm, trace: Trace | None = None) -> OptimizeResult:
        """Return the result of the run that makes a form.

        Raises:
            TieredError: it cannot be made.
        """
        watching = () if trace is None else (trace,)
        return optimize_model(self.loaded(form), **form.settings, instruments=watching)

    def digest_with(self, passes: str, form: ModelForm) -> str:
        """Return the digest of what a pipeline makes of the model of a form.

        Raises:
            TieredError: it fails.
        """
        backend = form.backend or None
        view = optimize_model(self.loaded(form), passes=passes, backend=backend).model
        path = self._new_file()
        try:
            view.save(path)
            return digest_of(path)
        finally:
            shutil.rmtree(os.path.dirname(path))

    def loaded(self, form: ModelForm) -> Model:
        """Return the model that a form begins with.

        Raises:
            ModelError: a file cannot be read.
        """
        source = form.file or self._model
        if isinstance(source, onnx.ModelProto):
            return Model.from_proto(source)
        return Model.load(source)

    def forget(self, made: Made) -> None:
        """Delete the files of a form that is not measured again; it can be made once more."""
        self._made = {form: each for form, each in self._made.items() if each != made}
        shutil.rmtree(os.path.dirname(made.path), ignore_errors=True)

    def _new_file(self) -> str:
        """Return a file in a new folder: equal forms have equal bytes, also where these name the
        file of the weights."""
        folder = os.path.join(self._folder, str(next(self._files)))
        os.mkdir(folder)
        return os.path.join(folder, _FILE)

    def _new(self, form: ModelForm, view: Model) -> Made:
        path = self._new_file()
        view.save(path)
        nodes = sum(len(graph.nodes) for graph in view.graphs())
        found = subject(path)
        digest = _digest_of(found)
        known = next(
            (
                each
                for each in self._made.values()
                if isinstance(each, Made) and each.digest == digest
            ),
            None,
        )
        if known is not None:
            shutil.rmtree(os.path.dirname(path))
            return Made(form, known.path, digest, known.nbytes, known.nodes)
        return Made(form, path, digest, found.file_bytes, nodes)


def digest_of(model: ModelLike) -> str:
    """Return the digest of a model: of its bytes, and of the files of its external data.

    Raises:
        ModelError: a file cannot be read.
    """
    if isinstance(model, onnx.ModelProto):
        data = model.SerializeToString(deterministic=True)
        return hashlib.blake2b(data, digest_size=16).hexdigest()
    return _digest_of(subject(model))


def _digest_of(found: MeasuredModel) -> str:
    digest = hashlib.blake2b(digest_size=16)
    try:
        for name in (found.name, *found.data_files):
            with open(name, "rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
    except OSError as error:
        raise ModelError(f"cannot read {error.filename!r}: {error.strerror}") from error
    return digest.hexdigest()


def check_candidates(files: tuple[str, ...]) -> None:
    """Check the files of candidates before any work is done.

    Raises:
        UsageError: one is not there.
    """
    for file in files:
        if not os.path.isfile(file):
            raise UsageError(f"--candidates {file!r}: no such file")
