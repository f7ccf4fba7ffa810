import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.extensions.debug.wrong_passes import WRONG
from tests.small import failing
from tiered import (
    Graph,
    Model,
    PassContext,
    Sequential,
    Skip,
    Value,
    function_pass,
    op,
    rewrite,
    var,
)
from tiered.extensions.debug import CommandOracle, OutputOracle, Subject, bisect, reproduce
from tiered.extensions.debug.blame import Bisection
from tiered.extensions.debug.recorder import History
from tiered.extensions.debug.resume_file import ResumeFile
from tiered.graph.core.types import tensor_type
from tiered.passes.interface.pass_info import PassInfo
from tiered.runtime import Numerics
from tiered.support.errors import UsageError
from tiered.testing import parse
from tiered.verify.custom_ops import using

# A chain of Subs whose operands the pass swaps only from the fourth on.
CHAIN = "(float[4] x) => (float[4] y) <float[4] w = {{1,2,3,4}}> {{ {body} }}"


def chain(length: int) -> onnx.ModelProto:
    nodes = ["[n0] v0 = Sub(x, w)"]
    nodes += [f"[n{i}] v{i} = Sub(v{i - 1}, w)" for i in range(1, length)]
    return parse(CHAIN.format(body=" ".join([*nodes, f"y = Neg(v{length - 1})"])))


@function_pass(opt_level=1)
def negate_operands(graph: Graph, ctx: PassContext) -> None:
    """Sub(x, w) => Add(x, -w), which is the same; from n5 on w is forgotten to be negated."""
    for number, node in enumerate(graph.nodes_of("Sub")):
        with graph.rewrite("Sub(x, w) => Add(x, Neg(w))", node):
            x, w = node.inputs
            sign = w if number >= 5 else graph.op.Neg(w)
            graph.replace(node, [graph.op.Add(x, sign)])


def test_the_first_wrong_rewrite_of_a_pass_is_blamed() -> None:
    said: list[str] = []
    blame = bisect(chain(12), passes=[negate_operands], say=said.append)
    assert blame is not None
    assert (blame.number, blame.rewrites, blame.anchor) == (6, 12, "n5")
    assert blame.runs <= 7
    assert any("v5 = Sub (" in line for line in blame.before)
    assert any("= Add (" in line for line in blame.after)
    assert said[0] == "12 rewrites by 1 pass"
    assert "rewrite #6 of 12, at node 'n5'" in str(blame)


def test_a_right_pipeline_is_not_blamed() -> None:
    assert bisect(chain(4), passes=[negate_operands]) is None


def test_an_exact_pass_is_caught_although_a_later_one_promises_less() -> None:
    text = "(float[64] x) => (float[64] y) <float c = {0.7}> { a = Mul(x, c)  y = Neg(a) }"

    @rewrite(op.Mul(var.x, var.c), opt_level=1)
    def nudge(graph: Graph, x: Value, c: Value) -> Value | Skip:
        if c.const is None or c.const > np.float32(0.7):
            return Skip("done")
        value: Value = graph.op.Mul(x, np.nextafter(c.const, np.float32(1)))
        return value

    @rewrite(op.Neg(var.x), opt_level=1, numerics="reassociating")
    def loose(graph: Graph, x: Value) -> Value:
        value: Value = graph.op.Sub(np.array(0, np.float32), x)
        return value

    blame = bisect(parse(text), passes=Sequential([nudge, loose]))
    assert blame is not None
    assert blame.pass_name == "nudge"


@function_pass(opt_level=1)
def mark_relu(graph: Graph, ctx: PassContext) -> None:
    """Rename each Relu, which does no harm."""
    for node in graph.nodes_of("Relu"):
        with graph.rewrite("mark", node):
            graph.rename_node(node, f"safe_{node.label}")


@function_pass(opt_level=1)
def drop_marked(graph: Graph, ctx: PassContext) -> None:
    """Drop what is marked."""
    for node in graph.nodes_of("Relu"):
        if node.name.startswith("safe_"):
            with graph.rewrite("drop", node):
                graph.replace(node, [node.inputs[0]])


INTERACTING = """(float[4] x) => (float[4] y) {
    i = Identity(x)  [r] a = Relu(i)  [s] b = Relu(a)  j = Identity(b)  y = Neg(j) }"""


def test_rewrites_that_are_wrong_together_are_named_together() -> None:
    passes = Sequential(["eliminate_identity", mark_relu, drop_marked])
    blame = bisect(parse(INTERACTING), passes=passes, interactions=True)
    assert blame is not None
    assert (blame.pass_name, blame.anchor) == ("drop_marked", "safe_s")
    assert [needed.partition(" ")[2] for needed in blame.needs] == [
        "mark_relu at 'r'",
        "mark_relu at 's'",
        "drop_marked at 'safe_r'",
    ]


def test_a_pass_that_raises_is_blamed_without_a_search() -> None:
    blame = bisect(chain(3), passes=[failing(ValueError("no"))])
    assert blame is not None
    assert (blame.kind, blame.pass_name, blame.runs) == ("error", "failing", 0)
    assert "ValueError: no" in blame.symptom


def test_an_interrupted_search_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "verdicts.json"
    first = bisect(chain(12), passes=[negate_operands], resume=file)
    again = bisect(chain(12), passes=[negate_operands], resume=file)
    assert first is not None
    assert again is not None
    assert first.runs > 0
    assert (again.number, again.runs) == (first.number, 0)
    assert json.loads(file.read_text())["verdicts"]
    other = bisect(chain(13), passes=[negate_operands], resume=file)
    assert other is not None
    assert other.runs > 0, "another model is another search"


def test_a_command_may_be_the_judge(tmp_path: Path) -> None:
    script = tmp_path / "check.py"
    script.write_text(
        "import sys\n"
        r"sys.exit(open(sys.argv[1], 'rb').read().count(b'\"\x03Add') > 2)"
    )
    oracle = CommandOracle(f"{sys.executable} -S {script} {{}}")
    blame = bisect(chain(5), passes=[negate_operands], oracle=oracle)
    assert blame is not None
    assert blame.number == 3
    assert "ended with 1" in blame.symptom


def test_a_command_that_is_not_there_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="cannot run the check"):
        bisect(chain(2), passes=[negate_operands], oracle=CommandOracle("no-such-command {}"))


def test_a_model_that_draws_numbers_cannot_be_judged() -> None:
    text = "(float[64] x) => (float[64] y) { r = RandomNormalLike(x)  y = Add(x, r) }"
    with pytest.raises(UsageError, match="other outputs each time"):
        bisect(parse(text))


def test_the_bundle_is_cut_down_to_the_rewrite() -> None:
    oracle = OutputOracle(chain(12))
    blame = bisect(chain(12), passes=[negate_operands], oracle=oracle)
    assert blame is not None
    # Cut down, the Sub would be the first of its model, and right: the part grows until it fails.
    bundle = reproduce(Subject(chain(12), [negate_operands]), blame, oracle.sample.feeds)
    assert bundle.failure.nodes[0] <= bundle.failure.nodes[1]
    assert bundle.failure.shown
    assert bundle.after is not None


def test_large_weights_elsewhere_stay_out_of_the_bundle() -> None:
    text = """(float[2,64] x) => (float[2,64] y, float[2,64] z) {
        z = MatMul(x, w)  a = Neg(x)  [s] b = Sub(a, x)  y = Neg(b) }"""
    proto = parse(text.replace("{", "<float[64,64] w> {", 1))
    weight = onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    del proto.graph.initializer[:]
    proto.graph.initializer.append(weight)
    kept = [info for info in proto.graph.value_info if info.name != "w"]
    del proto.graph.value_info[:]
    proto.graph.value_info.extend(kept)
    swap = next(case.pass_ for case in WRONG if case.name == "swap_operands_of_sub")
    oracle = OutputOracle(proto)
    blame = bisect(proto, passes=[swap], oracle=oracle)
    assert blame is not None
    bundle = reproduce(Subject(proto, [swap]), blame, oracle.sample.feeds)
    assert not bundle.before.graph.initializer
    assert bundle.before.ByteSize() < 1000


CHOOSE = """(float[3] x, bool[3] c) => (float[3] y) {
    a = Neg(x)  b = Where(c, a, a)  d = Abs(x)  e = Add(b, d)  y = Mul(b, e) }"""
ZEROS = {"x": np.zeros(3, np.float32), "c": np.ones(3, bool)}


@rewrite(op.Where(var.c, var.x, var.x), opt_level=1)
def drop_where(graph: Graph, c: Value, x: Value) -> Value:
    """Right, though onnxruntime's Where makes +0.0 of -0.0."""
    return x


@rewrite(op.Abs(var.x), opt_level=1)
def drop_abs(graph: Graph, x: Value) -> Value:
    """Wrong for what is negative."""
    return x


def test_a_known_deviation_of_onnxruntime_blames_no_rewrite() -> None:
    said: list[str] = []
    blame = bisect(parse(CHOOSE), passes=[drop_where], inputs=[ZEROS], say=said.append)
    assert blame is None
    assert said[-1].startswith("rewrite #1 is excused: equal on onnx.reference, not on")


def test_a_wrong_rewrite_after_an_excused_one_is_found() -> None:
    ones = {"x": np.array([0, -1, 2], np.float32), "c": np.ones(3, bool)}
    passes = [drop_where, "eliminate_deadend", drop_abs]
    blame = bisect(parse(CHOOSE), passes=passes, inputs=[ZEROS, ones])
    assert blame is not None
    assert (blame.pass_name, blame.number) == ("drop_abs", blame.rewrites)


def test_the_history_tells_each_state_as_a_run_makes_it() -> None:
    path = Path(__file__).parents[3] / "examples" / "models" / "bert.ts.onnx"
    subject, history = Subject(path, settings={"opt_level": 3}), History()
    total = subject.run(instruments=[history]).rewrites
    assert history.is_whole
    oracle = OutputOracle(path, numerics=Numerics.REASSOCIATING)
    for number in (0, total // 3, total // 2, total - 1, 5):
        assert oracle.failure_of(history.model_after(number), ()) == ""
        made = subject.run(number).model.to_proto()
        ops = [
            Counter(node.op_type for node in proto.graph.node if node.op_type != "Constant")
            for proto in (made, history.model_after(number).proto)
        ]
        assert ops[0] <= ops[1]  # what is dead goes at the end of a pass


class Judge:
    """An oracle that counts operators, without a runtime.

    Args:
        most: how many of each are right.
        symptom: what it says, instead of the operators of which there are more.
        least: how many are needed.
        is_loose: whether all is right after a pass that promises less than exact outputs.
    """

    name = "operators"

    def __init__(
        self, symptom: str = "", *, least: str = "", is_loose: bool = False, **most: int
    ) -> None:
        self.most, self.symptom, self.least, self.is_loose = most, symptom, least, is_loose

    def __call__(self, model: Model, changed_by: Sequence[PassInfo]) -> str:
        counts = Counter(node.op_type for node in model.main.nodes)
        more = [f"{counts[op]} {op}" for op, most in self.most.items() if counts[op] > most]
        more += [f"no {self.least}"] if self.least and not counts[self.least] else []
        if self.is_loose and any(info.numerics is not Numerics.EXACT for info in changed_by):
            return ""
        return (self.symptom or ", ".join(more)) if more else ""


@function_pass(opt_level=1)
def fail_at_add(graph: Graph, ctx: PassContext) -> None:
    """Raise at the first Add."""
    for node in graph.nodes_of("Add"):
        with graph.rewrite("fail", node):
            raise ValueError("no\nsecond line")


@function_pass(opt_level=1)
def fail_at_last(graph: Graph, ctx: PassContext) -> None:
    """Drop each Neg, and raise."""
    for node in graph.nodes_of("Neg"):
        with graph.rewrite("drop", node):
            graph.replace(node, [node.inputs[0]])
    if graph.is_main:
        raise ValueError("too late")


@function_pass(opt_level=1)
def fail_without_neg(graph: Graph, ctx: PassContext) -> None:
    """Drop each Neg, and raise if none is left."""
    for node in graph.nodes_of("Neg"):
        with graph.rewrite("drop", node):
            graph.replace(node, [node.inputs[0]])
    if not graph.nodes_of("Neg"):
        raise ValueError("no Neg")


@function_pass(opt_level=1)
def rename_all(graph: Graph, ctx: PassContext) -> None:
    """Rename the nodes, without a rewrite of each."""
    for node in graph.nodes:
        graph.rename_node(node, f"new_{node.label}")


@function_pass(opt_level=1)
def mistype(graph: Graph, ctx: PassContext) -> None:
    """Give each Neg a wrong type."""
    for node in graph.nodes_of("Neg"):
        with graph.rewrite("a wrong type", node):
            graph.set_type(node.output, tensor_type(1, (7,)))


@rewrite(op.Neg(var.x), opt_level=1, numerics="reassociating")
def subtract(graph: Graph, x: Value) -> Value:
    """Replace a Neg by a Sub."""
    value: Value = graph.op.Sub(np.array(0, np.float32), x)
    return value


BODIES = """(float[4] x, bool c) => (float[4] y) { [s] a = Sub(x, x)
    [i] y = If(c) <then_branch = t () => (float[4] p) { [in] h = Add(a, x)  p = Neg(h) },
        else_branch = e () => (float[4] q) { [o] q = Neg(a) }> }"""
CHOSEN = Sequential(["eliminate_identity", mark_relu, drop_marked])


def transcript(
    model: onnx.ModelProto,
    passes: object,
    oracle: Judge,
    within: tuple[int, int] | None = None,
    *,
    interactions: bool = False,
) -> str:
    """Return what a search says, and the rewrite that it finds without the nodes of it."""
    said: list[str] = []
    subject = Subject(model, passes)
    memory = ResumeFile.of(None, subject, oracle)
    with using(subject.context().backend):
        search = Bisection(subject, oracle, memory, said.append, within)
        blame = search.blame(interactions=interactions)
    if blame is None:
        return "\n".join([*said, "nothing"])
    lines = [line for line in str(blame).splitlines() if line[:4] not in ("  - ", "  + ")]
    return "\n".join([*said, *lines, f"{blame.kind}: {', '.join(blame.places)}"])


def test_what_a_search_says_and_finds() -> None:
    swap: list[object] = [negate_operands]
    for model, passes, oracle, within, expected in (
        (chain(4), swap, Judge(Add=1), None, """\
4 rewrites by 1 pass
run 1: rewrites up to #4: wrong
run 2: rewrites up to #2: wrong
run 3: rewrites up to #1: right
negate_operands, rewrite #2 of 4, at node 'n1'
  law    Sub(x, w) => Add(x, Neg(w))
  wrong  2 Add
  found with 3 model runs
outputs: v1, v2, Neg_1_output_0, Add_1_output_0, Add_output_0"""),
        (chain(4), swap, Judge(Add=0), None, """\
4 rewrites by 1 pass
run 1: rewrites up to #4: wrong
run 2: rewrites up to #2: wrong
run 3: rewrites up to #1: wrong
negate_operands, rewrite #1 of 4, at node 'n0'
  law    Sub(x, w) => Add(x, Neg(w))
  wrong  1 Add
  found with 3 model runs
outputs: v0, v1, Neg_output_0, Add_output_0"""),
        (chain(4), swap, Judge(Add=4), None, """\
4 rewrites by 1 pass
run 1: rewrites up to #4: right
nothing"""),
        (chain(6), swap, Judge(Add=2), (3, 5), """\
5 rewrites by 1 pass
run 1: rewrites up to #5: wrong
run 2: rewrites up to #3: wrong
negate_operands, rewrite #3 of 5, at node 'n2'
  law    Sub(x, w) => Add(x, Neg(w))
  wrong  3 Add
  found with 2 model runs
outputs: v2, v3, Neg_2_output_0, Add_2_output_0, Add_1_output_0"""),
        (chain(6), swap, Judge(Add=5), (3, 5), """\
5 rewrites by 1 pass
run 1: rewrites up to #5: right
nothing"""),
        (chain(3), swap, Judge("cannot run: no such\nop", Add=1), None, """\
3 rewrites by 1 pass
run 1: rewrites up to #3: cannot run
run 2: rewrites up to #1: right
run 3: rewrites up to #2: cannot run
negate_operands, rewrite #2 of 3, at node 'n1'
  law    Sub(x, w) => Add(x, Neg(w))
  cannot run: no such
         op
  found with 3 model runs
cannot run: v1, v2, Neg_1_output_0, Add_1_output_0, Add_output_0"""),
        (chain(4), [*swap, fail_at_add], Judge(Add=2), None, """\
4 rewrites by 1 pass
run 1: rewrites up to #4: wrong
run 2: rewrites up to #0: right
run 3: rewrites up to #2: right
run 4: rewrites up to #3: wrong
negate_operands, rewrite #3 of 4, at node 'n2'
  law    Sub(x, w) => Add(x, Neg(w))
  wrong  3 Add
  found with 4 model runs
outputs: v2, v3, Neg_2_output_0, Add_2_output_0, Add_1_output_0"""),
        (chain(2), [*swap, fail_at_add], Judge(Add=4), None, """\
2 rewrites by 1 pass
run 1: rewrites up to #2: right
fail_at_add, rewrite #3 of 3, at node 'Add'
  law    fail_at_add
  wrong  PassError: fail_at_add failed at rewrite #3, node 'Add', of the model: ValueError: no
         second line
           changed before it by negate_operands
  found with 1 model run
error: Add_output_0"""),
        (chain(2), [fail_at_add, *swap], Judge(Add=1), None, """\
2 rewrites by 1 pass
run 1: rewrites up to #2: wrong
run 2: rewrites up to #1: right
negate_operands, rewrite #2 of 2, at node 'n1'
  law    Sub(x, w) => Add(x, Neg(w))
  wrong  2 Add
  found with 2 model runs
outputs: v1, y, Neg_1_output_0, Add_1_output_0, Add_output_0"""),
        (chain(2), [fail_at_last], Judge(Add=1), None, """\
1 rewrite by 1 pass
fail_at_last, rewrite #2 of 2
  law    fail_at_last
  wrong  PassError: fail_at_last failed at rewrite #2 of the model: ValueError: too late
  found with 0 model runs
error: v1, y"""),
        (chain(2), [*swap, fail_at_last], Judge(Neg=0), None, """\
5 rewrites by 2 passes
run 1: rewrites up to #2: wrong
run 2: rewrites up to #0: wrong
fail_at_last, rewrite #6 of 6
  law    fail_at_last
  wrong  PassError: fail_at_last failed at rewrite #6 of the model: ValueError: too late
           changed before it by negate_operands
  found with 2 model runs
error: y, Add_1_output_0"""),
        (chain(3), [*swap, mistype], Judge(), None, """\
7 rewrites by 2 passes
run 1: rewrites up to #7: right
mistype, rewrite #5 of 7, at node 'Neg'
  law    a wrong type
  wrong  output 'Neg_output_0' of 'Neg' is float[4], not float[7]
  found with 1 model run
view: Neg_output_0"""),
        (chain(3), [*swap, mistype], Judge(Add=2), None, """\
7 rewrites by 2 passes
run 1: rewrites up to #7: wrong
run 2: rewrites up to #3: wrong
run 3: rewrites up to #1: right
run 4: rewrites up to #2: right
negate_operands, rewrite #3 of 7, at node 'n2'
  law    Sub(x, w) => Add(x, Neg(w))
  wrong  3 Add
  found with 4 model runs
outputs: v2, y, Neg_2_output_0, Add_2_output_0, Add_1_output_0"""),
        (chain(3), [*swap, mistype, fail_at_add], Judge(), None, """\
7 rewrites by 2 passes
run 1: rewrites up to #7: right
fail_at_add, rewrite #8 of 8, at node 'Add'
  law    fail_at_add
  wrong  PassError: fail_at_add failed at rewrite #8, node 'Add', of the model: ValueError: no
         second line
           changed before it by negate_operands, mistype
  found with 1 model run
error: Add_output_0"""),
        (chain(3), [*swap, "eliminate_deadend", subtract], Judge(Add=1, is_loose=True), None, """\
7 rewrites by 2 passes
run 1: rewrites up to #7: right
run 2: rewrites up to #3: wrong
run 3: rewrites up to #1: right
run 4: rewrites up to #2: wrong
negate_operands, rewrite #2 of 7, at node 'n1'
  law    Sub(x, w) => Add(x, Neg(w))
  wrong  2 Add
  found with 4 model runs
outputs: v1, v2, Neg_1_output_0, Add_1_output_0, Add_output_0"""),
        (chain(3), [subtract, *swap], Judge(Add=1, is_loose=True), None, """\
5 rewrites by 2 passes
run 1: rewrites up to #5: right
nothing"""),
        (chain(3), [*swap, fail_without_neg], Judge(Add=3), None, """\
7 rewrites by 2 passes
run 1: rewrites up to #3: right
fail_without_neg, rewrite #8 of 8, at node 'Neg_2'
  law    fail_without_neg
  wrong  PassError: fail_without_neg failed at rewrite #8 of the model: ValueError: no Neg
           changed before it by negate_operands
  found with 1 model run
error: Neg_2_output_0, y"""),
        (chain(2), [fail_without_neg], Judge(Add=3), None, """\
1 rewrite by 1 pass
fail_without_neg, rewrite #2 of 2, at node 'y'
  law    fail_without_neg
  wrong  PassError: fail_without_neg failed at rewrite #2 of the model: ValueError: no Neg
  found with 0 model runs
error: v1, y"""),
        (chain(2), [rename_all, *swap], Judge(Add=0), None, """\
3 rewrites by 2 passes
run 1: rewrites up to #3: wrong
run 2: rewrites up to #1: right
run 3: rewrites up to #2: wrong
negate_operands, rewrite #2 of 3, at node 'new_n0'
  law    Sub(x, w) => Add(x, Neg(w))
  wrong  1 Add
  found with 3 model runs
outputs: v0, v1, Neg_output_0, Add_output_0"""),
        (parse(BODIES), [*swap, fail_at_add], Judge(Add=3), None, """\
1 rewrite by 1 pass
run 1: rewrites up to #1: right
fail_at_add, rewrite #2 of 2, at node 'Add'
  law    fail_at_add
  wrong  PassError: fail_at_add failed at rewrite #2, node 'Add', of the model: ValueError: no
         second line
           changed before it by negate_operands
  found with 1 model run
error: Add_output_0"""),
        (parse(BODIES), [fail_at_add], Judge(), None, """\
0 rewrites by 0 passes
fail_at_add, rewrite #1 of 1, at node 'in'
  law    fail_at_add
  wrong  PassError: fail_at_add failed at rewrite #1, node 'in', of the model: ValueError: no
         second line
  found with 0 model runs
error: y"""),
        (parse(BODIES), swap, Judge(Add=0), None, """\
1 rewrite by 1 pass
run 1: rewrites up to #1: wrong
negate_operands, rewrite #1 of 1, at node 's'
  law    Sub(x, w) => Add(x, Neg(w))
  wrong  1 Add
  found with 1 model run
outputs: y, a, h, q, Neg_output_0, Add_output_0"""),
    ):  # fmt: skip
        assert transcript(model, passes, oracle, within) == expected, (str(passes), vars(oracle))


def test_what_a_search_for_rewrites_that_go_together_says() -> None:
    assert (
        transcript(parse(INTERACTING), CHOSEN, Judge(least="Relu"), interactions=True)
        == """\
6 rewrites by 3 passes
run 1: rewrites up to #6: wrong
run 2: rewrites up to #2: right
run 3: rewrites up to #4: right
run 4: rewrites up to #5: right
run 5: rewrites #6 alone: right
run 6: rewrites #1 #2 #3 #4 #5 #6 alone: wrong
run 7: rewrites #1 #2 #6 alone: right
run 8: rewrites #3 #4 #5 #6 alone: wrong
run 9: rewrites #3 #6 alone: right
run 10: rewrites #4 #5 #6 alone: right
run 11: rewrites #4 #6 alone: right
run 12: rewrites #5 #6 alone: right
run 13: rewrites #3 #5 #6 alone: right
run 14: rewrites #3 #4 #6 alone: right
drop_marked, rewrite #6 of 6, at node 'safe_s'
  law    drop
  wrong  no Relu
  only together with
    #3 mark_relu at 'r'
    #4 mark_relu at 's'
    #5 drop_marked at 'safe_r'
  found with 14 model runs
outputs: b, y"""
    )
    assert (
        transcript(parse(INTERACTING), CHOSEN, Judge(least="Identity"), interactions=True)
        == """\
6 rewrites by 3 passes
run 1: rewrites up to #6: wrong
run 2: rewrites up to #2: wrong
run 3: rewrites up to #1: right
run 4: rewrites #2 alone: right
run 5: rewrites #1 #2 alone: wrong
eliminate_identity, rewrite #2 of 6, at node 'j'
  law    Identity(x)  =>  x
  wrong  no Identity
  only together with
    #1 eliminate_identity at 'i'
  found with 5 model runs
outputs: j, y, b"""
    )
