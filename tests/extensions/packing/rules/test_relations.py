"""The relations of results to their operands in corners of the rules, as `relations.txt` has them.

A line has the nodes that compute y, with `$name` for others from here; the next one has the
relation of y. Lines with a `#` name the module whose lines these are.
"""

from collections.abc import Iterator
from pathlib import Path
from string import Template

from tests.extensions.packing.relations import PLACES, relation_of
from tests.recorded import assert_recorded

SIZES = "s = Shape(x) b = Slice(s, l0, l1) n = Slice(s, l1, l2) "
SCORES = "k = Transpose<perm=[0,2,1]>(x) sc = MatMul(x, k) "
NAMES = {
    "places": PLACES,
    "sizes": SIZES,
    "scores": SCORES,
    "weights": SCORES + "p = Softmax(sc) ",
    "first": "t = Gather<axis=1>(x, zero) ",
    "ints": "i = Cast<to=7>(x) ",
    "flat": "flat = Constant<value_ints=[-1,4]>() f = Reshape(x, flat) ",
    "beside": f"""{SIZES} split = Constant<value_ints=[0,0,2,2]>() h = Reshape(x, split)
        q = Transpose<perm=[0,2,1,3]>(h) to = Concat<axis=0>(m1, n, l2) q3 = Reshape(q, to)""",
    "positions": f"""{PLACES} u = Unsqueeze(at, l1) g = Cast<to=1>(u) e = Unsqueeze(w, l0)
        pos = MatMul(g, e)""",
    "triple": """u = Unsqueeze(at, l1) d = Sub(u, at) d2 = Unsqueeze(d, l0)
        d3 = Unsqueeze(d, l2)""",
    "both": f"""{PLACES} row = Unsqueeze(rows, l1) column = Unsqueeze(at, l0)
        size = Slice(s, l0, l2) r = Expand(row, size) c = Expand(column, size)
        r1 = Unsqueeze(r, l2) c1 = Unsqueeze(c, l2)""",
    "chosen": f"""{PLACES} e = ArgMax<axis=1, keepdims=0>(ids) row = Unsqueeze(rows, m1)
        c = Unsqueeze(e, m1)""",
    "row_major": f"""{PLACES} flat = Constant<value_ints=[-1]>() f2 = ReduceMax<keepdims=0>(x, l2)
        f = Reshape(f2, flat)""",
}
INPUTS = (
    "float[B,S,4] x, int64[B,S] ids, int64[1,1] z, int64[N] unknown, int64[1] other, float m, "
    "int64[1,1,2] fixed, float[] any, float[2,S,4] pair, float[1,N,4] named"
)


def _relations(_: str, below: list[str]) -> Iterator[str]:
    nodes = ""
    for line in below:
        if line.startswith("  "):
            text = Template(nodes).substitute(NAMES)
            found = relation_of(text, INPUTS, packed=("x", "ids", "pair"))
            yield f"  {found or 'scalar'}"
        else:
            nodes = line
            yield line


def test_relations_are_as_they_are_written_down() -> None:
    assert_recorded(Path(__file__).with_name("relations.txt"), {"#": _relations})
