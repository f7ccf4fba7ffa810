"""Custom operators are verified by a body, a Python reference or a library; else it is said."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import proto
from tiered import Graph, PassContext, Value, VerificationError, op, optimize_model, rewrite, var
from tiered.extensions.debug import bisect, compare_models
from tiered.runtime.worker.client import shared_worker
from tiered.support.errors import BackendError, MissingOperator, RuntimeFailure
from tiered.targets import Backend, CustomOperator, OperatorRule, get_backend
from tiered.verify import custom_ops, register_operator
from tiered.verify.sliced_session import open_model

GATED = """g (float[N,4] x) => (float[N,4] y)
    <float[4,4] w = {1,2,3,4, 0,1,0,1, 1,1,1,1, 2,0,0,2}> {
    a = Relu(x)  p = MatMul(a, w)  s = Sigmoid(p)  m = Mul(p, s)  y = Neg(m) }"""
BODY = "GateLinear (x, w) => (y) { p = MatMul(x, w)  s = Sigmoid(p)  y = Mul(p, s) }"
HEADER = '<domain: "zeta", opset_import: ["": 21]> '


def gate_linear(x: Any, w: Any) -> Any:
    product = x @ w
    return product / (1 + np.exp(-product))


@rewrite(
    op.Mul(op.MatMul(var.x, var.w), op.Sigmoid(op.MatMul(var.x, var.w))),
    opt_level=None,
    numerics="reassociating",
)
def fuse_gate_linear(graph: Graph, x: Value, w: Value) -> Value:
    """One operator of the target's."""
    result: Value = graph.op("zeta").GateLinear(x, w)
    return result


@pytest.fixture(autouse=True)
def nothing_registered() -> Iterator[None]:
    kept = dict(custom_ops._REGISTERED)
    custom_ops._REGISTERED.clear()
    yield
    custom_ops._REGISTERED.clear()
    custom_ops._REGISTERED.update(kept)


def zeta(**definition: Any) -> Backend:
    return Backend(
        name="zeta",
        unlisted="standard",
        operators={("zeta", "GateLinear"): (OperatorRule(),)},
        custom_operators=(CustomOperator.of("zeta::GateLinear", **definition),),
    )


def verified(backend: Backend | None = None, how: Any = "each", **settings: Any) -> Any:
    return optimize_model(
        proto(GATED),
        passes=[fuse_gate_linear],
        backend=backend,
        verify=how,
        **settings,
    )


@pytest.mark.parametrize("how", ["each", "region", "final"])
@pytest.mark.parametrize(
    "definition",
    [
        {"body": BODY},
        {"body": HEADER + BODY},
        {"reference": gate_linear},
        {"reference": "tests.verify.test_custom_ops:gate_linear"},
    ],
)
def test_a_definition_makes_the_operator_run(definition: Any, how: str) -> None:
    result = verified(zeta(**definition), how)
    kinds = [node.op_type for node in result.model.main.topological_order()]
    assert kinds == ["Relu", "GateLinear", "Neg"]
    assert result.verify.runs == 1
    assert not result.model.functions, "the definition is no part of the result"
    assert result.verify.comparisons[0].ok
    assert not [remark for remark in result.remarks if remark.kind == "verify"]


def test_a_wrong_fusion_is_wrong_by_the_definition() -> None:
    for definition in (
        {"body": BODY.replace("Mul(p, s)", "Add(p, s)")},
        {"reference": lambda x, w: x @ w},
    ):
        with pytest.raises(VerificationError, match="fuse_gate_linear changed output 'y'"):
            verified(zeta(**definition))


def test_without_a_definition_it_cannot_run() -> None:
    with pytest.raises(VerificationError) as caught:
        verified()
    said = str(caught.value)
    assert said.startswith("fuse_gate_linear: the result cannot be verified: it cannot run: the ")
    assert "no operator zeta::GateLinear, and nothing defines it; give it a body" in said
    assert verified(how="structure").model


def test_bisection_reports_a_model_that_cannot_run() -> None:
    blame = bisect(proto(GATED), passes=[fuse_gate_linear])
    assert blame is not None
    assert blame.kind == "cannot run"
    assert "\n  cannot run: the runtime has no operator zeta::GateLinear" in str(blame)
    assert "wrong" not in str(blame)
    backend = zeta(body=BODY)
    assert bisect(proto(GATED), passes=[fuse_gate_linear], backend=backend) is None


def test_a_registered_operator_is_known_everywhere() -> None:
    register_operator("zeta::GateLinear", body=BODY)
    assert verified().verify.comparisons[0].ok
    made = verified(how="off").model.to_proto()
    assert compare_models(proto(GATED), made).ok
    feeds = {"x": np.ones((2, 4), np.float32)}
    with open_model(shared_worker(), made, reference=True) as session:
        assert session.run(feeds)["y"].shape == (2, 4)


def test_a_local_function_of_the_model_comes_first() -> None:
    register_operator("zeta::GateLinear", body=BODY.replace("Mul(p, s)", "Add(p, s)"))
    made = verified(how="off").model.to_proto()
    made.functions.append(onnx.parser.parse_function(HEADER + BODY))
    assert compare_models(proto(GATED), made).ok


def test_files_with_weights_apart_run_too(tmp_path: Path) -> None:
    made = verified(how="off").model.to_proto()
    for tensor in made.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    path = tmp_path / "m.onnx"
    onnx.save(made, path, save_as_external_data=True, size_threshold=0, location="w.bin")
    for definition in ({"body": BODY}, {"reference": gate_linear}):
        custom_ops._REGISTERED.clear()
        register_operator("zeta::GateLinear", **definition)
        assert compare_models(proto(GATED), path).ok


def test_a_reference_gets_attributes_and_absent_operands() -> None:
    seen: list[Any] = []

    def scale(x: Any, k: Any, b: Any, *, alpha: float) -> Any:
        seen.append((k, alpha))
        return x * alpha + b

    register_operator("zeta::Scale", reference=scale)
    text = """<ir_version: 10, opset_import: ["": 21, "zeta": 1]> g (float[2] x) => (float[2] y)
        <float[2] b = {1, 2}> { n = Neg(x)  y = zeta.Scale <alpha = 2.0> (n, , b) }"""
    feeds = {"x": np.array([1, 2], np.float32)}
    with open_model(shared_worker(), onnx.parser.parse_model(text)) as session:
        assert session.run(feeds)["y"].tolist() == [-1, -2]
    assert seen == [(None, 2.0)]


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        (lambda x, w: 1 / 0, "the reference of zeta::GateLinear failed: ZeroDivisionError"),
        (lambda x, w: (x, w), "returned 2 arrays; the node has 1 output"),
    ],
)
def test_a_reference_that_fails_is_named(reference: Any, says: str) -> None:
    register_operator("zeta::GateLinear", reference=reference)
    made = verified(how="off").model.to_proto()
    feeds = {"x": np.ones((2, 4), np.float32)}
    with (
        open_model(shared_worker(), made) as session,
        pytest.raises(RuntimeFailure, match=says),
    ):
        session.run(feeds)


@pytest.mark.parametrize(
    ("definition", "says"),
    [
        ({"body": "Other (x, w) => (y) { y = MatMul(x, w) }"}, "of that name, not zeta::Other"),
        ({"body": "GateLinear (x, w"}, "the body of zeta::GateLinear: "),
        ({"reference": "no_such_module:f"}, "cannot import 'no_such_module:f'"),
        ({"reference": "numpy"}, "expected 'module:function'"),
    ],
)
def test_a_wrong_definition_is_an_error(definition: Any, says: str) -> None:
    with pytest.raises(BackendError, match=says):
        verified(zeta(**definition))


def test_there_is_one_definition_of_an_operator_with_a_domain() -> None:
    for name, definition in (("zeta::A", {}), ("zeta::A", {"body": "x", "library": "y"})):
        with pytest.raises(BackendError, match="expected one of a body"):
            CustomOperator.of(name, **definition)
    with pytest.raises(BackendError, match="expected a domain and a name"):
        CustomOperator.of("GateLinear", body=BODY)


PROFILE = f"""
api_version = 1
name = "zeta"
unlisted = "standard"
custom_ops = "libzeta.so"

[operators]
"zeta::GateLinear, zeta::Fast" = true
"com.microsoft::Gelu" = true

[custom_operators]
"zeta::GateLinear" = {{ body = "{BODY}" }}
"""


def test_a_profile_defines_operators(tmp_path: Path) -> None:
    path = tmp_path / "zeta.toml"
    path.write_text(PROFILE)
    backend = get_backend(str(path))
    found = {str(each): each for each in backend.custom_operators}
    assert set(found) == {"zeta::GateLinear", "zeta::Fast"}
    assert found["zeta::Fast"].library == str(tmp_path / "libzeta.so")
    assert verified(backend).verify.comparisons[0].ok
    path.write_text(PROFILE.replace("body", "boddy"))
    with pytest.raises(BackendError, match="boddy"):
        get_backend(str(path))


def test_a_library_is_registered_with_onnxruntime(tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match=r"none\.so"):
        verified(zeta(library=str(tmp_path / "none.so")))
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, library = tmp_path / "zeta.c", tmp_path / "libzeta.so"
    source.write_text("void *RegisterCustomOps(void *options, const void *api) { return 0; }")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    made = verified(how="off").model.to_proto()
    with (
        PassContext(backend=zeta(library=str(library))),
        pytest.raises(MissingOperator, match="no operator zeta::GateLinear"),
        open_model(shared_worker(), made),
    ):
        pass  # it registers nothing, but it was loaded


def test_a_backend_of_a_block_is_used_instead_of_that_of_the_context() -> None:
    key = ("zeta", "GateLinear")
    other = zeta(reference=gate_linear)
    with PassContext(backend=zeta(body=BODY)):
        assert custom_ops.known()[key].reference is None
        with custom_ops.using(other):
            assert custom_ops.known()[key].reference is not None
