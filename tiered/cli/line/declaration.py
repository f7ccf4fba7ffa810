"""What a command declares: its arguments and options, as the function that implements it.

    def run(model: str, /, *, options: RunOptions) -> None: ...

Positional parameters are arguments. Keyword parameters are options; a `Record` among them has an
option for each of its fields. The name, the type, the default and the line of help of an option are
an `Option`, as those of a pass are; `Flags` in the annotation says the rest.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Annotated, Any, Final, Literal, NamedTuple

from tiered.support.records import Record
from tiered.support.typed_options import Option, documented

Completer = Callable[[str], Iterable[tuple[str, str]]]
"""Returns the candidates for a word that is begun, each with a description."""

REQUIRED: Final = inspect.Parameter.empty


class Flags:
    """How an option is typed, where that does not follow from its name and type.

    Args:
        names: as typed, the first one in messages; `--name` by default.
        off: what sets a switch to false; `--no-name` if it is true by default.
        alone: the value of the option without one: `--verify` is `--verify=each`.
        accepts: returns whether the next word is a value of such an option; else it has none.
        expected: what `accepts` takes, in words.
        splits: whether commas separate the entries of a list.
        completes: the candidates for its values.
        check: raises a `UsageError` for a wrong value, before the command is called.
        help: what `--help` says, for an option that several commands have.
    """

    def __init__(
        self,
        *names: str,
        off: str = "",
        alone: str = "",
        accepts: Callable[[str], bool] | None = None,
        expected: str = "",
        splits: bool = False,
        completes: Completer | None = None,
        check: Callable[[Any], None] | None = None,
        help: str = "",
    ) -> None:
        self.names = names
        self.off = off
        self.alone = alone
        self.accepts = accepts
        self.expected = expected
        self.splits = splits
        self.completes = completes
        self.check = check
        self.help = help


class DeclaredParameter(NamedTuple):
    """An argument or an option of a command.

    Attributes:
        option: name, type, default and help.
        flags: how it is typed.
        names: as typed; for an argument, what help calls it: MODEL.
        off: what sets it to false; "" for nothing.
        of: the parameter of the function that it is a field of; "" if it is one itself.
        within: the class of that parameter.
    """

    option: Option
    flags: Flags
    names: tuple[str, ...]
    off: str = ""
    of: str = ""
    within: Any = None

    @property
    def name(self) -> str:
        """The name of the parameter or field."""
        return self.option.name

    @property
    def key(self) -> str:
        """The name among all options of a command: that of a pass has its parameter before it."""
        return f"{self.of}.{self.name}" if self.of and not _is_group(self.within) else self.name

    @property
    def kind(self) -> Any:
        """The type of a value, without the None of an option that has none by default."""
        kind = self.option.type
        others = [each for each in typing.get_args(kind) if each is not types.NoneType]
        is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
        return others[0] if is_union and len(others) == 1 else kind

    @property
    def is_switch(self) -> bool:
        """Return whether it takes no value."""
        return self.kind is bool

    @property
    def is_list(self) -> bool:
        """Return whether it may be given several times."""
        return typing.get_origin(self.kind) is tuple

    @property
    def is_required(self) -> bool:
        """Return whether it has no default."""
        return self.option.default is REQUIRED

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it takes, if it takes only some."""
        return typing.get_args(self.kind) if typing.get_origin(self.kind) is Literal else ()

    def words(self, value: object) -> Iterator[str]:
        """Yield the words that set it to a value."""
        if isinstance(value, bool):
            yield self.names[0] if value else self.off
        elif isinstance(value, tuple):
            yield from (f"{self.names[0]}={each}" for each in value)
        else:
            yield f"{self.names[0]}={value}"


class DeclaredCommand(Record):
    """A command: what is typed to call it, and the function that it is."""

    name: str
    function: Callable[..., int | None]

    @cached_property
    def arguments(self) -> tuple[DeclaredParameter, ...]:
        """What is typed without a flag, in this order; the last one may take all that is left."""
        found = []
        for name, (kind, flags), default, where in self._parameters:
            if where is not inspect.Parameter.KEYWORD_ONLY:
                unset = () if where is inspect.Parameter.VAR_POSITIONAL else default
                shown = flags.names or (name.rstrip("_").upper(),)
                found.append(DeclaredParameter(Option(name, kind, unset), flags, shown))
        return tuple(found)

    @cached_property
    def takes_rest(self) -> bool:
        """Return whether the last argument takes all words that are left."""
        return any(each[-1] is inspect.Parameter.VAR_POSITIONAL for each in self._parameters)

    @cached_property
    def options(self) -> tuple[DeclaredParameter, ...]:
        """Its options, in the order in which they are declared."""
        found: list[DeclaredParameter] = []
        for name, (kind, flags), default, where in self._parameters:
            if where is not inspect.Parameter.KEYWORD_ONLY:
                continue
            if isinstance(flags, Flags) and not _is_group(kind):
                found.append(declared_as(Option(name, kind, default), flags))
            else:
                group = declared_in(kind) if isinstance(flags, Flags) else flags.declared
                found += [each._replace(of=name) for each in group]
        return tuple(found)

    @cached_property
    def groups(self) -> dict[str, Any]:
        """The classes of options by the parameter that takes one."""
        return {each.of: each.within for each in self.options if each.of}

    @cached_property
    def _parameters(self) -> tuple[tuple[str, tuple[Any, Any], Any, Any], ...]:
        hints = typing.get_type_hints(self.function, include_extras=True)
        return tuple(
            (each.name, _annotated(hints[each.name]), each.default, each.kind)
            for each in inspect.signature(self.function).parameters.values()
        )

    @property
    def doc(self) -> str:
        """The text of its help: the docstring of its file up to the examples."""
        return _document(self.function).partition("\nExamples:\n")[0].strip()

    @property
    def examples(self) -> tuple[str, ...]:
        """Command lines that call it."""
        _, _, below = _document(self.function).partition("\nExamples:\n")
        return tuple(line.strip() for line in below.partition("\n\n")[0].splitlines())

    def described(self) -> tuple[tuple[DeclaredParameter, ...], tuple[DeclaredParameter, ...]]:
        """Return its arguments and options with their lines of help, which the sources hold."""
        of_function = documented(self.function)
        of_groups = {
            of: _documented_fields(group) for of, group in self.groups.items() if _is_group(group)
        }

        def described(each: DeclaredParameter) -> DeclaredParameter:
            own = of_groups.get(each.of, of_function).get(each.name, "")
            said = own or each.option.doc or each.flags.help
            return each._replace(option=each.option._replace(doc=said))

        return tuple(map(described, self.arguments)), tuple(map(described, self.options))


def declared_in(group: type[Record]) -> Iterator[DeclaredParameter]:
    """Yield the options that a class declares as its fields."""
    for name, hint in typing.get_type_hints(group, include_extras=True).items():
        # A class variable may be written without its type.
        if typing.ClassVar in (hint, typing.get_origin(hint)) or name.startswith("_"):
            continue
        default = getattr(group, name, REQUIRED)
        kind, flags = _annotated(hint)
        yield declared_as(Option(name, kind, default), flags)._replace(within=group)


def words_of(options: Record, without: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the words that set the options which do not have their defaults.

    Args:
        options: an instance of a class of options.
        without: the names of options to leave out.
    """
    return tuple(
        word
        for each in declared_in(type(options))
        if each.name not in {*without} and getattr(options, each.name) != each.option.default
        for word in each.words(getattr(options, each.name))
    )


def declared_as(option: Option, flags: Flags) -> DeclaredParameter:
    """Return an option as it is typed."""
    long = f"--{option.name.rstrip('_').replace('_', '-')}"
    found = DeclaredParameter(option, flags, flags.names or (long,), flags.off)
    is_on = found.is_switch and option.default not in (False, None) and not flags.off
    return found._replace(off=f"--no-{found.names[0].removeprefix('--')}") if is_on else found


def _is_group(kind: Any) -> bool:
    """Return whether a type is a class of options."""
    return isinstance(kind, type) and issubclass(kind, Record)


def _annotated(hint: Any) -> tuple[Any, Any]:
    """Return a type, and what its annotation says: `Flags`, or an object with `declared`."""
    if typing.get_origin(hint) is not Annotated:
        return hint, Flags()
    kind, note = typing.get_args(hint)
    return kind, note


def _document(function: Callable[..., Any]) -> str:
    return inspect.cleandoc(sys.modules[function.__module__].__doc__ or "") + "\n"


def _documented_fields(group: type) -> dict[str, str]:
    """Return the texts below the fields of a class and of its bases."""
    found: dict[str, str] = {}
    for each in reversed(group.__mro__):
        file = getattr(sys.modules.get(each.__module__), "__file__", None)
        if file is None or not issubclass(each, Record) or each is Record:
            continue
        with open(file, encoding="utf-8") as source:
            statements = ast.parse(source.read()).body
        body = next(
            node.body for node in statements
            if isinstance(node, ast.ClassDef) and node.name == each.__name__
        )  # fmt: skip
        for field, text in itertools.pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                name = ast.unparse(field.target)
                found[name] = " ".join(str(ast.literal_eval(text.value)).split())
    return found
