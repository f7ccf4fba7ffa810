"""LayerNormalization below opset 17, where onnxruntime has it and ONNX has not."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tiered import Model, ModelError, PassContext, get_backend, get_pass, optimize, pipeline_for
from tiered.runtime import run
from tiered.testing import assert_unchanged, parse

INTERFACE = "(float[N,4] x) => (float[N,4] y)"
AFFINE = "float[4] s = {1,2,3,4}, float[4] b = {4,3,2,1}"
EARLY = parse(
    f"{INTERFACE} <{AFFINE}> {{ n = LayerNormalization(x, s, b) y = Relu(n) }}",
    opset=13,
)
CHAIN = parse(
    f"{INTERFACE} <{AFFINE}, float p = {{2}}, float e = {{0.001}}> {{ m = ReduceMean<axes=[-1]>(x) "
    "d = Sub(x, m) q = Pow(d, p) v = ReduceMean<axes=[-1]>(q) w = Add(v, e) r = Sqrt(w) "
    "n = Div(d, r) t = Mul(n, s) y = Add(t, b) }",
    opset=13,
)
X = {"x": np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)}


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("level", [0, 1, 2, 3, 4])
def test_every_level_reads_it(level: int) -> None:
    model = optimize(EARLY, opt_level=level)
    assert operators(model) == ["LayerNormalization", "Relu"]
    np.testing.assert_array_equal(run(model, X)["y"], run(EARLY, X)["y"])


def test_a_target_with_the_kernel_keeps_it() -> None:
    backend = get_backend("onnxruntime_cpu")
    assert backend.coverage(Model.from_proto(EARLY)).is_met
    assert operators(optimize(EARLY, opt_level=3, backend=backend, strict=True)) == [
        "LayerNormalization",
        "Relu",
    ]


@pytest.mark.parametrize("target", ["portable", "portable13", "tensorrt"])
def test_a_target_without_it_gets_elementary_operators(target: str) -> None:
    coverage = get_backend(target).coverage(Model.from_proto(EARLY))
    (gap,) = coverage.gaps
    assert "ONNX has LayerNormalization from opset 17 on; the model's opset is 13" in str(gap)
    model = optimize(EARLY, opt_level=3, backend=target)
    assert "LayerNormalization" not in operators(model)
    onnx.checker.check_model(model, full_check=True)
    np.testing.assert_allclose(run(model, X)["y"], run(EARLY, X)["y"], rtol=1e-5, atol=1e-6)


def test_a_rule_with_versions_is_for_those_opsets(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        'api_version = 1\nname = "own"\ndoc = "."\n'
        "[operators]\nLayerNormalization = { versions = [15, 17] }\nRelu = true\n"
    )
    (gap,) = get_backend(str(file)).coverage(Model.from_proto(EARLY)).gaps
    assert "version 13 of the operator; it takes version 15 to 17" in str(gap)


def test_it_is_written_for_a_target_with_the_kernel() -> None:
    model = Model.from_proto(CHAIN)
    with PassContext(opt_level=3, backend="onnxruntime_cpu", strict=True):
        pipeline_for("onnxruntime_cpu")(model)
    found = model.to_proto()
    assert operators(found) == ["LayerNormalization"]
    assert len(found.graph.node[0].input) == 3
    (note,) = model.notes
    assert "is not in ONNX at opset 13, but onnxruntime_cpu" in note
    assert "`tiered convert --opset 17` makes it standard" in note
    model.convert_opset(17)
    onnx.checker.check_model(model.to_proto(), full_check=True)
    np.testing.assert_allclose(run(found, X)["y"], run(CHAIN, X)["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", [None, "portable", "portable13", "tensorrt"])
def test_it_is_not_written_for_others(target: str | None) -> None:
    assert_unchanged(
        "fuse_layernorm",
        CHAIN,
        because="ONNX has LayerNormalization from opset 17 on; the model's opset is 13",
        backend=target,
    )


def fused() -> tuple[Model, PassContext]:
    """Return a model with a LayerNormalization at opset 13, and the context that allows it."""
    model = Model.from_proto(CHAIN)
    model.refresh_types()
    ctx = PassContext.isolated(opt_level=3, backend="onnxruntime_cpu")
    get_pass("fuse_layernorm").apply(model, ctx)
    assert operators(model.to_proto()) == ["LayerNormalization"]
    return model, ctx


def test_the_rest_of_the_model_is_checked() -> None:
    model, ctx = fused()
    get_pass("final_check").apply(model, ctx)
    main = model.main
    main.add_node("Relu", [main.inputs[0], main.inputs[0]])
    with pytest.raises(ModelError, match=r"onnx.checker rejects the result: .*Relu"):
        get_pass("final_check").apply(model, ctx)


def test_without_a_target_the_checker_decides() -> None:
    model, _ = fused()
    with pytest.raises(ModelError, match="No Op registered for LayerNormalization"):
        get_pass("final_check").apply(model, PassContext.isolated(opt_level=3))


def test_verification_accepts_what_the_target_has() -> None:
    model = optimize(CHAIN, opt_level=3, backend="onnxruntime_cpu", verify=True)
    assert operators(model) == ["LayerNormalization"]


def test_a_newer_opset_makes_it_standard() -> None:
    model = Model.from_proto(EARLY)
    get_pass("convert_opset", to=17).apply(model)
    found = model.to_proto()
    assert operators(found) == ["LayerNormalization", "Relu"]
    onnx.checker.check_model(found, full_check=True)


def test_affine_operators_around_it_are_fused() -> None:
    model = parse(
        f"{INTERFACE} <float[4] o = {{1,1,1,1}}, {AFFINE}> "
        "{ n = LayerNormalization(x, o) t = Mul(n, s) y = Add(t, b) }",
        opset=13,
    )
    for target in (None, "onnxruntime_cpu"):
        assert operators(optimize(model, opt_level=3, backend=target)) == ["LayerNormalization"]
