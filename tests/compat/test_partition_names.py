"""The names of ExecuTorch and TVM for partitions and regions."""

import pytest

from tiered import UsageError
from tiered.compat import tvm
from tiered.support.errors import BackendNotFoundError
from tiered.testing import parse

TEXT = "(float[2] x) => (float[2] y) { a = Neg(x) b = Add(a, x) c = Sin(b) y = Mul(c, c) }"


def test_the_flow_of_tvm() -> None:
    table = [("onnxruntime_cpu.neg_add", "(x, z) => (y) { n = Neg(x)  y = Add(n, z) }")]
    flow = tvm.transform.Sequential(
        [
            tvm.transform.MergeComposite(table),
            tvm.transform.AnnotateTarget("llvm"),
            tvm.transform.MergeCompilerRegions(),
            tvm.transform.PartitionGraph(),
        ]
    )
    made = flow(parse(TEXT))
    assert {node.domain for node in made.graph.node} <= {"tiered.onnxruntime_cpu"}
    assert {f.domain for f in made.functions} == {"tiered.composite", "tiered.onnxruntime_cpu"}
    assert tvm.AnnotateTarget(["llvm"]).name == "annotate_target"
    with pytest.raises(UsageError, match="weights stay inputs"):
        tvm.PartitionGraph(bind_constants=True)


def test_devices_of_tvm() -> None:
    made = tvm.RewriteAnnotatedOps("cpu")(parse(TEXT))
    assert {e.value for node in made.graph.node for e in node.metadata_props} == {"cpu"}
    assert tvm.RewriteAnnotatedOps(1)(parse(TEXT)) == made
    assert tvm.transform.RewriteAnnotatedOps(fallback_device=2).options["fallback_device"] == "cuda"
    with pytest.raises(UsageError, match="there is no device type 99: 1 is cpu"):
        tvm.RewriteAnnotatedOps(99)


def test_targets_have_the_name_of_the_documentation() -> None:
    made = tvm.AnnotateTarget(target=["llvm", "cuda"])
    assert made == tvm.AnnotateTarget(["llvm", "cuda"])
    with pytest.raises(BackendNotFoundError, match="dnnl"):
        tvm.AnnotateTarget(target=["dnnl", "xyzlib"])
    with pytest.raises(UsageError, match="takes the targets once"):
        tvm.AnnotateTarget(["llvm"], target=["cuda"])
