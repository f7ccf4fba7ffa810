"""A constructor of every pass, with TVM's arguments where they differ."""

from typing import Any

import numpy as np
import onnx
import pytest

import tiered
from tests.recorded import assert_values
from tests.small import fuse_relu, model, ops, parsed, proto
from tiered import Model
from tiered.compat import tvm
from tiered.compat.tvm import constructors, relay
from tiered.compat.tvm.constructors import constructor, levels
from tiered.compat.tvm.newer_passes import listed
from tiered.passes.interface.registry import registry
from tiered.support.errors import (
    OptionError,
    PassNotFoundError,
    UsageError,
)
from tiered.targets.reading import backend_of
from tiered.testing import parse

WITH_ARGUMENTS = ("annotate_target", "merge_composite")


OTHERS = ("fold_constant", "partial_evaluate", "rewrite_annotated_ops")


def test_every_pass_has_a_constructor() -> None:
    for name in tiered.pass_names():
        camel = "".join(part.title() for part in name.split("_"))
        if name in WITH_ARGUMENTS:
            with pytest.raises(TypeError, match="missing 1 required positional argument"):
                getattr(tvm, camel)()
        elif name in OTHERS:
            assert name in str(getattr(tvm, camel)())
        else:
            assert getattr(tvm, camel)() == tiered.get_pass(name)
        assert camel in dir(tvm) or camel.lower() in [entry.lower() for entry in dir(tvm)]


def test_tvms_own_names_are_known() -> None:
    assert tvm.transform.FoldConstant().name == "fold_constant"
    assert tvm.relay.transform.InferType().name == "infer_shapes"
    assert tvm.DeadCodeElimination().name == "eliminate_deadend"


def test_options_are_given_by_place_or_by_name() -> None:
    expected = tiered.get_pass("fold_constant", max_growth="2%")
    assert tvm.FoldConstant("2%") == tvm.FoldConstant(max_growth="2%") == expected
    with pytest.raises(OptionError, match="has no option 'growth'"):
        tvm.FoldConstant(growth=1)
    with pytest.raises(UsageError, match="takes 0 options"):
        tvm.EliminateIdentity(1)


def test_a_name_of_no_pass_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="did you mean 'fold_constant'"):
        tvm.FoldConstnat()
    with pytest.raises(AttributeError):
        tvm.nothing  # noqa: B018 - the point


def test_levels_are_those_of_the_registry() -> None:
    levels = tvm.OPT_PASS_LEVEL
    assert levels["FoldConstant"] == tiered.get_pass("fold_constant").info.opt_level
    assert levels["InferType"] == 0
    assert "RemoveInitializerFromInput" not in levels
    with pytest.raises(TypeError):
        levels["FoldConstant"] = 0  # type: ignore[index]  # the point


def test_the_batch_of_named_inputs_changes() -> None:
    text = "g (float[N] x, float[M] z) => (float[N] y, float[M] w) { y = Neg(x) w = Neg(z) }"
    made = tvm.ChangeBatch({"x": 0}, 4)(proto(text))
    dims = [value.type.tensor_type.shape.dim[0] for value in made.graph.input]
    assert [(dim.dim_value, dim.dim_param) for dim in dims] == [(4, ""), (0, "M")]
    assert tvm.ChangeBatch().options["size"] == 16
    for wrong in ({"x": "NCHW"}, 3):
        with pytest.raises(UsageError, match=r"ChangeBatch takes the axis by input"):
            tvm.ChangeBatch(wrong)


def test_a_static_batch_at_any_axis_changes() -> None:
    text = "g (float[3,4] x, float[4] z) => (float[3,4] y) { y = Add(x, z) }"
    made = tvm.ChangeBatch({"x": 1, "z": 0}, batch_size=16)(proto(text))
    infos = (*made.graph.input, *made.graph.output)
    dims = [[dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in infos]
    assert dims == [[3, 16], [16], [3, 16]]


def test_a_name_of_two_passes_takes_no_options() -> None:
    with pytest.raises(UsageError, match="takes 0 options, not 3"):
        tvm.FoldScaleAxis(1, 2, 3)
    with pytest.raises(UsageError, match="takes no options, not foo: give them to one of"):
        tvm.FoldScaleAxis(foo=3)
    assert len(tvm.FoldScaleAxis().passes) == 2


LINEAR = """g (float[2,3] x) => (float[2,4] y, float[2,4] z)
<float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4,3] v = {1,2,3,4,5,6,7,8,9,10,11,12}> {
    a = Transpose<perm=[1,0]>(w)  y = MatMul(x, a)
    b = Transpose<perm=[1,0]>(v)  z = MatMul(x, b) }"""


def test_dead_code_goes_after_functions_with_one_call() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "l" : 1]>
    g (float[2] x) => (float[2] y) { d = Neg(x) y = l.f(x) }
    <domain: "l", opset_import: ["" : 21]> f (p) => (r) { q = Neg(p) r = Abs(q) }"""
    given = onnx.parser.parse_model(text)
    assert ops(tvm.DeadCodeElimination()(given)) == ["f"]
    assert ops(tvm.transform.DeadCodeElimination(inline_once=True)(given)) == ["Neg", "Abs"]


def test_common_subexpressions_may_be_skipped() -> None:
    text = """g (float[2] x) => (float[2] y, float[2] z, float[2] w, float[2] v) {
        y = Neg(x)  z = Neg(x)  w = Abs(x)  v = Abs(x) }"""
    with tvm.PassContext(opt_level=3):
        pass_ = tvm.EliminateCommonSubexpr(fskip=lambda node: node.op_type == "Neg")
        made = pass_(proto(text))
        every = tvm.EliminateCommonSubexpr()(proto(text))
    assert ops(made).count("Neg") == 2
    assert ops(made).count("Abs") == 1
    assert ops(every).count("Neg") == 1
    with pytest.raises(UsageError, match="a function of nodes, which has no text"):
        tiered.parse_pipeline(str(pass_))


def test_the_transposes_of_named_weights_are_computed() -> None:
    view = model(LINEAR)
    assert tvm.relay.analysis.search_fc_transpose(view) == ["w", "v"]
    made = tvm.transform.SimplifyFCTranspose(["w"])(view)
    assert sorted(ops(made)) == ["MatMul", "MatMul", "Transpose"]
    (left,) = made.main.nodes_of("Transpose")
    assert left.inputs[0] is not None
    assert left.inputs[0].name == "v"
    assert tvm.SimplifyFCTranspose().name == "fold_constant"
    with pytest.raises(UsageError, match="the model has no constant 'u'"):
        tvm.SimplifyFCTranspose(["u"])(model(LINEAR))


def test_the_entry_of_a_model_is_main() -> None:
    for made in (tvm.RemoveUnusedFunctions(["main"]), tvm.transform.RemoveUnusedFunctions()):
        assert made.name == "remove_unused_functions"
    assert tvm.RemoveUnusedFunctions(None) == tvm.RemoveUnusedFunctions(["main"])
    text = """<ir_version: 10, opset_import: ["": 21, "l": 1]>
      g (float[2] x) => (float[2] y) { y = Neg(x) }
      <domain: "l", opset_import: ["": 21]> dead (x) => (y) { y = Neg(x) }
      <domain: "l", opset_import: ["": 21]> kept (x) => (y) { y = Neg(x) }"""
    made = tvm.RemoveUnusedFunctions(["main", "kept"])(parse(text))
    assert [function.name for function in made.functions] == ["kept"]
    with pytest.raises(UsageError, match="the model has no function 'other'"):
        tvm.RemoveUnusedFunctions(["other"])(parse(text))
    with pytest.raises(UsageError, match="entry_functions is a list of names"):
        tvm.RemoveUnusedFunctions("main")


def test_parallel_products_take_the_arguments_of_tvm() -> None:
    made = tvm.CombineParallelDense(min_num_branches=4, to_batch=False)
    assert made == tiered.get_pass("combine_parallel_dense", min_num_branches=4)
    assert tvm.CombineParallelDense(5).options["min_num_branches"] == 5


def test_the_model_is_printed_at_a_place(capsys: pytest.CaptureFixture[str]) -> None:
    with tvm.PassContext(opt_level=3):
        tvm.transform.Sequential([tvm.transform.PrintIR("before"), fuse_relu])(proto())
    said = capsys.readouterr().err
    assert said.startswith("before\n")
    assert said.count("Relu (") == 2


def test_all_keys_of_tvms_table_of_levels_are_there() -> None:
    keys = {
        *("SimplifyInference", "OpFusion", "FoldConstant", "FoldScaleAxis", "AlterOpLayout"),
        *("CanonicalizeOps", "CanonicalizeCast", "EliminateCommonSubexpr"),
        *("CombineParallelConv2D", "CombineParallelDense", "FastMath"),
    }
    levels = tvm.transform.OPT_PASS_LEVEL
    assert keys <= set(levels)
    assert levels["OpFusion"] == 1
    assert levels["CombineParallelConv2D"] == levels["CombineParallelConv2d"] == 4


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("ToCPS", "sink_into_if"),
        ("un_cps", "hoist_from_if"),
        ("FlattenAtrousConv", "fuse_pad_into_conv"),
        ("FlattenNestedTuples", "inline"),
        ("AnnotateSpans", "unique_name_for_nodes"),
        ("ManifestLifetimes", "schedule"),
    ],
)
def test_what_onnx_cannot_have_says_why_and_what_is_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UsageError, match=f"{name} has no equivalent in ONNX: .*{nearest}"):
        getattr(tvm.transform, name)()
    with pytest.raises(PassNotFoundError, match=f"{name} has no equivalent in ONNX: .*{nearest}"):
        tiered.get_pass(name)


def test_simplify_expr_is_the_exact_algebra() -> None:
    text = """(float[2,3] x) => (float[2,3] y) {
        a = Cast<to=1>(x) b = Transpose(a) c = Transpose(b) y = Neg(c) }"""
    made = tvm.relay.transform.SimplifyExpr()(parse(text))
    assert [node.op_type for node in made.graph.node] == ["Neg"]


def test_gradient_appends_those_of_all_inputs_and_can_be_repeated() -> None:
    proto = parse("(float[2] x, float[2] w) => (float[2] y) { y = Mul(x, w) }")
    first = tvm.transform.gradient(proto)
    assert [info.name for info in first.graph.output] == ["y", "grad/x", "grad/w"]
    lazy = tvm.transform.LazyGradientInit()(first)
    assert [info.name for info in lazy.graph.output] == ["y", "grad/x", "grad/w"]
    assert tvm.transform.gradient(proto, None, "first_order") == first


def test_eta_expansion_wraps_calls_and_has_no_constructors() -> None:
    call = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21, "local" : 1]>'
        " g (float[2] x) => (float[2] y) { y = local.f(x) }"
        ' <domain: "local", opset_import: ["" : 21]> f (v) => (u) { u = Neg(v) }'
    )
    assert ops(tvm.transform.EtaExpand()(call)) == ["f"]
    assert len(tvm.transform.EtaExpand(expand_global_var=True)(call).functions) == 2
    with pytest.raises(UsageError, match=r"expand_constructor=True.* has no equivalent in ONNX"):
        tvm.transform.EtaExpand(expand_constructor=True)


def test_fusion_has_tvms_argument() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Neg(x) y = Exp(a) }"
    assert ops(tvm.transform.FuseOps(0)(proto(text))) == ["Neg", "Exp"]
    assert ops(tvm.transform.FuseOps(fuse_opt_level=2)(proto(text))) == ["fused_Neg_Exp"]


def test_the_graph_normal_form_has_no_copies() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Identity(x)  b = Identity(a)  y = Relu(b) }"
    assert ops(tvm.transform.ToGraphNormalForm()(proto(text))) == ["Relu"]


def test_legalize_takes_the_name_of_a_map() -> None:
    """TVM's map of names; a legalization whose nodes the target refuses is rolled back."""

    @tiered.rewrite(tiered.op.Mish(tiered.var.x), opt_level=None, legalizes="FChip")
    def mish_of_map(graph: tiered.Graph, x: tiered.Value) -> tiered.Value:
        """Mish(x)  =>  x * Tanh(Softplus(x))"""
        return graph.op.Mul(x, graph.op.Tanh(graph.op.Softplus(x)))

    def legalized(pass_: tiered.Pass, operators: str) -> list[str]:
        table = {"api_version": 1, "name": "chip", "operators": {operators: True}}
        backend = backend_of(table, "chip.toml", lambda name: {})
        model = Model.from_proto(parse("(float[3] x) => (float[3] y) { y = Mish(x) }"))
        pass_.apply(model, tiered.PassContext.isolated(opt_level=4, backend=backend))
        return [node.op_type for node in model.main.topological_order()]

    tiered.register(mish_of_map)
    try:
        assert str(tvm.Legalize()) == str(tiered.get_pass("legalize"))
        made = legalized(tvm.Legalize("FChip"), "Mul, Tanh, Softplus")
        assert made == ["Softplus", "Tanh", "Mul"]
        assert legalized(tvm.Legalize("FChip"), "Mul, Tanh") == ["Mish"]
        assert legalized(tvm.Legalize(), "Mul, Tanh, Softplus") == ["Mish"]
        with pytest.raises(UsageError, match="no rule is registered in the map 'FChap'"):
            legalized(tvm.Legalize("FChap"), "Mul, Tanh")
        with pytest.raises(UsageError, match="no rule is registered in the map 'FChap'"):
            tvm.Legalize("FChap")(parse("(float[2] x) => (float[2] y) { y = Mish(x) }"))
    finally:
        registry.unregister("mish_of_map")


def test_partial_evaluation_takes_constant_ifs() -> None:
    text = """(float[2] x) => (float[2] y) <bool c = {1}> { y = If(c)
        <then_branch = t () => (float[2] p) { p = Neg(x) },
         else_branch = e () => (float[2] q) { q = Abs(x) }> }"""
    assert [node.op_type for node in tvm.PartialEvaluate()(parse(text)).graph.node] == ["Neg"]
    assert "max_iterations=4" in str(tvm.PartialEvaluate(max_iterations=4))


def test_a_target_that_nobody_knows_says_how_to_register_it() -> None:
    with pytest.raises(UsageError, match=r"no backend named 'dnnl' .*'target\.dnnl'"):
        tvm.transform.AnnotateTarget(target=["dnnl"])


def test_one_option_has_one_value() -> None:
    with pytest.raises(UsageError, match=r"^strip: 'what' is given twice"):
        constructor("strip")(("docs",), what=("docs",))
    with pytest.raises(PassNotFoundError):
        constructor("no_such_pass")
    assert constructor("strip").__name__ == "strip"


def test_levels_have_all_spellings_of_tvm() -> None:
    found = levels()
    assert list(found) == sorted(found)
    for name, level in {
        "CanonicalizeCast": 3,
        "CombineParallelConv2D": 4,
        "FuseOps": 1,
        "OpFusion": 1,
    }.items():
        assert found[name] == level
    known = tiered.get_registered_passes()
    assert found["EliminateIdentity"] == known["eliminate_identity"].info.opt_level
    assert all(isinstance(level, int) for level in found.values())


@pytest.mark.parametrize("data", [["x"], {"x": "0"}, {"x": True}, 3])
def test_a_batch_is_an_axis_by_input(data: Any) -> None:
    with pytest.raises(
        UsageError, match=r"ChangeBatch takes the axis by input, as \{'x': 0\}, not"
    ):
        tvm.transform.ChangeBatch(data)


def test_a_batch_is_of_16_by_default() -> None:
    assert tvm.transform.ChangeBatch() == tiered.get_pass("change_batch", size=16)
    x = relay.var("x", shape=(2,))
    expected = tiered.get_pass("change_batch", size=4, axes={"x": 1})
    assert (
        tvm.transform.ChangeBatch({x: 1}, 4) == tvm.transform.ChangeBatch({"x": 1}, 4) == expected
    )


def test_a_gradient_has_two_modes() -> None:
    with pytest.raises(UsageError, match="mode is first_order or higher_order, not 'second_order'"):
        tvm.transform.gradient(proto(), mode="second_order")


def test_targets_are_given_once() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'targets'"):
        tvm.transform.AnnotateTarget()
    with pytest.raises(UsageError, match="AnnotateTarget takes the targets once"):
        tvm.transform.AnnotateTarget("llvm", target="llvm")
    one = tvm.transform.AnnotateTarget("llvm")
    assert (
        one == tvm.transform.AnnotateTarget(["llvm"]) == tvm.transform.AnnotateTarget(target="llvm")
    )


def test_constants_are_no_part_of_functions() -> None:
    assert tvm.transform.PartitionGraph("any") == tiered.get_pass("partition_graph")
    with pytest.raises(UsageError, match="a local function has no initializers, so weights stay"):
        tvm.transform.PartitionGraph(bind_constants=True)


def test_devices_without_one_have_the_fallback() -> None:
    for given in ("cpu", 1, tvm.cpu()):
        made = tvm.transform.RewriteAnnotatedOps(given)
        assert made.options["fallback_device"] == "cpu"
        assert made.options["propagate"] is True
    assert tvm.transform.RewriteAnnotatedOps().options["fallback_device"] == ""
    with pytest.raises(UsageError, match="there is no device type 99"):
        tvm.transform.RewriteAnnotatedOps(99)


def test_a_composite_is_taken_by_its_check() -> None:
    relu = relay.dataflow_pattern.is_op("nn.relu")(relay.dataflow_pattern.wildcard())
    text = "(float[2] x) => (float[2] y) { a = Relu(x) y = Neg(a) }"
    for holds in (True, False):
        table = [("npu.relu", relu, lambda value, holds=holds: holds)]
        made = tvm.transform.MergeComposite(table)(parse(text))
        assert ops(made) == (["npu.relu", "Neg"] if holds else ["Relu", "Neg"])


def test_a_list_of_names_is_no_string() -> None:
    makers: list[Any] = [
        tvm.transform.SimplifyFCTranspose,
        tvm.transform.DenseToSparse,
        tvm.transform.Conv2dToSparse,
        tvm.transform.RemoveUnusedFunctions,
    ]
    for make in makers:
        with pytest.raises(UsageError, match="is a list of names, not the string 'w1'"):
            make("w1")
    assert listed("names", ("a", "b")) == ["a", "b"]


def test_a_default_is_no_constant_to_transpose() -> None:
    text = """g (float[2,3] x, float[2,3] w) => (float[2,2] y) <float[2,3] w = {1,2,3,4,5,6}> {
        t = Transpose(w)  y = MatMul(x, t) }"""
    assert relay.analysis.search_fc_transpose(model(text)) == []
    with pytest.raises(UsageError, match="the model has no constant 'w'"):
        tvm.transform.SimplifyFCTranspose(["w"])(model(text))


def test_transposes_are_searched_before_products_only() -> None:
    text = """g (float[2,3] x) => (float[2,2] y, float[3,2] z, float[3,2] q)
        <float[2,3] w = {1,2,3,4,5,6}, float[2,3] v = {1,2,3,4,5,6}> {
        t = Transpose(w)  y = MatMul(x, t)  z = Transpose(v)  q = Transpose(x) }"""
    assert relay.analysis.search_fc_transpose(model(text)) == ["w"]
    assert relay.analysis.search_fc_transpose(model(text).main) == ["w"]


def test_a_transpose_with_a_perm_is_computed() -> None:
    text = """g (float[1,2,2] x) => (float[1,2,3] y) <float[1,3,2] w = {1,2,3,4,5,6}> {
        t = Transpose<perm=[0,2,1]>(w)  y = MatMul(x, t) }"""
    made = tvm.transform.SimplifyFCTranspose(["w"])(model(text))
    (product,) = made.main.nodes
    assert product.inputs[1] is not None
    np.testing.assert_array_equal(product.inputs[1].const, [[[1, 3, 5], [2, 4, 6]]])


def test_the_default_map_of_legalizations_is_that_of_tvm() -> None:
    assert tvm.transform.Legalize().options["maps"] == ("default",)
    assert tvm.transform.Legalize("FChip").options["maps"] == ("FChip",)


def test_printing_has_a_header() -> None:
    options = tvm.transform.PrintIR("here", show_meta_data=True).options
    assert (options["text"], options["header"]) == (True, "here")
    assert tvm.transform.CombineParallelDense().options["min_num_branches"] == 3
    assert tvm.transform.FuseOps().options["level"] == -1


def ran(pass_: tiered.Pass, text: str, inputs: str = "float[2,4] x") -> object:
    """Return the operators, the constants and the inputs after a pass."""
    constants = "float[4,2] w = {1,0,0,0,0,0,0,2}, float[4,2] v = {1,2,3,4,5,6,7,8}"
    model = parsed(f"({inputs}) => (y) <{constants}> {{ {text} }}")
    pass_.apply(model)
    main = model.main
    shapes = {value.name: value.shape for value in (*main.inputs, *main.initializers)}
    return [
        (node.op_type, [value.name for value in node.inputs if value is not None])
        for node in main.nodes
    ], shapes


def test_constructors_are_recorded() -> None:
    names = {**vars(constructors), "c": constructors, "ran": ran, "parsed": parsed}
    assert_values(__file__, names)
