"""Sizes of symbolic dims: distinct, consistent, computed where the name is a sum."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path

import pytest
from onnx import parser

from tests.recorded import assert_recorded
from tests.small import parsed
from tiered.runtime import feasible_inputs, make_inputs
from tiered.runtime.inputs.dim_expression import Expression
from tiered.runtime.inputs.dims import Binder, DimSlot, candidates, smallest_sizes, weight_dims
from tiered.support.errors import UsageError

HEADER = '<ir_version: 10, opset_import: ["": 21]>'


def sizes(inputs: str, binding: int = 0, body: str = "y = Identity(x)") -> dict[str, int]:
    proto = parser.parse_model(f"{HEADER} g ({inputs}) => (float[K] y) {{ {body} }}")
    return make_inputs(proto, binding=binding).dims


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + 1", 4),
        ("a+b", 8),
        ("2*a - b", 1),
        ("(a + b) // 3", 2),
        ("b / 2", 2),
        ("((a*b)//a)", 5),
        ("Min(64, a)", 3),
        ("Max(a, b, 4)", 5),
        ("-a + b", 2),
        ("b % a", 2),
    ],
)
def test_dim_expressions_are_evaluated(text: str, value: int) -> None:
    assert Expression(text).value({"a": 3, "b": 5}) == value


@pytest.mark.parametrize(
    "text",
    [
        "a ** 9",
        "__import__('os')",
        "a.b",
        "a[0]",
        "a if b else c",
        "1.5 * a",
        "True",
        "lambda: 1",
        "min()",
        "pow(a, b)",
        "a b",
        "",
        "(" * 300,
        "a + " * 100 + "a",
    ],
)
def test_anything_but_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Expression(text)


def test_division_by_zero_in_a_dim_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="zero"):
        Expression("a // b").value({"a": 1, "b": 0})


def test_one_name_has_one_size_everywhere() -> None:
    proto = parser.parse_model(
        f"{HEADER} g (float[n, m] x, float[m, n] z) => (float[n, n] y) {{ y = MatMul(x, z) }}"
    )
    feeds = make_inputs(proto).feeds
    assert feeds["x"].shape == feeds["z"].shape[::-1]


def test_distinct_names_have_distinct_sizes() -> None:
    found = sizes("float[batch, seq, other_seq, foo, bar, baz, qux] x")
    assert len(set(found.values())) == 7


@pytest.mark.parametrize("name", ["batch", "seq", "past", "height", "foo"])
def test_the_two_bindings_differ(name: str) -> None:
    assert sizes(f"float[{name}] x", 0)[name] != sizes(f"float[{name}] x", 1)[name]


def test_names_choose_plausible_sizes() -> None:
    found = sizes("float[batch, channels, height, width] x")
    assert found == {"batch": 2, "channels": 3, "height": 64, "width": 96}
    assert sizes("int64[batch_size, sequence_length] x") == {
        "batch_size": 2,
        "sequence_length": 24,
    }


def dims_of(*names: str) -> str:
    """Return inputs whose dims have names that the textual form of onnx cannot spell."""
    return ", ".join(f"float[d{i}] x{i}" for i, _ in enumerate(names))


def named(names: list[str], binding: int = 0) -> dict[str, int]:
    proto = parser.parse_model(
        f"{HEADER} g ({dims_of(*names)}) => (float[K] y) {{ y = Identity(x0) }}"
    )
    for value, name in zip(proto.graph.input, names, strict=True):
        value.type.tensor_type.shape.dim[0].dim_param = name
    return make_inputs(proto, binding=binding).dims


@pytest.mark.parametrize("binding", [0, 1])
def test_sums_of_names_are_computed(binding: int) -> None:
    past, seq = "past_sequence_length", "sequence_length"
    found = named([f"{past} + {seq}", seq, past, f"{past} + 1"], binding)
    assert found[f"{past} + {seq}"] == found[past] + found[seq]
    assert found[f"{past} + 1"] == found[past] + 1


def test_a_sum_of_names_that_stand_nowhere_else_binds_them() -> None:
    found = named(["past_len + 1"])
    assert found == {"past_len": 8, "past_len + 1": 9}
    assert named(["foo + 1"]) == {"foo": 8, "foo + 1": 9}
    assert named(["my_batch + 1"]) == {"my_batch": 2, "my_batch + 1": 3}


def test_an_expression_may_be_zero_and_one_without_a_value_is_a_name() -> None:
    assert named(["(foo - foo)"])["(foo - foo)"] == 0
    assert named(["foo // (foo - foo)"])["foo // (foo - foo)"] == 7


def test_a_hyphen_in_a_name_is_no_subtraction() -> None:
    assert named(["batch-size"]) == {"batch-size": 2}
    assert named(["past-1", "past"])["past-1"] == 7


def test_a_negative_expression_is_bound_like_a_name() -> None:
    assert named(["past - 100", "past"])["past - 100"] > 0


def test_total_is_past_plus_new() -> None:
    for binding in (0, 1):
        found = sizes(
            "int64[batch, seq] x, int64[batch, total] m, float[batch, 4, past, 8] p", binding
        )
        assert found["total"] == found["past"] + found["seq"]


def test_total_of_a_one_token_decoder_is_past_plus_one() -> None:
    found = sizes("int64[batch, 1] x, int64[batch, total] mask, float[batch, 4, past, 8] p")
    assert found["total"] == found["past"] + 1


def test_total_without_a_past_is_a_length() -> None:
    assert sizes("int64[batch, total] x")["total"] == 24


def test_names_of_an_exporter_go_by_input_and_axis() -> None:
    found = sizes(
        "int64[s1, s2] input_ids, int64[s3, s4] attention_mask, "
        "float[s1, 4, s5, 8] past_key, float[s1, 4, s6, 8] past_value",
        body="y = Identity(past_key)",
    )
    assert found == {"s1": 2, "s2": 24, "s3": 2, "s4": 32, "s5": 8, "s6": 8}


def test_an_encoder_has_a_length_of_its_own() -> None:
    found = sizes(
        "int64[s1, s2] input_ids, int64[s3, s4] encoder_attention_mask",
        body="y = Identity(input_ids)",
    )
    assert found["s4"] != found["s2"]


def test_unnamed_dims_go_by_place() -> None:
    proto = parser.parse_model(
        f"{HEADER} g (float[?, 3, ?, ?] x) => (float[K] y) {{ y = Identity(x) }}"
    )
    made = make_inputs(proto)
    assert made.feeds["x"].shape == (2, 3, 64, 96)
    assert made.dims == {"x[0]": 2, "x[2]": 64, "x[3]": 96}


def test_channels_last_images_have_their_channels_last() -> None:
    proto = parser.parse_model(
        f"{HEADER} g (float[?, ?, ?, 3] x) => (float[K] y) {{ y = Identity(x) }}"
    )
    assert make_inputs(proto).feeds["x"].shape == (2, 64, 96, 3)


def test_minus_one_is_unknown_and_zero_is_zero() -> None:
    proto = parser.parse_model(f"{HEADER} g (float[1, 0] x) => (float[K] y) {{ y = Identity(x) }}")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert make_inputs(proto).feeds["x"].shape == (2, 0)


@pytest.mark.parametrize(
    ("inputs", "weights", "body", "place", "size"),
    [
        ("float[N, C, H, W] x", "float[8, 5, 3, 3] w", "y = Conv<group=2>(x, w)", "C", 10),
        ("float[N, C, H, W] x", "float[7, 5, 3, 3] w", "y = ConvTranspose(x, w)", "C", 7),
        ("float[A, B] x", "float[11, 4] w", "y = MatMul(x, w)", "B", 11),
        ("float[A, B] x", "float[4, 11] w", "y = MatMul(w, x)", "A", 11),
        ("float[A, B] x", "float[11] w", "y = MatMul(x, w)", "B", 11),
        ("float[A] x", "float[4, 11] w", "y = MatMul(w, x)", "A", 11),
        ("float[N, C] x", "float[7] w", "y = BatchNormalization(x, w, w, w, w)", "C", 7),
        ("float[S, N, F] x", "float[1, 3, 5] w", "y = GRU<hidden_size=1>(x, w, w)", "F", 5),
        ("float[A, B] x", "float[11, 4] w", "y = Gemm(x, w)", "B", 11),
        ("float[A, B] x", "float[11, 4] w", "y = Gemm<transA=1, transB=1>(x, w)", "A", 4),
        ("float[A, B] x", "float[4, 11] w", "y = Gemm(w, x)", "A", 11),
        ("float[A, B] x", "float[4, 11] w", "y = Gemm<transB=1>(w, x)", "B", 11),
        ("float[A, B] x", "float[11, 4] w", "y = Gemm<transA=1>(w, x)", "A", 11),
        ("float[A, B] x", "float[11, 4] w", "y = Gemm<transA=1>(x, w)", "A", 11),
        ("float[N, C, H, W] x", "float[8, 5, 3, 3] w", "y = Conv(x, w)", "C", 5),
        ("float[P, A, B] x", "float[3, 11, 4] w", "y = MatMul(x, w)", "B", 11),
        ("float[P, A, B] x", "float[4, 11] w", "y = MatMul(w, x)", "A", 11),
    ],
)
def test_weights_decide_the_dims_they_meet(
    inputs: str, weights: str, body: str, place: str, size: int
) -> None:
    name = weights.rsplit(maxsplit=1)[-1]
    proto = parser.parse_model(f"{HEADER} g ({inputs}, {weights}) => (float[K] y) {{ {body} }}")
    weight = proto.graph.input.pop()
    tensor = proto.graph.initializer.add(name=name, data_type=1)
    tensor.dims.extend(d.dim_value for d in weight.type.tensor_type.shape.dim)
    for binding in (0, 1):
        assert make_inputs(proto, binding=binding).dims[place] == size


def test_callers_choose_by_name_place_or_role() -> None:
    proto = parser.parse_model(
        f"{HEADER} g (float[batch, ?, foo] x) => (float[K] y) {{ y = Identity(x) }}"
    )
    made = make_inputs(proto, dims={"batch": 7, "x[1]": 6, "foo": 5})
    assert made.feeds["x"].shape == (7, 6, 5)
    by_role = parser.parse_model(
        f"{HEADER} g (float[my_batch] x) => (float[K] y) {{ y = Identity(x) }}"
    )
    assert make_inputs(by_role, dims={"batch": 7}).feeds["x"].shape == (7,)


def test_sizes_for_dims_that_no_input_has_are_refused() -> None:
    proto = parser.parse_model(
        f"{HEADER} g (float[my_batch, 2, ?] x, seq(float[n]) s) => (float[K] y)"
        " { y = Identity(x) }"
    )
    for name, hint in (("x[1]", "; did you mean 'x[2]'?"), ("K", ""), ("past", "")):
        for make in (make_inputs, feasible_inputs):
            with pytest.raises(UsageError) as caught:
                make(proto, dims={"n": 1, name: 3})
            there = "my_batch, x[2], n, batch, other:2"
            said = f"no input of the model has a dim {name!r}{hint}; it has {there}"
            assert str(caught.value) == said, (name, make)
    made = make_inputs(proto, defaults={"past": 3, "n": 5, "batch": 6}, dims={"n": 4})
    assert made.dims == {"my_batch": 6, "x[2]": 9, "n": 4}


def test_no_candidate_has_two_long_axes_of_sound() -> None:
    slots = [DimSlot("x", axis, 3, dim, False) for axis, dim in enumerate(("m", None, "n"))]
    usual = Binder(0, {}, {})
    usual.bind(slots)
    tried = [{**usual.sizes, **sizes} for _, sizes, _ in candidates(slots, usual)]
    assert max(prod(sizes[slot.key] for slot in slots) for sizes in tried) <= 1 << 22
    wave = [DimSlot("x", axis, 2, dim, False) for axis, dim in enumerate(("batch", "samples"))]
    usual = Binder(0, {}, {})
    usual.bind(wave)
    sounds = {words: sizes for words, sizes, _ in candidates(wave, usual)}
    assert sounds["16000 samples or frames of sound"] == {"samples": 16000}
    assert sounds["16000 of them, batch 1"] == {"batch": 1, "samples": 16000}


def test_unnamed_dims_share_the_sizes_of_their_role_and_axis() -> None:
    slots = [DimSlot("k", 2, 4, "past", False), DimSlot("past_v", 2, 4, None, False)]
    slots += [DimSlot("x", 1, 2, None, False), DimSlot("h0", 2, 3, None, False)]
    binder = Binder(0, {}, {})
    binder.bind(slots)
    assert binder.sizes == {"past": 8, "past_v[2]": 8, "x[1]": 7, "h0[2]": 9}


@pytest.mark.parametrize(
    ("name", "is_integer", "dims", "roles"),
    [
        ("h0", False, "???", "other:0 batch other:2"),
        ("h0", False, "??", "batch other:1"),
        ("h0", True, "???", "batch seq seq"),
        ("past", False, "???", "batch past past"),
        ("past", False, "??", "batch other:1"),
        ("mask", False, "??", "batch total"),
        ("mask", False, "????", "batch seq seq total"),
        ("encoder_mask", False, "??", "batch seq:encoder"),
        ("decoder_of_encoder_mask", False, "??", "batch total"),
        ("x", False, "??", "batch other:1"),
        ("x", False, "???", "batch seq other:2"),
        ("x", False, "????", "batch channel height width"),
        ("x", False, "?????", "batch channel depth height width"),
        ("x", False, "??????", "batch other:1 other:2 other:3 other:4 other:5"),
        ("x", False, "???1", "batch height width"),
        ("x", False, "???2", "batch channel height"),
        ("x", False, "???4", "batch height width"),
        ("x", False, "???5", "batch channel height"),
        ("x", False, "????3", "batch depth height width"),
    ],
)
def test_an_unnamed_dim_has_a_role_by_name_rank_and_axis(
    name: str, is_integer: bool, dims: str, roles: str
) -> None:
    slots = [
        DimSlot(name, axis, len(dims), int(dim) if dim.isdigit() else None, is_integer)
        for axis, dim in enumerate(dims)
    ]
    binder = Binder(0, {}, {})
    binder.bind([*slots, DimSlot("past_key", 2, 4, "past", False)])
    assert [binder.roles[s.key] for s in slots if s.dim is None] == roles.split()


def test_the_smallest_sizes_are_ones_and_what_follows() -> None:
    slots = [
        DimSlot("p", 2, 4, "past", False),
        DimSlot("m", 1, 2, "past + 1", True),
        DimSlot("x", 1, 2, "C", False),
        DimSlot("x", 0, 2, "batch", False),
    ]
    found = smallest_sizes(slots, {"x[1]": 7})
    assert found == {"past": 1, "past + 1": 2, "C": 7, "batch": 1}


def words_of(slots: list[DimSlot]) -> list[str]:
    usual = Binder(0, {}, {})
    usual.bind(slots)
    return [words for words, _, _ in candidates(slots, usual)]


def test_relations_are_tried_between_few_names() -> None:
    found = [
        words_of([DimSlot(f"x{n}", 0, 1, n, False) for n in "abcdefg"[:size]]) for size in range(8)
    ]
    assert ["b = a" in words for words in found] == [False, False, *[True] * 5, False]
    assert ["c = a + b" in words for words in found] == [
        False,
        False,
        False,
        True,
        True,
        *[False] * 3,
    ]


def test_sounds_are_floats_of_few_axes_and_elements() -> None:
    def is_tried(size: int, *dims: int | str, is_integer: bool = False) -> bool:
        slots = [DimSlot("x", at, len(dims), dim, is_integer) for at, dim in enumerate(dims)]
        return f"{size} samples or frames of sound" in words_of(slots)

    assert is_tried(512, "m")
    assert is_tried(512, 1, 1, "m")
    assert not is_tried(512, 1, 1, 1, "m")
    assert not is_tried(512, "m", is_integer=True)
    assert is_tried(512, 8192, "m")  # 1 << 22 elements
    assert not is_tried(576, 8192, "m")


@pytest.mark.parametrize(
    ("x", "weight", "call"),
    [
        ("float[A]", "float w = {1}", "MatMul(x, w)"),
        ("float[A,B,C]", "float[1,1] w = {1}", "Gemm(x, w)"),
        ("float[A,B]", "float[1] w = {1}", "Gemm(x, w)"),
        ("float[A]", "float[1,1,1] w = {1}", "Conv(x, w)"),
        ("float[A,B,C]", "float[1] w = {1}", "Conv(x, w)"),
        ("float[A]", "float[1,1,1] w = {1}", "ConvTranspose(x, w)"),
        ("float[A,B,C]", "float w = {1}", "ConvTranspose(x, w)"),
        ("float[A,B]", "float[1,1,1] w = {1}", "RNN<hidden_size = 1>(x, w, w)"),
        ("float[A,B,C]", "float[1,1] w = {1}", "RNN<hidden_size = 1>(x, w, w)"),
        ("float[A,B,C]", "float[1,1,1] w = {1}", "Add(x, w)"),
        ("float[]", "float[1,1] w = {1}", "MatMul(x, w)"),
    ],
)
def test_a_weight_of_another_rank_decides_nothing(x: str, weight: str, call: str) -> None:
    model = parsed(f"({x} x) => (float[K] y) <{weight}> {{ y = {call} }}")
    assert weight_dims(model.main) == {}


def tried(*slots: DimSlot) -> list[tuple[str, dict[str, int], int]]:
    """Return the candidates, without relations of names and lengths of sound."""
    usual = Binder(0, {}, {})
    usual.bind(list(slots))
    return [
        each for each in candidates(list(slots), usual)
        if not each[0].startswith(("seq =", "foo =", "batch =")) and "sound" not in each[0]
        and ", batch 1" not in each[0]
    ]  # fmt: skip


def test_the_likeliest_sizes_are_tried_first() -> None:
    x = [DimSlot("x", axis, 2, name, True) for axis, name in enumerate(("batch", "seq"))]
    found = tried(*x, DimSlot("f", 0, 1, "foo", False))
    assert found == [
        ("sizes as usual", {}, 2),
        ("one new token after a past", {"seq": 1}, 2),
        ("no past", {"past": 0}, 2),
        ("total = seq", {"total": 24}, 2),
        ("batch 1", {"batch": 1}, 2),
        ("all dims but the batch equal", {"seq": 24, "foo": 24}, 2),
        ("all dims equal", {"batch": 24, "seq": 24, "foo": 24}, 2),
        ("square images", {"height": 64, "width": 64}, 2),
        ("images of 224", {"height": 224, "width": 224}, 2),
        *((f"rank {rank} where the model says none", {}, rank) for rank in (1, 0, 3, 4)),
        ("all dims 32", {"batch": 32, "seq": 32, "foo": 32}, 2),
        ("all dims 1", {"batch": 1, "seq": 1, "foo": 1}, 2),
    ]


def test_what_the_inputs_lack_is_not_tried() -> None:
    words = [words for words, _, _ in tried(DimSlot("x", 0, 1, "batch", False))]
    assert not any("rank" in each or "equal" in each for each in words)
    assert tried(DimSlot("x", 0, 1, "foo", False))[3] == ("total = seq", {"total": 1}, 2)


@pytest.mark.parametrize(
    ("binding", "expected"),
    [
        (0, [8, 7, 9, 10, 6, 11, 12, 10, 9]),
        (1, [5, 11, 6, 4, 9, 7, 10, 7, 13]),
        (2, [9, 8, 10, 11, 7, 12, 13, 11, 10]),
        (3, [6, 12, 7, 5, 10, 8, 11, 8, 14]),
    ],
)
def test_further_names_of_a_role_and_bindings_have_larger_sizes(
    binding: int, expected: list[int]
) -> None:
    slots = [
        DimSlot(f"x{at}", 1, 2, f"foo_{name}{name}", False) for at, name in enumerate("abcdefghi")
    ]
    slots.append(DimSlot("image", 1, 4, "channels", False))
    binder = Binder(binding, {}, {})
    binder.bind(slots)
    assert [binder.sizes[slot.key] for slot in slots] == [*expected, 3]


@pytest.mark.parametrize(
    ("tokens", "total"),
    [
        (DimSlot("ids", 1, 2, 5, True), 13),
        (DimSlot("x", 1, 2, 5, False), 8),
        (DimSlot("ids", 1, 3, 5, True), 8),
        (DimSlot("ids", 0, 2, 5, True), 8),
        (DimSlot("mask", 1, 2, 5, True), 8),
    ],
)
def test_only_the_tokens_of_an_input_count_for_the_total(tokens: DimSlot, total: int) -> None:
    binder = Binder(0, {}, {})
    binder.bind([tokens, DimSlot("key", 2, 4, "past", False), DimSlot("m", 1, 2, "total", True)])
    assert binder.sizes["total"] == total


def test_sizes_that_are_chosen_for_dims() -> None:
    assert_recorded(Path(__file__).with_name("chosen_sizes.txt"), {"=": _chosen})


def _chosen(inputs: str, _: list[str]) -> Iterator[str]:
    """Yield the names of the dims of inputs, and their sizes in four bindings."""
    body = f"y = Identity({inputs.rsplit(maxsplit=1)[-1]})"
    made = [sizes(inputs, binding, body) for binding in range(4)]
    yield f"  {', '.join(made[0])}"
    for each in made:
        assert [*each] == [*made[0]]
        yield f"  {', '.join(map(str, each.values()))}"
