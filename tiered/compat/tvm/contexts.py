"""`PassContext`, `PassInfo` and `Sequential` with TVM's arguments."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import tiered
from tiered.passes import Pass
from tiered.pipeline import Pipeline
from tiered.support.config_options import config_options
from tiered.support.errors import UsageError


class PassContext(tiered.PassContext):
    """`tiered.PassContext` with the argument names of TVM."""

    def __init__(
        self,
        opt_level: int | None = None,
        required_pass: Iterable[Pass | str] | None = None,
        disabled_pass: Iterable[Pass | str] | None = None,
        instruments: Iterable[object] | None = None,
        config: Mapping[str, Any] | None = None,
        trace: Any = None,
        **settings: Any,
    ) -> None:
        super().__init__(
            opt_level,
            required=() if required_pass is None else required_pass,
            disabled=() if disabled_pass is None else disabled_pass,
            instruments=() if instruments is None else instruments,
            config=config,
            trace=trace,
            **settings,
        )

    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """Return the config options with their types."""
        return {name: {"type": option.takes} for name, option in config_options().items()}


def build_config(
    opt_level: int | None = 2,
    required_pass: Iterable[Pass | str] | None = None,
    disabled_pass: Iterable[Pass | str] | None = None,
    trace: Any = None,
) -> PassContext:
    """Return a PassContext; deprecated in TVM too."""
    warnings.warn("build_config is deprecated: use PassContext", DeprecationWarning, stacklevel=2)
    return PassContext(opt_level, required_pass, disabled_pass, trace=trace)


def Sequential(
    passes: Iterable[Pass | str] | None = None,
    opt_level: int = 0,
    name: str = "sequential",
    required: Iterable[str] | None = None,
    traceable: bool = False,
) -> Pipeline:
    """Return a `tiered.Sequential`; `traceable` has no meaning here.

    Raises:
        UsageError: `required` is given; TVM does not resolve it either.
    """
    if required:
        raise UsageError("a Sequential requires nothing: put the passes first in its list")
    named = None if name == "sequential" else name
    return tiered.Sequential(passes or (), name=named, opt_level=opt_level)


class PassInfo(tiered.PassInfo):
    """`tiered.PassInfo`, made with TVM's order of arguments: level, name, required passes."""

    if TYPE_CHECKING:

        def __new__(
            cls,
            opt_level: int,
            name: str,
            required: Iterable[str] | None = None,
            traceable: bool = False,
        ) -> Self: ...

    else:

        def __new__(
            cls,
            opt_level: int,
            name: str,
            required: Iterable[str] | None = None,
            traceable: bool = False,
        ) -> tiered.PassInfo:
            """Return a `tiered.PassInfo`; `traceable` has no meaning here."""
            if type(opt_level) is not int or not isinstance(name, str) or type(required) is str:
                given = f"({opt_level!r}, {name!r}, {required!r})"
                raise UsageError(f"PassInfo takes a level, a name and a list of names, not {given}")
            return tiered.PassInfo(name, opt_level=opt_level, required=tuple(required or ()))
