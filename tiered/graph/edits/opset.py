"""Conversion of a model to another opset of the default domain: each node in the form of it.

All nodes of the main graph or of one local function are read first. What has no form at the new
opset is lowered where a lowering knows how, and is an entry of the error otherwise: nothing is half
converted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import onnx
from onnx import TensorProto

from tiered.graph.core.edit import Edit
from tiered.graph.core.schema import encode_attribute, schema_of
from tiered.graph.edits import operand_edits as edit_operands
from tiered.graph.edits.lowerings import lowered
from tiered.graph.opset.adapter import NoEquivalentForm, OperatorForm
from tiered.graph.opset.conversion import form_between, type_text
from tiered.support.errors import ModelError, OpsetError, UsageError
from tiered.support.numerics import Numerics

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value


class Blocked(NamedTuple):
    """A node that has no form at an opset."""

    node: str
    operator: str
    reason: str
    graph: str
    """The name of the graph or local function that holds it."""
    expands: bool = False
    """Whether the function body of the operator would have a form there."""

    def __str__(self) -> str:
        text = f"{self.graph}: node {self.node!r} ({self.operator}): {self.reason}"
        return f"{text}; {EXPANSION}" if self.expands else text


EXPANSION: Final = "--expand (numerics=reassociating) replaces it by its function body"
"""What an error says of a node that blocks an exact conversion alone."""


def convert_model(
    model: ModelState, version: int, *, ir: int = 0, numerics: Numerics = Numerics.EXACT
) -> None:
    """Convert the main graph, all bodies and all local functions to an opset.

    Args:
        model: the model.
        version: the opset of the default domain.
        ir: the IR version; 0 raises it only if the opset needs a newer one.
        numerics: beyond EXACT, a node without a form may become the function body of its operator.

    Raises:
        OpsetError: nodes have no form at the opset; `blocked` lists them all.
        UsageError: onnx does not know the opset, or the model cannot have the IR version.
    """
    check_version(version)
    with model.transaction():
        _convert_roots(model, (model.main, *model.functions), version, numerics)
        if ir or model.ir_version < ir_version_for(version):
            convert_ir(model, ir or ir_version_for(version))


def convert_root(root: Graph, version: int) -> None:
    """Convert the main graph or one local function, with its bodies, to an opset.

    Raises:
        OpsetError: nodes have no form at the opset; `blocked` lists them all.
        UsageError: onnx does not know the opset.
    """
    check_version(version)
    with root.model.transaction():
        _convert_roots(root.model, (root,), version, None)


def check_version(version: int) -> None:
    """Raise if onnx has no such opset.

    Raises:
        UsageError: it does not.
    """
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= version <= newest:
        raise UsageError(
            f"there is no opset {version}: onnx {onnx.__version__} has opsets 1 to {newest}"
        )


def _convert_roots(
    model: ModelState, roots: Sequence[Graph], version: int, numerics: Numerics | None
) -> None:
    """Convert the main graph or local functions; without `numerics`, the caller cannot expand.

    Raises:
        OpsetError: nodes have no form at the opset; `blocked` lists them all.
    """
    before, mark = roots[0].opset(), model.mark()
    training = () if roots[0].is_function else tuple(_blocked_training(model, version))
    reasons = _refusals(roots, version, numerics or Numerics.EXACT)
    if not reasons and not training:
        return
    model.undo_to(mark)
    expandable: Set[Node] = frozenset()
    if numerics is Numerics.EXACT:
        expandable = reasons.keys() - _refusals(roots, version, Numerics.REASSOCIATING).keys()
        model.undo_to(mark)
    blocked = (_blocked(node, reason, node in expandable) for node, reason in reasons.items())
    what = f"{model.label} cannot be converted from opset {before} to {version}"
    raise OpsetError(what, [*training, *blocked])


def _refusals(roots: Sequence[Graph], version: int, numerics: Numerics) -> dict[Node, str]:
    """Convert graphs as far as nodes have forms; return the others, with the reasons."""
    found = dict["Node", str]()
    for root in roots:
        found.update(_convert(root, version, numerics))
    return found


def _blocked_training(model: ModelState, version: int) -> Iterator[Blocked]:
    """Yield the nodes of training graphs, which the view leaves alone, that would change."""
    before = model.opset()
    for proto in model.training_nodes():
        if proto.domain not in ("", "ai.onnx"):
            continue
        schemas = [schema_of(proto.op_type, "", at) for at in (before, version)]
        since = {None if schema is None else schema.since_version for schema in schemas}
        if len(since) > 1:
            reason = "a node of training_info is not converted"
            yield Blocked(proto.name, proto.op_type, reason, "training_info")


def _convert(root: Graph, version: int, numerics: Numerics) -> dict[Node, str]:
    """Convert all nodes below a main graph or function; return those that block it, and why."""
    before = root.opset()
    if before in (0, version):
        return {}
    if before > onnx.defs.onnx_opset_version():
        raise ModelError(
            f"{root!r} has opset {before}; onnx {onnx.__version__} knows opsets up to "
            f"{onnx.defs.onnx_opset_version()}"
        )
    called = {function.id for function in root.model.functions}
    changed, blocked = list["Node"](), dict["Node", str]()
    nodes = (node for node in root.walk() if not node.domain and node.callee not in called)
    # Each with the node of the model that it is, or was lowered from.
    pending = [(node, node) for node in nodes]
    for node, origin in pending:
        try:
            form = form_between(node, before, version)
        except NoEquivalentForm as error:
            created = [] if node.graph is None else lowered(node, numerics=numerics)
            if created is None:
                blocked.setdefault(origin, str(error))
            else:
                pending += [(new, origin) for each in created for new in _with_bodies(each)]
        else:
            if form is not None:
                changed.append(node)
    if not blocked:
        # Only now: an operand may have been lowered after its reader was looked at.
        found = ((node, form_between(node, before, version)) for node in changed if node.is_live)
        forms = [(node, form) for node, form in found if form is not None]
        _set_import(root, version)
        _NodeWriter().write(forms)
    return blocked


def _with_bodies(node: Node) -> Iterator[Node]:
    if not node.domain:
        yield node
    for body in node.bodies:
        yield from (inner for inner in body.walk() if not inner.domain)


def _blocked(node: Node, reason: str, expands: bool) -> Blocked:
    root: Any = node.owner.root
    where = f"function {root.function_name}" if root.is_function else "main graph"
    return Blocked(node.label, node.op_type, reason, where, expands)


def _set_import(root: Graph, version: int) -> None:
    holder = root if root.is_function else root.model
    root.model.main._log(Edit.SET_OPSET, holder, dict(holder.opset_imports))
    holder.opset_imports[""] = version


class _NodeWriter:
    """Writes nodes in new forms; equal new constants of one graph are one."""

    def __init__(self) -> None:
        self._constants: dict[tuple[Any, ...], Value] = {}

    def write(self, forms: list[tuple[Node, OperatorForm]]) -> None:
        """Write the nodes, then remove the values that none of them reads any more."""
        read: dict[Value | None, None] = {}
        for node, form in forms:
            read.update(dict.fromkeys(node._inputs))
            self._write(node, form)
        for value in read:
            if value is not None and value.graph is not None:
                value.graph.discard(value)

    def _write(self, node: Node, form: OperatorForm) -> None:
        graph = node.owner
        proto = _written(node, form)
        if proto is not None:
            edit_operands.set_proto(graph, node, proto)
        reads = [self._attached(graph, value) for value in form.operands]
        if reads != node._inputs:
            graph.set_inputs(node, reads)

    def _attached(self, graph: Graph, value: Value | None) -> Value | None:
        if value is None or value.graph is not None:
            return value
        tensor = value.default
        assert tensor is not None
        array = tensor.numpy()
        # Objects of strings have no bytes to compare.
        content = array.tobytes() if array.dtype != object else id(value)
        key = (graph, tensor.dtype, array.shape, content)
        known = self._constants.get(key)
        if known is None:
            _allow_constant(graph, value)
            known = self._constants[key] = graph.constant(tensor, value.name)
        return known


def _allow_constant(graph: Graph, value: Value) -> None:
    """Raise the IR version where a constant would be a node of a dtype that the opset lacks.

    Before IR 4 an initializer is an input, and Constant is of floats alone before opset 9.
    """
    if graph.model.ir_version >= _INITIALIZERS:
        return
    schema = schema_of("Constant", "", graph.opset())
    if schema is not None and type_text(value) not in schema.outputs[0].types:
        convert_ir(graph.model, _INITIALIZERS)


def _written(node: Node, form: OperatorForm) -> onnx.NodeProto | None:
    """Return the proto with the operator and attributes of a form; None if it has them."""
    protos = node.attribute_protos().items()
    kept = {name: proto for name, proto in protos if not _is_new(proto, form)}
    new = [name for name in form.attributes if name not in kept]
    if not new and len(kept) == len(node.attribute_protos()) and form.op_type == node.op_type:
        return None
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    proto.op_type = form.op_type
    schema = schema_of(form.op_type, "", form.version)
    del proto.attribute[:]
    proto.attribute.extend(kept.values())
    proto.attribute.extend(encode_attribute(name, form.attributes[name], schema) for name in new)
    return proto


def _is_new(proto: onnx.AttributeProto, form: OperatorForm) -> bool:
    """Return whether a form lacks an attribute, or has another value of it."""
    return proto.name not in form.attributes or proto.name in form.changed


# --- The IR version: which one an opset goes with, and which one a model needs at least -----------

_IMPORTS, _INITIALIZERS, _FUNCTIONS, _OVERLOADS = 3, 4, 8, 10
_DTYPES: Final[Mapping[int, int]] = {
    **dict.fromkeys(
        (
            TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ,
            TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ,
        ), 9,
    ),
    **dict.fromkeys((TensorProto.INT4, TensorProto.UINT4), 10),
    TensorProto.FLOAT4E2M1: 11,
    TensorProto.FLOAT8E8M0: 12,
    **dict.fromkeys((TensorProto.INT2, TensorProto.UINT2), 13),
}  # fmt: skip
"""The IR version that brought a dtype."""


def ir_version_for(opset: int) -> int:
    """Return the IR version that came with an opset of the default domain, or before it."""
    versions: dict[tuple[str, int], int] = onnx.helper.OP_SET_ID_VERSION_MAP
    known: int = versions.get(("ai.onnx", opset), onnx.IR_VERSION)
    return known


def convert_ir(model: ModelState, version: int) -> None:
    """Set the IR version.

    Raises:
        UsageError: onnx does not know it, or the model has what it does not.
    """
    if version == model.ir_version:
        return
    if version > onnx.IR_VERSION:
        raise UsageError(f"no IR version {version}: onnx {onnx.__version__} has {onnx.IR_VERSION}")
    least, why = max(_needs(model))
    if version < least:
        raise UsageError(f"IR version {version} has no {why}; the model needs {least} or more")
    model.set_ir_version(version)


def _needs(model: ModelState) -> Iterator[tuple[int, str]]:
    """Yield IR versions that something in the model needs, and what."""
    yield _IMPORTS, "opset imports"
    if model.functions:
        yield _FUNCTIONS, "local functions"
    if any(function.overload for function in model.functions):
        yield _OVERLOADS, "overloaded functions"
    for graph in model.graphs():
        for value in graph.initializers:
            if not value.is_graph_input:
                yield _INITIALIZERS, "initializers that are no inputs"
        for value in graph.values.values():
            dtype = value.dtype
            if dtype is not None and dtype in _DTYPES:
                yield _DTYPES[dtype], onnx.TensorProto.DataType.Name(dtype).lower()
