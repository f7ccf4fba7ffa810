"""Which nodes compute the same from the same inputs, and at each place of a tensor."""

from tests.small import made_by, parsed
from tiered.graph.queries.determinism import is_deterministic, is_same_at_all_places

HEADER = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1, "vendor": 1]> g'
INPUTS = """(float[2] x, bool[2] b, bool c, float r, int32[2] n) => (float[?] y)
    <bool yes = {1}, bool no = {0}>"""

DETERMINISTIC = {
    "Relu(x)": True,
    "vendor.Relu(x)": False,
    "vendor.Dropout(x)": False,
    "com.microsoft.Unheard(x)": False,
    "Dropout(x)": True,
    "Dropout(x, r, no)": True,
    "Dropout(x, r, yes)": False,
    "Dropout(x, r, c)": False,
    "RandomNormalLike<seed=1.0>(x)": False,
    "Bernoulli(x)": False,
    "Cast<to=10>(x)": True,
    "Cast<to=10, saturate=0>(x)": True,
    "Cast<to=10, saturate=2>(x)": False,
    "CastLike<saturate=-1>(x, r)": False,
}
AT_ALL_PLACES = {
    "Relu(x)": True,
    "Relu(u)": True,
    "vendor.Relu(x)": False,
    "Concat<axis=0>(x, x)": False,
    "Cast<to=7>(x)": True,
    "Cast<to=12>(x)": False,
    "Cast<to=12>(n)": True,
    "Cast<to=12>(b)": True,
    "Cast<to=12>(u)": False,
}


def test_nodes_that_always_compute_the_same() -> None:
    for call, expected in DETERMINISTIC.items():
        model = parsed(f"{HEADER} {INPUTS} {{ t = {call} y = Neg(x) }}")
        assert is_deterministic(made_by(model, "t")) is expected, call


def test_a_node_with_bodies_is_as_deterministic_as_they_are() -> None:
    for inner, expected in (("Neg(x)", True), ("RandomNormalLike(x)", False)):
        model = parsed(
            f"{HEADER} {INPUTS} {{ y = If(c) <then_branch = t () => (float[2] p) {{ p = Abs(x) }},"
            f" else_branch = e () => (float[2] q) {{ q = {inner} }}> }}"
        )
        assert is_deterministic(made_by(model, "y")) is expected


def test_nodes_that_compute_the_same_at_each_place() -> None:
    for call, expected in AT_ALL_PLACES.items():
        model = parsed(f"{HEADER} {INPUTS} {{ u = vendor.F(x) t = {call} y = Neg(x) }}")
        assert is_same_at_all_places(made_by(model, "t")) is expected, call
