"""The table of `onnxruntime_cpu` is what the installed onnxruntime does, by tiny models."""

import re
from collections.abc import Iterator

import onnx
import onnxruntime
import pytest

from tests.targets.kernels import MARK, OPSET, PROFILE, allowed_dtypes, table
from tests.targets.tiny import OPENED, TINY, WHOLE, model_text
from tiered import Model, ModelError, get_backend
from tiered.runtime import Session, make_inputs
from tiered.support.errors import RuntimeFailure
from tiered.targets.operator_rule import dtype_name
from tiered.testing import parse

TARGET = get_backend("onnxruntime_cpu")
IS_DESCRIBED = onnxruntime.__version__.startswith("1.32.")
PREFERRED = ("float", "int64", "uint8", "int8", "bool", "int32")
OLD = {"Scatter": 9, "Upsample": 9}
"""Operators that newer opsets do not have."""

NOT_ON_CPU = (
    "(float[1,4,4,2] x, float[3,2,2,2] w) => (y) { y = com.microsoft.NhwcConv(x, w) }",
    "(float[1,4,4,2] x, float[3,2,2,2] w) => (y) { y = com.microsoft.NhwcFusedConv(x, w) }",
    "(float[1,2,3,4] x, float[4] g, float[4] b) => (y) "
    "{ y = com.microsoft.GroupNorm<groups=2, activation=0>(x, g, b) }",
    "(float[2,4] x, float[2,4] b) => (y) "
    "{ y = com.microsoft.BiasSoftmax<axis=1, is_inner_broadcast=0>(x, b) }",
    "(float[1,2,4] x, float[4] b, float[1,2,4] s) => (y) { y = com.microsoft.BiasSplitGelu(x, b) }",
    "(float[2,4] x, float[4] g, float[4] b) => (y) "
    "{ y = com.microsoft.LayerNormalization(x, g, b) }",
)
"""What catalogues of contrib operators name, and the CPU provider does not have."""

NOT_RUN = (
    "AttnLSTM", "BeamSearch", "BranchwiseRMSNorm", "CausalConvWithState", "EngramGate",
    "GatedAdd", "GatedDeltaNet", "GatedRMSNorm", "GatherBlockQuantized", "GatherPacked",
    "GreedySearch", "HyperConnectionPostMix", "HyperConnectionPreMix", "LinearAttention",
    "LinearAttentionGate", "MRotaryEmbedding", "MatMulFpQ4", "MoEGroupRouter", "NGramHashMapping",
    "QMoE", "Sampling", "SparseAttention", "SparseToDenseMatMul", "UnfoldTensor",
    "VarlenCausalConvWithState", "VarlenNGramHashMapping", "WhisperBeamSearch",
)  # fmt: skip
"""Operators that are listed as onnxruntime registers them, without a model that shows it."""

needs_described = pytest.mark.skipif(not IS_DESCRIBED, reason="the table is of onnxruntime 1.32")


def runs(model: onnx.ModelProto, *, only_opens: bool = False) -> bool:
    """Tell whether onnxruntime opens and runs a model."""
    try:
        session = Session(model)
        if not only_opens:
            session.run(make_inputs(model).feeds)
    except RuntimeFailure:
        return False
    return True


def bindings(key: str) -> Iterator[dict[str, str]]:
    """Yield a dtype for each type parameter: a usual one first, then each of each in turn."""
    domain, _, op_type = key.rpartition("::")
    used = sorted(set(re.findall(r"([A-Z]\w*)[\[}]", TINY[key])))
    dtypes_of = allowed_dtypes(domain, op_type, OPSET)
    allowed = {name: dtypes for name, dtypes in dtypes_of.items() if dtypes}
    seen: set[tuple[tuple[str, str], ...]] = set()
    for rule in TARGET.rules(op_type, domain):
        named = {name: set(map(dtype_name, rule.types.get(name, ()))) for name in used}
        base = {name: _preferred(named[name] or allowed.get(name, ())) for name in used}
        others = [{name: dtype} for name in used for dtype in sorted(allowed.get(name, ()))]
        for other in ({}, *others):
            bound = {**base, **other}
            if tuple(bound.items()) not in seen:
                seen.add(tuple(bound.items()))
                yield bound


def _preferred(dtypes: object) -> str:
    names = list(dtypes) if isinstance(dtypes, set | frozenset) else []
    return min(names, key=lambda name: ([*PREFERRED, name].index(name), name), default="float")


@needs_described
def test_the_table_is_that_of_the_installed_onnxruntime() -> None:
    written = PROFILE.read_text(encoding="utf-8")
    assert MARK + written.partition(MARK)[2] == table(), "run `make kernels`"


@needs_described
@pytest.mark.parametrize("key", TINY)
def test_onnxruntime_runs_what_is_claimed_and_refuses_what_is_denied(key: str) -> None:
    wrong = []
    for types in bindings(key):
        model = parse(model_text(key, types, OLD.get(key, OPSET)))
        (node,) = Model.from_proto(model).main.nodes
        claimed = TARGET.takes(node)
        # Text that is no number cannot be cast, and a float16 depth cannot be written as text.
        only_opens = "string" in types.values() or key == "OneHot"
        if claimed != runs(model, only_opens=only_opens):
            wrong.append(f"{types} {'claimed' if claimed else 'denied'}")
    assert wrong == []


@needs_described
@pytest.mark.parametrize("opset", [13, 18, 21])
def test_what_runs_at_an_older_opset_is_claimed_there_too(opset: int) -> None:
    wrong = []
    for key in TINY:
        types = next(bindings(key))
        model = parse(model_text(key, types, OLD.get(key, opset)))
        try:
            (node,) = Model.from_proto(model).main.nodes
        except ModelError:  # its form is a newer one
            assert not runs(model, only_opens=True)
            continue
        if not node.domain and node.schema is None:
            continue  # onnxruntime has LayerNormalization before ONNX does
        if TARGET.takes(node) < runs(model, only_opens=True):
            wrong.append(f"{key} {types}: {', '.join(map(str, TARGET.refusals(node)))}")
    assert wrong == []


@needs_described
@pytest.mark.parametrize("text", NOT_ON_CPU)
def test_contrib_operators_without_a_kernel_are_denied(text: str) -> None:
    model = parse(text)
    (node,) = Model.from_proto(model).main.nodes
    assert not TARGET.takes(node)
    assert not runs(model)


@needs_described
@pytest.mark.parametrize("key", WHOLE)
def test_onnxruntime_runs_operators_with_bodies_and_other_types(key: str) -> None:
    model = parse(WHOLE[key])
    assert TARGET.coverage(Model.from_proto(model)).is_met
    assert runs(model)


@needs_described
@pytest.mark.parametrize("key", OPENED)
def test_onnxruntime_opens_models_of_maps_and_texts(key: str) -> None:
    model = parse(OPENED[key])
    assert [str(gap) for gap in TARGET.coverage(Model.from_proto(model)).gaps] == []
    assert TARGET.coverage(Model.from_proto(model)).is_met
    assert runs(model, only_opens=True)


def test_every_operator_of_the_table_is_run() -> None:
    whole = {
        node.operator
        for text in (*WHOLE.values(), *OPENED.values())
        for graph in Model.from_proto(parse(text)).graphs()
        for node in graph.nodes
    }
    listed = {f"{domain}::{name}" if domain else name for domain, name in TARGET.operators}
    assert sorted(listed - set(TINY) - whole) == [f"com.microsoft::{name}" for name in NOT_RUN]
