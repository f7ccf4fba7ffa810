"""GraphFormatter, GraphMerger, GraphReplacer, GraphDecomposer: passes as methods of a graph."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import tiered
from tiered.compat.argument_types import checks_arguments
from tiered.compat.ppq.base_graph import BaseGraph
from tiered.compat.ppq.elements import Operation, Variable
from tiered.graph import Model
from tiered.graph.edits import surgery
from tiered.passes.interface.registry import registry
from tiered.support.amounts import counted
from tiered.support.errors import ModelError, TargetError, UsageError

_NEWEST_FORM = (
    "the view reads every operator in its newest form, with operands in place of attributes; "
    "convert the opset to have them in the file"
)


_RUNTIME: Final = "onnxruntime_cpu"

_RESIZE_SINCE: Final = 11
"""The opset from which on a Resize has operands for regions, scales and sizes."""


@checks_arguments
class _Facade:
    """Methods that run passes on the model of a graph, whatever their level.

    Args:
        graph: a graph, or another facade of one.
    """

    passes: ClassVar[dict[str, tuple[str, ...]]] = {}
    missing: ClassVar[dict[str, str]] = {}

    def __init__(self, graph: BaseGraph | _Facade) -> None:
        self.graph: BaseGraph = graph.graph if isinstance(graph, _Facade) else graph

    def __getattr__(self, name: str) -> Any:
        found = self.passes.get(name, ())
        if name in self.missing and not (found and all(each in registry for each in found)):
            raise UsageError(f"{type(self).__name__}.{name}: {self.missing[name]}")
        if name not in self.passes:
            raise AttributeError(f"{type(self).__name__} has no method {name!r}")
        return lambda **options: self._run(self.passes[name], options)

    def _run(self, names: tuple[str, ...], options: dict[str, Any]) -> None:
        model = self.graph.graph.model
        assert isinstance(model, Model)
        for name in names:
            tiered.get_pass(name, **options).apply(model)


@checks_arguments
class GraphFormatter(_Facade):
    """The methods of PPQ's GraphFormatter."""

    passes: ClassVar = {
        "convert_to_tensor": ("attribute_to_input",),
        "delete_isolated": ("eliminate_deadend", "eliminate_unused_initializer"),
        "format_clip": ("replace_clip_empty_inputs",),
        "format_constant_input": ("extract_constant_to_initializer",),
        "format_int64_constant": ("int64_to_int32",),
        "format_pad": ("attribute_to_input",),
        "format_parameter": ("format_parameter",),
        "format_slice": ("attribute_to_input",),
        "remove_constant_input": ("extract_constant_to_initializer",),
        "remove_identity": ("eliminate_identity",),
    }
    missing: ClassVar = {
        **dict.fromkeys(("convert_to_tensor", "format_pad", "format_slice"), _NEWEST_FORM),
        "format_cast": "ONNX dtypes are numbers already",
        "format_gather": "ONNX has the axis of a Gather as an attribute in every opset",
        "format_int64_constant": "integers keep their width; no pass narrows them yet",
    }

    def format_resize(self) -> None:
        """Give each Resize its operands of opset 11; a model of opset 10 is converted to it."""
        model = self.graph.graph.model
        assert isinstance(model, Model)
        has_one = any(graph.nodes_of("Resize") for graph in model.graphs())
        if has_one and model.opset() < _RESIZE_SINCE:
            self._run(("convert_opset",), {"to": _RESIZE_SINCE})

    def truncate_on_var(self, var: Variable | str, mark_as_output: bool = True) -> None:
        """Remove what depends on a variable."""
        name = var if isinstance(var, str) else var.name
        self._run(("truncate_on_var",), {"var": name, "mark_as_output": mark_as_output})


class GraphMerger(_Facade):
    """The methods of PPQ's GraphMerger."""

    passes: ClassVar = {
        "fuse_bias_add": ("fuse_bias_add",),
        "fuse_bn": ("fuse_bn_into_conv", "fuse_bn_into_gemm"),
        "fuse_gelu": ("fuse_gelu",),
        "fuse_gemm": ("fuse_gemm",),
        "fuse_layernorm": ("fuse_layernorm",),
        "fuse_matmul_add": ("fuse_gemm",),
        "fuse_selfattention": ("fuse_attention",),
        "fuse_skiplayernorm": ("fuse_skip_layernorm",),
    }
    missing: ClassVar = {"fuse_scale": "PPQ has no implementation of it either"}

    def _run(self, names: tuple[str, ...], options: dict[str, Any]) -> None:
        """Run passes.

        Raises:
            TargetError: the operator that they make is one of onnxruntime only, and no backend is
                named.
        """
        model = self.graph.graph.model
        assert isinstance(model, Model)
        stamp = model.journal.stamp()
        super()._run(names, options)
        ctx = tiered.PassContext.current()
        if model.journal.moved_since(stamp) or ctx.names_backend:
            return
        trial = model.copy()
        with tiered.PassContext(backend=_RUNTIME):
            for name in names:
                tiered.get_pass(name, **options).apply(trial)
        if trial.to_proto() != model.to_proto():
            raise TargetError(
                f"{', '.join(names)} makes an operator of {_RUNTIME} here: call it inside of "
                f"tiered.PassContext(backend={_RUNTIME!r})"
            )


GraphMerge = GraphMerger


class GraphDecomposer(_Facade):
    """The methods of PPQ's GraphDecomposer."""

    passes: ClassVar = {"decompose_gemm": ("decompose_gemm",)}


@checks_arguments
class GraphReplacer(_Facade):
    """The methods of PPQ's GraphReplacer."""

    passes: ClassVar = {
        "replace_batchnorm_to_conv": ("replace_bn_with_conv",),
        "replace_batchnorm_to_scale": ("replace_bn_with_mul_add",),
    }

    def replace_op(self, op_name: str, replace_to: Operation) -> None:
        """Put an operation without operands in the place of another one.

        Raises:
            ModelError: there is no such operation, or the new one has operands already, or it does
                not take as many.
        """
        graph = self.graph
        if op_name not in graph.operations:
            raise ModelError(f"graph {graph.graph.name!r} has no operation {op_name!r}")
        count, takes = len(graph.operations[op_name].inputs), replace_to._node.schema
        if takes is not None and not takes.min_input <= count <= takes.max_input:
            raise ModelError(
                f"operation {op_name!r} has {counted(count, 'input')}, "
                f"which {replace_to.type} does not take"
            )
        if replace_to._node.graph is not graph.graph:
            graph.append_operation(replace_to)
        old, new = graph.operations[op_name]._node, replace_to._node
        if new.inputs or new.outputs:
            raise ModelError(f"operation {replace_to.name!r} has operands already")
        with graph.graph.model.transaction():
            names = [f"{new.label}_output_{at}" for at in range(len(old.outputs))]
            outputs = [surgery.new_value(graph.graph, name) for name in names]
            graph.graph.set_inputs(new, old.inputs)
            graph.graph.set_outputs(new, outputs)
            graph.graph.replace(old, outputs)
            if old.graph is not None:
                graph.graph.delete(old)

    def replace_var(self, var_name: str, replace_to: Variable) -> None:
        """Let every operation that reads a variable read another one.

        Raises:
            ModelError: there is no such variable.
        """
        graph = self.graph
        if var_name not in graph.variables:
            raise ModelError(f"graph {graph.graph.name!r} has no variable {var_name!r}")
        if replace_to._value.graph is not graph.graph:
            graph.append_variable(replace_to)
        graph.graph.replace_uses(graph.variables[var_name]._value, replace_to._value)


def format_graph(graph: BaseGraph) -> BaseGraph:
    """Return the graph after the passes that PPQ runs on a file that it loads.

    Constants are parameters; a parameter of several operations is one for each; biases and batch
    norms are fused, other batch norms are convolutions; identities and what no output needs go.
    The view reads casts, slices and pads in their newest form already.
    """
    formatter, merger = GraphFormatter(graph), GraphMerger(graph)
    formatter.format_constant_input()
    formatter.format_parameter()
    merger.fuse_bias_add()
    merger.fuse_bn()
    GraphReplacer(graph).replace_batchnorm_to_conv()
    formatter.format_clip()
    formatter.format_resize()
    formatter.remove_identity()
    formatter.delete_isolated()
    return graph
