"""Rooms whose results have the outputs of the model: conversions, targets, memory, layouts."""

from __future__ import annotations

import random
from typing import Any

import onnx

import tiered
from tests.conformance.judge import all_nodes
from tests.conformance.rooms.room import APPROXIMATE, EXACT, TOLERANT, NotTried, Result
from tiered import Model, PassContext, get_backend, get_pass, pipeline_for
from tiered.support.numerics import Numerics
from tiered.targets import Backend
from tiered.targets.reading import backend_of

LEVEL_OF = {
    Numerics.EXACT: EXACT, Numerics.REASSOCIATING: TOLERANT, Numerics.APPROXIMATE: APPROXIMATE,
}  # fmt: skip
CLASSES = ("exact", "reassociating", "approximate")
TARGETS = (
    "portable", "onnxruntime_cpu", "tensorrt", "openvino_npu", "qnn_htp", "coreml", "webnn",
    "nhwc_edge", "ipu",
)  # fmt: skip
FLOAT_HOLDS = 2**24
"""Up to here float holds every integer."""
OPSETS = (7, 9, 11, 12, 13, 15, 17, 18, 19, 20, 21, 22, 23)


def applied(model: onnx.ModelProto, name: str, why: str = "", **options: Any) -> Result:
    """Return what one pass makes of a model, with the promise of its numeric class."""
    pass_ = get_pass(name, **options)
    view = Model.from_proto(model)
    with PassContext.isolated():
        pass_.apply(view)
    view.check()
    return Result(
        model=view.to_proto(), level=LEVEL_OF.get(pass_.info.numerics), why=why or str(pass_)
    )


def convert_opset(source: random.Random, model: onnx.ModelProto) -> Result:
    """To another opset, and in half of the cases back."""
    numerics = source.choice(("exact", "reassociating"))
    opset = source.choice(OPSETS)
    own = next((each.version for each in model.opset_import if not each.domain), 1)
    made = applied(model, "convert_opset", to=opset, numerics=numerics)
    why = made.why
    if source.random() < 0.5:
        made = applied(made.model, "convert_opset", to=own, numerics=numerics)
        why += f",{made.why}"
    if made.model == model:
        raise NotTried("nothing to convert")
    return Result(model=made.model, level=LEVEL_OF[Numerics(numerics)], why=why)


def legalize(source: random.Random, model: onnx.ModelProto) -> Result:
    """For a target that lacks some of the operators of the model.

    The class `approximate` computes integers in float where the target has no other kernel.
    """
    numerics = source.choice(CLASSES)
    refused = _some_operators(source, model)
    backend = _without(refused)
    view = Model.from_proto(model)
    with PassContext.isolated(backend=backend):
        get_pass("legalize", numerics=numerics).apply(view)
    view.check()
    why = f"legalize{{numerics={numerics}}} without {', '.join(refused)}"
    most = FLOAT_HOLDS if numerics == "approximate" else None
    return Result(model=view.to_proto(), level=LEVEL_OF[Numerics(numerics)], most=most, why=why)


def _some_operators(source: random.Random, model: onnx.ModelProto) -> list[str]:
    used = sorted({node.op_type for node in all_nodes(model) if not node.domain} - {"Constant"})
    if not used:
        raise NotTried("there are no operators of ONNX")
    return source.sample(used, min(len(used), source.randint(1, 6)))


def _without(refused: list[str]) -> Backend:
    table = {
        "api_version": 1,
        "name": "chip",
        "unlisted": "standard",
        "operators": {", ".join(refused): False},
    }
    return backend_of(table, "chip.toml", lambda name: {})


def targets(source: random.Random, model: onnx.ModelProto) -> Result:
    """The pipeline of a target, or of one that lacks some operators, at any level."""
    level = source.randint(1, 4)
    if source.random() < 0.3:
        refused = _some_operators(source, model)
        backend, why = _without(refused), f"-O{level} without {', '.join(refused)}"
    else:
        name = source.choice(TARGETS)
        backend, why = get_backend(name), f"-O{level} --backend {name}"
    made = tiered.optimize(model, backend=backend, opt_level=level)
    promised = _promised(backend, level)
    most = FLOAT_HOLDS if promised == APPROXIMATE else None
    return Result(model=made, level=promised, most=most, why=why)


def _promised(backend: Backend, level: int) -> int:
    """Return the level whose promise the pipeline of a target keeps.

    A target may need a pass that rounds otherwise at every level: a conversion to old opsets.
    """
    with PassContext.isolated(backend=backend, opt_level=level) as context:
        steps = pipeline_for(backend).plan(context)
    running = (step.pass_.info.numerics for step in steps if step.decision)
    return max(EXACT, *(LEVEL_OF.get(numerics, APPROXIMATE) for numerics in running))


MEMORY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("schedule", {}), ("schedule", {"objective": "depth"}), ("recompute", {}),
    ("split_by_budget", {"max_bytes": 1}), ("split_by_budget", {"max_bytes": 200}),
    ("split_by_budget", {"max_bytes": 20_000}), ("serialize_matmul", {"max_bytes": 64}),
    ("serialize_matmul", {"max_bytes": 2_000}), ("serialize_matmul_add", {"max_bytes": 64}),
    ("dense_to_sparse", {"threshold": 0.1}), ("add_checkpoints", {}),
)  # fmt: skip


def memory(source: random.Random, model: onnx.ModelProto) -> Result:
    """One of the passes that lower the peak of memory."""
    name, options = source.choice(MEMORY)
    return applied(model, name, **options)


def layouts(source: random.Random, model: onnx.ModelProto) -> Result:
    """Convolutions and pools of another layout."""
    wanted = {
        name: source.choice(("NHWC", "NCHW"))
        for name in ("Conv", "MaxPool", "AveragePool", "Resize")
    }
    return applied(model, "convert_layout", desired_layouts=wanted)


FUNCTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("inline", {}), ("inline", {"once": True}), ("lambda_lift", {}), ("fuse_ops", {}),
    ("fuse_ops", {"level": 2}), ("specialize_functions", {}), ("remove_unused_functions", {}),
    ("bake_parameters", {}), ("unbake", {}), ("move_subgraph_initializer", {}),
    ("partial_evaluate", {}), ("strip", {}), ("unique_name_for_nodes", {}),
)  # fmt: skip


def functions(source: random.Random, model: onnx.ModelProto) -> Result:
    """Passes that move nodes between graphs, one after the other."""
    why = []
    for name, options in source.sample(FUNCTIONS, source.randint(1, 4)):
        made = applied(model, name, **options)
        model = made.model
        why.append(made.why)
    return Result(model=model, why=",".join(why))


def int32(source: random.Random, model: onnx.ModelProto) -> Result:
    """Integers of 64 bits become those of 32."""
    return applied(model, "int64_to_int32")


def qonnx(source: random.Random, model: onnx.ModelProto) -> Result:
    """Q and DQ become Quant, and come back."""
    there = applied(model, "convert_qdq_to_qonnx")
    if there.model == model:
        raise NotTried("there are no Q and DQ to convert")
    return applied(there.model, "convert_qonnx_to_qdq")
