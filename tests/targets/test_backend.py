"""What a backend says of operators and of nodes."""

from pathlib import Path

import onnx
import pytest

from tests.small import made_by, named
from tiered import DataType, Model, PassContext, UsageError
from tiered.graph import TensorType
from tiered.support.errors import BackendError, BackendNotFoundError
from tiered.targets import (
    Backend,
    backend_names,
    get_backend,
    register_backend,
    unregister_backend,
)
from tiered.targets.any_runtime import AnyRuntime
from tiered.targets.known import table_of
from tiered.targets.reading import backend_of
from tiered.testing import parse

NPU = {"api_version": 1, "name": "npu"}
FLOAT, FLOAT16, DOUBLE = DataType.FLOAT, DataType.FLOAT16, DataType.DOUBLE


def backend(operators: str = "", **settings: object) -> Backend:
    """Return a backend of some operator rules, as TOML would say them."""
    import tomllib

    return backend_of({**NPU, **settings, **tomllib.loads(operators)}, "npu.toml", table_of)


def said(target: Backend, text: str, opset: int = 21) -> list[str]:
    """Return what a backend refuses of the nodes of a model, in order."""
    model = Model.from_proto(parse(text, opset=opset))
    return [str(refusal) for node in model.main.nodes for refusal in target.refusals(node)]


def test_the_default_backend_has_the_standard_operators_and_no_others() -> None:
    portable = PassContext().backend
    assert portable.name == "portable"
    assert portable.supports("Conv")
    assert not portable.supports("Convolve")
    assert not portable.supports("BiasGelu", "com.microsoft")
    assert said(portable, "(float[2] x) => (y) { y = com.microsoft.QuickGelu(x) }") == [
        "the target has no such operator"
    ]


def test_the_default_backend_is_known_without_its_profile() -> None:
    known, read = PassContext().target, PassContext().backend
    assert isinstance(known, AnyRuntime)
    assert (str(known), known.edits) == (str(read), read.edits)
    assert known.quantization_form == read.quantization_form == "none"
    assert (known.layout, dict(known.layouts)) == (read.layout, dict(read.layouts))
    for domain, op_type in (
        *((schema.domain, schema.name) for schema in onnx.defs.get_all_schemas()),
        ("com.microsoft", "BiasGelu"),
        ("", "BiasGelu"),
    ):
        assert known.supports(op_type, domain) == read.supports(op_type, domain), op_type
    model = Model.from_proto(
        parse(
            """(float[2] x) => (w) {
                 c = Constant <value = float {2.0}> ()
                 y = Mul(x, c)
                 z = com.microsoft.QuickGelu(y)
                 w = local.twice(z)
               }
               <domain: "local", opset_import: ["" : 21]> twice (a) => (b) { b = Add(a, a) }"""
        )
    )
    for node in model.main.nodes:
        assert known.has(node) == read.has(node)
        assert known.refusals(node) == read.refusals(node)


def test_who_takes_the_name_of_the_default_backend_is_the_default() -> None:
    register_backend({"api_version": 1, "name": "portable"}, replace=True)
    try:
        assert not PassContext().target.supports("Relu")
    finally:
        unregister_backend("portable")
    assert PassContext().target.supports("Relu")


def test_onnxruntime_has_contrib_operators_by_dtype() -> None:
    target = get_backend("onnxruntime_cpu")
    assert target.supports("BiasGelu", "com.microsoft", FLOAT)
    assert not target.supports("BiasGelu", "com.microsoft", DOUBLE)
    assert not target.supports("NhwcConv", "com.microsoft")
    assert target.supports("Conv", dtype=FLOAT16)
    assert not target.has_kernel("Conv", dtype=FLOAT16)
    assert target.has_kernel("Conv", dtype=FLOAT)


def test_a_context_takes_a_name_a_backend_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "npu.toml"
    file.write_text('api_version = 1\nname = "npu"\n[operators]\nRelu = true\n')
    with PassContext(backend=str(file)) as outer:
        assert outer.backend.supports("Relu")
        with PassContext(opt_level=3) as inner:
            assert inner.backend is outer.backend
        with PassContext(backend=get_backend("portable")) as inner:
            assert inner.backend.name == "portable"


def test_an_unknown_backend_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(BackendNotFoundError, match="did you mean 'onnxruntime_cpu'"):
        PassContext(backend="onnxruntime-cpu")
    with pytest.raises(UsageError, match="backend takes a Backend"):
        PassContext(backend=3)  # type: ignore[arg-type]  # what is tested


def test_a_registered_backend_has_a_name_until_it_is_taken_away() -> None:
    register_backend({"api_version": 1, "name": "npu", "unlisted": "standard"})
    try:
        assert "npu" in backend_names()
        assert PassContext(backend="npu").backend.supports("Relu")
        with pytest.raises(BackendError, match="there is a backend 'npu' already"):
            register_backend({"api_version": 1, "name": "npu"})
    finally:
        unregister_backend("npu")
    assert "npu" not in backend_names()


@pytest.mark.parametrize(
    ("rule", "model", "refused"),
    [
        ("Relu = true", "(float[2] x) => (y) { y = Relu(x) }", []),
        (
            "Relu = false",
            "(float[2] x) => (y) { y = Relu(x) }",
            ["the target has no such operator"],
        ),
        (
            'Relu = { types = { T = ["float16"] } }',
            "(float[2] x) => (y) { y = Relu(x) }",
            ["X, Y are float; it takes float16"],
        ),
        (
            'Gather = { types = { T = ["float"], indices = ["int32"] } }',
            "(float[2] x, int64[1] i) => (y) { y = Gather(x, i) }",
            ["indices is int64; it takes int32"],
        ),
        (
            "Relu = { rank = [3, 4] }",
            "(float[2] x) => (y) { y = Relu(x) }",
            ["X has rank 1; it takes rank 3 to 4"],
        ),
        (
            'Conv = { constant = ["W", "B"] }',
            "(float[1,1,4,4] x, float[1,1,1,1] w) => (y) { y = Conv(x, w) }",
            ["W is not a constant"],
        ),
        (
            'Reshape = { constant = ["shape"] }',
            "(float[2] x) => (y) <int64[1] s = {2}> { y = Reshape(x, s) }",
            [],
        ),
        (
            'DepthToSpace = { attributes = { mode = "DCR", blocksize = [2, 4] } }',
            '(float[1,9,1,1] x) => (y) { y = DepthToSpace<mode="CRD", blocksize=3>(x) }',
            ["mode is CRD; it takes DCR", "blocksize is 3; it takes 2, 4"],
        ),
        (
            "Transpose = { attributes = { perm = { max = 2 } } }",
            "(float[1,1,1,1] x) => (y) { y = Transpose<perm=[0,2,3,1]>(x) }",
            ["perm is [0,2,3,1]; it takes at most 2"],
        ),
        (
            "Gather = { elements = { indices = { min = 0 } } }",
            "(float[2] x) => (y) <int64[1] i = {-1}> { y = Gather(x, i) }",
            ["indices holds -1; it takes 0 or more"],
        ),
        (
            "Relu = { versions = [1, 13] }",
            "(float[2] x) => (y) { y = Relu(x) }",
            ["version 14 of the operator; it takes version 1 to 13"],
        ),
        (
            'Relu = [{ types = { T = ["float16"] } }, { types = { T = ["int8"] } }]',
            "(float[2] x) => (y) { y = Relu(x) }",
            ["X, Y are float; it takes float16, int8"],
        ),
        (
            '"acme::Scale" = { types = { T = ["float16"] }, inputs = ["a:S", "b:T"] }',
            '<ir_version: 10, opset_import: ["": 21, "acme": 1]> g (float[2] x) => (float[2] y) '
            "{ y = acme.Scale(x, x) }",
            ["b is float; it takes float16"],
        ),
        (
            'Relu = { dtypes = ["int8"], note = "table 3" }',
            "(float[2] x) => (y) { y = Relu(x) }",
            ["X, Y are float (table 3); it takes int8"],
        ),
    ],
)
def test_a_rule_refuses_what_it_says(rule: str, model: str, refused: list[str]) -> None:
    assert said(backend(f"[operators]\n{rule}"), model) == refused


def test_dtypes_of_the_target_hold_where_a_rule_names_none() -> None:
    target = backend(
        '[dtypes]\nactivations = ["float16"]\nweights = ["int8"]\n[operators]\nMatMul = true'
    )
    model = "(float[2,2] x) => (y) <float[2,2] w = {1,2,3,4}> { y = MatMul(x, w) }"
    assert said(target, model) == [
        "A, Y are float; it takes float16",
        "B is float; it takes int8",
    ]


def test_between_quantize_and_dequantize_a_tensor_counts_as_what_it_is_quantised_to() -> None:
    target = backend(
        '[dtypes]\nactivations = ["uint8"]\n[quantization]\nform = "qdq"\n'
        "[operators]\nRelu = true\nQuantizeLinear = { dtypes = ['float'] }\n"
        "DequantizeLinear = { dtypes = ['uint8'] }"
    )
    unit = """(float[2] x) => (y) <float s = {0.5}, uint8 z = {0}> {
        q = QuantizeLinear(x, s, z)
        d = DequantizeLinear(q, s, z)
        r = Relu(d)
        q2 = QuantizeLinear(r, s, z)
        y = DequantizeLinear(q2, s, z)
    }"""
    assert [text for text in said(target, unit, opset=13) if "uint8" in text] == []
    assert said(target, "(float[2] x) => (y) { y = Relu(x) }") == [
        "X, Y are float; it takes uint8",
    ]


@pytest.mark.parametrize(
    ("settings", "model", "refused"),
    [
        (
            {"shapes": "static", "max_rank": 2},
            "(float[N,2,2] x) => (y) { y = Relu(x) }",
            ["rank 3; it takes at most 2", "dynamic dims N; it takes static shapes"],
        ),
        ({"shapes": "static"}, "(float[N,M] x) => (y) { y = Relu(x) }",
         ["dynamic dims N, M; it takes static shapes"]),
        ({"shapes": "static"}, "(float[?] x) => (y) { y = Relu(x) }",
         ["dynamic dims; it takes static shapes"]),
        ({"shapes": "static"}, "(float[2] x, bool[2] c) => (y) { n = NonZero(c)  y = Relu(n) }",
         ["dynamic dims; it takes static shapes"]),
        ({"shapes": "static"}, "(float x) => (y) { y = own.Gate(x)  z = Relu(y) }",
         ["an unknown rank; it takes static shapes"]),
        ({"shapes": "static"}, "(float[2,3,4] x) => (y) { y = Relu(x) }", []),
        ({"max_rank": 2}, "(float[N,2] x) => (y) { y = Relu(x) }", []),
        ({"max_rank": 2}, "(float[1,2,2] x) => (y) { y = Relu(x) }",
         ["rank 3; it takes at most 2"]),
        ({"max_rank": 0}, "(float x) => (y) { y = own.Gate(x)  z = Relu(y) }", []),
        ({"max_rank": 0}, "() => (seq(float[N]) y) { y = SequenceEmpty() }", []),
    ],
)  # fmt: skip
def test_static_shapes_and_ranks_hold_for_every_operator(
    settings: dict[str, object], model: str, refused: list[str]
) -> None:
    target = backend("", unlisted="standard", **settings)
    view = Model.from_proto(parse(model))
    assert list(map(str, target.refusals(view.main.nodes[-1]))) == refused


def test_the_rank_of_a_rule_is_that_of_the_first_operand_if_it_is_known() -> None:
    target = backend(
        "[operators]\nRelu = {rank = 2}\nRandomNormal = {rank = 2}\n'own::Gate' = true"
    )
    model = "(float[2] x) => (y) { y = own.Gate(x)  z = Relu(y)  r = RandomNormal<shape=[3]>() }"
    assert said(target, model) == ["output has rank 1; it takes rank 2"]
    assert (
        said(backend("[operators]\nRelu = {rank = 1}"), "(float[2] x) => (y) { y = Relu(x) }") == []
    )


def test_an_operator_newer_than_the_opset_is_refused_without_a_rule_for_it() -> None:
    target = backend("[operators]\nLayerNormalization = true")
    model = "(float[2] x, float[2] s) => (y) { y = LayerNormalization(x, s) }"
    assert said(target, model, 13) == [
        "ONNX has LayerNormalization from opset 17 on; the model's opset is 13"
    ]
    assert said(target, model, 17) == []


def test_a_node_that_is_refused_does_not_run_slowly() -> None:
    target = backend("[operators]\nRelu = { rank = 3 }\nErf = { slow = true }")
    model = Model.from_proto(parse("(float[2] x) => (y) { y = Relu(x)  z = Abs(x)  e = Erf(x) }"))
    assert [target.runs_slowly(node) for node in model.main.nodes] == [False, False, True]


def test_dims_without_names_are_dynamic() -> None:
    target = backend("", unlisted="standard", shapes="static")
    text = "(float[2] x) => (y) { a = own.Gate(x)  b = Relu(a)  y = Neg(b) }"
    model = Model.from_proto(parse(text))
    for name in "ab":
        model.main.set_type(named(model, name), TensorType(FLOAT, (None, 2)))
    found = target.refusals(made_by(model, "b"))
    assert list(map(str, found)) == ["dynamic dims; it takes static shapes"]


def test_dtypes_that_are_not_known_count_for_inputs_alone() -> None:
    rules = "[operators]\n'own::Gate' = true\nRelu = { dtypes = ['float'] }\nCast = { dtypes = [] }"
    model = "(float[2] x) => (y) { y = own.Gate(x)  z = Relu(y) }"
    assert said(backend(rules), model) == ["X is of unknown dtype; it takes float"]
    gate = "[operators]\n'own::Gate' = { inputs = ['a:T'], outputs = ['b:T'], dtypes = ['float'] }"
    assert said(backend(gate), "(float[2] x) => (y) { y = own.Gate(x) }") == []
    assert said(backend(gate), "(int8[2] x) => (y) { y = own.Gate(x) }") == [
        "a is int8; it takes float"
    ]
    listed = "[operators]\nSequenceLength = { types = { S = ['float'] } }"
    assert said(backend(listed), "(seq(int8[2]) x) => (y) { y = SequenceLength(x) }") == []


def test_dtypes_of_a_target_leave_those_of_other_parameters() -> None:
    target = backend("[operators]\nGather = true", dtypes={"activations": ["float"]})
    model = "(float[2] x, int64[1] i) => (y) { y = Gather(x, i) }"
    assert said(target, model) == []
    assert said(target, model.replace("float[2]", "int8[2]")) == [
        "data, output are int8; it takes float"
    ]
    target = backend("[operators]\nMul = true", dtypes={"weights": ["int8"]})
    product = "(float[2] x) => (y) <float[2] w = {1,2}> { y = Mul(x, w) }"
    assert said(target, product) == ["B is float; it takes int8"]


@pytest.mark.parametrize(("exact", "takes"), [("false", True), ("true", False)])
def test_an_exact_rule_refuses_dtypes_that_are_emulated(exact: str, takes: bool) -> None:
    target = backend(
        f"[operators]\nRelu = {{ dtypes = ['float'], exact = {exact} }}",
        dtypes={"emulated": {"float16": "float"}},
    )
    assert target.supports("Relu", dtype=FLOAT16) is takes
    assert not target.supports("Relu", dtype=DOUBLE)
    refused = said(target, "(float16[2] x) => (y) { y = Relu(x) }")
    assert refused == ([] if takes else ["X, Y are float16; it takes float"])


def test_an_operator_is_supported_at_the_versions_and_dtypes_of_a_rule() -> None:
    target = backend(
        "[operators]\nRelu = { versions = [6, 13] }\nErf = { dtypes = ['float'] }",
        dtypes={"activations": ["float16"]},
    )
    supported = [
        target.supports("Relu"),
        target.supports("Relu", version=13),
        target.supports("Relu", version=14),
        target.supports("Relu", dtype=FLOAT16, version=6),
        target.supports("Relu", dtype=FLOAT, version=6),
        target.supports("Erf", dtype=FLOAT),
        target.supports("Erf", dtype=FLOAT16),
        target.supports("Abs"),
    ]
    assert supported == [True, True, False, True, False, True, False, False]
    kernels = [target.has_kernel("Relu", dtype=dtype) for dtype in (None, FLOAT16, FLOAT)]
    assert kernels == [True, True, False]
    plain = backend("[operators]\nRelu = true")
    assert plain.has_kernel("Relu", dtype=DOUBLE)
    assert plain.supports("Relu", dtype=DOUBLE)
    composite = backend("[operators]\nRelu = { composite = true }")
    assert composite.supports("Relu")
    assert not composite.has_kernel("Relu")


def test_an_operator_is_slow_if_all_rules_for_the_dtype_are() -> None:
    target = backend(
        "[operators]\nRelu = [{ dtypes = ['float'], slow = true }, { dtypes = ['float16'] }]\n"
        "Erf = { slow = true }\nAbs = true"
    )
    slow = [target.is_slow("Relu", dtype=dtype) for dtype in (None, FLOAT, FLOAT16, DOUBLE)]
    assert slow == [False, True, False, False]
    assert [target.is_slow("Erf", dtype=dtype) for dtype in (None, FLOAT)] == [True, True]
    assert [target.is_slow(name) for name in ("Abs", "Neg")] == [False, False]
    assert backend("[operators]\nErf = { dtypes = ['float'], slow = true }").is_slow("Erf")
    assert [target.may_be_slow(name) for name in ("Relu", "Erf", "Abs", "Neg")] == [
        True, True, False, False,
    ]  # fmt: skip
    model = Model.from_proto(
        parse("(float[2] x, float16[2] h) => (y) { y = Relu(x)  z = Relu(h)  a = Abs(x) }")
    )
    assert [target.runs_slowly(node) for node in model.main.nodes] == [True, False, False]


def test_a_target_computes_floats_unless_its_dtypes_lack_them() -> None:
    assert backend().computes_floats
    assert backend(dtypes={"activations": ["float", "int8"]}).computes_floats
    assert not backend(dtypes={"activations": ["int8"]}).computes_floats


def test_a_target_has_constants_and_its_own_operators() -> None:
    model = Model.from_proto(
        parse(
            "(float[2] x) => (y) { c = Constant<value = float {1}> ()  y = Add(x, c)  z = Abs(x) }"
        )
    )
    target = backend("[operators]\nAbs = true")
    assert [target.has(node) for node in model.main.nodes] == [True, False, True]
    assert [target.takes(node) for node in model.main.nodes] == [True, False, True]


def test_a_substitute_is_for_the_nodes_that_its_rule_takes() -> None:
    target = backend(
        "[operators]\n'own::A' = true\n'own::B' = true\n[substitute]\n"
        "Relu = [{ with = 'own::A', rank = 2 }, 'own::B']"
    )
    model = Model.from_proto(
        parse("(float[2] x, float[2,2] w) => (y) { y = Relu(x)  z = Relu(w)  a = Abs(x) }")
    )
    assert [list(target.substitutes_of(node)) for node in model.main.nodes] == [
        [("own", "B")], [("own", "A"), ("own", "B")], [],
    ]  # fmt: skip


def test_in_a_qdq_unit_a_quantize_linear_counts_by_its_integers() -> None:
    unit = """(float[2] x) => (y) <float s = {0.5}, uint8 z = {0}> {
        q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  y = Relu(d) }"""
    operators = "[operators]\nRelu = true\nQuantizeLinear = true\nDequantizeLinear = true"
    for form, dtype, found in [
        ("qdq", "uint8", ["Y is float; it takes uint8"]),
        ("qdq", "int8", ["y is uint8; it takes int8", "x is uint8; it takes int8",
                         "X is uint8; it takes int8", "Y is float; it takes int8"]),
        ("qdq", "float", ["y is uint8; it takes float", "x is uint8; it takes float",
                          "X is uint8; it takes float"]),
    ]:  # fmt: skip
        target = backend(operators, dtypes={"activations": [dtype]}, quantization={"form": form})
        assert said(target, unit, opset=13) == found, dtype
    floats = backend(operators, dtypes={"activations": ["float"]})
    assert said(floats, "(float[2] x) => (y) { y = Relu(x) }") == []


def test_a_profile_extends_another_one() -> None:
    target = backend(
        '[operators]\n"com.microsoft::BiasGelu" = false\n"acme::Scale" = true',
        extends="onnxruntime_cpu",
    )
    assert target.supports("Conv")
    assert target.supports("Scale", "acme")
    assert not target.supports("BiasGelu", "com.microsoft")
    assert target.ir_version == get_backend("onnxruntime_cpu").ir_version


def test_equal_profiles_have_equal_digests() -> None:
    assert backend("[operators]\nRelu = true").digest == backend("[operators]\nRelu = true").digest
    assert backend("[operators]\nRelu = true").digest != backend("[operators]\nRelu = false").digest
    # 1 and 9 collide in a set: it iterates in the order of insertion.
    pairs: list[tuple[dict[str, object], dict[str, object]]] = [
        ({"layouts": {"Conv": "NHWC", "Relu": "NCHW"}},
         {"layouts": {"Relu": "NCHW", "Conv": "NHWC"}}),
        ({"operators": {"Relu": {"dtypes": ["float", "bool"]}}},
         {"operators": {"Relu": {"dtypes": ["bool", "float"]}}}),
        ({"operators": {"Relu": {"attributes": {"a": 1, "b": 2}}}},
         {"operators": {"Relu": {"attributes": {"b": 2, "a": 1}}}}),
    ]  # fmt: skip
    for one, other in pairs:
        first, second = (backend_of({**NPU, **each}, "npu.toml", table_of) for each in (one, other))
        assert first.digest == second.digest, one


# --- constants that are quantised, and names of type parameters -----------------------------------

QUANTIZED = """(float[2,4] x) => (float[2,3] y)
    <int8[4,3] q = {1,1,1,1,1,1,1,1,1,1,1,1}, float s = {0.5}> {
    w = DequantizeLinear(q, s)  y = MatMul(x, w) }"""


def test_a_dequantised_constant_is_a_constant() -> None:
    rules = "[operators]\nDequantizeLinear = true\nMatMul = { constant = ['B'] }"
    assert said(backend(rules), QUANTIZED) == []
    computed = QUANTIZED.replace("float s = {0.5}", "float k = {0.5}").replace(
        "w = Deq", "s = ReduceMax(x)  s0 = Reshape(s, e)  w = Deq"
    )
    computed = computed.replace("float k = {0.5}", "float k = {0.5}, int64[0] e = {}")
    computed = computed.replace("DequantizeLinear(q, s)", "DequantizeLinear(q, s0)")
    found = said(backend(rules + "\nReshape = true\nReduceMax = true"), computed)
    assert found == ["B is not a constant"]


def test_constants_of_unknown_operators_are_named_by_the_signature() -> None:
    rule = "{ inputs = ['X:T', 'W:T'], constant = ['W'] }"
    target = backend(f"[operators]\n'com.zeta::Gate' = {rule}")
    text = """<ir_version: 10, opset_import: ["": 21, "com.zeta": 1]>
        g (float[2] x, float[2] v) => (float[2] y) <float[2] w = {1,2}> {
            y = com.zeta.Gate(x, W) }"""
    assert said(target, text.replace("W", "w")) == []
    assert said(target, text.replace("W", "v")) == ["W is not a constant"]


@pytest.mark.parametrize(
    ("weights", "found"), [("int8", []), ("int16", ["B is int8; it takes int16"])]
)
def test_weights_are_those_behind_a_dequantize_linear(weights: str, found: list[str]) -> None:
    settings = {
        "dtypes": {"activations": ["float"], "weights": [weights]},
        "quantization": {"form": "qdq"},
    }
    target = backend("[operators]\nDequantizeLinear = true\nMatMul = true", **settings)
    model = Model.from_proto(parse(QUANTIZED))
    product = model.main.nodes_of("MatMul")[0]
    assert list(map(str, target.refusals(product))) == found


@pytest.mark.parametrize("opset", [7, 12, 21])
def test_a_type_parameter_counts_whatever_a_version_calls_it(opset: int) -> None:
    text = "(float[2] x, float[2] e) => (float[2] y) { y = Pow(x, e) }"
    target = backend("[operators]\nPow = { types = { T1 = ['int32'] } }")
    assert said(target, text, opset) == ["Y is float; it takes int32"]
