"""Pipeline: the base of Sequential and Fixpoint: members, plan, edits and text."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from tiered.context import PassContext
from tiered.passes import Pass, PassInfo
from tiered.passes.decisions import Decisions
from tiered.passes.interface.pass_info import Decision, Place
from tiered.passes.interface.registry import registry
from tiered.support.errors import PassNotFoundError, UsageError, did_you_mean
from tiered.support.loading import LoadedLater
from tiered.support.numerics import Numerics
from tiered.support.records import Record
from tiered.support.typed_options import Option, checked_options

if TYPE_CHECKING:
    from tiered.passes import PassLike

_NAME = r"[A-Za-z_][\w.-]*"
_CLASSES = list(Numerics)


class PipelineStep(Record):
    """One pass of a pipeline: its place, and the decision about it."""

    pass_: Pass
    place: Place
    decision: Decision


class Pipeline(Pass):
    """Passes in order, as a value.

    The edits return a new pipeline. They name a pass by any of its names, or by its place
    (`fold_constant:2`), and reach into groups; without a place they act on all its occurrences.
    """

    passes: tuple[Pass, ...]
    group: str
    """The given name, or ""."""

    def _fill(
        self,
        made: tuple[Pass, ...],
        group: str | None,
        unnamed: str,
        options: Sequence[Option],
        given: Mapping[str, Any],
    ) -> None:
        """Set all fields; for the constructors, which pass the name of an unnamed pipeline."""
        name = _checked_name(group)
        if name:
            registry.groups.add(name)
        values = checked_options(options, given, name or unnamed)
        info = PassInfo(
            name=name or unnamed,
            opt_level=values["opt_level"],
            kind="pipeline",
            numerics=max((p.info.numerics for p in made), key=_CLASSES.index, default=_CLASSES[0]),
            changes_interface=any(p.info.changes_interface for p in made),
            options=tuple(options),
        )
        super().__init__(info=info, options=values)
        vars(self).update(passes=made, group=name)

    @abstractmethod
    def _made_of(self, passes: Iterable[PassLike], **options: Any) -> Self:
        """Return a pipeline of the same kind and name, with other passes and options."""

    def with_options(self, **options: Any) -> Self:
        """Return the same pipeline with other options; those not given stay.

        Raises:
            OptionError: an unknown option, or a value of the wrong type.
        """
        checked = checked_options(self.info.options, {**self.options, **options}, self.name)
        return self._made_of(self.passes, **checked)

    def on(self, scope: Any) -> Self:
        """Return the pipeline with each of its passes bound to a part of a model."""
        return self._made_of([p.on(scope) for p in self.passes], **self.options)

    # --- contents ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Pass]:
        return iter(self.passes)

    def __len__(self) -> int:
        return len(self.passes)

    def leaves(self) -> Iterator[Pass]:
        """Yield the passes of all groups in order."""
        for pass_ in self.passes:
            if isinstance(pass_, Pipeline):
                yield from pass_.leaves()
            else:
                yield pass_

    @property
    def parks(self) -> bool | None:
        """Whether opt-in passes run here only if required; None: as in the pipeline around it."""
        return None

    @property
    def digest(self) -> str:
        """The sha256 of the text: equal for equal pipelines, in every process."""
        import hashlib  # with OpenSSL, which few runs need

        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def plans(self) -> dict[object, Decisions]:
        """The decisions of earlier calls, by the settings that they depend on."""
        return {}

    @cached_property
    def _named(self) -> tuple[tuple[Pass, list[str]], ...]:
        """Each pass with the names that it puts into the pipeline."""
        return tuple((pass_, names_in(pass_)) for pass_ in self.passes)

    def places(self, place: Place) -> Iterator[tuple[Pass, Place]]:
        """Yield each pass with its place; the pipeline itself is at `place`."""
        earlier = dict(place.earlier)
        groups = (*place.groups, self.group) if self.group else place.groups
        parks = self.parks
        asked = place.asked and not parks
        parks = place.parks if parks is None else parks
        for pass_, names in self._named:
            yield (
                pass_,
                Place(
                    occurrence=0 if place.needed_by else earlier.get(names[0], 0) + 1,
                    earlier=dict(earlier) if len(names) > 1 else {},
                    groups=groups,
                    needed_by=place.needed_by,
                    parks=parks,
                    asked=asked,
                    forced=place.forced,
                    checks=place.checks,
                ),
            )
            for name in names:
                earlier[name] = earlier.get(name, 0) + 1

    def plan(
        self, ctx: PassContext | None = None, place: Place | None = None
    ) -> list[PipelineStep]:
        """Return every pass with the decision about it in a context, by default the current one."""
        context, where = ctx or PassContext.current(), place or Place()
        return list(self._plan(context, where, context.decide(self, where)))

    def _plan(self, ctx: PassContext, place: Place, decision: Decision) -> Iterator[PipelineStep]:
        for pass_, where in self.places(place):
            here = ctx.decide(pass_, where) if decision else decision
            if isinstance(pass_, Pipeline):
                yield from pass_._plan(ctx, where, here)
            else:
                yield PipelineStep(pass_, where, here)

    # --- edits ------------------------------------------------------------------------------------

    def insert_before(self, target: str, *passes: PassLike) -> Self:
        """Return the pipeline with passes before the target.

        Raises:
            PassNotFoundError: the pipeline has no such pass, or one inserted does not exist.
        """
        return self._edited(target, lambda found: (*passes, found))

    def insert_after(self, target: str, *passes: PassLike) -> Self:
        """Return the pipeline with passes after the target; raises as `insert_before`."""
        return self._edited(target, lambda found: (found, *passes))

    def replace(self, target: str, *passes: PassLike) -> Self:
        """Return the pipeline with passes in the place of the target; raises as `insert_before`."""
        return self._edited(target, lambda _: passes)

    def drop(self, target: str) -> Self:
        """Return the pipeline without the target; raises as `insert_before`."""
        return self._edited(target, lambda _: ())

    def configure(self, target: str, **options: Any) -> Self:
        """Return the pipeline with other options of the target; raises as `insert_before`."""
        return self._edited(target, lambda found: (found.with_options(**options),))

    def _edited(self, target: str, edit: Callable[[Pass], Iterable[PassLike]]) -> Self:
        editor = _Editor(target, edit)
        result = editor.edited(self)
        if not editor.hits:
            raise PassNotFoundError(
                f"the pipeline has no {target!r}{did_you_mean(target, editor.seen)}\n  {self}"
            )
        return result

    # --- text -------------------------------------------------------------------------------------

    @property
    def element(self) -> str:
        """The text of this pipeline inside another one."""
        return self.text

    @property
    def inner(self) -> str:
        """The text of the passes."""
        return ",".join(p.element if isinstance(p, Pipeline) else p.text for p in self.passes)


class _Editor:
    """Rebuilds a pipeline with an edit at one target, counting the places of each name."""

    def __init__(self, target: str, edit: Callable[[Pass], Iterable[PassLike]]) -> None:
        head, _, self.number = target.partition(":")
        self.wanted = _target_names(head)
        self.edit = edit
        self.seen: Counter[str] = Counter()
        self.hits = 0

    def edited(self, pipeline: PipelineT) -> PipelineT:
        made: list[PassLike] = []
        for pass_ in pipeline.passes:
            self.seen[pass_.name] += 1
            if pass_.name in self.wanted and self.number in ("", str(self.seen[pass_.name])):
                self.hits += 1
                made += self.edit(pass_)
            else:
                made.append(self.edited(pass_) if isinstance(pass_, Pipeline) else pass_)
        return pipeline._made_of(made, **pipeline.options)


PipelineT = TypeVar("PipelineT", bound=Pipeline)

GROUPS: Final[dict[str, Callable[..., Pipeline]]] = {}
"""The kinds of pipelines by their keyword in pipeline text: "sequential" and "fix"."""

NAMED: Final[dict[str, Callable[[], Pipeline]]] = {
    "streamline": LoadedLater("tiered.pipeline.streamline", "streamline_pipeline"),
}
"""The pipelines that pipeline text can name: "default", "streamline"."""


def _checked_name(name: str | None) -> str:
    if not name or (re.fullmatch(_NAME, name) and name not in GROUPS):
        return name or ""
    raise UsageError(f"a group cannot be called {name!r}")


def names_in(pass_: Pass) -> list[str]:
    """Return the names that a pass puts into a pipeline: its own and those inside."""
    if not isinstance(pass_, Pipeline):
        return [pass_.name]
    return [pass_.name, *(name for inner in pass_.passes for name in names_in(inner))]


def _target_names(name: str) -> tuple[str, ...]:
    try:
        return (name, *registry.resolve(name))
    except PassNotFoundError:
        return (name,)  # a group, or a pass that no registry knows
