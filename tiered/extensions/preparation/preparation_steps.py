"""The steps of a preparation, in their order: what each runs, and the command that does the same.

1. shapes: sizes of dims, and the exact passes, which then fold what depends on them;
2. opset: before fusions, which newer opsets have operators for;
3. optimise: for any runtime, as quantisation and halves lose less on folded weights;
4. legalise: while numbers are float: a lowered norm has an epsilon that halves would lose;
5. the precisions: integers, then what is quantised, then halves for the rest;
6. target: fusions and layout of the backend;
7. strip: names are needed until here, for what is kept by name.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tiered.extensions.preparation.precisions import (
    HALVES,
    INT32,
    PrecisionOptions,
    is_lossy,
    is_searched,
    ordered,
    precision_pass,
    reads_inputs,
    takes_order,
)
from tiered.extensions.preparation.preparation_options import (
    Dims,
    PrepareOptions,
    Shapes,
    check_options,
    repeated,
    shape_texts,
    target_of,
)
from tiered.pipeline import get_pass
from tiered.pipeline.optimize import shaping
from tiered.pipeline.sequential import Sequential, parse_pipeline

if TYPE_CHECKING:
    from tiered.targets import Backend

SAMPLES: Final = "SAMPLES"
"""Stands for arrays in a command: they are in no file."""

_EXACT: Final = 2
_LEGALISING: Final = {1: "exact", 3: "reassociating", 4: "approximate"}
"""The classes of the default pipeline's legalizations, by the level from which they run."""


@dataclass(frozen=True, kw_only=True)
class PreparationStep:
    """One step: a run of passes, as a command of its own makes it.

    Attributes:
        name: a word for tables and errors.
        what: what it does, in words.
        passes: what runs; None for the default pipeline.
        command: the command that does the same: optimize, convert or quantize.
        words: its options.
        precision: the value of `--to`; "" if it is no conversion.
        opt_level: None for that of the command.
        backend: the target, by name or file.
        dims, input_shapes: as of `PrepareOptions`.
        edits: of the pipeline.
    """

    name: str
    what: str
    command: str
    words: tuple[str, ...]
    precision: str = ""
    passes: Sequential | None = None
    opt_level: int | None = None
    backend: Backend | str | None = None
    dims: Dims = field(default_factory=dict)
    input_shapes: Shapes = field(default_factory=dict)
    edits: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What runs as pipeline text; `default` for the default pipeline."""
        passes = "default" if self.passes is None else self.passes.text
        if not (self.dims or self.input_shapes):
            return passes
        first, last = shaping(self.input_shapes, self.dims)
        return f"{first},{passes},{last}"

    def settings(self) -> dict[str, Any]:
        """Return the settings of `optimize_model`."""
        return {
            "passes": self.passes,
            "opt_level": self.opt_level,
            "backend": self.backend,
            "dims": self.dims,
            "input_shapes": self.input_shapes,
            "edits": self.edits,
        }

    def line(self, source: str, out: str, *more: str) -> str:
        """Return the command as one line of a shell."""
        words = [SAMPLES if _is_temporary(word) else word for word in self.words]
        return shlex.join(["tiered", self.command, source, out, *words, *more])


def _is_temporary(word: str) -> bool:
    """Return whether a word is the folder of arrays that a caller gave, which is gone by then."""
    return os.path.dirname(word) != "" and os.path.basename(word).startswith(SAMPLES)


def steps_of(options: PrepareOptions) -> tuple[PreparationStep, ...]:
    """Return the steps, in order.

    Raises:
        UsageError: values of `to` do not go together, or an option has no effect.
        BackendNotFoundError: there is no such target.
    """
    check_options(options)
    return tuple(_steps(options))


def _steps(options: PrepareOptions) -> Iterator[PreparationStep]:
    to = ordered(options.to)
    if options.dims or options.input_shapes:
        yield _shapes(options)
    if options.opset is not None or options.ir is not None:
        yield _versions(options)
    if to or options.backend is None:
        yield _optimize(options)
    if to and _legalizes_floats(options.backend) and options.opt_level >= min(_LEGALISING):
        yield _legalize(options)
    for name in to:
        yield _precision(name, options)
    if options.backend is not None:
        yield _target(options)
    if options.strip:
        yield _strip(options)


def _shapes(options: PrepareOptions) -> PreparationStep:
    level = min(options.opt_level, _EXACT)
    dims = [f"{name}={size}" for name, size in options.dims.items()]
    shapes = shape_texts(options)
    return PreparationStep(
        name="shapes",
        what=", ".join([*dims, *shapes]),
        command="optimize",
        words=(
            f"-O{level}",
            *repeated("--dim", dims),
            *repeated("--input-shape", shapes),
        ),
        opt_level=level,
        dims=options.dims,
        input_shapes=options.input_shapes,
    )


def _versions(options: PrepareOptions) -> PreparationStep:
    settings: dict[str, Any] = {"to": options.opset, "ir": options.ir}
    named = {"opset": options.opset, "ir": options.ir}
    words = [
        word
        for key, value in named.items()
        if value is not None
        for word in (f"--{key}", str(value))
    ]
    if options.expand:
        settings["numerics"] = "reassociating"
        words.append("--expand")
    given = {key: value for key, value in settings.items() if value is not None}
    return PreparationStep(
        name="opset",
        what=", ".join(f"{key} {value}" for key, value in named.items() if value is not None),
        command="convert",
        words=tuple(words),
        passes=_of_pass("convert_opset", **given),
    )


def _optimize(options: PrepareOptions) -> PreparationStep:
    edits = tuple(_unrolling(options.backend))
    return PreparationStep(
        name="optimise",
        what="for any runtime",
        command="optimize",
        words=(f"-O{options.opt_level}", *repeated("--edit", edits)),
        opt_level=options.opt_level,
        edits=edits,
    )


def _legalize(options: PrepareOptions) -> PreparationStep:
    classes = [name for level, name in _LEGALISING.items() if level <= options.opt_level]
    loosest_first = [f"legalize{{numerics={name}}}" for name in reversed(classes)]
    passes = parse_pipeline(",".join(loosest_first))
    return PreparationStep(
        name="legalise",
        what=f"for {options.backend}",
        command="optimize",
        words=(f"-O{options.opt_level}", *_backend(options), "--passes", passes.text),
        passes=passes,
        opt_level=options.opt_level,
        backend=options.backend,
    )


def _precision(name: str, options: PrepareOptions) -> PreparationStep:
    backend = options.backend if name in _ASK_TARGET else None
    command, *words = _COMMANDS.get(name, ("convert", "--to", name))
    is_searching = name == "fp16" or is_searched(name, options.precision.budget)
    if command == "convert" and is_lossy(name) and not is_searching:
        words.append("--no-measure")  # the whole preparation is measured
    words += _precision_words(name, options.precision)
    words += _backend(options) if backend is not None else ()
    return PreparationStep(
        name=name,
        what="" if backend is None else f"for {backend}",
        command=command,
        words=tuple(words),
        precision=name,
        passes=Sequential([precision_pass(name, options.precision)]),
        backend=backend,
    )


_ASK_TARGET: Final = ("int8", "fp16", "bf16", "mixed", "int32")
"""The conversions that the table of a target decides about."""
_COMMANDS: Final = {"int8": ("quantize",), "int8-dynamic": ("quantize", "--dynamic")}


def _precision_words(name: str, given: PrecisionOptions) -> Iterator[str]:
    """Yield the options of the command of one conversion."""
    if is_lossy(name) and given.budget:
        yield from ("--budget", given.budget)
    if given.order != "auto" and takes_order(name, given.budget):
        yield from ("--order", given.order)
    if reads_inputs(name, given.budget):
        yield from repeated("--inputs", map(str, given.inputs))
    yield from repeated("--keep-ops", given.keep_ops)
    yield from repeated("--keep-nodes", given.keep_nodes)
    if name in HALVES and not given.keep_io:
        yield "--no-keep-io"
    if name == INT32:
        yield from repeated("--bounds", given.bounds)
    if name in _COMMANDS and given.processor is not None:
        yield from ("--for", given.processor)


def _target(options: PrepareOptions) -> PreparationStep:
    return PreparationStep(
        name="target",
        what=f"for {options.backend}",
        command="optimize",
        words=(f"-O{options.opt_level}", *_backend(options)),
        opt_level=options.opt_level,
        backend=options.backend,
    )


def _strip(options: PrepareOptions) -> PreparationStep:
    parts = list(dict.fromkeys(part for text in options.strip for part in text.split(",")))
    return PreparationStep(
        name="strip",
        what=", ".join(parts),
        command="convert",
        words=("--strip", ",".join(parts)),
        passes=_of_pass("strip", what=parts),
    )


def _of_pass(name: str, **settings: Any) -> Sequential:
    return Sequential([get_pass(name, **settings)])


def _backend(options: PrepareOptions) -> tuple[str, ...]:
    return ("--backend", str(options.backend))


def _unrolling(backend: Backend | str | None) -> Iterator[str]:
    """Yield the edits of a target that unroll short loops: bodies are not quantised otherwise."""
    if backend is not None:
        yield from (
            str(edit)
            for edit in target_of(backend).edits
            if edit.kind == "set" and edit.target == "partial_evaluate"
        )


def _legalizes_floats(backend: Backend | str | None) -> bool:
    """Return whether a target that takes floats may refuse operators of the model."""
    return backend is not None and target_of(backend).computes_floats
