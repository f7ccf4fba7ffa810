"""Options of a command that are those of a pass: declared once, where the pass is.

    options: Annotated[PassOptions, OfPass("gradient", with_respect_to=Flags("--wrt"))]

Names, types, defaults and help are those of `PassInfo.options`; a command says only how an option
is typed, if not by its name, and which options it decides itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from tiered.cli.line.declaration import DeclaredParameter, Flags, declared_as
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.cli.effects import Effect
    from tiered.passes import Pass

_LIST: Final = tuple[str, ...]


class OfPass:
    """The options of a pass, in the annotation of a parameter of a command.

    Args:
        pass_name: the name of the pass.
        only: the options that the command takes; by default all.
        without: those that it does not take.
        when: what makes them count, for their help: "with --to".
        effects: options of it that have an effect only beside others.
        flags: how options are typed, where not as `--name`.
    """

    def __init__(
        self,
        pass_name: str,
        *,
        only: Collection[str] = (),
        without: Collection[str] = (),
        when: str = "",
        effects: Sequence[Effect] = (),
        **flags: Flags,
    ) -> None:
        self.EFFECTS = tuple(effects)
        self.pass_name = pass_name
        self.only = only
        self.without = without
        self.when = when
        self.flags = flags

    @cached_property
    def declared(self) -> tuple[DeclaredParameter, ...]:
        """The options as those of a command."""
        from tiered.passes.index.table import INDEX  # the registry would load what runs passes

        options = INDEX[self.pass_name].info.options
        known = {option.name for option in options}
        assert known.issuperset((*self.only, *self.without, *self.flags)), "the pass has them"
        taken = [option for option in options if option.name in (self.only or known)]
        return tuple(
            declared_as(
                option._replace(doc=self._help(option.doc, is_list=option.type == _LIST)),
                self.flags.get(option.name, Flags()),
            )._replace(within=self)
            for option in taken
            if option.name not in self.without
        )

    def _help(self, said: str, *, is_list: bool) -> str:
        """Return the help of an option as a sentence of the command line."""
        said = f"{self.when}: {said}" if self.when else said
        sentence = f"{said[:1].upper()}{said[1:]}".replace("`", "")
        return f"{sentence} Repeatable." if is_list else sentence

    def __call__(self, **values: Any) -> PassOptions:
        """Return the options of a command line."""
        return PassOptions(self, values)


class PassOptions(Record):
    """Values of options of a pass, as they were typed or by default.

    Attributes:
        of: the pass, and how its options are typed.
        values: by name of the option.
    """

    of: OfPass
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def given(self) -> dict[str, Any]:
        """The values that are not the defaults."""
        defaults = {each.name: each.option.default for each in self.of.declared}
        return {name: value for name, value in self.values.items() if value != defaults[name]}

    def pass_(self, name: str = "", **others: Any) -> Pass:
        """Return the pass with these options, or another one with those that it has, too.

        Args:
            name: the other pass.
            others: further options.

        Raises:
            OptionError: it has none of these names.
        """
        from tiered.pipeline import get_pass

        made = get_pass(name or self.of.pass_name)
        known = {option.name for option in made.info.options}
        given = {name: value for name, value in self.given.items() if name in known}
        return made.with_options(**given, **others)

    def words(self) -> Iterator[str]:
        """Yield the words that set the options which do not have their defaults."""
        given = self.given
        for each in self.of.declared:
            if each.name in given:
                yield from each.words(given[each.name])
