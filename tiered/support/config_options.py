"""Config options: settings of a context that belong to no single pass, each with type and default.

`PassContext(config={"remarks.examples": 10})`; nested contexts overlay key by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tiered.support.errors import ConfigError, OptionError, did_you_mean
from tiered.support.typed_options import Option, Size

_OPTIONS: dict[str, Option] = {}


def register_config_option(name: str, kind: Any, default: Any, doc: str) -> Option:
    """Add a config option.

    Args:
        name: dotted, its subject first: "remarks.examples".
        kind: its type, as an annotation: int, Size, Literal["a", "b"], list[str].
        default: its value where no context sets it.
        doc: one line of help.

    Raises:
        ConfigError: the name is taken by another option.
    """
    option = Option(name, kind, default, doc)
    option.checked(default, "config")
    if _OPTIONS.setdefault(name, option) != option:
        raise ConfigError(f"config option {name!r} is registered already")
    return option


def config_options() -> Mapping[str, Option]:
    """Return all config options by name."""
    return MappingProxyType(dict(sorted(_OPTIONS.items())))


def checked_config(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as their options' types.

    Raises:
        ConfigError: an unknown name, or a value of the wrong type.
    """
    checked = {}
    for name, value in values.items():
        if name not in _OPTIONS:
            raise ConfigError(
                f"no config option {name!r}{did_you_mean(name, _OPTIONS)} "
                f"(there are {', '.join(sorted(_OPTIONS))})"
            )
        try:
            checked[name] = _OPTIONS[name].checked(value, "config")
        except OptionError as error:
            raise ConfigError(str(error)) from error
    return checked


register_config_option(
    "debug.check_view", bool, False, "prove the invariants of the view after each pass; slow"
)
register_config_option(
    "remarks.examples", int, 5, "how many nodes a remark names, of those that it counts"
)
register_config_option(
    "fixpoint.max_rounds", int, 8, "the limit of rounds of fixed points without max_rounds"
)
register_config_option(
    "provenance.metadata",
    bool,
    False,
    "write into the metadata of each node that passes made the names of those it was made from",
)
register_config_option(
    "memory.max", Size | None, None, "how much memory a run may take; by default all there is"
)
register_config_option("verify.seed", int, 0, "the seed of the inputs that verification makes")
register_config_option(
    "verify.bindings", int, 2, "how many sets of sizes verification tries for dynamic dims"
)
register_config_option(
    "verify.edge_values", bool, False, "verify on zeros, infinities, NaN and extremes as well"
)
register_config_option(
    "verify.default_session",
    bool,
    True,
    "run original and result once with onnxruntime's defaults, too, and report differences",
)
register_config_option(
    "verify.seconds",
    float,
    60.0,
    "how long verification lets the model open or run, and bisect and replay a pass, at a time",
)
register_config_option(
    "verify.memory", Size | None, None, "how much memory that may take; by default all there is"
)
