"""The names of onnx-passes: its kinds of passes, register, collect, verify."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import pytest

import tiered
from tests.small import content, fuse_relu, model, ops, proto, registered
from tiered import Model
from tiered.compat.onnx_passes import (
    Analysis,
    Annotation,
    ComposePass,
    RewriteRulePass,
    RewriteRuleSetPass,
    Transformation,
    collect,
    pass_of,
    register,
    verify,
)
from tiered.compat.onnx_passes.groups import GROUPS
from tiered.passes.interface.registry import registry
from tiered.support.errors import (
    PassError,
    PassNotFoundError,
    PostconditionError,
    PreconditionError,
    UsageError,
    VerificationError,
)
from tiered.verify import Verify


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    for name in GROUPS:
        registry.unregister(name)
    GROUPS.clear()


class DropNeg(RewriteRulePass):
    def pattern(self, op: Any, x: Any) -> Any:
        return op.Abs(op.Neg(x))

    def rewrite(self, op: Any, x: Any) -> Any:
        return op.Abs(x)


class BreakAdds(RewriteRulePass):
    def pattern(self, op: Any, x: Any, y: Any) -> Any:
        return op.Add(x, y)

    def check(self, op: Any, x: Any, y: Any) -> bool:
        return x is not y

    def rewrite(self, op: Any, x: Any) -> Any:
        return op.Add(x, x)


def test_a_rule_is_a_pattern_a_check_and_a_rewrite() -> None:
    assert ops(DropNeg()(model())) == ["Relu", "Relu", "Abs"]
    text = "g (float[2] x, float[2] z) => (float[2] y) { a = Add(x, z)  y = Add(a, a) }"
    given = model(text)
    with tiered.PassContext() as ctx:
        pass_of(BreakAdds)(given)
    first = given.main.topological_order()[0]
    assert first.inputs == (given.main.inputs[0],) * 2
    assert "the check returned False" in str(ctx.remarks)


def test_what_a_kind_of_pass_is_made_of_must_be_there() -> None:
    class Half(RewriteRulePass):
        def rewrite(self, op: Any, x: Any) -> Any:
            return x

    class Whole(RewriteRuleSetPass):
        def pattern(self) -> Sequence[Any]:
            return [lambda op, x: op.Neg(x)]

    class Empty(Transformation):
        pass

    for kind, method in ((Half, "pattern(op, *variables)"), (Whole, "rewrite()")):
        lacking = re.escape(f"{kind.__name__} has no {method}")
        with pytest.raises(NotImplementedError, match=lacking):
            pass_of(kind)
    with pytest.raises(PassError, match=re.escape("Empty has no call(model)")):
        Empty()(model())


def test_a_set_of_rules_runs_each() -> None:
    class Both(RewriteRuleSetPass):
        def pattern(self) -> Sequence[Any]:
            return [lambda op, x: op.Relu(op.Relu(x)), lambda op, x: op.Neg(x)]

        def rewrite(self) -> Sequence[Any]:
            return [lambda op, x: op.Relu(x), lambda op, x: x]

    assert ops(Both()(model())) == ["Relu", "Abs"]
    assert [leaf.name for leaf in pass_of(Both).leaves()] == ["Both.1", "Both.2"]  # type: ignore[attr-defined]  # a pipeline


def test_conditions_are_checked_around_it() -> None:
    class Needs(Transformation):
        def requires(self, model: Model) -> None:
            if not model.main.nodes_of("Conv"):
                raise ValueError("no Conv")

        def call(self, model: Model) -> None:
            pytest.fail("it does not run")

    class Ensures(Transformation):
        def call(self, model: Model) -> None:
            model.main.rename_node(model.main.nodes[0], "other")

        def ensures(self, model: Model) -> bool:
            return False

    with pytest.raises(PreconditionError, match=r"Needs\.requires of"):
        Needs()(model())
    given = model()
    before = content(given)
    with pytest.raises(PostconditionError):
        Ensures()(given)
    assert content(given) == before


def test_a_transformation_removes_what_it_leaves_dead() -> None:
    class Bypass(Transformation):
        def call(self, model: Model) -> object:
            graph = model.main
            graph.set_input(graph.nodes[3], 0, graph.nodes[0].output)
            return object()

    assert ops(Bypass()(model())) == ["Relu", "Abs"]


def test_annotations_and_analyses_are_held_to_what_they_are() -> None:
    class Renames(Annotation):
        def call(self, model: Model) -> None:
            model.main.rename_node(model.main.nodes[0], "other")

    class Breaks(Annotation):
        def call(self, model: Model) -> None:
            model.main.set_input(model.main.nodes[3], 0, model.main.nodes[0].output)

    class Edits(Analysis):
        def call(self, model: Model) -> None:
            model.main.rename_node(model.main.nodes[0], "other")

    assert Renames()(model()).main.nodes[0].name == "other"
    with pytest.raises(PassError, match="Breaks is an annotation"):
        Breaks()(model())
    with pytest.raises(PassError, match="Edits is an analysis"):
        Edits()(model())


def test_names_and_groups_are_collected() -> None:
    for group in ("cleanup", None):
        register(group)(DropNeg)
    register("cleanup")(BreakAdds)
    assert [pass_.name for pass_ in collect(["cleanup"])] == ["DropNeg", "BreakAdds"]
    assert [pass_.name for pass_ in collect(["DropNeg", DropNeg, fuse_relu])] == [
        "DropNeg",
        "DropNeg",
        "fuse_relu",
    ]
    assert [pass_.name for pass_ in collect(["eliminate_identity"])] == ["eliminate_identity"]
    with pytest.raises(UsageError, match="no pass named"):
        collect(["nothing"])


@pytest.mark.parametrize("exhaustive", [False, True])
def test_a_composition_runs_its_passes_once_or_until_nothing_changes(exhaustive: bool) -> None:
    class Whole(ComposePass):
        __passes__ = ("fuse_relu", DropNeg)
        __exhaustive__ = exhaustive

    with registered(fuse_relu):
        assert ops(Whole()(model())) == ["Relu", "Abs"]
        assert isinstance(pass_of(Whole), tiered.Fixpoint) is exhaustive


def test_verification_is_a_promise() -> None:
    promised = {"equality": "exact", "tolerance": "reassociating", "metric": "approximate"}
    for name, numerics in promised.items():
        decorated = getattr(verify, name)(type("Own", (DropNeg,), {}))
        assert pass_of(decorated).info.numerics == numerics


ADD = "g (float[2] x, float[2] z) => (float[2] y) { a = Add(x, z)  y = Neg(a) }"


def mixed(first: type, second: type) -> type:
    """Return the demonstration of onnx-passes: Add(x, y) => Add(x, x), which is wrong."""

    @verify.equality
    @register()
    class BreakAdds(first, second):  # type: ignore[misc]  # the bases are arguments
        def pattern(self, op: Any, x: Any, y: Any) -> Any:
            return op.Add(x, y)

        def check(self, op: Any, x: Any, y: Any) -> bool:
            return x is not y

        def rewrite(self, op: Any, x: Any, y: Any) -> Any:
            return op.Add(x, x)

    return BreakAdds


@pytest.mark.parametrize(
    "bases", [(Transformation, RewriteRulePass), (RewriteRulePass, Transformation)]
)
def test_a_rule_may_be_a_transformation_too(bases: tuple[type, type]) -> None:
    broken = mixed(*bases)
    made = broken()(model(ADD))
    assert made.main.nodes_of("Add")[0].inputs == (made.main.inputs[0],) * 2
    before = model(ADD)
    with (
        pytest.raises(VerificationError, match="BreakAdds changed output"),
        tiered.PassContext(instruments=[Verify()]),
    ):
        tiered.Sequential(["BreakAdds"])(before)
    assert content(before) == content(model(ADD))


@pytest.mark.parametrize("first", [True, False])
def test_a_set_and_a_composition_may_be_transformations_too(first: bool) -> None:
    def bases(kind: type) -> tuple[type, ...]:
        return (Transformation, kind) if first else (kind, Transformation)

    class Rules(*bases(RewriteRuleSetPass)):  # type: ignore[misc]  # the bases are computed
        def pattern(self) -> Sequence[Any]:
            return [lambda op, x: op.Relu(op.Relu(x)), lambda op, x: op.Neg(x)]

        def rewrite(self) -> Sequence[Any]:
            return [lambda op, x: op.Relu(x), lambda op, x: x]

    class All(*bases(ComposePass)):  # type: ignore[misc]  # as above
        __passes__ = (Rules, "eliminate_identity")

    assert ops(Rules()(model())) == ops(All()(model())) == ["Relu", "Abs"]


def test_outputs_and_domains_are_named_as_in_onnxscript() -> None:
    class Split(RewriteRulePass):
        def pattern(self, op: Any, x: Any) -> Any:
            first, second = op.Split(x, _outputs=["first", "second"], num_outputs=2)
            return op.Add(first, second)

        def check(self, op: Any, x: Any, second: Any) -> bool:
            return bool(second.shape == (1,))

        def rewrite(self, op: Any, x: Any, first: Any) -> Any:
            assert first.producer.op_type == "Split"
            low, high = op.Split(x, num_outputs=2, _outputs=2)
            return op.Gelu(op.Sub(low, high), _domain="com.microsoft")

    text = """g (float[2] x) => (float[1] y) { a, b = Split<num_outputs=2>(x)  y = Add(a, b) }"""
    made = Split()(model(text))
    (gelu,) = made.main.nodes_of("Gelu", "com.microsoft")
    assert gelu.attributes == {}
    assert "com.microsoft" in made.opset_imports
    wide = text.replace("[2]", "[4]").replace("[1]", "[2]")
    assert ops(Split()(model(wide))) == ["Split", "Add"]


def test_the_anchor_may_be_an_output_with_a_name_and_other_attributes() -> None:
    class Softmaxes(RewriteRulePass):
        def pattern(self, op: Any, x: Any) -> Any:
            return op.Softmax(x, _allow_other_attributes=True, _outputs=["_out"])

        def rewrite(self, op: Any, x: Any, _out: Any) -> Any:
            axis = _out.producer.attributes["axis"]
            return op.Exp(op.LogSoftmax(x, axis=axis))

    made = Softmaxes()(model("g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis=0>(x) }"))
    assert ops(made) == ["LogSoftmax", "Exp"]
    assert made.main.nodes[0].attributes["axis"] == 0


def test_a_pattern_may_be_of_another_domain() -> None:
    class Own(RewriteRulePass):
        def pattern(self, op: Any, x: Any) -> Any:
            return op.Own(x, _domain="d")

        def rewrite(self, op: Any, x: Any) -> Any:
            return op.Relu(x)

    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2] x) => (float[2] y) { y = d.Own(x) }"""
    made = Own()(Model.from_proto(onnx.parser.parse_model(text)))
    assert ops(made) == ["Relu"]


def test_numbers_are_constants_in_patterns_and_replacements() -> None:
    class Doubles(RewriteRulePass):
        def pattern(self, op: Any, x: Any) -> Any:
            return op.Mul(x, 2.0)

        def rewrite(self, op: Any, x: Any) -> Any:
            return op.Div(x, 0.5)

    text = "g (double[2] x) => (double[2] y) <double two = {2}> { y = Mul(two, x) }"
    made = Doubles()(model(text))
    (div,) = made.main.nodes_of("Div")
    assert div.inputs[1].const == 0.5
    assert div.inputs[1].dtype == div.inputs[0].dtype
    assert ops(Doubles()(model(text.replace("{2}", "{3}")))) == ["Mul"]


def test_a_registered_class_has_its_name_everywhere() -> None:
    for group in ("tidy", "also"):
        register(group)(DropNeg)
    register("tidy")(type("Own", (Transformation,), {"call": lambda self, model: None}))
    given = proto()
    for passes in ("DropNeg", "tidy", ["also"]):
        assert ops(tiered.optimize(given, passes=passes)) == ["Relu", "Relu", "Abs"]
    assert ops(tiered.Sequential(["tidy"])(given)) == ["Relu", "Relu", "Abs"]
    assert "DropNeg" in tiered.pass_names()
    for entry in ("tidy", "DropNeg", "drop-neg"):
        with tiered.PassContext(disabled=[entry]):
            assert ops(tiered.Sequential(["DropNeg"])(given)) == ops(given)
    with pytest.raises(UsageError, match="there are two passes 'DropNeg'"):
        register()(type("DropNeg", (RewriteRulePass,), {}))
    registry.unregister("DropNeg")
    with pytest.raises(PassNotFoundError):
        tiered.Sequential(["also"])


def test_the_groups_of_onnx_passes_are_there() -> None:
    names = {
        group: [pass_.name for pass_ in collect([group])]
        for group in ("cleanup", "constant-folding", "eliminate", "verify")
    }
    assert names["cleanup"][-1] == "topological_sort"
    assert names["constant-folding"] == ["trace_folding", "fold_constant"]
    assert "eliminate_identity" in names["eliminate"]
    assert names["verify"] == ["verify_equality"]


def test_a_promise_keeps_its_metric_and_its_tolerance() -> None:
    def promise(decorate: Any) -> Any:
        return pass_of(decorate(type("Own", (DropNeg,), {}))).info.promise

    for decorate in (verify.metric("cosine", (0.99, 1.01)), verify.metric(cosine=(0.99, 1.01))):
        assert str(promise(decorate)) == "approximate (cosine in [0.99, 1.01])"
    assert "top_5_agreement in [0.9, 1]" in str(promise(verify.metric(top_5_accuracy=(0.9, 1))))
    assert "mispredictions" in str(promise(verify.metric("count_mispredictions", (0, 3))))
    own = promise(verify.metric(lambda expected, actual: 1.0, (0, 2)))
    assert own.metric.high == 2
    assert str(promise(verify.tolerance(rtol=1e-3))) == "approximate (rtol 0.001)"
    with pytest.raises(UsageError, match="takes metrics with their ranges"):
        verify.metric()
    with pytest.raises(UsageError, match="no metric 'cosin'"):
        verify.metric("cosin", (0, 1))


def test_a_rule_whose_result_matches_again_is_applied_once() -> None:
    class Swap(RewriteRulePass):
        def pattern(self, op: Any, x: Any, y: Any) -> Any:
            return op.Add(x, y)

        def rewrite(self, op: Any, x: Any, y: Any) -> Any:
            return op.Add(y, x)

    class Grow(RewriteRulePass):
        def pattern(self, op: Any, x: Any) -> Any:
            return op.Softmax(x)

        def rewrite(self, op: Any, x: Any) -> Any:
            return op.Softmax(op.Mul(x, op.Constant(value_float=1.0)))

    text = (
        "g (float[2] x, float[2] z) => (float[2] y)"
        " { a = Add(x, z) b = Add(a, x) y = Softmax(b) }"
    )
    swapped = Swap()(model(text))
    assert [[value.name for value in node.inputs] for node in swapped.main.nodes_of("Add")] == [
        ["z", "x"], ["x", "a"],
    ]  # fmt: skip
    assert ops(Grow()(model(text))) == ["Add", "Add", "Constant", "Mul", "Softmax"]


def test_values_of_a_rule_have_their_const_value() -> None:
    class DropOnes(RewriteRulePass):
        def pattern(self, op: Any, x: Any, c: Any) -> Any:
            return op.Mul(x, c)

        def check(self, op: Any, x: Any, c: Any) -> bool:
            assert x.const_value is None
            assert x != c
            assert x.name == "x"
            assert repr(x) == repr(x.value)
            return c.const_value is not None and bool((c.const_value.numpy() == 1).all())

        def rewrite(self, op: Any, x: Any, c: Any) -> Any:
            return op.Identity(x)

    text = "g (float[2] x) => (float[2] y) <float[2] c = {1, 1}> { y = Mul(x, c) }"
    assert ops(DropOnes()(model(text))) == ["Identity"]
    assert ops(DropOnes()(model(text.replace("1, 1", "1, 2")))) == ["Mul"]


def test_several_metrics_hold_together() -> None:
    @verify.metric(cosine=(0.99, 1.01), max_abs_error=(0, 0.1))
    class Cheap(Transformation):
        def call(self, model: Model) -> None:
            """Change nothing."""

    function = Cheap.numerics.metric.function  # type: ignore[union-attr]  # it is a Promise
    one = np.ones(4)
    assert [function(one, one), function(one, one * 2), function(one, -one)] == [0, 1, 2]
    assert "cosine in [0.99, 1.01] and max_abs_error in [0, 0.1]" in str(Cheap.numerics)
    with pytest.raises(UsageError, match="no metric 'cosin'"):
        verify.metric(cosin=(0, 1))
    with pytest.raises(UsageError, match="takes metrics with their ranges"):
        verify.metric("cosine")


def test_names_of_groups_and_conversions_are_pipelines() -> None:
    assert [pass_.text for pass_ in collect(["convert-opset18"])] == ["convert_opset{to=18}"]
    assert [pass_.text for pass_ in collect(["CleanupRangeAnnotation"])] == [
        "range_annotation{remove=true}"
    ]
    assert [pass_.name for pass_ in collect(["inject-ops", "absorb-layouts"])] == [
        "import_qonnx", "convert_layout",
    ]  # fmt: skip
    twice = "g (float[2] x) => (float[2] y) { a = Identity(x) y = Relu(a) }"
    assert ops(Model.from_proto(tiered.optimize(proto(twice), passes="eliminate"))) == ["Relu"]
    made = tiered.optimize(proto(twice), passes="cleanup,convert-opset20")
    assert made.opset_import[0].version == 20
    register("cleanup")(DropNeg)
    assert [pass_.name for pass_ in tiered.parse_pipeline("cleanup").leaves()] == ["DropNeg"]
