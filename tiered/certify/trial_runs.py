"""What no domain proves is run: both sides on onnxruntime, on values made for the borders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx

from tiered.certify.evaluation.values import Unproved
from tiered.certify.problem import Problem, Side
from tiered.certify.trial_sizes import TrialSizes
from tiered.graph.core.types import tensor_type, write_type
from tiered.runtime.compare.outputs import Comparison, compare
from tiered.runtime.inputs.samples import Wanted, samples_for
from tiered.runtime.session import Session
from tiered.support.errors import TieredError
from tiered.support.numerics import Promise

_PREFIX = "result "


@dataclass(frozen=True)
class Ran:
    """Two sides that ran.

    Attributes:
        comparison: of the outputs, of the first sample that differs, or of the last one.
        feeds: what they ran on.
        sizes: those of the borders.
    """

    comparison: Comparison
    feeds: Mapping[str, Any]
    sizes: Mapping[str, int]

    @property
    def ok(self) -> bool:
        return self.comparison.ok


def run_both(problem: Problem, promise: Promise) -> Ran:
    """Run both sides of a problem, and compare them by what a pass promises.

    Raises:
        Unproved: they cannot be run, or nothing could be compared.
    """
    reason = "no sizes were tried"
    for sizes in problem.sizes:
        try:
            return _run(problem, promise, sizes)
        except TieredError as error:
            reason = str(error).splitlines()[0]
    raise Unproved(f"does not run by itself: {reason}")


def _run(problem: Problem, promise: Promise, sizes: TrialSizes) -> Ran:
    before, after = (model_of(problem, side, sizes) for side in problem.sides)
    known = problem.given.at(sizes)
    session, other = Session(before), Session(after)
    samples = samples_for(before, session, Wanted((), shapes={}))
    found: Ran | None = None
    for sample in samples:
        feeds = {**sample.inputs.feeds, **known}
        comparison = compare(session.run(feeds), other.run(feeds), promise)
        found = Ran(comparison, feeds, problem.used(sizes))
        if not comparison.ok:
            break
    if found is None or found.comparison.is_empty:
        raise Unproved("nothing could be compared")
    return found


def model_of(problem: Problem, side: Side, sizes: TrialSizes) -> onnx.ModelProto:
    """Return one side as a model of its own.

    Raises:
        Unproved: a border has no shape.
    """
    graph = onnx.GraphProto(name="region")
    for name, border in problem.borders.items():
        shape = border.shape(sizes)
        if shape is None:
            raise Unproved(f"no shape of {name} is known")
        graph.input.add(name=name, type=write_type(tensor_type(border.dtype, shape)))
    for name, tensor in side.constants.items():
        graph.initializer.append(onnx.numpy_helper.from_array(tensor.dense(), name))
    graph.node.extend(side.nodes)
    # An output may be a border or a constant as well.
    for name in problem.outputs:
        graph.node.add(op_type="Identity", input=[name], output=[_PREFIX + name])
        graph.output.add(name=_PREFIX + name)
    made = onnx.ModelProto(ir_version=10, graph=graph)
    made.functions.extend(side.functions.values())
    for domain, version in problem.opsets.items():
        made.opset_import.add(domain=domain, version=version)
    return made
