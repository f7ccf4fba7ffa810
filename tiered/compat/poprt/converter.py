"""`poprt.Converter`: one call that converts a model, here by tiered's passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import onnx

import tiered
from tiered.compat.poprt.passes import Pass, PassManager, get_pass
from tiered.support.errors import UsageError, did_you_mean

_DEFAULTS: Final[dict[str, Any]] = {
    "input_shape": None,
    "convert_version": 11,
    "precision": "fp32",
    "checkpoints": None,
    "eightbitsio": False,
    "fp16_skip_op_types": None,
    "skip_passes": None,
    "used_passes": [],
    "check": False,
    "disable_fast_norm": False,
    "pack_args": None,
    "fp8_skip_op_names": None,
    "fp8_params": "F143,F143,0,0",
    "quantize": False,
    "enable_insert_remap": False,
    "enable_erf_gelu": False,
    "serialize_matmul": None,
    "serialize_matmul_add": None,
    "merge_matmul": None,
    "merge_matmul_add": None,
    "merge_moe": None,
    "remap_mode": "after_matmul",
    "max_tensor_size": -1,
    "infer_shape_ahead": False,
    "enable_avoid_overflow_patterns": False,
    "disable_progress_bar": False,
    "batch_size": None,
    "batch_axis": None,
    "remove_outputs": [],
    "fold_periodic_initializer": False,
    "enable_compress_pattern": False,
    "merge_if_with_same_cond": False,
    "logger": None,
}
"""The arguments of PopRT's converter."""

_ELSEWHERE: Final = {
    "quantize": "use tiered.quantize_model, or `tiered quantize`",
    "merge_matmul": "use get_pass('combine_parallel_dense')",
    "merge_matmul_add": "use get_pass('combine_parallel_dense')",
    "merge_moe": "no pass merges experts; get_pass('combine_parallel_dense') merges products",
    "fold_periodic_initializer": "no pass tiles a smaller initializer",
    "enable_compress_pattern": "MaskCompress is an operator of PopRT's target only",
    "merge_if_with_same_cond": "no pass merges two Ifs of one condition",
}
"""What is no step of a conversion here, and where it is."""

_PRECISIONS: Final = ("fp32", "fp16", "fp8", "fp8_weight")


class Converter:
    """Converts models as PopRT does: shapes, opset, optimisation, then what is asked for.

    Args:
        given: the arguments of PopRT's `Converter`. A model of a newer opset than
            `convert_version` is converted to it only if that is given. `disable_fast_norm`,
            `infer_shape_ahead`, `enable_avoid_overflow_patterns`, `disable_progress_bar` and
            `logger` are accepted, and without effect: types are always inferred, and what
            overflows in halves stays float.

    Raises:
        UsageError: an argument is unknown, or names something that another function does.
    """

    def __init__(self, **given: Any) -> None:
        for name in given:
            if name not in _DEFAULTS:
                hint = did_you_mean(name, _DEFAULTS)
                raise UsageError(f"Converter takes no argument {name!r}{hint}")
        for name, place in _ELSEWHERE.items():
            if given.get(name):
                raise UsageError(f"Converter does not take {name} here: {place}")
        self._lowers = "convert_version" in given
        self._settings = {**_DEFAULTS, **given}
        if self._settings["precision"] not in _PRECISIONS:
            wrong = self._settings["precision"]
            hint = did_you_mean(str(wrong), _PRECISIONS)
            raise UsageError(f"precision is one of {', '.join(_PRECISIONS)}, not {wrong!r}{hint}")

    def convert(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """Return the converted model; the given one stays.

        Raises:
            TargetError: a pass cannot do what it is asked for.
            VerificationError: `check` is set, and outputs differ.
        """
        made: onnx.ModelProto = PassManager(self._before(model)).run(model)
        skipped = _names(self._settings["skip_passes"])
        with tiered.PassContext(disabled=skipped):
            wanted = self._settings["used_passes"]
            made = PassManager(wanted).run(made) if wanted else tiered.optimize(made, opt_level=3)
            made = PassManager(self._after()).run(made)
        if self._settings["check"]:
            is_exact = self._settings["precision"] == "fp32"
            numerics = "reassociating" if is_exact else "approximate"
            get_pass("check_with_fake_data", model, numerics=numerics).run(made)
        return made

    def _before(self, model: onnx.ModelProto) -> list[Pass]:
        """Return the passes that set shapes, outputs and the opset."""
        have, passes = self._settings, list[Pass]()
        if have["remove_outputs"]:
            passes.append(get_pass("remove_outputs", list(have["remove_outputs"])))
        shape, batch, axis = have["input_shape"], have["batch_size"], have["batch_axis"]
        if shape or batch is not None:
            passes.append(get_pass("const_input_shape", shape or {}, batch, axis))
        version = next((each.version for each in model.opset_import if not each.domain), 0)
        wanted = have["convert_version"]
        if wanted is not None and (version < wanted or (self._lowers and version > wanted)):
            passes.append(get_pass("convert_opset", to=wanted))
        if have["pack_args"]:
            passes.append(get_pass("packed_transformer", have["pack_args"]))
        return passes

    def _after(self) -> list[Pass]:
        """Return the passes after optimisation."""
        have, passes = self._settings, list[Pass]()
        if have["max_tensor_size"] != -1:
            passes.append(get_pass("constant_folding", max_tensor_size=have["max_tensor_size"]))
        if have["enable_erf_gelu"]:
            passes.append(get_pass("erf_gelu_pattern"))
        for name in ("serialize_matmul", "serialize_matmul_add"):
            if have[name]:
                passes.append(get_pass(name, have[name]))
        if have["precision"] == "fp16":
            passes.append(get_pass("float_to_half", _names(have["fp16_skip_op_types"])))
        elif have["precision"] != "fp32":
            kept = _names(have["fp8_skip_op_names"])
            passes.append(get_pass("float_to_fp8", have["fp8_params"], kept, have["precision"]))
        if have["enable_insert_remap"]:
            passes.append(get_pass("auto_insert_remap", remap_mode=have["remap_mode"]))
        if have["checkpoints"]:
            passes.append(get_pass("add_checkpoints", _names(have["checkpoints"])))
        if have["eightbitsio"]:
            passes.append(get_pass("eight_bits_io"))
        return passes


def _names(given: str | Sequence[str] | Mapping[str, Any] | None) -> list[str]:
    """Return names: a list, or a string with commas."""
    listed: Iterable[str] = given.split(",") if isinstance(given, str) else given or ()
    return [each.strip() for each in listed if each.strip()]
