"""What replaces nodes remembers them, with their metadata, which does not grow."""

import pytest

from tests.small import made_by, model, named
from tiered.graph import Graph, Model, Node
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
