"""Verification: the model and what passes made of it, run on the same inputs and compared."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tiered.errors import RuntimeFailure, VerificationError
from tiered.graph import Model
from tiered.registry import PassInfo
from tiered.runtime.numerics import Numerics

if TYPE_CHECKING:
    import onnx

    from tiered.runtime import Comparison, Session

BINDINGS = (0, 1)
"""The sets of sizes that symbolic dims are bound to."""


def verify(
    before: onnx.ModelProto | str, after: Model, changed_by: Sequence[PassInfo], *, seed: int = 0
) -> tuple[Comparison, ...]:
    """Run a model and its optimised form on onnxruntime; return the comparison of each binding.

    Args:
        before: the original, or its file.
        after: what the passes made of it.
        changed_by: the passes that changed something; the loosest of their promises must hold.
        seed: of the random inputs.

    Raises:
        VerificationError: an output differs more than promised, or the result does not run.
        RuntimeFailure: onnxruntime does not run the original, so nothing can be said.
    """
    from tiered.runtime import Session, feasible_inputs

    promised = loosest(changed_by)
    new_interface = any(info.changes_interface for info in changed_by)
    original = Session(before)
    with _runnable(after) as optimised:
        result = _opened(optimised, changed_by)
        made_for = (optimised, result) if new_interface else (before, original)
        compared = []
        for binding in BINDINGS:
            inputs = feasible_inputs(made_for[0], session=made_for[1], seed=seed, binding=binding)
            comparison = _compared(original, result, inputs.feeds, promised, new_interface)
            compared.append(comparison)
            if not comparison.ok:
                sizes = ", ".join(f"{dim}={size}" for dim, size in inputs.dims.items())
                raise VerificationError(_message(after, comparison, sizes, changed_by))
    return tuple(compared)


def loosest(passes: Sequence[PassInfo]) -> Numerics:
    """Return what all passes together promise: the loosest of their promises."""
    order = list(Numerics)
    return max((info.numerics for info in passes), key=order.index, default=Numerics.EXACT)


@contextmanager
def _runnable(model: Model) -> Iterator[onnx.ModelProto | str]:
    """Yield what onnxruntime can open: the proto, or a file where weights are external."""
    if not any(v.default is not None and v.default.is_external for v in model.main.initializers):
        yield model.to_proto()
        return
    with tempfile.TemporaryDirectory(prefix="tiered-verify-") as folder:
        path = os.path.join(folder, "model.onnx")
        model.save(path)
        yield path


def _opened(model: onnx.ModelProto | str, changed_by: Sequence[PassInfo]) -> Session:
    from tiered.runtime import Session

    try:
        return Session(model)
    except RuntimeFailure as error:
        raise VerificationError(
            f"onnxruntime opens the original, but not the result: {error}\n"
            f"  changed by  {_names(changed_by)}"
        ) from error


def _compared(
    original: Session,
    result: Session,
    feeds: dict[str, object],
    promised: Numerics,
    new_interface: bool,
) -> Comparison:
    from tiered.runtime.compare import compare

    expected = original.run(feeds)
    try:
        actual = result.run(feeds)
    except RuntimeFailure as error:
        raise VerificationError(f"the original runs, but not the result: {error}") from error
    if new_interface:
        expected = {name: value for name, value in expected.items() if name in actual}
        actual = {name: value for name, value in actual.items() if name in expected}
    return compare(expected, actual, promised)


def _message(
    model: Model, comparison: Comparison, sizes: str, changed_by: Sequence[PassInfo]
) -> str:
    return (
        f"the passes changed what {model.label} computes (promised: {comparison.numerics})\n"
        f"  outputs     {str(comparison).replace(chr(10), chr(10) + ' ' * 14)}\n"
        f"  sizes       {sizes or 'no symbolic dims'}\n"
        f"  changed by  {_names(changed_by)}"
    )


def _names(passes: Sequence[PassInfo]) -> str:
    return ", ".join(info.name for info in passes) or "no pass"
