"""Profiles as TOML: what each key becomes, what is merged, and where a wrong one is wrong."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tiered import DataType, UsageError
from tiered.support.errors import BackendError
from tiered.targets import Backend, get_backend, register_backend
from tiered.targets.backend import Verification
from tiered.targets.custom import CustomOperator
from tiered.targets.known import built_in_backends
from tiered.targets.operator_rule import ANY, AttributeRule, Bounds, OperatorRule, Substitute
from tiered.targets.pipeline_edits import PipelineEdit
from tiered.targets.quantized import FixedScale, Quantization
from tiered.targets.reading import (
    backend_of,
    extended,
    read_backend,
    read_table,
    with_known_types,
)

FLOAT, HALF, BYTE = (int(DataType[name]) for name in ("FLOAT", "FLOAT16", "UINT8"))


def no_parent(name: str) -> Mapping[str, Any]:
    raise AssertionError(name)


def read(table: Mapping[str, Any], where: str = "npu.toml", **more: Any) -> Backend:
    whole = {"api_version": 1, "name": "npu", **table, **more}
    return backend_of(whole, where, no_parent)


# --- what a key becomes ---------------------------------------------------------------------------


def test_a_profile_without_keys_takes_what_it_does_not_name() -> None:
    found = read({})
    assert (found.name, found.api_version, found.doc) == ("npu", 1, "")
    assert (found.sources, found.limits, found.shapes) == ((), (), "dynamic")
    assert (found.opset, found.ir_version, found.max_rank) == (ANY, ANY, None)
    assert (found.layout, found.layouts, found.unlisted) == ("any", {}, "refused")
    assert (found.activations, found.weights, found.emulated) == (frozenset(), frozenset(), {})
    assert (found.quantization, found.verification) == (Quantization(), Verification())
    assert (found.operators, found.substitutes) == ({}, {})
    assert (found.custom_operators, found.edits) == ((), ())


def test_each_key_is_read() -> None:
    found = read(
        {
            "doc": "A chip.", "sources": ["a", "b"], "limits": ["c"], "shapes": "static",
            "opset": [13, 17], "ir_version": {"max": 8}, "max_rank": 4, "layout": "NHWC",
            "layouts": {"Conv": "NCHW"}, "unlisted": "standard",
            "groups": {"floats": ["float", "float16"]},
            "dtypes": {"activations": ["floats"], "weights": ["uint8"],
                       "emulated": {"float16": "float"}},
            "verification": {"rtol": 0.1, "atol": 0.2, "min_cosine": 0.9},
        }
    )  # fmt: skip
    assert (found.doc, found.sources, found.limits) == ("A chip.", ("a", "b"), ("c",))
    assert (found.shapes, found.opset, found.ir_version) == ("static", (13, 17), (None, 8))
    assert (found.max_rank, found.layout, found.layouts) == (4, "NHWC", {"Conv": "NCHW"})
    assert found.unlisted == "standard"
    assert (found.activations, found.weights) == (frozenset({FLOAT, HALF}), frozenset({BYTE}))
    assert found.emulated == {HALF: FLOAT}
    assert found.verification == Verification(rtol=0.1, atol=0.2, min_cosine=0.9)


def test_how_models_are_quantised_is_read() -> None:
    table = {
        "form": "qdq", "per_channel": True, "symmetric_weights": True, "activations": "int8",
        "weights": "uint8", "symmetric_activations": True, "reduce_range": True,
        "operators": ["Conv"], "integer_results": ["Gemm"], "per_tensor": ["MatMul"],
        "unsigned_weights": ["Conv"], "fixed_results": {"Tanh": {"scale": 0.5, "zero_point": -128}},
    }  # fmt: skip
    assert read({"quantization": table}).quantization == Quantization(
        form="qdq", per_channel=True, symmetric_weights=True, activations=DataType.INT8,
        weights=DataType.UINT8, symmetric_activations=True, reduce_range=True,
        operators=("Conv",), integer_results=("Gemm",), per_tensor=("MatMul",),
        unsigned_weights=("Conv",), fixed_results={"Tanh": FixedScale(0.5, -128)},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("zero", "dtype", "fits"),
    [(127, "int8", True), (128, "int8", False), (-128, "int8", True), (-129, "int8", False),
     (255, "uint8", True), (-1, "uint8", False)],
)  # fmt: skip
def test_a_zero_point_is_a_number_of_the_data(zero: int, dtype: str, fits: bool) -> None:
    fixed = {"Tanh": {"scale": 1, "zero_point": zero}}
    table = {"quantization": {"activations": dtype, "fixed_results": fixed}}
    if fits:
        assert read(table).quantization.fixed_results["Tanh"].zero_point == zero
    else:
        with pytest.raises(BackendError, match=f"zero_point {zero} of Tanh is no {dtype}"):
            read(table)


def test_what_is_no_integer_has_no_zero_point() -> None:
    fixed = {"Tanh": {"scale": 0.5, "zero_point": 0}}
    for dtype in ("float", "float8e4m3fn", "bool", "string"):
        table = {"quantization": {"activations": dtype, "fixed_results": fixed}}
        with pytest.raises(BackendError, match=f"fixed_results: activations are {dtype}, no int"):
            read(table)


@pytest.mark.parametrize(
    "entry",
    [{"scale": 0, "zero_point": 0}, {"scale": float("inf"), "zero_point": 0},
     {"scale": -1.0, "zero_point": 0}, {"scale": 1.0, "zero_point": 0, "axis": 1}, 3],
)  # fmt: skip
def test_a_fixed_scale_is_above_0_and_finite(entry: object) -> None:
    with pytest.raises(BackendError, match=r"expected Tanh = \{ scale = above 0, zero_point"):
        read({"quantization": {"fixed_results": {"Tanh": entry}}})


# --- operators ------------------------------------------------------------------------------------


def rules(entry: object, name: str = "Conv") -> tuple[OperatorRule, ...]:
    return tuple(read({"operators": {name: entry}}).operators["", "Conv"])


def test_an_operator_is_taken_or_not_or_by_a_rule_or_one_of_several() -> None:
    assert rules(True) == (OperatorRule(),)
    assert rules(False) == ()
    assert rules({"note": "a"}) == (OperatorRule(note="a"),)
    assert rules([{"note": "a"}, {"note": "b"}]) == (OperatorRule(note="a"), OperatorRule(note="b"))
    assert rules(True, "ai.onnx::Conv") == (OperatorRule(),)


def test_one_entry_is_for_several_operators() -> None:
    found = read({"operators": {"Conv, com.microsoft::Gelu ,Relu": True}}).operators
    assert list(found) == [("", "Conv"), ("com.microsoft", "Gelu"), ("", "Relu")]


def test_each_condition_of_a_rule_is_read() -> None:
    (rule,) = rules(
        {
            "versions": [1, 11], "opset": {"min": 1}, "types": {"T": ["float"], "X": ["uint8"]},
            "dtypes": ["float16"], "rank": [3, 4], "constant": ["W"],
            "elements": {"W": {"max": 3}}, "attributes": {
                "group": 1, "auto_pad": ["NOTSET", "VALID"], "strides": [[1, 1]],
                "dilations": {"max": 2}},
            "inputs": ["X:T"], "outputs": ["Y:T"], "exact": True, "composite": True, "slow": True,
            "in_qdq": False, "note": "why",
        }
    )  # fmt: skip
    assert rule == OperatorRule(
        versions=Bounds(1, 11), opset=Bounds(1),
        types={"T": frozenset({FLOAT}), "X": frozenset({BYTE})}, dtypes=frozenset({HALF}),
        rank=Bounds(3, 4), constant=("W",), elements={"W": Bounds(None, 3)}, attributes={
            "group": AttributeRule(values=(1,)),
            "auto_pad": AttributeRule(values=("NOTSET", "VALID")),
            "strides": AttributeRule(values=((1, 1),)),
            "dilations": AttributeRule(bounds=Bounds(None, 2)),
        },
        signature=(("X:T",), ("Y:T",)), exact=True, composite=True, slow=True, in_qdq=False,
        note="why",
    )  # fmt: skip


def test_a_substitute_is_a_name_or_a_table_or_one_of_several() -> None:
    operators = {"Mul": True, "own::Gate": True}
    found = read(
        {"operators": operators, "substitute": {
            "Relu": "Mul", "Gelu": ["own::Gate", {"with": "Mul", "rank": 2}]}}
    ).substitutes  # fmt: skip
    assert found["", "Relu"] == (Substitute(("", "Mul"), OperatorRule()),)
    assert found["", "Gelu"] == (
        Substitute(("own", "Gate"), OperatorRule()),
        Substitute(("", "Mul"), OperatorRule(rank=Bounds(2, 2))),
    )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("Mull", "substitute: the target has no operator Mull in \\[operators\\]"),
        ({"rank": 2}, "substitute.Relu: with"),
        (3, "substitute.Relu: "),
        ({"with": "Mul", "ranks": 2}, "substitute.Relu: unknown key 'ranks'; did you mean 'rank'"),
    ],
)
def test_a_wrong_substitute_says_where(entry: object, message: str) -> None:
    with pytest.raises(BackendError, match=f"npu.toml: {message}"):
        read({"operators": {"Mul": True}, "substitute": {"Relu": entry}})


# --- custom operators and pipelines ---------------------------------------------------------------


def test_custom_operators_have_a_definition_each() -> None:
    body = "Gate (x) => (y) { y = Relu(x) }"
    found = read({"custom_operators": {
        "own::Gate": {"body": body}, "own::Sum": {"reference": "math:fsum"},
        "own::Net": {"library": "net.so"}}}, "folder/npu.toml").custom_operators  # fmt: skip
    assert found == (
        CustomOperator("own", "Gate", body=body),
        CustomOperator("own", "Sum", reference="math:fsum"),
        CustomOperator("own", "Net", library=os.path.abspath("folder/net.so")),
    )


def test_a_library_is_for_all_operators_of_own_domains() -> None:
    table = {
        "custom_ops": "all.so",
        "operators": {"own::A, own::B": True, "own::C": True, "Relu": True,
                      "com.microsoft::Gelu": True, "ai.onnx.ml::Scaler": True},
        "custom_operators": {"own::C": {"reference": "math:fsum"}},
    }  # fmt: skip
    library = os.path.abspath("all.so")
    assert read(table).custom_operators == (
        CustomOperator("own", "C", reference="math:fsum"),
        CustomOperator("own", "A", library=library),
        CustomOperator("own", "B", library=library),
    )
    assert read({**table, "custom_ops": ""}).custom_operators == (
        CustomOperator("own", "C", reference="math:fsum"),
    )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"bodi": "x"}, "custom_operators.own::Gate: unknown key 'bodi'; did you mean 'body'"),
        ("x", "custom_operators.own::Gate: "),
        ({}, "own::Gate: expected one of "),
    ],
)
def test_a_wrong_definition_says_where(entry: object, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        read({"custom_operators": {"own::Gate": entry}})


def test_edits_of_the_pipeline_have_the_target_as_their_author() -> None:
    found = read({"pipeline": ["drop fuse_gelu", {"edit": "drop fuse_relu", "why": "slow"}]}).edits
    assert found == (
        PipelineEdit("drop", "fuse_gelu", by="npu"),
        PipelineEdit("drop", "fuse_relu", why="slow", by="npu"),
    )
    with pytest.raises(BackendError, match=r"pipeline\[1\]: expected an edit as a string or a"):
        read({"pipeline": ["drop fuse_gelu", 3]})
    with pytest.raises(BackendError, match=r"pipeline\[0\]: unknown key 'because'"):
        read({"pipeline": [{"edit": "drop fuse_gelu", "because": "slow"}]})


# --- profiles that extend others ------------------------------------------------------------------


def test_tables_are_merged_and_pipelines_joined() -> None:
    base = {
        "name": "base", "doc": "a", "pipeline": ["x"], "dtypes": {"weights": ["float"], "other": 1},
        "operators": {"Conv": {"rank": 4, "note": "a"}, "Relu": True},
    }  # fmt: skip
    own = {
        "extends": "base", "name": "own", "pipeline": ["y"], "dtypes": {"weights": ["uint8"]},
        "operators": {"Conv": {"rank": 3}, "Gelu": True}, "layouts": {"Conv": "NHWC"},
    }  # fmt: skip
    asked: list[str] = []

    def parent(name: str) -> Mapping[str, Any]:
        asked.append(name)
        return base

    assert extended(own, "npu.toml", parent) == {
        "name": "own", "doc": "a", "pipeline": ["x", "y"],
        "dtypes": {"weights": ["uint8"], "other": 1},
        # The rule of an operator is replaced as a whole.
        "operators": {"Conv": {"rank": 3}, "Relu": True, "Gelu": True},
        "layouts": {"Conv": "NHWC"},
    }  # fmt: skip
    assert asked == ["base"]
    assert base["pipeline"] == ["x"]
    assert "extends" in own


def test_an_entry_of_another_kind_replaces_the_one_below() -> None:
    base = {"dtypes": {"weights": ["float"]}, "operators": {"Conv": True}, "pipeline": ["x"]}
    wrong = {"dtypes": 3, "operators": 4, "pipeline": 5}
    assert extended({"extends": "a", **wrong}, "npu.toml", lambda _: base) == wrong
    assert extended({"extends": "a", **base}, "npu.toml", lambda _: wrong) == base
    whole = {"api_version": 1, "name": "npu", "extends": "a", "operators": 4}
    with pytest.raises(BackendError, match=r"npu\.toml: operators: expected a table, not 4"):
        backend_of(whole, "npu.toml", lambda _: base)


def test_a_profile_that_extends_none_is_as_it_is() -> None:
    assert extended({"name": "a"}, "npu.toml", no_parent) == {"name": "a"}
    with pytest.raises(BackendError, match=r"npu\.toml: extends: "):
        extended({"extends": 3}, "npu.toml", no_parent)


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "npu.toml"
    file.write_text('api_version = 1\nname = "npu"\n[operators]\nRelu = true')
    assert read_table(file) == {"api_version": 1, "name": "npu", "operators": {"Relu": True}}
    assert read_backend(file, no_parent).name == "npu"


@pytest.mark.parametrize(("version", "found"), [(0, "0"), (2, "2"), (None, "none")])
def test_the_version_of_the_api_is_known(version: int | None, found: str) -> None:
    table = {"name": "npu"} if version is None else {"name": "npu", "api_version": version}
    with pytest.raises(BackendError) as caught:
        backend_of(table, "npu.toml", no_parent)
    assert str(caught.value) == f"npu.toml: api_version: expected 1 to 1, found {found}"


@pytest.mark.parametrize("group", ["dtypes", "quantization", "verification"])
def test_an_unknown_key_is_an_error_in_each_table(group: str) -> None:
    with pytest.raises(BackendError, match="unknown key 'weightz'"):
        read({group: {"weightz": 1}})


def test_names_of_own_operators_are_not_checked() -> None:
    rule = {"inputs": ["X:T"], "outputs": ["Y:T"], "types": {"Q": ["float"]}}
    own = read({"operators": {"Convv": rule}})
    assert with_known_types(own, "npu.toml") is own
    with pytest.raises(BackendError, match="onnx has no operator 'Convv'"):
        with_known_types(read({"operators": {"Convv": {"note": "a"}}}), "npu.toml")
    defined = {"own::Gate": {"reference": "math:fsum"}}
    own = read({"operators": {"own::Gate": True}, "custom_operators": defined})
    assert with_known_types(own, "npu.toml") is own
    for operators in (
        {"Conv": rule},
        {"own::Gate": {"types": {"Q": ["float"]}, "constant": ["Q"]}},
        {"Gate": {**rule, "constant": ["X"]}},
    ):
        own = read({"operators": operators})
        assert with_known_types(own, "npu.toml") is own
    own = read({"operators": {"Gate": {**rule, "elements": {"Z": 1}}}})
    with pytest.raises(BackendError, match=r"Gate.elements: Gate has no input 'Z' .* are X\)"):
        with_known_types(own, "npu.toml")


# --- wrong profiles -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "npu"', "api_version: expected 1 to 1, found none"),
        ('api_version = 2\nname = "npu"', "api_version: expected 1 to 1, found 2"),
        ("api_version = 1", "name: expected the name of the backend"),
        ('api_version = 1\nname = "npu"\nshape = "static"', "unknown key 'shape'; did you mean"),
        ('api_version = 1\nname = "npu"\nshapes = "a"', "shapes: expected one of dynamic, static"),
        ('api_version = 1\nname = "npu"\nopset = "13"', r"opset: expected \[low, high\]"),
        ('api_version = 1\nname = "npu"\nopset = [14, 13]', "opset: expected the lower end first"),
        ('api_version = 1\nname = "npu"\nextends = "acme"', "no profile named 'acme' to extend"),
        (
            'api_version = 1\nname = "npu"\n[dtypes]\nactivations = ["float32"]',
            "ONNX calls float32 'float'",
        ),
        (
            'api_version = 1\nname = "npu"\n[operators.Relu]\ntypes = { T = ["flaot"] }',
            r"operators.Relu.types.T: no dtype 'flaot'; did you mean 'float'",
        ),
        (
            'api_version = 1\nname = "npu"\n[operators.Relu]\nconst = ["X"]',
            "operators.Relu: unknown key 'const'; did you mean 'constant'",
        ),
        (
            'api_version = 1\nname = "npu"\n[operators]\nRelu = 3',
            "operators.Relu: expected true, false, a table or a list of them, not 3",
        ),
        (
            'api_version = 1\nname = "npu"\n[[pipeline]]\nedit = "insert x"',
            r"pipeline\[0\]: 'insert x' is no edit",
        ),
        (
            'api_version = 1\nname = "npu"\n[quantization.fixed_results]\nTanh = { scale = 0.5 }',
            "fixed_results: expected Tanh = { scale = above 0, zero_point = an integer }, not",
        ),
        (
            'api_version = 1\nname = "npu"\n[quantization.fixed_results]\n'
            "Tanh = { scale = nan, zero_point = 0 }",
            "fixed_results: expected Tanh = { scale = above 0",
        ),
        (
            'api_version = 1\nname = "npu"\n[quantization]\nactivations = "int8"\n'
            "fixed_results = { Tanh = { scale = 0.5, zero_point = 128 } }",
            "zero_point 128 of Tanh is no int8",
        ),
        ("api_version = ", "is not TOML"),
    ],
)
def test_a_wrong_profile_says_where_it_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "npu.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        get_backend(str(file))
    assert "npu.toml" in str(caught.value) or "to extend" in message


def test_a_profile_that_is_not_there_is_an_error() -> None:
    with pytest.raises(BackendError, match=r"cannot read nowhere.toml: No such file"):
        get_backend("nowhere.toml")


def test_a_type_key_that_no_version_has_is_an_error(tmp_path: Path) -> None:
    profile = tmp_path / "npu.toml"
    profile.write_text(
        "api_version = 1\nname = 'npu'\n[operators]\nPow = { types = { T9 = ['int32'] } }"
    )
    message = r"operators\.Pow\.types: no version of Pow has .* 'T9'.*\(there are T, T1, X"
    with pytest.raises(BackendError, match=message):
        get_backend(profile)
    with pytest.raises(BackendError, match="'T9'"):
        register_backend(profile)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[operators]\nConvv = true", r"operators: onnx has no operator 'Convv'; did you mean 'Co"),
        ("[operators]\n'Conv,Gemmm' = true", "onnx has no operator 'Gemmm'; did you mean 'Gemm'"),
        ("[operators]\n'ai.onnx.ml::Scalerr' = true", "'ai.onnx.ml::Scalerr'; did you mean 'Sca"),
        ("[layouts]\nConvv = 'NHWC'\n[operators]\nConv = true", "layouts: onnx has no operator"),
        ("[quantization]\nper_tensor = ['Convv']\n[operators]\nConv = true", "per_tensor: onnx ha"),
        (
            "[operators]\nConv = { constant = ['W', 'bias'] }",
            r"operators.Conv.constant: Conv has no input 'bias' \(there are X, W, B\)",
        ),
        (
            "[operators]\nClip = { elements = { mim = [0, 1] } }",
            "operators.Clip.elements: Clip has no input 'mim'; did you mean 'min'",
        ),
        ("opset = [13]", r"opset: expected \[low, high\] or {min = low, max = high}, not \[13\]"),
        ("opset = 0", "opset: expected numbers from 1, not 0"),
        ("ir_version = [-1, 8]", "ir_version: expected numbers from 1"),
        ("max_rank = -1", "max_rank: expected an integer from 0, not -1"),
        ("[operators]\nConv = { rank = -4 }", "operators.Conv: rank: expected numbers from 0"),
    ],
)
def test_what_does_not_exist_names_the_file(tmp_path: Path, text: str, message: str) -> None:
    profile = tmp_path / "npu.toml"
    profile.write_text(f"api_version = 1\nname = 'npu'\n{text}")
    with pytest.raises(BackendError, match=rf"npu\.toml: .*{message}") as caught:
        get_backend(profile)
    assert caught.value.exit_code == 2


def test_operators_of_ones_own_are_known(tmp_path: Path) -> None:
    profile = tmp_path / "npu.toml"
    profile.write_text(
        "api_version = 1\nname = 'npu'\nopset = { min = 13 }\n[operators]\n"
        "EfficientNMS = { inputs = ['boxes:T'], outputs = ['found:T'] }\n'vendor::Gate' = true\n"
    )
    assert get_backend(profile).rules("EfficientNMS")


def test_the_types_of_all_profiles_name_something() -> None:
    for known in built_in_backends():
        assert with_known_types(known, known.name) is known
