"""When weights are stored in few bits, and what is said when none is."""

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from tests.small import ops
from tiered import Model, Node
from tiered.numerics.precision.few_bits.formats import WeightFormat, int8_format
from tiered.numerics.precision.few_bits.weights import store_weights
from tiered.rewriter import Skip
from tiered.testing import assert_unchanged, parse

PASSES = ("weights_to_int8", "weights_to_int4")
HELD = "<float[2,2] w = {1,2,3,4}>"


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            f"() => (float[2,2] y) {HELD} {{ y = MatMul(w, w) }}",
            "no weight is stored in few bits: all that it reads is constant",
        ),
        (
            f"(float[2,2] x, float[2,2] w) => (float[2,2] y) {HELD} {{ y = MatMul(x, w) }}",
            "no weight is stored in few bits: the weight is an input, which callers may feed",
        ),
    ],
)
def test_the_first_reason_is_that_of_the_model(name: str, text: str, because: str) -> None:
    assert_unchanged(name, text, because=because)


WEIGHTS: dict[str, Any] = {
    "w": np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8),
    "bad": np.full((8, 8), np.nan, np.float32),
    "k": np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8, 1),
    "d": np.ones((8, 8)),
}


def stored(
    nodes: str, form: WeightFormat | None = None, *, opset: int = 21, least: int = 1, **held: Any
) -> tuple[list[str], list[tuple[str, str]], list[str], Model]:
    """Return what is said, what stays and why, which nodes read codes, and the model."""
    text = f"(float[2,8] x, double[2,8] z, float[1,8,4] i) => (float[a,b] y) {{ {nodes} }}"
    proto = parse(text, opset=opset)
    proto.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in WEIGHTS.items()
    )
    model = Model.from_proto(proto)
    found, stays = list[str](), list[tuple[str, str]]()

    def skip(node: Node | None, reason: Skip) -> None:
        stays.append(("" if node is None else node.output.name, str(reason)))

    keep = held.pop("keep", lambda node: "")
    form = int8_format(0) if form is None else form
    edited = store_weights(model, form, found.append, skip, keep, least, **held)
    return found, stays, [node.output.name for node in edited], model


def test_the_readers_of_a_weight_read_its_codes() -> None:
    found, stays, edited, model = stored("a = MatMul(x, w)  y = MatMul(a, w)")
    assert found[0] == "1 weight in int8: 256 bytes are 96"
    assert found[1].startswith("the least signal to noise of a weight: ")
    assert (stays, edited) == ([], ["a", "y"])
    assert ops(model) == ["DequantizeLinear", "MatMul", "MatMul"]


@pytest.mark.parametrize(
    ("nodes", "opset", "reason"),
    [
        ("y = MatMul(x, w)", 12, "int8 needs opset 13, the model has 12"),
        ("y = MatMul(x, w)", 13, ""),
        ("y = Neg(x)", 21, "no constant weight of Conv, Gather, Gemm or MatMul"),
        (
            "a = MatMul(z, d)  y = Cast<to = 1>(a)", 21,
            "no weight is stored in few bits: a weight of double has no form in few bits",
        ),
    ],
)  # fmt: skip
def test_why_no_weight_is_stored(nodes: str, opset: int, reason: str) -> None:
    found, stays, edited, _ = stored(nodes, opset=opset)
    assert [why for name, why in stays if not name] == ([reason] if reason else [])
    assert bool(found) == bool(edited) == (not reason)


def test_a_weight_that_stays_has_a_reason_and_others_are_stored() -> None:
    nodes = "a = MatMul(x, bad)  y = MatMul(a, w)"
    _, stays, edited, _ = stored(nodes)
    assert (stays, edited) == ([("a", "the weight has NaN or Inf")], ["y"])
    _, stays, edited, _ = stored(
        nodes.replace("bad", "w"), keep=lambda node: "asked" * (node.output.name == "y")
    )
    assert (stays, edited) == ([("a", "asked")], [])
    _, stays, edited, _ = stored("y = MatMul(x, w)", least=65)
    assert (stays, edited) == ([("y", "a small weight")], [])


def test_another_format_may_be_chosen_for_some() -> None:
    none = stored("y = MatMul(x, w)", chooses=lambda nodes: False)
    assert none[:3] == ([], [], [])
    assert stored("y = MatMul(x, w)", chooses=lambda nodes: True)[2] == ["y"]


@pytest.mark.parametrize(("block", "shape"), [(0, False), (4, True)])
def test_a_kernel_of_blocks_has_its_shape_again(block: int, shape: bool) -> None:
    *_, edited, model = stored("c = Conv(i, k)  y = Flatten(c)", int8_format(block))
    assert edited == ["c"]
    assert ("Reshape" in ops(model)) is shape
