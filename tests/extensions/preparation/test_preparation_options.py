"""Options of a preparation: what has no effect is refused; and the line of a shell."""

from typing import Any

import pytest

from tiered import Backend, UsageError
from tiered.extensions.preparation.precisions import PrecisionOptions
from tiered.extensions.preparation.preparation_options import (
    LEVEL,
    PrepareOptions,
    check_options,
    prepare_line,
    processor_in,
    repeated,
    shape_texts,
    target_of,
)
from tiered.support.errors import BackendNotFoundError


def options(*, to: tuple[str, ...] = (), precision: Any = None, **more: Any) -> PrepareOptions:
    return PrepareOptions(to=to, precision=PrecisionOptions(**(precision or {})), **more)


@pytest.mark.parametrize("level", [-1, 5, 30])
def test_a_level_is_from_0_to_4(level: int) -> None:
    with pytest.raises(UsageError, match=f"-O takes 0 to 4, not {level}"):
        check_options(options(opt_level=level))


@pytest.mark.parametrize("level", [0, 4])
def test_the_ends_of_the_levels_are_levels(level: int) -> None:
    check_options(options(opt_level=level))


USELESS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # what is needed: the options without it, and what is added.
    "--expand has no effect: it needs --opset": ({"expand": True}, {"opset": 17}),
    "--budget has no effect: it needs --to with less accuracy than float": (
        {"precision": {"budget": "cosine>=0.9"}, "to": ("int32",)}, {"to": ("fp16",)}),
    "--order has no effect: it needs --budget and --to fp16, bf16, mixed or int8": (
        {"precision": {"order": "error"}, "to": ("fp16",)},
        {"precision": {"order": "error", "budget": "cosine>=0.9"}}),
    "--keep-ops has no effect: it needs --to": (
        {"precision": {"keep_ops": ["Erf"]}}, {"to": ("int32",)}),
    "--keep-nodes has no effect: it needs --to": (
        {"precision": {"keep_nodes": ["a*"]}}, {"to": ("fp8",)}),
    "--bounds has no effect: it needs --to int32": (
        {"precision": {"bounds": ["a=0:1"]}, "to": ("fp16",)}, {"to": ("fp16", "int32")}),
    "--for avx2, vnni or any has no effect: it needs --to int8": (
        {"precision": {"processor": "avx2"}, "to": ("fp8",)}, {"to": ("int8-dynamic",)}),
}  # fmt: skip


@pytest.mark.parametrize("reason", USELESS)
def test_an_option_without_effect_is_refused(reason: str) -> None:
    given, added = USELESS[reason]
    with pytest.raises(UsageError, match=reason):
        check_options(options(**given))
    check_options(options(**{**given, **added}))


def test_an_order_that_the_value_does_not_take_is_refused() -> None:
    both = {"order": "error", "budget": "cosine>=0.9"}
    with pytest.raises(UsageError, match="--order has no effect"):
        check_options(options(to=("fp8",), precision=both))
    check_options(options(to=("int8",), precision=both))


def test_values_that_do_not_go_together_are_refused_first() -> None:
    with pytest.raises(UsageError, match="use one of them"):
        check_options(options(to=("fp16", "bf16")))


@pytest.mark.parametrize(
    ("name", "found"), [("avx2", "avx2"), ("any", "any"), ("npu.toml", None), (None, None)]
)
def test_a_processor_may_be_named_in_the_place_of_a_target(
    name: str | None, found: str | None
) -> None:
    assert processor_in(name) == found


def test_a_target_is_given_or_named() -> None:
    mine = Backend(name="mine", unlisted="standard")
    assert target_of(mine) is mine
    assert target_of("int8_npu").name == "int8_npu"
    with pytest.raises(BackendNotFoundError):
        target_of("no_such_target")


LINES: list[tuple[PrepareOptions, str]] = [
    (options(), ""),
    (options(opt_level=LEVEL), ""),
    (options(opt_level=2), "-O2"),
    (options(dims={"N": 2, "S": "length"}), "--dim N=2 --dim S=length"),
    (options(input_shapes={"x": [1, 3, "h"], "y": [2]}),
     "--input-shape x:1,3,h --input-shape y:2"),
    (options(to=("fp16", "int32")), "--to int32 --to fp16"),
    (options(backend="npu.toml", opset=17, ir=8), "--for npu.toml --opset 17 --ir 8"),
    (options(opset=17, expand=True), "--opset 17 --expand"),
    (options(strip=("metadata", "docs")), "--strip metadata --strip docs"),
    (options(to=("fp16",), precision={"budget": "cosine>=0.9", "order": "error"}),
     "--to fp16 --budget 'cosine>=0.9' --order error"),
    (options(to=("int8",), precision={"inputs": ["a.npz", "b.npz"], "processor": "vnni"}),
     "--to int8 --for vnni --inputs a.npz --inputs b.npz"),
    (options(to=("fp16",), precision={"keep_ops": ["Erf"], "keep_nodes": ["a b"],
                                      "keep_io": False}),
     "--to fp16 --keep-ops Erf --keep-nodes 'a b' --no-keep-io"),
    (options(to=("int32",), precision={"bounds": ["ids=0:9"]}), "--to int32 --bounds ids=0:9"),
    (options(backend="npu", precision={"processor": "avx2"}), "--for npu"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "words"), LINES)
def test_the_line_has_all_options_that_are_no_default(given: PrepareOptions, words: str) -> None:
    line = prepare_line(given, "in.onnx", "b c.onnx")
    assert line == f"tiered prepare in.onnx 'b c.onnx' {words}".rstrip()


def test_the_line_has_files_of_its_own_and_the_host() -> None:
    assert prepare_line(options()) == "tiered prepare model.onnx out.onnx"
    assert prepare_line(options(), host=True).endswith("out.onnx --host")


def test_words_of_repeated_options() -> None:
    assert repeated("--dim", ["a", "b"]) == ("--dim", "a", "--dim", "b")
    assert repeated("--dim", []) == ()
    assert shape_texts(options(input_shapes={"x": []})) == ["x:"]
