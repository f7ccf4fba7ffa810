"""Every pass of the compat modules over random models: `python -m tests.conformance.compat_passes`.

The models have dead nodes, equal nodes and nested bodies. A pass gives a valid model with the same
outputs, within its promise, or it is refused with an error of tiered.
"""

import contextlib
import io
import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import cyclopts
import onnx

import tiered
from tests.conformance import refusals
from tests.conformance.fuzz_passes import NotRunnable, trial
from tests.conformance.judge import Feeds, Outputs, open_on_onnxruntime
from tests.conformance.random_graphs import SIZES, random_feeds, random_model
from tiered import DataType, Model, PassContext, TieredError
from tiered.compat import (
    executorch,
    onnx_passes,
    onnxoptimizer,
    onnxsim,
    onnxslim,
    poprt,
    ppq,
    tvm,
)
from tiered.compat.ppq.formatting import (
    GraphDecomposer,
    GraphFormatter,
    GraphMerger,
    GraphReplacer,
    format_graph,
)
from tiered.compat.tvm.expressions.functors import ExprMutator
from tiered.graph.queries.op_traits import RANDOM
from tiered.passes import Pass
from tiered.support.errors import RuntimeFailure
from tiered.support.numerics import Numerics

Run = Callable[[onnx.ModelProto], onnx.ModelProto]
Entry = tuple[str, Run, Numerics | None]
"""A name, a call, and the promise about the outputs: None for passes of the interface."""
_LOOSE = {Numerics.LOSSY, Numerics.APPROXIMATE}
"""These promise no tolerance for random numbers; only validity is checked."""


_LIMITS = (
    "is not a registered function/op",  # operators of another runtime, such as those of QONNX
    "Type 'tensor(float8",  # no function takes 8-bit floats
    "Type 'tensor(bfloat16)'",  # bodies of operators that it inlines
    "(op_type:Constant): output has unsupported type",  # integers in functions before opset 9
)
"""What onnxruntime says where a valid model of a pass is beyond it."""


def all_passes() -> Iterator[Entry]:
    """Yield each pass of the compat modules."""
    for name in tiered.pass_names():
        info = tiered.get_pass(name).info
        promise = None if info.changes_interface else info.numerics
        camel = "".join(part.title() for part in name.split("_"))
        yield f"tvm.{camel}", _of_tvm(camel), promise
        yield f"poprt.{name}", _of_poprt(name), promise
    for facade in (GraphFormatter, GraphMerger, GraphDecomposer, GraphReplacer):
        for method, names in facade.passes.items():
            worst = max((tiered.get_pass(name).info.numerics for name in names), key=_looseness)
            yield f"ppq.{facade.__name__}.{method}", _of_ppq(facade, method), worst
    yield "ppq.GraphFormatter.format_resize", _of_ppq(GraphFormatter, "format_resize"), None
    yield "ppq.format_graph", _formatted, None
    yield "ppq.relinked", _relinked, Numerics.EXACT
    yield "ppq.inserted", _inserted, Numerics.EXACT
    yield "ppq.reread", _reread, Numerics.EXACT
    yield "tvm.ExprMutator", _rebuilt, Numerics.EXACT
    yield "tvm.update", _updated, Numerics.EXACT
    yield from _of_executorch()
    for group in ("cleanup", "constant-folding", "eliminate", "streamline", "verify"):
        group_passes = tiered.Sequential(onnx_passes.collect([group]))
        infos = [leaf.info for leaf in group_passes.leaves()]
        worst = max((info.numerics for info in infos), key=_looseness)
        keeps = not any(info.changes_interface for info in infos)
        yield f"onnx_passes.{group}", group_passes.apply, worst if keeps else None
    yield "onnx_passes.rule", onnx_passes.pass_of(_Commutes).apply, Numerics.EXACT
    yield "onnxoptimizer.optimize", onnxoptimizer.optimize, Numerics.REASSOCIATING
    yield "onnxslim.slim", _slimmed, Numerics.REASSOCIATING
    yield "onnxsim.simplify", _simplified, Numerics.REASSOCIATING


def _simplified(model: onnx.ModelProto) -> onnx.ModelProto:
    return onnxsim.simplify(model, initializers_as_constants=False)[0]


def _slimmed(model: onnx.ModelProto) -> onnx.ModelProto:
    made = onnxslim.slim(model)
    assert made is not None
    return made


class _Commutes(onnx_passes.RewriteRulePass):
    """a * b  =>  b * a, which matches again."""

    def pattern(self, op: Any, a: Any, b: Any) -> Any:
        return op.Mul(a, b)

    def rewrite(self, op: Any, a: Any, b: Any) -> Any:
        return op.Mul(b, a)


class _Reconnects(executorch.PassBase):
    """Let a copy of each operator with one output take its place, by the nodes of torch.fx."""

    def call(self, graph_module: Any) -> executorch.PassResult:
        graph = graph_module.graph
        for node in graph.nodes:
            operator = getattr(node.subject, "op_type", "")
            if not operator or node.subject.bodies or operator in RANDOM or len(node.users) == 0:
                continue
            if len(node.subject.outputs) != 1 or node.subject.domain:
                continue
            with graph.inserting_after(node):
                new = graph.node_copy(node)
            node.replace_all_uses_with(new)
            graph.erase_node(node)
        graph.eliminate_dead_code()
        graph_module.recompile()
        return executorch.PassResult(graph_module, True)


def _of_executorch() -> Iterator[Entry]:
    for kind in (executorch.ExportPass, executorch.RemoveDetachPass, _Reconnects):
        yield f"executorch.{kind.__name__}", _of_class(kind), Numerics.EXACT
    yield "executorch.ScalarToTensorPass", _of_class(executorch.ScalarToTensorPass), None


def _of_class(kind: Callable[[], executorch.PassBase]) -> Run:
    def run(model: onnx.ModelProto) -> onnx.ModelProto:
        made: onnx.ModelProto = kind()(model).graph_module
        return made

    return run


def _formatted(model: onnx.ModelProto) -> onnx.ModelProto:
    view = Model.from_proto(model)
    format_graph(ppq.BaseGraph(view.main))
    view.check_view()
    return view.to_proto()


def _inserted(model: onnx.ModelProto) -> onnx.ModelProto:
    """Insert an Identity on each variable that has readers, and between operations."""
    view = Model.from_proto(model)
    graph = ppq.BaseGraph(view.main)
    both = graph.inputs.keys() & graph.outputs.keys()
    read = [name for name, each in graph.variables.items() if each.dest_ops and _has_kernel(each)]
    for name in read:
        if name in both:
            continue
        graph.insert_op_on_var(graph.create_operation("Identity"), name)
    for lower in graph.topological_sort():
        for upper in graph.get_upstream_operations(lower):
            shared = [each for each in upper.outputs if each is not None and each in lower.inputs]
            if not all(map(_has_kernel, shared)):
                continue
            if len(shared) == 1 and lower.inputs.count(shared[0]) == 1:
                new = graph.create_operation("Identity")
                graph.insert_op_between_ops(new, upper, lower)
    view.check_view()
    return view.to_proto()


def _has_kernel(variable: ppq.Variable) -> bool:
    """Return whether onnxruntime has an Identity of a variable's dtype, as far as it is known."""
    dtype = variable._value.dtype
    return dtype is None or DataType(dtype).has_identity


def _reread(model: onnx.ModelProto) -> onnx.ModelProto:
    """Let each operation read its operands anew, through its list."""
    view = Model.from_proto(model)
    for graph in list(view.graphs()):
        for operation in ppq.BaseGraph(graph).topological_sort():
            for at, variable in enumerate(list(operation.inputs)):
                operation.inputs[at] = None if at >= _needed(operation) else variable
                operation.inputs[at] = variable
                if variable is not None:
                    variable.dest_ops.append(operation)
            operation.inputs[:] = list(operation.inputs)
    view.check_view()
    return view.to_proto()


def _needed(operation: ppq.Operation) -> int:
    """Return how many operands an operation cannot do without."""
    schema = operation._node.schema
    return len(operation.inputs) if schema is None else int(schema.min_input)


class _Rebuilds(ExprMutator):
    """Makes each call anew, and reads constants through an Identity."""

    def visit_call(self, call: Any) -> Any:
        made = super().visit_call(call)
        if made is not call or call.node.bodies or call.op.operators[0] in RANDOM:
            return made
        return tvm.Call(call.op, call.args, call.attrs)

    def visit_constant(self, const: Any) -> Any:
        (value,) = const.values
        known = value.dtype is not None and DataType(value.dtype).has_identity
        return tvm.copy(const) if known and value.dtype != DataType.STRING else const


def _rebuilt(model: onnx.ModelProto) -> onnx.ModelProto:
    @tvm.transform.function_pass(opt_level=0)  # type: ignore[untyped-decorator]  # as TVM's users do
    def rebuild(func: Any, mod: Any, ctx: Any) -> Any:
        return _Rebuilds().visit(func)

    made: onnx.ModelProto = rebuild.apply(model)
    return made


def _updated(model: onnx.ModelProto) -> onnx.ModelProto:
    """Take over a model into a module with another main graph."""
    other = tvm.IRModule.from_expr(Model.from_proto(model).copy())
    other["main"] = tvm.IRModule.from_expr(model)["main"]
    assert tvm.structural_equal(other, model)
    return other.to_proto()


def _relinked(model: onnx.ModelProto) -> onnx.ModelProto:
    """Remove operations, and let new ones of the same kind compute what stayed."""
    view = Model.from_proto(model)
    graph = ppq.BaseGraph(view.main)
    for old in graph.topological_sort():
        node, (result, *others), twin = old._node, old.outputs, old.copy()
        if node.bodies or node.op_type in RANDOM or others or not result or not result.dest_ops:
            continue
        inputs = [None if each is None else each._value for each in old.inputs]
        graph.append_operation(twin)
        graph.remove_operation(old)
        twin._node.owner.set_inputs(twin._node, inputs)
        result.source_op = twin
    view.check_view()
    return view.to_proto()


def _looseness(numerics: Numerics) -> int:
    return list(Numerics).index(numerics)


def _of_tvm(name: str) -> Run:
    def run(model: onnx.ModelProto) -> onnx.ModelProto:
        pass_: Pass = getattr(tvm, name)()
        return pass_.apply(model)

    return run


def _of_poprt(name: str) -> Run:
    def run(model: onnx.ModelProto) -> onnx.ModelProto:
        made: onnx.ModelProto = poprt.get_pass(name).run(model)
        return made

    return run


def _of_ppq(facade: type, method: str) -> Run:
    def run(model: onnx.ModelProto) -> onnx.ModelProto:
        view = Model.from_proto(model)
        getattr(facade(ppq.BaseGraph(view.main)), method)()
        return view.to_proto()

    return run


def faults_of(seed: int, passes: list[Entry]) -> Iterator[str]:
    """Yield what is wrong with the results of passes on one random model.

    Raises:
        NotRunnable: onnxruntime does not run the model.
    """
    source = random.Random(seed)
    model = random_model(source, source.randint(6, 24))
    try:
        open_on_onnxruntime(model)
        feeds = random_feeds(source, model, SIZES)
        expected = open_on_onnxruntime(model)(feeds)
    except RuntimeFailure as error:
        raise NotRunnable(str(error)) from error
    before = model.SerializeToString(deterministic=True)
    for name, run, promise in passes:
        with contextlib.redirect_stdout(io.StringIO()), PassContext.isolated():
            fault = _fault_of(run, model, feeds, expected, promise)
        if fault is None and model.SerializeToString(deterministic=True) != before:
            fault = "the argument was edited"
        if fault is not None:
            yield f"seed {seed}, {name}: {fault}"


def _fault_of(
    run: Run,
    model: onnx.ModelProto,
    feeds: Feeds,
    expected: Outputs,
    promise: Numerics | None,
) -> str | None:
    try:
        made = run(model)
    except TieredError:
        return None  # refused by name
    except TypeError as error:
        return None if "missing" in str(error) else f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001  # whatever it is, it is the fault to report
        return f"{type(error).__name__}: {error}"
    if made == model:
        return None
    complaint = _complaint(made)
    if complaint is not None and _complaint(model) is None:
        return f"invalid: {complaint[:300]}"
    if promise is None:
        return None
    try:
        outputs = open_on_onnxruntime(made)(feeds)
    except RuntimeFailure as error:
        if promise in _LOOSE and "NOT_IMPLEMENTED" in str(error):
            return None  # halves lack kernels; the passes note it
        if refusals.is_known([made], error):
            return None
        if any(reason in str(error) for reason in _LIMITS):
            return None
        return f"does not run: {str(error)[:300]}"
    if promise in _LOOSE:
        return None
    level = 2 if promise is Numerics.EXACT else 3
    return trial("inputs", model, dict(feeds), expected).fault(level, made, outputs)


def _complaint(model: onnx.ModelProto) -> str | None:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return str(error)
    return None


def main(*, minutes: float = 3.0, seed: int = 0, only: str = "") -> None:
    """Run all passes over random models, and print what is wrong.

    Args:
        minutes: for how long; no model is begun later.
        seed: the number of the first model.
        only: a part of the names of the passes to run.
    """
    passes = [entry for entry in all_passes() if only in entry[0]]
    end, found, tried = time.monotonic() + 60 * minutes, 0, 0
    for number in itertools.count(seed):
        if time.monotonic() > end:
            break
        try:
            for fault in faults_of(number, passes):
                found += 1
                print(fault, flush=True)
            tried += 1
        except NotRunnable:
            continue
    print(f"{tried} models, {len(passes)} passes, {found} faults")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    cyclopts.run(main)
