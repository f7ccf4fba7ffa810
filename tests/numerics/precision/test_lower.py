"""The user's rules and the target's, the report of a conversion, and what is counted for it."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered import Backend, DataType, Model, Node, Value
from tiered.analysis.roles.role import Role
from tiered.numerics.precision import lower
from tiered.numerics.precision.lower import (
    PrecisionRules,
    RuledNarrowing,
    computes_in,
    lower_precision,
    note_defaults,
    share_of_weights,
    why_unsupported,
)
from tiered.rewriter import Skip, Unable
from tiered.targets.reading import backend_of

FLOAT, HALF, BFLOAT = DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16
TEXT = """(float[2] x) => (float[2] y) <float[2] k = {1,2}> {
    [first] a = Sin(x)  [second] b = Add(a, k)  [last] y = Exp(b) }"""


def target(**operators: object) -> Backend:
    profile = {"api_version": 1, "name": "chip", "operators": operators}
    return backend_of(profile, "chip.toml", lambda name: {})


class Report:
    """What a conversion said."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.nodes: dict[str, str] = {}
        self.others: list[Skip] = []

    def skip(self, node: Node | None, skip: Skip) -> None:
        if node is None:
            self.others.append(skip)
        else:
            self.nodes[node.output.name] = str(skip)


def lowered(
    text: str | Model, low: DataType = HALF, *, keep_io_types: bool = True, **rules: object
) -> tuple[Model, Report]:
    model, said = parsed(text) if isinstance(text, str) else text, Report()
    lower_precision(
        model, low, said.found.append, said.skip, keep_io_types=keep_io_types,
        rules=PrecisionRules(**rules),  # type: ignore[arg-type]  # fields by name
    )  # fmt: skip
    model.check_view(types=True)
    return model, said


# --- why a node stays -----------------------------------------------------------------------------


def narrowing(
    rules: PrecisionRules,
    roles: Mapping[Node, Role] | None = None,
    kept: Mapping[Node, str] | None = None,
    beyond: Mapping[Value, str] | None = None,
) -> RuledNarrowing:
    return RuledNarrowing(HALF, rules, roles or {}, kept or {}, beyond or {})


def test_reasons_come_in_an_order() -> None:
    model = parsed(TEXT)
    node = made_by(model, "a")
    role, kept = {node: Role("mask", "why")}, {node: "measured"}
    chip = target(Sin={"types": {"T": ["float"]}})
    every = [
        (PrecisionRules(skip_op_types=("Sin",), force_op_types=("Sin",)), "Sin is skipped"),
        (PrecisionRules(skip_nodes=("fir*",)), "the node is skipped"),
        (PrecisionRules(force_op_types=("Sin",)), ""),
        (PrecisionRules(force_nodes=("first",)), ""),
        (PrecisionRules(backend=chip), "mask: why"),
    ]
    for rules, reason in every:
        assert narrowing(rules, role, kept).keep(node) == reason
    rules = PrecisionRules(backend=chip)
    assert narrowing(rules, None, kept).keep(node) == "chip takes Sin in float only"
    assert narrowing(PrecisionRules(), None, kept).keep(node) == "measured"
    assert narrowing(PrecisionRules()).keep(node) == ""


def test_what_is_quantised_is_not_forced() -> None:
    model = parsed("(float[2] x) => (uint8[2] y) <float s = {1}> { y = QuantizeLinear(x, s) }")
    rules = PrecisionRules(force_op_types=("QuantizeLinear",))
    assert narrowing(rules).keep(made_by(model, "y")) == "inside a Q/DQ unit"


def test_a_value_that_does_not_fit_stays_unless_its_node_is_forced() -> None:
    model = parsed(TEXT)
    a, node, reader = named(model, "a"), made_by(model, "a"), made_by(model, "b")
    beyond = {a: "too large"}
    assert narrowing(PrecisionRules(), beyond=beyond).refuse(a) == "too large"
    assert narrowing(PrecisionRules(), beyond=beyond).refuse(named(model, "b")) == ""
    forced = narrowing(PrecisionRules(force_op_types=("Sin",)), beyond=beyond)
    assert forced.refuse(a) == ""
    assert forced.refuse(a, node) == ""
    assert forced.refuse(a, reader, 0) == "too large"


def test_a_rule_forces_nodes_by_operator_and_name() -> None:
    model = parsed(TEXT)
    rules = PrecisionRules(force_op_types=("Sin",), force_nodes=("las*",))
    assert [rules.forces(made_by(model, name)) for name in "aby"] == [True, False, True]
    assert not rules.forces(None)


def test_names_of_all_rules_are_checked() -> None:
    model = parsed(TEXT)
    rules = PrecisionRules(skip_op_types=("Cos",), force_op_types=("Tan",), force_nodes=("last",))
    assert list(rules.findings(model)) == ["no node has the operator Cos or Tan"]


@pytest.mark.parametrize(
    ("operators", "reason"),
    [
        ({"Sin": True}, ""),
        ({"Cos": True}, ""),
        ({"Sin": {"types": {"T": ["float", "float16"]}}}, ""),
        ({"Sin": {"types": {"T": ["float"]}}}, "chip takes Sin in float only"),
    ],
)
def test_a_target_takes_an_operator_in_float_only(
    operators: dict[str, object], reason: str
) -> None:
    node = made_by(parsed(TEXT), "a")
    assert why_unsupported(node, HALF, target(**operators)) == reason
    assert why_unsupported(node, HALF, None) == ""


# --- the report -----------------------------------------------------------------------------------


def test_a_conversion_reports_nodes_casts_and_weights() -> None:
    _, said = lowered(TEXT)
    assert said.found == [
        "3 nodes compute in float16; Casts added: 2",
        "weights: 4 bytes in float16 (100.0 % of the numbers), 0 in float",
    ]
    assert (said.nodes, said.others) == ({}, [])


def test_a_model_without_weights_reports_none() -> None:
    _, said = lowered("(float[2] x) => (float[2] y) { y = Sin(x) }")
    assert said.found == ["1 node computes in float16; Casts added: 2"]


def test_constants_that_are_clamped_are_reported() -> None:
    _, said = lowered(TEXT.replace("{1,2}", "{1,1e30}"), force_op_types=("Add",))
    assert said.found[-1] == ("constants with numbers beyond float16, which are clamped: 1, as k")


def test_nodes_that_stay_are_reported_and_an_error_if_all_do() -> None:
    _, said = lowered(TEXT, skip_op_types=("Sin",))
    assert (said.nodes, said.others) == ({"a": "Sin is skipped"}, [])
    _, said = lowered(TEXT, skip_op_types=("Sin", "Add", "Exp"))
    assert said.found == []
    (error,) = said.others
    assert isinstance(error, Unable)
    assert str(error) == (
        "no node computes in float16: 1 Sin: Sin is skipped; 1 Add: Add is skipped; "
        "1 Exp: Exp is skipped"
    )


@pytest.mark.parametrize(
    ("dtype", "others", "kind"),
    [("double", "double", Unable), ("float16", "float16", Skip), ("int64", "integers", Unable)],
)
def test_a_model_of_another_type_has_nothing_to_lower(
    dtype: str, others: str, kind: type[Skip]
) -> None:
    _, said = lowered(f"({dtype}[2] x) => ({dtype}[2] y) {{ y = Neg(x) }}")
    (reason,) = said.others
    assert type(reason) is kind
    assert str(reason) == f"no node computes in float, but in {others}"


def test_a_model_that_computes_in_the_type_partly_is_no_error() -> None:
    text = """(float[2] x, float16[2] h) => (float[2] y, float16[2] z) { y = Sin(x)  z = Cos(h) }"""
    _, said = lowered(text, skip_op_types=("Sin",))
    assert (said.nodes, said.others) == ({"y": "Sin is skipped"}, [])


def test_kernels_that_onnxruntime_lacks_are_noted_for_halves_and_no_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noted = list[Any]()

    def noting(model: Model) -> nullcontext[None]:
        noted.append(model)
        return nullcontext()

    monkeypatch.setattr(lower, "noting_lost_kernels", noting)
    for low, backend, count in ((HALF, None, 1), (HALF, target(Sin=True), 0), (BFLOAT, None, 0)):
        noted.clear()
        lowered(TEXT, low, backend=backend)
        assert len(noted) == count, (low, backend)


def test_other_floats_are_those_that_nodes_compute() -> None:
    for nodes, text in (
        ("y = Neg(x)", "integers"),
        (", t = Split<axis = 0, num_outputs = 2>(x)  y = own.F(x)", "integers"),
        (", t = Split<axis = 0, num_outputs = 2>(h)  y = own.F(x)", "float16"),
        ("a = Neg(h)  b = Neg(d)  y = Neg(x)", "double and float16"),
    ):
        model = parsed(f"(float[2] x, float16[2] h, double[2] d) => (float[2] y) {{ {nodes} }}")
        model.refresh_types()
        assert lower._other_floats(model) == text


# --- inputs ---------------------------------------------------------------------------------------


def test_inputs_with_defaults_are_noted_once() -> None:
    text = """(float[2] x, int64[1] i = {1}, float[2] v = {1,2}, float[2] w = {3,4})
        => (float[2] y) { a = Add(x, v)  b = Gather(a, i)  y = Add(b, w) }"""
    said: list[str] = []
    note_defaults(parsed(text), said.append)
    (note,) = said
    assert note.startswith("'v' is an input, which callers may feed: ")
    said.clear()
    note_defaults(parsed(TEXT), said.append)
    assert said == []
    _, report = lowered(text)
    assert report.found[0] == note
    _, report = lowered(text, keep_io_types=False)
    assert note not in report.found


def test_inputs_that_change_take_what_was_fed_before() -> None:
    model = parsed("(float[2] x, int64[2] i) => (float[2] y) { a = Gather(x, i)  y = Sin(a) }")
    stamp = model.journal.stamp()
    lowered(model, keep_io_types=False)
    feeds = model.interface_since(stamp).feeds
    assert list(feeds) == ["x"]
    name, convert = feeds["x"]
    assert name == "x"
    assert convert is not None
    assert convert(np.array([1], np.float16)).dtype == np.float32
    other = parsed(TEXT)
    stamp = other.journal.stamp()
    lowered(other)
    assert not other.interface_since(stamp).feeds


# --- counts ---------------------------------------------------------------------------------------


def test_weights_are_counted_by_their_elements() -> None:
    text = """(float[2] x) => (float[2] y, float16[2] z)
        <float[2] k = {1,2}, float16[6] h = {1,2,3,4,5,6},
        int64[1] n = {2}, float[9] unused = {1,1,1,1,1,1,1,1,1}> {
        y = Add(x, k)  c = Cast<to=10>(y)  g = Gather(h, n)  z = Add(c, g) }"""
    model = parsed(text)
    assert share_of_weights(model, FLOAT) == 2 / 8
    assert share_of_weights(model, HALF) == 6 / 8
    assert share_of_weights(model, BFLOAT) == 0
    none = parsed("(float[2] x) => (float[2] y) { y = Sin(x) }")
    assert share_of_weights(none, FLOAT) == 0


@pytest.mark.parametrize(
    ("nodes", "computes"),
    [
        ("y = Sin(x)", False),
        ("h = Cast<to=10>(x)  y = Cast<to=1>(h)", False),
        ("h = Cast<to=10>(x)  s = Sin(h)  y = Cast<to=1>(s)", True),
        ("h = Constant<value = float16 {1}>()  y = Sin(x)", False),
    ],
)
def test_a_node_computes_in_a_type_if_it_is_no_conversion(nodes: str, computes: bool) -> None:
    model = parsed(f"(float[2] x) => (float[2] y) {{ {nodes} }}")
    assert computes_in(model, HALF) == computes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(float16[2] x, float16 k) => (float16[2] y) { y = Clip(x, , k) }", True),
        ("(float[2] x) => (float16[2] y) { y = Cast<to = 10>(x) }", False),
        ("(float[2] x) => (float[1] t) { , t = Split<axis = 0, num_outputs = 2>(x) }", False),
        ("(float[2] x, float k) => (float[2] y) { y = Clip(x, , k) }", False),
    ],
)
def test_a_model_computes_in_a_type_if_a_node_but_a_cast_does(text: str, expected: bool) -> None:
    model = parsed(text)
    model.refresh_types()
    assert computes_in(model, DataType.FLOAT16) is expected
