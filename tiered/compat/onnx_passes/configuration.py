"""The configuration of onnx-passes: a YAML, JSON or TOML file."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tiered.passes.interface.registry import registry
from tiered.support.errors import UsageError, did_you_mean
from tiered.support.toml_files import read_toml

_KEYS: Final = (
    "exhaustive", "imports", "logging", "onnxruntime", "passes", "reference", "verify",
)  # fmt: skip
_PROVIDER: Final = "CPUExecutionProvider"

_WITHOUT_EFFECT: Final[dict[str, dict[str, tuple[bool, ...]]]] = {
    "final_check": {
        "full_check": (False, True),
        "skip_opset_compatibility_check": (False,),
        "check_custom_domain": (False,),
    },
    "infer_shapes": {"check_type": (True,), "data_prop": (True,), "strict_mode": (False, True)},
}
"""Options of the passes of onnx-ir that are not options here, and the values that they may have.

The check is always full, and types that contradict each other are always an error.
"""


@dataclass(frozen=True)
class Configuration:
    """What the file says.

    Attributes:
        imports: modules to import, with passes of one's own.
        passes: names of passes and groups, before those of the arguments.
        exhaustive: whether they are repeated until nothing changes.
        verify: whether each pass is verified by its promise.
        tolerance: `rtol` and `atol` for the reference outputs, numpy's where one is missing; empty
            if they are equal.
        metrics: the ranges of metrics for the reference outputs, by name.
        reference_inputs, reference_outputs: files of arrays.
        verbose: whether the passes are printed.
        checkpoint: the folder for the model after each pass.
        all_values: whether the values of all nodes on the reference inputs are written.
        sections: options by the name of a pass.
    """

    imports: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    exhaustive: bool = False
    verify: bool = False
    tolerance: dict[str, float] = field(default_factory=dict)
    metrics: dict[str, tuple[float, float]] = field(default_factory=dict)
    reference_inputs: tuple[str, ...] = ()
    reference_outputs: tuple[str, ...] = ()
    verbose: bool = False
    checkpoint: str = ""
    all_values: bool = False
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)


def read_configuration(path: str) -> Configuration:
    """Return the configuration of a file.

    Raises:
        UsageError: it cannot be read, or says something unknown.
    """
    content = _content(path)
    imports = _listed(path, content, "imports")
    sections: dict[str, dict[str, Any]] = {}
    for key, given in content.items():
        if key in _KEYS:
            continue
        # What a module registers is known when it is imported.
        is_known = isinstance(key, str) and (registry.knows(key) or bool(imports))
        if not is_known or not isinstance(given, Mapping):
            known = f"expected {', '.join(_KEYS)}, or options of a pass"
            hint = did_you_mean(str(key), _KEYS)
            raise UsageError(f"{path}: {key!r} is unknown{hint}; {known}")
        sections[key] = _options(path, key, given)
    reference = _part(path, content, "reference", ("inp", "out"))
    logging = _part(path, content, "logging", ("checkpoint", "keep_intermediates", "verbose"))
    runtime = _part(path, content, "onnxruntime", ("full_context_dump", "providers"))
    _check_providers(path, runtime.get("providers") or [])
    verify = content.get("verify", False)
    limits = (
        {} if isinstance(verify, bool) else _part(path, content, "verify", ("metrics", "tolerance"))
    )
    tolerance = _part(path, limits, "tolerance", ("atol", "rtol"))
    for name, limit in tolerance.items():
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 0:
            raise UsageError(f"{path}: tolerance.{name} is a number from 0 on, not {limit!r}")
    checkpoint = logging.get("checkpoint") or logging.get("keep_intermediates") or ""
    if not isinstance(checkpoint, str):
        raise UsageError(f"{path}: the folder of logging is a string, not {checkpoint!r}")
    return Configuration(
        imports=imports,
        passes=_listed(path, content, "passes"),
        exhaustive=_flag(path, content, "exhaustive"),
        verify=bool(verify),
        tolerance={"rtol": 1e-5, "atol": 1e-8, **tolerance} if tolerance else {},
        metrics=_ranges(path, limits.get("metrics") or {}),
        reference_inputs=_listed(path, reference, "inp"),
        reference_outputs=_listed(path, reference, "out"),
        verbose=_flag(path, logging, "verbose"),
        checkpoint=checkpoint,
        all_values=_flag(path, runtime, "full_context_dump"),
        sections=sections,
    )


def _options(path: str, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a section, without those that have no effect here."""
    accepted: dict[str, tuple[bool, ...]] = {}
    for each in registry.resolve(name) if registry.knows(name) else ():
        accepted |= _WITHOUT_EFFECT.get(each, {})
    for option in accepted.keys() & given.keys():
        if given[option] not in accepted[option]:
            raise UsageError(f"{path}: {name}.{option} cannot be {given[option]!r} here")
    return {option: value for option, value in given.items() if option not in accepted}


def _check_providers(path: str, providers: object) -> None:
    """Raise if models are to run elsewhere than on the processor."""
    listed = providers if isinstance(providers, list) else [providers]
    for each in listed:
        name = each[0] if isinstance(each, list) and each else each
        if name != _PROVIDER:
            raise UsageError(f"{path}: onnxruntime.providers is {_PROVIDER} here, not {name!r}")


def _ranges(path: str, metrics: object) -> dict[str, tuple[float, float]]:
    """Return the ranges of metrics by name."""
    found: dict[str, tuple[float, float]] = {}
    for name, limits in metrics.items() if isinstance(metrics, Mapping) else [("metrics", metrics)]:
        match limits:
            case [int() | float() as low, int() | float() as high]:
                found[str(name)] = (float(low), float(high))
            case _:
                raise UsageError(f"{path}: verify.metrics has {name}: [lowest, highest]")
    return found


def _content(path: str) -> Mapping[Any, Any]:
    """Return the content of the file, by its suffix."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix == ".toml":
        return read_toml(path, UsageError)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    try:
        content = json.loads(text) if suffix == ".json" else _yaml().safe_load(text)
    except Exception as error:  # of the reader at hand
        raise UsageError(f"{path} is no {suffix.lstrip('.') or 'YAML'}: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise UsageError(f"{path} is no table of names, but {type(content).__name__}")
    return content


def _yaml() -> Any:
    try:
        return importlib.import_module("yaml")
    except ImportError as error:
        hint = "`pip install pyyaml`, or write JSON or TOML"
        raise UsageError(f"YAML needs PyYAML: {hint}") from error


def _part(
    path: str, content: Mapping[str, Any], name: str, known: tuple[str, ...]
) -> Mapping[str, Any]:
    """Return a table inside the content."""
    part = content.get(name) or {}
    if not isinstance(part, Mapping):
        raise UsageError(f"{path}: {name} is a table of {', '.join(known)}, not {part!r}")
    for key in part:
        if key not in known:
            raise UsageError(f"{path}: {name}.{key} is unknown{did_you_mean(key, known)}")
    return part


def _flag(path: str, content: Mapping[str, Any], name: str) -> bool:
    """Return a switch; one that is missing or null is off."""
    given = content.get(name)
    if given is not None and not isinstance(given, bool):
        raise UsageError(f"{path}: {name} is true or false, not {given!r}")
    return bool(given)


def _listed(path: str, content: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a list of texts; one text is a list of one."""
    given = content.get(name) or []
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise UsageError(f"{path}: {name} is a list of texts, not {given!r}")
    return tuple(listed)
