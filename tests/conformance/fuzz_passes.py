"""Random models at levels 0 to 2 (`--levels 0,1,2,3,4` for all): `make fuzz-passes`."""

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import cyclopts
import numpy as np
import onnx

from tests.conformance.certified import Certifying
from tests.conformance.judge import (
    EXACT_UP_TO,
    Failure,
    Feeds,
    OpenModel,
    Optimize,
    Outputs,
    Subject,
    Trial,
    all_nodes,
    judge_levels,
    open_on_onnxruntime,
    optimize,
)
from tests.conformance.random_graphs import (
    SIZES,
    has_rare_types,
    other_sizes,
    random_feeds,
    random_model,
)
from tiered.runtime.compare.outputs import Comparison, compare
from tiered.runtime.deviations import explaining
from tiered.runtime.session import Reference
from tiered.support.errors import RuntimeFailure

LEVELS = (0, 1, 2)
_NUMERICS = {3: "reassociating", 4: "approximate"}
_AFTER_EACH_OTHER = (0.1, 0.01)
"""What several approximations in a row may change, relative and absolute: the Gelu of a Gelu."""


class NotRunnable(Exception):
    """onnxruntime does not run the random model, so nothing can be said."""


def faults_of(
    source: random.Random, levels: Sequence[int] = LEVELS, *, optimize: Optimize = optimize
) -> tuple[Any, list[Failure]]:
    """Make a model, and return it with all that is wrong with what passes make of it.

    It runs on onnxruntime with the sizes that it was made for, and with others if it takes them;
    or on onnx.reference if it has dtypes that onnxruntime lacks kernels for.

    Raises:
        NotRunnable: there is nothing to compare with.
    """
    model = random_model(source, source.randint(2, 20))
    try:
        opener, trials = _opened(source, model)
    except RuntimeFailure as error:
        raise NotRunnable(str(error)) from error
    subject = Subject(model, opener, trials)
    _, failures = judge_levels(subject, levels, optimize, lambda stage: None)
    return model, failures


def _opened(source: random.Random, model: onnx.ModelProto) -> tuple[OpenModel, tuple[Trial, ...]]:
    try:
        return open_on_onnxruntime, _trials(source, model, open_on_onnxruntime)
    except RuntimeFailure:
        if not has_rare_types(model):
            raise
        return _on_reference, _trials(source, model, _on_reference)


def _on_reference(model: onnx.ModelProto) -> Callable[[Feeds], Outputs]:
    """Open on onnx.reference, which lets infinities through a Clip that has no bound."""
    spelled = onnx.ModelProto()
    spelled.CopyFrom(model)
    bounds = {1: np.finfo(np.float32).min, 2: np.finfo(np.float32).max}
    for at, bound in bounds.items():
        tensor = onnx.numpy_helper.from_array(np.array(bound, np.float32), f"clip_bound_{at}")
        spelled.graph.initializer.append(tensor)
        for node in all_nodes(spelled):
            if node.op_type == "Clip" and not node.attribute:
                node.input.extend([""] * (at + 1 - len(node.input)))
                node.input[at] = node.input[at] or tensor.name
    return Reference(spelled).run


def _trials(source: random.Random, model: onnx.ModelProto, opener: OpenModel) -> tuple[Trial, ...]:
    run = opener(model)
    trials = []
    # onnx.reference does not mind a Split whose parts are not all there is: only the first sizes.
    for turn in range(4 if opener is open_on_onnxruntime else 2):
        try:
            feeds = random_feeds(source, model, other_sizes(source) if turn > 1 else SIZES)
            expected = run(feeds)
            # onnxruntime concatenates nothing with anything, and hands out what nobody wrote: in
            # another session that is something else.
            is_whole = all(np.size(array) for array in feeds.values())
            again = run if is_whole else opener(model)
            if all(compare(expected, again(feeds), "exact").ok for _ in range(2)):
                trials.append(trial(f"inputs {turn}", model, feeds, expected))
        except RuntimeFailure:
            if turn <= 1:
                raise
    return tuple(trials)


def trial(
    label: str, model: onnx.ModelProto, feeds: dict[str, np.ndarray[Any, Any]], expected: Outputs
) -> Trial:
    """Return inputs of a model, and how to judge the outputs that a result has of them."""

    def fault(level: int, result: onnx.ModelProto, outputs: Outputs) -> str | None:
        numerics = _NUMERICS.get(level, "exact")
        if level > EXACT_UP_TO and not (_are_finite(expected) and _are_finite(outputs)):
            return None  # sums in another order overflow elsewhere
        rtol, atol = _AFTER_EACH_OTHER if numerics == "approximate" else (None, None)
        found = compare(expected, outputs, numerics, rtol=rtol, atol=atol)
        if not found.ok and _deviates((model, result), found):
            try:
                by_definition, actual = (_on_reference(each)(feeds) for each in (model, result))
            except RuntimeFailure:
                return None  # nothing to compare with
            # onnxruntime agrees on the others, and may round otherwise than onnx.reference.
            wrong = [output.name for output in found.outputs if not output.ok]
            found = compare(_only(wrong, by_definition), _only(wrong, actual), numerics)
            if _is_folded_otherwise((model, result), found):
                return None
        return None if found.ok else str(found)

    return Trial(label, feeds, fault)


def _only(names: Sequence[str], outputs: Outputs) -> Outputs:
    return {name: outputs[name] for name in names}


def _are_finite(outputs: Outputs) -> bool:
    arrays = [np.asarray(each) for each in outputs.values()]
    return all(np.isfinite(each).all() for each in arrays if each.dtype.kind == "f")


def _deviates(models: Sequence[onnx.ModelProto], found: Comparison) -> bool:
    """Tell whether onnxruntime may be to blame.

    A sign of a zero that is lost can become anything; and a branch that hands a text through takes
    it away from who else reads it.
    """
    if any(has_rare_types(model) for model in models):
        return True
    if any(node.op_type == "Where" for model in models for node in all_nodes(model)):
        return True
    return bool(explaining(models, [output for output in found.outputs if not output.ok]))


def _is_folded_otherwise(models: Sequence[onnx.ModelProto], found: Comparison) -> bool:
    """Tell whether onnxruntime, which folds, and onnx.reference, which runs, differ as is known."""
    differing = [output for output in found.outputs if not output.ok]
    return any(map(has_rare_types, models)) and bool(explaining(models, differing))


def search(
    faults: Callable[[random.Random, Sequence[int]], tuple[onnx.ModelProto, list[Failure]]],
    *,
    minutes: float,
    seed: int,
    levels: str,
    folder: Path,
) -> NoReturn:
    """Judge one number after the other, print and keep what fails, and end the process.

    Args:
        faults: returns the model of a source of numbers, and what is wrong with its results.
        minutes: how long, of the processor's time.
        seed: the first number.
        levels: the optimisation levels, separated by commas.
        folder: where the models go.
    """
    counts = Counter[str]()
    chosen = tuple(int(level) for level in levels.split(","))
    while time.process_time() < 60 * minutes:
        try:
            model, failures = faults(random.Random(seed), chosen)
        except NotRunnable as error:
            counts["not runnable"] += 1
            if counts["not runnable"] <= 3:
                print(f"seed {seed}: not runnable: {error}"[:300], flush=True)
            seed += 1
            continue
        counts["faulty" if failures else "good"] += 1
        if failures:
            folder.mkdir(parents=True, exist_ok=True)
            onnx.save(model, folder / f"{seed}.onnx")
            for failure in failures[:2]:
                print(f"seed {seed}: O{failure.level} {failure.kind}: {failure.detail}"[:400])
            sys.stdout.flush()
        seed += 1
    print(f"up to seed {seed}: {dict(counts)}")
    sys.exit(bool(counts["faulty"]))


def main(
    *,
    minutes: float = 10.0,
    seed: int = 0,
    levels: str = "0,1,2",
    folder: Path = Path("build/fuzz"),
    certify: bool = False,
) -> None:
    """Judge random models, one number after the other, and keep those that show a fault.

    Args:
        minutes: how long, of the processor's time.
        seed: the first number.
        levels: the optimisation levels, separated by commas.
        folder: where the models go.
        certify: whether each rewrite is certified, too: what is wrong must not be proved.
    """
    found = faults_of if not certify else partial(faults_of, optimize=Certifying())
    search(found, minutes=minutes, seed=seed, levels=levels, folder=folder)


if __name__ == "__main__":
    cyclopts.run(main)
