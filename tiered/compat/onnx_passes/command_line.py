"""The command line of onnx-passes: passes as arguments, a configuration, reference outputs.

Without an output the result is printed as text. The name `verify` means the reference of the
configuration, or else the model before all passes. The state, which is JSON, lists the passes that
ran; it is written after a failure too.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx

import tiered
from tiered.compat.onnx_passes.configuration import Configuration, read_configuration
from tiered.compat.onnx_passes.groups import GROUPS, collect
from tiered.compat.onnx_passes.references import OutputReference
from tiered.context import PassContext
from tiered.extensions.debug.all_values import run as all_values_of
from tiered.graph import Model
from tiered.passes import Pass
from tiered.passes.interface.registry import registry
from tiered.pipeline.instruments import Dump
from tiered.support.errors import TieredError, UsageError
from tiered.support.whole_files import whole_file, write_json
from tiered.verify import Verify

_UPSTREAM: Final = "onnx_passes"
"""The package of onnx-passes: its modules register passes, which are here without an import."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser("python -m tiered.compat.onnx_passes", description=__doc__)
    parser.add_argument("model", help="the ONNX file")
    parser.add_argument("passes", nargs="*", help="names of passes and groups")
    parser.add_argument("-o", "--output", help="the file to write; text on stdout without it")
    parser.add_argument("-c", "--config", help="a YAML, JSON or TOML file")
    parser.add_argument("-s", "--state", help="the JSON file for what ran")
    given = parser.parse_intermixed_args(arguments)
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
        UsageError: no pass is named, or values are to be written and there is no output.
        VerificationError: outputs are not those of the reference.
    """
    for module in config.imports:
        if module.partition(".")[0] != _UPSTREAM:
            importlib.import_module(module)
    listed = [*config.passes, *names]
    if not listed:
        raise UsageError("no pass is named: MODEL PASS..., or `passes` in the configuration")
    if config.all_values and output is None:
        raise UsageError("onnxruntime.full_context_dump writes OUTPUT.npz: it needs -o OUTPUT")
    original = _loaded(path)
    reference = OutputReference(config, original)
    passes = _with_options(collect(_verifying(listed, reference)), config)
    pipeline = tiered.Fixpoint(passes) if config.exhaustive else tiered.Sequential(passes)
    made = tiered.optimize(original, passes=pipeline)
    reference.check(made)
    if output is None:
        print(onnx.printer.to_text(made))
        return
    Model.from_proto(made).save(output)
    if config.all_values:
        inputs = [each.name for each in Model.from_proto(made).main.inputs]
        feeds = reference.feeds(inputs) if config.reference_inputs else None
        with whole_file(f"{output}.npz") as file:
            np.savez(file, **dict(all_values_of(made, feeds, all_values=True)))


def _verifying(names: Sequence[str], reference: OutputReference) -> list[str | Pass]:
    """Return names of passes with the pass of the reference in place of the group `verify`."""
    is_own = "verify" not in GROUPS
    return [reference.as_pass() if is_own and name == "verify" else name for name in names]


def _loaded(path: str) -> onnx.ModelProto:
    """Return the model of a file.

    Raises:
        ModelError: it cannot be read.
    """
    return Model.load(path).to_proto()


def _with_options(passes: list[Pass], config: Configuration) -> list[Pass]:
    """Return passes with the options of the sections of the configuration.

    A configuration serves several commands: those of passes that do not run are checked only.

    Raises:
        OptionError: a pass has no such option.
    """
    options: dict[str, dict[str, Any]] = {}
    running = {pass_.name for pass_ in passes}
    for name, given in config.sections.items():
        meant = running.intersection(registry.resolve(name))
        if given and not meant:
            tiered.get_pass(name, **given)
        options |= {each: {**options.get(each, {}), **given} for each in meant}
    return [pass_.with_options(**options.get(pass_.name, {})) for pass_ in passes]


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
