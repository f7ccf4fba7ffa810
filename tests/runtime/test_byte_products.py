"""The probe of 8-bit products: both answers, and that it describes the installed runtime."""

import numpy as np
import pytest

from tests.saturation import exact_product, products_that, saturating_product
from tiered.runtime import run
from tiered.runtime.byte_products import ByteProducts, byte_products
from tiered.runtime.worker.client import Worker
from tiered.support.errors import HelperError, RuntimeFailure
from tiered.testing import parse


@pytest.mark.parametrize("answer", ["exact", "saturate"])
def test_each_kind_of_kernels_is_found(answer: ByteProducts) -> None:
    with products_that(answer):
        assert byte_products() == answer


@pytest.mark.parametrize("shape", [(1, 16, 16), (3, 64, 8), (5, 33, 17)])
def test_the_answer_describes_the_installed_runtime(shape: tuple[int, int, int]) -> None:
    rows, depth, columns = shape
    random = np.random.default_rng(0)
    a = random.integers(0, 256, (rows, depth), np.uint8)
    b = random.integers(-128, 128, (depth, columns), np.int8)
    proto = parse("(uint8[M,K] a, int8[K,N] b) => (int32[M,N] y) { y = MatMulInteger(a, b) }")
    found = run(proto, {"a": a, "b": b})["y"]
    assert not np.array_equal(exact_product(a, b), saturating_product(a, b))
    expected = {"exact": exact_product, "saturate": saturating_product}[byte_products()]
    np.testing.assert_array_equal(found, expected(a, b))


@pytest.mark.parametrize("dtypes", [(np.uint8, np.uint8), (np.int8, np.int8)])
def test_other_products_are_exact_everywhere(dtypes: tuple[type, type]) -> None:
    random = np.random.default_rng(0)
    limits = [np.iinfo(each) for each in dtypes]
    a, b = (random.integers(each.min, each.max + 1, (32, 32), each.dtype) for each in limits)
    names = ["uint8" if each is np.uint8 else "int8" for each in dtypes]
    text = f"({names[0]}[M,K] a, {names[1]}[K,N] b) => (int32[M,N] y) {{ y = MatMulInteger(a, b) }}"
    np.testing.assert_array_equal(run(parse(text), {"a": a, "b": b})["y"], exact_product(a, b))


def test_weights_of_seven_bits_are_exact_everywhere() -> None:
    random = np.random.default_rng(0)
    a = random.integers(0, 256, (32, 64), np.uint8)
    b = random.integers(-63, 64, (64, 32), np.int8)
    proto = parse("(uint8[M,K] a, int8[K,N] b) => (int32[M,N] y) { y = MatMulInteger(a, b) }")
    np.testing.assert_array_equal(run(proto, {"a": a, "b": b})["y"], exact_product(a, b))


@pytest.mark.parametrize("error", [RuntimeFailure("no kernel"), HelperError("no Python")])
def test_a_runtime_that_does_not_run_it_has_no_answer(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(self: Worker, *args: object, **how: object) -> None:
        raise error

    byte_products.cache_clear()
    monkeypatch.setattr(Worker, "open", refuse)
    assert byte_products() == "unknown"
    byte_products.cache_clear()


def test_it_is_found_once_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with products_that("saturate"):
        byte_products()
        monkeypatch.delattr(Worker, "open")
        assert byte_products() == "saturate"
        monkeypatch.undo()
