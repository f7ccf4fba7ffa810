"""The operator table of `onnxruntime_cpu`, from the kernels that the installed onnxruntime has.

`python -m tests.backends.kernels` writes it into the profile; a test says when it is not current.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from onnxruntime.capi import onnxruntime_pybind11_state as ort

from tiered.graph.types import DataType

PROFILE = Path(__file__).parents[2] / "tiered" / "backends" / "profiles" / "onnxruntime_cpu.toml"
MARK = "# --- operators: made by `make kernels` from the kernels of the installed onnxruntime ---\n"

PROVIDER = "CPUExecutionProvider"
DOMAINS = ("", "ai.onnx.ml", "com.microsoft")
OPEN = (1 << 31) - 1
TENSOR = re.compile(r"tensor\((\w+)\)")
DTYPES = [dtype.name.lower() for dtype in DataType]
GROUPS = {
    "any": [name for name in DTYPES if not re.match("complex|float[48]|u?int[24]$", name)],
    "fixed": [name for name in DTYPES if re.fullmatch(r"u?int(8|16|32|64)", name)],
    "float8": [name for name in DTYPES if re.match("float8e[45]", name)],
}


class Kernel(NamedTuple):
    """One way in which an operator runs: at which versions, with which dtypes."""

    first: int
    last: int
    types: tuple[tuple[str, frozenset[str]], ...]


def kernels() -> dict[tuple[str, str], list[Kernel]]:
    """Return the kernels of the CPU provider by (domain, operator), alike ones as one."""
    found: dict[tuple[str, str], list[Kernel]] = defaultdict(list)
    for kernel in ort.get_all_opkernel_def():
        key = (kernel.domain, kernel.op_name)
        # Some of the default domain are onnxruntime's own, and no model may hold them.
        is_known = bool(kernel.domain) or onnx.defs.has(kernel.op_name)
        if kernel.provider == PROVIDER and kernel.domain in DOMAINS and is_known:
            first, last = kernel.version_range
            # A kernel without an end is one for the version that it begins with, and no later one.
            last = first if last == OPEN else last
            found[key].append(Kernel(first, last, _types(key, kernel.type_constraints)))
    return {key: _joined(_united(entries)) for key, entries in sorted(found.items())}


def _types(
    key: tuple[str, str], constraints: dict[str, list[str]]
) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return the dtypes of each type parameter; what takes no tensors is not constrained."""
    schema = _schemas().get(key)
    types = {}
    for parameter, names in constraints.items():
        dtypes = frozenset(match[1] for name in names if (match := TENSOR.fullmatch(name)))
        if dtypes and _is_parameter(schema, parameter):
            types[parameter] = dtypes
    return tuple(sorted(types.items()))


def _is_parameter(schema: Any, parameter: str) -> bool:
    if schema is None:
        return True
    formals = (*schema.inputs, *schema.outputs)
    return any(parameter in (formal.typeStr, formal.name) for formal in formals)


def _united(kernels: Iterable[Kernel]) -> list[Kernel]:
    """Unite kernels of the same versions that differ in one type parameter."""
    made: list[Kernel] = []
    for kernel in sorted(kernels, key=repr):
        _add(made, kernel)
    return made


def _add(made: list[Kernel], kernel: Kernel) -> None:
    for at, other in enumerate(made):
        one, two = dict(kernel.types), dict(other.types)
        if (kernel.first, kernel.last) != (other.first, other.last) or one.keys() != two.keys():
            continue
        differing = [name for name in one if one[name] != two[name]]
        if len(differing) <= 1:
            both = {name: one[name] | two[name] for name in one}
            del made[at]
            _add(made, kernel._replace(types=tuple(sorted(both.items()))))
            return
    made.append(kernel)


def _joined(kernels: list[Kernel]) -> list[Kernel]:
    """Join versions that follow each other with the same dtypes."""
    made: list[Kernel] = []
    for kernel in sorted(kernels, key=lambda kernel: (repr(kernel.types), kernel.first)):
        if made and made[-1].types == kernel.types and made[-1].last + 1 == kernel.first:
            made[-1] = made[-1]._replace(last=kernel.last)
        else:
            made.append(kernel)
    return sorted(made, key=lambda kernel: (kernel.first, repr(kernel.types)))


def _schemas() -> dict[tuple[str, str], Any]:
    """Return the newest schema of each operator, as onnxruntime knows it."""
    if not _SCHEMAS:
        for schema in ort.get_all_operator_schema():
            key = (schema.domain, schema.name)
            if key not in _SCHEMAS or _SCHEMAS[key].since_version < schema.since_version:
                _SCHEMAS[key] = schema
    return _SCHEMAS


_SCHEMAS: dict[tuple[str, str], Any] = {}


# --- as TOML --------------------------------------------------------------------------------------


def table() -> str:
    """Return the TOML text of the operators."""
    lines = [MARK, "\n[groups]\n"]
    lines += [f"{group} = {_list(names)}\n" for group, names in GROUPS.items()]
    lines.append("\n[operators]\n")
    for (domain, op_type), entries in kernels().items():
        rows = [_row(domain, op_type, kernel) for kernel in entries]
        key = f'"{domain}::{op_type}"' if domain else op_type
        if len(rows) == 1:
            lines.append(f"{key} = {rows[0]}\n")
        else:
            lines += [f"{key} = [\n", *(f"  {row},\n" for row in rows), "]\n"]
    return "".join(lines)


def _row(domain: str, op_type: str, kernel: Kernel) -> str:
    return "{ " + ", ".join(_parts(domain, op_type, kernel)) + " }"


def _parts(domain: str, op_type: str, kernel: Kernel) -> Iterator[str]:
    if onnx.defs.has(op_type, domain):
        yield f"versions = [{kernel.first}, {kernel.last}]"
    if kernel.types:
        types = ", ".join(f"{name} = {_list(_grouped(dtypes))}" for name, dtypes in kernel.types)
        yield f"types = {{ {types} }}"
    schema = _schemas().get((domain, op_type))
    if kernel.types and schema is not None and not onnx.defs.has(op_type, domain):
        for side in ("inputs", "outputs"):
            formals = getattr(schema, side)
            yield f"{side} = {_list(f'{formal.name}:{formal.typeStr}' for formal in formals)}"


def _grouped(dtypes: frozenset[str]) -> list[str]:
    """Return dtypes in ONNX's order, those of a group under its name."""
    left, made = set(dtypes), []
    for group, names in GROUPS.items():
        if left.issuperset(names):
            made.append(group)
            left.difference_update(names)
    return [*made, *(name for name in DTYPES if name in left)]


def _list(names: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def main() -> None:
    """Write the table into the profile."""
    head = PROFILE.read_text(encoding="utf-8").partition(MARK)[0]
    PROFILE.write_text(head + table(), encoding="utf-8")


if __name__ == "__main__":
    main()
