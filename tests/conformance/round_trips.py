"""Random models that are taken apart and put together again compute the same bits.

`python -m tests.conformance.round_trips --minutes 30`: split and merge, extract and merge,
partition and inline, on random models of `tests.conformance.random_graphs`.
They run on onnxruntime, and on onnx.reference where onnxruntime is known to fail or to deviate.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

import cyclopts
import onnx

import tiered
from tests.conformance import refusals
from tests.conformance.cuts import merged_again, random_cuts
from tests.conformance.judge import Feeds, Outputs, describe, open_on_onnxruntime
from tests.conformance.random_graphs import random_feeds, random_model
from tests.conformance.regions import FUNCTIONS_SINCE
from tiered import Graph, Model, Node, UsageError, get_pass
from tiered.extensions.partition import (
    Partition,
    Plan,
    as_models,
    create_op_support,
    fuse_partitions,
    propose_partitions,
)
from tiered.runtime.compare.outputs import Comparison, compare
from tiered.runtime.deviations import explaining
from tiered.runtime.session import Reference
from tiered.support.errors import RuntimeFailure


class NotTried(Exception):
    """The model cannot be taken apart, or does not run."""


def split_and_merge(source: random.Random, model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model that the parts of random cuts merge to."""
    cuts = random_cuts(Model.from_proto(model), source.randrange(1 << 30))
    if not cuts:
        raise NotTried("there is nowhere to cut")
    try:
        return merged_again(model, cuts)
    except UsageError as error:
        if "no node is left" in str(error):
            raise NotTried(str(error)) from error
        raise


def extract_and_merge(source: random.Random, model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model that what is before and behind some tensors merges to."""
    cuts = random_cuts(Model.from_proto(model), source.randrange(1 << 30))
    shown = {info.name for info in model.graph.output}
    inner = [name for cut in cuts for name in cut if name not in shown]
    if not inner:
        raise NotTried("there is nowhere to cut")
    between = source.sample(inner, 1 if source.random() < 0.8 else len(inner))
    try:
        behind = tiered.extract(model, between)
        read = [info.name for info in behind.graph.input if info.name in between]
        before = tiered.extract(model, outputs=read)
    except UsageError as error:
        raise NotTried(str(error)) from error
    return tiered.merge(before, behind)


def partition_and_inline(source: random.Random, model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model after partitions of random nodes became functions, and then nodes again."""
    view = Model.from_proto(model)
    view.set_ir_version(max(view.ir_version, FUNCTIONS_SINCE))
    fuse_partitions(_partitions(source, view))
    view.check()
    get_pass("inline", domains=("tiered.partition",)).apply(view)
    return view.to_proto()


def _partitions(source: random.Random, view: Model) -> list[Partition]:
    share = source.choice((0.5, 0.9, 1.0))
    chosen = {node for node in view.main.nodes if source.random() < share}

    def is_chosen(graph: Graph, node: Node) -> bool:
        return node in chosen or node.graph is not view.main

    return propose_partitions(
        view,
        create_op_support(is_chosen),
        skip_horizontal_fusion=source.random() < 0.5,
        allows_single_node_partition=source.random() < 0.5,
    )


def partition_as_models(source: random.Random, model: onnx.ModelProto) -> Plan:
    """Return the models of partitions of random nodes, which run one after the other."""
    view = Model.from_proto(model)
    get_pass("infer_shapes").apply(view)
    try:
        return as_models(view, _partitions(source, view))
    except tiered.ModelError as error:
        if "type is unknown" in str(error):
            raise NotTried(str(error)) from error
        raise


TRIPS: dict[str, Callable[[random.Random, onnx.ModelProto], onnx.ModelProto | Plan]] = {
    "split and merge": split_and_merge,
    "extract and merge": extract_and_merge,
    "partition and inline": partition_and_inline,
    "partition as models": partition_as_models,
}


def fault(trip: str, seed: int) -> str:
    """Return what is wrong with a random model after a round trip; "" if nothing.

    Raises:
        NotTried: the trip says nothing about this model.
    """
    source = random.Random(seed)
    model = random_model(source, source.randint(2, 20))
    feeds = [random_feeds(source, model) for _ in range(2)]
    expected = _outputs_of(model, feeds)
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    try:
        again = TRIPS[trip](source, whole)
        if isinstance(again, Plan):
            parts = [part.model.to_proto() for part in again.parts]
            return _difference(model, parts, again.run, feeds, expected)
        onnx.checker.check_model(again)
        shown = [[info.name for info in each.graph.output] for each in (model, again)]
        read = [[info.name for info in each.graph.input] for each in (model, again)]
        if trip != "extract and merge" and (shown[0] != shown[1] or read[0] != read[1]):
            return f"inputs {read[0]} are {read[1]}, outputs {shown[0]} are {shown[1]}"
        run = open_on_onnxruntime(again)
        feeds = [{name: array for name, array in each.items() if name in read[1]} for each in feeds]
        return _difference(model, [again], run, feeds, expected)
    except (tiered.TieredError, onnx.checker.ValidationError) as error:
        return describe(error)


def _outputs_of(model: onnx.ModelProto, feeds: Sequence[Feeds]) -> list[Outputs]:
    """Return the outputs for each of the inputs.

    Raises:
        NotTried: onnxruntime does not run the model, or not twice in the same way.
    """
    try:
        run = open_on_onnxruntime(model)
        expected = [run(each) for each in feeds]
        again = [open_on_onnxruntime(model)(each) for each in feeds]
    except RuntimeFailure as error:
        raise NotTried(str(error)) from error
    if not all(compare(*pair, "exact").ok for pair in zip(expected, again, strict=True)):
        raise NotTried("two runs differ")
    return expected


def _difference(
    model: onnx.ModelProto,
    again: Sequence[onnx.ModelProto],
    run: Callable[[Feeds], Outputs],
    feeds: Sequence[Feeds],
    expected: Sequence[Outputs],
) -> str:
    """Return where models, run one after the other, differ from the model that they were.

    Where onnxruntime is known to fail or to deviate, onnx.reference decides.
    """
    for each, outputs in zip(feeds, expected, strict=True):
        try:
            found = _compared(outputs, run(each))
        except RuntimeFailure as error:
            if not refusals.is_known(again, error):
                raise
            found = _by_definition(model, again, each)
        if explaining((model, *again), [output for output in found.outputs if not output.ok]):
            found = _by_definition(model, again, each)
        if not found.ok:
            return str(found)
    return ""


def _compared(expected: Outputs, found: Outputs) -> Comparison:
    names = [name for name in expected if name in found]
    assert names, "nothing was computed"
    one, other = ({name: each[name] for name in names} for each in (expected, found))
    return compare(one, other, "exact")


def _by_definition(
    model: onnx.ModelProto, again: Sequence[onnx.ModelProto], feeds: Feeds
) -> Comparison:
    """Return how the models differ on onnx.reference.

    Raises:
        NotTried: onnx.reference does not run them.
    """
    values = dict(feeds)
    try:
        expected = Reference(model).run(feeds)
        for part in again:
            reference = Reference(part)
            read = [name for name in reference.inputs if name in values]
            values |= reference.run({name: values[name] for name in read})
    except RuntimeFailure as error:
        raise NotTried(str(error)) from error
    return _compared(expected, values)


def main(*, minutes: float = 1.0, seed: int = 0) -> None:
    """Take random models apart and put them together again.

    Args:
        minutes: for how long.
        seed: the number of the first model.
    """
    until, counts, failed = time.monotonic() + 60 * minutes, Counter[str](), 0
    while time.monotonic() < until:
        for trip in TRIPS:
            try:
                found = fault(trip, seed)
            except NotTried:
                continue
            counts[trip] += 1
            if found:
                failed += 1
                print(f"{seed}, {trip}: {found}"[:600], flush=True)
        seed += 1
    print(f"{dict(counts)}, {failed} faults")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    cyclopts.run(main)
