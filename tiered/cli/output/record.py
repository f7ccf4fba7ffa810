"""The JSON of `tiered optimize --json`.

One object:
    input, output: file names; output is null if nothing was written.
    opt_level: 0 to 4.
    before, after: {nodes, operators: {type: count}, parameters, bytes}.
    interface: what differs from the model that was read, as text: "opset 17 -> 21", one entry for
        each opset, the IR version, and each input and output.
    fused: {operator: how many more of it fusions made}.
    passes: [{name, ran, reason, changed, rewrites, seconds}], one for each decision, in order; a
        pass in a fixed point has one for each round.
    seconds: the time of all passes together.
    verified: whether outputs were compared after each pass that changed something, and agree (a
        difference is exit code 3; exit code 4 if nothing could be compared).
    verdict: null without --verify; {word, why}: the word is "yes", "in part", "nothing to verify"
        (no pass changed what is computed), "no" or "structure only"; why has the reason.
    verification: null, or for each set of inputs {numerics, outputs: [{name, max_abs, max_rel,
        limit: the tolerance, null where the bits are the same}],
        dims, rules}: the comparison after the last pass that changed something; numerics is the
        promise of that pass, max_rel null where it is not finite, dims the size of each symbolic
        dim, rules the origin of each input ("given", or the rule that made it).
    ways: how each pass that changed something was verified, [{pass, by, nodes, inputs, judge, why,
        left_out}]: by is "model", "region" (only what changed ran), "sameness" (nothing that is
        computed changed) or "nothing", with the reason in why; left_out names the outputs that
        could not be compared, such as random ones; inputs are "given", "generated", or "recorded"
        in a run of the model; judge is "onnx.reference" where it ran changed nodes with 16-bit
        floats, or "onnxruntime".
    certified: null without --certify; {rewrites, counts: {how: count}, left: [{number, pass, how,
        reason}]}: how is "bits", "reals", "run", "interface", "refuted" or "unproved"; left are the
        rewrites that are not proved.
    overridable: initializers that are also graph inputs, and so not constant.
    remarks: [{kind, pass, reason, count, op_type, nodes}], like remarks counted together; nodes
        are examples.
    versions: of tiered, python and the packages it works with.
    peak_memory: bytes, of the whole process; null where the system does not report it.
    error, exit_code: null and 0; of a run that ends with exit code 3 or 4 its error. Where the
        error came before there was a result, after is null, fused, overridable and remarks are
        empty, and passes are those up to the error.
With --out-dir an array of these, one for each model that was done or ends with exit code 3 or 4.
"""

from __future__ import annotations

import importlib.metadata
import math
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import tiered

if TYPE_CHECKING:
    from tiered.cli.outcome import Outcome
    from tiered.passes.interface.pass_info import PassResult
    from tiered.pipeline.result import OptimizeResult
    from tiered.runtime import Comparison
    from tiered.runtime.inputs.samples import Sample
    from tiered.verify.methods import VerificationMethod

PACKAGES = ("onnx", "onnxruntime", "numpy", "networkx")


def record_of(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as plain data."""
    result, failed = outcome.result, outcome.failed
    described = _of_failure(outcome) if result is None else _of_result(result)
    return {
        "input": outcome.source,
        "output": outcome.target,
        "opt_level": outcome.prepared.options.opt_level,
        **described,
        "versions": versions(),
        "peak_memory": peak_memory(),
        "error": None if failed is None else failed.error,
        "exit_code": 0 if failed is None else failed.exit_code,
    }


def _of_failure(outcome: Outcome) -> dict[str, Any]:
    """Return the result part of the record of a run that failed before its result."""
    from tiered.graph import Model
    from tiered.pipeline.result import ModelStatistics

    passes = () if outcome.failed is None else outcome.failed.passes
    return {
        "before": ModelStatistics.of(Model.load(outcome.source)).record(),
        "after": None,
        "interface": [],
        "fused": {},
        "passes": [_pass(ran) for ran in passes if ran.info.kind != "pipeline"],
        "seconds": sum(ran.seconds for ran in passes if ran.info.kind != "pipeline"),
        "verified": False,
        "verdict": None,
        "verification": None,
        "ways": [],
        "certified": None,
        "overridable": [],
        "remarks": [],
    }


def _of_result(result: OptimizeResult) -> dict[str, Any]:
    from tiered.pipeline.interface import interface_changes

    return {
        "before": result.before.record(),
        "after": result.after.record(),
        "interface": interface_changes(result.model),
        "fused": fused_operators(result),
        "passes": [_pass(ran) for ran in result.report.results if ran.info.kind != "pipeline"],
        "seconds": result.seconds,
        "verified": result.verify is not None and result.verify.verdict.is_proved,
        "verdict": None if result.verify is None else asdict(result.verify.verdict),
        "verification": _verification(result),
        "ways": [_way(way) for way in (result.verify.ways if result.verify is not None else ())],
        "certified": _certified(result),
        "overridable": [value.name for value in result.model.overridable],
        "remarks": [remark.record() for remark in result.remarks],
    }


def _way(way: VerificationMethod) -> dict[str, Any]:
    where = {"pass": way.pass_name, "by": way.by, "nodes": way.nodes}
    left = {"why": way.why, "left_out": list(way.left_out)}
    return {**where, "inputs": way.inputs, "judge": way.judge, **left}


def fused_operators(result: OptimizeResult) -> dict[str, int]:
    """Return the increase in nodes of each operator that fusions create, largest first."""
    ran = {done.name for done in result.report.ran() if done.rewrites}
    found = dict(_grown(result, {name for name in ran if name.startswith("fuse_")}))
    return dict(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))


def _grown(result: OptimizeResult, fusions: set[str]) -> Iterator[tuple[str, int]]:
    from tiered.pipeline.expectations import makers_of

    before = result.before.operators
    for op_type, count in result.after.operators.items():
        more = count - before.get(op_type, 0)
        if more > 0 and fusions.intersection(makers_of(op_type, result.pipeline)):
            yield op_type, more


def _pass(result: PassResult) -> dict[str, Any]:
    return {
        "name": result.name,
        "ran": result.ran,
        "reason": result.reason,
        "changed": result.changed,
        "rewrites": result.rewrites,
        "seconds": result.seconds,
    }


def _verification(result: OptimizeResult) -> list[dict[str, Any]] | None:
    if result.verified is None or result.verify is None:
        return None
    pairs = zip(result.verified, result.verify.samples, strict=True)
    return [_comparison(comparison, sample) for comparison, sample in pairs]


def _comparison(comparison: Comparison, sample: Sample) -> dict[str, Any]:
    return {
        "dims": sample.inputs.dims,
        "rules": sample.inputs.rules,
        "numerics": comparison.numerics.value,
        "outputs": [
            {
                "name": output.name,
                "max_abs": finite(output.max_abs),
                "max_rel": finite(output.max_rel),
                "limit": output.limit or None,
            }
            for output in comparison.outputs
        ],
    }


def _certified(result: OptimizeResult) -> dict[str, Any] | None:
    if result.certify is None:
        return None
    findings = result.certify.findings
    left = [
        {"number": each.number, "pass": each.pass_name, "how": each.word, "reason": each.reason}
        for each in findings.left()
    ]
    return {"rewrites": len(findings.rewrites), "counts": {**findings.counts()}, "left": left}


def finite(number: float) -> float | None:
    """Return the number, None for what is not finite: JSON has no infinity and no NaN."""
    return float(number) if math.isfinite(number) else None


def versions() -> dict[str, str]:
    """Return the versions of tiered, Python and the packages that it works with."""
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"tiered": tiered.__version__, "python": platform.python_version(), **packages}


def peak_memory() -> int | None:
    """Return the most memory that the process has held so far, in bytes.

    With --max-memory it is the figure that is limited: mapped files do not count.
    """
    from tiered.support.memory_limit import limited_peak

    limited = limited_peak()
    if limited is not None:
        return limited
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, others KiB
