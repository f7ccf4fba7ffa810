"""PopRT's names: a pass of a ModelProto, registered, fetched, run in a manager."""

from collections.abc import Iterator
from typing import Any

import onnx
import pytest

import tiered
from tests.recorded import assert_values
from tests.small import content, fuse_relu, model, ops, proto
from tiered.compat import poprt
from tiered.passes.interface.registry import registry
from tiered.support.errors import PassError, TieredError, UsageError
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
    with pytest.raises(UsageError, match="takes 1 argument, not 2"):
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


def test_an_overview_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    poprt.passes.get_pass("model_overview").run(proto())
    assert "4 nodes: 2 Relu" in capsys.readouterr().err


def test_what_onnx_cannot_have_says_why() -> None:
    with pytest.raises(KeyError, match=r"to_cps has no equivalent .*sink_into_if"):
        poprt.get_pass("to_cps")


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


def test_passes_and_managers_are_recorded() -> None:
    drop_names()

    @poprt.register("needs")
    class Needs(poprt.Pass):
        changes_interface = True

        def __init__(self, this: str, that: int = 3) -> None:
            self.this = this

        def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
            onnx_model.graph.name = self.this
            return onnx_model

    def manager(*given: Any) -> Any:
        return poprt.PassManager(*given)

    small = "g (float[2] x) => (float[2] y) { a = Identity(x) y = Neg(a) }"

    def ran(made: Any, text: str = small) -> object:
        found = (made if callable(made) else made.run)(proto(text))
        return found.graph.name, [(each.op_type, each.name) for each in found.graph.node]

    def info(made: Any) -> object:
        return type(made).__name__, made.name, made.changes_interface, made.lifted().text

    seen: list[tuple[str, bool]] = []
    branch = "=> (float[2] p) { p = Neg(x) }"
    bodies = f"""g (float[2] x, bool c) => (float[2] y) {{ y = If(c) <then_branch = t () {branch},
        else_branch = e () {branch.replace("p", "q")}> }}"""
    get = poprt.get_pass("drop_names")
    get.traverse_graph(proto(bodies).graph, lambda each, is_main: seen.append((each.name, is_main)))

    def own(made: Any) -> str:
        return type(made).__name__

    names = {"traversed": seen, "own": own, "get_pass": poprt.get_pass,
             "manager": manager, "ran": ran, "info": info,
             "Pass": poprt.Pass, "passes": poprt.passes, "Needs": Needs,
             "fuse_relu": fuse_relu,
             "register": poprt.register, "proto": proto, "tiered": tiered}  # fmt: skip
    assert_values(__file__, names)
