"""The modules of TVM: models with functions by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from tiered.compat.tvm.expressions.building import model_of
from tiered.compat.tvm.expressions.expr import Expr, Function, Tuple
from tiered.graph import Function as LocalFunction, Graph, Model
from tiered.graph.io.load import load_model
from tiered.passes import Pass
from tiered.support.errors import TieredError, UsageError, did_you_mean

__all__ = [
    "GlobalVar",
    "IRModule",
    "NotEqualError",
    "assert_structural_equal",
    "structural_equal",
]


def applied(pass_: Pass, expr: Any) -> Any:
    """Return what a pass makes of an expression, in its form.

    A `tiered.Model` is edited. For a main graph or a `relay.Function`, which stay, it is the main
    graph of another model.
    """
    if isinstance(expr, Graph | Function):
        return pass_(model_with(expr).copy()).main
    return pass_(expr)


class GlobalVar(str):
    """The name of a function of a module."""

    __slots__ = ()

    @property
    def name_hint(self) -> str:
        """The name."""
        return str(self)


class IRModule(Model):
    """A model with the names of TVM's modules: `mod["main"]`. It is a `tiered.Model`.

    Args:
        functions: the functions by name, `main` among them; without any, the main graph is empty
            until `mod["main"] = ...`. A text is the folder of external data, as of a `Model`.
        source: the name for messages.

    Raises:
        UsageError: it is no mapping of functions, or none is `main`.
    """

    def __init__(
        self, functions: Mapping[Any, Any] | str | None = None, source: str | None = None
    ) -> None:
        super().__init__(functions if isinstance(functions, str) else "", source)
        if isinstance(functions, str):
            return
        if not isinstance(functions, Mapping | None):
            raise UsageError(
                f"IRModule takes functions by name, no value of type {type(functions).__name__}: "
                "IRModule.from_expr makes a module of a model or an expression"
            )
        named = {str(name): function for name, function in (functions or {}).items()}
        if named and "main" not in named:
            raise UsageError(f"a module has a function 'main', and not only {', '.join(named)}")
        load_model(self, model_of(Function((), Tuple(()))).to_proto())
        for name in sorted(named, key=lambda name: name != "main"):
            self[name] = named[name]

    @staticmethod
    def of(model: Model) -> IRModule:
        """Return the model itself, which has these names from now on."""
        if not isinstance(model, IRModule):
            model.__class__ = IRModule
        assert isinstance(model, IRModule)
        return model

    @classmethod
    def from_expr(
        cls,
        expr: Model | Graph | Expr | onnx.ModelProto,
        functions: Mapping[Any, Any] | None = None,
    ) -> IRModule:
        """Return a model as a module; a ModelProto and an expression stay as they are.

        Args:
            expr: a model, its main graph, or a `relay.Function` of new expressions.
            functions: accepted if it is empty: a model has its functions with it.

        Raises:
            UsageError: it is none of these, or functions are given.
        """
        if functions:
            raise UsageError("from_expr takes no functions: a model has its functions with it")
        return cls.of(model_with(expr))

    def __getitem__(self, name: str) -> Graph:
        """Return the main graph, `main`, or a local function by its name.

        Raises:
            UsageError: there is no such function.
        """
        if name == "main":
            return self.main
        known = {function.name: function for function in self.functions}
        if name not in known:
            hint = did_you_mean(name, ["main", *known])
            raise UsageError(f"the module has no function {name!r}{hint}")
        return known[name]

    def __setitem__(self, name: str, function: Any) -> None:
        """Exchange the main graph, with the functions that it calls, or a local function.

        Args:
            name: main, or the name of a local function.
            function: a graph of a model, a model, or a `relay.Function`.

        Raises:
            UsageError: it is none of these, or the name is that of another function.
        """
        if isinstance(function, LocalFunction):
            if function.name != name:
                raise UsageError(f"the function {function.name!r} cannot be {name!r} of a module")
            model = function.model
            assert isinstance(model, Model)
            found = model.to_proto().functions
            taken = [each for each in found if (each.domain, each.name) == function.id[:2]]
            self._take(None, taken, model)
            return
        if name != "main":
            raise UsageError(f"{name!r} takes a local function, and {function!r} is none")
        other = model_with(function)
        proto = other.to_proto()
        self._take(proto.graph, proto.functions, other)

    def update_func(self, var: str, func: Any) -> None:
        """Exchange a function: `mod[var] = func`."""
        self[str(var)] = func

    def update(self, other: Any) -> None:
        """Take over the main graph and the functions of another module; other functions stay.

        Raises:
            UsageError: it is no module, or imports other versions of operators.
        """
        self["main"] = model_with(other).main

    def _take(self, graph: onnx.GraphProto | None, functions: Any, other: Any) -> None:
        """Exchange the main graph, if one is given, and add functions or exchange namesakes."""
        proto = self.to_proto()
        kept = {(each.domain, each.name, each.overload): each for each in proto.functions}
        taken = {(each.domain, each.name, each.overload): each for each in functions}
        versions = {entry.domain: entry.version for entry in proto.opset_import}
        if graph is not None and kept.keys() <= taken.keys():
            versions = {}  # nothing stays that would need them
        for domain, version in other.opset_imports.items():
            if versions.setdefault(domain, version) != version:
                raise UsageError(
                    f"the modules import versions {versions[domain]} and {version} of "
                    f"{domain or 'ai.onnx'!r}: convert_opset makes them one"
                )
        if graph is not None:
            proto.graph.CopyFrom(graph)
        kept |= taken
        added = [onnx.FunctionProto.FromString(each.SerializeToString()) for each in kept.values()]
        del proto.functions[:], proto.opset_import[:]
        proto.functions.extend(added)
        proto.opset_import.extend(onnx.helper.make_opsetid(*each) for each in versions.items())
        proto.ir_version = max(proto.ir_version, other.ir_version)
        self.exchange(proto)

    def get_global_var(self, name: str) -> GlobalVar:
        """Return the name of a function.

        Raises:
            UsageError: there is no such function.
        """
        self[name]
        return GlobalVar(name)

    def get_global_vars(self) -> list[GlobalVar]:
        """Return the names of the main graph and of the local functions."""
        return [GlobalVar("main"), *(GlobalVar(function.name) for function in self.functions)]

    def astext(self, show_meta_data: bool = True) -> str:
        """Return the model as text; `show_meta_data` is accepted, and without effect."""
        return onnx.printer.to_text(self.to_proto())


class NotEqualError(TieredError, ValueError):
    """Two modules or functions differ; a ValueError, as in TVM."""


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Return whether two models or graphs compute the same in the same way: names do not count."""
    return _graph_of(lhs).is_isomorphic(_graph_of(rhs))


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raise if two models or graphs differ in more than names.

    Raises:
        NotEqualError: they differ.
    """
    if not structural_equal(lhs, rhs):
        raise NotEqualError(
            "the two do not compute the same in the same way (tiered.diff names it)"
        )


def _graph_of(given: Any) -> Graph:
    return given if isinstance(given, Graph) else model_with(given).main


def model_with(given: Any) -> Model:
    """Return a model: itself, of a ModelProto, of a main graph, or of a function.

    Raises:
        UsageError: it is none of these.
    """
    if isinstance(given, Function):
        return model_of(given)
    if isinstance(given, Graph) and isinstance(given.model, Model) and given is given.model.main:
        return given.model
    if isinstance(given, onnx.ModelProto):
        return Model.from_proto(given)
    if not isinstance(given, Model):
        raise UsageError(
            f"a module is made of a Model, its main graph, a ModelProto or a relay.Function, not "
            f"of {given!r}"
        )
    return given
