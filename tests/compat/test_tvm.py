"""TVM's names: what people type by habit works."""

from typing import Any

import onnx
import pytest

import tiered
from tests.small import fuse_relu, look, model, ops, proto, registered
from tiered import Graph, Model
from tiered.compat import tvm
from tiered.errors import OptionError, PassNotFoundError, UsageError


def test_every_pass_has_a_constructor() -> None:
    for name in tiered.pass_names():
        camel = "".join(part.title() for part in name.split("_"))
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
    assert tvm.ChangeBatch().options["batch_size"] == 16
    for wrong in ({"x": 1}, 3):
        with pytest.raises(UsageError, match=r"ChangeBatch takes the axis 0 of inputs"):
            tvm.ChangeBatch(wrong)


def test_a_layout_without_operators_is_refused() -> None:
    with pytest.raises(UsageError, match="ConvertLayout takes a layout for each operator"):
        tvm.ConvertLayout("NCHW")


def test_a_name_of_two_passes_takes_no_options() -> None:
    with pytest.raises(UsageError, match=r"takes no options, not 1, 2, 3, foo"):
        tvm.FoldScaleAxis(1, 2, 3, foo=3)
    assert len(tvm.FoldScaleAxis().passes) == 2


def test_a_class_without_its_method_is_refused() -> None:
    class Empty:
        pass

    with pytest.raises(UsageError, match="Empty: the class of a pass must have a method"):
        tvm.module_pass(Empty, opt_level=1)
    with pytest.raises(UsageError, match="must have a method transform_function"):
        tvm.function_pass(opt_level=1)(Empty)
