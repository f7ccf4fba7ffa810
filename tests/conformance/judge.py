"""What one optimised model owes to its original, whatever the suite."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import onnx
from onnx import GraphProto, ModelProto, NodeProto

import tiered
from tests.conformance.pool import Report
from tiered.runtime.session import Session
from tiered.support.errors import RuntimeFailure

Optimize = Callable[[ModelProto, int], ModelProto]
Feeds = Mapping[str, Any]
Outputs = Mapping[str, Any]
OpenModel = Callable[[ModelProto], Callable[[Feeds], Outputs]]

EXACT_UP_TO = 2  # the last level that promises the outputs bit for bit


@dataclass(frozen=True)
class Failure:
    """One broken promise.

    Attributes:
        level: the optimisation level at which it was broken.
        kind: which one, in a word: refused, mutated, invalid, interface, opset, grown, unrunnable,
            wrong, unstable, route, seed; or crash, hang, harness for a lost worker.
        detail: what was found.
    """

    level: int
    kind: str
    detail: str


@dataclass(frozen=True)
class Trial:
    """One set of inputs.

    Attributes:
        label: how the report calls it.
        feeds: input name to array.
        fault: says what is wrong with the outputs that the result gave at a level, or None.
    """

    label: str
    feeds: Feeds
    fault: Callable[[int, ModelProto, Outputs], str | None]


@dataclass(frozen=True)
class Subject:
    """An original and how to judge what becomes of it.

    Attributes:
        open_model: opens it on the runtime that runs the original, or None if none does.
        trials: what it is run on.
    """

    model: ModelProto
    open_model: OpenModel | None = None
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What a task of either suite answers.

    Attributes:
        failures: empty if all is well.
        not_run: why the original cannot be run, so that only its form was judged; else empty.
        nodes: level (-1 is the original) to the number of nodes.
        digests: level to the sha256 of the optimised file; models only.
    """

    failures: tuple[Failure, ...] = ()
    not_run: str = ""
    nodes: Mapping[int, int] | None = None
    digests: Mapping[int, str] | None = None


def optimize(model: ModelProto, level: int) -> ModelProto:
    """Optimise as a user does: with the default pipeline of the level."""
    result = tiered.optimize(model, opt_level=level)
    assert isinstance(result, ModelProto)
    return result


def open_on_onnxruntime(model: ModelProto) -> Callable[[Feeds], Outputs]:
    """Open with onnxruntime's own optimisations off."""
    return Session(model).run


def judge_levels(
    subject: Subject, levels: Iterable[int], optimize: Optimize, report: Report
) -> tuple[dict[int, ModelProto], list[Failure]]:
    """Judge one level after the other; return what each gave, unless it refused, and all faults."""
    results: dict[int, ModelProto] = {}
    failures: list[Failure] = []
    for level in levels:
        result, faults = judge(subject, level, optimize, report)
        failures += faults
        if result is not None:
            results[level] = result
    return results, failures


def judge(
    subject: Subject, level: int, optimize: Optimize, report: Report
) -> tuple[ModelProto | None, list[Failure]]:
    """Optimise at one level; return the result (None if refused) and all that is wrong with it."""
    before = canonical_bytes(subject.model)
    report(f"O{level} optimise")
    try:
        result = optimize(subject.model, level)
    except Exception as error:  # noqa: BLE001 - whatever it raises, it refused a good model
        return None, [Failure(level, "refused", describe(error))]
    failures = [
        Failure(level, kind, detail)
        for kind, detail in _faults(subject, before, result, level, optimize, report)
    ]
    return result, failures


def _faults(
    subject: Subject,
    before: bytes,
    result: ModelProto,
    level: int,
    optimize: Optimize,
    report: Report,
) -> Iterator[tuple[str, str]]:
    if canonical_bytes(subject.model) != before:
        yield "mutated", "the model that was passed in is changed"
    report(f"O{level} compare protos")
    yield from interface_faults(subject.model, result)
    yield from opset_faults(subject.model, result)
    yield from growth_faults(len(before), result.ByteSize())
    report(f"O{level} onnx.checker")
    yield from _validity_faults(subject.model, result)
    report(f"O{level} run")
    yield from _run_faults(subject, result, level)
    report(f"O{level} optimise again")
    try:
        again = optimize(result, level)
    except Exception as error:  # noqa: BLE001 - whatever it raises, it refused its own result
        yield "refused", f"its own result: {describe(error)}"
        return
    if canonical_bytes(again) != canonical_bytes(result):
        yield "unstable", f"a second run changes {first_difference(result, again)}"


def interface_faults(original: ModelProto, result: ModelProto) -> Iterator[tuple[str, str]]:
    """Names, order, dtypes and dims of inputs and outputs stay byte for byte."""
    for side in ("input", "output"):
        before = list(getattr(original.graph, side))
        after = list(getattr(result.graph, side))
        if [value.name for value in before] != [value.name for value in after]:
            names = [value.name for value in after]
            yield "interface", f"{side}s {[value.name for value in before]} -> {names}"
            continue
        for old, new in zip(before, after, strict=True):
            if old.SerializeToString(deterministic=True) != new.SerializeToString(
                deterministic=True
            ):
                yield "interface", f"{side} changed: {_one_line(old)} -> {_one_line(new)}"


def opset_faults(original: ModelProto, result: ModelProto) -> Iterator[tuple[str, str]]:
    """The IR version and all versions stay; only what is newly used comes, what is unused goes."""
    if original.ir_version != result.ir_version:
        yield "opset", f"IR version {original.ir_version} -> {result.ir_version}"
    before = {entry.domain: entry.version for entry in original.opset_import}
    after = {entry.domain: entry.version for entry in result.opset_import}
    used = {node.domain for node in all_nodes(result)}
    for domain in sorted(before.keys() | after.keys()):
        old, new = before.get(domain), after.get(domain)
        if old is None:
            allowed = domain in used
        elif new is None:
            allowed = domain not in used
        else:
            allowed = old == new
        if not allowed:
            yield "opset", f"domain {domain!r}: version {old} -> {new}"


def growth_faults(before: int, after: int) -> Iterator[tuple[str, str]]:
    """So many bytes may grow by 1 % or 4 KiB, whichever is larger."""
    if after > before + max(before // 100, 4096):
        yield "grown", f"{before:,} -> {after:,} bytes"


def checker_verdict(model: ModelProto, *, full: bool) -> str:
    """Return what onnx.checker says against the model; "" if nothing."""
    try:
        onnx.checker.check_model(model, full_check=full)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return describe(error)
    return ""


def _validity_faults(original: ModelProto, result: ModelProto) -> Iterator[tuple[str, str]]:
    for full in (False, True):
        verdict = checker_verdict(result, full=full)
        if verdict and not checker_verdict(original, full=full):
            yield "invalid", verdict
            return


def _run_faults(subject: Subject, result: ModelProto, level: int) -> Iterator[tuple[str, str]]:
    if subject.open_model is None:
        return
    try:
        run = subject.open_model(result)
    except RuntimeFailure as error:
        yield "unrunnable", describe(error)
        return
    for trial in subject.trials:
        try:
            outputs = run(trial.feeds)
        except RuntimeFailure as error:
            yield "unrunnable", f"{trial.label}: {describe(error)}"
            continue
        fault = trial.fault(level, result, outputs)
        if fault:
            yield "wrong", f"{trial.label}: {fault}"


def first_difference(before: ModelProto, after: ModelProto) -> str:
    """Say where two models differ, if it is in their main graphs."""
    for field in ("node", "initializer", "value_info", "input", "output"):
        pairs = zip_longest(getattr(before.graph, field), getattr(after.graph, field))
        for index, (old, new) in enumerate(pairs):
            if old != new:
                return f"{field} {index}: {_label(old)} -> {_label(new)}"
    return "something outside of the main graph"


def _label(proto: Any) -> str:
    if isinstance(proto, NodeProto):
        return f"{', '.join(proto.output)} = {proto.op_type}({', '.join(proto.input)})"
    return "nothing" if proto is None else repr(proto.name)


def all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Yield every node: of the main graph, of bodies at any depth and of local functions."""
    yield from nodes_below(model.graph.node)
    for function in model.functions:
        yield from nodes_below(function.node)


def nodes_below(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes, and those of their bodies at any depth."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            bodies: list[GraphProto] = [*attribute.graphs]
            if attribute.HasField("g"):
                bodies.append(attribute.g)
            for body in bodies:
                yield from nodes_below(body.node)


def count_nodes(model: ModelProto) -> int:
    """Count all nodes but Constant, which some tools write where others write initializers."""
    return sum(node.op_type != "Constant" for node in all_nodes(model))


def canonical_bytes(model: ModelProto) -> bytes:
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _one_line(value: onnx.ValueInfoProto) -> str:
    return " ".join(str(value).split())
