"""Types are refined until nothing changes, and invented names of dims give way to sizes."""

import pytest

from tests.small import made_by, named, parsed
from tiered import Model, TensorType
from tiered.graph import Node, Value
from tiered.graph.core.types import OpaqueType, ValueType
from tiered.graph.core.value import NOT_INFERRED
from tiered.graph.shape_inference.refine import Refiner, is_incomplete, is_shape_arithmetic
from tiered.graph.shape_inference.symbolic_dims import COMPOSED, INVENTED

CHAIN = "(float[N,3] x) => (float[N,3] y) { a = Relu(x)  b = Neg(a)  y = Abs(b) }"
F, I64 = 1, 7


class Run:
    """A refiner whose inference is a table, and the nodes that it asked for."""

    def __init__(self, model: Model, types: dict[str, ValueType | None]) -> None:
        self.model = model
        self.types = types
        self.asked: list[tuple[str, bool]] = []
        self.refiner = Refiner(model, self.infer, self.write)

    def infer(self, node: Node, ask_onnx: bool) -> list[ValueType | None]:
        self.asked.append((node.output.name, ask_onnx))
        return [self.types.get("" if value is None else value.name) for value in node.outputs]

    def write(self, value: Value, kind: ValueType | None) -> None:
        value._type = kind


def run(text: str, types: dict[str, ValueType | None], *, inferred: bool = False) -> Run:
    """Forget the types of a model, and refine all of its nodes."""
    model = parsed(text)
    model.refresh_types()
    for node in model.main.nodes:
        for value in node.outputs:
            assert value is not None
            value._type = None
    made = Run(model, types)
    made.refiner.run(model.main.topological_order(), inferred=inferred)
    return made


def test_each_node_is_asked_once_if_its_type_is_found_at_once() -> None:
    known = {name: TensorType(F, ("N", 3)) for name in "aby"}
    made = run(CHAIN, dict(known))
    # A found type adds the consumer, which waits already.
    assert [name for name, _ in made.asked] == ["a", "b", "y"]
    assert named(made.model, "y").type == known["y"]
    assert made.refiner.changed == {named(made.model, name) for name in "aby"}


def test_onnx_is_asked_again_only_if_an_operand_changed() -> None:
    known = {name: TensorType(F, ("N", 3)) for name in "aby"}
    made = run(CHAIN, dict(known), inferred=True)
    assert made.asked == [("a", False), ("b", True), ("y", True)]
    assert run(CHAIN, dict(known)).asked == [("a", True), ("b", True), ("y", True)]


def test_complete_types_are_not_asked_for() -> None:
    model = parsed(CHAIN)
    model.refresh_types()
    made = Run(model, {})
    made.refiner.run(model.main.nodes, inferred=False)
    assert made.asked == []
    assert made.refiner.changed == set()


def test_an_unknown_dim_gets_a_name() -> None:
    made = run(CHAIN, {"a": TensorType(F, (None, 3))})
    shape = named(made.model, "a").shape
    assert shape is not None
    assert str(shape[0]).startswith(INVENTED)
    assert shape[1] == 3


def test_a_removed_node_is_passed_over() -> None:
    model = parsed("(float[N] x) => (float[N] y) { a = Relu(x)  y = Neg(x) }")
    dead = made_by(model, "a")
    model.main.remove_node(dead)
    made = Run(model, {})
    made.refiner.run([dead], inferred=False)
    assert made.asked == []


def test_a_size_that_is_found_replaces_the_invented_name_everywhere() -> None:
    invented = "unk__.9"
    model = parsed(CHAIN)
    model.refresh_types()
    for name in "aby":
        named(model, name)._type = TensorType(F, (invented, 3))
    made = Run(model, {"a": TensorType(F, ("N", 3))})
    made.refiner.run([made_by(model, "a")], inferred=False)
    assert [named(model, name).shape for name in "aby"] == [("N", 3)] * 3


def test_a_size_replaces_the_invented_name_in_values_that_are_not_below() -> None:
    model = parsed(
        "(float[N,3] x) => (float[M,3] y, float[K,3] z) { a = Relu(x) y = Neg(a) b = Abs(x) z = Exp(b) }"
    )
    model.refresh_types()
    for name in "abz":
        named(model, name)._type = TensorType(F, ("unk__.9", 3))
    made = Run(model, {"a": TensorType(F, ("N", 3)), "z": TensorType(F, ("N", 3))})
    made.refiner.run([made_by(model, "a")], inferred=False)
    assert {name: named(model, name).shape for name in "abz"} == dict.fromkeys("abz", ("N", 3))


def test_absent_outputs_and_types_that_are_no_tensors_are_passed_over_and_kept() -> None:
    sequence = OpaqueType(b"a sequence")
    text = """(float[2] x) => (float[2] y) {
        u, , v = Unique(x)  s = SequenceConstruct(u)  y = Identity(x) }"""
    known = {"u": TensorType(F, ("N",)), "v": TensorType(I64, (2,)), "": TensorType(I64, (9,))}
    for written, expected in ((None, sequence), (TensorType(F, None), TensorType(F, None))):
        model = parsed(text)
        model.refresh_types()
        for name in "uvs":
            named(model, name)._type = written if name == "s" else None
        made = Run(model, {**known, "s": sequence})
        made.refiner.run(model.main.nodes, inferred=False)
        found = [named(model, name).type for name in "uvs"]
        assert found == [known["u"], known["v"], expected]


def test_a_declared_name_stays_beside_another_one() -> None:
    model = parsed(CHAIN)
    model.refresh_types()
    named(model, "a")._type = TensorType(F, ("mine", None))
    made = Run(model, {"a": TensorType(F, ("N", 3))})
    made.refiner.run([made_by(model, "a")], inferred=False)
    assert named(model, "a").shape == ("mine", 3)


@pytest.mark.parametrize("found", [TensorType(F, None), TensorType(F, (1, 2, 3))])
def test_a_type_of_another_rank_does_not_count(found: TensorType) -> None:
    model = parsed(CHAIN)
    model.refresh_types()
    before = TensorType(F, (None, 3))
    named(model, "a")._type = before
    Run(model, {"a": found}).refiner.run([made_by(model, "a")], inferred=False)
    shape = named(model, "a").shape
    assert shape is not None
    assert (len(shape), shape[1]) == (2, 3)


def test_a_value_without_a_type_takes_one_without_a_rank() -> None:
    made = run(CHAIN, {"a": TensorType(F, None)})
    assert named(made.model, "a").type == TensorType(F, None)


def test_the_readers_of_a_result_of_a_body_include_its_owner() -> None:
    model = parsed(
        """(float[N] x, bool c) => (float[N] y) {
        y = If(c) <then_branch = t () => (float[N] p) { a = Neg(x) p = Relu(a) },
                   else_branch = e () => (float[N] q) { q = Abs(x) }> }"""
    )
    owner = made_by(model, "y")
    body = owner.bodies[0]
    assert Refiner.readers(named(body, "p")) == [owner]
    assert Refiner.readers(named(body, "a")) == [made_by(model.main, "y").bodies[0].nodes[1]]
    assert set(Refiner.readers(named(model, "x"))) == {body.nodes[0], owner.bodies[1].nodes[0]}


def test_sizes_that_shape_arithmetic_computes_are_found() -> None:
    model = parsed(
        "(float[N,3] x) => (float[?,?] y) <int64[1] m = {-1}, int64[1] zero = {0}, int64[1] o = {1}>"
        " { s = Shape(x) n = Slice(s, zero, o) t = Concat<axis=0>(n, m) y = Reshape(x, t) }"
    )
    model.refresh_types()
    assert named(model, "y").shape == ("N", 3)


# --- what is incomplete ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (None, True),
        (NOT_INFERRED, True),
        (TensorType(F, None), True),
        (TensorType(F, ()), False),
        (TensorType(F, (2, "N")), False),
        (TensorType(F, (2, None)), True),
        (TensorType(F, (f"{INVENTED}.1", 2)), True),
        (TensorType(F, (f"{COMPOSED}2*{INVENTED}.1",)), True),
        (TensorType(F, (f"{COMPOSED}2*N",)), False),
        ("a sequence", False),
    ],
)
def test_a_type_is_incomplete_without_a_rank_or_a_size(kind: object, expected: bool) -> None:
    assert is_incomplete(kind) is expected


def test_invented_names_of_operands_are_refined_at_their_producers() -> None:
    name = f"{INVENTED}.1"
    assert not is_incomplete(TensorType(F, (name, 2)), {name})
    assert is_incomplete(TensorType(F, (name, None)), {name, None})


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (TensorType(I64, (3,)), True),
        (TensorType(I64, ()), True),
        (TensorType(6, (3,)), True),
        (TensorType(I64, (3, 1)), False),
        (TensorType(I64, None), False),
        (TensorType(F, (3,)), False),
        (NOT_INFERRED, False),
    ],
)
def test_sizes_follow_from_a_few_integers(kind: object, expected: bool) -> None:
    value = Value(0, None, "v")
    value._type = kind  # type: ignore[assignment]  # what a value may have while it is inferred
    assert is_shape_arithmetic(value) is expected


def test_the_inputs_of_bodies_that_declare_none_have_types() -> None:
    for text, types in (
        ("""y = Loop(n, c, x) <body = b (i, g, v) => (on, w) {
            on = Identity(g)  w = Neg(v) }>""", ["int64", "bool", "float"]),
        ("""y, z = Scan<num_scan_inputs = 1, body = b (v, f) => (w, u) {
            w = Neg(v)  u = Abs(f) }>(x, e)""", ["float[2,3]", "float[4,3]"]),
        ("""y, z = Scan<num_scan_inputs = 1, body = b (double v, f) => (w, u) {
            w = Neg(v)  u = Abs(f) }>(x, e)""", ["double[]", "float[4,3]"]),
    ):  # fmt: skip
        model = parsed(
            f"(float[2,3] x, float[5,4,3] e, int64 n, bool c) => (y) {{ {text}  q = Neg(x) }}"
        )
        model.refresh_types()
        (body,) = made_by(model, "y").bodies
        assert [str(value.type) for value in body.inputs] == types


def test_what_is_known_before_and_found_decides_who_is_asked() -> None:
    seven, eight = (TensorType(F, (f"{INVENTED}.{number}", 3)) for number in (7, 8))
    open_, sized = TensorType(F, (None, 3)), TensorType(F, ("N", 3))
    for a, b, found, asked, changed in (
        (seven, eight, {"a": seven, "b": eight}, "a", ""),  # nothing new
        (seven, eight, {}, "a", ""),
        (seven, eight, {"a": open_}, "a", ""),
        (None, eight, {}, "a", ""),
        (open_, open_, {"a": open_, "b": open_}, "ab", "ab"),  # the dims get names
        (sized, open_, {"a": sized, "b": sized}, "", ""),
    ):
        model = parsed(CHAIN)
        model.refresh_types()
        for name, kind in (("a", a), ("b", b)):
            named(model, name)._type = kind
        made = Run(model, dict(found))
        made.refiner.run([made_by(model, "a")], inferred=False)
        assert "".join(name for name, _ in made.asked) == asked, (a, b, found)
        assert {value.name for value in made.refiner.changed} == set(changed), (a, b, found)


def test_invented_names_of_operands_are_not_asked_for() -> None:
    model = parsed(CHAIN)
    model.refresh_types()
    for name in "ab":
        named(model, name)._type = TensorType(F, (f"{INVENTED}.7", 3))
    made = Run(model, {})
    made.refiner.run([made_by(model, "b")], inferred=False)
    assert made.asked == []


def test_the_readers_of_a_name_that_was_found_before_are_asked() -> None:
    model = parsed(CHAIN)
    model.refresh_types()
    invented = model.dims.invent()
    for name, dim in (("a", invented), ("b", None)):
        named(model, name)._type = TensorType(F, (dim, 3))
    size = model.dims.size("N")
    assert size is not None
    model.dims.learn(invented, size)
    model.dims.has_learned = False
    made = Run(model, {"b": TensorType(F, ("N", 3))})
    made.refiner.run([made_by(model, "a")], inferred=False)
    assert made.asked == [("b", True)]
    assert [named(model, name).shape for name in "ab"] == [("N", 3)] * 2


def test_inputs_of_bodies_have_the_types_that_are_given_to_them_where_they_have_none() -> None:
    text = """(float[2,3] x, float[5,4,3] e) => (float[2,3] y) {
        y, z = Scan<num_scan_inputs = 1, body = b (v, f) => (w, u) {
            w = Neg(v)  u = Abs(f) }>(x, e) }"""
    for before, after in ((None, (4, 3)), (TensorType(F, ("mine", 3)), ("mine", 3))):
        model = parsed(text)
        model.refresh_types()
        value = made_by(model, "y").bodies[0].inputs[1]
        value._type = before
        Run(model, {}).refiner.run([made_by(model, "y")], inferred=False)
        assert value.shape == after
