"""The operator table of `onnxruntime_cpu`, from the kernels that the installed onnxruntime has.

`python -m tests.targets.kernels` writes it into the profile; a test says when it is not current.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from onnxruntime.capi import onnxruntime_pybind11_state as ort

from tiered.graph.core.dtypes import DataType

PROFILE = Path(__file__).parents[2] / "tiered" / "targets" / "profiles" / "onnxruntime_cpu.toml"
MARK = "# --- operators: made by `make kernels` from the kernels of the installed onnxruntime ---\n"

PROVIDER = "CPUExecutionProvider"
DOMAINS = ("", "ai.onnx.ml", "com.microsoft")
OPEN = (1 << 31) - 1
TENSOR = re.compile(r"tensor\((\w+)\)")
DTYPES = [dtype.name.lower() for dtype in DataType]
GROUPS = {
    "any": [name for name in DTYPES if not re.match("complex|float[468]|u?int[24]$", name)],
    "fixed": [name for name in DTYPES if re.fullmatch(r"u?int(8|16|32|64)", name)],
    "castable": [name for name in DTYPES if not re.match("complex|float[46]", name)],
    "float8": [name for name in DTYPES if re.match("float8e[45]", name)],
}


OPSET = 26
"""The newest of which onnxruntime has all operators: of newer ones it has some."""

COMPOSITES = {
    "CastLike": 'composite = true, types = { T1 = ["castable"], T2 = ["castable"] }',
    "GroupNormalization": "versions = [18, 21], composite = true, "
    'types = { T = ["float", "double"] }',
    "HardSwish": 'versions = [14, 22], composite = true, types = { T = ["float"] }',
    "Mish": 'versions = [18, 22], composite = true, types = { T = ["float"] }',
    # onnxruntime has lost it at the opsets after its own.
    "Swish": 'opset = [24, 24], composite = true, types = { T = ["float"] }',
    "com.microsoft::FastGelu": 'composite = true, types = { T = ["double"] }, '
    'inputs = ["X:T", "bias:T"], outputs = ["Y:T"]',
    "com.microsoft::QuickGelu": 'composite = true, types = { T = ["double"] }, '
    'inputs = ["X:T"], outputs = ["Y:T"]',
}
"""Operators, or dtypes of them, without a kernel that run as the body of their function."""

EXACT = ("Attention", "EyeLike", "QuantizeLinear", "RMSNormalization", "Range")
"""Operators around which onnxruntime puts no casts to make them run."""

MORE = {("EyeLike", "T1"): "float16"}
"""What is read with a cast, though the operator makes nothing with one."""

NO_DOUBLE = ("GRU", "LSTM")
"""Operators whose kernel for double only says that there is none."""

_MISCOUNT = 'note = "QLinearAveragePool miscounts windows beyond the padding"'
CONDITIONS = {
    # onnxruntime makes the second of the first in a QDQ unit.
    "AveragePool": (
        f"attributes = {{ ceil_mode = 0 }}, {_MISCOUNT}",
        "attributes = { count_include_pad = 0 }",
        "in_qdq = false",
    ),
    "com.microsoft::QLinearAveragePool": (
        f"attributes = {{ ceil_mode = 0 }}, {_MISCOUNT}",
        "attributes = { count_include_pad = 0 }",
    ),
}
"""Where a kernel is wrong: conditions, any one of which is enough for a right result."""

_HALVES = frozenset({"float16", "bfloat16"})
REDUCTIONS: Mapping[str, Mapping[tuple[str, ...], frozenset[str]]] = {
    "ScatterElements": {
        ("add",): _HALVES,
        ("mul",): _HALVES | {"string"},
        ("max", "min"): frozenset({"bfloat16", "string", "bool"}),
    },
    "ScatterND": {
        ("add",): _HALVES,
        ("mul",): _HALVES | {"string"},
        ("max", "min"): _HALVES | {"string", "bool"},
    },
}
"""Kernels that are registered for all dtypes, and raise for some where they reduce."""

SLOW = {
    "ConvInteger": "T1",
    "MatMulInteger": "T1",
    "QLinearConv": "T1",
    "QLinearMatMul": "T1",
    "com.microsoft::MatMulIntegerToFloat": "T1",
    "com.microsoft::QGemm": "TA",
    "com.microsoft::QLinearConv": "T1",
}
"""Products that take longer than those of floats where their data is signed, on x86-64.

Milliseconds of int8, of uint8, of floats in the QDQ unit: 2.27, 0.18, 0.69 for a QLinearConv of
64 channels and 28 x 28 pixels; 0.44, 0.05, 0.16 for a QLinearMatMul of 112 x 256 x 256.
"""

LATER = {"Attention": 25}
"""Versions that onnx counts and onnxruntime does not: the kernels of the one before run them."""


Types = tuple[tuple[str, frozenset[str]], ...]


class Kernel(NamedTuple):
    """One way in which an operator runs: at which versions, with which dtypes."""

    first: int
    last: int
    types: Types


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
            is_newest = last == OPEN
            last = LATER.get(kernel.op_name, first) if is_newest else last
            constraints = dict(kernel.type_constraints)
            if kernel.op_name in NO_DOUBLE:
                constraints["T"] = [name for name in constraints["T"] if "double" not in name]
            types = _types(key, constraints, first if is_newest else None)
            found[key].append(Kernel(first, last, types))
    return {key: _joined(_united(entries)) for key, entries in sorted(found.items())}


def _types(key: tuple[str, str], constraints: dict[str, list[str]], newest: int | None) -> Types:
    """Return the dtypes of each type parameter; what takes no tensors is not constrained."""
    schema = _schema(*key)
    types = {}
    for parameter, names in constraints.items():
        dtypes = _tensors(names)
        if dtypes and _is_parameter(schema, parameter):
            # A few kernels are registered for what the operator itself does not take.
            allowed = allowed_dtypes(*key, newest).get(parameter) if newest else None
            types[parameter] = dtypes & (allowed or dtypes)
            types[parameter] |= {*filter(None, (MORE.get((key[1], parameter)),))}
    return tuple(sorted(types.items()))


def _tensors(names: Iterable[str]) -> frozenset[str]:
    return frozenset(match[1] for name in names if (match := TENSOR.fullmatch(name)))


def allowed_dtypes(
    domain: str, op_type: str, opset: int | None = None
) -> dict[str, frozenset[str]]:
    """Return the dtypes that an operator takes by type parameter: at an opset, or at the newest."""
    schema = _schema(domain, op_type, None if domain else opset)
    constraints = () if schema is None else schema.type_constraints
    return {entry.type_param_str: _tensors(entry.allowed_type_strs) for entry in constraints}


def _is_parameter(schema: Any, parameter: str) -> bool:
    if schema is None:
        return True
    formals = (*schema.inputs, *schema.outputs)
    return any(parameter in (formal.typeStr, formal.name) for formal in formals)


def _united(kernels: Iterable[Kernel]) -> list[Kernel]:
    """Unite kernels of the same versions that differ in one type parameter."""
    made: list[Kernel] = []
    for kernel in sorted(kernels, key=_order):
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
    for kernel in sorted(kernels, key=lambda kernel: _order(kernel)[::-1]):
        if made and made[-1].types == kernel.types and made[-1].last + 1 == kernel.first:
            made[-1] = made[-1]._replace(last=kernel.last)
        else:
            made.append(kernel)
    return sorted(made, key=_order)


def _order(kernel: Kernel) -> tuple[int, int, object]:
    """Return what kernels are sorted by: the same in each process, unlike the sets themselves."""
    return kernel.first, kernel.last, [(name, sorted(dtypes)) for name, dtypes in kernel.types]


def _schema(domain: str, op_type: str, opset: int | None = None) -> Any:
    """Return what onnxruntime knows of an operator: at its newest, or at an opset."""
    found = [
        schema
        for schema in _schemas()[domain, op_type]
        if opset is None or schema.since_version <= opset
    ]
    return max(found, key=lambda schema: schema.since_version, default=None)


@cache
def _schemas() -> Mapping[tuple[str, str], Sequence[Any]]:
    """Return all schemas of each operator."""
    schemas = defaultdict(list)
    for schema in ort.get_all_operator_schema():
        schemas[schema.domain, schema.name].append(schema)
    return schemas


# --- as TOML --------------------------------------------------------------------------------------


def table() -> str:
    """Return the TOML text of the operators."""
    lines = [MARK, "\n[groups]\n"]
    lines += [f"{group} = {_list(names)}\n" for group, names in GROUPS.items()]
    lines.append("\n[operators]\n")
    rows: dict[str, list[str]] = {}
    for (domain, op_type), entries in kernels().items():
        key = f"{domain}::{op_type}" if domain else op_type
        rows[key] = [
            _row(domain, op_type, kernel, condition)
            for kernel in _with_slow_apart(key, entries)
            for condition in CONDITIONS.get(key, ("",))
        ]
        for kernel in entries if key in REDUCTIONS else ():
            rows[key] = list(_reducing(domain, op_type, kernel))
    for key, text in COMPOSITES.items():
        rows.setdefault(key, []).append(f"{{ {text} }}")
    for key, found in sorted(rows.items()):
        quoted = f'"{key}"' if "::" in key else key
        if len(found) == 1:
            lines.append(f"{quoted} = {found[0]}\n")
        else:
            lines += [f"{quoted} = [\n", *(f"  {row},\n" for row in found), "]\n"]
    return "".join(lines)


def _with_slow_apart(key: str, kernels: Iterable[Kernel]) -> Iterator[Kernel]:
    """Yield kernels, those of dtypes that are slow on their own."""
    for kernel in kernels:
        types = dict(kernel.types)
        data = types.get(SLOW.get(key, ""), frozenset())
        for part in (data - {"int8"}, data & {"int8"}) if "int8" in data else (data,):
            if part:
                types[SLOW[key]] = part
            if part or not data:
                yield kernel._replace(types=tuple(sorted(types.items())))


def _reducing(domain: str, op_type: str, kernel: Kernel) -> Iterator[str]:
    """Yield the rows of a kernel for each reduction; no casts are put around what it refuses."""
    yield _row(domain, op_type, kernel, 'attributes = { reduction = "none" }')
    for names, refused in REDUCTIONS[op_type].items():
        types = {**dict(kernel.types), "T": dict(kernel.types)["T"] - refused}
        left = kernel._replace(types=tuple(sorted(types.items())))
        condition = f"attributes = {{ reduction = {_list(names)} }}, exact = true"
        yield _row(domain, op_type, left, condition)


def _row(domain: str, op_type: str, kernel: Kernel, condition: str) -> str:
    parts = (*_parts(domain, op_type, kernel), condition)
    return "{ " + ", ".join(filter(None, parts)) + " }"


def _parts(domain: str, op_type: str, kernel: Kernel) -> Iterator[str]:
    if onnx.defs.has(op_type, domain):
        yield f"versions = [{kernel.first}, {kernel.last}]"
    if kernel.types:
        types = ", ".join(f"{name} = {_list(_grouped(dtypes))}" for name, dtypes in kernel.types)
        yield f"types = {{ {types} }}"
    if op_type in EXACT and not domain:
        yield "exact = true"
    data = SLOW.get(f"{domain}::{op_type}" if domain else op_type, "")
    if "int8" in dict(kernel.types).get(data, ()):
        yield "slow = true"
    schema = _schema(domain, op_type)
    if kernel.types and schema is not None and not onnx.defs.has(op_type, domain):
        for side in ("inputs", "outputs"):
            formals = getattr(schema, side)
            yield f"{side} = {_list(f'{formal.name}:{formal.typeStr}' for formal in formals)}"


def _grouped(dtypes: frozenset[str]) -> list[str]:
    """Return dtypes in ONNX's order, those of a group under its name."""
    left, made = set(dtypes), []
    for group, names in GROUPS.items():
        if group != "castable" and left.issuperset(names):
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
