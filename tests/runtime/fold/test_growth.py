"""What folding adds to a model: no more than it may, and in a second run nothing."""

from collections.abc import Callable
from random import Random

from hypothesis import HealthCheck, given, settings, strategies as st
from onnx import ModelProto

import tiered
from tests.conformance.judge import canonical_bytes
from tiered import Model, Sequential
from tiered.testing import parse

LIMIT = 4096
LENGTHS = (3, 40, 120, 300, 500, 700, 1000, 1030, 2000, 90_000)
KINDS = ("fill", "fill", "range", "count", "tile", "double", "join", "slice", "narrow", "read")

_fold = Sequential(["infer_shapes", "fold_constant"])


def _optimize(model: ModelProto) -> ModelProto:
    made = tiered.optimize(model, opt_level=2)
    assert isinstance(made, ModelProto)
    return made


def random_model(random: Random) -> ModelProto:
    """Return a model of constants that grow: some small, some of about 4 KiB, some large."""
    constants: list[str] = []
    lines: list[str] = []
    floats: list[str] = []

    def number(value: int, dims: str = "[1]") -> str:
        constants.append(f"int64{dims} k{len(constants)} = {{{value}}}")
        return f"k{len(constants) - 1}"

    def add(expression: str) -> str:
        lines.append(f"v{len(lines)} = {expression}")
        return f"v{len(lines) - 1}"

    def grow(kind: str) -> None:
        length = random.choice(LENGTHS)
        if kind == "fill" or not floats:
            floats.append(add(f"ConstantOfShape({number(length)})"))
            return
        known, other = random.choice(floats), random.choice(floats)
        if kind == "range":
            ends = ", ".join(number(end, "") for end in (0, length, 1))
            floats.append(add(f"Cast<to=1>({add(f'Range({ends})')})"))
        elif kind == "count":
            found = add(f"Cast<to=1>({add(f'NonZero({known})')})")
            floats.append(add(f"Reshape({found}, {number(-1)})"))
        elif kind == "tile":
            floats.append(add(f"Tile({known}, {number(random.choice((2, 3, 10)))})"))
        elif kind in ("double", "join"):
            second = known if kind == "double" else other
            floats.append(add(f"Concat<axis=0>({known}, {second})"))
        elif kind == "slice":
            floats.append(add(f"Slice({known}, {number(0)}, {number(length)})"))
        elif kind == "narrow":
            negated = add(f"Neg({add(f'Cast<to=10>({known})')})")
            floats.append(add(f"Cast<to=1>({negated})"))

    outputs: list[str] = []
    for kind in (*random.choices(KINDS, k=random.randint(2, 14)), "read"):
        if kind == "read" and floats:
            lines.append(f"y{len(outputs)} = Add(x, {random.choice(floats)})")
            outputs.append(f"float[N{len(outputs)}] y{len(outputs)}")
        else:
            grow(kind)
    return parse(
        f"(float[1] x) => ({', '.join(outputs)}) <{', '.join(constants)}> {{ {' '.join(lines)} }}"
    )


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30))
def test_what_grows_is_bounded_and_a_second_run_folds_no_more(seed: int) -> None:
    model = random_model(Random(seed))
    for optimize in (_fold, _optimize):
        check(model, optimize)


def check(model: ModelProto, optimize: Callable[[ModelProto], ModelProto]) -> None:
    before = Model.from_proto(model).nbytes
    once = optimize(model)
    after = Model.from_proto(once).nbytes
    assert after <= before + max(LIMIT, before // 100)
    assert canonical_bytes(optimize(once)) == canonical_bytes(once)
