"""The options that several commands share: their types, and those of `tiered optimize`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Final, get_args

from tiered.cli.effects import Effect
from tiered.cli.html import check_html
from tiered.cli.line.candidates import complete_backend, complete_passes
from tiered.cli.line.declaration import Flags
from tiered.cli.pass_names import DEFAULT_LEVEL, check_level
from tiered.support.errors import OptionError, UsageError
from tiered.support.records import Record
from tiered.support.typed_options import size_in_bytes


def _is_method(word: str) -> bool:
    """Return whether a word is a way to verify."""
    from tiered.verify.methods import How

    return word in get_args(How)


def size_option(option: str, given: str, whole: int = 0) -> int:
    """Return the bytes of an option.

    Args:
        option: its name, for errors.
        given: what was typed.
        whole: the bytes that a percentage is of.

    Raises:
        UsageError: it is no size.
    """
    try:
        return size_in_bytes(given, whole)
    except OptionError as error:
        raise UsageError(f"{option}: {error}") from error


def _is_size(word: str) -> bool:
    """Return whether a word is a size."""
    try:
        size_option("", word)
    except UsageError:
        return False
    return True


def _is_strict(word: str) -> bool:
    """Return whether a word is a way to certify: strict, a certificate, or both."""
    return word.startswith("strict") or word.endswith(".json")


MADE: Final = "generated inputs, without --inputs"
"""What options of generated inputs need."""

_AS_FOR_OPTIMIZE: Final = "As for `tiered optimize`."

Names = tuple[str, ...]
ModelFile = Annotated[str, Flags("MODEL", help="The ONNX file to read; it is not changed.")]
OutFile = Annotated[
    str | None, Flags("OUT", help="The file to write. Optional with --dry-run and --json.")
]
Load = Annotated[
    Names, Flags(help="As for optimize: Python files or modules with passes of your own.")
]
Dims = Annotated[Names, Flags(help="The size of a dim by its name: batch=1. Repeatable.")]
InputShapes = Annotated[
    Names,
    Flags(
        *("--input-shape", "--overwrite-input-shape"),
        *("--input-shapes", "--override-input-shapes"),
        help=_AS_FOR_OPTIMIZE,
    ),
]
Level = Annotated[int, Flags("--opt-level", "-O", check=check_level, help=_AS_FOR_OPTIMIZE)]
Html = Annotated[str | None, Flags(check=check_html, help="Write the report as a page.")]
# The Python settings have these names, too.
Disable = Annotated[
    Names, Flags("--disable", "--disabled", completes=complete_passes, help=_AS_FOR_OPTIMIZE)
]
Require = Annotated[
    Names, Flags("--require", "--required", completes=complete_passes, help=_AS_FOR_OPTIMIZE)
]
Pipeline = Annotated[str | None, Flags(completes=complete_passes, help=_AS_FOR_OPTIMIZE)]
BackendName = Annotated[
    str | None,
    Flags(
        completes=complete_backend,
        help="The target: a name that `tiered backends` lists, or a TOML file.",
    ),
]
Json = Annotated[bool, Flags(help="Print one JSON object on stdout instead of text.")]
AsJson = Annotated[bool, Flags("--json", help="Print JSON instead of text.")]
Verbose = Annotated[bool, Flags("--verbose", "-v")]
Quiet = Annotated[bool, Flags("--quiet", "-q")]
Verify = Annotated[str | None, Flags(alone="each", accepts=_is_method, expected="a method")]
Certify = Annotated[str | None, Flags(alone="on", accepts=_is_strict, expected="strict")]
LEAST_EXTERNAL: Final = "1KiB"
ExternalData = Annotated[
    str | None, Flags(alone=LEAST_EXTERNAL, accepts=_is_size, expected="a size")
]


def _are_made(of: Callable[[str], Any]) -> bool:
    """Return whether the inputs that a model runs on are generated."""
    return not of("inputs")


class Sampled(Record):
    """The inputs that a command runs a model on."""

    inputs: Names = ()
    """Inputs: x.npy, feeds.npz or a folder; generated without any. Repeatable."""
    seed: int = 0
    """Seed of the generated inputs."""

    EFFECTS: ClassVar[tuple[Effect, ...]] = (Effect(("seed",), MADE, _are_made),)


class Bounded(Record):
    """The limit of the memory."""

    max_memory: str | None = None
    """Limit of the memory of the run, without mapped weights: 2GB, 50%."""


class Destination(Record):
    """Where a command writes its model."""

    output: Annotated[str | None, Flags("--output", "-o")] = None
    """The file to write, instead of OUT."""
    force: bool = False
    """Replace OUT even if it is an ONNX model and not an earlier result of MODEL."""
    result_of: str | None = None
    """The first model of a chain of commands that ends here: OUT counts as a result of it."""


class Writing(Record):
    """The inputs of the verification, the output format, and the storage of the weights."""

    inputs: Names = ()
    """Samples, for --verify and all that is measured: x.npy, feeds.npz or a folder; generated
    without any. Repeatable."""
    dry_run: bool = False
    """Write nothing."""
    json: Json = False
    quiet: Quiet = False
    """Print only errors (and the JSON with --json)."""
    verbose: Verbose = False
    """Print every pass and every remark."""
    external_data: ExternalData = None
    """Write weights of =SIZE bytes (1KiB) or more to OUT.data, beside OUT."""
    safetensors: bool = False
    """Write weights to OUT.safetensors instead, a file that safetensors reads, too."""
    single_file: bool = False
    """Write all weights into OUT, including external ones; up to 2 GiB."""
    share_weights: bool = False
    """Keep external weights in their files if OUT is in the same folder."""


class PassSelection(Record):
    """Which passes run, and on what."""

    opt_level: Level = DEFAULT_LEVEL
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
    edit: Names = ()
    """Change the pipeline: 'drop a', 'after a: b,c', 'set a{x=1}'. Repeatable."""


class _Passes(PassSelection, Bounded):
    """What `tiered optimize` removes beside, and what it demands of the result."""

    out_dir: str | None = None
    """The folder for the results of several models, each under the name of its file."""
    strip: Names = ()
    """Remove what no runtime reads: metadata, docs (doc strings), names (inner ones) or all; marks
    (which model OUT came from, and what is promised) only if named."""
    expect: Names = ()
    """Fail unless the result meets this: Gelu>=12, com.microsoft::BiasGelu, nodes<=500,
    bytes<=90MB, parameters<1000. Repeatable."""
    strict: bool = False
    """Fail if an entry matches no pass, or if the backend does not take the result."""
    annotate: bool = False
    """Write the inferred types into the model."""
    verify: Verify = None
    """Run the model after each pass (for a large model only the changed region: =region); or
    =final, =structure, =off. Exit code 3 if the outputs differ."""
    certify: Certify = None
    """Prove each rewrite, and write a certificate to =FILE.json; =strict writes no result unless
    each rewrite of levels 0 to 2 is proved (exit code 3)."""
    test_input_shape: Names = ()
    """The shapes of generated inputs for --verify, as for --input-shape; the model keeps its."""
    reproducer: str | None = None
    """Folder for a bundle that `tiered replay` runs, if a pass fails or the outputs differ."""


RUNS: Final = "--verify that runs the model"
"""What inputs of the verification need."""


def runs_model(method: str | None) -> bool:
    """Return whether a method of --verify runs the model."""
    return method not in (None, "off", "structure")


def _is_run(of: Callable[[str], Any]) -> bool:
    return runs_model(of("verify"))


WHOLE: Final = Effect(
    ("verify",),
    "no method, =final or =off: models of several files run whole",
    lambda of: of("verify") not in ("region", "structure"),
)
"""Of commands that compare several models with one."""


class OptimizeOptions(Writing, _Passes, Destination):
    """The options of `tiered optimize`."""

    EFFECTS = (
        Effect(("inputs", "test_input_shape"), RUNS, _is_run),
        Effect(("test_input_shape",), MADE, _are_made),
    )


class WriteOptions(Writing, Destination):
    """The options of the commands that write one model, by passes of their own."""

    verify: Verify = None
    """Compare what the model computes before and after, as for `tiered optimize`."""

    def for_optimize(self, **others: Any) -> OptimizeOptions:
        """Return them as options of `tiered optimize`, with others of it."""
        return OptimizeOptions(**vars(self), **others)


class ResultOptions(WriteOptions):
    """Those of commands that run no model but to verify the result."""

    EFFECTS = (Effect(("inputs",), RUNS, _is_run),)


class ReadOptions(Record):
    """The options of the commands that print properties of a model."""

    input_shape: InputShapes = ()
    dim: Names = ()
    """As for `tiered optimize`, by the name of a dim: batch=1."""
    json: Json = False
    verbose: Verbose = False
    """List everything, not only the first rows."""
