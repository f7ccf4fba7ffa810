"""Command lines of other tools: a model as the first word, and options of those tools.

`tiered in.onnx out.onnx` is `tiered optimize in.onnx out.onnx`. The error
for an option of another tool names the option to type instead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Final

VERSION: Final = "--version"
HELP: Final = frozenset({"--help", "-h"})
SUFFIX: Final = ".onnx"

_TO: Final = "--to"
_FP16: Final = "--dtype"
_OPSET: Final = "--opset"
_SAME: Final = {
    **dict.fromkeys(("--fp16", "--float16", "--half", "--quantize-fp16", "--to-fp16"), _FP16),
    **dict.fromkeys(("--opset-version", "--target-opset", "--convert-opset"), _OPSET),
    **dict.fromkeys(("--data-type", "--to", "--precision", "--fp-to-fp16"), _FP16),
}
_INT8: Final = "type tiered quantize MODEL OUT --inputs DATA"
_DEFAULT: Final = "leave it out, the default passes do it; --print-pipeline lists them"
_RUN: Final = "type tiered run MODEL --out FOLDER"
_ANSWERS: Final = {
    **dict.fromkeys(
        ("--level", "--optimization-level", "--optimize-level", "--optimization-style"),
        "the level is -O0 to -O4",
    ),
    **dict.fromkeys(("--no-optimize", "--no-opt"), "type -O0"),
    **dict.fromkeys(("--check", "--check-n", "--model-check", "--validate"), "type --verify"),
    **dict.fromkeys(("--target", "--device", "--provider", "--ep"), "type --backend NAME"),
    **dict.fromkeys(("--overwrite", "--yes"), "type --force"),
    **dict.fromkeys(
        ("--no-large-tensor", "--no-large-tensors", "--size-threshold"),
        "type --edit 'set fold_constant{max_growth=0}'",
    ),
    **dict.fromkeys(
        ("--save-as-external-data", "--external", "--use-external-data"), "type --external-data"
    ),
    **dict.fromkeys(
        ("--no-shape-infer", "--skip-shape-inference", "--no-shape-inference"),
        "inferred types are not written without --annotate",
    ),
    **dict.fromkeys(
        ("--skip-fusion-patterns", "--skip-optimizers", "--skip"), "type --disable NAME"
    ),
    **dict.fromkeys(
        ("--skip-constant-folding", "--no-constant-folding"), "type --disable fold_constant"
    ),
    **dict.fromkeys(("--batch-size", "--batch"), "type --dim batch=N, with the name of the dim"),
    **dict.fromkeys(("--input", "--input-model", "-i"), "the model is the first argument"),
    **dict.fromkeys(("--input-data-path", "--input-data"), "type --inputs FILE"),
    "--enable-onnxruntime-optimization": "type --backend onnxruntime_cpu",
    "--inspect": "type tiered inspect MODEL",
    "--list-all-passes": "type tiered passes",
    "--tensor-size-threshold": "type --edit 'set fold_constant{max_growth=SIZE}'",
    "--dynamic-input-shape": "leave it out, dynamic dims stay; type --dim name=N to fix one",
    "--include-subgraph": "leave it out, bodies are optimised too; type tiered passes for the list",
    "--mutable-initializer": (
        "leave it out, weights that are inputs may be fed; type --require "
        "remove_initializer_from_input to fix them"
    ),
    **dict.fromkeys(
        ("--outputs", "--unused-output"), "type tiered extract MODEL OUT --to A,B, what stays"
    ),
    **dict.fromkeys(
        ("--onnxrt", "--onnx-rt"), "type tiered run MODEL, or tiered verify A B to compare two"
    ),
    "--fp16-skip-op-types": "type tiered convert MODEL OUT --to fp16 --keep-ops A,B",
    "--convert-version": "type tiered convert MODEL OUT --opset N",
    "--checkpoints": "type --passes 'add_checkpoints{tensors=[A,B]}'",
    "--eightbitsio": "type --passes 'eight_bits_io{name=INPUT}'",
    "--output-model": "the file to write is the second argument: type tiered MODEL OUT",
    "--show": "type tiered inspect MODEL",
    **dict.fromkeys(("--int8", "--quantize", "--quant", "--calib", "--calibrate"), _INT8),
    **dict.fromkeys(
        ("--static", "--fix-shape", "--fixed-shape"),
        "type --dim NAME=SIZE for each dynamic dim (tiered inspect MODEL lists them)",
    ),
    **dict.fromkeys(("--tf32", "--bf16"), "type tiered convert MODEL OUT --to bf16"),
    **dict.fromkeys(("--fold-constants", "--constant-folding"), _DEFAULT),
    **dict.fromkeys(("--cleanup", "--toposort", "--simplify", "--shape-inference"), _DEFAULT),
    **dict.fromkeys(
        ("--load-inputs", "--data-loader-script", "--model-check-inputs", "--calibration-data"),
        "type --inputs FILE, of arrays: x.npy, feeds.npz or a folder",
    ),
    **dict.fromkeys(
        ("--check-error-stat", "--atol", "--rtol"), "type tiered verify A B --atol X --rtol Y"
    ),
    **dict.fromkeys(
        ("--allow", "--allowed", "--lossy"),
        "type tiered verify A B --numerics lossy, or another class",
    ),
    **dict.fromkeys(("--save-outputs", "--trt-outputs", "--onnx-outputs"), _RUN),
    # MLIR and LLVM
    **dict.fromkeys(
        ("--mlir-timing", "--time-passes", "--ftime-report", "--mlir-timing-display"),
        "type --time",
    ),
    **dict.fromkeys(("--time-trace", "--ftime-trace"), "type --trace FILE.json"),
    **dict.fromkeys(("--pass-pipeline", "--pipeline"), "type --passes 'a,b{x=1}'"),
    **dict.fromkeys(("--opt-bisect-limit", "--pass-limit", "--max-rewrites"), "type --limit N"),
    **dict.fromkeys(("--required-pass", "--enable-pass"), "type --require NAME"),
    **dict.fromkeys(
        ("--disable-pass", "--disabled-pass", "--opt-disable", "--exclude-pass"),
        "type --disable NAME",
    ),
    "--split-input-file": (
        "a file holds one model: type tiered batch DIR --out-dir OUT for those of a folder"
    ),
    **dict.fromkeys(
        ("--pass-statistics", "--mlir-pass-statistics", "--stats"), "type --statistics"
    ),
    **dict.fromkeys(
        ("--print-ir-after-all", "--print-after-all", "--mlir-print-ir-after-all"),
        "type --print-after",
    ),
    **dict.fromkeys(
        ("--print-ir-before-all", "--print-before-all", "--mlir-print-ir-before-all"),
        "type --print-before",
    ),
    **dict.fromkeys(("--print-ir-after", "--mlir-print-ir-after"), "type --print-after=NAME"),
    **dict.fromkeys(("--print-ir-before", "--mlir-print-ir-before"), "type --print-before=NAME"),
    **dict.fromkeys(
        ("--print-changed", "--print-ir-after-change", "--mlir-print-ir-after-change"),
        "type --diff",
    ),
    **dict.fromkeys(("--verify-each", "--verify-passes"), "type --verify"),
    "--verify-diagnostics": "type --expect 'Gelu>=12', or another expectation",
    **dict.fromkeys(("--pass-remarks", "--rpass"), "type --remarks=applied"),
    **dict.fromkeys(("--pass-remarks-missed", "--rpass-missed"), "type --remarks=missed"),
    **dict.fromkeys(("--pass-remarks-analysis", "--rpass-analysis"), "type --remarks=analysis"),
    **dict.fromkeys(("--debug-only", "--debug-pass"), "type --remarks, or -v"),
    **dict.fromkeys(
        ("--print-pipeline-passes", "--dump-pass-pipeline", "--debug-pass-manager"),
        "type --print-pipeline",
    ),
    **dict.fromkeys(
        ("--mlir-pass-pipeline-crash-reproducer", "--crash-reproducer"), "type --reproducer DIR"
    ),
    "--run-reproducer": "type tiered replay DIR",
    **dict.fromkeys(("--list-passes", "--show-passes", "--print-passes"), "type tiered passes"),
    **dict.fromkeys(("--load-pass-plugin", "--plugin"), "type --load FILE.py"),
    "--mlir-disable-threading": "leave it out, passes run one after another",
    "--allow-unregistered-dialect": "leave it out, unknown operators stay as they are",
    **dict.fromkeys(("--canonicalize", "--sccp", "--symbol-dce", "--instcombine"), _DEFAULT),
    **dict.fromkeys(
        ("--no-verify", "--skip-verify"), "leave it out: nothing is verified without --verify"
    ),
    **dict.fromkeys(
        ("--strip-debug", "--strip-debuginfo", "--remove-doc-string"), "type --strip all"
    ),
    **dict.fromkeys(("--print-op-stats", "--mlir-print-op-stats"), "type tiered inspect MODEL"),
    "--print-module-scope": "leave it out, --print-after prints the whole model",
    **dict.fromkeys(
        ("--loop-unroll", "--unroll"),
        "leave it out, or type --edit 'set partial_evaluate{max_iterations=64}'",
    ),
    **dict.fromkeys(("--o0", "--o1", "--o2", "--o3", "--o4"), "the level is -O0 to -O4"),
    "--cse": "type --require eliminate_common_subexpr",
    "--dce": "type --require eliminate_deadend",
}
_COMMANDS: Final = {
    "debug": "type tiered bisect MODEL, or tiered reduce MODEL OUT --check CMD",
    "surgeon": "type tiered extract MODEL OUT --from A --to B, or tiered optimize MODEL OUT",
    **dict.fromkeys(("simplify", "slim", "opt", "optimise"), "type tiered MODEL OUT"),
    **dict.fromkeys(("info", "show", "summary"), "type tiered inspect MODEL"),
    "compare": "type tiered verify A B, which runs both, or tiered diff A B",
    "list": "type tiered passes, or tiered backends",
    "help": "type tiered --help, or tiered COMMAND --help",
}
_TWO_WORDS: Final = {
    ("inspect", "model"): "type tiered inspect MODEL",
    ("inspect", "capability"): "type tiered check MODEL --backend NAME",
    ("check", "lint"): "type tiered optimize MODEL --dry-run --passes final_check",
    ("surgeon", "extract"): "type tiered extract MODEL OUT --from A --to B",
    ("surgeon", "sanitize"): "type tiered optimize MODEL OUT",
    ("debug", "reduce"): "type tiered reduce MODEL OUT --check CMD",
    ("debug", "precision"): (
        "type tiered convert MODEL OUT --to mixed --budget 'cosine>=0.999', which names the nodes "
        "that need float"
    ),
}
_ASKED: Final = re.compile(r"--(?P<verb>disable|skip|no|enable|require|use)-(?P<name>.+)")
_OFF: Final = ("disable", "skip", "no")


def from_others(tokens: Sequence[str], commands: Sequence[str]) -> list[str]:
    """Return the command line with what other tools take in the form of tiered."""
    return translated(with_command(tokens, commands))


def with_command(tokens: Sequence[str], commands: Sequence[str]) -> list[str]:
    """Return the command line with `optimize` before a model or an option that comes first."""
    first = next(iter(tokens), "")
    if not first or first in (*commands, *HELP) or VERSION in tokens:
        return list(tokens)
    is_model = first.endswith(SUFFIX) or os.sep in first or os.path.isfile(first)
    return ["optimize", *tokens] if is_model or first.startswith("-") else list(tokens)


_SHAPES: Final = (
    *("--overwrite-input-shape", "--input-shapes", "--override-input-shapes"),
    *("--test-input-shape", "--input-shape"),
)
_SKIP: Final = "--skip-optimization"


def translated(tokens: Sequence[str]) -> list[str]:
    """Return the command line with the habits of other tools in the form of tiered.

    `--input-shapes a:1,3 b:2` has several shapes after one option. `--skip-optimization` skips the
    passes that follow, or all of them.
    """
    made: list[str] = []
    pending = list(tokens)
    while pending:
        token = pending.pop(0)
        option = "--" + token.removeprefix("--").replace("_", "-") if token[:2] == "--" else token
        if option == _SKIP:
            names = _taken(pending, lambda word: SUFFIX not in word and os.sep not in word)
            made += ["--disable", ",".join(names)] if names else ["--opt-level", "0"]
        elif option in _SHAPES:
            shapes = _taken(pending, lambda word: _SHAPE.fullmatch(word) is not None)
            made += [part for shape in shapes for part in (option, shape)] or [option]
        else:
            made.append(token)
    return made


_SHAPE: Final = re.compile(r".+[:=]\[?[^:=\[\]]*\]?")


def _taken(pending: list[str], fits: Callable[[str], bool]) -> list[str]:
    """Remove and return the words at the front that fit, and are no options."""
    found: list[str] = []
    while pending and not pending[0].startswith("-") and fits(pending[0]):
        found.append(pending.pop(0))
    return found


def answer_to_command(tokens: Sequence[str], commands: Sequence[str]) -> str | None:
    """Return the replacement of a command of another tool; None if there is none."""
    first, second = [*tokens, "", ""][:2]
    answer = _TWO_WORDS.get((first, second))
    if answer is not None and not os.path.exists(second):
        return f"unknown command {first} {second}: {answer}"
    if first in commands or first not in _COMMANDS:
        return None
    return f"unknown command {first}: {_COMMANDS[first]}"


def answer_to(tokens: Sequence[str], unknown: str) -> str | None:
    """Return the replacement of an unknown option; None if there is none.

    Args:
        tokens: the command line.
        unknown: the option, as typed.
    """
    typed, _, value = unknown.partition("=")
    if not value and unknown in tokens:
        value = next(iter(tokens[tokens.index(unknown) + 1 :]), "")
    option = typed.replace("_", "-").lower()
    option = _SAME.get(option, option)
    if typed == _TO:
        return f"type tiered prepare MODEL OUT --to {value or 'fp16'}"
    if option == _FP16:
        return _precision(value)
    if option == _OPSET:
        return _opset(value if value.isdecimal() else "")
    return _ANSWERS.get(option) or _pass(option)


def _opset(version: str) -> str:
    return f"type tiered convert MODEL OUT --opset {version or 'N'}"


def _precision(wanted: str) -> str:
    """Return the command that makes a model of another dtype."""
    wanted = wanted.lower()
    if wanted in ("int8", "uint8"):
        return _INT8
    known = ("bf16", "fp8", "int4-weights", "int8-weights", "mixed")
    return f"type tiered convert MODEL OUT --to {wanted if wanted in known else 'fp16'}"


def _pass(option: str) -> str | None:
    """Return the replacement of an option that names a pass: --disable-x, --enable-x, --x."""
    from tiered.passes.interface.registry import registry
    from tiered.support.errors import PassNotFoundError, did_you_mean

    asked = _ASKED.fullmatch(option)
    name = (asked["name"] if asked else option.lstrip("-")).replace("-", "_")
    wish = "--disable" if asked and asked["verb"] in _OFF else "--require"
    for known in (name, f"eliminate_{name}", f"fuse_{name}"):
        try:
            return f"type {wish} {','.join(registry.resolve(known))}"
        except PassNotFoundError:
            continue
    if not asked or asked["verb"] in ("no", "use"):
        return None
    hint = did_you_mean(name, registry.names())
    return f"type {wish} NAME{hint or ' (`tiered passes` lists the names)'}"
