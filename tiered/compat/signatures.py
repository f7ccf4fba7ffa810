"""Functions whose parameters are made at run time: tiered reads options and operands from them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def with_parameters(
    function: Callable[..., Any],
    names: Iterable[str],
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Return a function that is inspected as one with other parameters.

    Args:
        function: it takes them, by place and by keyword.
        names: the parameters by place.
        options: the defaults of keyword-only parameters.
    """

    def taking(*values: Any, **given: Any) -> Any:
        return function(*values, **given)

    by_place, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, by_place) for name in names]
    for name, default in (options or {}).items():
        parameters.append(inspect.Parameter(name, keyword, default=default))
    taking.__doc__ = function.__doc__
    taking.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # of any function
    return taking
