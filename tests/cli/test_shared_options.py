"""The options that several commands share."""

import pytest

from tiered.cli.line.declaration import DeclaredCommand, DeclaredParameter, declared_in
from tiered.cli.line.reader import read
from tiered.cli.shared_options import (
    LEAST_EXTERNAL,
    MADE,
    RUNS,
    WHOLE,
    OptimizeOptions,
    ReadOptions,
    ResultOptions,
    Sampled,
    WriteOptions,
    runs_model,
    size_option,
)
from tiered.support.errors import UsageError
from tiered.support.records import Record


@pytest.mark.parametrize(
    ("given", "whole", "size"),
    [
        ("64", 0, 64),
        ("1KB", 0, 1000),
        ("1KiB", 0, 1024),
        ("2MB", 0, 2_000_000),
        ("50%", 300, 150),
        ("50%", 0, 0),
    ],
)
def test_a_size_is_a_number_with_a_unit_or_a_share(given: str, whole: int, size: int) -> None:
    assert size_option("--max-memory", given, whole) == size


@pytest.mark.parametrize("given", ["", "lots", "-1", "1XB", "1 KB x"])
def test_what_is_no_size_names_the_option(given: str) -> None:
    with pytest.raises(UsageError, match=f"^--max-memory: '{given}' is not a size"):
        size_option("--max-memory", given)


def declared(group: type[Record]) -> dict[str, DeclaredParameter]:
    return {each.name: each for each in declared_in(group)}


def read_optimize(*words: str) -> dict[str, object]:
    def optimize(model: str, out: str | None = None, /, *, options: OptimizeOptions) -> None:
        """Do nothing."""

    return {**read(DeclaredCommand("optimize", optimize), ["m.onnx", *words]).values}


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (("--verify",), "verify", "each"),
        (("--verify", "final"), "verify", "final"),
        (("--verify", "structure"), "verify", "structure"),
        (("--verify", "b.onnx"), "verify", "each"),
        (("--certify",), "certify", "on"),
        (("--certify", "strict"), "certify", "strict"),
        (("--certify", "c.json"), "certify", "c.json"),
        (("--certify", "b.onnx"), "certify", "on"),
        (("--external-data",), "external_data", "1KiB"),
        (("--external-data", "4MB"), "external_data", "4MB"),
        (("--external-data", "b.onnx"), "external_data", "1KiB"),
        (("--disabled", "a"), "disable", ("a",)),
        (("--required", "a", "--require", "b,c"), "require", ("a", "b,c")),
        (("--override-input-shapes", "x:1"), "input_shape", ("x:1",)),
        (("-O0",), "opt_level", 0),
        (("-o", "b.onnx"), "output", "b.onnx"),
    ],
)
def test_an_option_without_a_value_has_one_of_its_own(
    words: tuple[str, ...], name: str, value: object
) -> None:
    assert read_optimize(*words)[name] == value


def test_what_follows_is_a_value_a_file_or_an_error() -> None:
    assert LEAST_EXTERNAL == "1KiB"
    for option, expected in (
        ("--verify", "a method"),
        ("--certify", "strict"),
        ("--external-data", "a size"),
    ):
        with pytest.raises(
            UsageError, match=f"{option} odd: 'odd' is neither {expected} nor a file"
        ):
            read_optimize(option, "odd")
    with pytest.raises(UsageError, match="-O takes 0 to 4, not 5"):
        read_optimize("-O5")


def test_the_defaults_change_nothing() -> None:
    options = OptimizeOptions()
    assert (options.opt_level, options.verify, options.certify, options.passes) == (
        2,
        None,
        None,
        None,
    )
    assert not any((options.force, options.dry_run, options.json, options.quiet, options.verbose))
    assert not any((options.strict, options.annotate, options.single_file, options.share_weights))
    assert {*declared(WriteOptions)} <= {*declared(OptimizeOptions)}
    assert {*declared(ReadOptions)} == {"input_shape", "dim", "json", "verbose"}


@pytest.mark.parametrize(
    ("method", "runs"),
    [
        (None, False),
        ("off", False),
        ("structure", False),
        ("each", True),
        ("final", True),
        ("region", True),
    ],
)
def test_some_methods_run_the_model(method: str | None, runs: bool) -> None:
    assert runs_model(method) is runs
    effects = {effect.options: effect for effect in OptimizeOptions.EFFECTS}
    given = effects[("inputs", "test_input_shape")]
    assert (given.needs, bool(given.holds({"verify": method}.__getitem__))) == (RUNS, runs)
    (result,) = ResultOptions.EFFECTS
    assert bool(result.holds({"verify": method}.__getitem__)) is runs
    assert bool(WHOLE.holds({"verify": method}.__getitem__)) is (
        method not in ("region", "structure")
    )


@pytest.mark.parametrize(("inputs", "are_made"), [((), True), (("x.npy",), False)])
def test_seeds_and_shapes_are_of_inputs_that_are_made(
    inputs: tuple[str, ...], are_made: bool
) -> None:
    of = {"inputs": inputs}.__getitem__
    (seed,) = Sampled.EFFECTS
    assert (seed.options, seed.needs, bool(seed.holds(of))) == (("seed",), MADE, are_made)
    shape = OptimizeOptions.EFFECTS[1]
    assert (shape.options, bool(shape.holds(of))) == (("test_input_shape",), are_made)


def test_a_command_hands_its_options_over() -> None:
    made = WriteOptions(output="o.onnx", verify="final", quiet=True).for_optimize(opt_level=3)
    assert made == OptimizeOptions(output="o.onnx", verify="final", quiet=True, opt_level=3)
