import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.extensions.debug.wrong_passes import WRONG
from tests.small import failing
from tiered import Graph, PassContext, Sequential, Skip, Value, function_pass, op, rewrite, var
from tiered.extensions.debug import CommandOracle, OutputOracle, Subject, bisect, reproduce
from tiered.extensions.debug.recorder import History
from tiered.runtime import Numerics
from tiered.support.errors import UsageError
from tiered.testing import parse

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
