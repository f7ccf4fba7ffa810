"""When weights are stored in few bits, and what is said when none is."""

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from onnx import numpy_helper

from tests.module_passes.precision.weights import with_weight
from tests.small import ops
from tiered import DataType, Model, Node
from tiered.numerics.precision.few_bits import weights
from tiered.numerics.precision.few_bits.formats import WeightFormat, int4_format, int8_format
from tiered.numerics.precision.few_bits.readers import WeightReader
from tiered.numerics.precision.few_bits.sampled_operands import Sampling
from tiered.numerics.precision.few_bits.stored import Stored
from tiered.numerics.precision.few_bits.weights import (
    _multiplied,
    _stored,
    _Tally,
    quantize_weights,
    store_weights,
)
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


# --- on results that are given --------------------------------------------------------------------


def test_weights_that_are_stored_are_counted() -> None:
    model = Model.from_proto(
        with_weight("(float[N,64] x) => (float[N,16] y) { y = MatMul(x, w) }", (64, 16))
    )
    value = model.main.value("w")
    assert value is not None
    codes = np.zeros((64, 16), np.int8)
    pairs = ((31.26, True), (30.04, False), (math.inf, False))
    made = [Stored(codes, np.ones(2, np.float32), None, 0, None, *pair) for pair in pairs]
    measured, reason = (cast("Any", Named(each)) for each in ("", "no operand"))
    whole = "1 weight in int8: 4096 bytes are 1032"
    for stored_ones, operands, said in (
        ([], measured, []),
        (made[2:], None, [whole]),
        (made[:1], measured, [whole, "the least signal to noise of a weight: 31.3 dB, of w",
                              "1 of 1 are rounded for 3 samples, others to nearest"]),
        (made[:2], reason, ["2 weights in int8: 8192 bytes are 2064",
                            "the least signal to noise of a weight: 30.0 dB, of w",
                            "rounded to nearest: no operand"]),
    ):  # fmt: skip
        tally = _Tally()
        for each in stored_ones:
            tally.add(value, each)
        assert list(tally.findings(DataType.INT8, operands)) == said


class Named:
    """Operands with a reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __str__(self) -> str:
        return "3 samples"


def test_only_matrices_that_are_summed_over_one_axis_are_multiplied() -> None:
    node: Any = "a node"
    for rank, channels, count in ((2, (1,), 1), (2, (1, 1), 2), (2, (0, 1), 0), (3, (1,), 0)):
        uses = [WeightReader(node, 1, channel) for channel in channels]
        value: Any = SimpleNamespace(rank=rank)
        assert _multiplied(value, uses) == [node] * count


def test_codes_that_are_known_are_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Any]()
    tensor = SimpleNamespace(numpy=lambda: "numbers")

    def encode(*them: Any) -> str:
        asked.append(them[3])
        return "codes"

    monkeypatch.setattr(weights, "encoded", encode)
    operands: Any = SimpleNamespace(of=lambda value: "an operand")
    for known, given, count in ((None, None, 2), ({}, operands, 1)):
        value, held = cast("Any", Hashable(tensor)), cast("Any", known)
        asked.clear()
        for _ in range(2):
            assert (
                cast("Any", _stored(value, cast("Any", None), int8_format(0), held, given))
                == "codes"
            )
        assert asked == [given and "an operand"] * count


class Hashable:
    """A value with a tensor."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def test_formats_and_reasons_of_a_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is passed to `store_weights`: the format, whether it chooses, and whether it fits."""
    asked, keeps = list[tuple[DataType, bool, bool]](), list[Any]()

    def store(model: Model, form: WeightFormat, *them: Any) -> list[Node]:
        keeps.append(them[2])
        asked.append((form.dtype, them[6] is not None, them[5] is not None))
        return list(model.main.nodes)

    kept: dict[Node, str] = {}
    nodes: list[Any] = []
    monkeypatch.setattr(weights, "store_weights", store)
    monkeypatch.setattr(
        weights, "convert_within",
        lambda model, convert, *_, **__: nodes.append(convert(kept, len, lambda *_: None)),
    )  # fmt: skip
    monkeypatch.setattr(weights, "few_bit_roles", lambda model: {model.main.nodes[1]: "a role"})
    monkeypatch.setattr(weights, "undiluted_kernels", lambda model, *_: {model.main.nodes[0]})
    int4, int8, undiluted = DataType.UINT4, DataType.INT8, "rounded to 8 bits, it would move"
    for opset, sampling, sensitive, calls, reasons in (
        (21, None, None, [(int4, False, False)], ["", "a role", ""]),
        (21, Sampling(), None, [(int4, False, True)], ["", "a role", ""]),
        (21, None, int8_format(0), [(int8, True, False), (int4, True, False)], ["", "a role", ""]),
        (21, Sampling(), int8_format(0), [(int8, True, False), (int4, True, True)],
         [undiluted, "a role", ""]),
        (13, None, int8_format(0), [(int4, False, False)], ["", "a role", ""]),
    ):  # fmt: skip
        text = "(float[2,2] x) => (float[A,B] y) { a = Neg(x)  b = Abs(a)  y = Exp(b) }"
        model = Model.from_proto(parse(text, opset=opset))
        for each in (asked, keeps, nodes, kept):
            each.clear()
        said = list[str]()
        quantize_weights(
            model, int4_format(16), said.append, lambda *_: None, sampling=sampling,
            sensitive=sensitive, skip_op_types=("Cos",),
        )  # fmt: skip
        assert (asked, nodes, said) == (
            calls,
            [[*model.main.nodes] * len(calls)],
            ["no node has the operator Cos"],
        )
        found = [keeps[-1](node) for node in model.main.nodes]
        assert [why[: len(undiluted)] for why in found] == reasons
        kept[model.main.nodes[1]] = "returned for a budget"
        assert keeps[-1](model.main.nodes[1]) == "returned for a budget"
