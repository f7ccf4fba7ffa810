"""The module of PopRT with its passes: classes, the registry and the manager."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import onnx

import tiered
from tiered.compat.poprt.float8 import FLOAT8_ARGUMENTS, TO_FLOAT8, float_to_fp8
from tiered.compat.poprt.with_models import WITH_MODELS
from tiered.compat.returned_model import checked
from tiered.context import PassContext
from tiered.errors import PassNotFoundError, UsageError
from tiered.passes.pass_info import Place
from tiered.passes.registry import registry

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

_OPTIONS: Final[dict[str, dict[str, str]]] = {
    "add_checkpoints": {"checkpoints": "tensors"},
    "const_batch_size": {"const_batch_size": "batch_size"},
    "const_input_shape": {"const_input_shape": "shape"},
    "float_to_half": {"skip_op_types": "skip_op_types"},
    "fold_constant": {"max_tensor_size": "max_tensor_size"},
    "packed_transformer": {"max_valid_num": "max_valid_num"},
    "rewrite_annotated_ops": {"sharding_info": "sharding", "pipelining_info": "pipelining"},
    "serialize_matmul": {"serialize_dict": "split"},
    "serialize_matmul_add": {"serialize_dict": "split"},
}
"""The options of a pass by PopRT's names for them, in the order of PopRT's arguments."""

_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    name: {"annotate": True} for name in ("shape_inference", "ShapeInference")
}
"""The options that PopRT's passes have set, by the names of PopRT."""

_BY_NODE: Final = frozenset({"sharding", "pipelining", "split"})
"""Options that PopRT takes as a mapping by node: of its device, its stage, its parts."""

_DIMS: Final = {"output_channels": "columns", "input_channels": "rows", "reducing_dim": "inner"}
"""The dims of a product by PopART's names.

Source: graphcore/popart, willow/src/transforms/serializematmuls.cpp: a product of
[group, input channels, reducing dim] and [group, reducing dim, output channels].
"""


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
        tiered.register(_registered(cls, name))
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
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("onnx_model", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for argument, default in _arguments(cls).items():
        if default is not _REQUIRED:
            parameters.append(inspect.Parameter(argument, kind, default=default))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # of any function
    return tiered.proto_pass(
        run, name=name, changes_interface=cls.changes_interface, numerics="exact"
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
        UsageError: there are more arguments than options.
        OptionError: an unknown option, or a value of the wrong type.
    """
    if name in _CLASSES:
        return _CLASSES[name](*args, **kwargs)
    if name in WITH_MODELS and (args or "origin_model" in kwargs):
        return BuiltIn(WITH_MODELS[name](*args, **kwargs))
    if name == "apply_ir_pass":
        return BuiltIn(_apply_ir_pass(*args, **kwargs))
    if name in TO_FLOAT8 and (args or kwargs.keys() & FLOAT8_ARGUMENTS):
        return BuiltIn(float_to_fp8(*args, **kwargs))
    try:
        found = [tiered.get_pass(each) for each in registry.resolve(name)]
    except PassNotFoundError as error:
        raise UnknownPassError(str(error)) from error
    if len(found) > 1:
        if args or kwargs:
            both = " and ".join(each.name for each in found)
            raise UsageError(f"{name} is an alias of {both} and takes no options")
        return BuiltIn(tiered.Sequential(found, name=name))
    options = _options(found[0], name, args, kwargs)
    return BuiltIn(found[0].with_options(**{**_DEFAULTS.get(name, {}), **options}))


def _options(
    pass_: tiered.Pass, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return options by their names here."""
    own = _OPTIONS.get(pass_.name, {})
    if args and isinstance(args[0], Mapping) and pass_.name == "packed_transformer":
        args, kwargs = args[1:], {**_packing(args[0]), **kwargs}
    order = list(own.values()) or [option.name for option in pass_.info.options]
    if len(args) > len(order):
        raise UsageError(f"{name} takes {len(order)} arguments, not {len(args)}")
    named = {own.get(key, key): value for key, value in kwargs.items()}
    given = {**dict(zip(order, args, strict=False)), **named}
    for option in _BY_NODE & given.keys():
        if isinstance(given[option], Mapping):
            text = _split_entry if option == "split" else "{}={}".format
            given[option] = [text(node, each) for node, each in given[option].items()]
    return given


def _split_entry(node: object, value: object) -> str:
    """Return an entry of `serialize_dict` as tiered's text: `4/output_channels` is `4/columns`.

    `KEEP_PRECISION`, its third part, is for PopRT's target only.

    Raises:
        UsageError: it names no dim of PopRT.
    """
    first, *rest = str(value).split("/")
    dim = rest[0] if rest else ""
    if dim and dim not in _DIMS:
        raise UsageError(
            f"serialize_dict: {value!r} of {node!r} has no dim {dim!r}; expected a number of parts "
            f"and one of {', '.join(_DIMS)}, such as '4/{next(iter(_DIMS))}'"
        )
    return f"{node}={first}/{_DIMS[dim]}" if dim else f"{node}={first}"


def _packing(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of packed_transformer; PopRT takes them as a dict.

    Raises:
        UsageError: an entry describes how PopRT unpacks rows for each attention.
    """
    if unknown := sorted(set(args) - {"max_valid_num", "inputs"}):
        raise UsageError(
            f"packed_transformer takes no {', '.join(unknown)}: attention runs on whole rows under "
            "a mask, so nothing is unpacked for it"
        )
    return dict(args)


def get_registered_passes() -> dict[str, tiered.Pass]:
    """Return every pass by its name."""
    return tiered.get_registered_passes()


class PassManager:
    """Runs all of the passes that it is given, whatever their level."""

    def __init__(
        self, used_passes: Iterable[Pass | tiered.Pass | str] = (), gather_ir_passes: bool = False
    ) -> None:
        # gather_ir_passes only saves conversions in PopRT; tiered does not convert between passes.
        self.pipeline = tiered.Sequential(
            [p.lifted() if isinstance(p, Pass) else p for p in used_passes]
        )

    def run(self, onnx_model: Any) -> Any:
        """Return the model after all passes, checked; a ModelProto stays as it is."""
        return _requested(checked(self.pipeline), onnx_model)


def _requested(pass_: tiered.Pass, model: Any) -> Any:
    """Run a pass whatever its level, unless the context disables it."""
    return pass_._called(model, PassContext.current(), Place(asked=True))



def _apply_ir_pass(passes: Iterable[str] | str = ()) -> tiered.Pass:
    """Return the pipeline of some passes."""
    names = passes.split(",") if isinstance(passes, str) else list(passes)
    return tiered.Sequential([each.strip() for each in names], name="apply_ir_pass")
