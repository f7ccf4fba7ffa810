"""Passes as objects: `PassBase`, and the interpreter `NodeMapPass`."""

from typing import Any, ClassVar

import onnx
import pytest

import tiered
from tests.small import content, model, ops, proto
from tiered import Model, Node, NodeMapPass, PassBase, PassContext, Sequential, Skip, Value
from tiered.compat import executorch
from tiered.passes.interface.registry import registry
from tiered.support.errors import (
    OperatorError,
    PassError,
    PostconditionError,
    PreconditionError,
    UsageError,
)

# --- PassBase -------------------------------------------------------------------------------------


ADDED = proto("g (float[2] x) => (float[2] y) { y = Add(x, x) }")


class ReplaceAdd(PassBase):
    """Replace every Add by another operator: of no meaning."""

    def __init__(self, to: str) -> None:
        self.to = to
        self.ran = 0

    def precondition(self, model: Model) -> object:
        if not model.main.nodes_of("Add"):
            return Skip("there is no Add")
        return None

    def call(self, model: Model) -> None:
        self.ran += 1
        graph = model.main
        for node in graph.nodes_of("Add"):
            graph.replace(node, [getattr(graph.op, self.to)(*node.inputs)], model.peek_serial())

    def postcondition(self, model: Model) -> None:
        if model.main.nodes_of("Add"):
            raise ValueError("an Add is left")


ADD = "g (float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }"


def test_an_object_with_state_is_a_pass() -> None:
    view = model(ADD)
    assert ReplaceAdd("Mul")(view) is view
    assert ops(view) == ["Mul"]


def test_a_model_proto_gives_a_new_one() -> None:
    given = proto(ADD)
    made = ReplaceAdd("Mul")(given)
    assert (ops(made), ops(given)) == (["Mul"], ["Add"])


def test_it_stands_in_a_pipeline_and_in_reports() -> None:
    view = model(ADD)
    with PassContext() as ctx:
        Sequential([ReplaceAdd("Mul"), "eliminate_identity"])(view)
    assert ops(view) == ["Mul"]
    (result,) = ctx.report.of("ReplaceAdd")
    assert (result.changed, result.rewrites) == (True, 1)


def test_a_context_can_disable_it() -> None:
    pass_ = ReplaceAdd("Mul")
    tiered.register(pass_.as_pass())
    try:
        with PassContext(disabled=["ReplaceAdd"]):
            pass_(model(ADD))
    finally:
        registry.unregister("ReplaceAdd")
    assert pass_.ran == 0


def test_nothing_to_do_is_no_error() -> None:
    pass_ = ReplaceAdd("Mul")
    with PassContext() as ctx:
        pass_(model())
    assert pass_.ran == 0
    assert [remark.reason for remark in ctx.remarks] == ["there is no Add"]


def test_what_is_required_is_said_with_the_name_of_the_pass() -> None:
    class NeedsRelu(PassBase):
        def precondition(self, model: Model) -> object:
            return bool(model.main.nodes_of("Relu"))

        def call(self, model: Model) -> None:
            raise AssertionError("it must not run")

    with pytest.raises(PreconditionError, match="NeedsRelu"):
        NeedsRelu()(model(ADD))


def test_what_is_ensured_undoes_the_pass() -> None:
    class LeavesOne(ReplaceAdd):
        def call(self, model: Model) -> None:
            graph = model.main
            graph.op.Relu(graph.inputs[0])

    view = model(ADD)
    before = content(view)
    with pytest.raises(PostconditionError, match=r"LeavesOne.*an Add is left"):
        LeavesOne("Mul")(view)
    assert content(view) == before


def test_a_pass_without_a_call_says_so() -> None:
    class Empty(PassBase):
        pass

    with pytest.raises(PassError, match=r"Empty has no call\(model\)"):
        Empty()(model())


def test_call_edits_in_place() -> None:
    class Returns(PassBase):
        def call(self, model: Model) -> object:
            return model.to_proto()

    with pytest.raises(UsageError, match=r"Returns.call edits the model"):
        Returns()(model())


def test_it_declares_as_decorators_do() -> None:
    class Declares(PassBase):
        """Change nothing."""

        opt_level = 3
        declared: ClassVar = {"numerics": "approximate", "required": ["eliminate_identity"]}

        def call(self, model: Model) -> None:
            pass

    info = Declares().as_pass().info
    assert (info.name, info.opt_level, info.numerics) == ("Declares", 3, "approximate")
    assert (info.required, info.doc) == (("eliminate_identity",), "Change nothing.")


# --- NodeMapPass ----------------------------------------------------------------------------------


class SubToAddNeg(NodeMapPass):
    """Sub(a, b) => Add(a, Neg(b))."""

    def map_node(self, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        if node.op_type != "Sub":
            return super().map_node(node, inputs)
        return self.emit("Add", (inputs[0], self.emit("Neg", inputs[1:])))


class DropDropout(NodeMapPass):
    """Dropout(x) => x."""

    def map_node(self, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        return inputs[0] if node.op_type == "Dropout" else super().map_node(node, inputs)


SUB = "g (float[2] x, float[2] w) => (float[2] y) { s = Sub(x, w) d = Dropout(s) y = Abs(d) }"


def test_one_node_becomes_many() -> None:
    view = model(SUB)
    SubToAddNeg()(view)
    assert ops(view) == ["Neg", "Add", "Dropout", "Abs"]
    assert [node.name for node in view.main.nodes[2:]] == ["node_s_1", "node_s"]
    view.check_view()


def test_returning_an_input_deletes_the_node() -> None:
    view = model(SUB)
    DropDropout()(view)
    assert ops(view) == ["Sub", "Abs"]


def test_a_graph_output_keeps_its_name() -> None:
    view = model("g (float[2] x) => (float[2] y) { r = Relu(x) y = Dropout(r) }")
    DropDropout()(view)
    assert ops(view) == ["Relu"]
    assert [value.name for value in view.main.outputs] == ["y"]


def test_metadata_and_doc_strings_follow() -> None:
    given = proto(SUB)
    given.graph.node[0].doc_string = "the difference"
    given.graph.node[0].metadata_props.add(key="module", value="head")
    view = Model.from_proto(given)
    SubToAddNeg()(view)
    for node in view.main.nodes[2:]:
        assert (node.proto.doc_string, node.metadata) == ("the difference", {"module": "head"})
        assert [origin.name for origin in node.origins] == ["node_s"]


def test_what_is_emitted_unchanged_is_the_node_itself() -> None:
    class Same(NodeMapPass):
        def map_node(self, node: Node, inputs: tuple[Value | None, ...]) -> Any:
            return self.emit(node.op_type, inputs, node.attributes, outputs=len(node.outputs))

    view = model(SUB)
    length = len(view.journal)
    Same()(view)
    assert len(view.journal) == length
    # One without bodies is another node.
    with pytest.raises(OperatorError, match=r"If .*attribute 'else_branch' is missing"):
        Same()(model(BODY))


def test_nothing_is_said_of_nodes_that_are_emitted_unchanged() -> None:
    emitted: list[Any] = []

    class Same(NodeMapPass):
        def map_node(self, node: Node, inputs: tuple[Value | None, ...]) -> Any:
            made = self.emit(node.op_type, inputs, node.attributes, outputs=len(node.outputs))
            emitted.append(made)
            return made

    view = model("""g (float[2,4] x) => (float[2,2] y, float[2,2] z) {
        a, b = Split<axis = 1, num_outputs = 2>(x)  y = Neg(a)  z = Identity(b) }""")
    with PassContext() as ctx:
        Same()(view)
    split, neg, identity = view.main.nodes
    assert emitted == [split.outputs, neg.output, identity.output]
    assert ctx.remarks == []


def test_each_node_is_one_rewrite() -> None:
    view = model("g (float[2] x) => (float[2] y) { a = Sub(x, x) y = Sub(a, x) }")
    with PassContext(rewrite_limit=1):
        SubToAddNeg()(view)
    assert ops(view) == ["Neg", "Add", "Sub"]


BODY = """g (float[2] x, bool c) => (float[2] y) {
    y = If(c) <then_branch = t () => (float[2] p) { p = Sub(x, x) },
               else_branch = e () => (float[2] q) { q = Abs(x) }>
}"""


def test_bodies_are_visited_where_that_is_asked_for() -> None:
    view = model(BODY)
    SubToAddNeg()(view)
    assert [len(graph.nodes_of("Sub")) for graph in view.graphs()] == [0, 1, 0]

    class IntoBodies(SubToAddNeg):
        into_bodies = True

    IntoBodies()(view)
    assert [len(graph.nodes_of("Sub")) for graph in view.graphs()] == [0, 0, 0]


def test_a_skip_is_reported() -> None:
    class Declines(NodeMapPass):
        def map_node(self, node: Node, inputs: tuple[Value | None, ...]) -> Any:
            self.emit("Relu", inputs[:1])
            return Skip("no")

    view = model(SUB)
    before = content(view)
    with PassContext() as ctx:
        Declines()(view)
    assert content(view) == before
    assert sum(remark.count for remark in ctx.remarks if remark.reason == "no") == 3


def test_what_the_opset_cannot_say_is_left_alone() -> None:
    class ToGelu(NodeMapPass):
        def map_node(self, node: Node, inputs: tuple[Value | None, ...]) -> Any:
            return self.emit("Gelu", inputs[:1])

    given = proto(SUB)
    given.opset_import[0].version = 17
    view = Model.from_proto(given)
    ToGelu()(view)
    assert ops(view) == ["Sub", "Dropout", "Abs"]


def test_a_decorator_makes_options_of_the_constructor() -> None:
    @tiered.function_pass(opt_level=1)
    class RenameRelu(NodeMapPass):
        """Relu => another operator."""

        def __init__(self, *, to: str = "Abs") -> None:
            self.to = to

        def map_node(self, node: Node, inputs: tuple[Value | None, ...]) -> Any:
            if node.op_type != "Relu":
                return super().map_node(node, inputs)
            return self.emit(self.to, inputs)

    view = model("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    # A type checker sees the class that was decorated; it is a pass.
    made: Any = RenameRelu
    made.with_options(to="Neg")(view)
    assert ops(view) == ["Neg"]
    assert str(made.with_options(to="Neg")) == "rename_relu{to=Neg}"


# --- ExecuTorch's names ---------------------------------------------------------------------------


class ReplaceAddWithMulSub(executorch.ExportPass):
    """Their example: x + y => x * y - y, which is wrong by design."""

    def call_operator(self, op: str, args: Any, kwargs: Any, meta: Any) -> Any:
        if op != "Add":
            return super().call_operator(op, args, kwargs, meta)
        product = super().call_operator("Mul", args, {}, meta)
        return super().call_operator("Sub", (product, args[1]), {}, meta)


def test_an_export_pass_is_a_node_map_pass() -> None:
    view = model("g (float[2] x) => (float[2] y) { r = Relu(x) a = Add(r, x) y = Abs(a) }")
    executorch.PassManager([ReplaceAddWithMulSub()])(view)
    assert ops(view) == ["Relu", "Mul", "Sub", "Abs"]


def test_their_names_are_ours() -> None:
    assert issubclass(executorch.PassBase, PassBase)
    assert issubclass(executorch.SubgraphMatcher, tiered.SubgraphMatcher)


def test_their_manager_takes_lists_functions_and_checks() -> None:
    def drop_abs(view: Model) -> None:
        for node in view.main.nodes_of("Abs"):
            view.main.replace(node, [node.inputs[0]])

    asked: list[str] = []

    def first(view: Model) -> None:
        asked.append("first")

    def second(view: Model) -> bool:
        asked.append("second")
        return not view.main.nodes_of("Sub")

    text = "g (float[2] x) => (float[2] y) { r = Relu(x) a = Abs(r) y = Add(a, x) }"
    manager = executorch.PassManager(
        [[drop_abs, ["eliminate_identity"]]], run_checks_after_each_pass=True
    )
    manager.add_checks(first)
    manager.add_checks(second)
    assert ops(manager(model(text)).graph_module) == ["Relu", "Add"]
    assert asked == ["first", "second"] * 2
    manager.add_pass(ReplaceAddWithMulSub())
    with pytest.raises(PostconditionError, match="second failed after ReplaceAddWithMulSub"):
        manager(model(text))
    manager.suppress_check_failures = True
    assert ops(manager(model(text)).graph_module) == ["Relu", "Mul", "Sub"]
    manager.set_checks(first)
    asked.clear()
    manager(model(text))
    assert set(asked) == {"first"}


# --- in a pipeline of `optimize` ------------------------------------------------------------------


def test_optimize_runs_an_object() -> None:
    pass_: Any = ReplaceAdd("Sub")
    result = tiered.optimize_model(ADDED, passes=[pass_])
    assert pass_.ran == 1
    assert ops(result.model) == ["Sub"]


@pytest.mark.parametrize("listed", [iter, list])
def test_a_rule_that_the_opset_has_not_is_an_error_beside_an_object(listed: Any) -> None:
    old = onnx.ModelProto()
    old.CopyFrom(ADDED)
    old.opset_import[0].version = 13
    with pytest.raises(tiered.TargetError, match="fuse_gelu cannot do what it is asked for"):
        tiered.optimize_model(old, passes=listed([ReplaceAdd("Sub"), "fuse_gelu"]))


def test_a_node_is_made_where_it_differs_from_the_visited_one() -> None:
    text = """g (float[2,4] x) => (float[2,4] y, float[2,2] p) {
        [soft] y = Softmax<axis = 1>(x)  [cut] p, q = Split<axis = 1, num_outputs = 2>(x) }"""
    rows: list[tuple[dict[str, Any], list[str], list[dict[str, str]]]] = [
        ({}, ["Softmax", "Split"], [{"k": "v"}] * 2),
        ({"Softmax": {"attributes": {"axis": 0}}}, ["Split", "Softmax"], [{"k": "v"}] * 2),
        ({"Softmax": {"attributes": None}}, ["Split", "Softmax"], [{"k": "v"}] * 2),
        ({"Softmax": {"metadata": {"a": "b"}}}, ["Split", "Softmax"],
         [{"k": "v"}, {"k": "v", "a": "b"}]),
        ({"Split": {"metadata": {"k": "w"}}}, ["Softmax", "Split"], [{"k": "v"}, {"k": "w"}]),
        ({"Softmax": {"op_type": "LogSoftmax"}}, ["Split", "LogSoftmax"], [{"k": "v"}] * 2),
    ]  # fmt: skip
    for changes, operators, metadata in rows:

        class Emits(NodeMapPass):
            def map_node(self, node: Node, inputs: tuple[Value | None, ...]) -> Any:
                held: dict[str, Any] = {
                    "op_type": node.op_type,
                    "inputs": inputs,
                    "attributes": node.attributes,
                    "outputs": len(node.outputs),
                    **changes.get(node.op_type, {}),  # noqa: B023 - it runs at once
                }
                return self.emit(**held)

        given = proto(text)
        for node in given.graph.node:
            node.metadata_props.add(key="k", value="v")
        view = Model.from_proto(given)
        journal = len(view.journal)
        Emits()(view)
        assert ops(view) == operators, changes
        assert [node.metadata for node in view.main.nodes] == metadata, changes
        assert (len(view.journal) == journal) == (not changes), changes
        view.check_view()


def test_call_may_return_the_model_that_it_edited() -> None:
    class Returns(PassBase):
        def call(self, model: Model) -> object:
            return model

    view = model()
    assert Returns()(view) is view
