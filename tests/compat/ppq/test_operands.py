"""Operands, results and readers as lists, as PPQ's passes edit them; names of its documents."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.compat.ppq.small_graphs import SPLIT, state
from tests.recorded import assert_values
from tests.small import model
from tiered.compat.ppq import BaseGraph, OpSocker, OpSocket, TorchExecutor
from tiered.support.errors import ModelError, UsageError

TEXT = """g (float[2] x, float[2] z) => (float[2] y) <float[2] w = {1,2}> {
    [sum] a = Sum(x, w)  [neg] b = Neg(a)  [abs] y = Abs(b) }"""


def graph(text: str = TEXT) -> BaseGraph:
    return BaseGraph(model(text).main)


def names(ports: Any) -> list[str | None]:
    return [None if each is None else each.name for each in ports]


def test_operands_are_edited_as_a_list() -> None:
    on = graph()
    add, x, z, w = on.operations["sum"], *(on.variables[name] for name in "xzw")
    operands = add.inputs
    operands.append(z)
    assert names(operands) == ["x", "w", "z"]
    operands[0] = z
    operands[-1] = x
    assert names(add.inputs) == ["z", "w", "x"]
    assert operands.pop() == x
    operands.insert(0, x)
    operands.remove(w)
    assert operands == (x, z)
    assert (x, z) == operands
    assert operands == [x, z]
    assert operands != (x,)
    assert operands[:1] == (x,)
    assert (operands.index(z), operands.count(x), x in operands, w in operands) == (
        1,
        1,
        True,
        False,
    )
    assert repr(operands) == repr((x, z))
    operands[:] = [z, z, w]
    assert names(operands) == ["z", "z", "w"]
    assert z.dest_ops == (add, add)
    on.graph.model.check_view()  # type: ignore[attr-defined]  # the model of a view
    (found,) = TorchExecutor(on).forward(
        {"x": np.zeros(2, np.float32), "z": np.ones(2, np.float32)}
    )
    assert found.tolist() == [3, 4]


def test_results_are_edited_as_a_list() -> None:
    on = graph()
    neg, a, b = on.operations["neg"], on.variables["a"], on.variables["b"]
    fresh = on.create_variable("fresh")
    neg.outputs[0] = fresh
    assert names(neg.outputs) == ["fresh"]
    assert (b.source_op, fresh.source_op) == (None, neg)
    neg.outputs[0] = b
    assert [each.type for each in on.topological_sort()] == ["Sum", "Neg", "Abs"]
    with pytest.raises(ModelError, match="'b' is used, so its operation still computes it"):
        del neg.outputs[0]
    with pytest.raises(UsageError, match="an operation computes a Variable, not None"):
        neg.outputs[0] = None
    with pytest.raises(UsageError, match="outputs are exchanged one by one"):
        neg.outputs[:] = [a]
    with pytest.raises(UsageError, match="added as the last one"):
        neg.outputs.insert(0, fresh)
    split = graph("g (float[2] x) => (float[1] y) { [s] y, z = Split<num_outputs=2>(x) }")
    results = split.operations["s"].outputs
    assert names(results) == ["y", "z"]
    assert results.pop().name == "z"
    assert names(results) == ["y"]


def test_what_is_no_operand_is_refused() -> None:
    on = graph()
    neg = on.operations["neg"]
    with pytest.raises(UsageError, match="an operand is a Variable, not 'x'"):
        neg.inputs[0] = "x"
    with pytest.raises(ModelError, match="has 1 input, so no input 3"):
        neg.inputs[3] = on.variables["x"]
    with pytest.raises(ModelError, match="'neg' is Neg, which takes no more than 1 input, not 2"):
        neg.inputs.append(on.variables["x"])
    assert names(neg.inputs) == ["a"]
    neg.inputs.clear()
    neg.inputs.append(on.variables["z"])
    assert names(neg.inputs) == ["z"]


def test_readers_follow_from_the_operands() -> None:
    """PPQ's passes edit both sides: `op.inputs.append(var); var.dest_ops.append(op)`."""
    on = graph()
    add, neg, z, a = (
        on.operations["sum"],
        on.operations["neg"],
        on.variables["z"],
        on.variables["a"],
    )
    add.inputs.append(z)
    z.dest_ops.append(add)
    z.dest_ops.extend([add])
    assert names(z.dest_ops) == ["sum"]
    add.inputs.remove(z)
    z.dest_ops.remove(add)
    z.dest_ops.clear()
    assert names(z.dest_ops) == []
    edits: list[Callable[[], object]] = [
        lambda: z.dest_ops.append(neg),
        lambda: a.dest_ops.remove(neg),
        a.dest_ops.pop,
        a.dest_ops.clear,
    ]
    for edit in edits:
        with pytest.raises(UsageError, match="dest_ops follows from the operands"):
            edit()
    assert names(a.dest_ops) == ["neg"]


def test_no_operation_of_a_type_that_is_not_there_is_made() -> None:
    with pytest.raises(ModelError, match="no such operator; did you mean 'Relu'"):
        graph().create_operation("Rleu")


def test_an_operation_is_inserted_between_a_variable_and_an_operation() -> None:
    on = graph()
    new, add = on.create_operation("Abs", "new"), on.operations["sum"]
    on.insert_op_between_var_and_op(new, on.variables["w"], add)
    assert names(new.inputs) == ["w"]
    assert names(add.inputs) == ["x", new.outputs[0].name]
    with pytest.raises(ModelError, match="reads variable 'z' 0 times, not once"):
        on.insert_op_between_var_and_op(on.create_operation("Abs"), on.variables["z"], add)


def test_names_that_the_documents_misspell() -> None:
    on = graph()
    assert on.variable["w"] == on.variables["w"]
    assert [each.name for each in on.parameters()] == ["w"]
    assert OpSocker is OpSocket
    assert on.operations["sum"].socker.inputs == on.operations["sum"].socket.inputs
    feeds = {"x": np.zeros(2, np.float32), "z": np.zeros(2, np.float32)}
    TorchExecutor(on).tracing_operation_mata(feeds)


def test_all_attributes_and_all_operands_are_exchanged_at_once() -> None:
    on = graph("g (float[2,2] x, float[2,2] z) => (float[2,2] y) { [s] y = Softmax<axis=0>(x) }")
    softmax = on.operations["s"]
    softmax.attributes = {"axis": 1}
    assert dict(softmax.attributes) == {"axis": 1}
    softmax.attributes = {}
    assert dict(softmax.attributes) == {}
    softmax.inputs = [on.variables["z"]]
    assert names(softmax.inputs) == ["z"]
    with pytest.raises(UsageError, match="attributes is 3; expected Mapping"):
        softmax.attributes = 3  # type: ignore[assignment]  # on purpose


def test_edits_of_operands_are_recorded() -> None:
    def edited(edit: Callable[[Any], object], text: str = SPLIT) -> list[str]:
        of = graph(text)
        edit(of)
        return state(of)

    names = {
        "edited": edited,
        "ports": graph(SPLIT).operations["node_y"],
        "split": graph(SPLIT).operations["node_a"],
        "v": lambda g, name: g.variables[name],
        "o": lambda g, name: g.operations[name],
        "readers": lambda name: graph(SPLIT).variables[name].dest_ops,
        "one": graph(SPLIT),
        "NORM": "g (float[2] x) => (float[2] y, float[1] d) <float[2] s = {1,2}> "
        "{ [n] y, , d = LayerNormalization(x, s) [own] q = own.F(x) }",
    }
    assert_values(__file__, names)
