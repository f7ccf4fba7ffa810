"""Change one token of a pass at a time, and look whether a wrong rewrite is certified.

    python -m tests.certify.mutants --count 100 --seed 0 --state build/certified_mutants.json

A mutant of a pass of the default pipeline runs on the models that its tests assert that it
rewrites, and on some with changes. Its rewrites are certified, and the models before and after
run on onnxruntime. A mutant whose models differ must not be certified. What runs do not show and
the certificate does not prove, though it proves the pass itself, only the certificate caught.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import cyclopts
from onnx import ModelProto

from docs.site.examples import rewrites_of
from tests.certify.prove import instances, rules
from tests.mutants.sites import ROOT, Mutant, mutants_of
from tiered import Model, Pass, PassContext, get_pass
from tiered.certify import Certify
from tiered.passes import PassInfo
from tiered.runtime import make_inputs
from tiered.runtime.compare.outputs import compare
from tiered.runtime.session import Session
from tiered.support.errors import TieredError
from tiered.support.numerics import Numerics

VARIANTS: Final = 4
SECONDS: Final = 240


def chosen(count: int, seed: int) -> list[tuple[PassInfo, Mutant]]:
    """Return random mutants of the files of passes, one of a pass where they suffice."""
    source = random.Random(seed)
    pairs = [
        (info, mutant)
        for info in rules()
        if info.kind == "rewrite" and Path(info.source).is_relative_to(ROOT)
        for mutant in mutants_of(Path(info.source))
    ]
    source.shuffle(pairs)
    return pairs[:count]


def mutated(info: PassInfo, mutant: Mutant) -> Pass:
    """Return the pass of a changed file."""
    text = mutant.applied_to(Path(info.source).read_bytes())
    module = ModuleType(f"mutant_{info.name}")
    module.__file__ = info.source
    sys.modules[module.__name__] = module
    exec(compile(text, info.source, "exec"), vars(module))
    found = getattr(module, info.name)
    assert isinstance(found, Pass)
    return found


def fate(info: PassInfo, mutant: Mutant) -> str:
    """Return what became of a mutant.

    Returns:
        "certified wrongly", "refuted", "caught by both", "by the certificate alone", "by runs
        alone", "does not run", "the same", or "fails" where it cannot be made or raises.
    """
    try:
        made = mutated(info, mutant)
    except Exception:  # noqa: BLE001 - what a mutant raises is its end
        return "fails"
    seen = Counter[str]()
    for at, example in enumerate(rewrites_of(info)):
        if example.beside or example.storage is not None:
            continue
        source = random.Random(at)
        for model in instances(source, example, VARIANTS):
            seen[_verdict(info, made, example, model)] += 1
    order = ("certified wrongly", "refuted", "caught by both", "by the certificate alone",
             "by runs alone", "does not run", "fails")  # fmt: skip
    return next((word for word in order if seen[word]), "the same")


def _verdict(info: PassInfo, made: Pass, example: Any, model: ModelProto) -> str:
    try:
        words, result = _certified(made.with_options(**example.options), example, model)
    except Exception:  # noqa: BLE001 - what a mutant raises is its end
        return "fails"
    is_proved = all(word in ("bits", "reals", "interface") for word in words)
    if info.numerics is Numerics.EXACT and "reals" in words:
        is_proved = False
    try:
        differs = _differs(info, model, result)
    except TieredError:
        return "does not run"
    if differs and is_proved and words and "interface" not in words:
        return "certified wrongly"
    if "refuted" in words:
        return "refuted" if differs else "by the certificate alone"
    if differs:
        return "caught by both" if not is_proved else "by runs alone"
    if is_proved:
        return "the same"
    whole, _ = _certified(get_pass(info.name, **example.options), example, model)
    was_proved = all(word in ("bits", "reals") for word in whole)
    return "by the certificate alone" if was_proved else "the same"


def _certified(made: Pass, example: Any, model: ModelProto) -> tuple[list[str], ModelProto]:
    certify = Certify()
    context = PassContext.isolated(opt_level=4, backend=example.backend, instruments=[certify])
    view = Model.from_proto(model)
    made.apply(view, context)
    return [each.word for each in certify.findings.rewrites], view.to_proto()


def _differs(info: PassInfo, before: ModelProto, after: ModelProto) -> bool:
    """Return whether a run shows another result.

    Raises:
        TieredError: the result does not run: a certificate says nothing of what kernels take.
    """
    try:
        first = Session(before)
        feeds = [make_inputs(before, seed=seed, binding=seed % 2).feeds for seed in range(3)]
        expected = [first.run(each) for each in feeds]
    except TieredError:
        return False
    second = Session(after)
    found = [second.run(each) for each in feeds]
    pairs = zip(expected, found, strict=True)
    return not all(compare(one, other, info.promise).ok for one, other in pairs)


def _sent(sender: Connection, info: PassInfo, mutant: Mutant) -> None:
    sender.send(fate(info, mutant))


def guarded(info: PassInfo, mutant: Mutant) -> str:
    """Return the fate of a mutant from a process of its own: it may hang or crash the runtime."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_sent, args=(sender, info, mutant))
    process.start()
    sender.close()
    try:
        return str(receiver.recv()) if receiver.poll(SECONDS) else "hangs"
    except EOFError:
        return "crashes"
    finally:
        process.kill()
        process.join()


def main(
    *, count: int = 100, seed: int = 0, state: Path = Path("build/certified_mutants.json")
) -> None:
    """Judge the mutants that the state file lacks, and print the shares.

    Args:
        count: how many mutants.
        seed: of their choice.
        state: a JSON file of their fates: a killed run goes on there.
    """
    known: dict[str, str] = {}
    if state.exists():
        known = json.loads(state.read_text(encoding="utf-8"))
    state.parent.mkdir(parents=True, exist_ok=True)
    fates = Counter[str]()
    for info, mutant in chosen(count, seed):
        place = f"{mutant.path}:{mutant.line}+{mutant.start} -> {mutant.new}"
        if place not in known:
            known[place] = guarded(info, mutant)
            state.write_text(json.dumps(known, indent=1), encoding="utf-8")
        fates[known[place]] += 1
        if known[place] in ("certified wrongly", "by the certificate alone"):
            print(f"{known[place]}: {place}", flush=True)
    print(dict(fates))
    sys.exit(bool(fates["certified wrongly"]))


if __name__ == "__main__":
    app = cyclopts.App()
    app.default(main)
    app()
