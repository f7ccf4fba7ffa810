"""Two models without a trace."""

from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import onnx
import pytest

from tiered import Model
from tiered.certify.checker import Checker, Proof
from tiered.certify.evaluation.values import Unproved
from tiered.certify.problem import Problem
from tiered.certify.regions import sweep as sweep_module
from tiered.certify.regions.sweep import DEPTHS, MOST_FAILED, Sweep, SweepStep, Swept, _cone
from tiered.testing import parse
from tiered.verify.part_extraction import GraphPart

BEFORE = """(float[N,4] x) => (float[N,4] y, float[N,4] z) <float one = {1}, float two = {2},
    int64[2] s = {-1, 4}> {
    a = Mul(x, one)  b = Reshape(a, s)  c = Relu(b)  y = Identity(c)
    d = Add(c, two)  z = Exp(d) }"""
AFTER = """(float[N,4] x) => (float[N,4] y, float[N,4] z) <float k = {2}> {
    y = Relu(x)  e = Add(k, y)  z = Exp(e) }"""
WRONG = AFTER.replace("{2}", "{3}")


def swept(before: str, after: str) -> Swept:
    return Sweep(*(Model.from_proto(parse(text)) for text in (before, after))).run()


def test_other_names_between_are_no_obstacle() -> None:
    found = swept(BEFORE, AFTER)
    assert not found.left
    assert found.domain == "bits"


def test_what_differs_is_left() -> None:
    (step,) = swept(BEFORE, WRONG).left
    assert step.name == "z"
    assert "not computed alike" in step.proof.reason


def test_models_of_equal_structure_need_no_proof() -> None:
    found = swept(BEFORE, BEFORE)
    assert found.steps == []
    assert found.common == 6


BATCH_NORM = """(float[N,3,4,4] x) => (float[N,2,4,4] y) <float[2,3,1,1] w = {{1,2,3,4,5,6}},
    float[2] s = {{4,9}}, float[2] b = {{1,2}}, float[2] m = {{0,3}}, float[2] v = {{4,9}}> {{
    c = Conv(x, w)  n = BatchNormalization<epsilon = 0.0>(c, s, b, m, v)
    {} }}"""
FOLDED = """(float[N,3,4,4] x) => (float[N,2,4,4] y) <float[2,3,1,1] w = {{{}}},
    float[2] b = {{1,-7}}> {{ c = Conv(x, w, b)  {} }}"""


@pytest.mark.parametrize(
    ("weights", "is_right"), [("2,4,6,12,15,18", True), ("2,4,6,12,15,19", False)]
)
def test_a_folded_node_may_have_left_the_earlier_name(weights: str, *, is_right: bool) -> None:
    rest = "r = Relu(c)  d = Exp(r)  y = Add(d, r)"
    before = BATCH_NORM.format("r = Relu(n)  d = Exp(r)  y = Add(d, r)")
    found = swept(before, FOLDED.format(weights, rest))
    assert bool(found.left) != is_right
    if is_right:
        (step,) = found.steps
        assert step.name == "c"
        assert found.domain == "reals"


def test_the_value_that_others_read_is_not_the_later_one() -> None:
    """Conv with and without its batch norm is read: the second model may not mix them up."""
    before = BATCH_NORM.format("r = Relu(n)  y = Add(r, c)")
    wrong = FOLDED.format("2,4,6,12,15,18", "r = Relu(c)  y = Add(r, c)")
    assert swept(before, wrong).left


def test_identity_is_what_it_reads() -> None:
    text = "(float[2] x) => (float[2] y) {{ a = Neg(x)  {} }}"
    found = swept(text.format("b = Exp(a)  y = Identity(b)"), text.format("y = Exp(a)"))
    assert (found.steps, found.left) == ([], [])
    assert swept(text.format("b = Exp(a)  y = Identity(a)"), text.format("y = Exp(a)")).left


def test_a_border_of_one_side_is_one_of_the_other() -> None:
    """Both are cut at `b`, which is another number of nodes away."""
    text = "(float[2,3] x) => (float[2,3] y) {{ a = Exp(x)  b = Relu(a)  {} }}"
    longer = "c = Neg(b)  d = Neg(c)  e = Neg(d)  f = Neg(e)  y = Softmax(f)"
    assert not swept(text.format(longer), text.format("y = Softmax(b)")).left
    assert swept(text.format(longer), text.format("y = Softmax(a)")).left


def test_regions_do_not_grow_with_each_value_that_is_not_proved() -> None:
    length = 40
    chain = "  ".join(f"a{at + 1} = Exp(a{at})" for at in range(length))
    text = f"(float[2] a0) => (float[2] a{length}) {{{{ {chain.replace('Exp(a0)', '{}(a0)')} }}}}"
    models = [Model.from_proto(parse(text.format(op))) for op in ("Neg", "Abs")]
    tried: list[int] = []

    class Counted(Checker):
        def prove(self, problem: Problem, **how: Any) -> Proof:
            tried.append(len(problem.sides[0].nodes))
            return super().prove(problem, **how)

    sweep = Sweep(*models)
    sweep._checker = Counted()
    assert sweep.run().left
    assert 0 < sum(size > MOST_FAILED + 5 for size in tried) <= 2 * len(DEPTHS)


def test_a_swapped_output_is_left() -> None:
    text = "(float[2] x) => (float[2] y, float[2] z) {{ y = {}(x)  z = {}(x) }}"
    found = swept(text.format("Neg", "Abs"), text.format("Abs", "Neg"))
    assert [step.name for step in found.left] == ["y", "z"]


def test_draws_of_another_name_are_others() -> None:
    text = "(float[2] x) => (float[2] y) {{ {0} = RandomNormalLike(x)  y = Add(x, {0}) }}"
    assert swept(text.format("r"), text.format("q")).left
    assert not swept(text.format("r"), text.format("r")).left


def test_what_differs_for_empty_tensors_alone_is_named() -> None:
    """A 0 in the shape of a Reshape copies the dim of its input, here another one than before."""
    before = """(float[N,M,2] x) => (float[?,?,?] y) { y = Neg(x) }"""
    after = """(float[N,M,2] x) => (float[?,?,?] y) <int64[2] f = {-1, 2}> {
        n = Neg(x)  s = Shape(x)  a = Reshape(n, f)  y = Reshape(a, s) }"""
    found = swept(before, after)
    assert not found.left
    assert found.empty == ["y"]


def test_constants_functions_and_domains_of_one_model_are_told_apart() -> None:
    text = """<ir_version: 10, opset_import: ["": 21{}]> g (float[2] x) => (float[2] y)
        <float[2] k = {}> {{ {} }} {}"""
    function = '<domain: "own", opset_import: ["": 21]> F (p) => (q) {{ q = {}(p) }}'
    add, own = "y = Add(x, k)", ', "own": 1'
    call, neg, exp = "y = own.F(x)", function.format("Neg"), function.format("Exp")
    plain = ("", "{1,2}", add, "")
    for one, other, is_right in (
        (plain, plain, True),
        (plain, ("", "{1,3}", add, ""), False),
        (plain, (own, "{1,2}", add, ""), True),
        ((own, "{1,2}", add, ""), plain, True),
        ((own, "{1,2}", call, neg), (own, "{1,2}", call, neg), True),
        ((own, "{1,2}", call, neg), (own, "{1,2}", call, exp), False),
        ((own, "{1,2}", call, neg), ("", "{1,2}", "y = Neg(x)", ""), True),
    ):
        models = [
            Model.from_proto(onnx.parser.parse_model(text.format(*each))) for each in (one, other)
        ]
        assert bool(Sweep(*models).run().left) != is_right, (one, other)


def test_another_interface_is_not_compared() -> None:
    with pytest.raises(Unproved, match="inputs or outputs"):
        swept(BEFORE, "(float[N,4] x) => (float[N,4] y) { y = Relu(x) }")


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("=> (float[N,4] y, float[N,4] z)", "=> (float[N,4] z, float[N,4] y)", "inputs or outputs"),
        ("(float[N,4] x)", "(float[N,4] x, float q)", "inputs or outputs"),
        ("{ y", "{ y", "opsets"),
    ],
)
def test_models_of_other_interfaces_or_opsets_are_not_swept(
    old: str, new: str, because: str
) -> None:
    opset = 20 if because == "opsets" else 21
    after = Model.from_proto(parse(AFTER.replace(old, new), opset=opset))
    with pytest.raises(Unproved, match=f"the models .* other {because}"):
        Sweep(Model.from_proto(parse(BEFORE)), after).run()


@pytest.mark.parametrize(
    ("one", "other", "is_right"),
    [
        ("y = vendor.F(x)", "y = vendor.F(x)", True),
        ("y = vendor.F<a = 1>(x)", "y = vendor.F<a = 2>(x)", False),
        ("a = vendor.Identity(x)  y = Neg(a)", "y = Neg(x)", False),
        ("a = Identity(x)  y = Neg(a)", "y = Neg(x)", True),
        ("y = RandomNormalLike(x)", "a = RandomNormalLike(x)  y = Identity(a)", False),
        (
            "y = If(c)<then_branch = g () => (p) { p = Neg(x) },"
            " else_branch = h () => (q) { q = Abs(x) }>",
            "y = If(c)<then_branch = g () => (p) { p = Neg(x) },"
            " else_branch = h () => (q) { q = Abs(x) }>",
            True,
        ),
        (
            "k = Neg(x)  y = If(c)<then_branch = g () => (p) { p = Neg(k) },"
            " else_branch = h () => (q) { q = Abs(k) }>",
            "k = Exp(x)  y = If(c)<then_branch = g () => (p) { p = Neg(k) },"
            " else_branch = h () => (q) { q = Abs(k) }>",
            False,
        ),
    ],
)
def test_nodes_are_the_same_by_what_they_compute_and_read(
    one: str, other: str, *, is_right: bool
) -> None:
    head = '<ir_version: 10, opset_import: ["": 21, "vendor": 1]> g'
    texts = [f"{head} (float[2] x, bool c) => (float[2] y) {{ {nodes} }}" for nodes in (one, other)]
    models = [Model.from_proto(onnx.parser.parse_model(text)) for text in texts]
    assert bool(Sweep(*models).run().left) != is_right


# --- the order of what is tried -------------------------------------------------------------------


def sweep_of(before: str, after: str, head: str = "(float[2] x) => (float[2] y)") -> Sweep:
    return Sweep(*(Model.from_proto(parse(f"{head} {{ {text} }}")) for text in (before, after)))


CHAIN = "a = Neg(x)  b = Exp(a)  c = Abs(b)  d = Sin(c)  y = Cos(d)"
UNPROVED = SweepStep("a", Proof("", reason="why"), None, is_output=False)


def test_a_value_is_tried_alone_then_as_a_later_one_then_with_more_nodes() -> None:
    for proved, is_later, is_found, depths in (
        ([0], False, True, [(0,)]),
        ([], True, True, [(0,)]),
        ([1], False, True, [(0,), (2,)]),
        ([], False, False, [(0,), (2,)]),
    ):
        sweep, tried = sweep_of(CHAIN, CHAIN), list[Any]()

        def prove(_: str, __: str, depths: Any, to: Any = tried, at: Any = proved) -> Any:
            to.append(depths)
            return None if len(to) - 1 in at else UNPROVED

        made = cast("Any", sweep)
        made._prove, made._prove_later = prove, lambda _, it=is_later: it
        assert (sweep._is_found("a"), tried) == (is_found, depths)


def test_a_later_value_is_one_that_only_the_first_model_has() -> None:
    both, two = "(float[2] x) => (float[2] y, float[2] a)", f"{CHAIN}  z = Exp(a)"
    for first, second, head, proved, tried in (
        (CHAIN, "a = Neg(x)  y = Cos(a)", "", "", "bc"),
        (CHAIN, "a = Neg(x)  y = Cos(a)", "", "b", "b"),
        (CHAIN, "a = Neg(x)  y = Cos(a)", "", "c", "bc"),
        (CHAIN, "a = Neg(x)  b = Exp(a)  y = Cos(b)", "", "b", ""),
        (CHAIN, "a = Neg(x)  c = Abs(a)  y = Cos(c)", "", "c", "b"),
        (CHAIN, "a = Neg(x)  y = Cos(a)", both, "b", ""),
        (two, "a = Neg(x)  y = Cos(a)", "", "b", ""),
        (
            "a = Neg(x)  , c = Split<axis = 0, num_outputs = 2>(a)  y = Exp(c)",
            "a = Neg(x)  y = Cos(a)",
            "",
            "c",
            "",
        ),
        ("a = Neg(x)  b, c = TopK(a, k)  y = Exp(b)", "a = Neg(x)  y = Cos(a)", "", "c", "b"),
    ):
        sweep = sweep_of(first, second, head or "(float[2] x, int64[1] k) => (float[2] y)")
        asked = list[str]()

        def prove(original: str, name: str, depths: Any, to: Any = asked, it: str = proved) -> Any:
            to.append(original)
            assert (name, depths) == ("a", DEPTHS[:1])
            return None if original == it else UNPROVED

        cast("Any", sweep)._prove = prove
        assert sweep._prove_later("a") == (proved != "" and proved in tried), (first, second)
        assert "".join(asked) == tried


def test_the_first_reason_of_a_value_is_kept() -> None:
    proofs = [Proof("", reason=str(at)) for at in range(4)]
    for outcomes, reason, count in (
        ([0, 1, 2, 3], "0", 4),
        ([0, "large"], "0", 2),
        (["large"], "large", 1),
        ([0, 1, "yes"], None, 3),
    ):
        sweep, tried = sweep_of(CHAIN, CHAIN), list[Any]()
        sweep._start()
        sweep._classes[0]["a"] = 7

        def problem_of(*them: Any, is_aligned: bool, to: Any = tried, of: Any = outcomes) -> Any:
            to.append((them[2], is_aligned))
            if of[len(to) - 1] == "large":
                raise Unproved("large")
            return of[len(to) - 1]

        made = cast("Any", sweep)
        made._problem, made._check_size = problem_of, lambda _: None
        made._checker = SimpleNamespace(
            prove=lambda problem: Proof("bits") if problem == "yes" else proofs[problem]
        )
        step = sweep._prove("a", "b", (0, 2))
        assert (step and step.proof.reason) == reason
        assert tried == [(0, False), (0, True), (2, False), (2, True)][:count]
        assert len(sweep._found.steps) == (reason is None)
        if reason is None:
            assert (sweep._classes[1]["b"], sweep._seen[1]) == (7, {7})


def test_outputs_are_tried_whatever_their_size_and_others_up_to_a_limit() -> None:
    for failed, is_large in ((MOST_FAILED, False), (MOST_FAILED + 1, True)):
        sweep = sweep_of(CHAIN, CHAIN)
        sweep._failed = {f"v{at}" for at in range(failed)}
        nodes = [onnx.helper.make_node("Neg", ["x"], [name]) for name in (*sweep._failed, "other")]
        problem = cast("Any", SimpleNamespace(sides=(None, SimpleNamespace(nodes=nodes))))
        made, because = cast("Any", sweep), "more than 16 values before it are not proved"
        made._problem = lambda *_, of=problem, **__: of
        made._checker = SimpleNamespace(prove=lambda _: Proof("", reason="tried"))
        for is_output in (False, True):
            step = sweep._prove("a", "a", (0,), is_output=is_output)
            assert step is not None
            assert step.proof.reason == (because if is_large and not is_output else "tried")
            assert step.is_output == is_output


def _is_in(held: str, value: str, _: int) -> bool:
    return value in held


def test_the_nodes_before_a_value_end_at_borders_inputs_and_constants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """(float[4] x) => (float[2] y) <float[1] w = {2}> {
        a, b = Split<num_outputs = 2>(x)  c = Add(a, b)  d = Mul(c, w)  y = Neg(d) }"""
    part = GraphPart.of(parse(text))
    for name, borders, nodes, reads in (
        ("y", "", {0, 1, 2, 3}, []),
        ("y", "x", {0, 1, 2, 3}, ["x"]),
        ("y", "c", {2, 3}, ["c"]),
        ("c", "c", {0, 1}, []),
        ("c", "a", {0, 1}, []),  # which the node of b computes, too
        ("x", "", set[int](), ["x"]),
        ("w", "", set[int](), []),
    ):
        found, read = _cone(part, name, partial(_is_in, borders))
        producers = [part.producer[each] for each in "acdy"]
        assert {producers.index(at) for at in found} == nodes, (name, borders)
        assert read == (reads or (["x"] if 0 in nodes else [])), (name, borders)
    monkeypatch.setattr(sweep_module, "MOST_NODES", 3)
    assert len(_cone(part, "d", lambda *_: False)[0]) == 3
    with pytest.raises(Unproved, match="more than 3 nodes differ before y"):
        _cone(part, "y", lambda *_: False)


def test_the_weakest_domain_is_that_of_all() -> None:
    for domains, weakest in (((), "bits"), (("bits",), "bits"), (("bits", "reals"), "reals")):
        steps = [
            SweepStep("a", Proof(cast("Any", each)), None, is_output=False) for each in domains
        ]
        assert Swept(steps).domain == weakest


def test_a_region_begins_at_common_values_of_a_known_type() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "own": 1]> g
        (float[2,3] x) => (float[2,3] y) {{ a = {}(x)  b = Relu(a)  {} }}"""
    longer, shorter = "c = Neg(b)  d = Neg(c)  y = Softmax(d)", "y = Softmax(b)"
    models = [
        Model.from_proto(onnx.parser.parse_model(text.format("Exp", rest)))
        for rest in (longer, shorter)
    ]
    (step,) = Sweep(*models).run().steps
    assert step.problem is not None
    assert [[node.op_type for node in side.nodes] for side in step.problem.sides] == [
        ["Identity", "Neg", "Neg", "Softmax", "Identity"], ["Identity", "Softmax", "Identity"],
    ]  # fmt: skip
    models = [
        Model.from_proto(onnx.parser.parse_model(text.format("own.F", rest)))
        for rest in (longer, shorter)
    ]
    (left,) = Sweep(*models).run().left
    assert (left.proof.reason, left.problem) == ("the type of b is not known", None)
