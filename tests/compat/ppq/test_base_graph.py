"""BaseGraph: a graph by PPQ's names."""

from collections.abc import Callable
from copy import copy as copy_of, deepcopy

import numpy as np
import pytest
from onnx.parser import parse_model

from tests.compat.ppq.small_graphs import SPLIT, graph, model_of, quantized, state
from tests.recorded import assert_values
from tests.small import model
from tiered import Model, UsageError
from tiered.compat.ppq import (
    BaseGraph,
    DataType,
    Operation,
    QuantableOperation,
    QuantizationStates,
    TorchExecutor,
    Variable,
)
from tiered.support.errors import ModelError


def test_free_operations_and_variables_enter_a_graph() -> None:
    ppq = graph()
    scale = Variable("scale", np.array([2, 2, 2], np.float32))
    out, mul = Variable("scaled"), Operation("scale_it", "Mul", {})
    for variable in (scale, out):
        ppq.append_variable(variable)
    ppq.append_operation(mul)
    assert ppq.operations["scale_it"] == mul
    ppq.create_link_with_op(None, mul, ppq.variables["x"])
    ppq.create_link_with_op(None, mul, scale)
    ppq.create_link_with_op(mul, None, out)
    ppq.outputs["scaled"] = out
    assert list(ppq.outputs) == ["y", "scaled"]
    assert isinstance(ppq.graph.model, Model)
    ppq.graph.model.check_view()
    with pytest.raises(ModelError, match="needs a type"):
        Operation("nameless")


def test_inputs_and_outputs_are_edited_through_their_tables() -> None:
    ppq = graph()
    ppq.outputs["a"] = ppq.variables["a"]
    assert [value.name for value in ppq.graph.outputs] == ["y", "a"]
    del ppq.outputs["y"]
    assert (list(ppq.outputs), len(ppq.outputs)) == (["a"], 1)
    fed = ppq.create_variable("fed")
    fed.dtype, fed.shape = DataType.FLOAT, (2,)
    ppq.inputs["fed"] = fed
    assert (list(ppq.inputs), len(ppq.inputs)) == (["x", "fed"], 2)
    del ppq.inputs["fed"]
    assert list(ppq.inputs) == ["x"]
    with pytest.raises(ModelError, match="the variable is called 'b', not 'p'; rename it first"):
        ppq.outputs["p"] = ppq.variables["b"]
    with pytest.raises(KeyError):
        del ppq.outputs["none"]


def test_the_table_of_operations_follows_the_edits() -> None:
    ppq = graph()
    operations = ppq.operations
    assert (len(operations), next(iter(operations))) == (4, "node_a")
    ppq.create_operation("Neg", "more")
    assert operations["more"].type == "Neg"
    with pytest.raises(KeyError):
        operations["none"]


def test_no_operation_of_a_taken_name_is_lost() -> None:
    ppq = graph()
    with pytest.raises(ModelError, match="another node of its graph has the name"):
        ppq.operations["node_a"].name = "node_b"
    assert len(ppq.operations) == 4
    text = "g (float[2] x) => (float[2] y) { b = Relu(x) a = Neg(b) y = Abs(a) }"
    proto = parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    proto.graph.node[1].name = "b"
    read = BaseGraph(Model.from_proto(proto).main).operations
    assert [(name, each.type) for name, each in read.items()] == [
        ("b#2", "Relu"), ("b", "Neg"), ("y", "Abs"),
    ]  # fmt: skip
    for node in proto.graph.node:
        node.name = "b"
    assert list(BaseGraph(Model.from_proto(proto).main).operations) == ["b", "b#2", "b#3"]


def test_variables_are_a_view_of_the_graph() -> None:
    ppq = graph()
    variables = ppq.variables
    assert set(variables) == {"x", "w", "a", "b", "c", "y"}
    ppq.create_variable("more", np.ones(2, np.float32), is_parameter=True)
    assert variables["more"].is_parameter
    for name in variables:
        if name == "more":
            ppq.remove_variable(variables[name])
    assert "more" not in variables


def test_operations_of_another_graph_are_refused() -> None:
    foreign = graph().operations["node_b"]
    for ask in (graph().get_upstream_operations, graph().get_downstream_operations):
        with pytest.raises(ModelError, match="operation 'node_b' is not in graph 'g'"):
            ask(foreign)


def test_what_is_no_operation_or_variable_is_named() -> None:
    on, _, made = quantized()
    add = on.operations["node_b"]
    with pytest.raises(UsageError, match=r"is None; expected Operation: graph[.]operations"):
        on.remove_operation(None)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(UsageError, match="removing_op is 'node_a'; expected Operation"):
        on.remove_operation("node_a")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(UsageError, match=r"is 'w'; expected Variable: graph[.]variables"):
        on.remove_variable("w")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ModelError, match="'node_b' has 2 inputs, so no input 5"):
        add.set_input(5, on.variables["x"])
    with pytest.raises(UsageError, match="config is 3; expected OperationQuantizationConfig"):
        made.config = 3  # type: ignore[assignment]  # on purpose


def test_an_operation_is_removed_first_and_linked_later() -> None:
    """The usual edit of PPQ: remove, create, link to the variable that stayed."""
    on = graph()
    before = model_of(on).to_proto()
    mark = model_of(on).mark()
    neg = on.operations["node_c"]
    (read,), (written,) = neg.inputs, neg.outputs
    assert read is not None
    assert written is not None
    on.remove_operation(neg)
    assert [operation.type for operation in on.topological_sort()] == ["Relu", "Add", "Abs"]
    assert list(on.operations) == ["node_a", "node_b", "node_y"]
    assert (written.source_op, written.src_idx) == (None, None)
    assert on.get_upstream_operations(on.operations["node_y"]) == []
    assert [operation.name for operation in written.dest_ops] == ["node_y"]
    made = on.create_operation("Exp", "made")
    on.create_link_with_op(None, made, read)
    on.create_link_with_op(made, None, written)
    assert [operation.type for operation in on.topological_sort()] == ["Relu", "Add", "Exp", "Abs"]
    assert (list(made.inputs), list(made.outputs)) == ([read], [written])
    model_of(on).check_view()
    (y,) = TorchExecutor(on).forward(np.zeros((2, 3), np.float32))
    np.testing.assert_allclose(y, np.exp([[1, 2, 3]] * 2), rtol=1e-6)
    model_of(on).undo_to(mark)
    assert model_of(on).to_proto() == before


def test_a_free_variable_is_linked_at_once() -> None:
    on = graph()
    relu = on.operations["node_a"]
    made = on.create_operation("Neg", "made")
    fresh = Variable("fresh")
    split = on.create_operation("Split", "split", {"axis": 0}, [on.variables["x"]])
    on.create_link_with_op(split, made, fresh)
    assert (fresh.source_op, list(made.inputs)) == (split, [fresh])
    assert on.variables["fresh"] == fresh
    with pytest.raises(ModelError, match="has a source already: 'made' cannot be it"):
        on.create_link_with_op(made, None, on.variables["a"])
    assert relu.num_of_output == 1


@pytest.mark.parametrize("name", ["a", "x", "w", "y"])
def test_an_operation_is_inserted_on_a_variable(name: str) -> None:
    on = graph()
    is_made = on.variables[name].source_op is not None
    readers = [each.name for each in on.variables[name].dest_ops]
    new = on.create_operation("Sin", "new")
    on.insert_op_on_var(new, name)
    model_of(on).check_view()
    assert on.variables[name] in (new.outputs if is_made else new.inputs)
    read, written = new.inputs[0], new.outputs[0]
    assert read is not None
    assert written is not None
    assert [each.name for each in written.dest_ops] == readers
    assert [each.name for each in read.dest_ops] == ["new"]
    assert list(on.outputs) == ["y"]


def test_what_cannot_be_inserted_on_a_variable() -> None:
    on = graph()
    with pytest.raises(ModelError, match="no variable 'nowhere'"):
        on.insert_op_on_var(on.create_operation("Sin"), "nowhere")
    for name in ("a", "x"):
        with pytest.raises(ModelError, match=r"without inputs and outputs|has operands already"):
            on.insert_op_on_var(next(iter(on.operations.values())), name)


def test_an_input_that_is_an_output_keeps_its_name() -> None:
    on = graph("g (float[2] x) => (float[2] x, float[2] y) { y = Relu(x) }")
    with pytest.raises(ModelError, match="'x' is an input and an output: only one keeps the name"):
        on.insert_op_on_var(on.create_operation("Sin"), "x")


def test_an_operation_is_inserted_between_two() -> None:
    on = graph("""g (float[2] x) => (float[2] y, float[2] z) {
        [top] a = Relu(x)  [left] y = Neg(a)  [right] z = Abs(a) }""")
    new = on.create_operation("Sin", "new")
    on.insert_op_between_ops(new, on.operations["top"], on.operations["left"])
    model_of(on).check_view()
    assert [up.name for up in on.get_upstream_operations(on.operations["left"])] == ["new"]
    assert [up.name for up in on.get_upstream_operations(on.operations["right"])] == ["top"]
    with pytest.raises(ModelError, match="'right' reads 0 variables of 'left', not one"):
        on.insert_op_between_ops(
            on.create_operation("Sin"), on.operations["left"], on.operations["right"]
        )


def test_a_copy_has_the_configs_and_the_notes() -> None:
    on, _, made = quantized()
    on.operations["node_a"].extension_attrib["note"] = 3
    made.store_parameter_value().baking_parameters()
    made.output_quant_config[0].dominated_by = made.input_quant_config[0]
    copy = on.copy(copy_value=True)
    twin = copy.operations["node_b"]
    assert isinstance(twin, QuantableOperation)
    assert copy.operations["node_a"].extension_attrib == {"note": 3}
    assert [each.state for each in twin.config] == [each.state for each in made.config]
    assert twin.output_quant_config[0].dominated_by is twin.input_quant_config[0]
    twin.dequantize()
    assert made.input_quant_config[1].state is QuantizationStates.BAKED
    w = copy.variables["w"].value
    assert w is not None
    assert w.tolist() == [1, 2, 3]


def test_a_restored_snapshot_has_the_states_before_baking() -> None:
    on, _, made = quantized()
    snapshot = on.graph.model.snapshot()
    made.baking_parameters()
    baked = on.variables["w"].value
    states = [made.input_quant_config[1].state]
    snapshot.restore()
    states.append(made.input_quant_config[1].state)
    made.baking_parameters()
    states.append(made.input_quant_config[1].state)
    assert [state.name for state in states] == ["BAKED", "ACTIVATED", "BAKED"]
    np.testing.assert_array_equal(on.variables["w"].value, baked)


def test_an_operation_of_no_type_enters_no_graph() -> None:
    on = graph()
    with pytest.raises(
        ModelError, match="'n' cannot be of the type 'Nop': there is no such operat"
    ):
        on.append_operation(Operation("n", "Nop"))
    with pytest.raises(ModelError, match=r"'Rleu' cannot be of the type 'Rleu': .*mean 'Relu'"):
        on.create_operation("Rleu")
    with pytest.raises(ModelError, match="'mine' cannot be of the type 'Rleu'"):
        on.create_operation("Rleu", "mine")
    assert len(on.operations) == 4


def test_an_operation_of_the_graph_is_appended_once() -> None:
    on = graph()
    with pytest.raises(ModelError):
        on.append_operation(on.operations["node_a"])
    foreign = graph().operations["node_b"]
    with pytest.raises(ModelError):
        on.append_operation(foreign)


def test_an_appended_operation_keeps_attributes_and_platform() -> None:
    on = graph()
    made = Operation("soft", "Softmax", {"axis": 1}, "DSP")
    on.append_operation(made)
    assert on.operations["soft"] == made
    assert (made.attributes["axis"], made.platform) == (1, "DSP")


def test_parameters_are_constants_of_the_graph() -> None:
    text = """g (float[3] x, float[3] d) => (float[3] y)
        <float[3] w = {1,2,3}, float[3] d = {4,5,6}> { a = Add(x, w)  y = Mul(a, d) }"""
    on = graph(text)
    assert [each.name for each in on.parameters()] == ["w"]
    assert list(on.inputs) == ["x"]
    assert (list(on.variable), on.variable["w"]) == (list(on.variables), on.variables["w"])


def test_a_variable_that_is_in_the_graph_is_not_appended_twice() -> None:
    on = graph()
    for name in ("a", "w", "x"):
        with pytest.raises(ModelError):
            on.append_variable(on.variables[name])
    typed = on.variables["a"].copy()
    on.append_variable(typed)
    assert typed.name not in on.variables  # it enters with the operation that computes it


def test_coherence_gives_readers_the_input() -> None:
    on = graph()
    on.remove_operation(on.operations["node_c"], keep_coherence=True)
    last = on.operations["node_y"]
    assert [each.name for each in on.get_upstream_operations(last)] == ["node_b"]
    foreign = graph().operations["node_c"]
    with pytest.raises(ModelError, match="operation 'node_c' is not in graph 'g'"):
        on.remove_operation(foreign)


def test_operations_are_inserted_before_and_after() -> None:
    on = graph()
    first, second = on.create_operation("Sin", "first"), on.create_operation("Cos", "second")
    on.insert_op_before(first, on.operations["node_b"])
    on.insert_op_after(second, on.operations["node_b"])
    third = on.create_operation("Exp", "third")
    on.insert_op_before(third, on.operations["node_b"], 1)
    types = [each.type for each in on.topological_sort()]
    assert [each for each in types if each != "Exp"] == ["Relu", "Sin", "Add", "Cos", "Neg", "Abs"]
    assert [each.name for each in on.get_upstream_operations(on.operations["node_b"])] == [
        "first",
        "third",
    ]
    assert [each.name for each in on.get_downstream_operations(on.operations["node_b"])] == [
        "second"
    ]
    model_of(on).check_view()


def test_an_operation_is_inserted_between_a_variable_and_its_reader() -> None:
    on = graph("g (float[2] x) => (float[2] y) { y = Mul(x, x) }")
    mul, new = on.operations["node_y"], on.create_operation("Neg", "new")
    with pytest.raises(ModelError, match="'node_y' reads variable 'x' 2 times, not once"):
        on.insert_op_between_var_and_op(new, on.variables["x"], mul)
    with pytest.raises(ModelError, match="'node_y' reads variable 'y' 0 times, not once"):
        on.insert_op_between_var_and_op(new, on.variables["y"], mul)
    with pytest.raises(ModelError, match="is not in graph"):
        on.insert_op_between_var_and_op(new, on.variables["x"], graph().operations["node_y"])
    with pytest.raises(ModelError, match="is not in graph"):
        on.insert_op_between_var_and_op(graph().operations["node_y"], on.variables["x"], mul)


def test_an_operation_reads_another_once_to_have_one_between() -> None:
    on = graph("g (float[2] x) => (float[2] y) { a = Neg(x)  y = Mul(a, a) }")
    with pytest.raises(ModelError, match="'node_y' reads 2 variables of 'node_a', not one"):
        on.insert_op_between_ops(on.create_operation("Sin"), *on.topological_sort()[:2])
    foreign, (first, last) = graph().operations["node_a"], on.topological_sort()[:2]
    for three in ((foreign, first, last), (on.create_operation("Sin"), foreign, last)):
        with pytest.raises(ModelError, match="is not in graph"):
            on.insert_op_between_ops(*three)


def test_what_nothing_uses_gets_no_operation() -> None:
    on = graph()
    on.create_variable("lone", np.ones(2, np.float32))
    with pytest.raises(ModelError, match="nothing uses variable 'lone', so no operation is insert"):
        on.insert_op_on_var(on.create_operation("Sin"), "lone")
    foreign = graph().operations["node_a"]
    with pytest.raises(ModelError, match="is not in graph"):
        on.insert_op_on_var(foreign, "x")


def test_variables_become_inputs_and_outputs_of_the_graph() -> None:
    on = graph()
    on.mark_variable_as_graph_output(on.variables["b"])
    assert list(on.outputs) == ["y", "b"]
    fed = on.create_variable("fed")
    fed.dtype, fed.shape = DataType.FLOAT, (2,)
    on.mark_variable_as_graph_input(fed)
    assert list(on.inputs) == ["x", "fed"]


def test_a_link_by_variables_makes_one_of_both() -> None:
    on = graph()
    a, c = on.variables["a"], on.variables["c"]
    with pytest.raises(ModelError, match="is computed by node 'node_c'"):
        on.create_link_with_var(a, c)
    c.source_op = None
    on.create_link_with_var(a, c)
    assert [each and each.name for each in on.operations["node_y"].inputs] == ["a"]
    assert all(not node.domain for node in on.graph.nodes)
    model_of(on).check_view()
    on.variables["y"].source_op = None
    on.create_link_with_var(a, on.variables["y"])
    assert list(on.outputs) == ["y"]
    assert [each.type for each in on.topological_sort()][:1] == ["Relu"]
    model_of(on).check_view()


def test_a_new_variable_has_its_source_and_readers() -> None:
    on = graph()
    split = on.create_operation("Split", "split", {"axis": 0}, [on.variables["x"]])
    neg = on.create_operation("Neg", "neg")
    made = on.create_variable("half", dest_ops=[neg], source_op=split)
    assert (made.source_op, [each.name for each in made.dest_ops]) == (split, ["neg"])


def test_copies_are_shallow_or_deep() -> None:
    on = graph()
    for copy in (on.copy(), copy_of(on), deepcopy(on)):
        assert copy.graph.model is not on.graph.model
        assert list(copy.operations) == list(on.operations)
        copy.remove_operation(copy.operations["node_y"])
    assert len(on.operations) == 4
    assert on == BaseGraph(on.graph)
    assert hash(on) == hash(BaseGraph(on.graph))


def test_the_graph_of_a_body_is_copied_with_its_model() -> None:
    inner = model("""g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) { p = Neg(x) },
                   else_branch = e () => (float[2] q) { q = Abs(x) }> }""")
    body = next(each for each in inner.graphs() if each.name == "e")
    copy = BaseGraph(body).copy()
    assert (copy.graph.name, [each.type for each in copy.topological_sort()]) == ("e", ["Abs"])
    assert copy.graph is not body


def edited(edit: Callable[[BaseGraph], object], text: str = SPLIT) -> list[str]:
    """Return the state of a graph after an edit."""
    of = graph(text)
    edit(of)
    return state(of)


def with_new(edit: Callable[[BaseGraph, Operation], object]) -> list[str]:
    """Return the state after an edit with a new operation without operands."""
    return edited(lambda g: edit(g, g.create_operation("Abs", "new")))


def test_edits_of_a_graph_are_recorded() -> None:
    names = {
        "g": graph(SPLIT),
        "state": state,
        "edited": edited,
        "with_new": with_new,
        "Operation": Operation,
        "Variable": Variable,
        "np": np,
        "other": graph(),
        "CLIP": "g (float[2] x, float k) => (float[2] y) { a = Neg(x) y = Clip(a, , k) }",
    }
    assert_values(__file__, names)
