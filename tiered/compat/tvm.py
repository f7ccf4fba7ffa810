"""The names of TVM: `tvm.transform` and `tvm.ir.instrument`, over ONNX models.

Each name is an alias of a name of tiered, where the documentation is; `docs/context.md` compares
the two. Every pass has a constructor here, under any of its names:

    from tiered.compat import tvm

    with tvm.transform.PassContext(opt_level=3, disabled_pass=["FoldConstant"]):
        model = tvm.transform.Sequential([tvm.transform.InferType()])(model)
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import tiered
from tiered.errors import PassNotFoundError, UsageError
from tiered.instruments import Dump, PrintIR, Timing
from tiered.passes import Pass
from tiered.passes.registry import registry
from tiered.pipeline import Pipeline
from tiered.support.aliases import ALIASES
from tiered.support.config_options import config_options

__all__ = [
    "OPT_PASS_LEVEL",
    "ChangeBatch",
    "ConvertLayout",
    "DumpIR",
    "Pass",
    "PassContext",
    "PassInfo",
    "PassInstrument",
    "PassPrintingInstrument",
    "PassTimingInstrument",
    "PrintAfterAll",
    "PrintBeforeAll",
    "Sequential",
    "build_config",
    "function_pass",
    "module_pass",
    "pass_instrument",
]

OPT_PASS_LEVEL: Mapping[str, int]
"""The level of each pass by TVM's spelling of its name; opt-ins are not in it."""

transform = relay = ir = instrument = sys.modules[__name__]


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
) -> Pipeline:
    """Return a `tiered.Sequential`.

    Raises:
        UsageError: `required` is given; TVM does not resolve it either.
    """
    if required:
        raise UsageError("a Sequential requires nothing: put the passes first in its list")
    named = None if name == "sequential" else name
    return tiered.Sequential(passes or (), name=named, opt_level=opt_level)


# --- user-defined passes --------------------------------------------------------------------------


def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
) -> Any:
    """Make a pass of a function `(mod, ctx)`, or constructors of passes of a class.

    `mod` is a `tiered.Model`, which is edited in place and returned.
    """
    return _decorated(pass_func, opt_level, name, required, tiered.module_pass, "transform_module")


def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
) -> Any:
    """Make a pass of a function `(func, mod, ctx)`, or constructors of passes of a class.

    `func` is a `tiered.Graph`, which is edited in place and returned.
    """

    def of_graphs(**declared: Any) -> Callable[[Callable[..., Any]], Pass]:
        def decorate(function: Callable[..., Any]) -> Pass:
            return tiered.function_pass(**declared)(
                lambda graph, ctx: function(graph, graph.model, ctx)
            )

        return decorate

    return _decorated(pass_func, opt_level, name, required, of_graphs, "transform_function")


def _decorated(
    pass_func: Any,
    opt_level: int | None,
    name: str | None,
    required: Iterable[str] | None,
    make: Callable[..., Callable[[Callable[..., Any]], Pass]],
    method: str,
) -> Any:
    if opt_level is None:
        raise UsageError("opt_level is missing: expected the lowest level at which the pass runs")

    def decorate(given: Any) -> Any:
        declared = {
            "opt_level": opt_level,
            "name": name or given.__name__,
            "required": tuple(required or ()),
        }
        if not isinstance(given, type):
            return make(**declared)(given)
        if not callable(getattr(given, method, None)):
            raise UsageError(f"{declared['name']}: the class of a pass must have a method {method}")

        def construct(*args: Any, **kwargs: Any) -> Pass:
            return make(**declared)(getattr(given(*args, **kwargs), method))

        construct.__doc__ = given.__doc__
        return construct

    return decorate if pass_func is None else decorate(pass_func)


# --- instruments ----------------------------------------------------------------------------------


class PassInstrument:
    """A base class for instruments; any object with some of the hooks is an instrument."""


def pass_instrument(pi_cls: type) -> type:
    """Return the class: its instances are instruments already."""
    return pi_cls


PassTimingInstrument = Timing


def PassPrintingInstrument(
    print_before_pass_names: Iterable[str], print_after_pass_names: Iterable[str]
) -> PrintIR:
    """Return a `PrintIR` for passes of these names."""
    return PrintIR(print_before_pass_names, print_after_pass_names, only_changed=False)


def PrintBeforeAll() -> PrintIR:
    """Return a `PrintIR` before all passes."""
    return PrintIR(before=True, after=False)


def PrintAfterAll() -> PrintIR:
    """Return a `PrintIR` after all passes."""
    return PrintIR(only_changed=False)


def DumpIR(dump_dir: str) -> Dump:
    """Return a `Dump` of every pass into a folder."""
    return Dump(dump_dir, every=True)


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


def ChangeBatch(data: Any = None, batch_size: int = 16) -> Pass:
    """Return `const_batch_size`.

    Args:
        data: the axis of the batch by input name, which must be 0; None for all inputs. Other
            inputs keep their dims.
        batch_size: the size.

    Raises:
        UsageError: `data` is no mapping, or an axis is not 0.
    """
    if data is None:
        return tiered.get_pass("const_batch_size", batch_size=batch_size)
    if not isinstance(data, Mapping) or any(axis != 0 for axis in data.values()):
        raise UsageError(
            f"ChangeBatch takes the axis 0 of inputs, as {{'x': 0}}, not {data!r}; "
            "const_input_shape fixes other dims"
        )
    return tiered.get_pass("const_batch_size", batch_size=batch_size, only=list(data))


# --- layouts --------------------------------------------------------------------------------------

_OPERATORS = {
    **dict.fromkeys(("nn.conv1d", "nn.conv2d", "nn.conv3d"), "Conv"),
    **dict.fromkeys(
        ("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"), "ConvTranspose"
    ),
    "image.resize2d": "Resize",
    "nn.avg_pool2d": "AveragePool",
    "nn.batch_norm": "BatchNormalization",
    "nn.global_avg_pool2d": "GlobalAveragePool",
    "nn.global_max_pool2d": "GlobalMaxPool",
    "nn.instance_norm": "InstanceNormalization",
    "nn.max_pool2d": "MaxPool",
    "qnn.conv2d": "QLinearConv",
}
_LAYOUTS = {
    **dict.fromkeys(("NCW", "NCHW", "NCDHW"), "NCHW"),
    **dict.fromkeys(("NWC", "NHWC", "NDHWC"), "NHWC"),
}


def ConvertLayout(
    desired_layouts: Any = None, **options: Any
) -> Pass:
    """Return `convert_layout` for operators that TVM or ONNX names.

    Args:
        desired_layouts: a layout for each operator, or a list [images, kernels]; the layout of
            kernels is ignored, it follows that of the images.
        options: other options of `convert_layout`.

    Raises:
        UsageError: there is no such operator or layout.
    """
    if desired_layouts is not None and not isinstance(desired_layouts, Mapping):
        raise UsageError(
            f"ConvertLayout takes a layout for each operator, as {{'nn.conv2d': 'NHWC'}}, "
            f"not {desired_layouts!r}"
        )
    if desired_layouts is None:
        return tiered.get_pass("convert_layout", **options)
    wanted = {}
    for name, given in desired_layouts.items():
        op_type = _OPERATORS.get(name.removeprefix("relax."))
        if op_type is None and "." in name:
            raise UsageError(f"ConvertLayout: {name!r} has no layout option")
        layout = given if isinstance(given, str) else given[0]
        if layout not in _LAYOUTS:
            raise UsageError(
                f"ConvertLayout: {layout!r} is no layout of images; expected {', '.join(_LAYOUTS)}"
            )
        wanted[op_type or name] = _LAYOUTS[layout]
    return tiered.get_pass("convert_layout", desired_layouts=wanted, **options)


# --- constructors of every pass -------------------------------------------------------------------


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _levels() -> Mapping[str, int]:
    levels: dict[str, int] = {}
    for name, pass_ in tiered.get_registered_passes().items():
        if pass_.info.opt_level is not None:
            levels[_camel(name)] = pass_.info.opt_level
    for alias, targets in ALIASES.items():
        found = [levels[_camel(target)] for target in targets if _camel(target) in levels]
        if found and alias[:1].isupper():
            levels.setdefault(alias, max(found))
    return MappingProxyType(dict(sorted(levels.items())))


def _constructor(name: str) -> Callable[..., Pass]:
    canonical = registry.resolve(name)

    def construct(*values: Any, **options: Any) -> Pass:
        passes = [tiered.get_pass(found) for found in canonical]
        if len(passes) > 1:
            if values or options:
                given = ", ".join([*map(repr, values), *options])
                raise UsageError(
                    f"{name} is an alias of {' and '.join(canonical)} and takes no options, "
                    f"not {given}: call get_pass for each of them"
                )
            return tiered.Sequential(passes)
        (pass_,) = passes
        names = [option.name for option in pass_.info.options]
        if len(values) > len(names):
            raise UsageError(f"{name} takes {len(names)} options, not {len(values)}")
        return pass_.with_options(**dict(zip(names, values, strict=False)), **options)

    construct.__name__ = name
    return construct


def __getattr__(name: str) -> Any:
    if name == "OPT_PASS_LEVEL":
        return _levels()
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return _constructor(name)
    except PassNotFoundError as error:
        raise AttributeError(str(error)) from error


def __dir__() -> list[str]:
    return sorted({*__all__, *map(_camel, tiered.pass_names())})
