"""Gradients of RNN, GRU and LSTM."""

import numpy as np
import pytest

from tests.extensions.gradients.differences import check
from tiered import get_pass
from tiered.extensions.gradients import NoGradient
from tiered.testing import parse


def recurrent(operator: str, gates: int, settings: str = "", directions: int = 1) -> str:
    cell = f", float[{directions},2,3] c" if operator == "LSTM" else ""
    return f"""(float[4,2,2] x, float[{directions},{3 * gates},2] w,
        float[{directions},{3 * gates},3] r, float[{directions},{6 * gates}] b,
        float[{directions},2,3] h {cell}) => (float[4,{directions},2,3] y,
        float[{directions},2,3] last) {{
            y, last = {operator} <hidden_size = 3 {settings}>
                (x, w, r, b, "", h {", c" if cell else ""}) }}"""


@pytest.mark.parametrize(
    "text",
    [recurrent("RNN", 1), recurrent("GRU", 3), recurrent("GRU", 3, ", linear_before_reset = 1"),
     recurrent("LSTM", 4), recurrent("LSTM", 4, ', direction = "reverse"'),
     recurrent("LSTM", 4, ', direction = "bidirectional"', 2)],
    ids=["rnn", "gru", "gru linear", "lstm", "reverse", "bidirectional"],
)  # fmt: skip
def test_recurrent_operators(text: str) -> None:
    check(text, in_float=True, low=-0.6, high=0.6)


def test_an_lstm_with_peepholes() -> None:
    check(
        "(float[4,2,2] x, float[1,12,2] w, float[1,12,3] r, float[1,9] p) => (float[4,1,2,3] y) "
        '{ y = LSTM <hidden_size = 3> (x, w, r, "", "", "", "", p) }',
        in_float=True,
    )


@pytest.mark.parametrize("operator", ["RNN", "GRU", "LSTM"])
def test_sequences_of_several_lengths(operator: str) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[operator]
    text = recurrent(operator, gates, ', direction = "bidirectional"', 2)
    text = text.replace('"", h', "n, h").replace("(float[4,2,2] x,", "(float[4,2,2] x, int32[2] n,")
    check(text, in_float=True, low=-0.6, high=0.6, feeds={"n": np.array([2, 4])})


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("clip = 0.5", "clip has no rule"),
        ("input_forget = 1", "input_forget has no rule"),
        ('activations = ["Relu", "Tanh", "Tanh"]', "its activations are"),
    ],
)
def test_forms_of_an_lstm_that_have_no_rule(settings: str, reason: str) -> None:
    proto = parse(recurrent("LSTM", 4, f", {settings}"))
    with pytest.raises(NoGradient, match=reason):
        get_pass("gradient", of=["y"], seed="ones")(proto)
