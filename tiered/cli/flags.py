"""The options of `tiered optimize`, and types of options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from tiered.cli.commands.completion import complete_backend, complete_passes
from tiered.cli.declare import Declared
from tiered.support.errors import UsageError, did_you_mean

Flag = Declared(negative=(), show_default=False)
Names = Annotated[tuple[str, ...], Declared(negative=(), show_default=False)]

InputShapes = Annotated[
    tuple[str, ...],
    Declared(
        name=[
            "--input-shape",
            "--overwrite-input-shape",
            "--input-shapes",
            "--override-input-shapes",
        ],
        negative=(),
        show_default=False,
    ),
]
PassNames = Annotated[
    tuple[str, ...],
    Declared(negative=(), show_default=False, completer=complete_passes),
]
# The Python settings have these names, too.
Disable = Annotated[PassNames, Declared(name=["--disable", "--disabled"])]
Require = Annotated[PassNames, Declared(name=["--require", "--required"])]
Pipeline = Annotated[str | None, Declared(show_default=False, completer=complete_passes)]
BackendName = Annotated[
    str | None, Declared(show_default=False, completer=complete_backend)
]

Force = Annotated[bool, Flag]
AsJson = Annotated[bool, Declared(name="--json", negative=(), show_default=False)]
Verbose = Annotated[bool, Declared(name=["--verbose", "-v"], negative=(), show_default=False)]

LEVELS, DEFAULT_LEVEL = range(5), 2
OPENING, CLOSING, QUOTES = "({[", ")}]", "'\""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Destination:
    """Where a command writes its model."""

    output: Annotated[str | None, Declared(name=["--output", "-o"])] = None
    """The file to write, instead of OUT."""
    force: Annotated[bool, Flag] = False
    """Replace OUT even if it is an ONNX model and not an earlier result of MODEL."""
    result_of: Annotated[str | None, Declared(show_default=False)] = None
    """The first model of a chain of commands that ends here: OUT counts as a result of it."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Writing:
    """The inputs of the verification, the output format, and the storage of the weights."""

    inputs: Names = ()
    """Samples, for --verify and all that is measured: x.npy, feeds.npz or a folder; generated
    without any. Repeatable."""
    dry_run: Annotated[bool, Flag] = False
    """Write nothing."""
    json: Annotated[bool, Flag] = False
    """Print one JSON object on stdout instead of the summary."""
    quiet: Annotated[bool, Declared(name=["--quiet", "-q"], negative=(), show_default=False)] = (
        False
    )
    """Print only errors (and the JSON with --json)."""
    verbose: Verbose = False
    """Print every pass and every remark."""
    external_data: Annotated[str | None, Declared(show_default=False)] = None
    """Write weights of =SIZE bytes (1KiB) or more to OUT.data, beside OUT."""
    single_file: Annotated[bool, Flag] = False
    """Write all weights into OUT, including external ones; up to 2 GiB."""
    share_weights: Annotated[bool, Flag] = False
    """Keep external weights in their files if OUT is in the same folder."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class _Passes:
    """Which passes `tiered optimize` runs, on what, and what it demands of the result."""

    out_dir: Annotated[str | None, Declared(show_default=False)] = None
    """The folder for the results of several models, each under the name of its file."""
    opt_level: Annotated[int, Declared(name=["--opt-level", "-O"])] = DEFAULT_LEVEL
    """0 inference form, 1 structure, 2 exact algebra, 3 fusions, 4 approximations."""
    disable: Disable = ()
    """Passes that must not run: names, globs, a,b. Repeatable."""
    require: Require = ()
    """Passes that must run, whatever their level: a,b{x=1}. Repeatable."""
    input_shape: InputShapes = ()
    """Set the shape of an input: x:1,3,224,224; a dim may be a name, ? keeps it. Repeatable."""
    dim: Names = ()
    """Fix a dim by its name in all inputs that have it: batch=1. Repeatable."""
    load: Names = ()
    """Python files or modules with passes of your own, which can then be named. Repeatable."""
    passes: Pipeline = None
    """A pipeline of your own: 'a,b{x=1},fix(c,d)'."""
    backend: BackendName = None
    """The target: a name that `tiered backends` lists, or a TOML file; portable by default."""
    strip: Names = ()
    """Remove what no runtime reads: metadata, docs (doc strings), names (inner ones) or all; marks
    (which model OUT came from, and what is promised) only if named."""
    edit: Names = ()
    """Change the pipeline: 'drop a', 'after a: b,c', 'set a{x=1}'. Repeatable."""
    expect: Names = ()
    """Fail unless the result meets this: Gelu>=12, com.microsoft::BiasGelu, nodes<=500,
    bytes<=90MB, parameters<1000. Repeatable."""
    strict: Annotated[bool, Flag] = False
    """Fail if an entry matches no pass, or if the backend does not take the result."""
    max_memory: Annotated[str | None, Declared(show_default=False)] = None
    """Limit of the memory of the run, without mapped weights: 2GB, 50%."""
    annotate: Annotated[bool, Flag] = False
    """Write the inferred types into the model."""
    verify: Annotated[str | None, Declared(show_default=False)] = None
    """Run the model after each pass (for a large model only the changed region: =region); or
    =final, =structure, =off. Exit code 3 if the outputs differ."""
    certify: Annotated[str | None, Declared(show_default=False)] = None
    """Prove each rewrite, and write a certificate to =FILE.json; =strict writes no result unless
    each rewrite of levels 0 to 2 is proved (exit code 3)."""
    test_input_shape: Names = ()
    """The shapes of generated inputs for --verify, as for --input-shape; the model keeps its."""
    reproducer: str | None = None
    """Folder for a bundle that `tiered replay` runs, if a pass fails or the outputs differ."""


@dataclass(frozen=True, kw_only=True)
class OptimizeOptions(Writing, _Passes, Destination):
    """The options of `tiered optimize`."""


def level_set(level: int) -> int | None:
    """Return the level for a context; None for the default, which reasons then name so."""
    return None if level == DEFAULT_LEVEL else level


STRIPPED = ("metadata", "names", "docs", "marks", "all")


def strip_pass(entries: Sequence[str]) -> str:
    """Return the pass of --strip, with its options.

    Raises:
        UsageError: an entry is none of the parts.
    """
    parts = tuple(dict.fromkeys(part for part in split_names(entries, "--strip")))
    for part in parts:
        if part not in STRIPPED:
            expected = ", ".join(STRIPPED)
            hint = did_you_mean(part, STRIPPED)
            raise UsageError(f"--strip takes {expected}, not {part!r}{hint}")
    return f"strip{{what=[{','.join(parts)}]}}"


def with_strip(options: OptimizeOptions) -> OptimizeOptions:
    """Return options with the pass of --strip in the place of that option.

    Raises:
        UsageError: --strip names no part.
    """
    if not options.strip:
        return options
    made = strip_pass(options.strip)
    if options.passes is None:
        return replace(options, strip=(), require=(*options.require, made))
    return replace(options, strip=(), passes=f"{options.passes},{made}")


def split_names(entries: Sequence[str], option: str) -> tuple[str, ...]:
    """Return the names of a repeatable option; commas separate, except in brackets and quotes.

    Raises:
        UsageError: an entry is empty.
    """
    names = tuple(name.strip() for entry in entries for name in _split(entry))
    if not all(names):
        raise UsageError(f"{option}: an empty pass name in {', '.join(entries)!r}")
    return names


class Required(NamedTuple):
    """The passes of --require.

    Attributes:
        names: entries for the context.
        edits: of the pipeline, for those with options.
    """

    names: tuple[str, ...]
    edits: tuple[str, ...]


def split_required(entries: Sequence[str]) -> Required:
    """Return the passes of --require, options apart: `a{x=1}` is `a` and the edit `set a{x=1}`.

    Raises:
        UsageError: an entry is empty.
    """
    names: list[str] = []
    edits: list[str] = []
    for entry in split_names(entries, "--require"):
        name, brace, given = entry.partition("{")
        options, closing, scope = given.rpartition("}")
        if brace and closing and "@" not in name:
            edits.append(f"set {name}{{{options}}}")
            names.append(f"{name}{scope}")
        else:
            names.append(entry)
    return Required(tuple(names), tuple(edits))


def _split(entry: str) -> list[str]:
    parts, depth, quote = [""], 0, ""
    for char in entry:
        if quote:
            quote = "" if char == quote else quote
        elif char in QUOTES:
            quote = char
        else:
            depth += (char in OPENING) - (char in CLOSING)
        if char == "," and not quote and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts
