"""Oracles decide whether a model is right: by its outputs, or by a command of the user."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import onnx

from tiered.extensions.debug.pipeline_runs import ModelLike, load, opened, samples_of
from tiered.graph import Model
from tiered.passes.interface.pass_info import PassInfo
from tiered.runtime.compare.outputs import compare
from tiered.runtime.deviations import explaining
from tiered.runtime.inputs.make import Inputs
from tiered.runtime.inputs.samples import Source
from tiered.runtime.session import Runner, as_proto
from tiered.runtime.worker.client import shared_worker
from tiered.support.errors import TieredError, UsageError
from tiered.support.numerics import Numerics, Promise, loosest
from tiered.targets import Verification
from tiered.verify.baseline import RunnableModel
from tiered.verify.last_bits import amplification
from tiered.verify.methods import UNLIMITED, computed_in
from tiered.verify.model_pair import ModelPair
from tiered.verify.pass_promises import held_to
from tiered.verify.random_values import random_outputs
from tiered.verify.reference_check import reference_opinion
from tiered.verify.sliced_session import open_model


class Oracle(Protocol):
    """Returns the failure of a model; "" if it is right."""

    @property
    def name(self) -> str:
        """The name of the oracle and of its settings, unique to them."""

    def __call__(self, model: Model, changed_by: Sequence[PassInfo]) -> str: ...


@dataclass
class OutputOracle:
    """Compares the outputs with those of the original, as the passes promise.

    The first inputs that show a difference are the only ones from then on, so that a verdict costs
    one run.

    Args:
        source: the original.
        inputs: files or arrays; made for the original if there are none.
        seed: of inputs that are made.
        numerics: the allowed difference, instead of the promises of the passes.
        folder: where the external data of a proto is.
        limits: the accuracy that the target asks for, beside the promises of the passes.

    Raises:
        RuntimeFailure: the original does not run.
        UsageError: the original has random outputs.
    """

    source: ModelLike
    inputs: Sequence[Source] = ()
    seed: int = 0
    numerics: Numerics | None = None
    folder: str = ""
    limits: Verification = UNLIMITED
    samples: list[Inputs] = field(init=False)
    runs: int = 0

    def __post_init__(self) -> None:
        self._computed = computed_in(load(self.source, self.folder))
        with opened(self.source, self.folder) as session:
            self._take(session)

    def _take(self, session: Runner) -> None:
        """Choose the samples, and run the original on each."""
        self.samples = samples_of(self.source, session, self.inputs, self.seed)
        self._every = list(self.samples)
        self._expected = [session.run(sample.feeds) for sample in self.samples]
        feeds = [sample.feeds for sample in self.samples]
        self._random = random_outputs(as_proto(self.source), session, feeds, self._expected)
        if self._random and self._random == set(self._expected[0]):
            raise UsageError(
                "the model gives other outputs each time it runs (random operators without a "
                "seed), so changes by passes cannot be detected"
            )

    @property
    def name(self) -> str:
        given = f", inputs {[str(source) for source in self.inputs]}" if self.inputs else ""
        return f"outputs {self.numerics or 'as promised'}, seed {self.seed}{given}"

    @property
    def sample(self) -> Inputs:
        """The inputs that are used."""
        return self.samples[0]

    def __call__(self, model: Model, changed_by: Sequence[PassInfo]) -> str:
        """Return the failure of the model: it does not run, or its outputs differ."""
        try:
            return self.failure_of(RunnableModel.of(model), changed_by)
        except TieredError as error:  # it cannot be written
            return str(error)

    def failure_of(self, made: RunnableModel, changed_by: Sequence[PassInfo]) -> str:
        """Return the failure of a result of passes, as `__call__` does."""
        promises = [info.promise for info in changed_by]
        promised = Promise(self.numerics) if self.numerics else loosest(promises)
        promised = self._held(promised)
        changes_interface = any(info.changes_interface for info in changed_by)
        try:
            with open_model(shared_worker(), made.proto, folder=made.folder) as session:
                for at, sample in enumerate(self.samples):
                    if sample.is_varied and promised.numerics is Numerics.LOSSY:
                        continue
                    self.runs += 1
                    actual = session.run(sample.feeds)
                    expected = dict(self._expected[at])
                    if changes_interface:
                        expected = {name: expected[name] for name in expected if name in actual}
                        actual = {name: actual[name] for name in actual if name in expected}
                    found = compare(expected, actual, promised, random=self._random)
                    if not found.ok:
                        self._keep(at)
                        return f"{found} (promised: {promised})"
        except TieredError as error:  # it cannot be opened or run
            return str(error)
        return ""

    def excuse(self, before: RunnableModel, after: RunnableModel, info: PassInfo) -> str:
        """Return why one rewrite is right although the outputs differ around it; "" if it is not.

        onnxruntime is known to deviate so, or the model amplifies last bits.

        Its outputs are the expected ones from then on, if it is excused.

        Args:
            before, after: the model around the rewrite.
            info: its pass.
        """
        promise = self._held(info.promise)
        outputs = [self._outputs(made, self._every) for made in (before, after)]
        excuse = ""
        for sample, one, other in zip(self._every, *outputs, strict=True):
            found = compare(one, other, promise, random=self._random)
            failing = [output for output in found.outputs if not output.ok]
            if not failing:
                continue
            excuse = ""
            models = ModelPair(shared_worker(), before, after, sample.feeds, promise)
            # onnx.reference is slow, and is asked only where that may help.
            if explaining((before.proto, after.proto), failing):
                opinion = reference_opinion(models, found)
                excuse = opinion.text if opinion.is_excused else ""
            excuse = excuse or amplification(models, found)
            if not excuse:
                return ""
        if excuse:
            self.samples, self._expected = list(self._every), outputs[1]
        return excuse

    def _held(self, promise: Promise) -> Promise:
        return held_to(promise, self.limits).changed(computed=self._computed)

    @staticmethod
    def _outputs(made: RunnableModel, samples: Sequence[Inputs]) -> list[dict[str, Any]]:
        with open_model(shared_worker(), made.proto, folder=made.folder) as session:
            return [session.run(sample.feeds) for sample in samples]

    def _keep(self, at: int) -> None:
        self.samples, self._expected = [self.samples[at]], [self._expected[at]]


@dataclass
class CommandOracle:
    """Asks a command, which gets the file of the model in the place of `{}`, or at its end.

    The model is wrong if the command does not end with 0.
    """

    command: str
    seconds: float | None = None
    runs: int = 0

    @property
    def name(self) -> str:
        return f"command {self.command}"

    def __call__(self, model: Model, changed_by: Sequence[PassInfo] = ()) -> str:
        """Return how the command ended; "" for 0."""
        self.runs += 1
        with tempfile.TemporaryDirectory(prefix="tiered-check-") as folder:
            path = os.path.join(folder, "model.onnx")
            model.save(path)
            code = ended(self.command, path, self.seconds)
        return f"`{self.command}` ended with {code}" if code else ""


@dataclass
class SameEnd:
    """Returns whether a command ends on a model as it did on the first one: with that error.

    Args:
        command: as for `CommandOracle`.
    """

    command: str
    code: int | str | None = None

    def __call__(self, model: onnx.ModelProto) -> bool:
        """Return whether the command ends as it did first; 0 is no failure."""
        with tempfile.TemporaryDirectory(prefix="tiered-check-") as folder:
            path = os.path.join(folder, "model.onnx")
            with open(path, "wb") as file:
                file.write(model.SerializeToString(deterministic=True))
            code = ended(self.command, path)
        if self.code is None:
            self.code = code
        return code == self.code and code != 0


def ended(command: str, path: str, seconds: float | None = None) -> int | str:
    """Run a command on a model and return its exit code, or that it took too long.

    Raises:
        UsageError: there is no such command, or it is no line of a shell.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"cannot read the check {command!r}: {error}") from error
    filled = [word.replace("{}", path) for word in words]
    if filled == words:
        filled.append(path)
    try:
        done = subprocess.run(
            filled,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
        )
    except (OSError, IndexError) as error:
        raise UsageError(f"cannot run the check {command!r}: {error}") from error
    except subprocess.TimeoutExpired:
        return f"no end within {seconds:g} s"
    return done.returncode
