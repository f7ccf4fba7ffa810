"""The summary of `tiered optimize`, for people."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import tiered
from tests.cli.conftest import SMALL
from tests.small import parsed
from tiered import Graph, function_pass
from tiered.certify.certify_instrument import Certify
from tiered.certify.rewrite_records import Certified, Word
from tiered.cli.outcome import Outcome
from tiered.cli.output.summary import (
    FEW_PASSES,
    _verified,
    complaint_note,
    overridable_note,
    print_change,
    print_summary,
    sharing_notes,
    warnings_of,
)
from tiered.cli.prepared import PreparedRun
from tiered.cli.shared_options import OptimizeOptions
from tiered.context import PassContext
from tiered.graph.io.save import PlacedWeights
from tiered.pipeline.result import ModelStatistics, OptimizeResult
from tiered.support.amounts import counted


def run(text: str = SMALL, **settings: Any) -> OptimizeResult:
    return tiered.optimize_model(parsed(text), **settings)


def summary(
    result: OptimizeResult, *, target: str | None = "b.onnx", what: str = "", **options: Any
) -> list[str]:
    """Return the lines of a summary that are not empty."""
    console = Console(width=200, markup=False, highlight=False, emoji=False)
    with console.capture() as capture:
        print_summary(
            console,
            Outcome(
                "a.onnx", target, PreparedRun.of(OptimizeOptions(**options)), result, what=what
            ),
            result,
        )
    return [line.rstrip() for line in capture.get().splitlines() if line.strip()]


# --- the head and the tables ----------------------------------------------------------------------


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("summary")


@pytest.mark.parametrize(
    ("options", "head"),
    [
        ({}, "a.onnx -> b.onnx  (-O2, "),
        ({"opt_level": 3}, "a.onnx -> b.onnx  (-O3, "),
        ({"passes": "inline"}, "a.onnx -> b.onnx  (--passes at -O2, "),
        ({"target": None}, "a.onnx -> nothing written  (-O2, "),
        ({"what": "extract", "passes": "inline"}, "a.onnx -> b.onnx  (extract, "),
    ],
)
def test_the_head_names_files_and_how(options: dict[str, Any], head: str) -> None:
    line = summary(run(), **options)[0]
    assert line.startswith(head)
    assert line.endswith("s)")


def test_invisible_characters_of_files_are_shown() -> None:
    line = summary(run(), target="b\x1b.onnx")[0]
    assert r"b\x1b.onnx" in line


def test_only_operators_that_changed_are_listed_and_all_totals() -> None:
    console = Console(width=100, markup=False, highlight=False)
    with console.capture() as capture:
        print_change(
            console,
            ModelStatistics(7, {"Add": 3, "Neg": 3, "Exp": 1}, 1000, 4000),
            ModelStatistics(9, {"Add": 3, "Neg": 1, "Gelu": 5}, 1000, 3000),
        )
    lines = [line.split() for line in capture.get().splitlines() if line.strip()]
    assert lines[0] == ["What", "changed"]
    assert lines[1] == ["operator", "before", "after", "change"]
    body = [line for line in lines[2:] if len(line) > 1]
    assert body == [
        ["Neg", "3", "1", "-2", "(-67%)"],
        ["Exp", "1", "0", "-1", "(-100%)"],
        ["Gelu", "0", "5", "+5"],
        ["nodes", "7", "9", "+2", "(+29%)"],
        ["parameters", "1,000", "1,000"],
        ["bytes", "4,000", "3,000", "-1,000", "(-25%)"],
    ]


def test_few_passes_have_their_times_and_the_rest_a_sum() -> None:
    result = run()
    few, all_of_them = summary(result), summary(result, verbose=True)
    ran = {each.name for each in result.report.ran()}
    title = f"Where the time went ({len(ran)} passes)"
    at = few.index(title)
    assert few[at + 1].split() == ["pass", "runs", "rewrites", "time"]
    rest = few[at + 3 + FEW_PASSES]
    assert rest.startswith(f"  and {len(ran) - FEW_PASSES} more, ")
    assert rest.endswith("s (-v lists them)")
    assert not any("(-v lists them)" in line for line in all_of_them)
    shown = [line.split()[0] for line in all_of_them[all_of_them.index(title) + 3 :][: len(ran)]]
    assert set(shown) == ran


def test_the_runs_and_rewrites_of_a_pass_are_summed() -> None:
    text = "(float[2] x) => (float[2] y) { a = Identity(x)  b = Identity(a)  y = Neg(b) }"
    lines = summary(run(text, passes="eliminate_identity,inline,eliminate_identity"))
    (line,) = [line.split() for line in lines if line.strip().startswith("eliminate_identity")]
    assert line[1:3] == ["2", "2"]
    assert "Where the time went (2 passes)" in lines


# --- what follows ---------------------------------------------------------------------------------


def test_fusions_and_a_changed_interface_are_told() -> None:
    gelu = """(float[n,3] x) => (float[n,3] y)
        <float h = {0.5}, float o = {1}, float r = {1.41421354}> {
        d = Div(x, r)  e = Erf(d)  s = Add(e, o)  m = Mul(x, s)  y = Mul(m, h) }"""
    lines = summary(run(gelu, opt_level=3, dims={"n": 2}), opt_level=3)
    assert "fused: Gelu 1" in lines
    at = lines.index("interface changed:")
    assert lines[at + 1].startswith("  ")
    plain = summary(run())
    assert not any(line.startswith(("fused", "interface")) for line in plain)


def test_overridable_weights_and_the_peak_are_told() -> None:
    text = "(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }"
    lines = summary(run(text))
    assert overridable_note(1) in lines
    assert any(line.startswith("peak memory: ") for line in lines)
    assert not any("overridable" in line for line in summary(run()))


@pytest.mark.parametrize(
    ("count", "subject", "them"),
    [
        (1, "1 initializer is also a graph input", "it"),
        (1234, "1,234 initializers are also graph inputs", "them"),
    ],
)
def test_the_number_of_overridable_weights_is_told(count: int, subject: str, them: str) -> None:
    frees = f"`--require remove_initializer_from_input` frees {them}"
    assert overridable_note(count) == f"{subject}, so overridable and not constant; {frees}"
    assert complaint_note("odd\n") == r"onnx.checker rejects the model: odd\n"


# --- the verdict ----------------------------------------------------------------------------------


def verdict(lines: Sequence[str]) -> str:
    (line,) = [line for line in lines if line.startswith("verified: ")]
    return line


def test_without_verification_the_option_is_named() -> None:
    assert verdict(summary(run())) == "verified: no (--verify runs model and result on onnxruntime)"
    assert verdict(summary(run(verify="structure"))).endswith(
        "(--verify runs the model after each pass)"
    )


def test_a_verified_run_says_by_what_and_how_far() -> None:
    final = verdict(summary(run(verify="final")))
    assert final.startswith("verified: yes (exact; all passes by runs of the model; ")
    assert final.endswith("largest difference 0.0e+00)")
    each = verdict(summary(run(verify="each")))
    assert each == (
        "verified: yes (exact; 2 passes by runs of the model; 2 sets of inputs, largest difference "
        "0.0e+00)"
    )
    assert verdict(summary(run("(float[2] x) => (float[2] y) { y = Neg(x) }", verify=True))) == (
        "verified: nothing to verify (no pass changed anything)"
    )


def verified(word: str, why: str = "", *, judge: str = "", how: str = "final") -> str:
    """Return what a summary says of a verdict."""
    result: Any = SimpleNamespace(
        report=SimpleNamespace(changing=list),
        verify=SimpleNamespace(
            verdict=SimpleNamespace(word=word, why=why), how=how, limits=["0.5 ulps"], largest=0.25,
            ways=[SimpleNamespace(by="model", judge=judge)] * 2, comparisons=[1],
        ),
    )  # fmt: skip
    return _verified(result)


def test_what_is_left_unproved_is_told_of_a_whole_proof_only() -> None:
    end = "1 set of inputs, largest difference 2.5e-01 within 0.5 ulps"
    runs = "by runs of the model"
    assert verified("yes") == f"verified: yes (exact; all passes {runs}; {end})"
    assert verified("yes", "a\tb").endswith(rf"{end}; a\tb)")
    assert verified("in part", "a", how="each") == (
        f"verified: in part (exact; 2 passes {runs}; {end})"
    )
    judged = verified("yes", judge="onnx.reference")
    assert f"{runs}, 2 of them on onnx.reference too, for narrow floats; {end})" in judged


def test_several_dims_that_passes_leave_have_a_hint() -> None:
    left = [
        [line.partition("; ")[0] for line in summary(run(text, opt_level=0)) if "--dim" in line]
        for text in (f"(float[{dims}] x) => (y) {{ y = Shape(x) }}" for dims in ("n,4", "n,m"))
    ]
    one, other = (
        f"1 shape operator is left because {each!r} (x[{at}]) is dynamic"
        for at, each in enumerate("nm")
    )
    assert left == [[one], [other, one, "all dynamic dims at once: `--dim n=1 --dim m=1`"]]


def certified(*words: Word, verbose: bool = False) -> list[str]:
    """Return what a summary says of rewrites that were proved in these ways."""
    certify = Certify()
    certify.findings.rewrites += [
        Certified(number, "dce", "law", "Add", 1, word, reason="because")
        for number, word in enumerate(words, start=1)
    ]
    lines = summary(run()._replace(certify=certify), verbose=verbose)
    return [line for line in lines if line.startswith(("certified:", "  #"))]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("bits",), ""),
        (("bits", "unproved"), " (-v names it)"),
        (("run", "unproved"), " (-v names them)"),
    ],
)
def test_summary_says_how_to_name_the_rewrites_without_a_proof(
    words: Sequence[Word], hint: str
) -> None:
    (line,) = certified(*words)
    assert line.startswith(f"certified: {counted(len(words), 'rewrite')}: ")
    assert line.endswith(hint or "bit for bit")
    assert ("(-v" in line) == bool(hint)
    assert "(-v" not in certified(*words, verbose=True)[0]


def test_summary_names_refuted_rewrites_always_and_unproved_ones_when_verbose() -> None:
    words: list[Word] = ["bits", "refuted", "unproved"]
    assert certified(*words)[1:] == ["  #2 dce: REFUTED: because"]
    assert certified(*words, verbose=True)[1:] == [
        "  #2 dce: REFUTED: because",
        "  #3 dce: not proved: because",
    ]


# --- remarks --------------------------------------------------------------------------------------


@function_pass(opt_level=None, name="opted_in")
def opted_in(graph: Graph, ctx: PassContext) -> None:
    """Say what it found."""
    ctx.remark("found by request")


@function_pass(opt_level=0, name="usual")
def usual(graph: Graph, ctx: PassContext) -> None:
    """Say what it found."""
    ctx.remark("found as usual")


@function_pass(opt_level=None, numerics="lossy", name="rough")
def rough(graph: Graph, ctx: PassContext) -> None:
    """Say what it found, and leave nodes."""
    ctx.remark("found roughly")
    ctx.skip(graph.nodes[0], "left")


def test_what_passes_found_that_no_level_runs_is_told_without_v() -> None:
    result = run(passes=[opted_in, usual, rough])
    lines = summary(result)
    assert any("found by request" in line for line in lines)
    assert any("found roughly" in line for line in lines)
    assert any("left" in line for line in lines)
    assert not any("found as usual" in line for line in lines)
    verbose = summary(result, verbose=True)
    assert any("found as usual" in line for line in verbose)
    assert sum("found roughly" in line for line in verbose) == 1


def test_loud_remarks_are_warnings() -> None:
    assert warnings_of(run()) == []
    loud = run(passes="eliminate_identity", disabled=["fuse_gelu"])
    unmet = [str(each) for each in loud.remarks if each.kind == "unmet"]
    assert unmet
    assert [text for text in warnings_of(loud) if text in unmet] == unmet
    assert not any(text in summary(loud, verbose=True) for text in unmet)


# --- sharing --------------------------------------------------------------------------------------


COPIED = (
    "--share-weights: {} copied to b.onnx.data, as d is not the folder of the model that was read"
)
MADE = "--share-weights: {} that passes made written to b.onnx.data"


@pytest.mark.parametrize(
    ("shared", "copied", "made", "notes"),
    [
        ((2, 100), (0, 0), (0, 0), []),
        ((0, 0), (0, 0), (0, 0),
         ["--share-weights: the model has no external weights; nothing is shared"]),
        ((0, 0), (0, 0), (1, 100), [MADE.format("1 tensor (100 B)")]),
        ((0, 0), (1, 2048), (0, 0), [COPIED.format("1 tensor (2.0 KiB)")]),
        ((1, 8), (0, 0), (3, 100), [MADE.format("3 tensors (100 B)")]),
        ((0, 0), (2, 10), (1, 5),
         [COPIED.format("2 tensors (10 B)"), MADE.format("1 tensor (5 B)")]),
    ],
)  # fmt: skip
def test_what_could_not_be_shared_is_told(
    shared: tuple[int, int], copied: tuple[int, int], made: tuple[int, int], notes: list[str]
) -> None:
    placed = PlacedWeights(shared=shared, copied=copied, made=made)
    assert list(sharing_notes(placed, "d/b.onnx", ".data")) == notes


def test_a_file_of_the_working_folder_is_in_it() -> None:
    placed = PlacedWeights(shared=(0, 0), copied=(1, 1), made=(0, 0))
    (note,) = sharing_notes(placed, "b.onnx", ".safetensors")
    assert "copied to b.onnx.safetensors, as . is not the folder" in note
