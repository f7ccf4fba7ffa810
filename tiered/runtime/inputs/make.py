"""Make inputs that a model accepts, from the model alone.

`make_inputs` reads the graph: indices stay inside their table, masks are ones, positions
count up, sizes are small, floats are normal. `feasible_inputs` also runs the model, and tries other
sizes until onnxruntime accepts them. Both return the rule that chose each input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tiered.graph.core.dim_names import check_named, check_sizes
from tiered.runtime.inputs.constraints import facts
from tiered.runtime.inputs.dims import (
    ALL_ONES,
    INTEGERS,
    Binder,
    DimSlot,
    candidates,
    tensor_slots,
)
from tiered.runtime.inputs.draw import Request, make_tensor
from tiered.runtime.inputs.graph_facts import Fact
from tiered.runtime.inputs.refused import learned_sizes, sizes_of_constants
from tiered.runtime.session import Runner, Session, as_proto
from tiered.support.errors import ModelError, RuntimeFailure, TimedOut

if TYPE_CHECKING:
    import onnx

    from tiered.graph import Graph
    from tiered.runtime.inputs.bound_model import BoundModel
    from tiered.runtime.session import ModelLike

_DEFAULT_RANK = 2  # of tensors of unknown rank
_MAX_TRIES = 40
_MOST_LEARNED = 40  # tries of sizes that are learned, beside the others
_MOST_ELEMENTS = 1 << 24  # of an input of sizes that are learned


@dataclass(frozen=True)
class Inputs:
    """Inputs for one run.

    Attributes:
        feeds: input name to value, as `Session.run` takes them.
        rules: input name to the rule that chose its values; "*" has the sizes that were tried.
        dims: the size that each symbolic dim was bound to; "x[0]" is an unnamed one.
        is_varied: whether floats have offsets, zeros and scales over decades.
    """

    feeds: dict[str, Any]
    rules: dict[str, str] = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)
    is_varied: bool = False


def make_inputs(
    model: ModelLike,
    *,
    seed: int = 0,
    binding: int = 0,
    special: bool = False,
    varied: bool = False,
    dims: Mapping[str, int] | None = None,
    defaults: Mapping[str, int] | None = None,
    rank: int = _DEFAULT_RANK,
    bound: BoundModel | None = None,
) -> Inputs:
    """Return inputs for all inputs that have no initializer, without running the model.

    The same arguments produce the same bytes, in any process.

    Args:
        model: a ModelProto, its bytes, or the path of a file (whose external data is not read).
        seed: of the random numbers.
        binding: which set of sizes the symbolic dims get; 0 and 1 differ wherever they can.
        special: mix ±0, ±Inf, NaN, denormals and extremes into floats, extremes into integers
            that nothing restricts.
        varied: floats have offsets, zeros, constant rows and scales over decades
            (`tiered.runtime.inputs.varied`), and indices their ends.
        dims: sizes to use instead, by the dim's name, place ("x[0]") or role ("batch", "seq",
            "past", "total", "height", ...).
        defaults: such sizes without effect where no input has the dim, or `dims` has it.
        rank: of tensors of unknown rank.
        bound: the view of the model, where inputs are made for it more than once.

    Raises:
        ModelError: an input has a type that cannot be made (sparse tensors, none at all).
        UsageError: no input has a dim of a name, place or role in `dims`, or a size is none.
    """
    check_sizes(dims or {})
    proto = as_proto(model)
    bound = bound or _bound(proto)
    required = _required(proto)
    binder = _binder(bound, binding, {**(defaults or {}), **(dims or {})}, rank)
    shapes: dict[str, tuple[int, ...]] = {
        value.name: binder.shape(tensor_slots(value.name, value.type.tensor_type, rank))
        for value in required
        if value.type.WhichOneof("value") == "tensor_type"
    }
    graph = bound.main(shapes)
    longest = min((d for s in shapes.values() for d in s[1:2] if d > 1), default=4)
    feeds: dict[str, Any] = {}
    rules: dict[str, str] = {}
    for value in required:
        maker = _Maker(value.name, graph, seed, binding, special, varied, longest, rank, binder)
        feeds[value.name], rules[value.name] = maker.make(value.type, value.name)
    check_named(dims or (), dict.fromkeys((*binder.roles, *binder.roles.values())))
    return Inputs(feeds, rules, dict(binder.sizes), varied)


def feasible_inputs(
    model: ModelLike,
    *,
    seed: int = 0,
    binding: int = 0,
    special: bool = False,
    varied: bool = False,
    dims: Mapping[str, int] | None = None,
    max_tries: int = _MAX_TRIES,
    session: Runner | None = None,
    bound: BoundModel | None = None,
) -> Inputs:
    """Return inputs that onnxruntime accepted; other sizes are tried if the first fail.

    `rules["*"]` has the sizes taken, and the number of tries.

    Args:
        model, seed, binding, special, varied, dims: as in `make_inputs`.
        max_tries: how many runs at most.
        session: the model as it is open, here or in a worker; else it is opened here.
        bound: the view of the model, as in `make_inputs`.

    Raises:
        RuntimeFailure: no candidate ran; the message has the first one's failure.
        TimedOut: a worker stopped the model, which takes too long.
        ModelError, UsageError: as in `make_inputs`.
    """
    proto = as_proto(model)
    bound = bound or _bound(proto)
    search = _SizeSearch(
        Session(model) if session is None else session,
        partial(
            make_inputs, proto, seed=seed, binding=binding, special=special, varied=varied,
            bound=bound,
        ),
        dict(dims or {}),
        max_tries,
        [info.type.tensor_type.shape.dim for info in proto.graph.input],
    )  # fmt: skip
    usual = _binder(bound, binding)
    free = [name for name, role in usual.roles.items() if role != "weights"]
    for candidate in candidates(dim_slots(proto), usual):
        found = None
        if candidate[0] == ALL_ONES:
            # Ones broadcast, and so prove little: sizes that are learned come first.
            found = search.learned(free) or search.of_constants(bound.main({}), free)
        found = found or search.tried(*candidate)
        if found is not None:
            return found
    first = search.first
    raise RuntimeFailure(
        f"found no inputs that the model accepts in {len(search.seen)} tries; give inputs of your "
        "own (--inputs, or inputs=[...] in Python) or sizes (--input-shape, input_shapes={...}); "
        f"the first failed with: {first}"
    ) from first


@dataclass
class _SizeSearch:
    """The search for sizes that a model accepts; each try is a run.

    Attributes:
        session: the model as it is open.
        make: makes inputs of given sizes.
        fixed: sizes that the caller gave.
        max_tries: how many runs at most.
        shapes: the declared dims of each input.
        seen: the shapes that were tried.
        failed: what was tried first, and failed: the sizes, and the message.
    """

    session: Runner
    make: Callable[..., Inputs]
    fixed: dict[str, int]
    max_tries: int
    shapes: Sequence[Sequence[onnx.TensorShapeProto.Dimension]]
    seen: list[dict[str, Any]] = field(default_factory=list)
    failed: list[tuple[dict[str, int], str]] = field(default_factory=list)
    first: RuntimeFailure | None = None

    def tried(self, what: str, sizes: Mapping[str, int], rank: int) -> Inputs | None:
        """Return inputs of some sizes, if the model accepts them; None if they were tried before.

        Raises:
            TimedOut: a worker stopped the model, which takes too long.
        """
        if len(self.seen) >= self.max_tries:
            return None
        sizes = {**sizes, **self.fixed}
        # The first try checks the names; an input of another rank has other places.
        inputs = self.make(dims=None if self.seen else self.fixed, defaults=sizes, rank=rank)
        shapes = {name: getattr(value, "shape", None) for name, value in inputs.feeds.items()}
        if shapes in self.seen:
            return None
        self.seen.append(shapes)
        try:
            self.session.run(inputs.feeds)
        except TimedOut:
            raise  # other sizes would time out too
        except RuntimeFailure as error:
            self.first = self.first or error
            self.failed.append((dict(inputs.dims), str(error)))
            return None
        tries = len(self.seen)
        inputs.rules["*"] = what if tries == 1 else f"{what} (accepted at try {tries})"
        return inputs

    def learned(self, free: Sequence[str]) -> Inputs | None:
        """Return inputs of sizes that the messages of failures name, if the model accepts some."""
        pending = [(message, dims, dict[str, int]()) for dims, message in self.failed[:1]]
        self.max_tries = max(self.max_tries, len(self.seen) + _MOST_LEARNED)
        while pending:
            message, dims, known = pending.pop(0)
            sizes_now = {name: dims[name] for name in free}
            for sizes in learned_sizes(message, sizes_now):
                chosen, count = {**known, **sizes}, len(self.failed)
                if self._elements(chosen) > _MOST_ELEMENTS:
                    continue  # a message about a product may be met by larger and larger dims
                what = f"{_said(chosen)}: learned from the runtime"
                found = self.tried(what, chosen, _DEFAULT_RANK)
                if found is not None:
                    return found
                more = [(text, tried, chosen) for tried, text in self.failed[count:]]
                pending += [each for each in more if each[0] != message]
        return None

    def _elements(self, sizes: Mapping[str, int]) -> int:
        """Return how many elements the largest input has, of dims with a size."""
        return max(
            (
                math.prod(dim.dim_value or sizes.get(dim.dim_param, 1) for dim in shape)
                for shape in self.shapes
            ),
            default=0,
        )

    def of_constants(self, graph: Graph, free: Sequence[str]) -> Inputs | None:
        """Return inputs of sizes that constants of the model have, if the model accepts some."""
        for sizes in sizes_of_constants(graph, free):
            found = self.tried(f"{_said(sizes)}: as constants have it", sizes, _DEFAULT_RANK)
            if found is not None:
                return found
        return None


def _said(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _bound(proto: onnx.ModelProto) -> BoundModel:
    from tiered.runtime.inputs.bound_model import BoundModel

    return BoundModel(proto)


def _required(proto: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs that have no initializer."""
    initialised = {i.name for i in proto.graph.initializer}
    initialised.update(i.values.name for i in proto.graph.sparse_initializer)
    return [i for i in proto.graph.input if i.name not in initialised]


def dim_slots(proto: onnx.ModelProto, rank: int = _DEFAULT_RANK) -> list[DimSlot]:
    """Return the dims of the required tensor inputs."""
    slots: list[DimSlot] = []
    for value in _required(proto):
        if value.type.WhichOneof("value") == "tensor_type":
            slots.extend(tensor_slots(value.name, value.type.tensor_type, rank))
    return slots


def _binder(
    bound: BoundModel,
    binding: int,
    dims: Mapping[str, int] | None = None,
    rank: int = _DEFAULT_RANK,
) -> Binder:
    """Return a binder that has bound all dims of the required tensor inputs."""
    binder = Binder(binding, dims or {}, bound.weight_dims)
    binder.bind(dim_slots(bound.proto, rank))
    return binder


@dataclass(frozen=True)
class _Maker:
    """Makes the value of one input, of whatever type it is."""

    input: str
    graph: Graph
    seed: int
    binding: int
    special: bool
    varied: bool
    longest: int
    rank: int
    binder: Binder

    def make(self, kind: onnx.TypeProto, key: str) -> tuple[Any, str]:
        """Return a value of the type and its rule; `key` names its stream of random numbers."""
        match kind.WhichOneof("value"):
            case "tensor_type":
                return self._tensor(kind.tensor_type, key)
            case "optional_type":
                value, rule = self.make(kind.optional_type.elem_type, key)
                return value, f"optional, present: {rule}"
            case "sequence_type":
                made = [self.make(kind.sequence_type.elem_type, f"{key}#{i}") for i in range(2)]
                return [value for value, _ in made], f"sequence of 2: {made[0][1]}"
            case "map_type":
                return self._map(kind.map_type, key)
            case other:
                raise ModelError(
                    f"cannot make a value for input {self.input!r}: its type is "
                    f"{other or 'not given'}; feed it yourself"
                )

    def _tensor(self, kind: onnx.TypeProto.Tensor, key: str) -> tuple[Any, str]:
        from onnx import TensorProto, helper

        is_string = kind.elem_type == TensorProto.STRING
        try:
            dtype = (
                np.dtype(object) if is_string else helper.tensor_dtype_to_np_dtype(kind.elem_type)
            )
        except KeyError as error:
            raise ModelError(
                f"cannot make a value for input {self.input!r}: unknown element type "
                f"{kind.elem_type}"
            ) from error
        is_float = dtype.kind in "fcV"
        known: list[Fact] = facts(self.graph, self.input, is_float=is_float)
        request = Request(
            name=key,
            dtype=dtype,
            shape=self._shape(kind),
            facts=tuple(known),
            seed=self.seed,
            binding=self.binding,
            special=self.special,
            longest=self.longest,
            varied=self.varied,
        )
        return make_tensor(request)

    def _shape(self, kind: onnx.TypeProto.Tensor) -> tuple[int, ...]:
        slots = tensor_slots(self.input, kind, self.rank)
        self.binder.bind([slot for slot in slots if slot.key not in self.binder.sizes])
        return self.binder.shape(slots)

    def _map(self, kind: onnx.TypeProto.Map, key: str) -> tuple[Any, str]:
        from onnx import TensorProto

        keys: list[Any] = ["a", "b"] if kind.key_type == TensorProto.STRING else [0, 1]
        values = [float(i + 1) for i in range(len(keys))]
        if kind.value_type.tensor_type.elem_type in INTEGERS:
            return {k: int(v) for k, v in zip(keys, values, strict=True)}, "map of two keys"
        if kind.value_type.tensor_type.elem_type == TensorProto.STRING:
            return {k: str(v) for k, v in zip(keys, values, strict=True)}, "map of two keys"
        return dict(zip(keys, values, strict=True)), "map of two keys"
