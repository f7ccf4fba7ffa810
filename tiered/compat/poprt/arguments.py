"""The arguments of PopRT's passes, as options of tiered's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tiered.passes import Pass
from tiered.pipeline.named_passes import option_names
from tiered.support.amounts import counted
from tiered.support.errors import UsageError, did_you_mean

_OPTIONS: Final[dict[str, dict[str, str]]] = {
    "add_checkpoints": {"checkpoints": "tensors"},
    "const_batch_size": {"const_batch_size": "batch_size"},
    "const_input_shape": {"const_input_shape": "shape"},
    "float_to_half": {"skip_op_types": "skip_op_types"},
    "fold_constant": {"max_tensor_size": "max_tensor_size"},
    "packed_transformer": {"max_valid_num": "max_valid_num"},
    "rewrite_annotated_ops": {"sharding_info": "sharding", "pipelining_info": "pipelining"},
    "serialize_matmul": {"serialize_dict": "split"},
    "serialize_matmul_add": {"serialize_dict": "split"},
}
"""The options of a pass by PopRT's names for them, in the order of PopRT's arguments."""

_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    name: {"annotate": True} for name in ("shape_inference", "ShapeInference")
}
"""The options that PopRT's passes have set, by the names of PopRT."""

_ACCEPTED: Final[dict[str, dict[str, tuple[bool, ...]]]] = {
    "float_to_half": {"enable_avoid_overflow_patterns": (False, True)},
    "model_overview": {"use_print": (True,)},
}
"""Arguments without an effect, and the values that they may have.

What overflows in halves stays float in any case, and an overview is printed.
"""

_BY_NODE: Final = frozenset({"sharding", "pipelining", "split"})
"""Options that PopRT takes as a mapping by node: of its device, its stage, its parts."""

_DIMS: Final = {"output_channels": "columns", "input_channels": "rows", "reducing_dim": "inner"}
"""The dims of a product by PopART's names.

Source: graphcore/popart, willow/src/transforms/serializematmuls.cpp: a product of
[group, input channels, reducing dim] and [group, reducing dim, output channels].
"""


def options_of(
    pass_: Pass, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return options by their names here, with the defaults of PopRT.

    Raises:
        UsageError: there are more arguments than options, or two for one option.
    """
    own, accepted = _OPTIONS.get(pass_.name, {}), _ACCEPTED.get(pass_.name, {})
    for argument in accepted.keys() & kwargs.keys():
        if kwargs[argument] not in accepted[argument]:
            raise UsageError(f"{name}: {argument}={kwargs[argument]!r} has no equivalent")
    kwargs = {key: value for key, value in kwargs.items() if key not in accepted}
    pairs = list[tuple[str, Any]]()
    if args and isinstance(args[0], Mapping) and pass_.name == "packed_transformer":
        pairs, args = [*_packing(args[0]).items()], args[1:]
    order = list(own.values()) or option_names(pass_)
    if len(args) > len(order):
        raise UsageError(f"{name} takes {counted(len(order), 'argument')}, not {len(args)}")
    pairs += [*zip(order, args, strict=False), *kwargs.items()]
    given: dict[str, Any] = {}
    for key, value in pairs:
        option = own.get(key, key)
        if option in given:
            raise UsageError(f"{name}: {key!r} is given twice")
        given[option] = value
    for option in _BY_NODE & given.keys():
        if isinstance(given[option], Mapping):
            text = _split_entry if option == "split" else "{}={}".format
            given[option] = [text(node, each) for node, each in given[option].items()]
    if isinstance(given.get("remap_mode"), str):
        given["remap_mode"] = [given["remap_mode"]]
    return {**_DEFAULTS.get(name, {}), **given}


def _split_entry(node: object, value: object) -> str:
    """Return an entry of `serialize_dict` as tiered's text: `4/output_channels` is `4/columns`.

    `KEEP_PRECISION`, its third part, is for PopRT's target only.

    Raises:
        UsageError: it names no dim of PopRT.
    """
    first, *rest = str(value).split("/")
    dim = rest[0] if rest else ""
    if dim and dim not in _DIMS:
        raise UsageError(
            f"serialize_dict: {value!r} of {node!r} has no dim {dim!r}; expected a number of parts "
            f"and one of {', '.join(_DIMS)}, such as '4/{next(iter(_DIMS))}'"
        )
    return f"{node}={first}/{_DIMS[dim]}" if dim else f"{node}={first}"


_OF_KERNELS: Final = ("dynamic_groups", "head_pattern", "segment_max_size")
"""How PopRT unpacks rows for its kernels of attention and for the head."""


def _packing(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of packed_transformer; PopRT takes them as a dict.

    What tunes PopRT's kernels is accepted, and without effect: attention runs on whole rows under a
    mask, and the head is found.

    Raises:
        UsageError: there is no such entry.
    """
    known = ("inputs", "max_valid_num", *_OF_KERNELS)
    for name in args:
        if name not in known:
            raise UsageError(f"packed_transformer takes no {name!r}{did_you_mean(name, known)}")
    return {name: given for name, given in args.items() if name not in _OF_KERNELS}
