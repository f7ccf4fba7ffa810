"""Random graphs of tensors of several sizes, for tests of memory plans and orders."""

import random
from collections.abc import Iterator

from hypothesis import strategies as st

from tiered import Model
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory.liveness import Planner
from tiered.extensions.memory.order_problem import Stretch, stretch_of
from tiered.testing import parse


@st.composite
def sized_graphs(draw: st.DrawFn, nodes: int = 8) -> str:
    """Return the text of a random graph: operators that keep, grow or shrink, and views."""
    sizes, lines = {"x": 2}, []
    for at in range(draw(st.integers(1, nodes))):
        one = draw(st.sampled_from(sorted(sizes)))
        name, size = f"v{at}", sizes[one]
        kind = draw(st.sampled_from(("keep", "sum", "concat", "reduce", "view", "softmax")))
        alike = [each for each in sorted(sizes) if sizes[each] == size]
        other = draw(st.sampled_from(alike))
        if kind == "sum":
            lines.append(f"{name} = Add({one}, {other})")
        elif kind == "concat" and size < 16:
            lines.append(f"{name} = Concat<axis=0>({one}, {other})")
            size *= 2
        elif kind == "reduce" and size > 1:
            lines.append(f"{name} = ReduceMean({one}, zero)")
            size = 1
        elif kind == "view":
            lines.append(f"{name} = Reshape({one}, all)")
        else:
            lines.append(f"{name} = {'Softmax' if kind == 'softmax' else 'Relu'}({one})")
        sizes[name] = size
    names = sorted(name for name in sizes if name != "x")
    outputs = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    shown = ", ".join(f"float[{sizes[name]}] {name}" for name in outputs)
    return (
        f"(float[2] x) => ({shown}) <int64[1] zero = {{0}}, int64[1] all = {{-1}}> "
        f"{{ {' '.join(lines)} }}"
    )


def drawn_graph(seed: int, nodes: int) -> Model:
    """Return a graph whose operators keep, grow, shrink or join tensors, and views."""
    draw, sizes, lines = random.Random(seed), {"x": 4}, list[str]()
    for at in range(nodes):
        one = draw.choice(sorted(sizes)[-6:])
        name, size, kind = f"v{at:02}", sizes[one], draw.randrange(6)
        other = draw.choice([each for each in sorted(sizes) if sizes[each] == size])
        if kind == 0:
            lines.append(f"{name} = Add({one}, {other})")
        elif kind == 1 and size < 64:
            lines.append(f"{name} = Concat<axis=0>({one}, {other}, {one})")
            size *= 3
        elif kind == 2:
            lines.append(f"{name} = ReduceMean({one}, zero)")
            size = 1
        elif kind == 3:
            lines.append(f"{name} = Reshape({one}, all)")
        else:
            lines.append(f"{name} = {('Softmax', 'Relu')[kind % 2]}({one})")
        sizes[name] = size
    used = {each for line in lines for each in sizes if f"({each}," in line or f"({each})" in line
            or f", {each})" in line}  # fmt: skip
    outputs = [each for each in sizes if each not in used]
    shown = ", ".join(f"float[{sizes[each]}] {each}" for each in outputs)
    return Model.from_proto(parse(
        f"(float[4] x) => ({shown}) <int64[1] zero = {{0}}, int64[1] all = {{-1}}> "
        f"{{ {' '.join(lines)} }}"
    ))  # fmt: skip


def fan_out(users: int) -> Model:
    """Return a model that reads one tensor so many times, and adds the results up."""
    made = [f"m{at}" for at in range(users)]
    lines = " ".join(f"{name} = Mul(a, c)" for name in made)
    return Model.from_proto(parse(
        "(float[8,4] x) => (float[8,4] y) <float c = {2}>"
        f" {{ a = Relu(x) {lines} y = Sum({', '.join(made)}) }}"
    ))  # fmt: skip


ATTENTION = """(float[8,4] q, float[4,64] k, float[64,4] v) => (float[8,4] y)
    { s = MatMul(q, k)  p = Softmax<axis=-1>(s)  y = MatMul(p, v) }"""


def stretch(model: Model) -> Stretch:
    """Return the main graph of a model as a stretch, with views and in-place operators."""
    order = model.main.topological_order()
    planner = Planner(LayoutSizes(), views=True, in_place=True)
    return stretch_of(model.main, order, planner)


def orders(whole: Stretch, done: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield all topological orders."""
    if len(done) == len(whole):
        yield done
    for at, step in enumerate(whole.steps):
        if at not in done and all(each in done for each in step.before):
            yield from orders(whole, (*done, at))
