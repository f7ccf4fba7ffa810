"""What differs after random edits of random models, as `random_differences.txt` has it."""

import random
from typing import Any

import onnx

import tiered
from tests.extensions.differences.test_model_diff import told
from tests.recorded import assert_values
from tiered.testing import parse

UNARY = ("Neg", "Abs", "Relu", "Exp", "Sin", "Tanh")
BINARY = ("Add", "Sub", "Mul", "Max")
WEIGHTS = 6


def drawn(draw: random.Random, nodes: int) -> list[list[str]]:
    """Return nodes as their output, label, operator, and operands."""
    lines = list[list[str]]()
    names = ["x", "z"]
    for at in range(nodes):
        near = names[-5:]
        kind = draw.randrange(5)
        name = f"v{at}"
        if kind < 2:
            lines.append([name, f"n{at}", draw.choice(UNARY), draw.choice(near)])
        elif kind == 2:
            one, other = draw.choice(near), draw.choice(names)
            lines.append([name, f"n{at}", draw.choice(BINARY), one, other])
        elif kind == 3:
            weight = f"w{draw.randrange(WEIGHTS)}"
            lines.append([name, f"n{at}", draw.choice(BINARY), draw.choice(near), weight])
        else:
            axis = f"LeakyRelu<alpha=0.{draw.randrange(1, 4)}>"
            lines.append([name, f"n{at}", axis, draw.choice(near)])
        names.append(name)
    return lines


def edit(draw: random.Random, lines: list[list[str]], how: str) -> None:
    """Edit nodes in place."""
    at = draw.randrange(len(lines))
    line = lines[at]
    if how == "operator":
        line[2] = draw.choice([each for each in (BINARY if len(line) > 4 else UNARY)
                               if each != line[2]])  # fmt: skip
    elif how == "swap":
        pairs = [each for each in lines if len(each) > 4]
        if pairs:
            chosen = draw.choice(pairs)
            chosen[3:] = chosen[:2:-1]
    elif how == "insert":
        new = [f"i{len(lines)}", f"m{len(lines)}", draw.choice(UNARY), line[3]]
        lines.insert(at, new)
        line[3] = new[0]
    elif how == "remove" and at + 1 < len(lines):
        del lines[at]
        for each in lines:
            each[3:] = [line[3] if name == line[0] else name for name in each[3:]]
    elif how == "values":
        new_names = {each[0]: f"u{place}" for place, each in enumerate(lines[:-1], 10)}
        for each in lines:
            each[0] = new_names.get(each[0], each[0])
            each[3:] = [new_names.get(name, name) for name in each[3:]]
    elif how == "labels":
        for place, each in enumerate(lines):
            each[1] = f"l{place}"
    elif how == "weights":
        for each in lines:
            each[3:] = [f"k{name[1:]}" if name[0] == "w" else name for name in each[3:]]


def model_of(lines: list[list[str]]) -> onnx.ModelProto:
    prefix = "k" if any(name[0] == "k" for each in lines for name in each[3:]) else "w"
    numbers = [",".join(str(at * 16 + place) for place in range(16)) for at in range(WEIGHTS)]
    weights = [f"float[16] {prefix}{at} = {{{numbers[at]}}}" for at in range(WEIGHTS - 2)]
    weights += [f"float[1] {prefix}{at} = {{{at}}}" for at in range(WEIGHTS - 2, WEIGHTS)]
    nodes = " ".join(
        f"[{label}] {name} = {operator}({', '.join(operands)})"
        for name, label, operator, *operands in lines
    )
    last, used = lines[-1][0], {name for each in lines for name in each[3:]}
    outputs = [each[0] for each in lines if each[0] not in used and each[0] != last] + [last]
    shown = ", ".join(f"float[16] {each}" for each in outputs)
    return parse(f"(float[16] x, float[16] z) => ({shown}) <{', '.join(weights)}> {{ {nodes} }}")


def edited(seed: int, nodes: int, *edits: str) -> None:
    """Print what differs after some edits."""
    draw = random.Random(seed)
    lines = drawn(draw, nodes)
    before = model_of(lines)
    after = [[*line] for line in lines]
    for how in edits:
        edit(draw, after, how)
    print(told(tiered.diff(before, model_of(after))))


def others(seed: int, nodes: int) -> None:
    """Print what differs between two models that have nothing to do with each other."""
    one, two = (model_of(drawn(random.Random(seed + at), nodes)) for at in (0, 1))
    print(told(tiered.diff(one, two)))


def test_differences_are_as_they_are_written_down() -> None:
    shown: dict[str, Any] = {"edited": edited, "others": others}
    assert_values(__file__, shown)
