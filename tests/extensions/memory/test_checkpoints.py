"""gradient{recompute}: the backward pass computes tensors of the forward pass again."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.extensions.gradients.differences import OnnxRuntime, random_feeds
from tests.rollback import assert_undone
from tiered import Model, PassContext, UsageError, get_pass, memory_plan, optimize
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory.checkpoints import _Checkpoints
from tiered.testing import assert_unchanged, parse

LAYERS = 24

STEPS = " ".join(
    f"h{at} = MatMul(t{at}, w)  k{at} = Mul(h{at}, h{at})  t{at + 1} = Tanh(k{at})"
    for at in range(LAYERS)
)

CHAIN = f"""(float[16,4] x) => (float loss) <float[4,4] w = {{{",".join(["0.3", "-0.2"] * 8)}}}> {{
    t0 = Identity(x)  {STEPS}  loss = ReduceSum <keepdims = 0> (t{LAYERS}) }}"""


def made(text: str, **options: Any) -> onnx.ModelProto:
    model = get_pass("gradient", **options)(parse(text))
    assert isinstance(model, onnx.ModelProto)
    onnx.checker.check_model(model, full_check=True)
    return model


def peak(proto: onnx.ModelProto) -> int:
    return memory_plan(Model.from_proto(proto)).peak


def copies(proto: onnx.ModelProto) -> list[str]:
    return [
        node.op_type
        for node in proto.graph.node
        if any(entry.key == "tiered.recomputed" for entry in node.metadata_props)
    ]


def assert_same_bits(one: onnx.ModelProto, other: onnx.ModelProto) -> None:
    feeds = random_feeds(one)
    first, second = OnnxRuntime(one)(feeds), OnnxRuntime(other)(feeds)
    assert first.keys() == second.keys()
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_segments_lower_the_peak_and_keep_the_bits() -> None:
    plain, cut = made(CHAIN), made(CHAIN, recompute=True)
    assert peak(cut) < 0.5 * peak(plain)
    # Each layer at most once, and the last segment not at all.
    assert LAYERS < len(copies(cut)) < 3 * LAYERS
    assert len(cut.graph.node) == len(plain.graph.node) + len(copies(cut))
    assert_same_bits(plain, cut)


@pytest.mark.parametrize("opt_level", [2, 3])
def test_no_pass_merges_the_copies(opt_level: int) -> None:
    plain, cut = made(CHAIN), made(CHAIN, recompute=True)
    merged = optimize(plain, opt_level=opt_level)
    smaller = optimize(cut, opt_level=opt_level)
    assert peak(smaller) < 0.5 * peak(merged)
    assert copies(smaller).count("MatMul") == copies(cut).count("MatMul")
    assert optimize(smaller, opt_level=opt_level) == smaller
    assert_same_bits(optimize(plain, opt_level=2), optimize(cut, opt_level=2))


def test_named_tensors_and_nodes_stay() -> None:
    stay = ["t8", "t16", "t24"]
    cut = made(CHAIN, stay=stay)
    # A square reads its operand, a Tanh its result, a MatMul its operand: all but the named.
    assert sorted(set(copies(cut))) == ["Identity", "MatMul", "Mul", "Tanh"]
    assert copies(cut).count("Tanh") == LAYERS - 3
    assert copies(cut).count("MatMul") == LAYERS
    assert_same_bits(made(CHAIN), cut)
    labelled = CHAIN.replace("t8 = Tanh", "[block_1] t8 = Tanh").replace(
        "t16 = Tanh", "[block_2] t16 = Tanh"
    )
    assert copies(made(labelled, stay=["block_*", "t24"])) == copies(cut)


def test_what_is_computed_after_the_last_named_tensor_stays() -> None:
    assert copies(made(CHAIN, stay=["t12"])).count("Tanh") == 11


def test_an_entry_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(UsageError, match="stay='t99' matches no tensor and no node"):
        made(CHAIN, stay=["t99"])


def test_a_second_gradient_computes_copies_again_apart_from_the_first() -> None:
    first = made(CHAIN, recompute=True)
    options: dict[str, Any] = {"of": ["grad/x"], "with_respect_to": ["x"], "seed": "input"}
    plain = get_pass("gradient", **options)(first)
    second = get_pass("gradient", **options, recompute=True)(first)
    assert isinstance(plain, onnx.ModelProto)
    assert isinstance(second, onnx.ModelProto)
    marks = {entry.value for node in second.graph.node for entry in node.metadata_props}
    assert marks == {"1", "2"}
    assert peak(second) < peak(plain)
    assert_same_bits(plain, second)


def test_nodes_have_no_metadata_before_ir_10() -> None:
    old = parse(f'<ir_version: 8, opset_import: ["" : 17]> g {CHAIN}')
    assert get_pass("gradient")(old).ir_version == 8
    assert get_pass("gradient", recompute=True)(old).ir_version == 10


def test_it_is_undone_whole() -> None:
    assert_undone("gradient", CHAIN, recompute=True)


def test_a_second_run_adds_nothing() -> None:
    cut = made(CHAIN, recompute=True)
    assert_unchanged("gradient", cut, because="the gradients are outputs", of=["loss"])


REMARKS = {
    "the node of 'c' is random or unknown": (
        "c = RandomNormalLike(t12)  d = Mul(c, t12)  e = Tanh(d)"
    ),
    "the node of 'c' has bodies": (
        "s = ReduceMax<keepdims=0>(x)  u = Cast<to=9>(s)  c = If(u) <"
        "then_branch = p () => (float[16,4] a) { a = Tanh(t12) }, "
        "else_branch = q () => (float[16,4] b) { b = Sigmoid(t12) }>  d = Mul(c, t12)  e = Tanh(d)"
    ),
}


@pytest.mark.parametrize("because", REMARKS)
def test_random_nodes_and_nodes_with_bodies_run_once(because: str) -> None:
    text = CHAIN.replace("h12 = MatMul(t12, w)", f"{REMARKS[because]}  h12 = MatMul(e, w)")
    with PassContext() as ctx:
        cut = made(text, stay=["t24"])
    assert because in [remark.reason for remark in ctx.remarks]
    assert not {"If", "RandomNormalLike"}.intersection(copies(cut))
    if "If" in text:
        assert_same_bits(made(text), cut)


def test_a_short_network_stays_as_it_is() -> None:
    text = "(float[2] x) => (float y) { t = Tanh(x)  y = ReduceSum <keepdims = 0> (t) }"
    with PassContext() as ctx:
        cut = made(text, recompute=True)
    assert copies(cut) == []
    assert "the peak is no lower with segments" in [remark.reason for remark in ctx.remarks]


def test_loops_in_the_backward_pass_read_the_copies() -> None:
    text = CHAIN.replace(
        "h12 = MatMul(t12, w)",
        "k = Mul(t12, t12)  n = Constant<value_int = 3>()  c = Constant<value = bool {1}>()"
        "  e = Loop(n, c, t12) <body = b (int64 i, bool g, float[16,4] s) =>"
        " (bool o, float[16,4] z) { o = Identity(g)  z = Mul(s, k) }>  h12 = MatMul(e, w)",
    )
    cut = made(text, stay=["t24", "e"])
    assert_same_bits(made(text), cut)
    assert "Mul" in copies(cut)
    feeds = random_feeds(cut)
    assert np.isfinite(OnnxRuntime(cut)(feeds)["grad/x"]).all()


def test_constants_and_outputs_of_the_forward_pass_stay() -> None:
    text = CHAIN.replace(
        "h12 = MatMul(t12, w)",
        "k = Constant<value_float = 2.0>()  e = Mul(t12, k)  h12 = MatMul(e, w)",
    )
    plain = copies(made(text, stay=["t24"]))
    assert "Constant" not in plain
    shown = copies(made(text.replace("(float loss)", "(float loss, float[16,4] t8)"),
                        of=["loss"], stay=["t24"]))  # fmt: skip
    assert plain.count("Tanh") - shown.count("Tanh") == 1


def test_a_tensor_is_named_by_itself_or_by_its_node() -> None:
    text = CHAIN.replace("t8 = Tanh", "[block] t8 = Tanh")
    assert copies(made(text, stay=["t8", "t24"])) == copies(made(text, stay=["block", "t24"]))


def test_tensors_of_a_hundredth_of_all_bytes_stay() -> None:
    for size, again in ((99, ["a"]), (98, ["a", "s"])):
        model = Model.from_proto(parse(
            f"(float[{size}] x) => (float[{size}] y) "
            "{ a = Relu(x)  s = ReduceMax <keepdims = 0> (a)  b = Exp(a)  y = Mul(b, s) }"
        ))  # fmt: skip
        found = _Checkpoints(model, model.main.topological_order()[:2], LayoutSizes())
        assert [value.name for value in found.read] == again, size
