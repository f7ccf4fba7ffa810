"""Passes of functions and classes with TVM's signatures."""

from functools import partial
from typing import Any

import onnx
import pytest

import tiered
from tests.recorded import assert_values
from tests.small import content, model, parsed, proto
from tiered import Graph, Model, PassContext
from tiered.compat import tvm
from tiered.compat.tvm.function_passes import function_pass, module_pass
from tiered.support.errors import (
    UsageError,
)
from tiered.testing import parse


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


def test_a_class_without_its_method_is_refused() -> None:
    class Empty:
        pass

    with pytest.raises(UsageError, match="Empty: the class of a pass must have a method"):
        tvm.module_pass(Empty, opt_level=1)
    with pytest.raises(UsageError, match="must have a method transform_function"):
        tvm.function_pass(opt_level=1)(Empty)


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
    with pytest.raises(UsageError, match="has 1 input, and the returned one 2"):
        returned(other("g (float[2] x, float[2] z) => (float[2] y) { y = Neg(x) }"))(model(text))
    with pytest.raises(UsageError, match="has 1 output, and the returned one 2"):
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


def test_a_level_is_needed() -> None:
    for make in (module_pass, function_pass):
        with pytest.raises(UsageError, match="opt_level is missing: expected the lowest level"):
            make(lambda *_: None)


@pytest.mark.parametrize(("name", "expected"), [(None, "named"), ("other", "other")])
def test_a_pass_has_the_name_of_its_function(name: str | None, expected: str) -> None:
    def named(mod: Model, ctx: PassContext) -> None:
        """Say what it does."""

    made = module_pass(named, opt_level=2, name=name, required=["fold_constant"])
    assert (made.name, made.info.opt_level, made.info.required) == (expected, 2, ("fold_constant",))


def test_what_has_no_name_is_a_function() -> None:
    def change(extra: int, mod: Model, ctx: PassContext) -> None:
        """Change nothing."""

    assert module_pass(lambda mod, ctx: None, opt_level=0).name == "function"
    assert module_pass(partial(change, 3), opt_level=0).name == "function"


def test_a_function_pass_sees_each_graph_with_its_model() -> None:
    text = """g (bool c, float[2] x) => (float[2] y) { y = If(c)
        <then_branch = t () => (float[2] p) { p = Neg(x) },
         else_branch = e () => (float[2] q) { q = Abs(x) }> }"""
    seen: list[tuple[str, bool]] = []

    def look_at(func: Graph, mod: Model, ctx: PassContext) -> Graph:
        seen.append((func.name, func.model is mod))
        return func

    given = model(text)
    before = content(given)
    function_pass(look_at, opt_level=0)(given)
    assert sorted(seen) == [("e", True), ("g", True), ("t", True)]
    assert content(given) == before


def test_a_class_makes_passes_with_its_arguments() -> None:
    class Renames:
        """Rename the first node."""

        def __init__(self, to: str = "new") -> None:
            self.to = to

        def transform_module(self, mod: Model, ctx: PassContext) -> None:
            mod.main.rename_node(mod.main.nodes[0], self.to)

    construct = module_pass(opt_level=0)(Renames)
    assert construct.__doc__ == "Rename the first node."
    for made, name in ((construct(), "new"), (construct("a"), "a"), (construct(to="b"), "b")):
        assert made(model()).main.nodes[0].name == name
        assert made.name == "Renames"


def test_passes_with_tvms_signatures_are_recorded() -> None:
    class Sine:
        """Another operator."""

        def __init__(self, op_type: str = "Sin") -> None:
            self.op_type = op_type

        def transform_function(self, func: Graph, mod: Model, ctx: Any) -> Graph:
            made = getattr(func.op, self.op_type)(func.nodes[0].inputs[0])
            func.replace(func.nodes[0], [made])
            return func

        def transform_module(self, mod: Model, ctx: Any) -> Model:
            self.transform_function(mod.main, mod, ctx)
            return mod

    class Other(Sine):
        transform_module = transform_function = None  # type: ignore[assignment]  # not callable

    def after(made: Any, text: str = "(float[2] x) => (float[2] y) { y = Neg(x) }") -> object:
        return [node.op_type for node in made(parsed(text)).main.nodes]

    def info(made: Any) -> object:
        return made.info.name, made.info.opt_level, made.info.required, made.info.kind

    def other(*_: Any) -> Graph:
        return parsed("(float[2] p) => (float[2] q) { a = Cos(p) q = Exp(a) }").main

    names = {
        "function_pass": function_pass, "module_pass": module_pass, "Sine": Sine, "Other": Other,
        "after": after, "info": info, "other": other, "partial": partial,
        "called": partial(Sine().transform_function),
        "IF": "(float[2] x, bool c) => (float[2] y) { a = Neg(x) y = If (c) <then_branch = t () => "
        "(float[2] u) { u = Exp(a) }, else_branch = e () => (float[2] v) { v = Abs(a) }> }",
    }  # fmt: skip
    assert_values(__file__, names)
