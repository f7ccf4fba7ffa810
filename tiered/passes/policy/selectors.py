"""Entries of `required` and `disabled`: the passes, places and nodes that each of them selects."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from tiered.passes.interface.pass_info import LIVES, PassInfo, Place, Runnable
from tiered.passes.interface.registry import is_glob, registry
from tiered.support.errors import PassNotFoundError, UsageError, did_you_mean
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.passes.interface.pass_info import Place
    from tiered.passes.policy.node_scope import Scope

_LIFE = "life:"

_TEXT = r"(?:(?P<group>.+)/)?(?P<name>[^/:]+)(?::(?P<occurrence>\d+))?"


class Site(Record):
    """The line of the user's program that set something."""

    file: str
    line: int

    def __str__(self) -> str:
        if not self.line:
            return self.file
        path = os.path.relpath(self.file)
        return f"{self.file if path.startswith('..') else path}:{self.line}"


SITE_NAME: Final = "__tiered_site__"
"""A module of tiered with this global counts as a place outside of it, of that name."""


def caller() -> Site:
    """Return the innermost line outside tiered, or a module with a `SITE_NAME`."""
    frame = sys._getframe(1)
    while True:
        module = frame.f_globals.get("__name__", "")
        if (name := frame.f_globals.get(SITE_NAME)) is not None:
            return Site(name, 0)
        outside = module != "tiered" and not module.startswith("tiered.")
        if outside or frame.f_back is None:
            return Site(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back


class Entry(Record):
    """One entry of `required` or `disabled`.

    Attributes:
        text: as it was given.
        names: the canonical names; for a glob, empty.
        pattern: the glob, or "".
        occurrence: which of its places in the pipeline, from 1; 0 for all.
        group: the named group that it must be in, as a glob of the groups' path; "" for anywhere.
        scope: the nodes that it selects; None for all.
        exact: the text of the only pass that it selects, with options and scope; "" for any.
        site: where it was set.
    """

    text: str
    names: frozenset[str]
    pattern: str = ""
    occurrence: int = 0
    group: str = ""
    scope: Scope | None = None
    exact: str = ""
    site: Site = Site("", 0)

    def selects(self, pass_: Runnable, place: Place) -> bool:
        """Return whether the entry selects a pass at a place, for all nodes or for some."""
        info = pass_.info
        if not self._names(info) or (self.exact and self.exact != pass_.text):
            return False
        if self.scope is not None and not info.is_node_wise:
            return False
        if self.occurrence and self.occurrence != place.occurrence:
            return False
        return not self.group or _is_inside(place.groups, self.group)

    def _names(self, info: PassInfo) -> bool:
        if not self.pattern:
            return info.name in self.names
        # A glob selects passes only: `fuse_*` does not select a pipeline named fuse_all.
        return info.kind != "pipeline" and fnmatchcase(info.name, self.pattern)

    @property
    def key(self) -> tuple[object, ...]:
        """The key of an entry: equal for entries that select the same."""
        return self.names, self.pattern, self.occurrence, self.group, self.scope, self.exact

    def __str__(self) -> str:
        return f"{self.text!r}, set at {self.site}"


def _is_inside(groups: tuple[str, ...], wanted: str) -> bool:
    steps = wanted.split("/")
    for start in range(len(groups) - len(steps) + 1):
        if all(map(fnmatchcase, groups[start:], steps)):
            return True
    return False


def entries_of(given: Iterable[Runnable | str], argument: str, site: Site) -> tuple[Entry, ...]:
    """Return the entries of `required` or `disabled`, all names checked.

    Raises:
        UsageError: it is a string, or holds something that is neither a name nor a pass.
        PassNotFoundError: an unknown name, or a glob that fits no pass.
    """
    if isinstance(given, str):
        raise UsageError(f"{argument} takes a list of passes, not a string: [{given!r}]")
    if hasattr(given, "info") or not hasattr(given, "__iter__"):
        raise UsageError(f"{argument} takes a list of passes, not {given!r}")
    return tuple(_entry(item, argument, site) for item in given)


def _entry(item: Runnable | str, argument: str, site: Site) -> Entry:
    if isinstance(item, str):
        return _entry_of_text(item, argument, site)
    info = getattr(item, "info", None)
    if not isinstance(info, PassInfo):
        raise UsageError(f"{argument} takes names and passes, not {item!r}")
    text = str(item)
    is_group = info.kind == "pipeline" and info.name not in ANONYMOUS
    if text == info.name or is_group:
        return Entry(info.name, frozenset({info.name}), site=site)
    return Entry(text, frozenset({info.name}), exact=text, site=site)


ANONYMOUS = ("sequential", "fix")
"""The names of pipelines without a name; entries cannot select them."""


def _entry_of_text(text: str, argument: str, site: Site) -> Entry:
    head, at, scope_text = text.partition("@")
    if head.startswith(_LIFE):
        return Entry(text, _names_by_life(text), site=site)
    if "{" in head:
        edit = f', and the options by edits=["set {head.strip()}"]'
        raise UsageError(
            f"{argument}: {text!r} has options; expected the name {head.partition('{')[0]!r}"
            f"{edit if argument == 'required' else ''}"
        )
    match = re.fullmatch(_TEXT, head.strip())
    if match is None:
        raise UsageError(
            f"{argument}: {text!r} is no entry; expected a name or glob, such as 'fold_constant', "
            "'fuse_*', 'fold_constant:2', 'cleanup/fold_constant', \"fuse_gelu@'/encoder/**'\""
        )
    name, scope = match["name"], _scope_of(_unquoted(scope_text)) if at else None
    glob = is_glob(name)
    names = registry.expand(name) if glob else _resolved(name, text)
    if scope is not None and not glob:
        _check_scoped(names, text, argument)
    return Entry(
        text=text,
        names=frozenset() if glob else frozenset(names),
        pattern=name if glob else "",
        occurrence=int(match["occurrence"] or 0),
        group=match["group"] or "",
        scope=scope,
        site=site,
    )


def _names_by_life(text: str) -> frozenset[str]:
    """Return the passes of an entry `life:preview`.

    Raises:
        UsageError: there is no such stage.
        PassNotFoundError: no pass is in it.
    """
    wanted = text.removeprefix(_LIFE)
    if wanted not in LIVES:
        raise UsageError(f"{text!r}: expected {' or '.join(_LIFE + life for life in LIVES)}")
    found = passes_by_life(wanted)
    if not found:
        raise PassNotFoundError(f"{text!r} fits no pass: none is {wanted}")
    return frozenset(found)


def passes_by_life(wanted: str) -> tuple[str, ...]:
    """Return the names of the passes in a stage of their life, sorted."""
    return tuple(name for name in registry.names() if registry.named(name).info.life == wanted)


def _resolved(name: str, text: str) -> tuple[str, ...]:
    """Return the canonical names of a name; a group of a pipeline has no other.

    Raises:
        PassNotFoundError: no pass, no alias and no group has this name.
    """
    try:
        return registry.resolve(name)
    except PassNotFoundError as error:
        if name in registry.groups:
            return (name,)
        if name == text and not did_you_mean(name, registry.names()):
            error.add_note(
                f"a group {name!r} is known once its pipeline is made; {name + '/*'!r} means what "
                "is in it at any time"
            )
        raise


def _check_scoped(names: Iterable[str], text: str, argument: str) -> None:
    for name in names:
        if name in registry.groups and name not in registry:
            raise UsageError(f"{argument}: {text!r} has a scope, but {name} is a group")
        info = registry.named(name).info
        if not info.is_node_wise:
            raise UsageError(
                f"{argument}: {text!r} has a scope, but {name} is a {info.kind} pass; only rewrite "
                "and function passes can be bound to a part of a model"
            )


def _scope_of(text: str) -> Scope:
    from tiered.passes.policy.node_scope import Scope  # few entries have one

    return Scope.of(text)


def _unquoted(text: str) -> str:
    text = text.strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def check_disjoint(required: Iterable[Entry], disabled: Iterable[Entry]) -> None:
    """Check that no exact name is in both.

    Raises:
        UsageError: one is.
    """
    forbidden = {entry.key: entry for entry in disabled if not entry.pattern}
    for entry in required:
        other = forbidden.get(entry.key)
        if other is not None:
            raise UsageError(
                f"{entry.text!r} is required and {other.text!r} disabled in the same context: "
                f"both mean {' and '.join(sorted(entry.names))}"
            )
