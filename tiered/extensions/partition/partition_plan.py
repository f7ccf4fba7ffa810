"""Plan: models that run one after the other, and which part feeds which."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tiered.graph import Model
from tiered.graph.io.save import data_files
from tiered.runtime import Session
from tiered.support.errors import ModelError, UsageError
from tiered.support.whole_files import write_json

PLAN: Final = "plan.json"
HOST_FILE: Final = "host.onnx"
_FORMAT: Final = 1
_PART_FILE: Final = re.compile(r"part_[A-Za-z0-9_]+\.onnx")
"""The name of a part: a plan names no file outside of its folder."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One model of a plan.

    Attributes:
        name: its number and target; its file is `part_<name>.onnx`.
        target: the target that takes it; "host" for the nodes that none takes.
        inputs: the names of the values that it reads: inputs of the whole, outputs of other parts.
        outputs: the names of the values that other parts or callers of the whole read.
        nodes: the number of its nodes.
        model: the model.
    """

    name: str
    target: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: int
    model: Model = field(repr=False)

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"part_{self.name}.onnx"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The parts of a model in the order in which they run.

    Attributes:
        inputs: the names of the inputs of the whole.
        optional_inputs: the inputs that have a default.
        outputs: the names of its outputs.
        parts: the parts; each is after those that it reads.
        host: the whole with a node of a custom operator for each part of a target.
        folder: where the files are, None before the plan is saved.
    """

    inputs: tuple[str, ...]
    optional_inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parts: tuple[Part, ...]
    host: Model = field(repr=False)
    folder: str | None = None

    def sources(self, part: Part) -> dict[str, str]:
        """Return the name of the part that feeds each input of a part; "" is the caller."""
        made = {name: other.name for other in self.parts for name in other.outputs}
        return {name: made.get(name, "") for name in part.inputs}

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Run the parts on onnxruntime, one after the other, and return the outputs by name.

        A value is freed after the last part that reads it. Each part is opened when it runs.

        Raises:
            UsageError: an input is missing, or there is no such input.
            RuntimeFailure: onnxruntime cannot load or run a part.
        """
        known = {*self.inputs, *self.optional_inputs}
        if missing := [name for name in self.inputs if name not in feeds]:
            raise UsageError(f"input {missing[0]!r} is missing; the inputs are {self.inputs}")
        if unknown := [name for name in feeds if name not in known]:
            raise UsageError(f"there is no input {unknown[0]!r}; the inputs are {self.inputs}")
        values = dict(feeds)
        last = {name: at for at, part in enumerate(self.parts) for name in part.inputs}
        for at, part in enumerate(self.parts):
            own = {name: values[name] for name in part.inputs if name in values}
            values.update(self.open(part).run(own))
            for name in part.inputs:
                if last[name] == at and name not in self.outputs:
                    values.pop(name, None)
        return {name: values[name] for name in self.outputs}

    def open(self, part: Part) -> Session:
        """Return a part opened by onnxruntime, without its own optimisations."""
        if self.folder is not None:
            return Session(os.path.join(self.folder, part.file))
        return Session(part.model.to_proto(), label=f"part {part.name}", folder=part.model.folder)

    def save(self, folder: str | os.PathLike[str]) -> Plan:
        """Write the parts, the host model and `plan.json` into a folder; return the saved plan.

        Parts of a plan that was in the folder, and that this one has not, are removed.

        Raises:
            ModelError: a file cannot be written.
        """
        folder = os.fspath(folder)
        try:
            os.makedirs(folder, exist_ok=True)
            stale = self.stale_files(folder)
            for part in self.parts:
                part.model.save(os.path.join(folder, part.file))
            self.host.save(os.path.join(folder, HOST_FILE))
            write_json(os.path.join(folder, PLAN), self.described())
            for name in stale:
                for path in (name, *data_files(name)):
                    if os.path.exists(os.path.join(folder, path)):
                        os.remove(os.path.join(folder, path))
        except OSError as error:
            raise ModelError(f"cannot write the plan to {folder}: {error.strerror}") from error
        return replace(self, folder=folder)

    def stale_files(self, folder: str) -> list[str]:
        """Return the names of the parts of the plan in a folder that this plan has not."""
        try:
            with open(os.path.join(folder, PLAN), encoding="utf-8") as file:
                entries = json.load(file)["parts"]
            named = [str(entry["file"]) for entry in entries]
        except (OSError, ValueError, KeyError, TypeError):
            return []  # no plan is there, or none that has parts
        own = {part.file for part in self.parts}
        return [name for name in named if name not in own and _PART_FILE.fullmatch(name)]

    def described(self) -> dict[str, Any]:
        """Return the content of `plan.json`."""
        return {
            "format": _FORMAT,
            "inputs": list(self.inputs),
            "optional_inputs": list(self.optional_inputs),
            "outputs": list(self.outputs),
            "host": HOST_FILE,
            "parts": [
                {
                    "name": part.name,
                    "target": part.target,
                    "file": part.file,
                    "nodes": part.nodes,
                    "inputs": self.sources(part),
                    "outputs": list(part.outputs),
                }
                for part in self.parts
            ],
        }

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Plan:
        """Return the plan of a folder that `save` wrote.

        Raises:
            ModelError: a file is missing, or is no plan.
        """
        folder = os.fspath(folder)
        path = os.path.join(folder, PLAN)
        try:
            with open(path, encoding="utf-8") as file:
                read = json.load(file)
        except OSError as error:
            raise ModelError(f"cannot read {path}: {error.strerror}") from error
        except ValueError as error:
            raise ModelError(f"{path} is no plan: {error}") from error
        found = read.get("format") if isinstance(read, dict) else None
        if found != _FORMAT:
            raise ModelError(f"{path} has the format {found!r}; expected {_FORMAT}")
        try:
            for part in read["parts"]:
                if not _PART_FILE.fullmatch(f"part_{part['name']}.onnx"):
                    raise ModelError(f"{path} is no plan: a part has the name {part['name']!r}")
            parts = tuple(
                Part(
                    name=part["name"],
                    target=part["target"],
                    inputs=tuple(part["inputs"]),
                    outputs=tuple(part["outputs"]),
                    nodes=part["nodes"],
                    model=Model.load(os.path.join(folder, f"part_{part['name']}.onnx")),
                )
                for part in read["parts"]
            )
            return cls(
                inputs=tuple(read["inputs"]),
                optional_inputs=tuple(read["optional_inputs"]),
                outputs=tuple(read["outputs"]),
                parts=parts,
                host=Model.load(os.path.join(folder, HOST_FILE)),
                folder=folder,
            )
        except (KeyError, TypeError) as error:
            raise ModelError(f"{path} is no plan: {error!r} is missing or wrong") from error
