"""Profiles as TOML: read a file into a Backend, or report where it is wrong."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_args

from tiered.backends.backend import (
    API_VERSION,
    Backend,
    FixedScale,
    Quantization,
    Shapes,
    Unlisted,
    Verification,
)
from tiered.backends.custom import CustomOperator
from tiered.backends.pipeline_edits import PipelineEdit
from tiered.backends.rules import ANY, AttributeRule, Bounds, OperatorRule, Substitute, type_keys
from tiered.backends.standard import Layout, QuantizationForm
from tiered.errors import BackendError, TieredError, did_you_mean
from tiered.graph.core.dtypes import DataType, integer_info
from tiered.support.toml_files import read_toml

_OWN_DOMAINS: Final = ("ai.onnx", "com.microsoft")
"""The domains of onnxruntime's own operators."""
_DTYPES: Final = {dtype.name.lower(): int(dtype) for dtype in DataType}
_OTHER_NAMES: Final = {"float32": "float", "fp32": "float", "float64": "double", "fp16": "float16"}
_OTHER_NAMES.update({"bf16": "bfloat16", "half": "float16", "int": "int32", "fp64": "double"})

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
    """Return the backend after checking the keys of `types`.

    Raises:
        BackendError: a key is no operand or type parameter of any version of its operator.
    """
    for (domain, op_type), rules in backend.operators.items():
        known = type_keys(op_type, domain)
        for key in (key for rule in rules for key in rule.types):
            if known and key not in known and not any(rule.signature != ((), ()) for rule in rules):
                named = f"{domain}::{op_type}" if domain else op_type
                raise BackendError(
                    f"{where}: operators.{named}.types: no version of {named} has an operand or "
                    f"type parameter {key!r}{did_you_mean(key, known)} "
                    f"(there are {', '.join(sorted(known))})"
                )
    return backend


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
    whole = _Table(extended(table, where, parent), where)
    version = whole.take("api_version", _integer, None)
    if version is None or not 1 <= version <= API_VERSION:
        found = "none" if version is None else str(version)
        raise BackendError(f"{where}: api_version: expected 1 to {API_VERSION}, found {found}")
    name = whole.take("name", _string, "")
    if not name:
        raise BackendError(f"{where}: name: expected the name of the backend, found none")
    groups = {
        group: _checked(_dtypes_in({}), members, f"{where}: groups.{group}")
        for group, members in whole.take("groups", _mapping, {}).items()
    }
    dtypes = whole.table("dtypes")
    quantization = whole.table("quantization")
    verification = whole.table("verification")
    backend = Backend(
        name=name,
        api_version=version,
        doc=whole.take("doc", _string, ""),
        sources=whole.take("sources", _strings, ()),
        limits=whole.take("limits", _strings, ()),
        shapes=whole.take("shapes", _one_of(Shapes), "dynamic"),
        opset=whole.take("opset", _bounds, ANY),
        ir_version=whole.take("ir_version", _bounds, ANY),
        max_rank=whole.take("max_rank", _integer, None),
        layout=whole.take("layout", _one_of(Layout), "any"),
        layouts={
            op_type: _checked(_one_of(Layout), layout, f"{where}: layouts.{op_type}")
            for op_type, layout in whole.take("layouts", _mapping, {}).items()
        },
        unlisted=whole.take("unlisted", _one_of(Unlisted), "refused"),
        activations=dtypes.take("activations", _dtypes_in(groups), frozenset()),
        weights=dtypes.take("weights", _dtypes_in(groups), frozenset()),
        emulated=dtypes.take("emulated", _pair_of_dtypes, {}),
        quantization=_quantization(quantization),
        verification=Verification(
            rtol=verification.take("rtol", _number, None),
            atol=verification.take("atol", _number, None),
            min_cosine=verification.take("min_cosine", _number, None),
        ),
        operators={
            _operator(name): _rules(entry, groups, f"{where}: operators.{key}")
            for key, entry in whole.take("operators", _mapping, {}).items()
            for name in key.split(",")
        },
        substitutes={
            _operator(name): _substitutes(entry, groups, f"{where}: substitute.{name}")
            for name, entry in whole.take("substitute", _mapping, {}).items()
        },
        custom_operators=_custom_operators(whole, where),
        edits=tuple(
            _edit(entry, f"{where}: pipeline[{at}]", name)
            for at, entry in enumerate(whole.take("pipeline", _list, ()))
        ),
    )
    for below in (whole, dtypes, quantization, verification):
        below.end()
    _check_substitutes(backend, where)
    return backend


def _quantization(table: _Table) -> Quantization:
    found = Quantization(
        form=table.take("form", _one_of(QuantizationForm), "none"),
        per_channel=table.take("per_channel", _boolean, False),
        symmetric_weights=table.take("symmetric_weights", _boolean, False),
        activations=DataType(table.take("activations", _dtype, DataType.UINT8)),
        weights=DataType(table.take("weights", _dtype, DataType.INT8)),
        symmetric_activations=table.take("symmetric_activations", _boolean, False),
        reduce_range=table.take("reduce_range", _boolean, False),
        operators=table.take("operators", _strings, ()),
        integer_results=table.take("integer_results", _strings, ("Conv", "ConvTranspose")),
        per_tensor=table.take("per_tensor", _strings, ()),
        unsigned_weights=table.take("unsigned_weights", _strings, ()),
        fixed_results=table.take("fixed_results", _fixed_scales, {}),
    )
    limits = integer_info(found.activations.numpy) if found.fixed_results else None
    for op_type, fixed in found.fixed_results.items():
        if limits is not None and not limits.min <= fixed.zero_point <= limits.max:
            name = found.activations.name.lower()
            raise BackendError(
                f"{table.where}: fixed_results: zero_point {fixed.zero_point} of {op_type} is no "
                f"{name} ({limits.min} to {limits.max})"
            )
    return found


def _fixed_scales(value: Any) -> dict[str, FixedScale]:
    """Read {scale, zero_point} for each operator."""
    found = {}
    for op_type, entry in _mapping(value).items():
        expected = f"expected {op_type} = {{ scale = above 0, zero_point = an integer }}"
        if not isinstance(entry, dict) or set(entry) != {"scale", "zero_point"}:
            raise ValueError(expected)
        scale, zero = _number(entry["scale"]), _integer(entry["zero_point"])
        if not 0 < scale < math.inf:
            raise ValueError(expected)
        found[op_type] = FixedScale(scale, zero)
    return found


def _check_substitutes(backend: Backend, where: str) -> None:
    for choices in backend.substitutes.values():
        for domain, op_type in (substitute.key for substitute in choices):
            if not backend.rules(op_type, domain):
                name = f"{domain}::{op_type}" if domain else op_type
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
    return _merged(parent(_checked(_string, base, f"{where}: extends")), own)


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(base)
    for key, value in over.items():
        below = made.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping) and key != "operators":
            made[key] = _merged(below, value)
        elif key == "operators" and isinstance(below, Mapping):
            made[key] = {**below, **value}
        elif key == "pipeline" and isinstance(below, list):
            made[key] = [*below, *value]
        else:
            made[key] = value
    return made


# --- parts ----------------------------------------------------------------------------------------


def _custom_operators(whole: _Table, where: str) -> tuple[CustomOperator, ...]:
    """Return the definitions of custom operators: single ones, or a library for all listed."""
    folder = os.path.dirname(os.path.abspath(where))
    found: dict[tuple[str, str], CustomOperator] = {}
    for name, entry in whole.take("custom_operators", _mapping, {}).items():
        place = f"{where}: custom_operators.{name}"
        table = _Table(_checked(_mapping, entry, place), place)
        body, reference = table.take("body", _string, ""), table.take("reference", _string, None)
        library = table.take("library", _string, "")
        table.end()
        library = os.path.join(folder, library) if library else ""
        operator = CustomOperator.of(name, body=body, reference=reference, library=library)
        found[operator.key] = operator
    library = whole.take("custom_ops", _string, "")
    listed = whole.take("operators", _mapping, {}) if library else {}
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
    table = _Table(entry, where)
    rule = OperatorRule(
        versions=table.take("versions", _bounds, ANY),
        opset=table.take("opset", _bounds, ANY),
        types={
            key: _checked(_dtypes_in(groups), names, f"{where}.types.{key}")
            for key, names in table.take("types", _mapping, {}).items()
        },
        dtypes=table.take("dtypes", _dtypes_in(groups), frozenset()),
        rank=table.take("rank", _bounds, ANY),
        constant=table.take("constant", _strings, ()),
        elements={
            key: _checked(_bounds_of_elements, bounds, f"{where}.elements.{key}")
            for key, bounds in table.take("elements", _mapping, {}).items()
        },
        attributes={
            key: _attribute(value, f"{where}.attributes.{key}")
            for key, value in table.take("attributes", _mapping, {}).items()
        },
        signature=(table.take("inputs", _strings, ()), table.take("outputs", _strings, ())),
        exact=table.take("exact", _boolean, False),
        composite=table.take("composite", _boolean, False),
        slow=table.take("slow", _boolean, False),
        in_qdq=table.take("in_qdq", _boolean, True),
        note=table.take("note", _string, ""),
    )
    table.end()
    return rule


def _substitutes(entry: Any, groups: Groups, where: str) -> tuple[Substitute, ...]:
    entries = entry if isinstance(entry, list) else [entry]
    return tuple(_substitute(one, groups, where) for one in entries)


def _substitute(entry: Any, groups: Groups, where: str) -> Substitute:
    """Read a name, or a table with the name under `with` and conditions of an operator rule."""
    table = {"with": entry} if isinstance(entry, str) else dict(_checked(_mapping, entry, where))
    name = _checked(_string, table.pop("with", None), f"{where}: with")
    return Substitute(_operator(name), _rule(table, groups, where))


def _attribute(value: Any, where: str) -> AttributeRule:
    if isinstance(value, dict):
        return AttributeRule(bounds=_checked(_bounds, value, where))
    values = value if isinstance(value, list) else [value]
    return AttributeRule(values=tuple(tuple(v) if isinstance(v, list) else v for v in values))


def _edit(entry: Any, where: str, name: str) -> PipelineEdit:
    if isinstance(entry, str):
        entry = {"edit": entry}
    if not isinstance(entry, dict):
        raise BackendError(f"{where}: expected an edit as a string or a table, not {entry!r}")
    table = _Table(entry, where)
    text, why = table.take("edit", _string, ""), table.take("why", _string, "")
    table.end()
    try:
        return PipelineEdit.parse(text, why=why, by=name)
    except TieredError as error:
        raise BackendError(f"{where}: {error}") from error


# --- values ---------------------------------------------------------------------------------------

Groups = Mapping[str, frozenset[int]]


class _Table:
    """A table with keys that are taken one by one; a key that remains is an error."""

    def __init__(self, entries: Mapping[str, Any], where: str) -> None:
        self._entries = entries
        self.where = where
        self._known: list[str] = []

    def take(self, key: str, read: Callable[[Any], Any], default: Any) -> Any:
        """Return the value of a key, converted by `read`, or the default."""
        self._known.append(key)
        if key not in self._entries:
            return default
        return _checked(read, self._entries[key], f"{self.where}: {key}")

    def table(self, key: str) -> _Table:
        """Return the table below a key; an empty one if there is none."""
        return _Table(self.take(key, _mapping, {}), f"{self.where}: {key}")

    def end(self) -> None:
        """Check that all keys were taken.

        Raises:
            BackendError: a key is unknown.
        """
        for key in self._entries:
            if key not in self._known:
                close = did_you_mean(key, self._known)
                known = ", ".join(sorted(self._known))
                raise BackendError(f"{self.where}: unknown key {key!r}{close} (there are {known})")


class _NoDtype(ValueError):
    """An unknown name of a dtype; the message is complete."""


def _checked(read: Callable[[Any], Any], value: Any, where: str) -> Any:
    try:
        return read(value)
    except _NoDtype as error:
        raise BackendError(f"{where}: {error}") from None
    except ValueError as error:
        raise BackendError(f"{where}: {error}, not {value!r}") from None


def _of(kind: type, expected: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"expected {expected}")
        return value

    return read


_string = _of(str, "a string")
_integer = _of(int, "an integer")
_boolean = _of(bool, "true or false")
_mapping = _of(dict, "a table")
_list = _of(list, "a list")


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number")
    return float(value)


def _strings(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError("expected a string or a list of strings")
    return tuple(items)


def _bounds(value: Any) -> Bounds:
    """Read [low, high], {min, max}, or one integer; a missing upper end is open."""
    return _limits(value, int)


def _bounds_of_elements(value: Any) -> Bounds:
    """Read the same of numbers with fractions too."""
    return _limits(value, (int, float))


def _limits(value: Any, kinds: type | tuple[type, ...]) -> Bounds:
    if isinstance(value, dict) and set(value) <= {"min", "max"}:
        ends: Sequence[Any] = (value.get("min"), value.get("max"))
    elif isinstance(value, list) and len(value) in (1, 2):
        ends = (*value, None)[:2]
    else:
        ends = (value, value)
    low, high = ends
    for end in (low, high):
        if end is not None and (not isinstance(end, kinds) or isinstance(end, bool)):
            raise ValueError("expected [low, high] or {min = low, max = high}")
    if None not in (low, high) and low > high:
        raise ValueError("expected the lower end first")
    return Bounds(low, high)


def _one_of(literal: Any) -> Callable[[Any], Any]:
    names = get_args(literal)

    def read(value: Any) -> Any:
        if value not in names:
            raise ValueError(f"expected one of {', '.join(names)}")
        return value

    return read


def _dtype(name: Any) -> int:
    if isinstance(name, str) and name in _DTYPES:
        return _DTYPES[name]
    if isinstance(name, str) and name in _OTHER_NAMES:
        raise _NoDtype(f"ONNX calls {name} {_OTHER_NAMES[name]!r}")
    close = did_you_mean(str(name), _DTYPES)
    raise _NoDtype(f"no dtype {name!r}{close} (there are {', '.join(_DTYPES)})")


def _dtypes_in(groups: Groups) -> Callable[[Any], frozenset[int]]:
    """Return a reader for lists of dtypes and of groups of dtypes."""

    def read(value: Any) -> frozenset[int]:
        names = _strings(value)
        single = {_dtype(name) for name in names if name not in groups}
        return frozenset(single.union(*(groups[name] for name in names if name in groups)))

    return read


def _pair_of_dtypes(value: Any) -> dict[int, int]:
    return {_dtype(wide): _dtype(to) for wide, to in _mapping(value).items()}
