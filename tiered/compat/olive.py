"""A pass of Olive that optimises with tiered.

Olive finds it by its package configuration; docs/ci.md has the entry. Olive is imported with this
module, so nothing else of tiered imports it.
"""

from __future__ import annotations

import os
from typing import Any, Final

from olive.hardware.accelerator import AcceleratorSpec
from olive.model import ONNXModelHandler
from olive.passes import Pass
from olive.passes.pass_config import BasePassConfig, PassConfigParam

from tiered.pipeline.optimize import optimize

OPTIONS: Final[dict[str, tuple[Any, Any, str]]] = {
    "opt_level": (int, 3, "The level of the passes, 0 to 4."),
    "backend": (str, None, "The target: a name that `tiered backends` lists, or a TOML file."),
    "passes": (str, None, "A pipeline instead of the target's: 'a,b{x=1},fix(c,d)'."),
    "disabled": (list[str], None, "Passes that do not run: names and globs."),
    "required": (list[str], None, "Passes that run whatever their level."),
    "dims": (dict[str, int], None, "Sizes of dynamic dims by name."),
    "verify": (str, "final", "Compare outputs: off, model, region, final or structure."),
}
"""The settings of `tiered.optimize` that a workflow may set: type, default and description."""


class TieredOptimization(Pass):  # type: ignore[misc]  # Olive has no types
    """Optimise a model with tiered; a result that computes something else is an error."""

    @classmethod
    def _default_config(cls, accelerator_spec: AcceleratorSpec) -> dict[str, PassConfigParam]:
        return {
            name: PassConfigParam(type_=kind, default_value=default, description=said)
            for name, (kind, default, said) in OPTIONS.items()
        }

    def _run_for_config(
        self, model: ONNXModelHandler, config: type[BasePassConfig], output_model_path: str
    ) -> ONNXModelHandler:
        """Optimise the file of a handler, and return a handler of the result.

        Raises:
            TieredError: as `tiered.optimize`.
        """
        target = output_model_path
        if not target.endswith(".onnx"):
            os.makedirs(target, exist_ok=True)
            target = os.path.join(target, os.path.basename(model.model_path))
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        given = {name: getattr(config, name) for name in OPTIONS}
        settings = {name: value for name, value in given.items() if value is not None}
        optimize(model.model_path, target, **settings)
        return ONNXModelHandler(model_path=target)
