"""A constructor of every pass, under any of its names, with TVM's arguments where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

import tiered
from tiered.compat.tvm.newer_passes import listed
from tiered.compat.tvm.op_attributes import registered_support
from tiered.compat.tvm.patterns.dataflow_pattern import as_entry
from tiered.compat.tvm.running.devices import Device, name_of_device
from tiered.compat.tvm.running.modules import applied, model_with
from tiered.compat.tvm.target import Target
from tiered.context import PassContext
from tiered.extensions.partition import BackendSupport, mark_targets
from tiered.extensions.partition.composite import merge_composites, parsed
from tiered.graph import Model, Node
from tiered.passes import Pass
from tiered.passes.interface.registry import registry
from tiered.pipeline.named_passes import option_names
from tiered.rewriter.idioms.sparsity import block_sparsity
from tiered.support.aliases import ALIASES, NO_EQUIVALENT, no_equivalent
from tiered.support.amounts import counted
from tiered.support.errors import BackendNotFoundError, UsageError
from tiered.targets import Backend

_LEVELS_OF_TVM: Final = {
    "CanonicalizeCast": 3,
    "CombineParallelConv2D": 4,
    "FuseOps": 1,
    "OpFusion": 1,
}
"""TVM's levels of passes that are opt-in here, spelled otherwise, or absent."""


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def levels() -> Mapping[str, int]:
    """Return the level of each pass by TVM's spelling of its name."""
    levels: dict[str, int] = {}
    for name, pass_ in tiered.get_registered_passes().items():
        if pass_.info.opt_level is not None:
            levels[camel(name)] = pass_.info.opt_level
    for alias, targets in ALIASES.items():
        found = [levels[camel(target)] for target in targets if camel(target) in levels]
        if found and alias[:1].isupper():
            levels.setdefault(alias, max(found))
    for name, level in _LEVELS_OF_TVM.items():
        levels.setdefault(name, level)
    return MappingProxyType(dict(sorted(levels.items())))


def constructor(name: str) -> Callable[..., Pass]:
    """Return the constructor of a pass by any of its names.

    Raises:
        PassNotFoundError: no pass has this name.
        UsageError: ONNX has no equivalent; the message names the nearest pass.
    """
    if name in NO_EQUIVALENT:
        raise UsageError(no_equivalent(name))
    registry.resolve(name)

    def construct(*values: Any, **options: Any) -> Pass:
        pass_ = tiered.get_pass(name)
        names = option_names(pass_)
        if len(values) > len(names):
            raise UsageError(f"{name} takes {counted(len(names), 'option')}, not {len(values)}")
        named = dict(zip(names, values, strict=False))
        if twice := named.keys() & options.keys():
            raise UsageError(f"{name}: {min(twice)!r} is given twice")
        return tiered.get_pass(name, **named, **options)

    construct.__name__ = name
    return construct


# --- passes with other arguments than here --------------------------------------------------------


def ChangeBatch(data: Any = None, batch_size: int = 16) -> Pass:
    """Return `change_batch`.

    Args:
        data: the axis of the batch by input, a `relay.Var` or its name; None for axis 0 of the
            first input and of all that have the same size there. Other inputs keep their dims.
        batch_size: the size.

    Raises:
        UsageError: `data` is no mapping from inputs to axes.
    """
    if data is None:
        return tiered.get_pass("change_batch", size=batch_size)
    if not isinstance(data, Mapping) or not all(type(axis) is int for axis in data.values()):
        raise UsageError(f"ChangeBatch takes the axis by input, as {{'x': 0}}, not {data!r}")
    axes = {getattr(each, "name_hint", each): axis for each, axis in data.items()}
    return tiered.get_pass("change_batch", size=batch_size, axes=axes)


def DeadCodeElimination(inline_once: bool = False, ignore_impurity: bool = False) -> Pass:
    """Return `eliminate_deadend`; `inline_once` first inlines the functions with one call.

    `ignore_impurity` is accepted, and without effect: operators of ONNX have no effects.
    """
    dead = tiered.get_pass("eliminate_deadend")
    return tiered.Sequential([tiered.get_pass("inline", once=True), dead]) if inline_once else dead


def EtaExpand(expand_constructor: bool = False, expand_global_var: bool = False) -> Pass:
    """Return `eta_expand` of calls; with both arguments False, a pass that changes nothing.

    Args:
        expand_constructor: graphs have no constructors of data types.
        expand_global_var: wrap the calls of local functions.

    Raises:
        UsageError: constructors shall be expanded.
    """
    if expand_constructor:
        raise UsageError(
            "EtaExpand(expand_constructor=True) has no equivalent in ONNX: graphs have no "
            "constructors of data types. The nearest pass is eta_expand{ops=[...]}, which wraps "
            "nodes into local functions"
        )
    return tiered.get_pass("eta_expand", calls=expand_global_var)


def gradient(expr: Any, mod: Any = None, mode: str = "higher_order") -> Any:
    """Return a model with the gradients of its output with respect to its float inputs.

    As in TVM, the gradient of an output of several elements is that of their sum.

    Args:
        expr: a `tiered.Model`, which is edited and returned, or a ModelProto, which stays. For a
            main graph or a `relay.Function`, which stay, the result is the main graph of another
            model.
        mod: not used: a model has its functions with it.
        mode: `first_order`, or `higher_order`: the result can be differentiated again.

    Raises:
        UsageError: it is neither.
    """
    if mode not in ("first_order", "higher_order"):
        raise tiered.UsageError(f"mode is first_order or higher_order, not {mode!r}")
    pass_ = tiered.get_pass("gradient", higher_order=mode == "higher_order", seed="ones")
    return applied(pass_, expr)


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Return `fuse_ops`; -1 is the level of the context."""
    return tiered.get_pass("fuse_ops", level=fuse_opt_level)


def EliminateCommonSubexpr(fskip: Callable[[Node], bool] | None = None) -> Pass:
    """Return `eliminate_common_subexpr`; nodes for which `fskip` returns True stay."""
    pass_ = tiered.get_pass("eliminate_common_subexpr")
    return pass_ if fskip is None else pass_.on(lambda node: not fskip(node))


def AnnotateTarget(
    targets: str | Iterable[str] | None = None,
    include_non_call_ops: bool = True,
    *,
    target: str | Iterable[str] | None = None,
) -> Pass:
    """Return `annotate_target` for one target or several.

    Args:
        targets: the targets, first choice first: names with predicates of `register_op_attr`, or
            what `Target` reads.
        include_non_call_ops: accepted, and without effect: ONNX has no tuples.
        target: the targets by the name that TVM's documentation uses.

    Raises:
        TypeError: there are no targets.
        UsageError: both arguments name some.
        BackendNotFoundError: there is no such target.
    """
    given = targets if target is None else target
    if given is None:
        raise TypeError("AnnotateTarget() missing 1 required positional argument: 'targets'")
    if targets is not None and target is not None:
        raise UsageError("AnnotateTarget takes the targets once: AnnotateTarget(['npu', 'llvm'])")
    names = [given] if isinstance(given, str) else list(given)
    supports = {name: registered_support(name) for name in names}
    if not any(supports.values()):
        return tiered.get_pass("annotate_target", targets=[_backend(n).name for n in names])
    taken = {
        name if support else _backend(name).name: support or BackendSupport(_backend(name))
        for name, support in supports.items()
    }

    @tiered.module_pass(opt_level=0, name="annotate_target")
    def annotate(model: Model, ctx: PassContext) -> None:
        mark_targets(model, taken)

    return annotate


def _backend(name: str) -> Backend:
    """Return the backend of a target.

    Raises:
        BackendNotFoundError: there is none.
    """
    try:
        return Target(name).backend
    except BackendNotFoundError as error:
        raise BackendNotFoundError(
            f"{error}; a target of one's own has predicates: "
            f"register_op_attr('nn.conv2d', 'target.{name}', predicate)"
        ) from error


def MergeComposite(pattern_table: Iterable[Any]) -> Pass:
    """Return a pass that outlines the matches of a pattern table, as `merge_composite` does.

    Args:
        pattern_table: (name, pattern) or (name, pattern, check) each, first choice first. The
            check of a dataflow pattern gets the matched value, that of another one the match.
    """
    table = parsed(map(as_entry, pattern_table))

    @tiered.module_pass(opt_level=0, name="merge_composite")
    def merge(model: Model, ctx: PassContext) -> None:
        merge_composites(model, table, ctx.skip)

    return merge


def PartitionGraph(mod_name: str = "default", bind_constants: bool = False) -> Pass:
    """Return `partition_graph`.

    Args:
        mod_name: accepted, and without effect: functions are named after their region.
        bind_constants: must be False, because functions have no constants of their own.

    Raises:
        UsageError: constants are to be bound.
    """
    if bind_constants:
        raise UsageError(
            "a local function has no initializers, so weights stay inputs; "
            "tiered.extensions.partition.as_models makes models with their own weights"
        )
    return tiered.get_pass("partition_graph")


def RemoveUnusedFunctions(entry_functions: Iterable[str] | None = None) -> Pass:
    """Return `remove_unused_functions`.

    Args:
        entry_functions: functions to keep with all that they call; `main` is the main graph, which
            is kept in any case.

    Raises:
        UsageError: it is one string.
    """
    given = listed("entry_functions", entry_functions or ())
    entries = [name for name in given if name != "main"]
    return tiered.get_pass("remove_unused_functions", entry_functions=entries or None)


def RewriteAnnotatedOps(
    fallback_device: int | str | Device = "", *, propagate: bool = True, **options: Any
) -> Pass:
    """Return `rewrite_annotated_ops`.

    Args:
        fallback_device: the device of nodes without one: its name, a device, or TVM's type of it (1
            is cpu).
        propagate: whether nodes between nodes of one device are on it too.
        options: other options of the pass.

    Raises:
        UsageError: no device has this type.
    """
    name = name_of_device(fallback_device)
    return tiered.get_pass(
        "rewrite_annotated_ops", fallback_device=name, propagate=propagate, **options
    )


def PartialEvaluate(**options: Any) -> Pass:
    """Return `partial_evaluate` with `options`, and `eliminate_nop_if` for constant Ifs."""
    loops = tiered.get_pass("partial_evaluate", **options)
    return tiered.Sequential([loops, tiered.get_pass("eliminate_nop_if")], name="PartialEvaluate")


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = True, **options: Any) -> Pass:
    """Return `combine_parallel_dense`; one product with all weights is faster than a batch of them.

    Args:
        min_num_branches: fewer branches are left alone.
        to_batch: accepted, and without effect.
        options: other options of the pass.
    """
    return tiered.get_pass("combine_parallel_dense", min_num_branches=min_num_branches, **options)


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """Return `model_overview` that prints the model as text; large weights are never printed."""
    return tiered.get_pass("model_overview", text=True, header=header)


def search_fc_transpose(expr: Any) -> list[str]:
    """Return the weights that a Transpose permutes for a product: of a model or its main graph."""
    model = model_with(expr)
    return [
        value.name
        for graph in model.graphs()
        for node in graph.nodes_of("Transpose")
        if (value := node.given(0)).is_constant
        if any(reader.op_type in ("Gemm", "MatMul") for reader in node.output.readers)
    ]


def SimplifyFCTranspose(target_weight_name: Iterable[str] | None = None) -> Pass:
    """Return a pass that computes the Transposes of weights.

    Args:
        target_weight_name: the names of the weights, as from `search_fc_transpose`; all constants
            are folded without it.

    Raises:
        UsageError: it is one string; when the pass runs, that the model has no such constant.
    """
    if target_weight_name is None:
        return tiered.get_pass("fold_constant")
    wanted = listed("target_weight_name", target_weight_name)

    @tiered.module_pass(opt_level=2, name="simplify_fc_transpose", matches=["Transpose"])
    def simplify(model: Model, ctx: PassContext) -> None:
        weights = (value for graph in model.graphs() for value in graph.initializers)
        known = {value.name for value in weights if value.is_constant}
        if missing := [name for name in wanted if name not in known]:
            raise UsageError(f"the model has no constant {', '.join(map(repr, missing))}")
        for graph in model.graphs():
            for node in graph.nodes_of("Transpose"):
                value = node.given(0)
                if value.name not in wanted or value.const is None:
                    continue
                perm = node.attributes.get("perm")
                turned = np.ascontiguousarray(np.transpose(value.const, perm))
                graph.replace(node, [graph.constant(turned)])

    return simplify


def DenseToSparse(
    weight_name: Iterable[str] = (), weight_shape: Iterable[Iterable[int]] = ()
) -> Pass:
    """Return `dense_to_sparse` of some weights, however many of their elements are zero.

    Args:
        weight_name: the names of the weights, as from `sparse_dense.process_params`; without any,
            all that are mostly zeros.
        weight_shape: their shapes in BSR, checked against the model: data, indices and index
            pointers one after the other. ONNX stores coordinates, so they decide nothing.

    Raises:
        UsageError: there are other numbers of names and shapes, or, when the pass runs, the model
            has no such weight or other blocks.
    """
    names, shapes = listed("weight_name", weight_name), [list(shape) for shape in weight_shape]
    if shapes and len(shapes) != len(names):
        raise UsageError(
            f"DenseToSparse got {counted(len(names), 'name')} and {counted(len(shapes), 'shape')}"
        )
    store = tiered.get_pass("dense_to_sparse")
    if names:
        store = store.with_options(tensors=names, threshold=1.0)
    if not shapes:
        return store

    @tiered.module_pass(opt_level=0, analysis=True, name="check_bsr_shapes")
    def check(model: Model, ctx: PassContext) -> None:
        for name, shape in zip(names, shapes, strict=True):
            value = model.main.values.get(name)
            array = None if value is None else value.const
            if array is None or len(shape) != 5:
                continue  # dense_to_sparse names missing weights
            found = block_sparsity(array, (shape[1], shape[2])).bsr_shape
            if found != shape:
                raise UsageError(f"weight {name!r} has the BSR shape {found}, not {shape}")

    return tiered.Sequential([check, store], name="DenseToSparse")


def Legalize(legalize_map_attr_name: str = "FTVMLegalize", **options: Any) -> Pass:
    """Return `legalize`, by the rules of one map.

    Args:
        legalize_map_attr_name: the map: rules declared with `legalizes="name"`; TVM's own name
            stands for the default map.
        options: of `legalize`.
    """
    name = legalize_map_attr_name
    maps = ("default" if name == "FTVMLegalize" else name,)
    return tiered.get_pass("legalize", maps=maps, **options)
