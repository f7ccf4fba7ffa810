"""Attention as exporters write it: scales, masks, heads and caches, and why it is none."""

from collections.abc import Mapping

import pytest

from tests.small import made_by, named, parsed
from tiered import DataType
from tiered.graph import Model
from tiered.graph.core.types import Dim, TensorType
from tiered.rewriter import Match, Skip, compile_pattern, match_node, var
from tiered.rewriter.idioms.attention import (
    AttentionOfHeads,
    attention_of_heads,
    attention_pattern,
    attention_scale,
    cache_of_heads,
    heads_pattern,
    is_attention_mask,
    mask_values,
    may_hide_rows,
    nan_of_hidden_rows,
    of_mask,
    split_scale,
    transposed_keys,
)

STOCK = """float c = {0.5}, float[1,1,1,1] four = {0.5}, float[1,1,1,1,1] five = {0.5},
    float zero = {0}, float minus = {-1}, float large = {inf}, float nan = {nan},
    float[2] two = {1,2}, int64[4] heads = {0,0,2,4}, int64[3] whole = {0,0,8},
    int64[3] copies = {0,0,0}, int64[1] axis = {2}"""


def of(nodes: str, inputs: str = "float[2,3] x, float[2,3] z", more: str = "") -> Model:
    dtype = "float16" if "float16" in inputs else "float"
    return parsed(f"({inputs}) => ({dtype}[?,?,?] y) <{STOCK}{more}> {{ {nodes} }}")


# --- scales ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "divisor", "expected"),
    [
        (None, None, 1.0),
        ("c", None, 0.5),
        (None, "c", 2.0),
        ("four", None, 0.5),
        ("five", None, None),
        ("zero", None, None),
        (None, "zero", None),
        ("minus", None, None),
        ("large", None, None),
        ("nan", None, None),
        ("two", None, None),
        ("x", None, None),
    ],
)
def test_a_scale_is_one_positive_number(
    factor: str | None, divisor: str | None, expected: float | None
) -> None:
    model = of("y = Neg(x)")
    values = [None if name is None else named(model, name) for name in (factor, divisor)]
    found = attention_scale(*values)
    if expected is None:
        assert str(found) == "the scale is not one positive number"
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("nodes", "source", "scale"),
    [
        ("k = Mul(x, c) y = Neg(k)", "x", 0.5),
        ("k = Mul(c, x) y = Neg(k)", "x", 0.5),
        ("k = Add(x, c) y = Neg(k)", "k", 1.0),
        ("k = com.microsoft.Mul(x, c) y = Neg(k)", "k", 1.0),
        ("k = Mul(x, c) y = Add(k, k)", "k", 1.0),
        ("k = Mul(x, z) y = Neg(k)", "k", 1.0),
        ("k = Mul(x, four) y = Neg(k)", "k", 1.0),  # it adds axes
        ("k = Mul(x, minus) y = Neg(k)", "k", 1.0),
        ("k = Mul(zero, c) y = Add(x, k)", "zero", 0.5),
    ],
)
def test_a_scale_of_a_value_is_split_off(nodes: str, source: str, scale: float) -> None:
    model = of(nodes)
    x, found = split_scale(named(model, "k"))
    assert (x.name, found) == (source, scale)
    assert split_scale(named(model, "x")) == (named(model, "x"), 1.0)


@pytest.mark.parametrize(
    ("perm", "expected"),
    [([0, 1, 3, 2], None), ([0, 2, 3, 1], (0, 2, 1, 3)), ([2, 0, 3, 1], (2, 0, 1, 3))],
)
def test_the_keys_are_upright_again(perm: list[int], expected: tuple[int, ...] | None) -> None:
    model = of(f"k = Transpose<perm={perm}>(x) y = Neg(k)", "float[2,3,4,5] x")
    made = transposed_keys(model.main, named(model, "k"))
    if expected is None:
        assert made is named(model, "x")
    else:
        assert made.producer is not None
        assert made.producer.perm == expected
        assert made.producer.inputs[0] is named(model, "x")


def test_keys_that_nothing_transposed_are_transposed() -> None:
    model = of("y = Neg(x)", "float[2,3,4,5] x")
    for name in "xy":
        made = transposed_keys(model.main, named(model, name))
        assert made.producer is not None
        assert made.producer.perm == (0, 1, 3, 2)


# --- masks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ("B,2,S,T", True),
        ("1,2,S,T", True),
        ("B,1,S,T", True),
        ("1,1,S,T", True),
        ("2,1,S,T", False),
        ("B,3,S,T", False),
        ("B,2,S,1", False),
        ("B,2,T,S", False),
        ("2,S,T", False),
        ("", False),
    ],
)
def test_a_mask_broadcasts_along_batches_and_heads_alone(dims: str, expected: bool) -> None:
    model = parsed(f"(float[{dims}] m) => (float[{dims}] y) {{ y = Neg(m) }}")
    assert is_attention_mask(named(model, "m"), ("B", 2), ("S", "T")) is expected


def test_a_mask_of_unknown_queries_is_none() -> None:
    model = parsed("(float[B,2,?,?] m) => (float[?] z) { y = Neg(m) z = Neg(y) }")
    mask = named(model, "y")
    model.main.set_type(mask, TensorType(DataType.FLOAT, ("B", 2, None, None)))
    assert not is_attention_mask(mask, ("B", 2), (None, None))


def test_the_numbers_of_a_mask_are_those_of_its_constants() -> None:
    model = of("w = Where(b, c, two) n = Neg(two) p = Where(b, x, two) y = Neg(n)",
               "bool[2] b, float[2] x")  # fmt: skip
    found = {name: mask_values(named(model, name)) for name in ("two", "w", "n", "p", "x")}
    numbers = {name: None if each is None else each.tolist() for name, each in found.items()}
    assert numbers == {"two": [1, 2], "w": [0.5, 1, 2], "n": None, "p": None, "x": None}


def test_the_constants_of_a_mask_are_found_through_operators_of_masks() -> None:
    nodes = """a = Add(two, c) s = Slice(a, axis, axis, , axis) u = Unsqueeze(s, axis) e = Exp(zero)
        v = own.Add(minus) p = Add(e, v) r = Add(p, two) w = Where(b, u, r) y = Neg(w)"""
    found = [value.name for value in of_mask(named(of(nodes, "bool[2] b"), "w"))]
    assert sorted(found) == ["axis", "c", "two"]


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("float[2,2] m = {-inf,0,0,-inf}", False),
        ("float[2,2] m = {-inf,-inf,0,0}", True),
        ("float[2] m = {0,0}", False),
        ("float[2] m = {inf,inf}", False),
        ("int64[2] m = {0,0}", False),
    ],
)
def test_a_constant_mask_hides_rows_that_are_all_infinite(mask: str, expected: bool) -> None:
    model = parsed(f"(float x) => (float y) <{mask}> {{ y = Neg(x) u = Neg(m) }}")
    assert may_hide_rows(named(model, "m")) is expected


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("m = Where(b, zero, low)", True),
        ("m = Where(b, zero, minus)", False),
        ("m = Add(x, low)", True),
        ("m = Exp(low)", False),
        ("m = Identity(x)", False),
        ("i = Cast<to=7>(x) k = Equal(i, axis) m = Where(k, zero, minus)", False),
        ("k = Equal(t, word) m = Where(k, zero, minus)", False),
    ],
)
def test_a_computed_mask_may_hide_rows_if_a_constant_is_infinite(
    nodes: str, expected: bool
) -> None:
    more = ', float low = {-inf}, string word = {"a"}'
    model = of(f"{nodes} y = Neg(m)", "bool[2] b, float[2] x, string[2] t", more)
    assert may_hide_rows(named(model, "m")) is expected


@pytest.mark.parametrize("dtype", ["float", "float16"])
def test_hidden_rows_become_nan(dtype: str) -> None:
    model = parsed(f"({dtype}[1,1,3,4] m) => ({dtype}[1,1,3,1] y) {{ y = ReduceMax(m) }}")
    made = nan_of_hidden_rows(model.main, named(model, "m"))
    assert made.shape == (1, 1, 3, 1)
    assert made.dtype == named(model, "m").dtype
    kinds = [node.op_type for node in model.main.topological_order()]
    assert kinds.count("Cast") == (2 if dtype == "float16" else 0)
    subtraction = model.main.nodes_of("Sub")[0]
    assert subtraction.inputs[0] is subtraction.inputs[1]
    largest = subtraction.inputs[0]
    assert largest is not None
    assert largest.producer is not None
    assert (largest.producer.op_type, largest.producer.attr("keepdims")) == ("ReduceMax", 1)


# --- heads ----------------------------------------------------------------------------------------

INPUTS = "float[B,S,8] q, float[B,T,8] k, float[B,T,8] v"
Q = "q1 = Reshape(q, heads) q2 = Transpose<perm=[0,2,1,3]>(q1)"
K = "k1 = Reshape(k, heads) k2 = Transpose<perm=[0,2,3,1]>(k1)"
V = "v1 = Reshape(v, heads) v2 = Transpose<perm=[0,2,1,3]>(v1)"
SCORES = "s = MatMul(q2, k2) p = Softmax(s)"
END = "o = MatMul(p, v2) t = Transpose<perm=[0,2,1,3]>(o) y = Reshape(t, whole)"


def heads(
    nodes: str,
    inputs: str = INPUTS,
    more: str = "",
    shapes: Mapping[str, tuple[Dim, ...]] | None = None,
) -> AttentionOfHeads | str:
    """Return the parts of the attention that y ends, or why it is none."""
    model = of(nodes, inputs, more)
    for name, shape in (shapes or {}).items():
        model.main.set_type(named(model, name), TensorType(DataType.FLOAT, shape))
    node = made_by(model, "y")
    found = match_node(compile_pattern(heads_pattern()), node)
    assert isinstance(found, Match), found
    bound = found.bindings
    scales = (bound["before"], bound["factor"], bound["divisor"])
    parts = attention_of_heads(
        node, bound["queries"], bound["keys"], bound["v"], bound["mask"], bound["unseen"], scales
    )
    return str(parts) if isinstance(parts, Skip) else parts


def test_an_attention_of_heads_has_its_parts() -> None:
    found = heads(f"{Q} {K} {V} {SCORES} {END}")
    assert isinstance(found, AttentionOfHeads)
    names = [value.name for value in (found.q, found.keys, found.v)]
    assert names == ["q", "k2", "v2"]
    assert (found.mask, found.number, found.scale, found.shape) == (None, 2, 1.0, None)
    assert found.before_split is not None
    assert [value.name for value in found.before_split] == ["k", "v"]


def test_all_scales_are_multiplied() -> None:
    nodes = f"""{Q} {K} {V} q3 = Mul(q2, c) k3 = Mul(k2, c) s = MatMul(q3, k3) d = Div(s, c)
        p = Softmax<axis=3>(d) {END}"""
    found = heads(nodes)
    assert isinstance(found, AttentionOfHeads)
    assert found.scale == 0.5
    assert found.keys.name == "k2"


def test_a_mask_and_its_hidden_rows() -> None:
    seen = "s = MatMul(q2, k2) a = Add(s, m) w = Softmax(a) n = IsNaN(w) p = Where(n, zero, w)"
    masked = "s = MatMul(q2, k2) a = Add(s, m) p = Softmax(a)"
    inputs = f"{INPUTS}, float[B,1,S,T] m"
    found = heads(f"{Q} {K} {V} {masked} {END}", inputs)
    assert isinstance(found, AttentionOfHeads)
    assert found.mask is not None
    because = "fully masked queries yield zeros"
    assert heads(f"{Q} {K} {V} {seen} {END}", inputs) == because
    finite = f"{Q} {K} {V} {seen.replace('Add(s, m)', 'Add(s, low)')} {END}"
    static = "float[1,1,8] q, float[1,1,8] k, float[1,1,8] v"
    low = ", float[1,1,1,1] low = {-1e9}"
    assert isinstance(heads(finite, static, low), AttentionOfHeads)
    assert heads(finite, static, low.replace("-1e9", "-inf")) == because


def test_a_final_shape_that_is_not_known_is_copied() -> None:
    inputs = "float[B,S,8] q, float[B,T,8] k, float[B,T,W] v"
    v = V.replace("heads", "split")
    split = ", int64[4] split = {0,0,2,-1}, int64[3] rest = {0,0,-1}"
    nodes = f"{Q} {K} {v} {SCORES} {END.replace('whole', 'rest')}"
    found = heads(nodes, inputs, split)
    assert isinstance(found, AttentionOfHeads)
    assert found.shape is not None
    assert found.shape.name == "rest"
    assert found.before_split is None
    because = "the final Reshape depends on the sizes of heads"
    assert heads(nodes.replace("Reshape(t, rest)", "Reshape(t, copies)"), inputs, split) == because


@pytest.mark.parametrize(
    ("was", "has", "because"),
    [
        ("Transpose<perm=[0,2,1,3]>(q1)", "Transpose<perm=[0,2,1,3]>(q1)", None),
        ("Reshape(q, heads)", "Reshape(q, n)", "number and size of heads are not known"),
        ("Reshape(v, heads)", "Reshape(v, n)", "batch or head counts may differ"),
        ("MatMul(q2, k2)", "MatMul(q2, k9)", "keys and values may be of different lengths"),
        ("Softmax(s)", "Softmax(s2)", "the scale is not one positive number"),
        ("Softmax(s)", "Softmax(s3)", "the mask is not [batch, heads, queries, keys]"),
        ("MatMul(p, v2)", "MatMul(p, v9)", "batch or head counts may differ"),
        ("MatMul(p, v2)", "MatMul(p, v5)", "batch or head counts may differ"),
        ("MatMul(p, v2)", "MatMul(p, vu)", "batch or head counts may differ"),
        ("MatMul(q2, k2)", "MatMul(q2, kd)", "keys and values may be of different lengths"),
        ("Reshape(q, heads)", "Reshape(q, some)", "number and size of heads are not known"),
        ("Reshape(q, heads)", "Reshape(q, of4)", "number and size of heads are not known"),
        ("Reshape(t, whole)", "Reshape(t, n)", "the final Reshape depends on the sizes of heads"),
    ],
)
def test_why_it_is_no_attention_of_heads(was: str, has: str, because: str | None) -> None:
    inputs = f"""{INPUTS}, int64[4] n, float[B,2,4,U] k9, float[B,3,T,4] v9, float[T] m,
        float[B,2,1,T,4] v5, float[] vu, float[B,2,D,T] kd"""
    if has in ("Reshape(q, some)", "Reshape(q, of4)"):
        inputs = inputs.replace("float[B,S,8] q", "float[B,S,C] q")
    before = {"Softmax(s2)": "s2 = Mul(s, minus) ", "Softmax(s3)": "s3 = Add(s, m) "}.get(has, "")
    scores = SCORES.replace("p = ", before + "p = ")
    more = ", int64[4] some = {0,0,2,-1}, int64[4] of4 = {0,0,-1,4}"
    found = heads(f"{Q} {K} {V} {scores} {END}".replace(was, has), inputs, more)
    assert isinstance(found, AttentionOfHeads) if because is None else found == because


def test_dims_that_are_not_known_may_differ() -> None:
    unknown: dict[str, tuple[Dim, ...]] = {
        "q": (None, "S", 8), "q2": (None, 2, "S", 4), "k2": (None, 2, 4, "T"),
        "v2": (None, 2, "T", 4),
    }  # fmt: skip
    rows: list[tuple[dict[str, tuple[Dim, ...]], str]] = [
        (unknown, "batch or head counts may differ"),
        (
            {"k2": ("B", 2, 4, None), "v2": ("B", 2, None, 4)},
            "keys and values may be of different lengths",
        ),
        ({"v2": ("B", 2, "T", None)}, "the final Reshape depends on the sizes of heads"),
    ]
    for shapes, because in rows:
        nodes = f"q = Neg(x) {Q} {K} {V} {SCORES} {END}"
        assert heads(nodes, INPUTS.replace("] q", "] x"), shapes=shapes) == because, shapes


def test_a_final_shape_other_than_merged_heads_is_copied() -> None:
    halves = ", int64[3] halves = {0,-1,4}"
    found = heads(f"{Q} {K} {V} {SCORES} {END.replace('whole', 'halves')}", more=halves)
    assert isinstance(found, AttentionOfHeads)
    assert found.shape is not None
    assert found.shape.name == "halves"


def test_queries_may_be_more_than_split() -> None:
    # 4 rows of 8 become 8 rows of 2 heads of 2.
    inputs = "float[1,4,8] q, float[1,3,4] k, float[1,3,4] v"
    split = ", int64[4] less = {1,8,2,2}, int64[3] wide = {1,8,4}"
    nodes = f"{Q} {K} {V} {SCORES} {END}".replace("heads", "few")
    text = nodes.replace("Reshape(q, few)", "Reshape(q, less)").replace("whole", "wide")
    few = split + ", int64[4] few = {0,0,2,2}"
    assert heads(text, inputs, few) == "queries are not split into heads alone"


def test_queries_may_have_an_unknown_rank() -> None:
    inputs = INPUTS.replace("float[B,S,8] q", "float[] q")
    nodes = f"{Q} {K} {V} {SCORES} {END}".replace("Reshape(q, heads)", "Reshape(q, known)")
    known = ", int64[4] known = {1,3,2,4}"
    assert heads(nodes, inputs, known) == "the rank of the queries is not known"


def test_halves_are_left_to_others() -> None:
    inputs = INPUTS.replace("float", "float16")
    because = "attention kernels compute in float32 only"
    assert heads(f"{Q} {K} {V} {SCORES} {END}", inputs) == because


def test_keys_that_were_not_split_here_have_no_source() -> None:
    inputs = "float[B,S,8] q, float[B,2,4,T] k2, float[B,T,8] v"
    found = heads(f"{Q} {V} {SCORES} {END}", inputs)
    assert isinstance(found, AttentionOfHeads)
    assert found.before_split is None


def test_values_that_were_not_split_here_have_no_source() -> None:
    static = "float[1,3,8] q, float[1,3,8] k, float[1,3,8] v, float[1,3,2,4] v1"
    rows = [
        ("v2 = Transpose<perm=[0,2,1,3]>(v1)", static),
        ("v9 = Neg(v1) v2 = Transpose<perm=[0,2,1,3]>(v9)", static),
        ("v9 = Reshape(v1, heads) v2 = Transpose<perm=[0,2,1,3]>(v9)", static),
        (
            "v9 = Reshape(v, parts) v2 = Transpose<perm=[0,1,2,3]>(v9)",
            static.replace("float[1,3,8] v", "float[1,2,12] v"),
        ),
    ]
    for nodes, inputs in rows:
        found = heads(f"{Q} {K} {nodes} {SCORES} {END}", inputs, ", int64[4] parts = {1,2,3,4}")
        assert isinstance(found, AttentionOfHeads), nodes
        assert found.before_split is None, nodes


def test_keys_that_were_more_than_split_have_no_source() -> None:
    # 6 rows of 4 become 3 rows of 2 heads of 4.
    inputs = "float[1,4,8] q, float[1,6,4] k, float[1,3,8] v"
    nodes = f"{Q} {K.replace('heads', 'other')} {V} {SCORES} {END}"
    found = heads(nodes, inputs, ", int64[4] other = {1,3,2,4}")
    assert isinstance(found, AttentionOfHeads)
    assert found.before_split is None


def test_the_axis_of_the_softmax_is_the_last() -> None:
    for axis, expected in ((-1, True), (3, True), (2, False), (1, False)):
        model = of(f"s = MatMul(q, k) y = Softmax<axis={axis}>(s)",
                   "float[1,2,3,4] q, float[1,2,4,3] k")  # fmt: skip
        programs = compile_pattern(attention_pattern(var.q))
        assert isinstance(match_node(programs, made_by(model, "y")), Match) is expected


# --- caches ---------------------------------------------------------------------------------------


def cache(nodes: str, inputs: str, *, heads: int = 4, is_transposed: bool = False) -> object:
    """Return the names of the past and the new part of value r, or None."""
    shapes = """, int64[5] wide = {1,2,2,6,8}, int64[4] flat = {1,4,6,8},
        int64[4] turned = {1,4,8,6}, int64[1] one = {1}"""
    model = of(f"{nodes} y = Neg(r)", inputs, shapes)
    found = cache_of_heads(named(model, "r"), heads, is_transposed=is_transposed)
    return None if found is None else (found.past.name, found.new.name, found.node.op_type)


PAST = "float[1,4,5,8] p, float[1,4,1,8] n"
GROUPS = "float[1,2,5,8] p, float[1,2,1,8] n"
REPEAT = "u = Unsqueeze(k, axis) e = Expand(u, wide) r = Reshape(e, flat)"


@pytest.mark.parametrize(
    ("nodes", "inputs", "expected"),
    [
        ("r = Concat<axis=2>(p, n)", PAST, True),
        ("r = Concat<axis=-2>(p, n)", PAST, True),
        ("r = Concat<axis=1>(p, n)", "float[1,2,5,8] p, float[1,2,5,8] n", False),
        ("r = Concat<axis=2>(p, n, n)", PAST, False),
        ("r = Concat<axis=2>(p, n)", "float[1,3,5,8] p, float[1,3,1,8] n", False),
        ("r = Add(p, n)", PAST, False),
        ("r = Concat<axis=2>(p, n) d = Abs(r)", PAST, False),
        (f"k = Concat<axis=2>(p, n) {REPEAT}", GROUPS, True),
        (f"k = Concat<axis=2>(p, n) d = Abs(k) {REPEAT}", GROUPS, False),
        (f"k = Concat<axis=2>(p, n) {REPEAT} d = Abs(u)", GROUPS, False),
        (f"k = Concat<axis=2>(p, n) {REPEAT.replace('axis', 'one')}", GROUPS, False),
        (f"k = Concat<axis=2>(p, n) {REPEAT.replace('flat', 'turned')}", GROUPS, False),
        (f"k = Concat<axis=2>(p, n) {REPEAT}", GROUPS.replace("1,2,", "1,1,"), False),
        (f"k = Concat<axis=2>(p, n) {REPEAT}", "float[] p, float[] n", False),
        ("k = Concat<axis=2>(p, n) r = Reshape(k, flat)", PAST, False),
        ("r = Gather<axis=2>(p, i)", "float[1,4,5,8] p, int64[3] i", False),
        ("", "float[1,4,5,8] r", False),
    ],
)
def test_a_cache_is_a_concat_of_two_maybe_repeated(nodes: str, inputs: str, expected: bool) -> None:
    assert cache(nodes, inputs) == (("p", "n", "Concat") if expected else None)


def test_transposed_keys_have_a_cache_too() -> None:
    nodes = "k = Concat<axis=2>(p, n) r = Transpose<perm=[0,1,3,2]>(k)"
    assert cache(nodes, PAST, is_transposed=True) == ("p", "n", "Concat")
    assert cache(nodes, PAST) is None
    repeated = f"k = Concat<axis=2>(p, n) {REPEAT.replace('r =', 't =')}"
    transposed = f"{repeated} r = Transpose<perm=[0,1,3,2]>(t)"
    assert cache(transposed, GROUPS, is_transposed=True) == ("p", "n", "Concat")
    other = nodes.replace("[0,1,3,2]", "[0,1,2,3]")
    assert cache(other, PAST, is_transposed=True) is None


def test_keys_may_be_transposed_before_they_are_repeated() -> None:
    model = of(
        """k = Concat<axis=2>(p, n) u = Unsqueeze(k, axis) t = Transpose<perm=[0,1,2,4,3]>(u)
        e = Expand(t, wide) r = Reshape(e, flat) y = Neg(r)""",
        GROUPS,
        ", int64[5] wide = {1,2,2,8,6}, int64[4] flat = {1,4,8,6}",
    )
    found = cache_of_heads(named(model, "r"), 4, is_transposed=True)
    assert found is not None
    assert found.past.name == "p"
