"""TVM's names: what people type by habit works."""

import importlib
import json
from typing import Any

import numpy as np
import onnx
import pytest

import tiered
from tests.small import fuse_relu, look, model, ops, proto, registered
from tiered import Graph, Model
from tiered.analysis.layout.propagation import LAYOUTS
from tiered.compat import tvm
from tiered.passes.interface.registry import registry
from tiered.support.errors import OptionError, PassNotFoundError, UsageError
from tiered.targets.reading import backend_of
from tiered.testing import parse

WITH_ARGUMENTS = ("annotate_target", "merge_composite")
"""Passes that TVM itself makes with arguments only."""
OTHERS = ("fold_constant", "partial_evaluate", "rewrite_annotated_ops")
"""Passes that TVM's constructors make otherwise."""


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


def test_layouts_are_wanted_as_in_tvm() -> None:
    expected = tiered.get_pass("convert_layout", desired_layouts={"Conv": "NHWC"})
    for given in (
        {"nn.conv2d": ["NHWC", "default"]},
        {"relax.nn.conv2d": ["NHWC", "OHWI"]},
        {"nn.conv3d": "NDHWC"},
        {"Conv": "NHWC"},
    ):
        assert tvm.transform.ConvertLayout(given) == expected
    assert tvm.AlterOpLayout().name == "alter_op_layout"


def test_layouts_that_nothing_here_has_are_refused() -> None:
    with pytest.raises(UsageError, match="'NCHW16c' is no layout of images"):
        tvm.ConvertLayout({"nn.conv2d": ["NCHW16c", "default"]})
    with pytest.raises(UsageError, match=r"'nn\.dense' has no layout"):
        tvm.ConvertLayout({"nn.dense": ["NC"]})


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


def test_the_context_takes_tvms_arguments() -> None:
    with (
        registered(fuse_relu, look),
        tvm.transform.PassContext(opt_level=3, disabled_pass=["FuseRelu"]) as ctx,
    ):
        assert tvm.PassContext.current() is ctx
        assert ops(tvm.transform.Sequential([fuse_relu, look])(model())).count("Relu") == 2
        with tvm.PassContext(required_pass=["FuseRelu"]) as inner:
            assert inner.opt_level == 3
            assert inner.decide(fuse_relu)
    with pytest.raises(PassNotFoundError):
        tvm.PassContext(disabled_pass=["FoldConstnat"])
    assert tvm.PassContext.list_configs()["verify.seed"] == {"type": "an integer"}


def test_build_config_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="use PassContext"):
        config = tvm.build_config(opt_level=3, trace=lambda *_: None)
    assert config.opt_level == 3


def test_levels_are_those_of_the_registry() -> None:
    levels = tvm.OPT_PASS_LEVEL
    assert levels["FoldConstant"] == tiered.get_pass("fold_constant").info.opt_level
    assert levels["InferType"] == 0
    assert "RemoveInitializerFromInput" not in levels
    with pytest.raises(TypeError):
        levels["FoldConstant"] = 0  # type: ignore[index]  # the point


def test_passes_of_ones_own_have_tvms_signatures() -> None:
    def renamed(mod: Model, ctx: tiered.PassContext) -> Model:
        mod.main.rename_node(mod.main.nodes[0], "renamed")
        return mod

    class Renaming:
        def __init__(self, name: str) -> None:
            self.name = name

        def transform_function(self, func: Graph, mod: Model, ctx: Any) -> Graph:
            assert func is mod.main
            func.rename_node(func.nodes[0], self.name)
            return func

    transform = tvm.transform.module_pass(opt_level=2, required=["InferType"])(renamed)
    Renames = tvm.transform.function_pass(opt_level=1)(Renaming)
    given = model()
    assert transform(given).main.nodes[0].name == "renamed"
    assert transform.info.required == ("InferType",)
    assert Renames("again")(given).main.nodes[0].name == "again"
    assert Renames("again").info.opt_level == 1
    with pytest.raises(UsageError, match="opt_level is missing"):
        tvm.module_pass(lambda mod, ctx: mod)


def test_instruments_have_tvms_names(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    @tvm.instrument.pass_instrument
    class Counts(tvm.PassInstrument):
        def __init__(self) -> None:
            self.names: list[str] = []

        def run_before_pass(self, mod: Model, info: tvm.PassInfo) -> None:
            self.names.append(info.name)

    timing, counts = tvm.PassTimingInstrument(), Counts()
    with registered(fuse_relu, look):
        printing = tvm.PassPrintingInstrument(["look"], ["fuse_relu"])
        dump = tvm.DumpIR(str(tmp_path))
        with tvm.PassContext(instruments=[timing, counts, printing, dump]):
            tvm.Sequential([look, fuse_relu], name="both")(proto())
    assert counts.names == ["both", "look", "fuse_relu"]
    assert "fuse_relu" in timing.render()
    said = capsys.readouterr().err
    assert said.count("# before look") == said.count("# after fuse_relu") == 1
    assert len(onnx.load(tmp_path / "002-fuse_relu.onnx").graph.node) == 3
    for everything in (tvm.PrintBeforeAll(), tvm.PrintAfterAll()):
        with tvm.PassContext(instruments=[everything]):
            look(model())
    assert capsys.readouterr().err.count(" look: the model") == 2


def test_a_sequential_requires_nothing() -> None:
    with pytest.raises(UsageError, match="put the passes first"):
        tvm.Sequential([], required=["InferType"])
    assert tvm.Sequential([tvm.InferType()], opt_level=3).info.opt_level == 3


def test_pass_info_has_the_order_of_tvm() -> None:
    info = tvm.PassInfo(1, "x", ["fold_constant"])
    assert info == tiered.PassInfo("x", opt_level=1, required=("fold_constant",))
    with pytest.raises(UsageError, match="a level, a name and a list of names"):
        tvm.PassInfo("x", 1)  # type: ignore[arg-type]  # what is wrong


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


def test_one_layout_is_that_of_convolutions() -> None:
    for layout in ("NCHW", "NHWC"):
        expected = tiered.get_pass("convert_layout", desired_layouts={"Conv": layout})
        assert tvm.transform.ConvertLayout(layout) == expected
    with pytest.raises(UsageError, match="ConvertLayout takes a layout for each operator"):
        tvm.ConvertLayout(3)


def test_a_name_of_two_passes_takes_no_options() -> None:
    with pytest.raises(UsageError, match="takes 0 options, not 3"):
        tvm.FoldScaleAxis(1, 2, 3)
    with pytest.raises(UsageError, match="takes no options, not foo: give them to one of"):
        tvm.FoldScaleAxis(foo=3)
    assert len(tvm.FoldScaleAxis().passes) == 2


def test_a_class_without_its_method_is_refused() -> None:
    class Empty:
        pass

    with pytest.raises(UsageError, match="Empty: the class of a pass must have a method"):
        tvm.module_pass(Empty, opt_level=1)
    with pytest.raises(UsageError, match="must have a method transform_function"):
        tvm.function_pass(opt_level=1)(Empty)


LINEAR = """g (float[2,3] x) => (float[2,4] y, float[2,4] z)
<float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4,3] v = {1,2,3,4,5,6,7,8,9,10,11,12}> {
    a = Transpose<perm=[1,0]>(w)  y = MatMul(x, a)
    b = Transpose<perm=[1,0]>(v)  z = MatMul(x, b) }"""


def test_a_target_is_a_backend() -> None:
    with tvm.target.create("onnxruntime_cpu"):
        assert tiered.PassContext.current().backend.name == "onnxruntime_cpu"
    assert not tiered.PassContext.is_active()
    assert tvm.target.Target("llvm -mcpu=core-avx2").backend.name == "onnxruntime_cpu"
    assert str(tvm.target.Target(tvm.target.create("cuda"))) == "cuda"
    with pytest.raises(UsageError, match="did you mean 'portable'"):
        tvm.target.create("portabel")


def test_a_model_is_built_for_a_target() -> None:
    given = proto()
    with tvm.PassContext(opt_level=3):
        made = tvm.relay.build(given, target="llvm")
    assert ops(made) == ["Relu", "Neg", "Abs"]
    assert ops(given) == ["Relu", "Relu", "Neg", "Abs"]
    view = model()
    assert tvm.relay.build(view, "portable", None, {}).module is view
    with pytest.raises(UsageError, match="build: the model has no weight 'w'"):
        tvm.relay.build(given, "llvm", params={"w": 1})


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
    with pytest.raises(UsageError, match="the model has no weight 'u'"):
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


def test_kinds_of_passes_have_tvms_names() -> None:
    assert isinstance(tvm.FoldConstant(), tvm.transform.FunctionPass)
    made = tvm.module_pass(lambda mod, ctx: mod, opt_level=0, name="nothing")
    assert isinstance(made, tvm.transform.ModulePass)


def test_a_transform_may_return_a_new_module() -> None:
    def to_renamed(mod: Model, ctx: tiered.PassContext) -> Any:
        made = mod.to_proto()
        made.graph.node[0].name = "new"
        return made

    class Copying:
        def transform_module(self, mod: Model, ctx: tiered.PassContext) -> Model:
            return Model.from_proto(renamed(mod.to_proto()))

    renamed = tvm.transform.module_pass(to_renamed, opt_level=0)
    copied = tvm.transform.module_pass(opt_level=0)(Copying)
    view = model()
    for transform in (renamed, copied()):
        assert transform(proto()).graph.node[0].name == "new"
        assert transform(view) is view
    assert view.main.nodes[0].name == "new"
    view.check_view()


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


CONV = """(float[1,3,4,4] x) => (float[1,2,4,4] y)
    <float[2,3,1,1] w = {1,2,3,4,5,6}, float[2,1,1] b = {1,2}> {
    a = Conv(x, w) c = Add(a, b) y = Relu(c) }"""


def test_a_function_pass_may_return_another_function() -> None:
    class Visiting:
        def __init__(self, op_type: str) -> None:
            self.op_type = op_type

        def transform_function(self, func: Graph, mod: Any, ctx: Any) -> Graph:
            new: Graph = mod.copy().main
            for node in new.nodes_of("Relu"):
                new.set_operator(node, self.op_type, "")
            new.set_graph_outputs(new.outputs[::-1], new.output_infos[::-1])
            return new

    Visits = tvm.relay.transform.function_pass(opt_level=1)(Visiting)
    text = """(float[2] x) => (float[2] y, float[2] z) <float[2] c = {1, 2}> {
        a = Add(x, c) y = Relu(a) z = Identity(x) }"""
    given = parse(text)
    made = Visits("Neg")(given)
    assert [(node.op_type, list(node.output)) for node in made.graph.node] == [
        ("Add", ["a"]), ("Neg", ["z"]), ("Identity", ["y"]),
    ]  # fmt: skip
    assert [info.name for info in made.graph.output] == ["y", "z"]
    view = Model.from_proto(given)
    mark = view.mark()
    Visits("Abs")(view)
    view.check_view()
    view.undo_to(mark)
    assert view.to_proto() == given
    assert given == parse(text)


def test_an_output_that_is_an_input_stays_one() -> None:
    text = "g (float[2] x) => (float[2] y, float[2] x) { y = Neg(x) }"
    copies = tvm.function_pass(lambda func, mod, ctx: mod.copy().main, opt_level=1, name="p")
    made = copies(proto(text))
    assert [info.name for info in (*made.graph.input, *made.graph.output)] == ["x", "y", "x"]

    def swapped(func: Graph, mod: Any, ctx: Any) -> Graph:
        new: Graph = mod.copy().main
        new.set_graph_outputs(new.outputs[::-1], new.output_infos[::-1])
        return new

    with pytest.raises(UsageError, match="output 'x' is an input of graph 'g'"):
        tvm.function_pass(swapped, opt_level=1, name="p")(proto(text))


def test_a_function_pass_returns_the_same_interface_and_functions() -> None:
    def returned(make: Any) -> Any:
        return tvm.function_pass(lambda func, mod, ctx: make(mod), opt_level=1, name="p")

    def other(text: str) -> Any:
        return lambda mod: Model.from_proto(proto(text)).main

    text = "g (float[2] x) => (float[2] y) { y = Neg(x) }"
    with pytest.raises(UsageError, match="has 1 inputs, and the returned one 2"):
        returned(other("g (float[2] x, float[2] z) => (float[2] y) { y = Neg(x) }"))(model(text))
    with pytest.raises(UsageError, match="has 1 outputs, and the returned one 2"):
        returned(other("g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x) z = Neg(x) }"))(
            model(text)
        )
    calls = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21, "l" : 1]>'
        " g (float[2] x) => (float[2] y) { y = l.f(x) }"
        ' <domain: "l", opset_import: ["" : 21]> f (v) => (u) { u = Neg(v) }'
    )
    with pytest.raises(UsageError, match="calls the function 'f', which the model has not"):
        returned(lambda mod: Model.from_proto(calls).main)(model(text))
    with pytest.raises(UsageError, match="p added or removed a function"):
        returned(lambda mod: mod.remove(mod.functions[0]))(_unused(calls))
    body = """g (bool c, float[2] x) => (float[2] y) { y = If(c)
        <then_branch = t () => (float[2] p) { p = Neg(x) },
         else_branch = e () => (float[2] q) { q = Abs(x) }> }"""
    of_bodies = tvm.function_pass(
        lambda func, mod, ctx: func if func.parent_node is None else mod.copy().main,
        opt_level=1, name="p",
    )  # fmt: skip
    with pytest.raises(UsageError, match=r"the body '.*' cannot become another graph"):
        of_bodies(model(body))


def _unused(calls: onnx.ModelProto) -> Model:
    """Return the model without its call, but with its function."""
    view = Model.from_proto(calls)
    view.main.set_operator(view.main.nodes[0], "Neg", "")
    return view


def test_a_model_is_built_and_run_as_in_the_tutorial() -> None:
    graph_executor = importlib.import_module("tiered.compat.tvm.contrib.graph_executor")
    relay = importlib.import_module("tiered.compat.tvm.relay")
    data = np.ones((1, 3, 4, 4), np.float32)
    mod, params = relay.frontend.from_onnx(parse(CONV), {"x": (1, 3, 4, 4)}, freeze_params=False)
    assert sorted(params) == ["b", "w"]
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.device("llvm", 0)))
    module.set_input("x", tvm.nd.array(data))
    module.run()
    expected = module.get_output(0).numpy()
    assert expected.shape == (1, 2, 4, 4)
    assert (module.get_num_outputs(), module.get_input(0).asnumpy().sum()) == (1, 48)
    graph, lib, params = relay.build(parse(CONV), "llvm", params={"w": np.ones((2, 3, 1, 1), "f")})
    assert [node["name"] for node in json.loads(graph)["nodes"]][:2] == ["x", "w"]
    module = graph_executor.create(graph, lib, tvm.cpu(0))
    module.set_input(**params)
    module.run(x=data)
    assert module.get_output(0)[0, :, 0, 0].tolist() == [4.0, 5.0]
    assert lib.get_lib() == lib
    with pytest.raises(UsageError, match="no input 'z'"):
        module.set_input("z", data)
    with pytest.raises(UsageError, match="'w' is a weight of the built model"):
        module.set_input(w=params["w"] * 2)
    with pytest.raises(UsageError, match="so no output 1"):
        module.get_output(1)
    with pytest.raises(UsageError, match="so no input 4"):
        module.set_input(4, data)
    with pytest.raises(UsageError, match="has one function, 'default'"):
        lib["main"]


def test_predicates_are_registered_as_in_tvm() -> None:
    def relu(expr: Any) -> bool:
        return bool(expr.inputs[0].rank == 4)

    assert tvm.ir.register_op_attr("nn.relu", "target.test_xyz")(relu) is relu

    reg = importlib.import_module("tiered.compat.tvm.relay.op.op")
    reg.register("nn.conv2d", "target.test_dnnl", lambda attrs, args: len(args) == 2)
    reg.register("add", "target.test_dnnl", True)
    tvm.ir.register_op_attr("sigmoid", "target.test_dnnl", False)
    for targets, expected in (
        (["test_dnnl", "test_xyz"], ["test_dnnl", "test_dnnl", "test_xyz"]),
        (["test_xyz", "llvm"], ["onnxruntime_cpu", "onnxruntime_cpu", "test_xyz"]),
    ):
        made = tvm.transform.AnnotateTarget(target=targets)(parse(CONV))
        assert [node.metadata_props[0].value for node in made.graph.node] == expected
    with pytest.raises(UsageError, match="'FTVMCompute' has no equivalent"):
        tvm.ir.register_op_attr("add", "FTVMCompute", relu)
    with pytest.raises(UsageError, match=r"named 'nn\.relv'; did you mean 'nn\.relu'"):
        tvm.ir.register_op_attr("nn.relv", "target.x", relu)


def test_a_layout_rule_is_registered_as_in_tvm() -> None:
    def scale(node: Any) -> Any:
        return tiered.Skip("for the test")

    tvm.ir.register_op_attr("test.tvm::ScaleOfTvm", "FInferCorrectLayout", scale)
    assert LAYOUTS.find(("test.tvm", "ScaleOfTvm")) is scale
    LAYOUTS.remove("ScaleOfTvm", "test.tvm")


def test_devices_are_annotated_and_propagate() -> None:
    text = """(float[2] x) => (float[2] y, float[2] z) {
        a = Neg(x) b = Abs(a) c = Sin(b) y = Cos(c) z = Exp(x) }"""

    def devices(**options: Any) -> list[str]:
        model = Model.from_proto(parse(text))
        first, third = model.main.nodes[0], model.main.nodes[2]
        value = first.output
        assert tvm.relay.annotation.on_device(value, tvm.cuda(0)) is value
        tvm.relay.annotation.on_device(third, tvm.device("cuda"))
        tvm.transform.RewriteAnnotatedOps(tvm.cpu(), **options)(model)
        return [node.metadata["tiered.device"] for node in model.main.nodes]

    assert devices() == ["cuda", "cuda", "cuda", "cpu", "cpu"]
    assert devices(propagate=False) == ["cuda", "cpu", "cuda", "cpu", "cpu"]
    assert tvm.Device(2, 1) == tvm.gpu(1)
    with pytest.raises(UsageError, match="no device type 99"):
        tvm.device(99)
    with pytest.raises(UsageError, match="no device 'tpu'"):
        tvm.device("tpu")
    with pytest.raises(UsageError, match="no node computes"):
        tvm.relay.annotation.on_device(Model.from_proto(parse(text)).main.inputs[0], "cpu")


def test_partial_evaluation_takes_constant_ifs() -> None:
    text = """(float[2] x) => (float[2] y) <bool c = {1}> { y = If(c)
        <then_branch = t () => (float[2] p) { p = Neg(x) },
         else_branch = e () => (float[2] q) { q = Abs(x) }> }"""
    assert [node.op_type for node in tvm.PartialEvaluate()(parse(text)).graph.node] == ["Neg"]
    assert "max_iterations=4" in str(tvm.PartialEvaluate(max_iterations=4))


def test_a_module_has_its_functions_by_name() -> None:
    call = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21, "local" : 1]>'
        " g (float[2] x) => (float[2] y) { y = local.f(x) }"
        ' <domain: "local", opset_import: ["" : 21]> f (v) => (u) { u = Neg(v) }'
    )
    mod = tvm.IRModule.from_expr(call)
    assert mod["main"] is mod.main
    assert mod["f"] is mod.functions[0]
    assert mod.get_global_vars() == ["main", "f"]
    assert tvm.IRModule.from_expr(mod) is mod
    with pytest.raises(UsageError, match="the module has no function 'mian'; did you mean 'main'"):
        mod["mian"]
    inlined = tvm.transform.Inline()(mod)
    assert inlined is mod
    assert inlined.get_global_vars() == ["main"]


def test_a_target_that_nobody_knows_says_how_to_register_it() -> None:
    with pytest.raises(UsageError, match=r"no backend named 'dnnl' .*'target\.dnnl'"):
        tvm.transform.AnnotateTarget(target=["dnnl"])
