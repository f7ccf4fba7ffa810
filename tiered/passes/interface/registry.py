"""The registry: finds passes by name in folders, and loads each at its first use.

The file name is the pass name, so a name resolves to its file without importing any other. Other
packages add passes through the entry-point group `tiered.passes`, scripts through `register`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from types import ModuleType
from typing import Any, Final, Protocol

from tiered.passes.interface.pass_info import PassInfo, Runnable
from tiered.support.aliases import ALIASES, NO_EQUIVALENT, no_equivalent
from tiered.support.errors import RAISED, PassError, PassNotFoundError, UsageError, did_you_mean
from tiered.support.records import Record

PACKAGES = ("tiered.function_passes", "tiered.module_passes")
ENTRY_POINTS = "tiered.passes"
INDEX = "tiered.passes.index.table"


class Expected(Protocol):
    """The entry of a pass in the index."""

    @property
    def info(self) -> PassInfo:
        """The declarations of the pass."""
        ...

    def made(self) -> Runnable:
        """Return the pass."""
        ...


class _Entry(Record):
    """Where a pass is, for messages, and how to get it."""

    where: str
    load: Callable[[], Any]


def is_glob(name: str) -> bool:
    """Return whether a name is a glob."""
    return any(char in name for char in "*?[")


class Registry:
    """All passes that can be named; `tiered` has one, tests make their own.

    Args:
        packages: where the files of passes are.
        entry_points: the group of those of other packages.
        index: the module with the table INDEX of passes, so that their files load later.
    """

    def __init__(
        self,
        packages: Iterable[str] = PACKAGES,
        entry_points: str | None = ENTRY_POINTS,
        index: str | None = None,
    ) -> None:
        self._packages = tuple(packages)
        self._entry_points = entry_points
        self._registered: dict[str, _Entry] = {}
        self._files: dict[str, _Entry] | None = None
        self._plugins: dict[str, _Entry] | None = None
        self._loaded: dict[str, Runnable] = {}
        self._index = index
        self._later: dict[str, Runnable] = {}
        self._names_for: dict[str, tuple[str, ...]] = {}
        self.version = 0
        """How often passes were registered or removed."""
        self.groups: set[str] = set()
        """The names of the groups of all pipelines that were made."""

    # --- names ------------------------------------------------------------------------------------

    def names(self) -> tuple[str, ...]:
        """Return all names, sorted, without importing a pass.

        Raises:
            UsageError: two passes have the same name.
        """
        return tuple(sorted({**self._walked(), **self._plugged(), **self._registered}))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def resolve(self, name: str) -> tuple[str, ...]:
        """Return the canonical names of a name: itself, or those of an alias.

        Raises:
            PassNotFoundError: no pass and no alias has this name.
        """
        if name in self:
            return (name,)
        squashed = _squash(name)
        same = tuple(known for known in self.names() if _squash(known) == squashed)
        if same:
            return same
        targets = self._names_for.get(name) or _aliases().get(squashed, ())
        found = tuple(target for target in targets if target in self)
        if not found:
            raise self._not_found(name, targets)
        return found

    def expand(self, pattern: str) -> tuple[str, ...]:
        """Return the canonical names that match a glob, sorted.

        Raises:
            PassNotFoundError: no name matches.
        """
        found = tuple(name for name in self.names() if fnmatchcase(name, pattern))
        if not found:
            raise PassNotFoundError(f"no pass fits {pattern!r} ({self._count()})")
        return found

    # --- passes -----------------------------------------------------------------------------------

    def load(self, name: str) -> Runnable:
        """Return the pass of a name, or of an alias of one pass.

        Raises:
            PassNotFoundError: no pass has this name.
            PassError: its file cannot be imported.
            UsageError: the alias is one of several passes, or the file does not define its pass.
        """
        if (known := self._loaded.get(name)) is not None:
            return known
        canonical = self.resolve(name)
        if len(canonical) > 1:
            raise UsageError(f"{name!r} is an alias of {' and '.join(canonical)}; name one of them")
        entry = self._find(canonical[0])
        assert entry is not None, canonical
        return self._load(canonical[0], entry)

    def load_file(self, module: str, path: str) -> Runnable:
        """Return the pass of a file, without a look into folders; raises as `load`.

        Args:
            module: the file as a module: "tiered.function_passes.conv.fuse_bias_add".
            path: the file.
        """
        name = module.rpartition(".")[2]
        known = self._loaded.get(name)
        return known or self._load(name, _Entry(path, _attribute_of(module, name)))

    def named(self, name: str) -> Runnable:
        """Return the pass of a name; its file is loaded when it runs, if the index has it.

        Raises:
            as `load`.
        """
        known = self._loaded.get(name) or self._later.get(name)
        if known is None and name in self._expected:
            known = self._later[name] = self._expected[name].made()
        return self.load(name) if known is None else known

    def load_all(self) -> dict[str, Runnable]:
        """Return every pass by its canonical name."""
        return {name: self.load(name) for name in self.names()}

    def register(self, pass_: Runnable, *, replace: bool = False) -> Runnable:
        """Add a pass that no folder and no entry point has, and return it.

        Raises:
            UsageError: the name is taken (`replace=True` replaces a pass registered before).
        """
        name = pass_.info.name
        known = self._find(name)
        is_replaced = replace and name in self._registered
        if known is not None and not is_replaced and self._loaded.get(name) is not pass_:
            raise UsageError(f"there are two passes {name!r}: {known.where} and {_where(pass_)}")
        self.version += 1
        self._registered[name] = _Entry(_where(pass_), lambda: pass_)
        self._loaded[name] = pass_
        return pass_

    def register_later(self, name: str, where: str, load: Callable[[], Runnable]) -> None:
        """Add a pass that is made at its first use.

        Args:
            name: of the pass.
            where: its source, for messages.
            load: returns the pass.

        Raises:
            UsageError: the name is taken.
        """
        known = self._find(name)
        if known is not None:
            raise UsageError(f"there are two passes {name!r}: {known.where} and {where}")
        self.version += 1
        self._registered[name] = _Entry(where, load)

    def check_alias(self, alias: str, name: str) -> None:
        """Raise if a name cannot stand for a pass, which need not be there yet.

        Raises:
            UsageError: it is the name of another pass, which would run instead.
        """
        taken = [each for each in self.names() if _squash(each) == _squash(alias) and each != name]
        if taken:
            raise UsageError(f"{alias!r} cannot stand for {name!r}: there is a pass {taken[0]!r}")

    def add_to_alias(self, alias: str, name: str) -> None:
        """Let another name stand for a pass, beside those that it stands for already.

        Raises:
            UsageError: as `check_alias`.
        """
        self.check_alias(alias, name)
        names = self._names_for.get(alias, ())
        if name not in names:
            self._names_for[alias] = (*names, name)

    def is_own_alias(self, name: str) -> bool:
        """Return whether `add_to_alias` added a name."""
        return name in self._names_for

    def unregister(self, name: str) -> None:
        """Remove a pass that `register` or `register_later` added, and its aliases."""
        self.version += 1
        if self._registered.pop(name, None) is not None:
            self._loaded.pop(name, None)
            for alias, names in list(self._names_for.items()):
                left = tuple(other for other in names if other != name)
                self._names_for[alias] = left
                if not left:
                    del self._names_for[alias]

    def legalizations(self) -> tuple[str, ...]:
        """Return the names of the rules that legalize an operator, sorted."""
        own = (name for name, entry in self._expected.items() if entry.info.legalizes)
        others = {**self._plugged(), **self._registered}
        loaded = (name for name in others if self.named(name).info.legalizes)
        return tuple(sorted({*own, *loaded}))

    def dependencies(self, info: PassInfo) -> tuple[Runnable, ...]:
        """Return all passes which a pass requires, directly or not, in the order to run them.

        Raises:
            UsageError: cyclic `required`.
        """
        ordered: dict[str, Runnable] = {}
        self._depend(info, (info.name,), ordered)
        return tuple(ordered.values())

    def _depend(self, info: PassInfo, path: tuple[str, ...], ordered: dict[str, Runnable]) -> None:
        for name in info.required:
            needed = self.named(name)
            if needed.name in path:
                cycle = " -> ".join((*path[path.index(needed.name) :], needed.name))
                raise UsageError(f"cyclic `required`: {cycle}")
            if needed.name not in ordered:
                self._depend(needed.info, (*path, needed.name), ordered)
                ordered[needed.name] = needed

    def knows(self, name: str) -> bool:
        """Return whether a name, an alias included, is that of a pass."""
        try:
            return bool(self.resolve(name))
        except PassNotFoundError:
            return False

    def expects(self, name: str) -> bool:
        """Return whether the index has a pass of this name."""
        return name in self._expected

    @cached_property
    def _expected(self) -> Mapping[str, Expected]:
        """The index, by name."""
        if self._index is None:
            return {}
        found: Mapping[str, Expected] = importlib.import_module(self._index).INDEX
        return found

    # --- where passes are -------------------------------------------------------------------------

    def _find(self, name: str) -> _Entry | None:
        """Return where a canonical name is; entry points are asked last, as that is slow."""
        for known in (self._registered, self._walked()):
            if name in known:
                return known[name]
        return self._plugged().get(name)

    def _load(self, name: str, entry: _Entry) -> Runnable:
        try:
            found = entry.load()
        except UsageError:
            raise
        except RAISED as error:
            raise PassError(
                f"pass {name!r} cannot be loaded from {entry.where}: "
                f"{type(error).__name__}: {error}"
            ) from error
        info = getattr(found, "info", None)
        if not isinstance(info, PassInfo) or info.name != name:
            raise UsageError(f"{entry.where} does not define a pass {name!r}, as its name says")
        self._loaded[name] = found
        loaded: Runnable = found
        return loaded

    def _walked(self) -> Mapping[str, _Entry]:
        if self._files is None:
            files: dict[str, _Entry] = {}
            for package in self._packages:
                for module, path in _pass_files(package):
                    name = module.rpartition(".")[2]
                    _add(files, name, _Entry(path, _attribute_of(module, name)))
            self._files = files
        return self._files

    def _plugged(self) -> Mapping[str, _Entry]:
        if self._plugins is None:
            import importlib.metadata  # slow, and few names are not ours

            plugins: dict[str, _Entry] = {}
            for point in importlib.metadata.entry_points(group=self._entry_points or ""):
                where = f"entry point {point.value!r} of {point.dist.name if point.dist else '?'}"
                walked = self._walked().get(point.name)
                if walked is not None:
                    plugins[point.name] = walked
                _add(plugins, point.name, _Entry(where, point.load))
            self._plugins = plugins
        return self._plugins

    # --- messages ---------------------------------------------------------------------------------

    def _not_found(self, name: str, targets: tuple[str, ...]) -> PassNotFoundError:
        if targets:
            return PassNotFoundError(
                f"no pass named {name!r}: it is an alias of {' and '.join(targets)}, "
                f"which this tiered does not have ({self._count()})"
            )
        if name in NO_EQUIVALENT:
            return PassNotFoundError(no_equivalent(name))
        close = _closest(snake_case(name), self.names()) or did_you_mean(name, ALIASES, cutoff=0.8)
        return PassNotFoundError(f"no pass named {name!r}{close} ({self._count()})")

    def _count(self) -> str:
        return f"`tiered passes` lists all {len(self.names())}"


def _pass_files(package: str) -> Iterator[tuple[str, str]]:
    """Yield (module, path) of the pass files below a package; only its parents are imported."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield from _walk(package, folder)


def _walk(package: str, folder: str) -> Iterator[tuple[str, str]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            stem, extension = os.path.splitext(entry.name)
            if stem.startswith(("_", ".")):
                continue
            if entry.is_dir():
                yield from _walk(f"{package}.{entry.name}", entry.path)
            elif extension == ".py":
                yield f"{package}.{stem}", entry.path


def _attribute_of(module: str, name: str) -> Callable[[], Any]:
    def load() -> Any:
        imported: ModuleType = importlib.import_module(module)
        return getattr(imported, name, None)

    return load


_VERBS: Final = frozenset(
    {"convert", "decompose", "eliminate", "extract", "fold", "fuse", "hoist", "insert", "into",
     "layout", "legalize", "move", "nop", "normalize", "op", "ops", "pass", "remove", "replace",
     "sink", "to", "with"}
)  # fmt: skip
"""Words of many names, which do not tell passes apart."""


def _closest(name: str, names: Iterable[str]) -> str:
    """Return a suggestion for an unknown name: a similar name, or one with the same words.

    Two names with the same verb are similar as strings, but unrelated.
    """
    known = tuple(names)
    typed = did_you_mean(name, known, cutoff=0.8)
    words = set(name.split("_")) - _VERBS
    alike = [each for each in known if words and words <= set(each.split("_"))]
    return typed or did_you_mean(name, alike, cutoff=0.0)


def _add(known: dict[str, _Entry], name: str, entry: _Entry) -> None:
    if name in known:
        raise UsageError(f"there are two passes {name!r}: {known[name].where} and {entry.where}")
    known[name] = entry


def _where(pass_: Runnable) -> str:
    return pass_.info.source or "a script"


def _aliases() -> dict[str, tuple[str, ...]]:
    return {_squash(alias): targets for alias, targets in ALIASES.items()}


def _squash(name: str) -> str:
    """Return the common form of CamelCase, kebab-case and snake_case of a name."""
    return name.replace("_", "").replace("-", "").lower()


def snake_case(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).strip("_")


registry = Registry(index=INDEX)
