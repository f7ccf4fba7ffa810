"""Random graphs of tensors of several sizes, for tests of memory plans and orders."""

from hypothesis import strategies as st


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
