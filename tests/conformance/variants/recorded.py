"""What passes make of variants of the models in their tests, as it was recorded: `make variants`.

A variant is recorded only if a pass neither crashes on it nor makes a model that is invalid or
that computes something else. A test holds what the pass makes of it now against the record, and
judges it anew where it differs: what is sound may differ only where a processor decides it.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

import cyclopts
import numpy as np
import onnx
from onnx import ModelProto, TensorProto, numpy_helper, printer

from docs.site.examples import ROOT, Example, rewrites_of
from docs.site.pass_pages import own_passes
from tests.conformance.judge import all_nodes, canonical_bytes, checker_verdict, describe
from tests.conformance.variants.changes import Edit, changed, changes_of
from tiered.context import PassContext
from tiered.graph import Model
from tiered.passes import PassInfo
from tiered.pipeline import get_pass
from tiered.runtime import Session, make_inputs
from tiered.runtime.compare.outputs import compare
from tiered.runtime.worker.limits import MemoryLimit, load_libraries
from tiered.support.errors import ModelError, RuntimeFailure, TieredError

RECORD: Final = Path(__file__).with_name("recorded.json")
CANDIDATES: Final = 3
"""How many variants are tried for the record of a pass, for each that is recorded at most."""
CALLS: Final = 8
"""With as many functions that call each other twice, the inference of onnx takes too long."""
CANDIDATE_SECONDS: Final = 3.0
"""Processor time that they may take."""
MOST: Final = (16, 64)
"""How many of them are recorded: as the pass has lines, by 2, within these limits."""
SECONDS: Final = 0.25
"""Processor time that the variants of a pass may take."""
MEMORY: Final = 2 << 30
"""The most that a recording may allocate: some variants ask for very large tensors."""
KEY: Final = 7
"""How many letters of a digest tell variants of a pass apart."""
FLOATS: Final = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
MEASURING: Final = frozenset({"inputs", "processor", "samples", "seed"})
"""Options of passes that run the model."""
_FORK: Final = multiprocessing.get_context("fork")
_BUG: Final = 5

_Found = tuple[dict[str, str], list[str]]


class Variant(NamedTuple):
    """A variant of a model in the tests of a pass.

    Attributes:
        key: a digest of what it is.
        label: the test, and what was changed.
        example: the model in the test.
        edit: the change.
    """

    key: str
    label: str
    example: Example
    edit: Edit


class Outcome(NamedTuple):
    """What a pass makes of a model.

    Attributes:
        result: the model, or None if nothing was changed.
        reasons: those that it gave for what it left alone, or the kind of its error.
        fault: what is wrong; empty if nothing is.
    """

    result: ModelProto | None
    reasons: tuple[str, ...]
    fault: str = ""

    @property
    def digest(self) -> str:
        """A digest of all that can be seen."""
        result = b"" if self.result is None else canonical_bytes(_rounded(self.result))
        return _digest(result, *map(str.encode, self.reasons))[:3]

    @property
    def kind(self) -> tuple[object, ...]:
        """What outcomes that say little beside each other have in common."""
        nodes = () if self.result is None else all_nodes(self.result)
        return (self.reasons, tuple(sorted(Counter(node.op_type for node in nodes).items())))


def passes_beside(test: str) -> list[PassInfo]:
    """Return the passes of the record whose folder a file of tests mirrors."""
    folder = ROOT / "tiered" / Path(test).resolve().parent.relative_to(ROOT / "tests")
    infos = [info for info in own_passes() if info.name in recorded()]
    return [info for info in infos if Path(info.source).resolve().parent == folder]


def variants_of(info: PassInfo) -> Iterator[Variant]:
    """Yield the variants of the models in the tests of a pass: the models take turns."""
    examples = {
        canonical_bytes(example.before): example
        for example in (*rewrites_of(info), *rewrites_of(info, declined=True))
        if len(example.before.functions) < CALLS and not _verdict(example.before)
    }
    pending = [
        (key, example, changes_of(example.before, at))
        for at, (key, example) in enumerate(examples.items())
    ]
    while pending:
        left = []
        for key, example, changes in pending:
            change = next(changes, None)
            if change is not None:
                left.append((key, example, changes))
                digest = _digest(key, change[0].encode())[:KEY]
                yield Variant(digest, f"{example.test}, {change[0]}", example, change[1])
        pending = left


def outcome_of(info: PassInfo, example: Example, model: ModelProto) -> Outcome:
    """Apply a pass to a model, whatever its level."""
    ctx = PassContext.isolated(opt_level=4, backend=example.backend)
    try:
        view = Model.from_proto(model)
        mark = view.mark()
        get_pass(info.name, **example.options).apply(view, ctx)
    except TieredError as error:
        fault = describe(error) if error.exit_code == _BUG else ""
        return Outcome(None, (type(error).__name__,), fault)
    except Exception as error:  # noqa: BLE001 - a crash is what is looked for
        return Outcome(None, (), describe(error))
    reasons = sorted(remark.reason for remark in ctx.remarks if remark.kind == "missed")
    result = view.to_proto() if view.changed_since(mark) else None
    return Outcome(result, tuple(reasons))


def fault_of(info: PassInfo, model: ModelProto, outcome: Outcome) -> str:
    """Return what is wrong with what a pass made of a model; empty if nothing is."""
    if outcome.fault or outcome.result is None:
        return outcome.fault
    # Not with any feeds does a loop end, or a range fit into memory.
    is_endless = any(node.op_type in ("Loop", "Range") for node in all_nodes(model))
    verdict = _verdict(outcome.result)
    if info.changes_interface or is_endless:
        return verdict
    made = [make_inputs(model, seed=seed) for seed in range(2)]
    made += [make_inputs(model, special=True)] * (info.promise.numerics == "exact")
    try:
        run = Session(model).run
        trials = [(each.feeds, run(each.feeds)) for each in made]
    except (ModelError, RuntimeFailure) as error:
        # What no runtime takes computes nothing; a kernel that is missing says nothing of this.
        return verdict if "NOT_IMPLEMENTED" in str(error) else ""
    if verdict:
        return verdict
    try:
        run = Session(outcome.result).run
        found = [compare(outputs, run(each), info.promise) for each, outputs in trials]
    except (ModelError, RuntimeFailure) as error:
        return "" if "NOT_IMPLEMENTED" in str(error) else describe(error)
    return next((str(comparison) for comparison in found if not comparison.ok), "")


def _verdict(model: ModelProto) -> str:
    """Return what onnx has against a model; a rank that is not known is well with its inference."""
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return describe(error)
    made = ModelProto()
    made.CopyFrom(model)
    for value in (*made.graph.input, *made.graph.output):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.shape.SetInParent()
    return checker_verdict(made, full=False)


def assert_as_recorded(info: PassInfo) -> None:
    """Assert that a pass makes of the variants that are recorded what the record says."""
    expected = recorded().get(info.name, {})
    met = 0
    for variant in variants_of(info):
        if variant.key not in expected:
            continue
        met += 1
        model = changed(variant.example.before, variant.edit)
        outcome = outcome_of(info, variant.example, model)
        if outcome.digest != expected[variant.key]:
            fault = fault_of(info, model, outcome)
            if not fault and _depends_on_processor(info, model, outcome):
                continue
            fault = fault or "nothing is wrong with it: `make variants`"
            result = outcome.result
            made = outcome.reasons if result is None else printer.to_text(result)
            raise AssertionError(
                f"{info.name} has another outcome ({variant.label}): {fault}\n"
                f"{printer.to_text(model)}\n=> {made}"
            )
        if met == len(expected):
            break
    assert 2 * met >= len(expected), f"the tests of {info.name} have changed: `make variants`"


def _depends_on_processor(info: PassInfo, model: ModelProto, outcome: Outcome) -> bool:
    """Return whether a pass measures, or has computed floats: last bits decide what it makes."""
    if not MEASURING.isdisjoint(option.name for option in info.options):
        return True
    if outcome.result is None:
        return False
    before, after = (set(_float_contents(each)) for each in (model, outcome.result))
    return not after <= before


@cache
def recorded() -> dict[str, dict[str, str]]:
    """Return the digest of the outcome by the key of the variant, by the name of the pass."""
    found: dict[str, str] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return {
        name: {word[:KEY]: word[KEY:] for word in words.split()} for name, words in found.items()
    }


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _rounded(model: ModelProto) -> ModelProto:
    """Return a model whose floats are rounded: their last bits differ between processors."""
    made = ModelProto()
    made.CopyFrom(model)
    for tensor in _float_tensors(made):
        array = numpy_helper.to_array(tensor).astype(np.float64)
        with np.errstate(all="ignore"):
            array = (array * 1.0471).astype(np.float16)  # such that round ones are no ties
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return made


def _float_tensors(model: ModelProto) -> list[TensorProto]:
    tensors: list[TensorProto] = [*model.graph.initializer]
    tensors += [
        each.t for node in all_nodes(model) for each in node.attribute if each.HasField("t")
    ]
    return [tensor for tensor in tensors if tensor.data_type in FLOATS]


def _float_contents(model: ModelProto) -> Iterator[bytes]:
    for tensor in _float_tensors(model):
        array = numpy_helper.to_array(tensor)
        yield _digest(str((array.dtype, array.shape)).encode(), array.tobytes()).encode()


def _recorded_apart(info: PassInfo) -> _Found:
    """Return what `record` does, in a process of its own; variants that end it are left out."""
    left_out = set[str]()
    while True:
        receiver, sender = _FORK.Pipe(duplex=False)
        process = _FORK.Process(target=_send, args=(info, left_out, sender))
        process.start()
        sender.close()
        last = ""
        try:
            while isinstance(message := receiver.recv(), str):
                last = message
        except EOFError:
            assert last not in left_out, f"{info.name}: the process ended"
            left_out.add(last)
            continue
        finally:
            process.join()
        found: _Found = message
        return found


def _send(info: PassInfo, left_out: set[str], sender: Connection) -> None:
    load_libraries()
    MemoryLimit().set(MEMORY)
    sender.send(record(info, left_out, sender.send))


def record(info: PassInfo, left_out: set[str], report: Callable[[str], None]) -> _Found:
    """Return what is recorded of a pass, and the faults that were found.

    Variants come first whose outcome is another one than all before.

    Args:
        info: the pass.
        left_out: keys of variants that are not tried.
        report: called with the key of each variant that is.
    """
    lines = len(Path(info.source).read_text(encoding="utf-8").splitlines())
    most = min(max(lines // 2, MOST[0]), MOST[1])
    candidates = CANDIDATES * most
    found: list[tuple[float, Variant, ModelProto, Outcome]] = []
    seen, kinds, faults = set[bytes](), Counter[object](), list[str]()
    for _, variant in zip(range(2 * candidates), variants_of(info), strict=False):
        if variant.key in left_out:
            continue
        report(variant.key)
        model = changed(variant.example.before, variant.edit)
        if canonical_bytes(model) in seen or _verdict(model):
            continue
        seen.add(canonical_bytes(model))
        if not found:
            outcome_of(info, variant.example, model)  # loads modules, which takes time once
        began = time.process_time()
        outcome = outcome_of(info, variant.example, model)
        found.append((time.process_time() - began, variant, model, outcome))
        if len(found) == candidates or sum(each[0] for each in found) > CANDIDATE_SECONDS:
            break
    ranked = []
    for at, each in enumerate(found):
        kinds[each[3].kind] += 1
        ranked.append((not each[3].fault, kinds[each[3].kind], at))
    kept, seconds = dict[str, str](), 0.0
    for *_, at in sorted(ranked):
        spent, variant, model, outcome = found[at]
        report(variant.key)
        fault = fault_of(info, model, outcome)
        if fault:
            faults.append(f"{info.name}: {variant.label}: {fault}\n{printer.to_text(model)}")
        elif seconds + spent < SECONDS and len(kept) < most:
            seconds += spent
            kept[variant.key] = outcome.digest
        if len(kept) == most or seconds + spent >= SECONDS:
            break
    return kept, faults


def main(*passes: str) -> None:
    """Record what passes make of variants; print the faults that are found, which are left out.

    Args:
        passes: their names; all if there are none.
    """
    known = {name: dict(words) for name, words in recorded().items()}
    infos = [info for info in own_passes() if info.kind != "pipeline"]
    known = {name: known.get(name, {}) for name in sorted(info.name for info in infos)}
    is_sound = True
    for info in infos:
        if not passes or info.name in passes:
            known[info.name], faults = _recorded_apart(info)
            for fault in faults:
                is_sound = False
                print(fault, flush=True)
            print(f"{info.name}: {len(known[info.name])}", file=sys.stderr, flush=True)
            lines = {
                name: " ".join(sorted(key + digest for key, digest in words.items()))
                for name, words in known.items()
                if words
            }
            RECORD.write_text(json.dumps(lines, indent=1, sort_keys=True) + "\n")
    sys.exit(not is_sound)


if __name__ == "__main__":
    cyclopts.run(main)
