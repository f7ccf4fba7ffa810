"""Profiles as TOML: read a file into a Backend, or report where it is wrong."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from tiered.graph.core.dtypes import DataType, integer_info
from tiered.graph.core.schema import operators_of
from tiered.support.errors import BackendError, TieredError, did_you_mean
from tiered.support.operator_name import operator_name
from tiered.support.toml_files import read_toml
from tiered.targets.backend import (
    API_VERSION,
    Backend,
    Shapes,
    Unlisted,
    Verification,
)
from tiered.targets.custom import CustomOperator
from tiered.targets.entries import (
    Groups,
    TomlTable,
    boolean,
    bounds,
    bounds_from,
    bounds_of_elements,
    checked,
    count,
    dtype,
    dtypes_in,
    integer,
    mapping,
    number,
    one_of,
    pairs_of_dtypes,
    sequence,
    string,
    strings,
)
from tiered.targets.operator_rule import (
    ANY,
    AttributeRule,
    OperatorRule,
    Substitute,
    operand_names,
    type_keys,
)
from tiered.targets.pipeline_edits import PipelineEdit
from tiered.targets.quantized import FixedScale, Quantization
from tiered.targets.shared_rules import Layout, QuantizationForm

_OWN_DOMAINS: Final = ("ai.onnx", "com.microsoft")
"""The domains of onnxruntime's own operators."""

Parent = Callable[[str], Mapping[str, Any]]


def read_backend(path: str | os.PathLike[str], parent: Parent) -> Backend:
    """Return the backend that a TOML file describes.

    Args:
        path: the file.
        parent: returns the table of another profile by its name, for `extends`.

    Raises:
        BackendError: the file cannot be read, or has an invalid entry.
    """
    return backend_of(read_table(path), os.fspath(path), parent)


def with_known_types(backend: Backend, where: str) -> Backend:
    """Return the backend after checking the names of operators, and the keys of `types`.

    Raises:
        BackendError: onnx has no such operator, or a key is no operand or type parameter of any
            version of its operator.
    """
    _check_operators(backend, where)
    for (domain, op_type), rules in backend.operators.items():
        _check_operands(domain, op_type, rules, where)
        known = type_keys(op_type, domain)
        for key in (key for rule in rules for key in rule.types):
            if known and key not in known and not any(rule.signature != ((), ()) for rule in rules):
                named = operator_name(domain, op_type)
                raise BackendError(
                    f"{where}: operators.{named}.types: no version of {named} has an operand or "
                    f"type parameter {key!r}{did_you_mean(key, known)} "
                    f"(there are {', '.join(sorted(known))})"
                )
    return backend


def _check_operands(domain: str, op_type: str, rules: Sequence[OperatorRule], where: str) -> None:
    """Check the names of the inputs that must be constants, or within bounds.

    Raises:
        BackendError: the operator has no such input.
    """
    for rule in rules:
        known = operand_names(op_type, domain) or _names(rule.signature[0])
        for key, names in (("constant", rule.constant), ("elements", tuple(rule.elements))):
            for name in names:
                if known and name not in known:
                    named = operator_name(domain, op_type)
                    raise BackendError(
                        f"{where}: operators.{named}.{key}: {named} has no input {name!r}"
                        f"{did_you_mean(name, known)} (there are {', '.join(known)})"
                    )


def _names(signature: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a signature: X of `X:T`."""
    return tuple(entry.partition(":")[0] for entry in signature)


def read_table(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the table of a TOML file.

    Raises:
        BackendError: the file cannot be read, or is no TOML.
    """
    return read_toml(path, BackendError)


def backend_of(table: Mapping[str, Any], where: str, parent: Parent) -> Backend:
    """Return the backend that a table describes; `where` is named in errors.

    Raises:
        BackendError: the table has an invalid entry.
    """
    whole = TomlTable(extended(table, where, parent), where)
    version = whole.take("api_version", integer, None)
    if version is None or not 1 <= version <= API_VERSION:
        found = "none" if version is None else str(version)
        raise BackendError(f"{where}: api_version: expected 1 to {API_VERSION}, found {found}")
    name = whole.take("name", string, "")
    if not name:
        raise BackendError(f"{where}: name: expected the name of the backend, found none")
    groups = {
        group: checked(dtypes_in({}), members, f"{where}: groups.{group}")
        for group, members in whole.take("groups", mapping, {}).items()
    }
    dtypes = whole.table("dtypes")
    quantization = whole.table("quantization")
    verification = whole.table("verification")
    backend = Backend(
        name=name,
        api_version=version,
        doc=whole.take("doc", string, ""),
        sources=whole.take("sources", strings, ()),
        limits=whole.take("limits", strings, ()),
        shapes=whole.take("shapes", one_of(Shapes), "dynamic"),
        opset=whole.take("opset", bounds_from(1), ANY),
        ir_version=whole.take("ir_version", bounds_from(1), ANY),
        max_rank=whole.take("max_rank", count, None),
        layout=whole.take("layout", one_of(Layout), "any"),
        layouts={
            op_type: checked(one_of(Layout), layout, f"{where}: layouts.{op_type}")
            for op_type, layout in whole.take("layouts", mapping, {}).items()
        },
        unlisted=whole.take("unlisted", one_of(Unlisted), "refused"),
        activations=dtypes.take("activations", dtypes_in(groups), frozenset()),
        weights=dtypes.take("weights", dtypes_in(groups), frozenset()),
        emulated=dtypes.take("emulated", pairs_of_dtypes, {}),
        quantization=_quantization(quantization),
        verification=Verification(
            rtol=verification.take("rtol", number, None),
            atol=verification.take("atol", number, None),
            min_cosine=verification.take("min_cosine", number, None),
        ),
        operators={
            _operator(name): _rules(entry, groups, f"{where}: operators.{key}")
            for key, entry in whole.take("operators", mapping, {}).items()
            for name in key.split(",")
        },
        substitutes={
            _operator(name): _substitutes(entry, groups, f"{where}: substitute.{name}")
            for name, entry in whole.take("substitute", mapping, {}).items()
        },
        custom_operators=_custom_operators(whole, where),
        edits=tuple(
            _edit(entry, f"{where}: pipeline[{at}]", name)
            for at, entry in enumerate(whole.take("pipeline", sequence, ()))
        ),
    )
    for below in (whole, dtypes, quantization, verification):
        below.end()
    _check_substitutes(backend, where)
    return backend


def _check_operators(backend: Backend, where: str) -> None:
    """Raise if a name of the standard is no operator, unless the profile defines it."""
    defined = {operator.key for operator in backend.custom_operators}
    for key, rules in backend.operators.items():
        if key not in defined and all(rule.signature == ((), ()) for rule in rules):
            _check_operator(*key, f"{where}: operators")
    quantization = backend.quantization
    lists: dict[str, Iterable[str]] = {
        "layouts": backend.layouts,
        "quantization: operators": quantization.operators,
        "quantization: integer_results": quantization.integer_results,
        "quantization: per_tensor": quantization.per_tensor,
        "quantization: unsigned_weights": quantization.unsigned_weights,
        "quantization: fixed_results": quantization.fixed_results,
    }
    for place, names in lists.items():
        for name in names:
            if not backend.rules(name):
                _check_operator("", name, f"{where}: {place}")


def _check_operator(domain: str, op_type: str, where: str) -> None:
    known = operators_of(domain)
    if known and op_type not in known:
        named = operator_name(domain, op_type)
        raise BackendError(
            f"{where}: onnx has no operator {named!r}{did_you_mean(op_type, known)} "
            "(the names of inputs and outputs of one of your own make it known)"
        )


def _quantization(table: TomlTable) -> Quantization:
    found = Quantization(
        form=table.take("form", one_of(QuantizationForm), "none"),
        per_channel=table.take("per_channel", boolean, False),
        symmetric_weights=table.take("symmetric_weights", boolean, False),
        activations=DataType(table.take("activations", dtype, DataType.UINT8)),
        weights=DataType(table.take("weights", dtype, DataType.INT8)),
        symmetric_activations=table.take("symmetric_activations", boolean, False),
        reduce_range=table.take("reduce_range", boolean, False),
        operators=table.take("operators", strings, ()),
        integer_results=table.take("integer_results", strings, ("Conv", "ConvTranspose")),
        per_tensor=table.take("per_tensor", strings, ()),
        unsigned_weights=table.take("unsigned_weights", strings, ()),
        fixed_results=table.take("fixed_results", _fixed_scales, {}),
    )
    name = found.activations.name.lower()
    for op_type, fixed in found.fixed_results.items():
        try:
            limits = integer_info(found.activations.numpy)
        except ValueError as error:
            text = f"{table.where}: fixed_results: activations are {name}, no integers"
            raise BackendError(text) from error
        if not limits.min <= fixed.zero_point <= limits.max:
            raise BackendError(
                f"{table.where}: fixed_results: zero_point {fixed.zero_point} of {op_type} is no "
                f"{name} ({limits.min} to {limits.max})"
            )
    return found


def _fixed_scales(value: Any) -> dict[str, FixedScale]:
    """Read {scale, zero_point} for each operator."""
    found = {}
    for op_type, entry in mapping(value).items():
        expected = f"expected {op_type} = {{ scale = above 0, zero_point = an integer }}"
        if not isinstance(entry, dict) or set(entry) != {"scale", "zero_point"}:
            raise ValueError(expected)
        scale, zero = number(entry["scale"]), integer(entry["zero_point"])
        if not 0 < scale < math.inf:
            raise ValueError(expected)
        found[op_type] = FixedScale(scale, zero)
    return found


def _check_substitutes(backend: Backend, where: str) -> None:
    for choices in backend.substitutes.values():
        for domain, op_type in (substitute.key for substitute in choices):
            if not backend.rules(op_type, domain):
                name = operator_name(domain, op_type)
                raise BackendError(
                    f"{where}: substitute: the target has no operator {name} in [operators]"
                )


def extended(table: Mapping[str, Any], where: str, parent: Parent) -> dict[str, Any]:
    """Return a table merged into the one that it extends; pipelines are concatenated.

    Raises:
        BackendError: `extends` is not a string.
    """
    own = dict(table)
    base = own.pop("extends", None)
    if base is None:
        return own
    return _merged(parent(checked(string, base, f"{where}: extends")), own)


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(base)
    for key, value in over.items():
        below = made.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            made[key] = {**below, **value} if key == "operators" else _merged(below, value)
        elif key == "pipeline" and isinstance(value, list) and isinstance(below, list):
            made[key] = [*below, *value]
        else:
            made[key] = value
    return made


# --- parts ----------------------------------------------------------------------------------------


def _custom_operators(whole: TomlTable, where: str) -> tuple[CustomOperator, ...]:
    """Return the definitions of custom operators: single ones, or a library for all listed."""
    folder = os.path.dirname(os.path.abspath(where))
    found: dict[tuple[str, str], CustomOperator] = {}
    for name, entry in whole.take("custom_operators", mapping, {}).items():
        place = f"{where}: custom_operators.{name}"
        table = TomlTable(checked(mapping, entry, place), place)
        body, reference = table.take("body", string, ""), table.take("reference", string, None)
        library = table.take("library", string, "")
        table.end()
        library = os.path.join(folder, library) if library else ""
        operator = CustomOperator.of(name, body=body, reference=reference, library=library)
        found[operator.key] = operator
    library = whole.take("custom_ops", string, "")
    listed = whole.take("operators", mapping, {}) if library else {}
    for key in (_operator(name) for names in listed for name in names.split(",")):
        if key not in found and key[0] and not key[0].startswith(_OWN_DOMAINS):
            found[key] = CustomOperator(*key, library=os.path.join(folder, library))
    return tuple(found.values())


def _operator(key: str) -> tuple[str, str]:
    domain, _, op_type = key.strip().rpartition("::")
    return "" if domain == "ai.onnx" else domain, op_type


def _rules(entry: Any, groups: Groups, where: str) -> tuple[OperatorRule, ...]:
    if entry is True:
        return (OperatorRule(),)
    if entry is False:
        return ()
    entries = entry if isinstance(entry, list) else [entry]
    return tuple(_rule(one, groups, where) for one in entries)


def _rule(entry: Any, groups: Groups, where: str) -> OperatorRule:
    if not isinstance(entry, dict):
        expected = "expected true, false, a table or a list of them"
        raise BackendError(f"{where}: {expected}, not {entry!r}")
    table = TomlTable(entry, where)
    rule = OperatorRule(
        versions=table.take("versions", bounds_from(1), ANY),
        opset=table.take("opset", bounds_from(1), ANY),
        types={
            key: checked(dtypes_in(groups), names, f"{where}.types.{key}")
            for key, names in table.take("types", mapping, {}).items()
        },
        dtypes=table.take("dtypes", dtypes_in(groups), frozenset()),
        rank=table.take("rank", bounds_from(0), ANY),
        constant=table.take("constant", strings, ()),
        elements={
            key: checked(bounds_of_elements, ends, f"{where}.elements.{key}")
            for key, ends in table.take("elements", mapping, {}).items()
        },
        attributes={
            key: _attribute(value, f"{where}.attributes.{key}")
            for key, value in table.take("attributes", mapping, {}).items()
        },
        signature=(table.take("inputs", strings, ()), table.take("outputs", strings, ())),
        exact=table.take("exact", boolean, False),
        composite=table.take("composite", boolean, False),
        slow=table.take("slow", boolean, False),
        in_qdq=table.take("in_qdq", boolean, True),
        note=table.take("note", string, ""),
    )
    table.end()
    return rule


def _substitutes(entry: Any, groups: Groups, where: str) -> tuple[Substitute, ...]:
    entries = entry if isinstance(entry, list) else [entry]
    return tuple(_substitute(one, groups, where) for one in entries)


def _substitute(entry: Any, groups: Groups, where: str) -> Substitute:
    """Read a name, or a table with the name under `with` and conditions of an operator rule."""
    table = {"with": entry} if isinstance(entry, str) else dict(checked(mapping, entry, where))
    name = checked(string, table.pop("with", None), f"{where}: with")
    return Substitute(_operator(name), _rule(table, groups, where))


def _attribute(value: Any, where: str) -> AttributeRule:
    if isinstance(value, dict):
        return AttributeRule(bounds=checked(bounds, value, where))
    values = value if isinstance(value, list) else [value]
    return AttributeRule(values=tuple(tuple(v) if isinstance(v, list) else v for v in values))


def _edit(entry: Any, where: str, name: str) -> PipelineEdit:
    if isinstance(entry, str):
        entry = {"edit": entry}
    if not isinstance(entry, dict):
        raise BackendError(f"{where}: expected an edit as a string or a table, not {entry!r}")
    table = TomlTable(entry, where)
    text, why = table.take("edit", string, ""), table.take("why", string, "")
    table.end()
    try:
        return PipelineEdit.parse(text, why=why, by=name)
    except TieredError as error:
        raise BackendError(f"{where}: {error}") from error
