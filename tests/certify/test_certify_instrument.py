"""Certify on runs: what is right is proved, what is wrong is refuted, and the file says how."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import onnx
import pytest

from tests.extensions.debug.wrong_passes import WRONG, Wrong
from tests.small import named
from tiered import (
    Graph,
    Model,
    PassContext,
    Skip,
    Value,
    VerificationError,
    function_pass,
    module_pass,
    op,
    optimize,
    optimize_model,
    rewrite,
    var,
)
from tiered.certify import Certify, certify_instrument
from tiered.certify.certificate import write_certificate
from tiered.certify.certify_instrument import certify_of
from tiered.certify.checker import Checker, Proof
from tiered.certify.evaluation.values import Unproved
from tiered.certify.problem import Problem
from tiered.certify.regions.watched_rewrites import WatchedChange, Way
from tiered.certify.rewrite_records import Certified
from tiered.certify.trial_runs import Ran, model_of, run_both
from tiered.runtime.compare.outputs import compare
from tiered.runtime.session import Session
from tiered.support.errors import RuntimeFailure, UsageError
from tiered.support.numerics import Numerics, Promise
from tiered.testing import parse

TEXT = """(float[N,4] x) => (float[N,4] y) <float one = {1}, int64[2] s = {-1, 4}> {
    a = Mul(x, one)  b = Reshape(a, s)  c = Relu(b)  y = Identity(c) }"""
NOT_COMPUTED = {"lie_about_type", "make_a_cycle", "raise_in_the_middle"}
"""Wrong passes that change nothing that is computed, or that fail by themselves."""


def test_each_rewrite_of_a_run_is_proved() -> None:
    result = optimize_model(parse(TEXT), certify=True)
    assert result.certify is not None
    assert len(result.certify.findings.rewrites) == result.model.gate.count
    assert {each.word for each in result.certify.findings.rewrites} == {"bits"}


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_a_wrong_pass_is_not_certified(case: Wrong) -> None:
    if case.name in NOT_COMPUTED:
        pytest.skip("nothing that is computed changes")
    certify = Certify()
    with PassContext.isolated(instruments=[certify]):
        case.pass_(Model.from_proto(parse(case.model)))
    assert [each for each in certify.findings.rewrites if not each.is_proved]


def test_a_wrong_pass_is_refuted_with_what_shows_it() -> None:
    case = next(case for case in WRONG if case.name == "swap_operands_of_sub")
    certify = Certify()
    with PassContext.isolated(instruments=[certify]):
        case.pass_(Model.from_proto(parse(case.model)))
    (found,) = certify.findings.rewrites
    assert found.word == "refuted"
    assert "max" in found.reason


def test_a_refutation_keeps_the_inputs_that_show_it(tmp_path: Path) -> None:
    case = next(case for case in WRONG if case.name == "swap_operands_of_sub")
    certify = Certify(file="c.json")
    with PassContext.isolated(instruments=[certify]):
        case.pass_(Model.from_proto(parse(case.model)))
    (found,) = certify.findings.rewrites
    file = tmp_path / "c.json"
    write_certificate(str(file), certify.findings, parse(case.model), None)
    (rewrite,) = json.loads(file.read_text())["rewrites"]
    assert rewrite["proved"] == "refuted"
    arrays = np.load(tmp_path / "c.npz")
    shown = {name: arrays[f"{found.number}/{name}"] for name in rewrite["inputs"]}
    assert found.problem is not None
    one, other = (
        Session(model_of(found.problem, side, found.problem.sizes[0])).run(shown)
        for side in found.problem.sides
    )
    assert not compare(one, other, "exact").ok


def test_values_that_never_occur_refute_nothing() -> None:
    """The border of the small region may be negative; what the model computes is not."""
    text = "(float[2] x) => (float[2] y) { a = Softplus(x)  b = Relu(a)  y = Exp(b) }"

    @function_pass(opt_level=2)
    def drop_relu(graph: Graph, ctx: PassContext) -> None:
        """Relu(x)  =>  x"""
        for node in graph.nodes_of("Relu"):
            with graph.rewrite("drop", node):
                (x,) = node.inputs
                assert x is not None
                graph.replace_uses(node.output, x)

    certify = Certify()
    with PassContext.isolated(instruments=[certify]):
        drop_relu(Model.from_proto(parse(text)))
    assert {each.word for each in certify.findings.rewrites} <= {"run", "unproved"}


TWO = """(float[2,3] x) => (float[2,3] y, float[2,3] z) <
    float[2,1] s = {{2,3}}, float[{shape}] t = {{{numbers}}}> {{
    a = Add(x, s)  b = Neg(a)  y = Softmax(b)
    c = Add(x, t)  d = Neg(c)  z = Softmax(d) }}"""


@function_pass(opt_level=3, numerics="reassociating")
def drop_addends(graph: Graph, ctx: PassContext) -> None:
    """Softmax(-(x + s))  =>  Softmax(-x), whatever s is"""
    for node in graph.nodes_of("Add"):
        with graph.rewrite("drop", node):
            (x, _) = node.inputs
            assert x is not None
            graph.replace_uses(node.output, x)


@pytest.mark.parametrize(
    ("shape", "numbers", "word"),
    [("2,1", "5,6", "reals"), ("3", "5,6,7", "refuted")],
)
def test_a_change_is_tried_as_the_last_of_its_kind_was_proved_and_is_refuted_still(
    shape: str, numbers: str, word: str
) -> None:
    certify = Certify()
    with PassContext.isolated(instruments=[certify], opt_level=3):
        drop_addends(Model.from_proto(parse(TWO.format(shape=shape, numbers=numbers))))
    assert [each.word for each in certify.findings.rewrites] == ["reals", word]


def test_the_next_change_of_a_kind_costs_one_region(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    prove = Checker.prove

    def counted(self: Checker, problem: Problem, **how: Any) -> Proof:
        tried.append(len(problem.sides[0].nodes))
        return prove(self, problem, **how)

    monkeypatch.setattr(Checker, "prove", counted)
    certify = Certify()
    with PassContext.isolated(instruments=[certify], opt_level=3):
        drop_addends(Model.from_proto(parse(TWO.format(shape="2,1", numbers="5,6"))))
    assert tried == [1, 3, 3]


def blocks(count: int) -> onnx.ModelProto:
    """Return equal blocks, in NHWC around convolutions: layouts, scales and biases are moved."""
    text = "".join(
        f"""t{at} = Transpose<perm = [0,3,1,2]>(x{at})  c{at} = Conv<pads = [1,1,1,1]>(t{at}, w)
        u{at} = Transpose<perm = [0,2,3,1]>(c{at})  m{at} = Mul(u{at}, s)  a{at} = Add(m{at}, b)
        r{at} = Relu(a{at})  x{at + 1} = Add(r{at}, x{at})  """
        for at in range(count)
    )
    weights = ",".join(str(at % 7 - 3) for at in range(36))
    constants = f"float[2,2,3,3] w = {{{weights}}}, float[2] s = {{2,3}}, float[2] b = {{1,5}}"
    types = f"(float[N,5,5,2] x0) => (float[N,5,5,2] x{count})"
    return parse(f"{types} <{constants}> {{ {text} }}")


def test_the_work_of_a_block_does_not_grow_with_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []
    prove = Checker.prove

    def counted(self: Checker, problem: Problem, **how: Any) -> Proof:
        tried.append(sum(len(side.nodes) for side in problem.sides))
        return prove(self, problem, **how)

    monkeypatch.setattr(Checker, "prove", counted)
    work = {}
    for count in (4, 16):
        tried.clear()
        result = optimize_model(blocks(count), opt_level=3, certify=True)
        assert result.certify is not None
        assert not result.certify.findings.left()
        work[count] = sum(tried) / count
    assert work[16] <= 1.1 * work[4]


def test_strict_raises_where_a_rewrite_is_not_proved() -> None:
    case = next(case for case in WRONG if case.name == "drop_bias")
    with (
        PassContext.isolated(instruments=[Certify(strict=True)]),
        pytest.raises(VerificationError, match="is not certified"),
    ):
        case.pass_(Model.from_proto(parse(case.model)))


def test_the_certificate_has_each_rewrite(tmp_path: Path) -> None:
    source, out, file = (tmp_path / name for name in ("in.onnx", "out.onnx", "c.json"))
    onnx.save(parse(TEXT), source)
    optimize(source, out, certify=str(file))
    found = json.loads(file.read_text())
    assert found["before"]["file"] == "in.onnx"
    assert [each["number"] for each in found["rewrites"]] == [*range(1, len(found["rewrites"]) + 1)]
    assert all(each["proved"] == "bits" for each in found["rewrites"])
    regions = [each["region"] for each in found["rewrites"] if isinstance(each["region"], dict)]
    assert any("Mul" in region["before"] for region in regions)


def test_the_same_run_gives_the_same_certificate(tmp_path: Path) -> None:
    source = tmp_path / "in.onnx"
    onnx.save(parse(TEXT), source)
    texts = []
    for name in ("a", "b"):
        file = tmp_path / f"{name}.json"
        optimize(source, tmp_path / "out.onnx", certify=str(file))
        texts.append(file.read_text())
    assert texts[0] == texts[1]


def test_a_pass_that_fails_leaves_no_finding() -> None:
    case = next(case for case in WRONG if case.name == "raise_in_the_middle")
    certify = Certify()
    with PassContext.isolated(instruments=[certify], on_error="skip"):
        case.pass_(Model.from_proto(parse(case.model)))
    assert certify.findings.rewrites == []


@pytest.mark.parametrize(
    ("how", "strict", "file"),
    [
        (True, False, None), ("on", False, None), ("strict", True, None),
        ("c.json", False, "c.json"), ("strict,c.json", True, "c.json"),
        ("a,b.json", False, "b.json"), ("strict,a,b.json", True, "a,b.json"),
    ],
)  # fmt: skip
def test_the_value_of_certify_has_words_and_a_file(
    how: bool | str, strict: bool, file: str | None
) -> None:
    made = certify_of(how)
    assert (made.strict, made.file) == (strict, file)


@pytest.mark.parametrize("how", ["", "stict", "strict,", "file.txt"])
def test_a_word_that_is_none_is_named(how: str) -> None:
    with pytest.raises(UsageError) as failed:
        certify_of(how)
    file = how.removeprefix("strict,")
    assert str(failed.value) == f"certify takes strict, or a file that ends in .json, not {file!r}"


# --- what is recorded -----------------------------------------------------------------------------


@rewrite(op.Sub(var.x, var.z), opt_level=2)
def swapped(graph: Graph, x: Value, z: Value) -> Value | Skip:
    """Wrong: x - z for z - x, once."""
    if x.name != "x":
        return Skip("it was done")
    result: Value = graph.op.Sub(z, x)
    return result


@rewrite(op.Sub(var.x, var.z), opt_level=3)
def above(graph: Graph, x: Value, z: Value) -> Value | Skip:
    """Wrong, at a level of which `strict` demands no proof."""
    if x.name != "x":
        return Skip("it was done")
    result: Value = graph.op.Add(graph.op.Neg(z), graph.op.Exp(x))
    return result


@rewrite(op.Sub(var.x, var.z), opt_level=2)
def right(graph: Graph, x: Value, z: Value) -> Value:
    """Right."""
    result: Value = graph.op.Add(x, graph.op.Neg(z))
    return result


SUB = "(float[N] x, float[N] z) => (float[N] y) { y = Sub(x, z) }"


def certified(pass_: Any, text: str = SUB, **how: Any) -> Certify:
    certify = Certify(**how)
    with PassContext.isolated(opt_level=3, instruments=[certify]):
        pass_(Model.from_proto(parse(text)))
    return certify


def test_a_rewrite_is_named_and_its_region_is_kept_for_a_file_only() -> None:
    for file, is_kept in ((None, False), ("c.json", True)):
        (found,) = certified(right, file=file).findings.rewrites
        assert (found.number, found.pass_name, found.level) == (1, "right", 2)
        assert (found.word, found.reason) == ("bits", "")
        assert found.law == "op.Sub(var.x, var.z)"
        assert found.proof is not None
        assert (found.problem is not None) is is_kept


def test_without_runs_what_is_not_proved_is_not_refuted() -> None:
    (found,) = certified(swapped, runs=False).findings.rewrites
    assert found.word == "unproved"
    assert found.proof is not None
    assert found.reason == found.proof.reason
    (ran,) = certified(swapped).findings.rewrites
    assert ran.word == "refuted"
    assert set(ran.inputs) == {"x", "z"}


def test_strict_is_about_levels_up_to_two_and_about_refutations() -> None:
    for pass_ in (swapped, above):
        with pytest.raises(VerificationError, match=f"{pass_.name} is not certified: "):
            certified(pass_, strict=True)
    with pytest.raises(VerificationError, match="swapped is not certified"):
        certified(swapped, strict=True, runs=False)
    assert certified(above, strict=True, runs=False).findings.rewrites[0].word == "unproved"
    assert certified(right, strict=True).findings.rewrites[0].word == "bits"


def test_the_error_names_the_rewrite() -> None:
    with pytest.raises(VerificationError) as failed:
        certified(swapped, strict=True)
    assert "\n  rewrite   #1 of the run, at " in str(failed.value)


def test_a_pass_that_changes_the_interface_is_said_to() -> None:
    @module_pass(opt_level=None, changes_interface=True)
    def more(model: Model, ctx: PassContext) -> None:
        with model.main.rewrite("one output more", model.main.nodes[0]):
            model.main.add_output(named(model, "a"))

    text = "(float[N] x) => (float[N] y) { a = Neg(x)  y = Exp(a) }"
    certify = Certify()
    with PassContext.isolated(required=[more], instruments=[certify]):
        more(Model.from_proto(parse(text)))
    (found,) = certify.findings.rewrites
    assert (found.word, found.reason) == ("interface", "the interface changed")


def test_a_run_of_a_region_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checker, "prove", lambda *_, **__: Proof("", reason="no rule for Sub"))
    tried: list[Problem] = []

    def ran(problem: Problem, promise: Promise) -> Ran:
        tried.append(problem)
        return run_both(problem, promise)

    monkeypatch.setattr("tiered.certify.certify_instrument.run_both", ran)
    (found,) = certified(right).findings.rewrites
    assert (found.word, found.reason) == ("run", "no rule for Sub")
    assert len(tried) == 1
    (wrong,) = certified(swapped).findings.rewrites
    assert wrong.word == "refuted"


# --- decisions, on proofs and runs that are given -------------------------------------------------

NAMES = 3, "a_pass", "a law", "node 'n'", 2
PROBLEMS: dict[str, Any] = {name: SimpleNamespace(name=name) for name in ("near", "far", "whole")}
NEAR, FAR = Proof("", reason="near"), Proof("", reason="far")


def info_of(**held: Any) -> Any:
    given = {"name": "a_pass", "opt_level": 2, "kind": "function", "promise": None,
             "numerics": Numerics.EXACT, "changes_interface": False}  # fmt: skip
    return SimpleNamespace(**given | held)


def test_runs_decide_what_is_not_proved_and_only_a_whole_model_refutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Outcomes: = equal, ! different, ? an error, in the order of the regions that are run."""
    shown = "near; values that were made show a difference: cmp"
    for outcomes, has_whole, runs, word, reason in (
        ("", True, False, "unproved", "near"),
        ("=", False, True, "run", "near"),
        ("?=", False, True, "run", "near"),
        ("!=", False, True, "run", "near"),
        ("??", False, True, "unproved", "near; error of far"),
        ("!?", False, True, "unproved", f"{shown} at N=2"),
        ("?!", False, True, "unproved", f"{shown} at N=1"),
        ("!!!", True, True, "refuted", "cmp"),
        ("??!", True, True, "refuted", "cmp"),
        ("???", True, True, "unproved", "near; error of far"),
        ("!!?", True, True, "unproved", f"{shown} at N=1"),
        ("!!=", True, True, "run", "near"),
    ):
        ran = list[str]()

        def run(region: Any, _: object, to: list[str] = ran, of: str = outcomes) -> Any:
            to.append(region.name)
            outcome = of[len(to) - 1]
            if outcome == "?":
                error = RuntimeFailure if region.name == "far" else Unproved
                raise error(f"error of {region.name}")
            sizes = {"far": {"N": 2}, "near": {"N": 1}}.get(region.name, {})
            return SimpleNamespace(ok=outcome == "=", sizes=sizes, comparison="cmp", feeds={"x": 1})

        monkeypatch.setattr(certify_instrument, "run_both", run)
        for file in (None, "c.json"):
            ran.clear()
            certify = Certify(file=file, runs=runs)
            tried = [(PROBLEMS["near"], NEAR), (PROBLEMS["far"], FAR)]
            whole = PROBLEMS["whole"] if has_whole else None
            found = certify._ran(NAMES, info_of(), tried, whole)
            assert (found.word, found.reason) == (word, reason), outcomes
            assert ran == ["far", "near", "whole"][: len(outcomes)]
            assert found.proof is NEAR
            kept = whole if word == "refuted" else PROBLEMS["near"]
            assert found.problem is (kept if file else None)
            assert found.inputs == ({"x": 1} if word == "refuted" else {})
            assert (found.number, found.level) == (3, 2)


def test_regions_are_proved_the_smallest_first_and_the_others_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind, nodes = (("Neg",), ("Abs",)), cast("Any", (frozenset(), frozenset()))
    way = Way(4, Proof("bits"))

    def change(name: str, **held: Any) -> WatchedChange:
        return WatchedChange(PROBLEMS.get(name), nodes, kind, steps=2, **held)

    near, far, whole = change("near"), change("far"), change("whole", is_whole=True)
    no_rule, many = Proof("", reason="no rule for Neg"), Proof("", reason="more than 9 elements")
    yes, reals = Proof("bits"), Proof("reals")
    rows: list[tuple[list[Any], dict[str, Proof], str, str, str]] = [
        ([], {}, "unproved: no region can be cut out", "", ""),
        ([Unproved("one"), Unproved("two")], {}, "unproved: one", "", ""),
        ([change("nothing")], {}, "bits: ", "", ""),
        ([near], {"near": yes}, "bits: ", "near", ""),
        ([near, far], {"near": NEAR, "far": reals}, "reals: ", "near far", ""),
        ([Unproved("one"), near], {"near": yes}, "bits: ", "near", ""),
        ([near, far, whole], {"near": NEAR, "far": FAR}, "ran", "near far", "near far whole"),
        ([near, far, whole], {"near": no_rule}, "ran", "near", "near whole"),
        ([near, far], {"near": many}, "ran", "near", "near"),
        ([change("far", way=way), near], {"near": NEAR, "far": FAR}, "ran", "far near", "near far"),
        ([change("far", way=way), near], {"near": NEAR, "far": no_rule}, "ran", "far near",
         "near far"),
        ([whole, near], {"near": NEAR}, "ran", "near", "near whole"),
    ]  # fmt: skip
    for changes, proofs, expected, asked, run in rows:
        for numerics, file in ((Numerics.EXACT, None), (Numerics.APPROXIMATE, "c.json")):
            certify, seen, ran = Certify(file=file), list[str](), list[str]()

            def prove(
                problem: Any, *, bits_only: bool, like: Any, of: Any = (seen, proofs, numerics)
            ) -> Any:
                of[0].append(problem.name)
                assert bits_only == (of[2] is Numerics.EXACT)
                assert like in (None, way.proof)
                return of[1][problem.name]

            def run_all(_: object, __: object, tried: Any, whole: Any, to: list[str] = ran) -> Any:
                to += [each.name for each, _ in tried] + ([whole.name] if whole else [])
                return Certified(*NAMES, "run")

            made = cast("Any", certify)
            made._checker, made._ran = SimpleNamespace(prove=prove), run_all
            watched = cast("Any", SimpleNamespace(changes=lambda ways, of=changes: iter(of)))
            info = info_of(numerics=numerics)
            found = certify._judged(watched, info, None)
            text = "ran" if ran else f"{found.word}: {found.reason}"
            assert (text, " ".join(seen), " ".join(ran)) == (expected, asked, run)
            assert found.number == (3 if ran else 0)
            is_proved = bool(seen) and not ran
            assert (found.problem is not None) == (is_proved and file is not None)
            held = {kind: Way(2, proofs[seen[-1]])} if is_proved else {}
            assert certify._ways == {("a_pass", ""): held}
            if not is_proved and expected != "bits: ":
                info.changes_interface = True
                assert certify._judged(watched, info, None).word == "interface"


def test_strict_is_about_refutations_and_proofs_that_are_due() -> None:
    for word, level, is_error in (
        ("bits", 2, False), ("reals", 0, False), ("unproved", 2, True), ("run", 1, True),
        ("unproved", 3, False), ("unproved", None, False), ("refuted", 4, True),
        ("refuted", None, True),
    ):  # fmt: skip
        for anchor, reason in (("node 'n'", "why"), ("", "")):
            found = Certified(3, "a_pass", "law", anchor, level, cast("Any", word), reason=reason)
            info = info_of(opt_level=level)
            Certify()._note(info, None, found)
            certify = Certify(strict=True)
            if is_error:
                with pytest.raises(VerificationError) as failed:
                    certify._note(info, None, found)
                assert str(failed.value) == (
                    f"a_pass is not certified: {reason or word}\n"
                    f"  rewrite   #3 of the run, at {anchor or 'no node'}"
                )
            else:
                certify._note(info, None, found)
            assert certify.findings.rewrites == [found]


def test_what_a_pass_changes_after_its_last_rewrite_is_judged() -> None:
    model = Model.from_proto(parse(SUB))
    proved, other = Certified(*NAMES, "bits"), Certified(*NAMES, "run")
    for is_undone, has_changed, kind, judged, noted in (
        (False, True, "function", proved, []),
        (False, True, "function", other, [other]),
        (False, False, "function", other, []),
        (True, True, "function", other, []),
        (False, True, "pipeline", other, []),
    ):
        certify = Certify()
        made = cast("Any", certify)
        watched = SimpleNamespace(is_undone=lambda it=is_undone: it,
                                  has_changed=lambda it=has_changed: it)  # fmt: skip
        made._watched[model], made._open = watched, [0, 0]
        made._judged = lambda *_, it=judged: it
        certify.run_after_pass(model, info_of(kind=kind))
        assert (certify.findings.rewrites, certify._open) == (noted, [0])
        certify.run_before_pass(model, info_of())
        assert certify._open == [0, len(noted)]
        assert (made._watched[model] is watched) == (not is_undone)
        certify.exit_pass_ctx()
        certify.run_after_pass(model, info_of())
        assert (certify.findings.rewrites, certify._open) == (noted, [0])


def test_a_rewrite_after_edits_that_were_undone_is_not_proved() -> None:
    model, certify = Model.from_proto(parse(SUB)), Certify()
    made = cast("Any", certify)
    watched = SimpleNamespace(is_undone=lambda: True)
    made._watched[model] = watched
    record = SimpleNamespace(number=3, law="a law", node_name="n")
    certify.on_rewrite(model, info_of(), cast("Any", record))
    (found,) = certify.findings.rewrites
    assert (found.word, found.reason) == ("unproved", "edits before it were undone")
    assert (found.number, found.law, found.anchor) == (3, "a law", "n")
    assert made._watched[model] is not watched
