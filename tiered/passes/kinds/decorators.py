"""The decorators: from a function (or a class) to a Pass. They write to no global."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Unpack

from tiered.passes.conditions import Conditions, condition_of
from tiered.passes.interface.pass_info import LIVES, PassInfo
from tiered.passes.kinds.body import BODY, FUNCTION, Body
from tiered.passes.kinds.calling_pass import FunctionPass, ModulePass
from tiered.passes.kinds.declared import Declared, in_current_words, method_of
from tiered.passes.kinds.rewrite_pass import RewritePass
from tiered.rewriter import Pattern, Rule
from tiered.support.errors import UsageError
from tiered.support.loading import is_plain
from tiered.support.numerics import Numerics, Promise
from tiered.support.operator_name import operator_name
from tiered.support.typed_options import Option, checked_options, options_of

DEFAULT_MAP = "default"
"""The map of legalizations of a rule that names none."""

_POSITIONAL = 2
"""The positional arguments of a pass function: the graph or model, and the context."""

# Names that entries and pipeline text can contain.
_NAME = r"[A-Za-z_][\w.-]*"


def rewrite(
    pattern: Pattern, *, opt_level: int | None, **declared: Unpack[Declared]
) -> Callable[[Callable[..., Any]], RewritePass]:
    """Make a pass of a function that returns the replacement of a pattern.

    The function takes the graph, then the pattern's variables that it needs (and `node`, the
    anchor), and returns the new value or values, or a `Skip`. Its keyword-only parameters are the
    pass's options.

    Args:
        pattern: what to look for: `op.Relu(op.Relu(var.x))`.
        opt_level: the level from which on it runs; None is opt-in.
        declared: see `Declared`.

    Raises:
        UsageError: the pass does not fit together.
    """
    declared = in_current_words(declared)

    def decorate(function: Callable[..., Any]) -> RewritePass:
        info = info_of(function, "rewrite", opt_level, declared, pattern.mentioned)
        rule = Rule(info.name, pattern, function, _law(function, info.name) or str(pattern))
        if "matches" in declared:
            raise UsageError(f"{info.name}: a rule takes `matches` from its pattern")
        body = Body(rule, conditions_of(declared, info.name))
        return RewritePass(info=info, options=defaults_of(info), body=body)

    return decorate


def function_pass(
    *, opt_level: int | None, **declared: Unpack[Declared]
) -> Callable[[Callable[..., Any]], FunctionPass]:
    """Make a pass of a function `(graph, ctx, *, options)`, which is called with each graph.

    It edits the graph in place and returns None, or a `Skip`. A class with `transform_graph(graph,
    ctx)`, and `precondition` and `postcondition` of the same arguments if it likes, will do
    too: its constructor's parameters are the options, and each graph gets a new one.

    Args:
        opt_level: the level from which on it runs; None is opt-in.
        declared: see `Declared`.

    Raises:
        UsageError: the pass does not fit together.
    """
    declared = in_current_words(declared)

    def decorate(function: Callable[..., Any]) -> FunctionPass:
        return FunctionPass(**_made(function, "function", "transform_graph", opt_level, declared))

    return decorate


def module_pass(
    *, opt_level: int | None, **declared: Unpack[Declared]
) -> Callable[[Callable[..., Any]], ModulePass]:
    """Make a pass of a function `(model, ctx, *, options)`, which edits the whole model in place.

    A class with `transform_module(model, ctx)` will do too, as for `function_pass`.

    Args:
        opt_level: the level from which on it runs; None is opt-in.
        declared: see `Declared`.

    Raises:
        UsageError: the pass does not fit together.
    """
    declared = in_current_words(declared)

    def decorate(function: Callable[..., Any]) -> ModulePass:
        return ModulePass(**_made(function, "module", "transform_module", opt_level, declared))

    return decorate


def _made(
    function: Callable[..., Any],
    kind: str,
    method: str,
    opt_level: int | None,
    declared: Declared,
) -> dict[str, Any]:
    """Return the fields of a pass that calls a function, or this method of a class."""
    info = info_of(function, kind, opt_level, declared)
    return {
        "info": info,
        "options": defaults_of(info),
        "body": Body(
            _called(function, method, info.name),
            conditions_of(declared, info.name),
            matches_of(declared, info.name),
        ),
    }


# --- the info of a pass ----------------------------------------------------------------------


def conditions_of(declared: Declared, name: str) -> Conditions:
    """Return the declared conditions of a pass."""
    return Conditions(
        condition_of(declared.get("precondition"), "precondition", name),
        condition_of(declared.get("postcondition"), "postcondition", name),
    )


def matches_of(declared: Declared, name: str) -> tuple[str, ...]:
    """Return the operators that a pass declares to look for."""
    return _names(declared, "matches", name)


def defaults_of(info: PassInfo) -> dict[str, Any]:
    """Return the options of a pass with their defaults."""
    return checked_options(info.options, {}, info.name)


def info_of(
    function: Callable[..., Any],
    kind: str,
    opt_level: int | None,
    declared: Declared,
    operators: Iterable[tuple[str, str]] = (),
) -> PassInfo:
    """Return the info of a pass that is made of a function.

    Args:
        function: the function of the pass.
        kind: rewrite, function, module or proto.
        opt_level: the level from which on it runs; None is opt-in.
        declared: see `Declared`.
        operators: those of its pattern, as (domain, op type).

    Raises:
        UsageError: it does not fit together.
    """
    name = _name(function, declared.get("name"))
    promised = declared.get("numerics", Numerics.EXACT)
    limits = promised if isinstance(promised, Promise) else None
    info = PassInfo(
        name=name,
        opt_level=_level(opt_level, name),
        kind=kind,
        required=_names(declared, "required", name),
        followed_by=_names(declared, "followed_by", name),
        conflicts=_names(declared, "conflicts", name),
        makes=_names(declared, "makes", name),
        may_make=_names(declared, "may_make", name),
        touches=_touched(declared, name, operators),
        quantization=declared.get("quantization", ""),
        numerics=limits.numerics if limits else _numerics(promised, name),
        numerics_option=declared.get("numerics_option", ""),
        legalizes=_map_of(declared, kind, name),
        changes_interface=declared.get("changes_interface", False),
        interface_options=tuple(declared.get("interface_options", {}).items()),
        analysis=declared.get("analysis", False),
        source=_source(function, name),
        options=_options(function, kind, name),
        limits=limits,
        life=_life(declared, name),
        replacement=declared.get("replacement", ""),
    )
    if not info.is_in_own_file:
        prose = inspect.getdoc(function) or ""
        info = info._replace(prose=prose, law=_law(function, name))
    return _checked(info)


def _options(function: Callable[..., Any], kind: str, name: str) -> tuple[Option, ...]:
    try:
        return options_of(function, name)
    except (UsageError, ValueError):
        if kind != "proto":
            raise
        return ()  # a third-party function may have any signature


def _checked(info: PassInfo) -> PassInfo:
    by_level = info.opt_level is not None
    if by_level and (info.changes_interface or info.numerics is Numerics.LOSSY):
        what = "changes the interface" if info.changes_interface else "is lossy"
        raise UsageError(f"{info.name} {what}, so no level may imply it: opt_level=None")
    return info


def _name(function: Callable[..., Any], given: str | None) -> str:
    """Return the name that was given, or that of the function; of the class FuseThis, fuse_this."""
    if not callable(function):
        raise UsageError(f"a pass is made of a function or a class, not of {function!r}")
    name = str(given or getattr(function, "__name__", type(function).__name__))
    if isinstance(function, type) and not given:
        name = "".join(f"_{char.lower()}" if char.isupper() else char for char in name).strip("_")
    if not re.fullmatch(_NAME, name):
        raise UsageError(f"{name!r} is no name of a pass; give one with name=")
    return name


def _level(opt_level: int | None, name: str) -> int | None:
    if opt_level is None or (type(opt_level) is int and opt_level >= 0):
        return opt_level
    raise UsageError(f"{name}: opt_level takes an integer from 0, or None, not {opt_level!r}")


def _life(declared: Declared, name: str) -> str:
    given = declared.get("life", "stable")
    if given not in LIVES:
        raise UsageError(f"{name}: life is one of {', '.join(LIVES)}, not {given!r}")
    if bool(declared.get("replacement")) != (given == "deprecated"):
        raise UsageError(f"{name}: a deprecated pass has a replacement, and no other has one")
    return given


def _names(declared: Declared, key: str, name: str) -> tuple[str, ...]:
    given: Any = declared.get(key, ())
    if isinstance(given, str) or not all(isinstance(item, str) for item in given):
        raise UsageError(f"{name}: {key} takes a list of names, not {given!r}")
    return tuple(given)


def _map_of(declared: Declared, kind: str, name: str) -> str:
    """Return the map of legalizations that a rule belongs to; empty for any other pass."""
    given = declared.get("legalizes", False)
    if given and kind != "rewrite":
        raise UsageError(f"{name}: legalizes= is for rules, made with @rewrite")
    return DEFAULT_MAP if given is True else given or ""


def _touched(
    declared: Declared, name: str, operators: Iterable[tuple[str, str]]
) -> tuple[str, ...]:
    """Return the operators that a pass rewrites or moves."""
    found = {operator_name(domain, op_type) for domain, op_type in operators}
    found.update(_names(declared, "touches", name), _names(declared, "matches", name))
    found -= {FUNCTION, BODY}
    return ("*",) if "*" in found else tuple(sorted(found))


def _numerics(numerics: Promise | Numerics | str, name: str) -> Numerics:
    try:
        return Numerics(str(numerics))
    except ValueError:
        known = ", ".join(Numerics)
        raise UsageError(f"{name}: numerics is one of {known}, not {numerics!r}") from None


def _law(function: Callable[..., Any], name: str) -> str:
    """Return the first line of the file, if it is the file of this pass."""
    module = sys.modules.get(function.__module__)
    if _stem(getattr(module, "__file__", None) or "") != name:
        return ""
    law, _, _ = (getattr(module, "__doc__", None) or "").strip().partition("\n")
    return law


def _source(function: Callable[..., Any], name: str) -> str:
    """Return where a pass is written: its file, with the line where that holds other things too."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return getattr(sys.modules.get(function.__module__), "__file__", None) or ""
    path: str = code.co_filename
    return path if _stem(path) == name else f"{path}:{code.co_firstlineno}"


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _called(function: Callable[..., Any], method: str, name: str) -> Callable[..., Any]:
    """Return the function to call: the one given, or one that makes an instance and asks it."""
    if not isinstance(function, type):
        _check_positional(function, name)
        return function
    if not callable(getattr(function, method, None)):
        raise UsageError(f"{name}: the class of a pass has a method {method}(self, ..., ctx)")

    def body(subject: Any, ctx: Any, **options: Any) -> Any:
        instance = function(**options)
        conditions = Conditions(
            condition_of(method_of(instance, "precondition"), "precondition", name),
            condition_of(method_of(instance, "postcondition"), "postcondition", name),
        )
        return conditions.around(
            partial(getattr(instance, method), subject, ctx), subject, ctx, name
        )

    return body


def _check_positional(function: Callable[..., Any], name: str) -> None:
    if is_plain(function) and function.__code__.co_argcount == _POSITIONAL:
        return
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        raise UsageError(
            f"{name}: a pass function takes two arguments, the graph or model and the context, and "
            f"options by keyword ({error})"
        ) from error
