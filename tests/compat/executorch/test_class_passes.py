"""ExecuTorch's names: what its passes return."""

from functools import partial
from typing import Any

import onnx
import pytest

import tiered
from tests.recorded import assert_values
from tiered import Graph, Model, PassContext, TieredError, UsageError, function_pass, module_pass
from tiered.compat import executorch
from tiered.compat.executorch import (
    ExportPass,
    PassBase,
    PassManager,
    PassResult,
    SubgraphMatcher,
    args_map,
    class_passes,
    replace_pattern,
)
from tiered.testing import parse

TEXT = "(float[2] x) => (float[2] y) { h = Neg(x) y = Neg(h) }"


class Rename(PassBase):
    """Name the first node, if it is to."""

    def __init__(self, name: str) -> None:
        self.name = name

    def call(self, graph_module: Model) -> PassResult:
        if not self.name:
            return PassResult(graph_module, False)
        graph_module.main.rename_node(graph_module.main.nodes[0], self.name)
        return PassResult(graph_module, False)


class Visit(ExportPass):
    """Visit, and say so."""

    def call(self, graph_module: Model) -> PassResult:
        super().call(graph_module)
        return PassResult(graph_module, True)


def test_a_pass_may_return_its_result_and_the_journal_records_the_change() -> None:
    with PassContext(3) as ctx:
        assert Rename("")(parse(TEXT)) == (parse(TEXT), False)
        made = Rename("first")(parse(TEXT))
        assert (made.graph_module.graph.node[0].name, made.modified) == ("first", True)
        assert Visit()(parse(TEXT)).graph_module == parse(TEXT)
    own = [result for result in ctx.report.results if result.name in ("Rename", "Visit")]
    assert [result.changed for result in own] == [False, True, False]
    done = PassManager([Rename("a")])(parse(TEXT))
    assert (done.graph_module.graph.node[0].name, done.modified) == ("a", True)
    view = Model.from_proto(parse(TEXT))
    assert PassManager([Rename("")])(view) == (view, False)


def test_functions_may_return_it_too() -> None:
    @module_pass(opt_level=0)
    def of_model(model: Model, ctx: PassContext) -> PassResult:
        return PassResult(model, False)

    @function_pass(opt_level=0)
    def of_graph(graph: Graph, ctx: PassContext) -> tuple[object, ...]:
        return PassResult(graph, False)

    assert of_model(parse(TEXT)) == of_graph(parse(TEXT)) == parse(TEXT)


def test_another_model_that_a_pass_returns_is_the_result() -> None:
    class Copies(PassBase):
        def call(self, graph_module: Model) -> PassResult:
            other = graph_module.copy()
            other.main.rename_node(other.main.nodes[0], "copied")
            return PassResult(other, True)

    view = Model.from_proto(parse(TEXT))
    assert Copies()(view) == (view, True)
    assert view.main.nodes[0].name == "copied"
    with pytest.raises(UsageError, match="returned an object of type str"):
        PassManager([lambda model: "nothing"])(parse(TEXT))


def test_what_can_be_called_with_a_model_is_a_pass() -> None:
    def named(name: str, model: Model) -> PassResult:
        model.main.rename_node(model.main.nodes[0], name)
        return PassResult(model, True)

    class Namer:
        def by_method(self, model: Model) -> None:
            named("method", model)

        def __call__(self, model: Model) -> onnx.ModelProto:
            proto = model.to_proto()
            proto.graph.node[0].name = "proto"
            return proto

    passes = {
        "lambda": lambda model: named("lambda", model),
        "partial": partial(named, "partial"),
        "method": Namer().by_method,
        "proto": Namer(),
    }
    for name, item in passes.items():
        manager = PassManager([[item]], run_checks_after_each_pass=True)
        manager.add_pass("eliminate_identity")
        assert manager(parse(TEXT)).graph_module.graph.node[0].name == name


def test_operands_and_attributes_are_mapped_with_their_schema() -> None:
    seen: list[str] = []

    def noted(value: Any, schema: Any) -> Any:
        seen.append(getattr(schema, "name", "none"))
        return value

    class Visits(ExportPass):
        def call_operator(self, op: str, args: Any, kwargs: Any, meta: Any) -> Any:
            args, kwargs = args_map(op, noted, args, kwargs)
            if op == "Softmax":
                kwargs["axis"] = 0
            return super().call_operator(op, args, kwargs, meta)

    text = "(float[2,2] x) => (float[2,2] y) { s = Softmax<axis=1>(x) y = Clip(s) }"
    made = Visits()(parse(text)).graph_module
    assert seen == ["input", "axis", "input"]
    assert made.graph.node[0].attribute[0].i == 0
    args_map("Own", noted, [1, None], {"a": 2}, domain="d")
    assert seen[3:] == ["none", "none"]


def test_a_model_is_a_pattern_and_is_searched() -> None:
    pattern = parse("(float[9] x) => (float[9] y) { h = Neg(x) y = Neg(h) }")
    view = Model.from_proto(parse(TEXT))
    (match,) = SubgraphMatcher(pattern).match(view)
    assert match.placeholder_nodes == view.main.inputs
    after = parse("(float[9] x) => (float[9] y) { y = Identity(x) }")
    (replaced,) = replace_pattern(view, pattern, Model.from_proto(after))
    assert [node.op_type for node in replaced.replacements] == ["Identity"]


def test_a_direct_call_checks_its_result() -> None:
    class Turns(executorch.ExportPass):
        def call_operator(self, op: str, args: Any, kwargs: Any, meta: Any) -> Any:
            return super().call_operator("Transpose", args, {"perm": (1, 0)}, meta)

    class Returns(executorch.PassBase):
        def call(self, graph_module: Model) -> Any:
            made = graph_module.to_proto()
            made.graph.node[0].op_type = "NoSuchOperator"
            return executorch.PassResult(made, True)

    text = "(float[2,3] x) => (float[2,3] y) { y = Neg(x) }"
    for pass_ in (Turns(), Returns(), executorch.PassManager([Returns()])):
        model = Model.from_proto(parse(text))
        with pytest.raises(TieredError):
            pass_(model)
        assert [node.op_type for node in model.main.nodes] == ["Neg"]


def test_patterns_are_replaced_with_the_arguments_of_the_reference() -> None:
    text = "(float[2] x) => (float[2] y) { a = Neg(x) y = Neg(a) }"
    model = Model.from_proto(parse(text))
    replaced = executorch.replace_pattern_with_filters(
        model, "(x) => (y) { y = Neg(x) }", "(x) => (y) { y = Abs(x) }",
        match_filters=[lambda match, graph, pattern: match.node.label == "y"],
    )  # fmt: skip
    assert len(replaced) == 1
    assert [node.op_type for node in model.main.topological_order()] == ["Neg", "Abs"]


def test_a_matcher_takes_flags_by_place_and_protos() -> None:
    proto = parse("(float[2] x) => (float[2] y) { a = Neg(x) y = Neg(a) }")
    matcher = executorch.SubgraphMatcher("(x) => (y) { y = Neg(x) }", True, False, True, False)
    (found,) = matcher.match(proto)
    assert [value.name for value in found.returning_nodes] == ["y"]
    with pytest.raises(
        UsageError, match="match takes a Model or a Graph, not an object of type str"
    ):
        matcher.match("model.onnx")  # type: ignore[arg-type]  # on purpose


def test_its_own_passes_have_its_names() -> None:
    text = "(float[2] x) => (float[2] y) { a = Identity(x) y = Neg(a) }"
    result = executorch.RemoveDetachPass()(Model.from_proto(parse(text)))
    assert result.modified
    assert [node.op_type for node in result.graph_module.main.nodes] == ["Neg"]
    old = parse("(float[2] x) => (float[2] y) { y = Clip<max = 2.0, min = 0.0>(x) }", opset=9)
    passes = executorch.PassManager([executorch.ScalarToTensorPass()])
    assert len(passes(old).graph_module.graph.node[0].input) == 3


class NegToAbs(ExportPass):
    """Say how many nodes of a kind are left, after the call that it builds on."""

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        return super().call_operator("Abs" if op == "Neg" else op, args, kwargs, meta)

    def call(self, graph_module: Any) -> PassResult:
        result = super().call(graph_module)
        self.was_modified = result.modified
        return PassResult(result.graph_module, True)


def test_an_override_of_call_has_the_result_of_the_call_that_it_builds_on() -> None:
    model, pass_ = parse(TEXT), NegToAbs()
    for call in (pass_, pass_.call):
        made = call(model).graph_module
        assert [node.op_type for node in made.graph.node] == ["Abs", "Abs"]
        assert pass_.was_modified
        assert pass_(made).graph_module == made
        assert not pass_.was_modified
    assert model == parse(TEXT)


@pytest.mark.parametrize("given", [NegToAbs(), "eliminate_deadend", None, [[NegToAbs()]]])
def test_a_manager_takes_one_pass_and_none(given: Any) -> None:
    made = PassManager(passes=given, constraints=None)
    assert len(made.passes) == (given is not None)
    made(parse(TEXT))


OTHER_DOMAIN = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2] x) => (float[2] y) { a = d.Neg(x)  b = Neg(a)  y = Abs(b) }"""


def test_an_operator_of_another_domain_has_another_name() -> None:
    seen: list[str] = []

    class NegToRelu(ExportPass):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            seen.append(str(op))
            return super().call_operator("Relu" if op == "Neg" else op, args, kwargs, meta)

    made = NegToRelu().call(onnx.parser.parse_model(OTHER_DOMAIN)).graph_module
    assert seen == ["d::Neg", "Neg", "Abs"]
    assert [(node.domain, node.op_type) for node in made.graph.node] == [
        ("d", "Neg"), ("", "Relu"), ("", "Abs"),
    ]  # fmt: skip


def test_an_operator_may_become_one_of_another_domain_and_back() -> None:
    class Turn(ExportPass):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            turned = {"d::Neg": "Exp", "Abs": "com.microsoft::Gelu"}.get(op, op)
            return super().call_operator(turned, args, kwargs, meta)

    made = Turn().call(onnx.parser.parse_model(OTHER_DOMAIN)).graph_module
    assert [(node.domain, node.op_type) for node in made.graph.node] == [
        ("", "Exp"), ("", "Neg"), ("com.microsoft", "Gelu"),
    ]  # fmt: skip


def test_an_unchanged_node_is_kept_and_a_changed_one_is_new() -> None:
    class Changes(ExportPass):
        def __init__(self, change: str) -> None:
            self.change = change

        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            if op == "Softmax" and self.change == "attributes":
                kwargs = {**kwargs, "axis": 0}
            if op == "Softmax" and self.change == "metadata":
                meta = {**meta, "note": "new"}
            if op == "Softmax" and self.change == "operands":
                args = (self.node.owner.inputs[0],)
            return super().call_operator(op, args, kwargs, meta)

    text = "(float[2,2] x) => (float[2,2] y) { a = Neg(x)  y = Softmax<axis=1>(a) }"
    for change in ("nothing", "attributes", "metadata", "operands"):
        view = Model.from_proto(parse(text))
        result = Changes(change).call(view)
        assert result.graph_module is view
        assert result.modified is (change != "nothing")


def test_operators_of_several_outputs_keep_them() -> None:
    class Same(ExportPass):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            return super().call_operator(op, args, {**kwargs}, {**meta, "seen": "1"})

    text = "(float[2] x) => (float[1] y, float[1] z) { y, z = Split<num_outputs=2>(x) }"
    made = Same().call(parse(text)).graph_module
    assert [list(node.output) for node in made.graph.node] == [["y", "z"]]


def test_a_check_takes_one_argument() -> None:
    manager = PassManager(["eliminate_identity"])
    wrongs: list[Any] = [lambda: None, lambda first, second: None]
    for wrong in wrongs:
        with pytest.raises(TypeError, match="a check takes one argument, the module"):
            manager.add_checks(wrong)
        with pytest.raises(UsageError, match="a check takes one argument"):
            manager.set_checks(wrong)
    manager.add_checks(lambda module: None)

    def with_default(module: Any, level: int = 2) -> None:
        """Find nothing wrong."""

    manager.add_checks(with_default)
    assert len(manager.checks) == 2
    manager.set_checks(lambda module: None)
    assert len(manager.checks) == 1


def test_checks_are_run_at_the_end_or_after_each_pass() -> None:
    for after_each, count in ((False, 1), (True, 2)):
        seen: list[Any] = []
        manager = PassManager(["eliminate_identity", "eliminate_deadend"], after_each)
        manager.add_checks(seen.append)
        manager(parse("(float[2] x) => (float[2] y) { d = Abs(x) i = Identity(x) y = Neg(i) }"))
        assert len(seen) >= count
        assert all(isinstance(each, executorch.GraphModule) for each in seen)

    def wrong(module: Any) -> None:
        raise ValueError("it is wrong")

    strict, lenient = (
        PassManager(["eliminate_deadend"]),
        PassManager(["eliminate_deadend"], suppress_check_failures=True),
    )
    for each in (strict, lenient):
        each.add_checks(wrong)
    with pytest.raises(TieredError, match="it is wrong"):
        strict(parse(TEXT))
    assert lenient(parse(TEXT)).graph_module == parse(TEXT)


def test_an_order_is_demanded_of_passes_by_name() -> None:
    def last(module: Any) -> None:
        """Do nothing."""

    before = executorch.this_before_that_pass_constraint
    assert before("a", last) == ("a", "last")
    assert before(partial(last), lambda module: None) == ("last", "function")
    assert before(Rename("x"), Rename) == ("Rename", "Rename")
    manager = PassManager([last, "eliminate_deadend"])
    assert [each.name for each in manager.pipeline.passes] == ["last", "eliminate_deadend"]
    manager.add_constraint(before("eliminate_deadend", last))
    assert [each.name for each in manager.pipeline.passes] == ["eliminate_deadend", "last"]
    PassManager(["eliminate_deadend", last], constraints=[before("eliminate_deadend", last)])(
        parse(TEXT)
    )


def test_formal_parameters_are_those_of_the_schema() -> None:
    def named(value: Any, schema: Any) -> str:
        return f"{value}:{getattr(schema, 'name', None)}"

    assert args_map("Concat", named, ["a", "b", None], {"axis": 0}) == (
        ("a:inputs", "b:inputs", None), {"axis": "0:axis"},
    )  # fmt: skip
    assert args_map("Gemm", named, ["a", "b", "c"], {"other": 1}) == (
        ("a:A", "b:B", "c:C"),
        {"other": "1:None"},
    )
    assert args_map("Own", named, ["a"], {"k": 1}, "d") == (("a:None",), {"k": "1:None"})
    assert args_map("ConstantOfShape", named, [], {}) == ((), {})


def test_managers_and_maps_are_recorded() -> None:
    def shown(*args: Any, **more: Any) -> object:
        manager = class_passes.FxPassManager(*args, **more)
        return [getattr(each, "name", each) for each in manager.passes], manager.constraints

    def check(graph_module: Any) -> None:
        """Accept any module."""

    names = {
        "shown": shown,
        "check": check,
        "args_map": class_passes.args_map,
        "before": class_passes.this_before_that_pass_constraint,
        "manager": class_passes.FxPassManager(),
        "identity": tiered.get_pass("eliminate_identity"),
        "partial": partial(check, 1),
        "kind": lambda value, schema: (value, None if schema is None else schema.name),
        "Detach": class_passes.RemoveDetachPass,
        "Scalar": class_passes.ScalarToTensorPass,
    }
    assert_values(__file__, names)
