"""float_to_fp8 with the arguments of PopRT."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any, Final

import tiered
from tiered.support.errors import UsageError

TO_FLOAT8: Final = ("float_to_fp8", "FloatToFP8", "Float2FP8")
_FLOAT8: Final = ("format", "weight_format", "exponent", "weight_exponent")  # its fp8_params
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def float_to_fp8(
    fp8_params: str | Iterable[str | int] = (),
    skip_op_names: Iterable[str] = (),
    convert_model: str = "fp8",
    fp8_input_dict: Mapping[str, Any] | None = None,
    fp8_weight_dict: Mapping[str, Any] | None = None,
    skip_op: bool = True,
    **more: Any,
) -> tiered.Pass:
    """Return float_to_fp8, or fp8_weight if `convert_model` is that.

    As in PopRT both formats are F143, both scales are 1, and small weights are converted too.

    Args:
        fp8_params: the formats of data and weights, and the exponents of their scales, as a list or
            a string with commas. `exponent=None` and `weight_exponent=None` measure the scales.
        skip_op_names: the names of nodes that stay float.
        convert_model: fp8, or fp8_weight for weights only.
        fp8_input_dict, fp8_weight_dict: other exponents by the name of a node, each alone or after
            its format.
        skip_op: accepted, and without effect, if it is true.
        more: other options of float_to_fp8 and fp8_weight.

    Raises:
        UsageError: an argument that has no equivalent, or is of another kind.
    """
    if not skip_op:
        raise UsageError("float_to_fp8: skip_op=False has no equivalent")
    if isinstance(skip_op_names, str):
        raise UsageError(f"float_to_fp8 takes a list of names, not the string {skip_op_names!r}")
    if fp8_input_dict and convert_model == "fp8_weight":
        raise UsageError("float_to_fp8: fp8_input_dict is for data, and fp8_weight converts none")
    parameters = fp8_params.split(",") if isinstance(fp8_params, str) else list(fp8_params)
    if len(parameters) > len(_FLOAT8) or convert_model not in ("fp8", "fp8_weight"):
        raise UsageError(
            f"float_to_fp8 takes fp8_params as [{', '.join(_FLOAT8)}] and convert_model as fp8 or "
            f"fp8_weight, not {parameters} and {convert_model!r}"
        )
    found: dict[str, object] = dict(zip(_FLOAT8, ("F143", "F143", 0, 0), strict=True))
    found |= {name: _number(each) for name, each in zip(_FLOAT8, parameters, strict=False)}
    skipped = tuple(map(glob.escape, skip_op_names))
    data = _exponents(fp8_input_dict or {}, found["format"])
    weights = _exponents(fp8_weight_dict or {}, found["weight_format"])
    if convert_model == "fp8_weight":
        found = {"format": found["weight_format"], "exponent": found.get("weight_exponent")}
        found["exponents"] = weights
    else:
        found |= {"exponents": data, "weight_exponents": weights}
    name = "fp8_weight" if convert_model == "fp8_weight" else "float_to_fp8"
    if skipped:
        found["skip_nodes"] = skipped
    return tiered.get_pass(name).with_options(**{"min_elements": 0, **found, **more})


def _number(given: str | int) -> str | int:
    """Return an exponent that is written as a string as a number, others without spaces."""
    text = given.strip() if isinstance(given, str) else given
    return int(text) if isinstance(text, str) and _INTEGER.fullmatch(text) else text


def _exponents(by_node: Mapping[str, Any], known: object) -> tuple[str, ...]:
    """Return exponents by node as tiered's text; an entry is one, or a format and one.

    Raises:
        UsageError: an entry has another format, or no integer as exponent.
    """
    found = list[str]()
    for name, entry in by_node.items():
        parts = entry if isinstance(entry, list | tuple) else (entry,)
        *formats, exponent = parts or (None,)
        is_number = isinstance(exponent, Integral) and not isinstance(exponent, bool)
        if formats not in ([], [known]) or not is_number:
            raise UsageError(
                f"float_to_fp8: {name!r} has {entry!r}: expected an exponent, or "
                f"[{str(known)!r}, exponent]; all nodes have one format, that of fp8_params"
            )
        found.append(f"{glob.escape(name)}={exponent}")
    return tuple(found)
