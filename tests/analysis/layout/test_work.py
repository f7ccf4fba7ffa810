"""What operators take in each order decides where Transposes are."""

from itertools import permutations
from typing import Any

import onnx
import pytest

from benchmarks import chains
from tiered import Model, get_pass
from tiered.analysis.layout import kernel_times, work as module
from tiered.analysis.layout.layout_conversion import reach_of
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.analysis.layout.work import estimate_work, transpose_time
from tiered.testing import parse


def left(model: onnx.ModelProto) -> int:
    """Return how many Transposes are left."""
    converted = get_pass("convert_layout").apply(model)
    return sum(node.op_type == "Transpose" for node in converted.graph.node)


def work(text: str, op_type: str) -> dict[tuple[int, ...], int]:
    """Return the time of the only operator of its type, by the order of its labels."""
    reach = reach_of(Model.from_proto(parse(text)))
    estimate_work(reach, reach.operators.values(), LayoutSizes())
    (found,) = [each for each in reach.operators.values() if each.node.op_type == op_type]
    return {found.choices[number].labels: time for number, time in found.work.items()}


# --- chains ---------------------------------------------------------------------------------------


def test_a_scan_along_the_outer_axis_keeps_its_transposes() -> None:
    # Without them a hundred Slices would take single elements.
    assert left(chains.unrolled_scan((0, 2, 1), 1, (8, 64, 100), 100, product=False)) == 2


def test_a_scan_along_the_inner_axis_loses_its_transposes() -> None:
    assert left(chains.unrolled_scan((0, 2, 1), 2, (8, 100, 64), 100, product=False)) == 0


def test_products_with_one_column_each_keep_their_transposes() -> None:
    assert left(chains.unrolled_scan((0, 2, 1), 1, (4, 32, 100), 100, product=True)) == 2


@pytest.mark.parametrize("seed", range(8))
def test_a_random_chain_is_at_rest_after_one_run(seed: int) -> None:
    once = get_pass("convert_layout").apply(chains.random_chain(seed))
    model = Model.from_proto(once)
    mark = model.mark()
    get_pass("convert_layout").apply(model)
    assert not model.changed_since(mark)


# --- families -------------------------------------------------------------------------------------

TURNED = "t = Transpose<perm=[0,2,1]>(x)  u = {}  y = Transpose<perm=[0,2,1]>(u)"


@pytest.mark.parametrize(
    ("op_type", "call", "out"),
    [
        ("Slice", "Slice(t, zero, one, one)", "8,64,1"),
        ("Concat", "Concat<axis=1>(t, t)", "8,64,64"),
        ("Gather", "Gather<axis=1>(t, index)", "8,64,3"),
        ("Tile", "Tile(t, repeats)", "8,64,64"),
        ("Pad", "Pad(t, pads)", "8,64,34"),
    ],
)
def test_copies_along_the_last_axis_take_longer(op_type: str, call: str, out: str) -> None:
    text = (
        f"(float[8,64,32] x) => (float[{out}] y) <int64[1] zero = {{0}}, int64[1] one = {{1}}, "
        "int64[3] index = {2,0,1}, int64[3] repeats = {1,2,1}, "
        f"int64[6] pads = {{0,1,0,0,1,0}}> {{ {TURNED.format(call)} }}"
    )
    times = work(text, op_type)
    present, other = list(times.values())
    assert other > 2 * present > 0


def test_an_expand_counts_each_run_that_it_repeats() -> None:
    text = (
        "(float[8,64,1] x) => (float[8,64,32] y) <int64[3] shape = {8,32,64}> "
        f"{{ {TURNED.format('Expand(t, shape)')} }}"
    )
    first, second = work(text, "Expand").values()
    assert second > first > 0


def test_a_running_sum_along_the_last_axis_is_slow() -> None:
    text = (
        "(float[8,64,32] x) => (float[8,64,32] y) <int64 axis = {2}> "
        f"{{ {TURNED.format('CumSum(t, axis)')} }}"
    )
    present, other = work(text, "CumSum").values()
    assert present > 2 * other


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "LpNormalization"])
def test_these_work_along_the_last_axis(op_type: str) -> None:
    text = (
        f"(float[8,64,32] x) => (float[8,64,32] y) {{ {TURNED.format(f'{op_type}<axis=1>(t)')} }}"
    )
    present, other = work(text, op_type).values()
    assert present > other == 0


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceMax"])
def test_a_reduction_of_the_last_axis_is_the_fastest(op_type: str) -> None:
    text = (
        "(float[512,64,8] x) => (float[512,64,1] y) <int64[1] one = {1}> "
        f"{{ {TURNED.format(op_type + '(t, one)')} }}"
    )
    present, other = work(text, op_type).values()
    assert present > other == 0


def test_an_operand_that_broadcasts_along_a_short_axis_takes_long() -> None:
    text = (
        f"(float[8,64,4] x, float[4,1] b) => (float[8,64,4] y) {{ {TURNED.format('Mul(t, b)')} }}"
    )
    present, other = work(text, "Mul").values()
    assert other > 4 * present > 0


def test_operands_of_one_shape_take_as_long_in_every_order() -> None:
    text = f"(float[8,64,4] x) => (float[8,64,4] y) {{ {TURNED.format('Mul(t, t)')} }}"
    assert set(work(text, "Mul").values()) == {0}


ABSORBED = """(float[1,8,8,4] x, float[4,4,3,3] w) => (float[1,6,6,4] y)
    <int64[8] pads = {{0,1,1,0,0,1,1,0}}, float[4] bias = {{1,2,3,4}}> {{
        p = {pad}  t = Transpose<perm=[0,3,1,2]>(p)  c = Conv(t, w)
        u = Transpose<perm=[0,2,3,1]>(c)  v = Mul(u, bias)  y = {add}
    }}"""


def test_a_pad_that_a_conv_absorbs_takes_no_time() -> None:
    present, other = work(ABSORBED.format(pad="Pad(x, pads)", add="Relu(v)"), "Pad").values()
    assert present > other == 0


def test_a_bias_that_a_conv_absorbs_takes_no_time() -> None:
    text = ABSORBED.format(pad="Relu(x)", add="Add(v, bias)")
    for op_type in ("Mul", "Add"):
        present, other = work(text, op_type).values()
        assert present > other == 0


def test_only_a_neighbour_absorbs() -> None:
    pad = "(float[1,8,8,4] x, float[4,4,3,3] w, float[4,8,8,4] k) => (y) <PADS> {{ {} }}".replace(
        "PADS", "int64[8] pads = {{0,1,1,0,0,1,1,0}}"
    )
    first, last = "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[0,2,3,1]>"
    for body, is_absorbed in (
        (f"p = Pad(x, pads)  t = {first}(p)  y = Conv(t, w)", True),
        (f"p = Pad(x, pads)  t = {first}(p)  y = MaxPool<kernel_shape=[2,2]>(t)", True),
        (f"p = Pad(x, pads)  t = {first}(p)  y = acme.Conv(t, w)", False),
        (f"p = Pad(x, pads)  t = {first}(p)  y = Softmax(t)", False),
        (f"p = Pad(k, pads)  t = {first}(p)  r = {first}(x)  y = Conv(r, t)", False),
    ):
        present, other = work(pad.format(body), "Pad").values()
        assert (present > 0, other == 0) == (True, is_absorbed), body
    scaled = (
        "(float[1,8,8,4] x, float[4,4,3,3] w) => (y) <float[4] b = {{1,2,3,4}}, "
        "float[1,4,6,6] c> {{ {} }}"
    )
    three = f"c = Conv(t, w)  u = {last}(c)  d = Add(u, b)  e = Add(d, b)  f = Add(e, b)"
    for body, is_absorbed in (
        (f"c = Conv(t, w)  u = {last}(c)  y = Sub(u, b)", True),
        (f"c = acme.Conv<a=1>(t, w)  u = {last}(c)  y = Sub(u, b)", False),
        (f"{three}  y = Sub(f, b)",
         True),
        (f"{three}  g = Add(f, b)  "
         "y = Sub(g, b)", False),
        (f"c = Conv(t, w)  u = {last}(c)  d = Abs(u)  y = Sub(d, b)", False),
    ):  # fmt: skip
        times = [*work(scaled.format(f"t = {first}(x)  {body}"), "Sub").values()]
        assert (0 in times) == is_absorbed, body


# --- Transposes -----------------------------------------------------------------------------------


def test_what_a_transpose_takes_depends_on_what_stays_adjacent() -> None:
    dims = (8, 64, 64)
    assert transpose_time(dims, (0, 1, 2)) == 0
    runs, one_axis = transpose_time(dims, (1, 0, 2)), transpose_time(dims, (0, 2, 1))
    assert 0 < one_axis <= 2 * runs < transpose_time(dims, (2, 1, 0))


def test_dims_of_one_move_without_a_copy() -> None:
    assert transpose_time((1, 64, 1, 4), (1, 0, 2, 3)) == 0
    assert transpose_time((64, 1, 4), (2, 1, 0)) == transpose_time((64, 4), (1, 0))


def test_axes_that_stay_adjacent_are_one() -> None:
    assert transpose_time((4, 8, 16, 2), (2, 3, 0, 1)) == transpose_time((32, 32), (1, 0))


# --- what is counted ------------------------------------------------------------------------------

UNITS: dict[str, Any] = {
    "RUNS": dict.fromkeys(kernel_times.RUNS, 1.0), "CUMULATIVE_ELEMENT": 1000, "CUMULATIVE_RUN": 1,
    "SUM_OF_FIRST": 2, "MOST_OF_FIRST": 3, "SUM_OF_MIDDLE_RUN": 5, "MOST_OF_MIDDLE": 7,
    "SUM_OF_ENDS": 11, "MOST_OF_ENDS": 13, "REDUCTION_ANY": 17, "NORM_NOT_LAST": 19,
    "TRANSPOSE_RUN": 100, "TRANSPOSE_COPIED": 1, "TRANSPOSE_ONE_AXIS": 3, "TRANSPOSE_ANY": 7,
}  # fmt: skip
"""A whole number for each time of the table, so that times are counts."""


@pytest.fixture
def _counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in UNITS.items():
        monkeypatch.setattr(kernel_times, name, value)
    monkeypatch.setattr(module, "transpose_time", transpose_time.__wrapped__)


NAMES = """int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[3] index = {2,0,1},
    int64 single = {1}, int64[3] repeats = {1,2,1}, int64[6] pads = {0,1,0,0,1,0},
    int64[2] ends = {0,2}, int64[2] last = {1,2}, float[32,1] col = {COL}, int64 axis = {1}"""


@pytest.mark.usefixtures("_counted")
def test_what_an_operator_counts_in_its_order_and_in_the_other_one() -> None:
    names = NAMES.replace("COL", ",".join("1" * 32))
    for call, out, more, expected in (
        ("Slice(t, zero, one, one)", "8,64,1", "", (8, 512)),
        ("Slice(t, zero, one, two)", "8,1,32", "", (256, 8)),
        ("Slice(t, zero, one, zero)", "1,64,32", "", (1, 1)),
        ("Concat<axis=1>(t, t)", "8,64,64", "", (16, 1024)),
        ("Concat<axis=0>(t, t, t)", "24,64,32", "", (3, 3)),
        ("Gather<axis=1>(t, index)", "8,64,3", "", (24, 1536)),
        ("Gather<axis=1>(t, single)", "8,64", "", (8, 512)),
        ("Tile(t, repeats)", "8,64,64", "", (512, 32768)),
        ("Pad(t, pads)", "8,64,34", "", (8, 512)),
        ("Pad(t, pads, , index)", "10,32,64", "", (1, 1)),
        ("Pad(t, pads, z)", "8,64,34", ", float[] z", (8, 512)),
        ("CumSum(t, axis)", "8,64,32", "", (256, 16384000)),
        ("ReduceSum(t, zero)", "1,64,32", "", (32768, 32768)),
        ("ReduceSum(t, one)", "8,64,1", "", (40, 0)),
        ("ReduceSum(t, two)", "8,1,32", "", (0, 40)),
        ("ReduceSum(t, ends)", "1,1,32", "", (180224, 32768)),
        ("ReduceSum(t, last)", "8,1,1", "", (0, 0)),
        ("ReduceSum(t)", "1,1,1", "", (0, 0)),
        ("ReduceMax(t, zero)", "1,64,32", "", (49152, 49152)),
        ("ReduceMax(t, one)", "8,64,1", "", (114688, 0)),
        ("ReduceMax(t, two)", "8,1,32", "", (0, 114688)),
        ("ReduceMax(t, ends)", "1,1,32", "", (212992, 49152)),
        ("ReduceMax(t, last)", "8,1,1", "", (0, 0)),
        ("ReduceMax(t)", "1,1,1", "", (0, 0)),
        ("Softmax<axis=0>(t)", "8,64,32", "", (229376, 229376)),
        ("Softmax<axis=1>(t)", "8,64,32", "", (98304, 0)),
        ("Softmax<axis=2>(t)", "8,64,32", "", (0, 98304)),
        ("LpNormalization<axis=0>(t)", "8,64,32", "", (311296, 311296)),
        ("LpNormalization<axis=1>(t)", "8,64,32", "", (311296, 0)),
        ("LpNormalization<axis=2>(t)", "8,64,32", "", (0, 311296)),
        ("Mul(t, col)", "8,64,32", "", (256, 512)),
        ("Mul(t, z)", "8,64,32", ", float[8,1,1] z", (8, 8)),
        ("Mul(t, z)", "8,64,32", ", float z", (0, 0)),
        ("Mul(t, z)", "8,64,32", ", float[8,32,64] z", (0, 0)),
    ):  # fmt: skip
        perm = "[0,1]" if out.count(",") == 1 else "[0,2,1]"
        text = (
            f"(float[8,64,32] x{more}) => (float[{out}] y) <{names}> "
            f"{{ t = Transpose<perm=[0,2,1]>(x)  u = {call}  y = Transpose<perm={perm}>(u) }}"
        )
        op_type = call.partition("(")[0].partition("<")[0]
        assert tuple(work(text, op_type).values()) == expected, (call, more)


@pytest.mark.usefixtures("_counted")
def test_axes_of_size_1_are_nowhere() -> None:
    for call, shape, out, expected in (
        ("Softmax<axis=1>(t)", "8,64,1", "8,64,1", (0, 0)),
        ("LpNormalization<axis=1>(t)", "8,64,1", "8,64,1", (9728, 9728)),
        ("LpNormalization<axis=1>(t)", "1,1,1", "1,1,1", (0, 0)),
        ("Slice(t, zero, one, one)", "8,1,4", "8,1,1", (8, 8)),
    ):
        text = (
            f"(float[{shape}] x) => (float[{out}] y) <int64[1] zero = {{0}}, int64[1] one = {{1}}> "
            f"{{ {TURNED.format(call)} }}"
        )
        op_type = call.partition("(")[0].partition("<")[0]
        assert tuple(work(text, op_type).values()) == expected, (call, shape)


@pytest.mark.usefixtures("_counted")
def test_what_a_transpose_counts() -> None:
    for dims, expected in (
        (
            (8, 64, 32),
            {"012": 0, "021": 49152, "102": 67584, "120": 49152, "201": 49152, "210": 114688},
        ),
        (
            (2, 3, 4, 5),
            {
                "0123": 0,
                "0132": 360,
                "0213": 2520,
                "0231": 360,
                "0312": 360,
                "0321": 840,
                "1023": 720,
                "1032": 840,
                "1203": 2520,
                "1230": 360,
                "1302": 840,
                "1320": 840,
                "2013": 2520,
                "2031": 840,
                "2103": 2520,
                "2130": 840,
                "2301": 360,
                "2310": 840,
                "3012": 360,
                "3021": 840,
                "3102": 840,
                "3120": 840,
                "3201": 840,
                "3210": 840,
            },
        ),
        ((4, 1, 6), {"012": 0, "021": 0, "102": 0, "120": 72, "201": 72, "210": 72}),
    ):
        found = {
            "".join(map(str, perm)): module.transpose_time(dims, perm)
            for perm in permutations(range(len(dims)))
        }
        assert found == expected, dims
