"""PopRT's names: a pass of a ModelProto, registered, fetched, run in a manager."""

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import tiered
from tests.small import content, fuse_relu, model, ops, proto
from tiered.compat import poprt
from tiered.passes.interface.registry import registry
from tiered.support.errors import PassError, TargetError, TieredError, UsageError, VerificationError
from tiered.testing import parse


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    for name in poprt.passes._CLASSES:
        registry.unregister(name)
    poprt.passes._CLASSES.clear()


def drop_names() -> type[poprt.Pass]:
    @poprt.register("drop_names")
    class DropNames(poprt.Pass):
        def __init__(self, to: str = "gone") -> None:
            self.to = to

        def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
            def rename(graph: onnx.GraphProto, is_main_graph: bool) -> None:
                for number, node in enumerate(graph.node):
                    node.name = f"{self.to}{number}"

            self.traverse_graph(onnx_model.graph, rename)
            return onnx_model

    return DropNames


def test_a_registered_class_is_a_pass_like_any_other() -> None:
    drop_names()
    assert "drop_names" in poprt.get_registered_passes()
    made = tiered.optimize(proto(), passes="drop_names")
    assert made.graph.node[0].name == "gone0"
    with tiered.PassContext(disabled=["drop_names"]):
        assert tiered.Sequential(["drop_names"])(proto()).graph.node[0].name == "node_a"


def test_it_is_made_with_the_arguments_that_are_asked_for() -> None:
    drop_names()
    given = proto()
    made = poprt.get_pass("drop_names", to="n")(given)
    assert made.graph.node[0].name == "n0"
    assert given.graph.node[0].name == "node_a"
    assert poprt.get_pass("fold_constant", max_growth="2%").name == "fold_constant"
    with pytest.raises(UsageError, match="takes 1 arguments, not 2"):
        poprt.get_pass("fold_constant", 1, 2)


def test_a_name_is_registered_once() -> None:
    drop_names()
    with pytest.raises(UsageError, match="there are two passes 'drop_names'"):
        drop_names()


def test_a_manager_runs_all_that_is_listed() -> None:
    made = poprt.PassManager([drop_names()(), fuse_relu, "eliminate_identity"]).run(proto())
    assert ops(made) == ["Relu", "Neg", "Abs"]
    assert made.graph.node[-1].name == "gone3"


def test_a_pass_that_fails_leaves_the_model_as_it_was() -> None:
    class Fails(poprt.Pass):
        def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
            del onnx_model.graph.node[:]
            raise ValueError("boom")

    given = model()
    before = content(given)
    with pytest.raises(PassError, match="Fails failed"):
        Fails()(given)
    assert content(given) == before


GELU = """g (float[4] x) => (float[4] y)
    <float r = {1.4142135}, float one = {1}, float half = {0.5}> {
    a = Div(x, r)  b = Erf(a)  c = Add(b, one)  d = Mul(x, c)  y = Mul(d, half) }"""


def test_a_pass_runs_whatever_its_level() -> None:
    for made in (
        poprt.get_pass("gelu_pattern")(proto(GELU)),
        poprt.get_pass("gelu_pattern").run(proto(GELU)),
    ):
        assert ops(made) == ["Gelu"]
    assert ops(poprt.PassManager(["gelu_pattern"]).run(proto(GELU))) == ["Gelu"]
    assert ops(poprt.PassManager([poprt.get_pass("gelu_pattern")]).run(proto(GELU))) == ["Gelu"]
    with tiered.PassContext(disabled=["fuse_gelu"]):
        assert "Erf" in ops(poprt.get_pass("gelu_pattern")(proto(GELU)))


def test_options_have_the_names_of_poprt() -> None:
    text = "g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }"

    def first_dims(made: onnx.ModelProto) -> list[int]:
        return [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]

    assert first_dims(poprt.get_pass("const_batch_size", const_batch_size=4).run(proto(text))) == [
        4,
        3,
    ]
    assert first_dims(poprt.get_pass("const_batch_size", 5).run(proto(text))) == [5, 3]
    shape = {"x": [2, 3]}
    assert first_dims(
        poprt.get_pass("const_input_shape", const_input_shape=shape)(proto(text))
    ) == [2, 3]
    large = "g (float[8] x) => (float[8] y) <float[8] w> { a = Exp(w)  y = Add(x, a) }"
    given = proto(large)
    given.graph.initializer.add(name="w", data_type=1, dims=[8], float_data=[1.0] * 8)
    for limit, left in ((31, ["Exp", "Add"]), (32, ["Add"]), (-1, ["Add"])):
        assert ops(poprt.get_pass("constant_folding", max_tensor_size=limit)(given)) == left
    assert ops(poprt.get_pass("constant_folding", 31)(given)) == ["Exp", "Add"]


def test_a_class_with_required_arguments_is_registered() -> None:
    @poprt.register("prefix_names")
    class PrefixNames(poprt.Pass):
        def __init__(self, prefix: str) -> None:
            super().__init__(prefix)
            self.prefix = prefix

        def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
            for node in onnx_model.graph.node:
                node.name = self.prefix + node.name
            return onnx_model

    for made in (poprt.get_pass("prefix_names", "a_"), poprt.get_pass("prefix_names", prefix="a_")):
        assert made(proto()).graph.node[0].name == "a_node_a"
    with pytest.raises(TypeError, match="prefix"):
        poprt.get_pass("prefix_names")
    with pytest.raises(
        UsageError, match=r"needs prefix: make it with poprt.get_pass\('prefix_names'"
    ):
        tiered.optimize(proto(), passes="prefix_names")


def test_the_template_of_a_pass_passes_all_its_arguments_on() -> None:
    class Template(poprt.Pass):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs)

        def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
            return onnx_model

    assert Template(1, option=2)(proto()) == proto()


def test_arguments_with_defaults_are_options_in_pipelines() -> None:
    drop_names()
    made = tiered.optimize(proto(), passes="drop_names{to=t}")
    assert made.graph.node[0].name == "t0"


def test_an_unknown_name_is_a_key_error_with_a_suggestion() -> None:
    with pytest.raises(KeyError) as caught:
        poprt.get_pass("constant_foldin")
    assert "did you mean" in str(caught.value)
    assert isinstance(caught.value, UsageError)


def test_an_alias_of_two_passes_runs_both() -> None:
    text = "g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { a = Neg(x)  y = Abs(x) }"
    made = poprt.get_pass("delete_isolated")(proto(text))
    assert (ops(made), len(made.graph.initializer)) == (["Abs"], 0)
    with pytest.raises(UsageError, match="takes 0 arguments, not 1"):
        poprt.get_pass("delete_isolated", 1)


def test_ir_passes_are_applied_in_order() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Identity(x)  b = Relu(a)  y = Relu(b) }"
    for given in (
        ["eliminate_identity", "eliminate_idempotent"],
        "eliminate_identity,eliminate_idempotent",
    ):
        assert ops(poprt.get_pass("apply_ir_pass", passes=given)(proto(text))) == ["Relu"]


def test_outputs_are_compared_with_those_of_a_model() -> None:
    wrong = proto("g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }")
    poprt.get_pass("check_with_fake_data", origin_model=proto())(proto())
    for check in (
        poprt.get_pass("check_with_fake_data", wrong),
        poprt.get_pass("check_with_fake_data", origin_model=wrong),
    ):
        with pytest.raises(VerificationError, match="computes something else"):
            check.run(proto())


def test_random_operators_are_skipped_as_poprt_does() -> None:
    text = "g (float[2,3] x) => (float[2,3] y) { a = Identity(x)  y = RandomNormalLike(a) }"
    checked = poprt.get_pass("check_with_fake_data", origin_model=proto(text))
    after = tiered.optimize(proto(text), passes=["eliminate_identity"])
    assert checked.run(after).graph.node[0].op_type == "RandomNormalLike"


LAYERS = """g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> {
    h = MatMul(x, w)  y = Relu(h) }"""


def test_layers_are_compared_with_those_of_a_model(tmp_path: Path) -> None:
    other = proto(LAYERS.replace("3,4", "3,5"))
    np.savez(tmp_path / "x.npz", x=np.ones((2, 2), np.float32))
    data = str(tmp_path / "x.npz")
    check = poprt.get_pass("layer_precision_compare", other, data, output_dir=str(tmp_path))
    with tiered.PassContext() as ctx:
        check(proto(LAYERS))
    assert "MatMul h: max abs 1" in str(ctx.remarks)
    (row,) = json.loads((tmp_path / "layer_precision.json").read_text())
    assert (row["layer"], row["operator"], row["max_abs"]) == ("h", "MatMul", 1.0)
    assert 0 < row["cosine"] < 0.1
    with pytest.raises(UsageError, match="to load a pickle runs code"):
        poprt.get_pass("layer_precision_compare", other, "data.pkl")


def test_every_product_is_compared_with_that_of_halves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> {
        a = MatMul(x, w)  y = MatMul(a, w) }"""
    halves = tiered.get_pass("float_to_half").apply(proto(text))
    monkeypatch.chdir(tmp_path)
    poprt.get_pass("layer_precision_compare", proto(text))(halves)
    rows = json.loads((tmp_path / "layer_precision.json").read_text())
    assert [(row["layer"], row["operator"]) for row in rows] == [("a", "MatMul"), ("y", "MatMul")]


def test_types_are_written_as_poprt_writes_them() -> None:
    text = "(float[2,2] x) => (float[2,2] y) { a = Neg(x) y = Abs(a) }"
    for name in ("shape_inference", "ShapeInference"):
        assert [info.name for info in poprt.get_pass(name)(parse(text)).graph.value_info] == ["a"]
    assert not poprt.get_pass("shape_inference", annotate=False)(parse(text)).graph.value_info


def test_the_module_of_passes_is_imported() -> None:
    from tiered.compat.poprt.passes import Pass, register

    assert (Pass, register) == (poprt.Pass, poprt.register)
    assert poprt.passes.get_pass is poprt.get_pass


def test_a_direct_call_checks_its_result() -> None:
    @poprt.register("breaks")
    class Breaks(poprt.Pass):
        def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
            onnx_model.graph.node[0].op_type = "NoSuchOperator"
            return onnx_model

    valid = parse("(float[2] x) => (float[2] y) { y = Neg(x) }")
    with pytest.raises(TieredError, match="NoSuchOperator"):
        Breaks()(valid)
    with pytest.raises(TieredError, match="NoSuchOperator"):
        poprt.PassManager([Breaks()]).run(valid)
    invalid = parse("(float[2] x) => (float[2] y) { y = Neg(x) }")
    invalid.graph.node[0].op_type = "NoSuchOperator"
    assert Breaks()(invalid) == invalid


GELU_OF_PRODUCT = """(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}>
    { [n] h = MatMul(x, w)  y = Gelu(h) }"""


def test_halves_skip_operators() -> None:
    for lower in (
        poprt.get_pass("float_to_half", ["Gelu"]),
        poprt.get_pass("Float2Half", skip_op_types=["Gelu"]),
    ):
        assert ops(lower(parse(GELU_OF_PRODUCT, opset=21))) == [
            "Cast", "MatMul", "Cast", "Gelu",
        ]  # fmt: skip


def test_float8_has_the_parameters_of_poprt() -> None:
    product = parse(GELU_OF_PRODUCT, opset=21)
    parameters = ["F152", "F143", -3, -1]
    for lower in (
        poprt.get_pass("float_to_fp8", fp8_params=parameters),
        poprt.get_pass("FloatToFP8", parameters, [], "fp8"),
    ):
        made = tiered.Model.from_proto(lower(product))
        (code,) = made.main.nodes_of("QuantizeLinear")
        assert code.output.dtype == onnx.TensorProto.FLOAT8E5M2FNUZ
        assert [value.const for value in code.inputs[1:2] if value] == [0.125]
    kept = poprt.get_pass("float_to_fp8", skip_op_names=["n"])
    with pytest.raises(TargetError, match="1 MatMul: the node is skipped"):
        kept(product)


def test_float8_has_exponents_by_node() -> None:
    product = parse(GELU_OF_PRODUCT.replace("2,2", "32,32"), opset=21)
    weight = np.ones((32, 32), np.float32)
    product.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "w"))
    lower = poprt.get_pass(
        "float_to_fp8",
        fp8_params=["F143", "F143", -1, -1],
        fp8_input_dict={"n": -4},
        fp8_weight_dict={"n": ["F143", -6]},
    )
    made = tiered.Model.from_proto(lower(product))
    scales = [node.inputs[1] for node in made.main.nodes_of("DequantizeLinear")]
    numbers = {n for s in scales if s is not None and s.const is not None for n in s.const.flat}
    assert numbers == {2.0**-4, 2.0**-6}


def test_float8_of_weights_only() -> None:
    product = parse(GELU_OF_PRODUCT.replace("2,2", "32,32"), opset=21)
    weight = np.ones((32, 32), np.float32)
    product.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "w"))
    lower = poprt.get_pass("float_to_fp8", ["F143", "F143", -1, -1], convert_model="fp8_weight")
    assert ops(lower(product)) == ["DequantizeLinear", "MatMul", "Gelu"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"fp8_input_dict": {"n": ["F152", 1]}}, "all nodes have one format"),
        ({"fp8_weight_dict": {"n": "high"}}, "'n' has 'high': expected an exponent"),
        ({"convert_model": "fp16"}, "convert_model as fp8 or fp8_weight, not .* 'fp16'"),
        ({"fp8_params": [1, 2, 3, 4, 5]}, "takes fp8_params as"),
    ],
)
def test_float8_without_an_equivalent(arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        poprt.get_pass("float_to_fp8", **arguments)


def test_an_overview_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    poprt.passes.get_pass("model_overview").run(proto())
    assert "4 nodes: 2 Relu" in capsys.readouterr().err


def test_checkpoints_and_cuts_have_the_arguments_of_poprt() -> None:
    model = parse("(float[2] x) => (float[2] y) { a = Neg(x) y = Abs(a) }")
    for given in (
        poprt.get_pass("add_checkpoints", checkpoints=["a"]),
        poprt.get_pass("add_checkpoints", ["a"]),
    ):
        assert [info.name for info in given.run(model).graph.output] == ["y", "a"]
    for node in model.graph.node:
        node.name = node.output[0]
    cuts = poprt.get_pass("manual_sharding", sharding_info={"a": 1}, pipelining_info={"a": 0})
    marked = cuts.run(model).graph.node
    said = [{entry.key: entry.value for entry in node.metadata_props} for node in marked]
    assert said == [{"tiered.device": "1", "tiered.stage": "0"}, {"tiered.stage": "1"}]


def test_what_onnx_cannot_have_says_why() -> None:
    with pytest.raises(KeyError, match=r"to_cps has no equivalent .*sink_into_if"):
        poprt.get_pass("to_cps")


def test_hints_are_metadata() -> None:
    model = parse("(float[2,2] x) => (float[2,2] y) { a = MatMul(x, x) y = Abs(a) }")
    model.ir_version = 10
    for remap in (
        poprt.get_pass("auto_insert_remap", ["after_matmul"]),
        poprt.get_pass("AutoInsertRemap", remap_mode=["after_matmul"]),
    ):
        (entry,) = remap.run(model).graph.node[0].metadata_props
        assert (entry.key, entry.value) == ("tiered.remap", "outputs")
    made = poprt.get_pass("OverlapIO").run(model).graph
    said = [entry.value for info in (*made.input, *made.output) for entry in info.metadata_props]
    assert said == ["host_load", "host_store"]


PRODUCT = """(float[4,2] x) => (float[4,3] y) <float[2,3] w = {1,2,3,4,5,6}, float[3] b = {7,8,9}> {
    p = MatMul(x, w)  y = Add(p, b) }"""


@pytest.mark.parametrize(
    ("entry", "last"),
    [
        ("2", "Concat"),
        (2, "Concat"),
        ("2/output_channels/True", "Concat"),
        ("2/input_channels", "Concat"),
        ("2/reducing_dim/False", "Add"),
    ],
)
def test_products_are_serialized_by_a_dict(entry: object, last: str) -> None:
    made = poprt.get_pass("serialize_matmul", serialize_dict={"p": entry})(parse(PRODUCT))
    assert ops(made).count("MatMul") == 2
    assert ops(made)[-2:] == [last, "Add"]
    for name in ("serialize_matmul_add", "SerializeMatMulAdd"):
        made = poprt.get_pass(name, {"p/y": entry})(parse(PRODUCT))
        assert ops(made).count("MatMul") == 2
    assert ops(made)[-1] == last


def test_the_dims_of_a_product_are_those_of_popart() -> None:
    def parts(entry: str) -> list[list[int | str | None]]:
        made = poprt.get_pass("serialize_matmul", serialize_dict={"p": entry})(parse(PRODUCT))
        view = tiered.Model.from_proto(made)
        products = view.main.nodes_of("MatMul")
        return [[*(v.shape or ())] for node in products for v in node.inputs if v is not None]

    assert parts("2/input_channels") == [[2, 2], [2, 3]] * 2
    assert parts("2/reducing_dim") == [[4, 1], [1, 3]] * 2
    assert parts("3/output_channels") == [[4, 2], [2, 1]] * 3


def test_a_wrong_dim_of_a_product_is_an_error_in_the_words_of_poprt() -> None:
    with pytest.raises(UsageError, match=r"'2/columns' of 'p' has no dim 'columns'; .*output_cha"):
        poprt.get_pass("serialize_matmul", serialize_dict={"p": "2/columns"})


def test_packing_has_the_argument_of_poprt() -> None:
    model = parse("(float[B,S,4] x) => (float[B,4] y) <int64 z = {0}> { y = Gather<axis=1>(x, z) }")
    made = poprt.get_pass("packed_transformer", {"max_valid_num": 40}).run(model)
    assert made.graph.output[0].type.tensor_type.shape.dim[0].dim_value == 40
    with pytest.raises(UsageError, match="max_valid_num is a number from 0 on, not -1"):
        poprt.get_pass("packed_transformer", {"max_valid_num": -1}).run(model)
    args = {"max_valid_num": 40, "segment_max_size": {"x": 3}, "head_pattern": "x"}
    assert poprt.get_pass("PackedTransformer", args).run(model) == made
    with pytest.raises(UsageError, match="takes no 'max_valid_nu'; did you mean 'max_valid_num'"):
        poprt.get_pass("PackedTransformer", {"max_valid_nu": 4})


def test_hints_raise_the_ir_version_of_old_files() -> None:
    model = parse("(float[2,2] x) => (float[2,2] y) { a = MatMul(x, x) y = Abs(a) }")
    model.ir_version = 8
    model.graph.node[0].name = "a"
    for pass_, key in (
        (poprt.get_pass("auto_insert_remap", remap_mode="after_matmul"), "tiered.remap"),
        (poprt.get_pass("auto_insert_remap", "after_matmul"), "tiered.remap"),
        (poprt.get_pass("manual_sharding", sharding_info={"a": 1}), "tiered.device"),
    ):
        made = pass_.run(model)
        assert made.ir_version == 10
        assert [entry.key for entry in made.graph.node[0].metadata_props] == [key]
    made = poprt.PassManager(["overlap_io", "auto_insert_remap"]).run(model)
    assert [entry.value for entry in made.graph.input[0].metadata_props] == ["host_load"]
    with tiered.PassContext() as ctx:
        poprt.get_pass("overlap_io").run(model)
    assert any("IR version 8 becomes 10" in str(remark) for remark in ctx.remarks)


def test_classes_have_their_names_and_modules() -> None:
    names = ["Float2Mixed", "Float2FP8", "Float2Half", "ReplaceConsecuiveCastWithNotZero"]
    assert [poprt.get_pass(name).name for name in names] == [
        "float_to_mixed", "float_to_fp8", "float_to_half", "replace_consecutive_cast_with_notzero",
    ]  # fmt: skip
    module = importlib.import_module("tiered.compat.poprt.passes.float_to_half")
    half = module.Float2Half(skip_op_types=["Relu"])
    assert half.lifted().options["skip_op_types"] == ("Relu",)
    assert poprt.passes.float_to_half is module
    assert poprt.passes.Float2Half().name == "float_to_half"
    with pytest.raises(AttributeError, match="has no attribute 'FoldConstant'"):
        module.FoldConstant  # noqa: B018  # raises
    with pytest.raises(AttributeError, match="has no attribute 'no_such_pass'"):
        poprt.passes.no_such_pass  # noqa: B018  # raises
    model = parse("(float[2] x) => (float[2] y) { a = Identity(x) y = Neg(a) }")
    for kind in (
        poprt.passes.ApplyIRPasses,
        importlib.import_module("tiered.compat.poprt.passes.apply_ir_pass").ApplyIrPass,
    ):
        assert len(kind(["eliminate_identity"]).run(model).graph.node) == 1
    check = importlib.import_module("tiered.compat.poprt.passes.check_with_fake_data")
    assert check.CheckWithFakeData(model)(model) == model
    applied = poprt.get_pass("ApplyIrPass", ["eliminate_identity"]).run(model)
    assert [node.op_type for node in applied.graph.node] == ["Neg"]


def test_float8_has_the_defaults_of_poprt() -> None:
    options = poprt.get_pass("float_to_fp8").lifted().options
    assert (options["format"], options["weight_format"], options["min_elements"]) == (
        "F143", "F143", 0,
    )  # fmt: skip
    given = poprt.get_pass("float_to_fp8", fp8_params=["F152", "F143", -1, -2], min_elements=1024)
    assert given.lifted().options["min_elements"] == 1024
    assert given.lifted().options["format"] == "F152"


@pytest.mark.parametrize("name", ["serialize_matmul", "serialize_matmul_add"])
def test_a_product_that_is_not_there_is_an_error(name: str) -> None:
    model = parse("(float[2,2] x) => (float[2,2] y) { y = MatMul(x, x) }")
    with pytest.raises(TargetError, match="is named 'typo'"):
        poprt.get_pass(name, serialize_dict={"typo": "2/output_channels"}).run(model)
    with pytest.raises(TargetError, match="is named 'typo'"):
        poprt.PassManager([poprt.get_pass(name, {"typo": 2})]).run(model)


def test_a_manager_takes_names_as_get_pass() -> None:
    model = parse("(float[2] x) => (float[2] y) { a = Neg(x) y = Neg(a) }")
    made = poprt.PassManager(["shape_inference"]).run(model)
    assert [info.name for info in made.graph.value_info] == ["a"]
    assert len(poprt.PassManager(["eliminate_identity,eliminate_deadend"]).pipeline) == 2


def test_a_taken_name_names_both_classes() -> None:
    drop_names()
    with pytest.raises(UsageError, match=r"DropNames and .*DropNames"):
        drop_names()


def test_names_of_newer_versions() -> None:
    empty = "(float[0] e, float[2] x, float[3] z) => (float[5] y) { y = Concat<axis=0>(x, e, z) }"
    (node,) = poprt.get_pass("remove_empty_concat_inputs")(parse(empty)).graph.node
    assert list(node.input) == ["x", "z"]
    head = "(float[4,32] x) => (float[4,2] a, float[4,2] b, float[4,2] c) <int64[2] s = {32,2}"
    weights = "u = ConstantOfShape(s) v = ConstantOfShape(s) w = ConstantOfShape(s)"
    products = f"{head}> {{ {weights} a = MatMul(x, u) b = MatMul(x, v) c = MatMul(x, w) }}"
    sums = f"""{head}, float[2] k = {{1,2}}> {{ {weights} p = MatMul(x, u) a = Add(p, k)
        q = MatMul(x, v) b = Add(q, k) r = MatMul(x, w) c = Add(r, k) }}"""
    for name, text, product in (
        ("merge_matmul", products, "MatMul"), ("merge_matmul_add", sums, "Gemm")
    ):  # fmt: skip
        source = tiered.optimize(parse(text), passes="fold_constant,fuse_gemm")
        assert ops(source) == [product] * 3
        assert ops(poprt.get_pass(name)(source)) == [product, "Split"]
