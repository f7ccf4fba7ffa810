"""The certificate: a JSON file of what was proved of each rewrite, and by what.

One object:
    format: 1; tiered: the version that wrote it.
    before, after: {file, sha256} of the models; null for one that was not written.
    counts: how many rewrites were proved in which way.
    collision: the probability of a collision of terms, as text.
    axioms: {name: statement} of those that were used; runtime_axioms: names of those of a runtime.
    rewrites: [{number, pass, level, law, node, proved, sizes, axioms, bound, reason, inputs,
        region}]:
        proved is "bits", "reals", "run", "interface", "refuted" or "unproved"; sizes are those of
        the dims, by name; bound is how far computed constants may be from exact ones, in ulps.
        inputs are those that show that a rewrite is refuted: {name: {dtype, shape, values}}, values
        null where there are more than 1,024: the file of the same name that ends in .npz has all,
        as "12/name" for rewrite 12.
        region is null, the number of an equal one ("#12"), or {borders: {name: type}, outputs,
        before, after: ONNX text, constants: [{name: digest}, {name: digest}]}.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Hashable
from typing import Any, Final

import numpy as np
import onnx

from tiered.certify.axioms import AXIOMS, RUNTIME
from tiered.certify.domains.terms import Array, kind_of
from tiered.certify.problem import Problem
from tiered.certify.regions.region_text import digest_of, packed, text_of
from tiered.certify.rewrite_records import Certified, Findings
from tiered.support.errors import ModelError
from tiered.support.whole_files import whole_file, write_text

Path = str | os.PathLike[str]
MOST_SHOWN: Final = 1024
MOST_KEPT: Final = 1024
"""Constants of up to 1,024 bytes are in the certificate; others are found by their digest."""
COLLISION: Final = "about n * n / 2**129 for n different terms, if the mixing is as good as random"


def write_certificate(
    path: str, findings: Findings, before: Path | onnx.ModelProto, after: Path | None
) -> None:
    """Write the certificate of a run.

    Raises:
        ModelError: the file cannot be written.
    """
    write_text(path, json.dumps(certificate(findings, before, after), indent=1) + "\n")
    arrays: dict[str, Any] = {
        f"{each.number}/{name}": _plain(np.asarray(array))
        for each in findings.rewrites
        for name, array in each.inputs.items()
    }
    if arrays:
        with whole_file(f"{path.removesuffix('.json')}.npz") as file:
            np.savez(file, **arrays)


def certificate(
    findings: Findings, before: Path | onnx.ModelProto, after: Path | None
) -> dict[str, Any]:
    """Return the certificate of a run as plain data."""
    from tiered import __version__

    used = {axiom for each in findings.rewrites if each.proof for axiom in each.proof.axioms}
    seen: dict[Hashable, int] = {}
    return {
        "format": 1,
        "tiered": __version__,
        "before": None if isinstance(before, onnx.ModelProto) else _file(before),
        "after": None if after is None else _file(after),
        "counts": {**findings.counts()},
        "collision": COLLISION,
        "axioms": {name: AXIOMS[name] for name in sorted(used)},
        "runtime_axioms": sorted(used & RUNTIME.keys()),
        "constants": _values(findings),
        "rewrites": [_rewrite(each, seen) for each in findings.rewrites],
    }


def _file(path: Path) -> dict[str, str]:
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"cannot read {os.fspath(path)!r} for the certificate: {error}") from error
    return {"file": os.path.basename(os.fspath(path)), "sha256": digest}


def _rewrite(found: Certified, seen: dict[Hashable, int]) -> dict[str, Any]:
    proof = found.proof
    return {
        "number": found.number,
        "pass": found.pass_name,
        "level": found.level,
        "law": found.law,
        "node": found.anchor,
        "proved": found.word,
        "sizes": [] if proof is None else [dict(sizes) for sizes in proof.sizes],
        "all_sizes": proof is not None and proof.is_for_all,
        "axioms": [] if proof is None else sorted(proof.axioms),
        "bound": 0.0 if proof is None else proof.bound,
        "reason": found.reason,
        "inputs": {name: shown(np.asarray(array)) for name, array in found.inputs.items()},
        "region": None if found.problem is None else _region(found.number, found.problem, seen),
    }


def _values(findings: Findings) -> dict[str, str]:
    """Return the small constants by digest, as ONNX tensors in base 64; large ones have none."""
    found: dict[str, str] = {}
    for each in findings.rewrites:
        for side in () if each.problem is None else each.problem.sides:
            for tensor in side.constants.values():
                if tensor.nbytes <= MOST_KEPT and (digest := digest_of(tensor)) not in found:
                    found[digest] = packed(tensor)
    return found


def _plain(array: Array) -> Array:
    """Return an array that a file can hold without pickled objects: strings as such."""
    return array.astype(str) if array.dtype == np.object_ else array


def shown(array: Array) -> dict[str, Any]:
    """Return an array as plain data; large ones without their numbers, complex ones as pairs."""
    values: Any = None
    if array.size <= MOST_SHOWN:
        numbers = array
        if array.dtype.kind == "c":
            numbers = np.stack([array.real, array.imag], axis=-1)
        if kind_of(numbers.dtype) == "float":
            numbers = numbers.astype(np.float64)
            if not np.isfinite(numbers).all():
                numbers = numbers.astype(str)  # JSON has no NaN and no infinities
        values = numbers.tolist()
    return {"dtype": array.dtype.name, "shape": [*array.shape], "values": values}


def _region(number: int, problem: Problem, seen: dict[Hashable, int]) -> dict[str, Any] | str:
    # Names count here: readers look a region up by them.
    key = problem.key(()), tuple(problem.borders), tuple(problem.outputs)
    # 0 is the number of all edits beside rewrites, which names none of their regions.
    first = seen.setdefault(key, number) if number else seen.get(key, number)
    if first != number:
        return f"#{first}"
    return {
        "borders": {name: str(border) for name, border in problem.borders.items()},
        "outputs": [*problem.outputs],
        "before": text_of(problem, problem.sides[0]),
        "after": text_of(problem, problem.sides[1]),
        "constants": [
            {name: digest_of(tensor) for name, tensor in side.constants.items()}
            for side in problem.sides
        ],
    }
