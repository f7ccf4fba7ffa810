"""Methods of verification: what can be asked for, and how passes were verified, in words."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.small import model, parsed
from tests.verify.in_process import in_process
from tiered.passes.interface.pass_info import PassInfo
from tiered.runtime.compare.outputs import Comparison, OutputDifference
from tiered.runtime.inputs.samples import Wanted
from tiered.support.errors import UsageError
from tiered.support.numerics import Numerics
from tiered.verify.baseline import Baseline
from tiered.verify.methods import Case, VerificationMethod, VerifiedPasses, computed_in, how_of


def info(name: str = "fuse_gelu", **held: Any) -> PassInfo:
    return PassInfo(name, opt_level=3, **held)


@pytest.mark.parametrize(
    ("given", "how"),
    [(None, "off"), (False, "off"), (True, "each"), ("each", "each"), ("region", "region"),
     ("final", "final"), ("structure", "structure"), ("off", "off")],
)  # fmt: skip
def test_methods_are_asked_for_by_name_or_by_yes_and_no(given: Any, how: str) -> None:
    assert how_of(given) == how


def test_another_method_is_an_error() -> None:
    with pytest.raises(UsageError) as failed:
        how_of("finl")
    assert str(failed.value).startswith(
        "verify takes each, region, final, structure, off, not 'finl'"
    )
    assert "did you mean 'final'" in str(failed.value)


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (VerificationMethod("p", "model", inputs="given"), "p: the model ran on given inputs"),
        (
            VerificationMethod("p", "model", inputs="generated", judge="onnx.reference"),
            "p: the model ran on generated inputs, and the changed nodes on onnx.reference",
        ),
        (
            VerificationMethod("p", "model", inputs="given", left_out=("y (random)", "z (no)")),
            "p: the model ran on given inputs; y (random), z (no)",
        ),
        (
            VerificationMethod("p", "region", 1, "recorded"),
            "p: 1 node ran before and after, on recorded values",
        ),
        (
            VerificationMethod("p", "region", 2, "generated"),
            "p: 2 nodes ran before and after, on generated values",
        ),
        (VerificationMethod("", "sameness"), "all passes: nothing that is computed changed"),
        (VerificationMethod("p", "nothing", why="too large"), "p: too large"),
        (VerificationMethod("p", "nothing"), "p: nothing ran"),
    ],
)
def test_a_method_reads_as_a_sentence(method: VerificationMethod, text: str) -> None:
    assert str(method) == text


def test_one_pass_has_a_name_and_several_have_none() -> None:
    assert VerifiedPasses((info(),)).name == "fuse_gelu"
    assert VerifiedPasses((info(), info("fold_constant"))).name == ""
    assert VerifiedPasses(()).name == ""


def test_several_passes_promise_what_the_loosest_does() -> None:
    exact, loose = info(), info(numerics=Numerics.APPROXIMATE)
    assert VerifiedPasses((exact,)).promise.numerics == Numerics.EXACT
    assert VerifiedPasses((exact, loose, exact)).promise.numerics == Numerics.APPROXIMATE
    named = (("y", np.dtype(np.float16)),)
    assert VerifiedPasses((exact,), computed=named).promise.computed == named


def test_one_pass_may_change_the_interface() -> None:
    assert not VerifiedPasses((info(), info())).changes_interface
    assert VerifiedPasses((info(), info(changes_interface=True))).changes_interface


def test_values_from_narrower_floats_have_two_names() -> None:
    text = """(float16[2] x) => (float[2] y) { a = Neg(x)  y = Cast<to = 1>(a) }"""
    found = dict(computed_in(parsed(text)))
    assert found["y"] == found["border y"] == np.float16
    half = text.replace("float16[2] x", "bfloat16[2] x")
    assert dict(computed_in(parsed(half)))["y"] == ml_dtypes.bfloat16
    assert computed_in(model()) == ()


def test_a_case_keeps_how_it_was_verified() -> None:
    _, worker = in_process()
    given = model()
    case = Case(given, Baseline.of(given), VerifiedPasses((info(),)), Wanted(), worker, 1 << 20)
    case.verified("sameness")
    outputs = [OutputDifference("y", True, note="random"), OutputDifference("z", True)]
    case.comparisons.append(Comparison(outputs, Numerics.EXACT))
    case.verified("region", 3, "recorded", "onnx.reference", "why")
    first, second = case.methods
    assert first == VerificationMethod("fuse_gelu", "sameness")
    assert second == VerificationMethod(
        "fuse_gelu", "region", 3, "recorded", "onnx.reference", "why", ("y (random)",)
    )
    assert not case.has_run
    assert (case.remarks, case.samples) == ([], [])
