"""The module of PopRT with its passes: classes, the registry and the manager."""

from __future__ import annotations

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import onnx

import tiered
from tiered.compat.poprt.arguments import options_of
from tiered.compat.poprt.fp8_arguments import TO_FLOAT8, float_to_fp8
from tiered.compat.poprt.own_passes import MARKING, OWN_PASSES, raising_ir
from tiered.compat.poprt.pass_modules import add_modules, class_of
from tiered.compat.poprt.with_models import WITH_MODELS
from tiered.compat.returned_model import checked
from tiered.compat.signatures import with_parameters
from tiered.context import PassContext
from tiered.passes.interface.pass_info import Place
from tiered.passes.interface.registry import registry
from tiered.pipeline import Pipeline
from tiered.support.aliases import ALIASES
from tiered.support.errors import PassNotFoundError, TargetError, UsageError

__all__ = [
    "BuiltIn",
    "Pass",
    "PassManager",
    "UnknownPassError",
    "get_pass",
    "get_registered_passes",
    "register",
]

PassClass = TypeVar("PassClass", bound="type[Pass]")

_CLASSES: dict[str, type[Pass]] = {}


class UnknownPassError(PassNotFoundError, KeyError):
    """No pass has this name; a KeyError, as in PopRT."""

    __str__ = Exception.__str__


class Pass(ABC):
    """A pass over a ModelProto; `run` may edit its argument, which is a copy.

    Attributes:
        name: of the pass; `register` sets it.
        changes_interface: whether it changes inputs or outputs.
    """

    name: str = ""
    changes_interface: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take any arguments: they are the subclass's."""
        super().__init__()

    @abstractmethod
    def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
        """Return the result of the pass."""

    def __call__(self, onnx_model: Any) -> Any:
        """Run the pass, and hold its result against onnx.checker."""
        return _requested(checked(self.lifted()), onnx_model)

    def lifted(self) -> tiered.Pass:
        """Return the equivalent pass of tiered."""
        return tiered.proto_pass(
            self.run,
            name=self.name or type(self).__name__,
            changes_interface=self.changes_interface,
            numerics="exact",
        )

    @staticmethod
    def get_pass(name: str, *args: Any, **kwargs: Any) -> Pass:
        """Return `poprt.get_pass(name, ...)`."""
        return get_pass(name, *args, **kwargs)

    @staticmethod
    def get_registered_passes() -> dict[str, tiered.Pass]:
        """Return `poprt.get_registered_passes()`."""
        return get_registered_passes()

    @staticmethod
    def register_pass(pass_name: str) -> Callable[[PassClass], PassClass]:
        """Return `poprt.passes.register(pass_name)`."""
        return register(pass_name)

    def traverse_graph(
        self,
        graph: onnx.GraphProto,
        transform: Callable[[onnx.GraphProto, bool], object],
        is_main_graph: bool = True,
    ) -> None:
        """Call a function with a graph and with each body inside it."""
        transform(graph, is_main_graph)
        for node in graph.node:
            for attribute in node.attribute:
                bodies = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
                for body in bodies:
                    self.traverse_graph(body, transform, is_main_graph=False)


class BuiltIn(Pass):
    """A pass of tiered with the methods of PopRT's passes."""

    def __init__(self, pass_: tiered.Pass) -> None:
        super().__init__()
        self.pass_ = pass_
        self.name = pass_.name
        self.changes_interface = pass_.info.changes_interface

    def run(self, onnx_model: Any) -> Any:
        return _requested(self.pass_, onnx_model)

    def __call__(self, onnx_model: Any) -> Any:
        return self.run(onnx_model)

    def lifted(self) -> tiered.Pass:
        return self.pass_


def register(name: str) -> Callable[[PassClass], PassClass]:
    """Make a subclass of `Pass` known by a name, without making an instance.

    Arguments with types and defaults are options. In a pipeline the pass is made without the
    arguments that have no default; `get_pass` takes them.

    Raises:
        UsageError: the name is taken.
    """

    def decorate(cls: PassClass) -> PassClass:
        cls.name = name
        where = f"{cls.__module__}.{cls.__qualname__}"
        registry.register_later(name, where, lambda: _registered(cls, name))
        _CLASSES[name] = cls
        return cls

    return decorate


def _registered(cls: type[Pass], name: str) -> tiered.Pass:
    """Return the pass of tiered that makes an instance of a class when it runs."""

    def run(onnx_model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
        if missing := [name for name, kind in _arguments(cls).items() if kind is _REQUIRED]:
            raise UsageError(
                f"{name} needs {', '.join(missing)}: make it with "
                f"poprt.get_pass({name!r}, {missing[0]}=...)"
            )
        return cls(**options).run(onnx_model)

    run.__doc__ = cls.__doc__
    options = {each: given for each, given in _arguments(cls).items() if given is not _REQUIRED}
    return tiered.proto_pass(
        with_parameters(run, ["onnx_model"], options),
        name=name,
        changes_interface=cls.changes_interface,
        numerics="exact",
    )


_REQUIRED: Final = inspect.Parameter.empty


def _arguments(cls: type[Pass]) -> dict[str, Any]:
    """Return the named arguments of a class with their defaults; `_REQUIRED` without one."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(cls).parameters.values()
    return {each.name: each.default for each in parameters if each.kind not in variadic}


def get_pass(name: str, *args: Any, **kwargs: Any) -> Pass:
    """Return a pass by its name: a new instance of your registered class, or one of tiered.

    The options of tiered's passes have PopRT's names too, and its order of arguments.

    Raises:
        UnknownPassError: no pass has this name; a KeyError.
        UsageError: there are more arguments than options, or one that the pass has not.
        OptionError: an unknown option, or a value of the wrong type.
    """
    if name in _CLASSES:
        return _CLASSES[name](*args, **kwargs)
    compares = _comparing(name)
    if compares is not None and (args or "origin_model" in kwargs):
        return _made(compares, name, args, kwargs)
    if name in OWN_PASSES:
        return _made(OWN_PASSES[name], name, args, kwargs)
    if name in TO_FLOAT8:
        return _made(float_to_fp8, name, args, kwargs)
    try:
        found = tiered.get_pass(name)
    except PassNotFoundError as error:
        raise UnknownPassError(str(error)) from error
    given = options_of(found, name, args, kwargs)
    made = tiered.get_pass(name, **given)
    return BuiltIn(raising_ir(made) if made.name in MARKING else made)


def _made(
    make: Callable[..., tiered.Pass], name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> BuiltIn:
    """Return what a function makes of the arguments of a pass, which must be its own."""
    signature = inspect.signature(make)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        known = ", ".join(signature.parameters)
        raise UsageError(f"{name}: {error} (it takes {known})") from error
    return BuiltIn(make(*args, **kwargs))


def _comparing(name: str) -> Callable[..., tiered.Pass] | None:
    """Return what makes a pass that compares with another model; None for other names."""
    try:
        (canonical, *_) = registry.resolve(name)
    except PassNotFoundError:
        return None
    return WITH_MODELS.get(canonical)


def get_registered_passes() -> dict[str, tiered.Pass]:
    """Return every pass by its name, and by each other name that has no capitals, as PopRT's."""
    found = dict(tiered.get_registered_passes())
    for name in (*ALIASES, *OWN_PASSES):
        if name.islower():
            found[name] = get_pass(name).lifted()
    return dict(sorted(found.items()))


class PassManager:
    """Runs all of the passes that it is given, whatever their level."""

    def __init__(
        self,
        used_passes: Iterable[Pass | tiered.Pass | str] | Pass | tiered.Pass = (),
        gather_ir_passes: bool = False,
    ) -> None:
        self._passes: list[tiered.Pass | str] = []
        self.add_passes(used_passes, gather_ir_passes)

    def add_passes(
        self,
        used_passes: Iterable[Pass | tiered.Pass | str] | Pass | tiered.Pass = (),
        gather_ir_passes: bool = False,
    ) -> None:
        """Append passes, or one."""
        # gather_ir_passes only saves conversions in PopRT; tiered does not convert between passes.
        if isinstance(used_passes, str | Pass | tiered.Pass):
            used_passes = [used_passes]
        self._passes += map(_lifted, used_passes)

    @property
    def pipeline(self) -> Pipeline:
        """The passes as a pass of tiered."""
        return tiered.Sequential(self._passes)

    def get_passes(self) -> list[Pass]:
        """Return the passes, in order."""
        return [BuiltIn(each) for each in self.pipeline.passes]

    def get_all_pass_names(self) -> list[str]:
        """Return the names of the passes, in order."""
        return [each.name for each in self.pipeline.passes]

    def run(self, onnx_model: Any) -> Any:
        """Return the model after all passes, checked; a ModelProto stays as it is."""
        return _requested(checked(self.pipeline), onnx_model)


def _lifted(item: Pass | tiered.Pass | str) -> tiered.Pass | str:
    """Return an entry of a manager for a pipeline; the name of a pass has PopRT's defaults."""
    if isinstance(item, str):
        if item not in OWN_PASSES and not registry.knows(item):
            return item  # a glob, or a pipeline as text
        item = get_pass(item)
    return item.lifted() if isinstance(item, Pass) else item


def _requested(pass_: tiered.Pass, model: Any) -> Any:
    """Run a pass whatever its level, unless the context disables it.

    Raises:
        TargetError: a pass cannot do what it is asked for.
    """
    ctx = PassContext.current()
    count = len(ctx.report.results)
    made = pass_._called(model, ctx, Place(asked=True))
    for result in ctx.report.results[count:]:
        why = result.unmet if result.changed else result.unable
        if why and not result.needed_by:
            reasons = "; ".join(dict.fromkeys(why))
            raise TargetError(f"{result.name} cannot do what it is asked for: {reasons}")
    return made


def __getattr__(name: str) -> Any:
    """Return the class of a pass, or its module.

    Raises:
        AttributeError: no pass has this name.
    """
    made = class_of(name, get_pass) or sys.modules.get(f"{__name__}.{name}")
    if made is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return made


add_modules(__name__, get_pass)
