"""What no edit touched is not searched again, and the result is that of a full search."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from benchmarks import chains
from tiered import Model, Tensor, get_pass
from tiered.analysis.layout import layout_conversion, search_memory, solve
from tiered.analysis.layout.cost_terms import terms_of
from tiered.analysis.layout.equivalence import LayoutOperator
from tiered.analysis.layout.layout_region import LayoutRegion, regions
from tiered.analysis.layout.reach import Reach
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.graph import TensorType
from tiered.graph.core.edit import Edit
from tiered.support.errors import PassError
from tiered.testing import parse

TEXT = """(float[2,3,4] x, float[2,3,4] z) => (float[2,4,3] y, float[2,4,3] w) {
    a = Transpose<perm=[0,2,1]>(x)  b = Softmax(a)  y = Relu(b)
    c = Transpose<perm=[0,2,1]>(z)  d = Softmax(c)  w = Relu(d)
}"""


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The names of the tensors that each search visits."""
    found: list[set[str]] = []

    def noted(*given: object, search: Callable[..., Reach] = layout_conversion.reach_of) -> Reach:
        reach = search(*given)
        found.append({value.name for value in reach.tensors})
        return reach

    monkeypatch.setattr(layout_conversion, "reach_of", noted)
    return found


def place(model: Model, **options: object) -> None:
    get_pass("convert_layout", **options).apply(model)


def run_afresh(model: Model) -> bytes:
    """Return what the pass makes of a model of which nothing is remembered."""
    copy = Model.from_proto(model.to_proto())
    place(copy)
    return copy.to_proto().SerializeToString(deterministic=True)


def edit(model: Model, name: str) -> None:
    """Negate what a Relu reads."""
    graph = model.main
    relu = next(each for each in graph.nodes if each.output.name == name)
    graph.set_input(relu, 0, graph.op.Neg(relu.inputs[0]))


def test_nothing_is_searched_twice(searched: list[set[str]]) -> None:
    model = Model.from_proto(parse(TEXT))
    place(model)
    assert {"x", "z"} <= searched[0]
    searched.clear()
    place(model)
    assert searched == [set()]


def test_an_edit_concerns_its_own_part(searched: list[set[str]]) -> None:
    model = Model.from_proto(parse(TEXT))
    place(model)
    searched.clear()
    edit(model, "y")
    place(model)
    assert "x" in searched[0]
    assert "z" not in searched[0]


def test_an_operand_that_becomes_an_equal_constant_is_no_edit(searched: list[set[str]]) -> None:
    text = TEXT.replace("y = Relu(b)", "s = Reshape(b, k)  y = Relu(s)")
    text = text.replace("w) {", "w) <int64[3] k = {2,4,3}> {")
    model = Model.from_proto(parse(text))
    place(model)
    graph = model.main
    (reshape,) = graph.nodes_of("Reshape")
    old = reshape.inputs[1]
    assert old is not None
    graph.set_input(reshape, 1, graph.constant(np.array([2, 4, 3]), "again"))
    graph.remove_constant(old)
    searched.clear()
    place(model)
    assert searched == [set()]
    graph.set_input(reshape, 1, graph.constant(np.array([2, 4, -1]), "other"))
    place(model)
    assert "x" in searched[-1]
    assert "z" not in searched[-1]


def test_a_constant_that_was_another_one_is_an_edit(searched: list[set[str]]) -> None:
    text = TEXT.replace("y = Relu(b)", "s = Reshape(b, k)  y = Relu(s)")
    model = Model.from_proto(parse(text.replace("w) {", "w) <int64[3] k = {2,4,3}> {")))
    place(model)
    graph = model.main
    (reshape,) = graph.nodes_of("Reshape")
    old = reshape.inputs[1]
    assert old is not None
    graph.set_input(reshape, 1, graph.constant(np.array([2, 4, -1]), "other"))
    graph.set_constant(old, Tensor.of(np.array([2, 4, -1])))
    searched.clear()
    place(model)
    assert "x" in searched[-1]


def test_an_exchanged_output_concerns_its_own_part(searched: list[set[str]]) -> None:
    model = Model.from_proto(parse(TEXT))
    place(model)
    searched.clear()
    graph = model.main
    y = next(value for value in graph.outputs if value.name == "y")
    graph.exchange_output(y, graph.op.Neg(y))
    expected = run_afresh(model)
    place(model)
    assert "x" in searched[-1]
    assert "z" not in searched[-1]
    assert model.to_proto().SerializeToString(deterministic=True) == expected


def test_other_options_search_everything(searched: list[set[str]]) -> None:
    model = Model.from_proto(parse(TEXT))
    place(model)
    searched.clear()
    place(model, default_dim=8)
    assert {"x", "z"} <= searched[0]


def test_what_was_undone_is_searched_again(searched: list[set[str]]) -> None:
    model = Model.from_proto(parse(TEXT))
    mark = model.mark()
    edit(model, "y")
    place(model)
    searched.clear()
    model.undo_to(mark)
    place(model)
    assert {"x", "z"} <= searched[0]


def test_a_part_that_a_new_transpose_leads_to_is_searched_too(searched: list[set[str]]) -> None:
    model = Model.from_proto(parse(TEXT))
    place(model)
    searched.clear()
    graph = model.main
    y = next(value for value in graph.outputs if value.name == "y")
    relu = y.producer
    assert relu is not None
    turned = graph.op.Transpose(graph.op.Transpose(relu.inputs[0], perm=[0, 2, 1]), perm=[0, 2, 1])
    graph.set_input(relu, 0, turned)
    expected = run_afresh(model)
    place(model)
    assert "x" in searched[-1] | searched[0]
    assert model.to_proto().SerializeToString(deterministic=True) == expected


def test_a_shape_that_became_known_is_searched_again(searched: list[set[str]]) -> None:
    pools = "".join(f" p{at} = MaxPool<kernel_shape=[1]>(p{at - 1})" for at in range(1, 5))
    text = TEXT.replace("float[2,3,4] x", "float[k,l,m] x, int64[3] s")
    text = text.replace("a = ", f"p0 = Reshape(x, s) {pools} a = ").replace("(x)  b", "(p4)  b")
    model = Model.from_proto(parse(text))
    place(model)
    searched.clear()
    graph = model.main
    reshape = next(node for node in graph.nodes if node.op_type == "Reshape")
    graph.set_input(reshape, 1, graph.constant(np.array([2, 3, 4]), "shape"))
    model.types.refresh(model)
    place(model)
    assert "p4" in searched[0]
    assert "z" not in searched[0]
    searched.clear()
    place(model)
    assert searched == [set()]


@pytest.mark.parametrize("seed", range(12))
def test_the_result_is_that_of_a_full_search(seed: int) -> None:
    random = Random(seed)
    model = Model.from_proto(chains.random_chain(seed))
    place(model)
    graph = model.main
    for _ in range(3):
        found = [each for each in graph.topological_order() if each.op_type != "Split"]
        chosen = random.choice(found)
        value = chosen.inputs[0]
        assert value is not None
        rank = value.rank
        assert rank is not None
        if random.random() < 0.5:
            perm = list(range(rank))
            random.shuffle(perm)
            back = sorted(range(rank), key=perm.__getitem__)
            made = graph.op.Transpose(graph.op.Transpose(value, perm=perm), perm=back)
        else:
            made = graph.op.Neg(value)
        graph.set_input(chosen, 0, made)
        expected = run_afresh(model)
        place(model)
        assert model.to_proto().SerializeToString(deterministic=True) == expected


def test_what_was_written_by_a_run_that_failed_is_searched_again(
    searched: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model.from_proto(parse(TEXT))
    with monkeypatch.context() as patch:
        patch.setattr(
            layout_conversion, "_write_regions", _failing(layout_conversion._write_regions)
        )
        with pytest.raises(PassError, match="the second search failed"):
            place(model)
    searched.clear()
    expected = run_afresh(model)
    place(model)
    assert model.to_proto().SerializeToString(deterministic=True) == expected
    assert {"x", "z"} <= searched[-1] | searched[-2]


def _failing(write: Callable[..., bool]) -> Callable[..., bool]:
    """Return a function that writes once, and raises when it is called again."""
    calls = []

    def once(*given: object) -> bool:
        calls.append(given)
        if len(calls) > 1:
            raise ValueError("the second search failed")
        write(*given)
        return True

    return once


def test_a_region_that_comes_again_is_not_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[int] = []

    def counted(
        region: LayoutRegion, find: Callable[..., dict[LayoutOperator, int]] = solve._solve
    ) -> object:
        solved.append(len(region.operators))
        return find(region)

    monkeypatch.setattr(solve, "_solve", counted)
    model = Model.from_proto(chains.windows(1, 64, 2, 8, 32))
    place(model)
    assert solved
    solved.clear()
    for node in list(model.main.nodes_of("Softmax")):
        again = model.main.op.Softmax(node.inputs[0], axis=node.attr("axis"))
        model.main.replace(node, [again])
    place(model)
    assert not solved


def test_terms_are_what_they_are_afresh() -> None:
    model = Model.from_proto(chains.random_chain(6))
    for region in regions(layout_conversion.reach_of(model), LayoutSizes()):
        present = dict.fromkeys(region.operators, 0)
        for proposal in (present, *region.proposals, present):
            assignment = {**present, **proposal}
            known = region.cost(assignment)
            assert known == LayoutRegion(region.reach, region.operators, region.tensor_costs).cost(
                assignment
            )


def test_equal_steps_have_equal_terms() -> None:
    """A scan that is twice as long has as many kinds of terms: each is computed once."""
    counted = []
    for steps in (16, 32):
        scan = chains.unrolled_scan((1, 0, 2), 0, (4, 40, 8), steps, product=False)
        for region in regions(layout_conversion.reach_of(Model.from_proto(scan)), LayoutSizes()):
            terms = list(terms_of(region.operators, region.tensor_costs.values()))
            assert len(terms) > 2 * steps
            counted.append(len({term.kind for term in terms}))
    assert len(counted) == 2
    assert counted[0] == counted[1]


def test_an_equal_constant_in_the_place_of_another_is_no_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = Model.from_proto(parse("(float[2] x) => (y) { y = Neg(x) }")).main
    x = graph.inputs[0]
    one, same, other = (graph.constant(np.array(each, np.int64)) for each in ([1], [1], [2]))
    for before, after, expected in (
        (one, same, True),
        (one, other, False),
        (one, x, False),
        (x, one, False),
        (x, x, False),
        (None, one, False),
        (one, None, False),
    ):
        assert search_memory._are_equal_constants(before, after) is expected
    assert search_memory._SMALL == 1024
    for small, expected in ((8, True), (7, False)):
        monkeypatch.setattr(search_memory, "_SMALL", small)
        assert search_memory._are_equal_constants(one, same) is expected


def test_an_edit_touches_the_values_around_its_nodes() -> None:
    model = Model.from_proto(parse("""(float[2] x, float[2] z) => (y, w) {
        a = Neg(x)  y = Abs(a)  b = Exp(z)  w = Relu(b) }"""))  # fmt: skip
    graph = model.main
    x, z = graph.inputs
    y, w = graph.outputs
    a, b = (value.producer.given(0) for value in (y, w) if value.producer)
    of = {name: next(iter(graph.nodes_of(name))) for name in ("Neg", "Abs", "Relu")}
    one, same = (graph.constant(np.array([1])) for _ in range(2))
    for entries, expected in (
        ([(Edit.RENAME_NODE, of["Neg"], None), (Edit.ADD_CONSTANT, one)], ""),
        ([(Edit.SET_TYPE, a, None)], "axy"),
        ([(Edit.SET_CONSTANT, x, None)], "ax"),
        ([(Edit.MOVE_CONSTANT, b, graph)], "bwz"),
        ([(Edit.REMOVE_NODE, of["Neg"], graph)], "ax"),
        ([(Edit.SET_INPUT, of["Neg"], 0, x, z)], "abxz"),
        ([(Edit.SET_INPUTS, of["Neg"], [w], None)], "abwx"),
        ([(Edit.EXCHANGE_OUTPUTS, of["Abs"], 0, of["Relu"], 0)], "abwy"),
        ([(Edit.EXCHANGE_GRAPH_OUTPUT, graph, y, a, (0,))], "axy"),
        ([(Edit.SET_INPUT, of["Neg"], 0, one, same)], ""),
        ([(Edit.SET_INPUT, of["Neg"], 0, one, same), (Edit.SET_CONSTANT, one, None)], "ax"),
        ([(Edit.SET_TYPE, a, None), (Edit.SET_OPSET, model, {})], None),
        ([(Edit.FORGET_TYPES, model, {})], None),
    ):
        found = search_memory._touched(entries)
        names = found and "".join(sorted(each.name for each in found if each is not one))
        assert (found if found is None else names or "") == expected, entries


def test_after_an_edit_of_all_of_it_a_model_is_searched_again(searched: list[set[str]]) -> None:
    model = Model.from_proto(parse(TEXT))
    place(model)
    model.main.add_input("n", TensorType(1, (2,)))
    searched.clear()
    place(model)
    assert {"x", "z"} <= searched[0]


def test_what_an_edit_holds_is_listed_flat() -> None:
    assert [*search_memory._flat([1, [2, 3], (4,), "ab", None])] == [1, 2, 3, 4, "ab", None]
