"""Passes of PopRT that are pipelines here."""

from typing import Any, Final

import onnx
import pytest

import tiered
from tests.recorded import assert_values
from tests.small import ops, parsed, proto
from tiered.compat import poprt
from tiered.compat.poprt import own_passes
from tiered.compat.poprt.own_passes import raising_ir
from tiered.pipeline import Pipeline
from tiered.support.errors import TargetError, UsageError
from tiered.testing import parse

TEXT: Final = """(float[n,4] x) => (float[n,4] y, float[n,4] z) <float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {
    a = Identity(x) p = MatMul(a, w) y = Relu(p) z = Neg(p) }"""  # noqa: E501  # one graph


def _types(model: onnx.ModelProto) -> list[list[int | str]]:
    dims = [each.type.tensor_type.shape.dim for each in (*model.graph.input, *model.graph.output)]
    return [[dim.dim_param or dim.dim_value for dim in shape] for shape in dims]


def _leaves(made: poprt.Pass) -> list[tiered.Pass]:
    pipeline = made.lifted()
    assert isinstance(pipeline, Pipeline)
    return [*pipeline.leaves()]


def test_ir_passes_are_applied_in_order() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Identity(x)  b = Relu(a)  y = Relu(b) }"
    for given in (
        ["eliminate_identity", "eliminate_idempotent"],
        "eliminate_identity,eliminate_idempotent",
    ):
        assert ops(poprt.get_pass("apply_ir_pass", passes=given)(proto(text))) == ["Relu"]


def test_hints_are_metadata() -> None:
    model = parse("(float[2,2] x) => (float[2,2] y) { a = MatMul(x, x) y = Abs(a) }")
    model.ir_version = 10
    for remap in (
        poprt.get_pass("auto_insert_remap", ["after_matmul"]),
        poprt.get_pass("AutoInsertRemap", remap_mode=["after_matmul"]),
    ):
        (entry,) = remap.run(model).graph.node[0].metadata_props
        assert (entry.key, entry.value) == ("tiered.remap", "outputs")
    made = poprt.get_pass("OverlapIO").run(model).graph
    said = [entry.value for info in (*made.input, *made.output) for entry in info.metadata_props]
    assert said == ["host_load", "host_store"]


def test_hints_raise_the_ir_version_of_old_files() -> None:
    model = parse("(float[2,2] x) => (float[2,2] y) { a = MatMul(x, x) y = Abs(a) }")
    model.ir_version = 8
    model.graph.node[0].name = "a"
    for pass_, key in (
        (poprt.get_pass("auto_insert_remap", remap_mode="after_matmul"), "tiered.remap"),
        (poprt.get_pass("auto_insert_remap", "after_matmul"), "tiered.remap"),
        (poprt.get_pass("manual_sharding", sharding_info={"a": 1}), "tiered.device"),
    ):
        made = pass_.run(model)
        assert made.ir_version == 10
        assert [entry.key for entry in made.graph.node[0].metadata_props] == [key]
    made = poprt.PassManager(["overlap_io", "auto_insert_remap"]).run(model)
    assert [entry.value for entry in made.graph.input[0].metadata_props] == ["host_load"]
    with tiered.PassContext() as ctx:
        poprt.get_pass("overlap_io").run(model)
    assert any("IR version 8 becomes 10" in str(remark) for remark in ctx.remarks)


def test_the_batch_of_all_inputs_is_set() -> None:
    made = poprt.Converter(batch_size=3, batch_axis=0).convert(parse(TEXT))
    assert _types(made) == [[3, 4], [3, 4], [3, 4]]
    by_pass = poprt.get_pass("const_input_shape", const_input_shape={}, batch_size=5)
    assert _types(by_pass(parse(TEXT))) == [[5, 4], [5, 4], [5, 4]]
    with pytest.raises(UsageError, match="batch_axis needs batch_size"):
        poprt.get_pass("const_input_shape", {}, batch_axis=1)


def test_what_is_not_there_is_an_error() -> None:
    with pytest.raises(UsageError, match="no output 'zz'; did you mean 'z'"):
        poprt.get_pass("remove_outputs", outputs=["zz"]).run(parse(TEXT))
    with pytest.raises(UsageError, match="takes a list of names, not the string 'z'"):
        poprt.get_pass("remove_outputs", "z")
    with pytest.raises(TargetError, match="is named 'n9'"):
        poprt.Converter(serialize_matmul={"n9": "2/output_channels"}).convert(parse(TEXT))


@pytest.mark.parametrize(
    "given",
    ["eliminate_identity, eliminate_deadend", ["eliminate_identity ", " eliminate_deadend"]],
)
def test_spaces_around_the_names_of_ir_passes_are_no_part_of_them(given: Any) -> None:
    made = poprt.get_pass("ApplyIRPasses", given).lifted()
    assert str(made) == "apply_ir_pass(eliminate_identity,eliminate_deadend)"


def test_no_ir_passes_change_nothing() -> None:
    assert poprt.get_pass("apply_ir_pass").run(parse(TEXT)) == parse(TEXT)


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (0, [[3], [3, "m"], []]),
        (1, [["n"], ["p", 3], []]),
        (-1, [[3], ["p", 3], []]),
        (-2, [["n"], [3, "m"], []]),
        (None, [[3], [3, "m"], []]),
    ],
)
def test_one_axis_of_each_input_that_has_it_is_set(axis: int | None, expected: list[Any]) -> None:
    text = """(float[n] a, float[p,m] b, float c) => (float[n] y, float[p,m] z)
        { y = Add(a, c) z = Neg(b) }"""
    made = poprt.get_pass("const_input_shape", None, 3, axis).run(parse(text))
    assert _types(made)[:3] == expected


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_no_input_has_is_an_error(axis: int) -> None:
    with pytest.raises(UsageError, match=f"const_input_shape: no input has an axis {axis}"):
        poprt.get_pass("const_input_shape", batch_size=3, batch_axis=axis).run(parse(TEXT))


def test_the_batch_of_a_default_stays() -> None:
    text = "(float[n] x, float[k] w) => (float[n] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
    made = poprt.get_pass("const_input_shape", batch_size=2).run(parse(text))
    assert _types(made)[:2] == [[2], ["k"]]


def test_an_input_of_an_unknown_rank_keeps_it() -> None:
    given = parse("(float[n] x, float[m] z) => (float[n] y) { y = Add(x, z) }")
    given.graph.input[1].type.tensor_type.ClearField("shape")
    made = poprt.get_pass("const_input_shape", batch_size=2).run(given)
    assert _types(made)[:2] == [[2], []]
    assert not made.graph.input[1].type.tensor_type.HasField("shape")


def test_shapes_by_name_and_one_axis_of_all_go_together() -> None:
    text = "(float[n,m] a, float[n,m] b) => (float[n,m] y) { y = Add(a, b) }"
    pass_ = poprt.get_pass("ConstInputShape", {"a": [-1, 5]}, batch_size=2)
    assert _types(pass_.run(parse(text)))[0] == [2, 5]
    assert [each.name for each in _leaves(pass_)] == [
        "const_input_shape",
        "const_batch_axis",
    ]
    alone = poprt.get_pass("const_input_shape", batch_size=2)
    assert [each.name for each in _leaves(alone)] == ["const_batch_axis"]


def test_an_output_goes_with_what_only_it_needs() -> None:
    made = poprt.get_pass("RemoveOutputs", ["z", "z"]).run(parse(TEXT))
    assert (ops(made), [each.name for each in made.graph.output]) == (
        ["Identity", "MatMul", "Relu"],
        ["y"],
    )


def test_no_output_goes_if_one_is_unknown() -> None:
    model = tiered.Model.from_proto(parse(TEXT))
    with pytest.raises(UsageError, match="remove_outputs: the model has no output 'u'"):
        poprt.get_pass("remove_outputs", ["z", "u"])(model)
    assert [value.name for value in model.main.outputs] == ["y", "z"]


@pytest.mark.parametrize(("version", "after"), [(9, 10), (10, 10), (11, 11)])
def test_the_ir_version_is_raised_to_one_with_metadata_of_nodes(version: int, after: int) -> None:
    model = parse(TEXT)
    model.ir_version = version
    pass_ = raising_ir(tiered.get_pass("eliminate_identity"))
    with tiered.PassContext() as ctx:
        assert pass_(model).ir_version == after
    said = [str(each) for each in ctx.remarks if "IR version" in str(each)]
    assert pass_.name == "eliminate_identity"
    assert len(said) == (version < after)
    assert all(
        "IR version 9 becomes 10: eliminate_identity writes metadata" in each for each in said
    )


def run_on(pass_: Any, text: str, inputs: str = "float[n,2] x, float[m] z", **options: Any) -> Any:
    """Return the inputs, the outputs and the operators after a pass."""
    model = parsed(f"({inputs}) => (y, u) {options.get('weights', '')} {{ {text} }}")
    if "ir" in options:
        model.set_ir_version(options["ir"])
    pass_.apply(model)
    main = model.main
    shapes = [
        (value.name, None if value.shape is None else [*map(str, value.shape)])
        for value in main.inputs
    ]
    names = [value.name for value in main.outputs]
    return shapes, names, [node.op_type for node in main.nodes], model.ir_version


def test_own_passes_are_recorded() -> None:
    names = {
        "run_on": run_on,
        "own": own_passes,
        "made": {name: str(make()) for name, make in own_passes.OWN_PASSES.items()},
        "identity": tiered.get_pass("eliminate_identity"),
        "TEXT": "a = Identity(x) y = Neg(a) b = Identity(z) u = Abs(b)",
    }
    assert_values(__file__, names)
