"""What replaces nodes remembers them, with their metadata, which does not grow."""

import numpy as np
import pytest

from tests.small import made_by, model, named
from tiered.graph import Graph, Model, Node, Tensor
from tiered.graph.core.provenance import ORIGINS, _some, note_sources, origins_of, write_origins

FOUR = "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  c = Neg(b)  y = Neg(c) }"


def described(**said: str) -> Model:
    """Return a model of four nodes with a text each."""
    of = model(FOUR)
    for name, text in said.items():
        of.main.set_metadata(made_by(of, name), {"module": text})
    return of


def replaced(of: Model, first: str, last: str, count: int) -> list[Node]:
    """Replace the nodes from one to another by so many Abs, as one rewrite."""
    graph: Graph = of.main
    made = []
    with graph.rewrite("law", made_by(of, last)):
        value = made_by(of, first).inputs[0]
        for _ in range(count):
            value = graph.op.Abs(value)
            made.append(value.producer)
        graph.replace(made_by(of, last), [value])
        graph.prune(graph.nodes)
    return [node for node in made if node is not None]


def test_new_nodes_come_from_the_nodes_that_went() -> None:
    of = model(FOUR)
    old = {name: made_by(of, name) for name in "bc"}
    (made,) = replaced(of, "b", "c", 1)
    assert set(made.sources) == set(old.values())
    assert origins_of(made) == (old["b"], old["c"])
    assert made_by(of, "a").origins == (made_by(of, "a"),)


def test_origins_of_origins_are_the_nodes_of_the_file() -> None:
    of = model(FOUR)
    names = [made_by(of, name).name for name in "bc"]
    (first,) = replaced(of, "b", "b", 1)
    (made,) = replaced(of, first.output.name, "c", 1)
    assert [node.name for node in origins_of(made)] == names


def test_named_sources_count_in_place_of_removed_nodes() -> None:
    of = model(FOUR)
    mark = of.mark()
    node = of.main.op.Abs(named(of, "x")).producer
    assert node is not None
    note_sources(of.journal.since(mark), [made_by(of, "y")])
    assert node.sources == (made_by(of, "y"),)


def test_the_first_new_node_has_all_texts_each_once() -> None:
    of = described(a="one; two", b="two", c="three")
    (made,) = replaced(of, "a", "c", 1)
    assert made.metadata == {"module": "one; two; three"}


def test_more_nodes_than_before_do_not_multiply_the_texts() -> None:
    of = described(b="a long text of one module", c="another text of one module")
    made = replaced(of, "b", "c", 4)
    texts = [node.metadata["module"] for node in made]
    assert texts[0] == "a long text of one module; another text of one module"
    assert texts[1:] == ["a long text of one module"] * 3
    assert all(node.metadata for node in made)


def test_fewer_nodes_drop_texts_until_there_are_no_more_than_before() -> None:
    of = described(a="abc", b="abc", c="x" * 50, y="abc")
    made = replaced(of, "a", "y", 2)
    total = sum(len(node.metadata["module"]) + 2 for node in made)
    assert total <= (3 + 2) * 3 + 52


@pytest.mark.parametrize(("count", "most"), [(3, 16), (16, 16), (40, 16), (5, 2)])
def test_of_many_texts_a_sample_from_every_part_stays(count: int, most: int) -> None:
    texts = [str(at) for at in range(count)]
    found = list(_some(texts, most))
    assert len(found) == min(count, most)
    assert found[0] == "0"
    assert found == sorted(found, key=int)
    if count > most:
        assert int(found[-1]) >= count - count // most - 1


def test_origins_are_written_for_new_nodes_alone() -> None:
    of = model(FOUR)
    names = [made_by(of, name).label for name in "bc"]
    (made,) = replaced(of, "b", "c", 1)
    write_origins(of)
    assert made.metadata[ORIGINS] == "; ".join(names)
    assert made_by(of, "a").metadata == {}
    mark = of.mark()
    write_origins(of)
    assert not of.changed_since(mark)


def test_of_many_origins_the_number_is_said() -> None:
    nodes = " ".join(f"v{at + 1} = Neg(v{at})" for at in range(20))
    of = model(f"g (float[2] v0) => (float[2] v20) {{ {nodes} }}")
    (made,) = replaced(of, "v1", "v20", 1)
    write_origins(of)
    assert made.metadata[ORIGINS].endswith("; and 4 more")
    assert made.metadata[ORIGINS].count(";") == 16


TWENTY = "; ".join(str(at) for at in range(20))
WRITTEN: list[tuple[dict[str, dict[str, str]], str, str, int, list[dict[str, str]]]] = [
    # The metadata of nodes, the first and the last that are replaced, by how many, and theirs.
    ({}, 'a', 'c', 1, [{}]),
    ({'b': {'m': '1'}}, 'a', 'c', 2, [{'m': '1'}, {'m': '1'}]),
    ({'a': {'m': '1'}, 'b': {'m': '22'}}, 'a', 'b', 3, [{'m': '1; 22'}, {'m': '1'}, {'m': '1'}]),
    ({'a': {'m': 'x; y'}, 'b': {'m': 'y; z'}}, 'a', 'b', 1, [{'m': 'x; y; z'}]),
    ({'a': {'m': 'abc'}, 'b': {'m': 'abc'}, 'c': {'m': 'xxxxxxxxx'}, 'y': {'m': 'abc'}}, 'a', 'y', 2, [{'m': 'abc; xxxxxxxxx'}, {'m': 'abc'}]),
    ({'a': {'m': 'a1; a2; a3'}, 'b': {'m': 'b'}}, 'a', 'c', 1, [{'m': 'a1; a2; a3; b'}]),
    ({'a': {'m': '1', 'n': '2'}, 'b': {'n': '3'}}, 'a', 'b', 1, [{'m': '1', 'n': '2; 3'}]),
    ({'a': {'tiered.origins': 'q', 'm': '1'}}, 'a', 'b', 1, [{'m': '1'}]),
    ({'a': {'tiered.recomputed': '1'}, 'b': {'tiered.recomputed': '2'}}, 'a', 'b', 1, [{'tiered.recomputed': '2; 1'}]),
    ({'a': {'tiered.recomputed': '1'}, 'b': {'tiered.recomputed': '1'}}, 'a', 'b', 2, [{'tiered.recomputed': '1'}, {'tiered.recomputed': '1'}]),
    ({'a': {'tiered.recomputed': '1'}, 'b': {'m': '1'}}, 'a', 'b', 1, [{'m': '1'}]),
    ({'a': {'m': 'longlonglonglonglong'}, 'b': {'m': 's'}, 'c': {'m': 't'}}, 'a', 'c', 2, [{'m': 'longlonglonglonglong'}, {'m': 'longlonglonglonglong'}]),
    ({'a': {'m': 's'}, 'b': {'m': 'longlonglonglonglong'}, 'c': {'m': 't'}}, 'a', 'c', 2, [{'m': 's; longlonglonglonglong'}, {'m': 's'}]),
    ({'a': {'m': 's'}, 'b': {'m': 'longlonglonglonglong'}, 'c': {'m': 't'}}, 'a', 'c', 5, [{'m': 's; longlonglonglonglong; t'}, {'m': 's'}, {'m': 's'}, {'m': 's'}, {'m': 's'}]),
    ({'a': {'m': 'p; q; r; s; t; u'}, 'b': {'m': 'v'}, 'c': {'m': 'w'}}, 'a', 'c', 2, [{'m': 'p; t'}, {'m': 'p; t'}]),
    ({'a': {'m': 's'}, 'b': {'m': 't'}, 'c': {'m': 't'}, 'y': {'m': 't'}}, 'a', 'y', 3, [{'m': 's; t'}, {'m': 's'}, {'m': 's'}]),
    ({'a': {'m': 's'}, 'b': {'m': 't'}, 'c': {'m': 't'}, 'y': {'m': 't'}}, 'a', 'y', 2, [{'m': 's; t'}, {'m': 's; t'}]),
    ({'a': {'m': 'ss'}, 'b': {'m': 'ss'}}, 'a', 'b', 2, [{'m': 'ss'}, {'m': 'ss'}]),
    ({'a': {'m': 'ab'}, 'b': {'m': 'cdef'}, 'c': {'m': 'g'}}, 'a', 'c', 3, [{'m': 'ab; cdef; g'}, {'m': 'ab'}, {'m': 'ab'}]),
]  # fmt: skip


def test_what_is_written_on_new_nodes() -> None:
    for said, first, last, count, expected in WRITTEN:
        of = model(FOUR)
        for name, metadata in said.items():
            of.main.set_metadata(made_by(of, name), metadata)
        assert [node.metadata for node in replaced(of, first, last, count)] == expected, said


def test_copies_are_kept_apart_by_their_names() -> None:
    of = model(FOUR)
    graph = of.main
    for name, mark in (("a", ""), ("b", "1"), ("c", "2")):
        graph.set_metadata(made_by(of, name), {"tiered.recomputed": mark, "m": name})
    with graph.rewrite("law", made_by(of, "c")):
        one, two = (graph.op.Abs(named(of, "x"), name=f"new_{at}") for at in range(2))
        other = graph.op.Exp(graph.op.Add(one, two), name="new_2")
        graph.replace(made_by(of, "c"), [other])
        graph.prune(graph.nodes)
        for at, node in enumerate(graph.nodes_of("Abs")):
            graph.rename_node(node, f"node_{'bc'[at]}")
    found = {node.name: node.metadata.get("tiered.recomputed") for node in graph.nodes}
    assert found == {"node_y": None, "node_b": "1", "node_c": "2", "Add": None, "new_2": None}


def test_constants_and_unmarked_nodes_mark_no_copies() -> None:
    of = model(
        "g (float[2] x) => (float[2] y) { k = Constant<value_float=1.0>()  a = Add(x, k)  y = Neg(a) }"
    )
    graph = of.main
    graph.set_metadata(made_by(of, "a"), {"tiered.recomputed": "1"})
    with graph.rewrite("law", made_by(of, "a")):
        graph.replace(made_by(of, "a"), [graph.op.Abs(named(of, "x"))])
    assert graph.nodes[-1].metadata == {"tiered.recomputed": "1"}
    assert [node.op_type for node in graph.nodes[-1].sources] == ["Add", "Constant"]


def test_nodes_that_went_again_or_have_sources_get_none() -> None:
    of = model(FOUR)
    graph = of.main
    mark = of.mark()
    kept, gone = graph.op.Abs(named(of, "x")).producer, graph.op.Exp(named(of, "x")).producer
    assert kept is not None
    assert gone is not None
    kept.sources = (made_by(of, "y"),)
    graph.remove_node(gone)
    note_sources(of.journal.since(mark), [made_by(of, "a")])
    assert (kept.sources, gone.sources) == ((made_by(of, "y"),), ())
    new = graph.op.Abs(named(of, "x")).producer
    assert new is not None
    graph.set_metadata(made_by(of, "a"), {"m": "1"})
    graph.set_metadata(new, {"m": "2"})
    note_sources(of.journal.since(mark), [made_by(of, "a")])
    assert (new.sources, new.metadata) == ((made_by(of, "a"),), {"m": "2"})
    folded = model("g (float[2] x) => (float[2] y) { a = Neg(x)  y = Abs(a) }")
    with folded.main.rewrite("law", made_by(folded, "a")):
        node = made_by(folded, "a")
        folded.main.fold_to_initializer(node, 0, Tensor.of(np.ones(2, np.float32)))
        made = folded.main.op.Exp(named(folded, "x")).producer
    assert made is not None
    assert made.sources == (node,)
