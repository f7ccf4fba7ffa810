"""The outputs of an If and of its branches, in step."""

from tests.small import made_by, named, parsed
from tiered.function_passes.control_flow._branches import drop_unused_outputs, replace_outputs
from tiered.graph import Model

TEXT = """(float[2] x, bool c) => (float[2] y, float[2] z) {
    p, q, r = If(c) <
        then_branch = t () => (float[2] p1, float[2] q1, float[2] r1) {
            p1 = Neg(x) q1 = Abs(x) r1 = Exp(x) },
        else_branch = e () => (float[2] p2, float[2] q2, float[2] r2) {
            p2 = Sin(x) q2 = Cos(x) r2 = Tan(x) }>
    READS }"""


def model(reads: str) -> Model:
    return parsed(TEXT.replace("READS", reads))


def shape_of(of: Model) -> tuple[list[str], list[list[str]]]:
    """Return the outputs of the If, and the operators that its branches return."""
    node = of.main.nodes_of("If")[0]
    bodies = [
        [value.producer.op_type for value in body.outputs if value.producer is not None]
        for body in node.bodies
    ]
    return [value.name for value in node.outputs if value is not None], bodies


def test_outputs_without_users_go_and_the_others_keep_their_order() -> None:
    for reads, expected in (
        ("y = Neg(p) z = Neg(r)", (["p", "r"], [["Neg", "Exp"], ["Sin", "Tan"]])),
        ("y = Neg(q) z = Neg(r)", (["q", "r"], [["Abs", "Exp"], ["Cos", "Tan"]])),
        ("y = Neg(r) z = Neg(y)", (["r"], [["Exp"], ["Tan"]])),
        ("y = Add(p, q) z = Neg(r)", (
            ["p", "q", "r"], [["Neg", "Abs", "Exp"], ["Sin", "Cos", "Tan"]],
        )),
    ):  # fmt: skip
        of = model(reads)
        drop_unused_outputs(of.main, of.main.nodes_of("If")[0])
        assert shape_of(of) == expected, reads
        of.check_view()


def test_replaced_outputs_go_and_their_users_read_the_values() -> None:
    of = model("s = Add(p, q) y = Neg(s) z = Neg(r)")
    node = of.main.nodes_of("If")[0]
    replace_outputs(of.main, node, {0: named(of, "x")})
    assert shape_of(of) == (["q", "r"], [["Abs", "Exp"], ["Cos", "Tan"]])
    assert [value and value.name for value in made_by(of, "s").inputs] == ["x", "q"]
    of.check_view()
