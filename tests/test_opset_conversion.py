"""The suite of opset conversion: a few of its cases, judged as the whole suite judges them."""

import pytest

from tests.conformance.opsets import OpsetTask, Verdict, judge_case

NOTHING = {"wrong", "invalid", "error"}

CASES = (
    "test_averagepool_2d_default", "test_clip", "test_constant_pad_axes", "test_dft",
    "test_group_normalization_example", "test_roialign_aligned_false", "test_scatter_with_axis",
    "test_shape_start_1_end_2", "test_softmax_axis_0", "test_split_equal_parts_1d_opset13",
    "test_upsample_nearest",
)  # fmt: skip


def judged(name: str, *targets: int, tool: str = "tiered") -> dict[str, Verdict]:
    return judge_case(OpsetTask(f"node/{name}", tool, targets), lambda _: None)


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_right_at_each_opset_and_back_or_blocked(name: str) -> None:
    verdicts = judged(name, 13, 18, 23)
    kinds = {kind for kind, _ in verdicts.values()}
    assert "right" in kinds
    assert not kinds & NOTHING, verdicts


def test_what_blocks_has_its_reason() -> None:
    assert judged("test_gelu_default_1", 13) == {
        "13": ("blocked", "opset 13 has no Gelu, which opset 20 brought")
    }


def test_a_converter_that_is_wrong_is_counted_as_wrong() -> None:
    (verdict,) = judged("test_averagepool_2d_dilations", 13, tool="onnx").values()
    assert verdict[0] in NOTHING
