"""Testing passes: what one makes of a model, that it means the same, and why it does nothing.

Public, for passes of third parties too. Models are `onnx.parser` text; the header may be left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import onnx
from onnx import numpy_helper, parser, printer

from tiered.context import PassContext
from tiered.graph import Graph, Model, Node, Value
from tiered.passes import Pass
from tiered.pipeline import get_pass
from tiered.runtime import Session, make_inputs, run_reference
from tiered.runtime.compare.outputs import compare
from tiered.runtime.inputs.bound_model import BoundModel
from tiered.support.errors import RuntimeFailure, words_of
from tiered.targets import Backend

HEADER: Final = '<ir_version: 10, opset_import: ["" : {opset}{others}]>'

Runtime = Literal["onnxruntime", "reference", "none"]


def parse(text: str | onnx.ModelProto, *, opset: int = 21) -> onnx.ModelProto:
    """Return the model of ONNX text; the default header is IR 10, `opset` and "com.microsoft"."""
    if isinstance(text, onnx.ModelProto):
        # What the text cannot say: training info, annotations, external data.
        return text
    text = text.strip()
    if not text.startswith("<"):
        others = ', "com.microsoft" : 1' if "com.microsoft." in text else ""
        graph = f"g {text}" if text.startswith("(") else text
        text = f"{HEADER.format(opset=opset, others=others)} {graph}"
    try:
        return parser.parse_model(text)
    except parser.ParseError as error:
        raise AssertionError(f"the model text does not parse: {words_of(error)}") from error


def assert_rewrites(
    pass_: str | Pass,
    before: str | onnx.ModelProto,
    after: str | onnx.ModelProto,
    *,
    opset: int = 21,
    runtime: Runtime = "onnxruntime",
    backend: Backend | str | None = None,
    **options: Any,
) -> None:
    """Assert that a pass makes one model into another, and that the two compute the same.

    The result is compared up to the names and the order of what the interface does not show, held
    against onnx.checker, and given to the pass again, which must find nothing to do. Both models
    run on ordinary values, on varied ones (with offsets, zeros, constant rows, over decades), and
    on special ones (±0, ±Inf, NaN, denormals, the largest), with two sizes of each symbolic dim and
    with none, and must agree as the pass promises; special values only if it promises `exact`. The
    interface must stay byte for byte, unless the pass says that it changes it.

    Args:
        pass_: the pass, or its name in the registry.
        before, after: models as text; the header is supplied. A ModelProto does too.
        opset: of the default domain, where the text has no header.
        runtime: what runs the models; "reference" where onnxruntime has no kernel, "none" where
            nothing has.
        backend: the target, for passes that need operators of one.
        options: of the pass.
    """
    tried = _pass_of(pass_, options)
    source = parse(before, opset=opset)
    model = Model.from_proto(source)
    mark = model.mark()
    _apply(tried, model, backend)
    assert model.changed_since(mark), f"{tried.name} did nothing"
    result = model.to_proto()
    expected = parse(after, opset=opset)
    assert _canonical(result) == _canonical(expected), (
        f"{tried.name} made\n{printer.to_text(result)}\nnot\n{printer.to_text(expected)}"
    )
    if not tried.info.changes_interface:
        _assert_same_interface(tried, source, result)
    model.check_view()
    onnx.checker.check_model(result, full_check=True)
    # Types that are known better now are no news for the pass that made them so.
    model.refresh_types()
    mark = model.mark()
    _apply(tried, model, backend)
    assert not model.changed_since(mark), f"{tried.name} is not done after one run"
    if runtime != "none":
        _assert_same_outputs(tried, source, result, runtime)


def assert_unchanged(
    pass_: str | Pass,
    text: str | onnx.ModelProto,
    *,
    because: str | None = None,
    opset: int = 21,
    backend: Backend | str | None = None,
    config: Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Assert that a pass leaves a model alone, and says why.

    Args:
        pass_: the pass, or its name in the registry.
        text: the model; the header is supplied.
        because: a part of a reason that the pass must give; None where it has nothing to say.
        opset: of the default domain, where the text has no header.
        backend: the target, for passes that need operators of one.
        config: config options of the context.
        options: of the pass.
    """
    tried = _pass_of(pass_, options)
    model = Model.from_proto(parse(text, opset=opset))
    model.refresh_types()
    mark = model.mark()
    reasons = _apply(tried, model, backend, config)
    assert not model.changed_since(mark), (
        f"{tried.name} made\n{printer.to_text(model.to_proto())}\nwhere it should do nothing"
    )
    if because is not None:
        assert any(because in reason for reason in reasons), (
            f"{tried.name} gave {reasons or 'no reason'}, not {because!r}"
        )


def _pass_of(pass_: str | Pass, options: Mapping[str, Any]) -> Pass:
    if not isinstance(pass_, Pass):
        return get_pass(pass_, **options)
    return pass_.with_options(**options) if options else pass_


def _apply(
    tried: Pass,
    model: Model,
    backend: Backend | str | None,
    config: Mapping[str, Any] | None = None,
) -> list[str]:
    """Run a pass whatever the level; return the reasons for which it left nodes alone."""
    ctx = PassContext.isolated(opt_level=4, backend=backend, config=config)
    tried.apply(model, ctx)
    return [remark.reason for remark in ctx.remarks if remark.kind == "missed"]


def _assert_same_interface(tried: Pass, before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    for kind in ("input", "output"):
        was, has = ([*getattr(model.graph, kind)] for model in (before, after))
        assert was == has, f"{tried.name} changed the {kind}s of the model"


def _assert_same_outputs(
    tried: Pass, before: onnx.ModelProto, after: onnx.ModelProto, runtime: Runtime
) -> None:
    promise = tried.info.promise
    numerics = promise.numerics
    first, second = _run(before, runtime), _run(after, runtime)
    for at, feeds in enumerate(_feeds(before, has_specials=numerics == "exact")):
        try:
            expected = first(feeds)
        except RuntimeFailure:
            # Special values may lie outside of what the model itself takes, an index say.
            if at == 0:
                raise
            continue
        try:
            actual = second(feeds)
        except RuntimeFailure as error:
            raise AssertionError(f"{tried.name} made a model that fails: {error}") from error
        comparison = compare(expected, actual, promise)
        assert comparison.ok, f"{tried.name} changed the outputs: {comparison}"


def _feeds(model: onnx.ModelProto, *, has_specials: bool) -> Iterator[Mapping[str, Any]]:
    """Yield inputs: ordinary, varied and special ones, of other sizes, and empty tensors."""
    bound = BoundModel(model)
    # A small tensor has few of the special values: three draws of them beside the varied one.
    for seed in range(5 if has_specials else 4):
        special = has_specials and 1 <= seed <= 3
        varied = seed >= 2 and not special
        inputs = make_inputs(
            model, seed=seed, binding=seed % 2, special=special, varied=varied, bound=bound
        )
        yield inputs.feeds
    if inputs.dims:
        yield make_inputs(model, dims=dict.fromkeys(inputs.dims, 0), bound=bound).feeds


def _run(model: onnx.ModelProto, runtime: Runtime) -> Any:
    if runtime == "onnxruntime":
        return Session(model).run
    return lambda feeds: run_reference(model, feeds)


# --- comparing models -----------------------------------------------------------------------------


def _canonical(proto: onnx.ModelProto) -> str:
    """Return the same string for models that differ only in internal names."""
    model = Model.from_proto(proto)
    lines = [_canonical_graph(model.main, {})]
    for function in sorted(model.functions, key=lambda function: function.id):
        lines.append(f"{function.id} {_canonical_graph(function, {})}")
    return "\n".join(lines)


def _canonical_graph(graph: Graph, outer: dict[Value, str]) -> str:
    names = dict(outer)
    depth = graph.depth
    is_interface = graph.is_main
    for at, value in enumerate(graph.inputs):
        names[value] = value.name if is_interface else f"in{depth}.{at}"
    lines = [
        f"input {names[value]}{_declared(graph, at)}{_contents(value.default)}"
        for at, value in enumerate(graph.inputs)
    ]
    for node in _from_outputs(graph):
        for read in node.reads:
            if read not in names:
                names[read] = f"c{depth}.{len(names)}"
                lines.append(f"{names[read]} ={_contents(read.default)}")
        for made in node.outputs:
            if made is not None:
                names[made] = f"v{depth}.{len(names)}"
        lines.append(_canonical_node(node, names))
    for value in graph.initializers:
        if value not in names:
            names[value] = f"c{depth}.{len(names)}"
            lines.append(f"unused{_contents(value.default)}")
    for value in graph.outputs:
        name = f" as {value.name}" if is_interface else ""
        lines.append(f"output {names[value]}{name}")
    return "\n".join("  " * depth + line for line in lines)


def _declared(graph: Graph, at: int) -> str:
    return "" if graph.is_function else f" {graph.inputs[at].type}"


def _from_outputs(graph: Graph) -> list[Node]:
    """Return the nodes in the order in which the outputs, then the rest, need them."""
    order: dict[Node, None] = {}
    starts = [value.producer for value in graph.outputs if value.producer is not None]
    for start in (*starts, *graph.topological_order()):
        stack = [(start, False)]
        while stack:
            node, is_ready = stack.pop()
            if node in order:
                continue
            if is_ready:
                order[node] = None
                continue
            stack.append((node, True))
            for value in reversed(node.reads):
                if value.producer is not None and value.graph is graph:
                    stack.append((value.producer, False))
    return list(order)


def _canonical_node(node: Node, names: dict[Value, str]) -> str:
    outputs = ", ".join("" if value is None else names[value] for value in node.outputs)
    inputs = ", ".join("" if value is None else names[value] for value in node.inputs)
    attributes = " ".join(
        f"{name}={_attribute(value)}" for name, value in sorted(node.settings.items())
    )
    line = f"{outputs} = {node.domain}.{node.op_type}({inputs}) {attributes}"
    for body in node.bodies:
        line += f"\n{body.attribute}:\n{_canonical_graph(body, names)}"
    return line


def _attribute(value: Any) -> str:
    return _contents(value) if hasattr(value, "nbytes") else repr(value)


def _contents(tensor: Any) -> str:
    if tensor is None:
        return ""
    if tensor.is_sparse:
        return f" sparse {tensor.key()!r}"
    array = numpy_helper.to_array(tensor.to_proto(""))
    return f" {array.dtype}{list(array.shape)} {array.ravel().tolist()}"
