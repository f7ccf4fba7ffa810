"""Rooms that change the inputs and outputs: names, orders, sizes, batches, packed rows."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx

from tests.analysis.batching.by_sample import assert_each_by_itself
from tests.analysis.batching.test_places import MADE
from tests.analysis.batching.test_random_models import RandomModel
from tests.conformance.rooms.room import NotTried, Refused, Result, sizes_of
from tests.conformance.rooms.same_outputs import applied
from tiered.support.errors import ShapeError


def renamed(source: random.Random, model: onnx.ModelProto) -> Result:
    """Inputs, outputs and inner tensors under other names."""
    shown = [info.name for info in (*model.graph.input, *model.graph.output)]
    inner = [name for node in model.graph.node for name in node.output if name]
    names = dict.fromkeys(source.sample(inner, min(3, len(inner))) + shown)
    there = {name: f"renamed/{at}" for at, name in enumerate(names)}
    back = {new: old for old, new in there.items()}
    made = applied(model, "rename", why="rename", tensors=there)
    return Result(
        model=made.model,
        inputs={new: back[new] for info in made.model.graph.input if (new := info.name) in back},
        outputs={new: back[new] for info in made.model.graph.output if (new := info.name) in back},
        why=str(there),
    )


def interface(source: random.Random, model: onnx.ModelProto) -> Result:
    """Orders, sizes and defaults of inputs and outputs."""
    inputs = [info.name for info in model.graph.input]
    outputs = [info.name for info in model.graph.output]
    source.shuffle(inputs)
    source.shuffle(outputs)
    sizes: dict[str, Any] = sizes_of(model)
    choices: list[tuple[str, dict[str, Any]]] = [
        ("reorder", {"inputs": inputs, "outputs": outputs}),
        ("drop_unused_inputs", {}),
        ("const_output_shape", {}),
        ("attribute_to_input", {}),
    ]
    if sizes:
        choices += [("const_input_shape", {"dim": sizes}), ("rename", {"dims": {
            name: f"{name}_new" for name in sizes}})]  # fmt: skip
    name, options = source.choice(choices)
    return applied(model, name, **options)


def batch_fault(seed: int) -> str:
    """Return which sample of a model for another batch differs from its own run; "" if none.

    Raises:
        Refused: an operator bakes the batch, and is named.
    """
    makers = (*MADE, lambda seed: RandomModel(seed, 1 + seed % 2).proto())
    proto = makers[min(seed % 12, len(MADE))](seed)
    batch = proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value
    size: int | str = "N" if seed % 5 < 3 else 2 * batch
    try:
        assert_each_by_itself(proto, size, label=f"seed {seed}", rtol=1e-4)
    except ShapeError as error:
        if str(error).startswith("change_batch: "):
            raise Refused(str(error)) from error
        return f"refused without a name: {error}"
    except AssertionError as error:
        return f"batch {batch} to {size}: {' '.join(str(error).split())[:300]}"
    return ""


def _next(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the next larger floats; other arrays as they are."""
    return np.nextafter(array, np.float32(np.inf)) if array.dtype == np.float32 else array


def packing_fault(seed: int) -> str:
    """Return which sequence of a packed encoder differs from a run of its own; "" if none.

    Raises:
        Refused: an operator mixes tokens, and is named.
        NotTried: the encoder does not run.
    """
    from tests.conformance.rooms.encoders import Encoder
    from tiered import Model, get_pass
    from tiered.extensions.packing import pack_sequences
    from tiered.runtime import Session
    from tiered.runtime.session import Reference
    from tiered.support.errors import ModelError, RuntimeFailure, UsageError

    made = Encoder(random.Random(seed))
    proto, sequences = made.proto(), made.sequences()
    try:
        single = Session(proto)
        alone = [single.run({k: v[None] for k, v in each.items()}) for each in sequences]
        near = [single.run({k: _next(v)[None] for k, v in each.items()}) for each in sequences]
        exact = Reference(proto)
        other = [exact.run({k: v[None] for k, v in each.items()}) for each in sequences]
    except RuntimeFailure as error:
        raise NotTried(str(error)) from error
    model = Model.from_proto(proto)
    try:
        get_pass("packed_transformer")(model)
    except (ModelError, UsageError) as error:
        raise Refused(str(error)) from error
    packed = Session(model.to_proto())
    row = max(len(next(iter(each.values()))) for each in sequences) + seed % 4
    batch = pack_sequences(sequences, row)
    found = packed.run(batch.feeds(packed.inputs))
    for name, array in found.items():
        is_pooled = name == "pooled"
        rows = array if is_pooled else batch.unpack(array)
        judged = enumerate(zip(alone, near, other, rows, strict=True))
        for at, (expected, beside, defined, actual) in judged:
            # Large scores make much of an ulp: as far as one of an input, or those of other
            # kernels, move the output.
            apart = [np.abs(each[name] - expected[name]) for each in (beside, defined)]
            within = 1e-5 + 4 * float(np.nanmax(apart, initial=0))
            if not np.allclose(actual, expected[name][0], rtol=1e-4, atol=within, equal_nan=True):
                worst = np.abs(actual - expected[name][0]).max()
                return f"sequence {at} of {len(sequences)}: {name} differs by {worst:.1e}"
    return ""
