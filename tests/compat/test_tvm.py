"""TVM's names: what people type by habit works."""

import importlib
import json
from typing import Any

import numpy as np
import onnx
import pytest

import tiered
from tests.small import fuse_relu, look, model, ops, proto, registered
from tiered import Model
from tiered.compat import tvm
from tiered.support.errors import PassNotFoundError, UsageError
from tiered.testing import parse

"""Passes that TVM itself makes with arguments only."""
"""Passes that TVM's constructors make otherwise."""


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


def test_one_layout_is_that_of_convolutions() -> None:
    for layout in ("NCHW", "NHWC"):
        expected = tiered.get_pass("convert_layout", desired_layouts={"Conv": layout})
        assert tvm.transform.ConvertLayout(layout) == expected
    with pytest.raises(UsageError, match="ConvertLayout takes a layout for each operator"):
        tvm.ConvertLayout(3)


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


CONV = """(float[1,3,4,4] x) => (float[1,2,4,4] y)
    <float[2,3,1,1] w = {1,2,3,4,5,6}, float[2,1,1] b = {1,2}> {
    a = Conv(x, w) c = Add(a, b) y = Relu(c) }"""


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
