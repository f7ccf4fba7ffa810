"""dense_to_sparse: weights of few elements, in coordinates."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings, strategies as st
from onnx import numpy_helper

from tiered import PassContext, UsageError, get_pass, optimize
from tiered.runtime import Session, make_inputs
from tiered.testing import assert_unchanged, parse

PASS = "dense_to_sparse"


def _model(weight: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> onnx.ModelProto:
    shape = ",".join(map(str, weight.shape))
    model = parse(f"(float[{shape}] x) => (float[{shape}] y) {{ y = Add(x, w) }}")
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return model


def _bits(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> bytes:
    return bytes(Session(model).run(feeds)["y"].tobytes())


def _sparse() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    weight = np.zeros((32, 32), np.float32)
    weight[3, 4], weight[5, 6], weight[31, 31], weight[7, 0] = 2.5, -0.0, np.nan, -np.inf
    return weight


def test_the_file_is_smaller_and_the_bits_are_the_same() -> None:
    before = _model(_sparse())
    after = get_pass(PASS)(before)
    assert not after.graph.initializer
    (stored,) = after.graph.sparse_initializer
    assert numpy_helper.to_array(stored.indices).tolist() == [100, 166, 224, 1023]
    assert np.signbit(numpy_helper.to_array(stored.values)).tolist()[1:3] == [True, True]
    assert after.ByteSize() < before.ByteSize() / 10
    feeds = make_inputs(before).feeds
    # A sum with -0.0 has the sign of the weight's zero.
    feeds = {name: np.where(np.eye(32) > 0, feeds[name], np.float32(-0.0)) for name in feeds}
    assert _bits(before, feeds) == _bits(after, feeds)
    assert get_pass(PASS)(after) == after


@given(st.lists(st.tuples(st.integers(0, 99), st.floats(width=32)), min_size=1, max_size=20))
@settings(max_examples=20, deadline=None)
def test_any_element_survives(elements: list[tuple[int, float]]) -> None:
    weight = np.zeros(100, np.float32)
    for at, number in elements:
        weight[at] = number
    before = _model(weight.reshape(4, 25))
    feeds = make_inputs(before).feeds
    assert _bits(before, feeds) == _bits(get_pass(PASS)(before), feeds)


def test_other_passes_keep_it() -> None:
    before = _model(_sparse())
    after = optimize(before, opt_level=3, required=[PASS])
    assert len(after.graph.sparse_initializer) == 1
    assert optimize(after, opt_level=3, required=[PASS]) == after


def test_what_stays_dense() -> None:
    for weight in (np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)):
        many = _model(weight)
        assert_unchanged(PASS, many, because="too few or too many elements are not zero")
    small = _model(np.zeros((2, 2), np.float32))
    assert_unchanged(PASS, small, because="it has fewer than 64 elements")
    text = "(int64[2] x) => (int64[2] y) <int64[2] w = {0, 1}> { y = Add(x, w) }"
    assert_unchanged(PASS, text, because="it is not of float32")
    fed = _model(_sparse())
    fed.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, [32, 32]))
    assert_unchanged(PASS, fed, because="it is no constant of the main graph")
    assert_unchanged(PASS, get_pass(PASS)(_model(_sparse())), because="it is sparse already")
    old = _model(_sparse())
    old.ir_version = 5
    assert_unchanged(PASS, old, because="the IR version has no sparse initializers")


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="no initializer is named 'v'"):
        get_pass(PASS, tensors=["v"])(_model(_sparse()))


@pytest.mark.parametrize("threshold", [-0.1, 3.0, float("nan")])
def test_a_threshold_is_a_share(threshold: float) -> None:
    with pytest.raises(UsageError, match="threshold is a share from 0 to 1"):
        get_pass(PASS, threshold=threshold)(_model(_sparse()))


def test_blocks_are_reported() -> None:
    with PassContext() as ctx:
        made = get_pass(PASS, block=[8, 8])(_model(_sparse()))
    assert made.graph.sparse_initializer
    expected = "w: 100% of the elements are zero; 12% of the blocks of 8x8 are not"
    assert expected in [remark.reason for remark in ctx.remarks]
    with pytest.raises(UsageError, match="a block has rows and columns"):
        get_pass(PASS, block=[8])(_model(_sparse()))


def test_blocks_are_of_float_matrices() -> None:
    text = (
        "(int64[8,8] x, float[64] z) => (int64[8,8] y, float[64] u) { y = Add(x, w) u = Add(z, v) }"
    )
    model = parse(text)
    for name, weight in (
        ("w", np.eye(8, dtype=np.int64)),
        ("v", np.eye(8, dtype=np.float32).ravel()),
    ):
        model.graph.initializer.append(numpy_helper.from_array(weight, name))
    with PassContext() as ctx:
        get_pass(PASS, block=[8, 8])(model)
    assert not [remark for remark in ctx.remarks if "blocks" in remark.reason]
