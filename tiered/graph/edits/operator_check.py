"""The check of a new node against the schema of its operator.

The builder calls it before it makes the node, with the operator's newest form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tiered.graph.core.schema import Schema, attributes_of, input_names, operators_of, schema_of
from tiered.graph.opset.adapter import NoEquivalentForm
from tiered.graph.queries.formals import dtype_name, dtype_names, formal_of, known_dtype
from tiered.support.errors import OperatorError, did_you_mean

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.value import Value


def check_call(
    graph: Graph,
    op_type: str,
    domain: str,
    operands: Sequence[Value | None],
    attributes: Mapping[str, Any],
    outputs: int | None,
) -> None:
    """Check a node in the newest form of its operator.

    A form that only the graph's own opset has is checked by that opset's schema.

    Raises:
        OperatorError: there is no such operator or attribute, an attribute is missing, or the
            operator does not take this number of operands or outputs, or these dtypes.
        NoEquivalentForm: the dtypes do not fit, in a model that was invalid when it was loaded.
    """
    newest = schema_of(op_type, domain)
    if newest is None:
        check_operator(graph, op_type, domain)
        return
    version = graph.opset(domain) or newest.since_version
    own = newest if version >= newest.since_version else schema_of(op_type, domain, version)
    _check_attributes(graph, newest, own or newest, attributes)
    count = len(operands)
    while count and operands[count - 1] is None:
        count -= 1
    forms = (newest,) if own is None else (newest, own)
    if not any(form.min_input <= count <= form.max_input for form in forms):
        takes = _counted(newest.min_input, newest.max_input, "operand")
        raise call_error(graph, op_type, domain, f"it has {takes}, not {count}")
    if outputs is not None and not any(outputs <= form.max_output for form in forms):
        takes = _counted(newest.min_output, newest.max_output, "output")
        raise call_error(graph, op_type, domain, f"it has {takes}, not {outputs}")
    if count > newest.max_input or count < newest.min_input:
        return
    for place, value in enumerate(operands[:count]):
        if value is None and place < newest.min_input and not formal_of(newest, place).is_optional:
            name = formal_of(newest, place).name
            raise call_error(graph, op_type, domain, f"operand {place} ({name}) is missing")
    found = dtype_mismatch(newest, operands)
    if found is not None:
        before = graph.model.complaint_as_loaded()
        if before is not None:
            raise NoEquivalentForm(f"{op_type}: {found}; the model was invalid: {before}")
        raise call_error(graph, op_type, domain, found)


def _counted(least: int, most: int, what: str) -> str:
    takes = f"{least}" if least == most else f"{least} to {most}"
    return f"{takes} {what}{'' if takes == '1' else 's'}"


def check_operator(graph: Graph, op_type: str, domain: str) -> None:
    """Check that onnx defines an operator, if the domain is one of onnx's own.

    Raises:
        OperatorError: it does not, and the model has no local function of this name.
    """
    if domain and domain.split(".")[:2] != ["ai", "onnx"]:
        return
    if schema_of(op_type, domain) is not None:
        return
    if any(function.id[:2] == (domain, op_type) for function in graph.model.functions):
        return
    known = operators_of(domain)
    close = did_you_mean(op_type, known)
    raise call_error(graph, op_type, domain, f"onnx has no operator {op_type!r}{close}")


def _check_attributes(
    graph: Graph, newest: Schema, own: Schema, attributes: Mapping[str, Any]
) -> None:
    known = attributes_of(newest)
    for name in attributes:
        if name in known or name in attributes_of(own):
            continue
        if name in input_names(newest):
            found = f"{name!r} is operand {input_names(newest).index(name)}, not an attribute"
        else:
            has = ", ".join(sorted(known)) or "none"
            found = f"it has no attribute {name!r}; it has {has}{did_you_mean(name, known)}"
        if (before := graph.model.complaint_as_loaded()) is not None:
            raise NoEquivalentForm(f"{newest.name}: {found}; the model was invalid: {before}")
        raise call_error(graph, newest.name, newest.domain, found)
    for name in _required(newest):
        if attributes.get(name) is None and name in attributes_of(own):
            raise call_error(graph, newest.name, newest.domain, f"attribute {name!r} is missing")


@lru_cache(maxsize=4096)
def _required(schema: Schema) -> tuple[str, ...]:
    specs: dict[str, Any] = dict(attributes_of(schema))
    return tuple(name for name, spec in specs.items() if spec.required)


def call_error(graph: Graph, op_type: str, domain: str, found: str) -> OperatorError:
    """Return the error that names the pass, the node that it rewrites and the call."""
    gate = graph.model.gate
    call = f'graph.op("{domain}").{op_type}' if domain else f"graph.op.{op_type}"
    by = f"{gate.pass_name}: " if gate.pass_name else ""
    at = f" (at node {gate.at!r})" if gate.at else ""
    return OperatorError(f"{by}{call}{at}: {found}")


def dtype_mismatch(schema: Schema, operands: Sequence[Value | None]) -> str | None:
    """Return a description of invalid operand dtypes; None if none is known to be invalid."""
    bound: dict[str, tuple[str, int]] = {}
    for place, value in enumerate(operands):
        dtype = None if value is None else known_dtype(value)
        if dtype is None:
            continue
        formal = formal_of(schema, place)
        if dtype not in formal.dtypes:
            takes = dtype_names(formal)
            return f"operand {place} ({formal.name}) is {dtype_name(dtype)}; it takes {takes}"
        other, wanted = bound.setdefault(formal.parameter, (formal.name, dtype))
        if wanted != dtype:
            return (
                f"operand {place} ({formal.name}) is {dtype_name(dtype)}, and {other} is "
                f"{dtype_name(wanted)}; they must have one dtype: "
                "insert a Cast, or convert the constant"
            )
    return None
