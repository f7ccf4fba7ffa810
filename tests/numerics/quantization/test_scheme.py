"""The scheme of a target: what an opset has, what saturates, which weights have channels."""

from dataclasses import replace

import pytest

from tiered.graph import DataType
from tiered.numerics.quantization.scheme import PRODUCTS, Scheme, scheme_of
from tiered.targets import Backend
from tiered.targets.quantized import Quantization

WIDE = Scheme(activations=DataType.UINT16)


@pytest.mark.parametrize(
    ("scheme", "opset", "reason"),
    [
        (Scheme(), 10, ""),
        (Scheme(), 9, "uint8 needs opset 10, the model has 9"),
        (WIDE, 21, ""),
        (WIDE, 20, "uint16 needs opset 21, the model has 20"),
        (Scheme(activations=DataType.INT16), 20, "int16 needs opset 21, the model has 20"),
    ],
)
def test_an_opset_has_the_dtypes_or_a_reason(scheme: Scheme, opset: int, reason: str) -> None:
    assert scheme.refusal(opset) == reason


def test_levels_are_the_steps_between_the_ends() -> None:
    assert (Scheme().levels, WIDE.levels) == (255, 65535)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"reduce_range": True}, False),
        ({"keeps_pairs": True}, False),
        ({"activations": DataType.INT8}, False),
        ({"weights": DataType.UINT8}, False),
        ({"unsigned_weights": frozenset({"Conv"})}, False),
        ({"unsigned_weights": frozenset({"MatMul"})}, True),
    ],
)
def test_products_of_uint8_by_int8_may_saturate(changes: dict[str, object], expected: bool) -> None:
    assert replace(Scheme(), **changes).may_saturate("Conv") is expected  # type: ignore[arg-type]  # fields by name


def test_channels_have_scales_from_opset_13_on() -> None:
    assert Scheme().has_channels("Conv", 13)
    assert not Scheme().has_channels("Conv", 12)
    assert not Scheme(per_channel=False).has_channels("Conv", 13)
    assert not Scheme(per_tensor=frozenset({"Conv"})).has_channels("Conv", 13)


def test_a_target_decides_and_most_runtimes_do_without_one() -> None:
    assert scheme_of(None) == Scheme()
    given = Quantization(
        activations=DataType.INT8, per_channel=False, operators=("Conv",), reduce_range=True
    )
    target = Backend(name="t", unlisted="standard", quantization=given)
    found = scheme_of(target)
    assert (found.activations, found.per_channel, found.reduce_range) == (
        DataType.INT8,
        False,
        True,
    )
    assert found.operators == {"Conv"}
    assert found.in_integers is None
    few = Backend(name="t", unlisted="standard", activations=frozenset({DataType.INT8}))
    assert scheme_of(few).operators == PRODUCTS
    assert scheme_of(few).in_integers is not None
