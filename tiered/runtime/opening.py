"""How onnxruntime opens a model: the settings of its sessions."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from tiered.support.errors import RuntimeFailure, UsageError, did_you_mean

CPU: Final = "CPUExecutionProvider"
_SUFFIX: Final = "ExecutionProvider"
_FOLDER: Final = "session.model_external_initializers_file_folder_path"
_UNPACKED: Final = "session.disable_prepacking"
_ASSIGNMENT: Final = "session.record_ep_graph_assignment_info"

RuntimeLevel = Literal["off", "basic", "extended", "all"]
"""Which optimisations of its own onnxruntime makes; "all" includes those of the layout."""

Clock = Literal["wall", "processor"]
"""Which time of a run counts: all that passes, or that of the processor for the thread that runs
the model."""

RUNTIME_LEVELS: Final[tuple[RuntimeLevel, ...]] = get_args(RuntimeLevel)
_ASSIGNED: Final = "get_provider_graph_assignment_info"
"""The method of a session that says which provider takes each node; old releases lack it."""
_BY_LEVEL: Final = {
    "off": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}


@dataclass(frozen=True)
class Opening:
    """How a model is opened where its latency is measured.

    Attributes:
        level: onnxruntime's own optimisations.
        threads: that a node may use; 0 leaves the number to onnxruntime.
        provider: an execution provider, by its full name; nodes that it does not take run on the
            CPU.
        profile: a folder for onnxruntime's profile of the runs, or "": it takes time.
        executed: a file for the graph after onnxruntime's own optimisations, or "".
    """

    level: RuntimeLevel = "all"
    threads: int = 1
    provider: str = CPU
    profile: str = ""
    executed: str = ""


Setting = Literal["reproducible", "unoptimised", "default"] | Opening
"""How onnxruntime opens a model: "reproducible" as in `Session`; "unoptimised" with its own
threads and packed constants, but without its optimisations; "default" as people open it; an
`Opening` names its level, threads and provider."""


def plain_setting(setting: Setting) -> str | dict[str, Any]:
    """Return a setting in JSON types, as requests to a worker have it."""
    return dataclasses.asdict(setting) if isinstance(setting, Opening) else setting


def setting_of(plain: Any) -> Setting:
    """Return the setting that `plain_setting` wrote."""
    found: Setting = Opening(**plain) if isinstance(plain, dict) else plain
    return found


def session_options(ort: Any, setting: Setting, threads: int, folder: str) -> Any:
    """Return the options of a session.

    Args:
        ort: the module onnxruntime.
        setting: how to open.
        threads: the intra-op threads of the setting "reproducible".
        folder: where the external data is of a model that is no file.
    """
    options, levels = ort.SessionOptions(), ort.GraphOptimizationLevel
    options.log_severity_level = 4
    if isinstance(setting, Opening):
        options.graph_optimization_level = getattr(levels, _BY_LEVEL[setting.level])
        options.intra_op_num_threads = setting.threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry(_ASSIGNMENT, "1")
        _watch(options, setting)
    elif setting != "default":
        options.graph_optimization_level = levels.ORT_DISABLE_ALL
    if setting == "reproducible":
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.use_deterministic_compute = True
        options.add_session_config_entry(_UNPACKED, "1")
    if folder:
        options.add_session_config_entry(_FOLDER, folder)
    return options


def _watch(options: Any, opening: Opening) -> None:
    """Let a session write what it does."""
    if opening.profile:
        options.enable_profiling = True
        options.profile_file_prefix = os.path.join(opening.profile, "profile")
    if opening.executed:
        options.optimized_model_filepath = opening.executed


def provider_of(setting: Setting) -> str:
    """Return the execution provider of a setting."""
    return setting.provider if isinstance(setting, Opening) else CPU


def check_provider(found: list[str], setting: Setting, label: str) -> None:
    """Check that a session has the provider of its setting: onnxruntime may leave it out.

    Raises:
        RuntimeFailure: it has another one.
    """
    wanted = provider_of(setting)
    if wanted not in found:
        raise RuntimeFailure(
            f"onnxruntime opens {label} without {wanted}: it cannot load the provider, and would "
            f"use {', '.join(found)}; install its libraries, or choose another provider"
        )


def nodes_by_provider(session: Any, setting: Setting, label: str) -> dict[str, int]:
    """Return how many nodes each provider takes; empty where onnxruntime does not say.

    Raises:
        RuntimeFailure: the provider of the setting takes no node.
    """
    if not isinstance(setting, Opening) or not hasattr(session, _ASSIGNED):
        return {}
    found: dict[str, int] = {}
    for part in getattr(session, _ASSIGNED)():
        found[part.ep_name] = found.get(part.ep_name, 0) + len(part.get_nodes())
    if found and not found.get(setting.provider):
        taken = ", ".join(f"{name} takes {count}" for name, count in found.items())
        raise RuntimeFailure(
            f"{setting.provider} takes no node of {label}: {taken}; choose another provider"
        )
    return found


def installed_provider(name: str) -> str:
    """Return the full name of an installed execution provider: `cuda` is CUDAExecutionProvider.

    Raises:
        UsageError: onnxruntime has no such provider.
    """
    import onnxruntime

    installed: list[str] = list(onnxruntime.get_available_providers())
    short = {each.removesuffix(_SUFFIX).lower(): each for each in installed}
    found = short.get(name.lower().removesuffix(_SUFFIX.lower()))
    if found is not None:
        return found
    close = did_you_mean(name.lower(), short) or did_you_mean(name, installed)
    raise UsageError(
        f"onnxruntime has no provider {name!r} here{close} (installed: {', '.join(installed)})"
    )
