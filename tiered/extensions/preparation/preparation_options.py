"""What a model is prepared for, as a value, and as a command line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tiered.extensions.preparation.precisions import (
    INT32,
    PROCESSORS,
    PrecisionOptions,
    Processor,
    ordered,
    takes_order,
)
from tiered.support.errors import UsageError

if TYPE_CHECKING:
    from tiered.targets import Backend

Shapes = Mapping[str, Sequence[int | str]]
Dims = Mapping[str, int | str]

LEVEL: Final = 3
"""The level of a preparation: production wants fusions, and each step is verified."""


@dataclass(frozen=True, kw_only=True)
class PrepareOptions:
    """What a model is prepared for.

    Attributes:
        to: values of `--to`.
        backend: the target; None for any runtime.
        dims: sizes or new names by name of the dim.
        input_shapes: dims by name of the input.
        opset, ir: of the result.
        expand: replace operators that the opset lacks by their function bodies.
        opt_level: of the optimisations.
        strip: what is removed of the texts.
        precision: how `to` is converted.
    """

    to: Sequence[str] = ()
    backend: Backend | str | None = None
    dims: Dims = field(default_factory=dict)
    input_shapes: Shapes = field(default_factory=dict)
    opset: int | None = None
    ir: int | None = None
    expand: bool = False
    opt_level: int = LEVEL
    strip: Sequence[str] = ()
    precision: PrecisionOptions = field(default_factory=PrecisionOptions)


def check_options(options: PrepareOptions) -> None:
    """Check the options before a model is read.

    Raises:
        UsageError: values of `to` do not go together, or an option has no effect.
    """
    if options.opt_level not in range(5):
        raise UsageError(f"-O takes 0 to 4, not {options.opt_level}")
    if options.expand and options.opset is None:
        raise UsageError("--expand has no effect: it needs --opset")
    to, precision = ordered(options.to), options.precision
    lossy = [name for name in to if name != INT32]
    needs = (
        ("--budget", precision.budget, "--to with less accuracy than float", lossy),
        (
            "--order",
            precision.order != "auto",
            "--budget and --to fp16, bf16, mixed or int8",
            any(takes_order(name, precision.budget) for name in to),
        ),
        ("--keep-ops", precision.keep_ops, "--to", to),
        ("--keep-nodes", precision.keep_nodes, "--to", to),
        ("--bounds", precision.bounds, "--to int32", INT32 in to),
        ("--for avx2, vnni or any", precision.processor, "--to int8", _is_8_bits(to)),
    )
    for option, given, needed, there in needs:
        if given and not there:
            raise UsageError(f"{option} has no effect: it needs {needed}")


def _is_8_bits(to: Sequence[str]) -> bool:
    return bool({"int8", "int8-dynamic"}.intersection(to))


def processor_in(target: str | None) -> Processor | None:
    """Return the processor that is named in the place of a target; None if it is a target."""
    return next((name for name in PROCESSORS if name == target), None)


def target_of(backend: Backend | str) -> Backend:
    """Return a target by its name or file.

    Raises:
        BackendNotFoundError: there is none.
    """
    from tiered.targets import get_backend

    return get_backend(backend) if isinstance(backend, str) else backend


def prepare_line(
    options: PrepareOptions, source: str = "", out: str = "", *, host: bool = False
) -> str:
    """Return `tiered prepare` with options, as one line of a shell."""
    words = [
        *repeated("--dim", (f"{name}={size}" for name, size in options.dims.items())),
        *repeated("--input-shape", shape_texts(options)),
        *repeated("--to", ordered(options.to)),
    ]
    given = options.precision
    for option, value in (
        ("--for", given.processor if options.backend is None else options.backend),
        ("--opset", options.opset), ("--ir", options.ir), ("--budget", given.budget or None),
        ("--order", None if given.order == "auto" else given.order),
    ):  # fmt: skip
        words += [] if value is None else [option, str(value)]
    words += [
        *repeated("--keep-ops", given.keep_ops),
        *repeated("--keep-nodes", given.keep_nodes),
        *repeated("--bounds", given.bounds),
    ]
    words += [] if given.keep_io else ["--no-keep-io"]
    words += ["--expand"] if options.expand else []
    words += [] if options.opt_level == LEVEL else [f"-O{options.opt_level}"]
    words += [*repeated("--strip", options.strip), *repeated("--inputs", map(str, given.inputs))]
    words += ["--host"] if host else []
    return shlex.join(["tiered", "prepare", source or "model.onnx", out or "out.onnx", *words])


def shape_texts(options: PrepareOptions) -> list[str]:
    """Return the shapes of inputs as `--input-shape` takes them."""
    return [f"{name}:{','.join(map(str, dims))}" for name, dims in options.input_shapes.items()]


def repeated(option: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return the words of an option that is given for each of several values."""
    return tuple(word for value in values for word in (option, value))
