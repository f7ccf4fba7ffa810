"""The command line of onnx-passes: passes as arguments, a configuration, reference outputs.

Without an output the result is printed as text. The state, which is JSON, lists the passes that
ran; it is written after a failure too.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

import tiered
from tiered.compat.onnx_passes.configuration import Configuration, read_configuration
from tiered.compat.onnx_passes.groups import collect
from tiered.context import PassContext
from tiered.graph import Model
from tiered.passes import Pass
from tiered.passes.interface.registry import registry
from tiered.pipeline.instruments import Dump
from tiered.runtime import Session
from tiered.support.errors import TieredError, UsageError, VerificationError
from tiered.support.whole_files import write_json
from tiered.verify import Verify


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser("python -m tiered.compat.onnx_passes", description=__doc__)
    parser.add_argument("model", help="the ONNX file")
    parser.add_argument("passes", nargs="*", help="names of passes and groups")
    parser.add_argument("-o", "--output", help="the file to write; text on stdout without it")
    parser.add_argument("-c", "--config", help="a YAML, JSON or TOML file")
    parser.add_argument("-s", "--state", help="the JSON file for what ran")
    given = parser.parse_args(arguments)
    context = PassContext.current()
    try:
        config = read_configuration(given.config) if given.config else Configuration()
        watched = [Dump(config.checkpoint)] if config.checkpoint else []
        with PassContext(instruments=[*([Verify()] if config.verify else []), *watched]) as context:
            try:
                _run(given.model, given.passes, given.output, config)
            finally:
                if given.state:
                    _write_state(given.state, given.model, context)
    except (TieredError, OSError, ImportError) as error:
        print(f"onnx-passes: error: {given.model}: {error}", file=sys.stderr)
        return getattr(error, "exit_code", 1)
    if config.verbose:
        for result in context.report.ran():
            print(f"{result.name}: {'changed' if result.changed else 'unchanged'}", file=sys.stderr)
    return 0


def _run(path: str, names: Sequence[str], output: str | None, config: Configuration) -> None:
    """Run the passes of the configuration, then those of the arguments.

    Raises:
        UsageError: no pass is named.
        VerificationError: outputs are not those of the reference.
    """
    for module in config.imports:
        importlib.import_module(module)
    listed = [*config.passes, *names]
    if not listed:
        raise UsageError("no pass is named: MODEL PASS..., or `passes` in the configuration")
    passes = _with_options(collect(listed), config)
    pipeline = tiered.Fixpoint(passes) if config.exhaustive else tiered.Sequential(passes)
    made = tiered.optimize(_loaded(path), passes=pipeline)
    _compare(made, config)
    if output is None:
        print(onnx.printer.to_text(made))
    else:
        Model.from_proto(made).save(output)


def _loaded(path: str) -> onnx.ModelProto:
    """Return the model of a file.

    Raises:
        ModelError: it cannot be read.
    """
    return Model.load(path).to_proto()


def _with_options(passes: list[Pass], config: Configuration) -> list[Pass]:
    """Return passes with the options of the sections of the configuration.

    Raises:
        UsageError: a section is of no pass that runs.
        OptionError: a pass has no such option.
    """
    options: dict[str, dict[str, Any]] = {}
    running = {pass_.name for pass_ in passes}
    for name, given in config.sections.items():
        meant = running.intersection(registry.resolve(name))
        if not meant:
            raise UsageError(f"the configuration has options of {name}, which does not run")
        options |= {each: {**options.get(each, {}), **given} for each in meant}
    return [pass_.with_options(**options.get(pass_.name, {})) for pass_ in passes]


def _compare(made: onnx.ModelProto, config: Configuration) -> None:
    """Hold the outputs for the reference inputs against the reference outputs.

    Raises:
        UsageError: there are other numbers of files than inputs or outputs.
        VerificationError: an output differs.
    """
    if not config.reference_outputs:
        return
    session = Session(made)
    arrays = [np.load(file, allow_pickle=False) for file in config.reference_inputs]
    expected = [np.load(file, allow_pickle=False) for file in config.reference_outputs]
    for what, files, wanted in (
        ("inp", arrays, session.inputs),
        ("out", expected, session.outputs),
    ):
        if len(files) != len(wanted):
            raise UsageError(f"reference.{what} has {len(files)} files for {', '.join(wanted)}")
    found = session.run(dict(zip(session.inputs, arrays, strict=True)))
    for name, right in zip(found, expected, strict=True):
        array = np.asarray(found[name])
        same = array.shape == right.shape and array.dtype == right.dtype
        if not same or not np.allclose(array, right, equal_nan=True, **config.tolerance):
            raise VerificationError(f"{name} is not as the reference output")


def _write_state(path: str, model: str, context: PassContext) -> None:
    """Write which passes ran, as JSON."""
    history = [
        {
            "pass": result.name,
            "changed": result.changed,
            "error": None if result.error is None else str(result.error),
        }
        for result in context.report.ran()
    ]
    write_json(path, {"model": model, "history": history})
