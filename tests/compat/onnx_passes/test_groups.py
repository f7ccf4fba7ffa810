"""Registered classes, and their groups."""

import pytest

import tiered
from tests.compat.onnx_passes.small_classes import BreakAdds, DropNeg
from tests.recorded import assert_values
from tests.small import fuse_relu, ops, proto
from tiered import Model
from tiered.compat.onnx_passes import (
    RewriteRulePass,
    Transformation,
    collect,
    groups,
    register,
)
from tiered.compat.onnx_passes.groups import GROUPS, Streamline
from tiered.passes.interface.registry import registry
from tiered.support.errors import (
    PassNotFoundError,
    UsageError,
)


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
    assert [pass_.name for pass_ in collect("cleanup")] == ["DropNeg", "BreakAdds"]
    with pytest.raises(UsageError, match="no pass named"):
        collect(["nothing"])


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


def test_a_group_has_its_classes_in_order_and_once() -> None:
    register("tidy")(DropNeg)
    register("tidy")(BreakAdds)
    register()(DropNeg)
    assert {"DropNeg": [DropNeg], "tidy": [DropNeg, BreakAdds], "BreakAdds": [BreakAdds]} == GROUPS
    register("DropNeg")(DropNeg)
    assert GROUPS["DropNeg"] == [DropNeg]


def test_streamlining_is_a_composition() -> None:
    (pass_,) = collect([Streamline])
    assert pass_.name == "Streamline"
    assert not isinstance(pass_, tiered.Fixpoint)
    assert collect([pass_]) == [pass_]


def test_a_pipeline_as_text_is_the_passes_of_it() -> None:
    found = collect(["eliminate_identity,fold_constant{max_growth=1%}", "strip"])
    assert [pass_.name for pass_ in found] == ["eliminate_identity", "fold_constant", "strip"]
    assert collect([]) == []


def test_a_group_has_no_name_of_a_pass() -> None:
    own = type("OwnRule", (RewriteRulePass,), {})
    for group in ("eliminate-identity", "fuse_gemm"):
        with pytest.raises(UsageError, match="there is a pass"):
            register(group)(own)
    assert "OwnRule" not in tiered.pass_names()
    assert register("own-rule")(own) is own


def test_groups_are_recorded() -> None:
    def named(passes: object) -> object:
        try:
            return [each.text for each in collect(passes)]  # type: ignore[arg-type]  # any
        finally:
            GROUPS.clear()

    def added(cls: type, *group: str) -> object:
        assert register(*group)(cls) is cls
        return {name: [each.__name__ for each in classes] for name, classes in GROUPS.items()}

    def compose(*passes: object, exhaustive: bool = False) -> object:
        made = type("Made", (groups.ComposePass,), {"__passes__": passes,
                    "__exhaustive__": exhaustive})  # fmt: skip
        return str(groups.pass_of(made)), groups.pass_of(made).name

    names = {"named": named, "added": added, "compose": compose, "DropNeg": DropNeg,
             "BreakAdds": BreakAdds, "fuse_relu": fuse_relu, "Streamline": Streamline,
             "Other": type("DropNeg", (RewriteRulePass,), {})}  # fmt: skip
    assert_values(__file__, names)
