"""The figures of a run: what a model contains before and after, as a table and as data."""

from typing import Any

import numpy as np
import pytest

from tests.small import model as small, parsed
from tiered import PassContext, optimize_model
from tiered.graph import Tensor
from tiered.pipeline.result import ModelStatistics, OptimizeSummary, summary_of
from tiered.testing import parse

TEXT = """(float[2] x, bool c) => (float[2] y) <float[2] w = {1,2}> {
    k = Constant<value = float[3] {1,2,3}>()  a = Add(x, w)  g = com.microsoft.Gelu(a)
    y = If(c) <then_branch = t () => (float[2] p) { p = Add(g, g) },
               else_branch = e () => (float[2] q) { q = Neg(a) }> }"""


IDENTITY = "(float[2] x) => (float[2] y) { a = Identity(x)  y = Neg(a) }"


def test_contents_are_counted_in_bodies_too() -> None:
    found = ModelStatistics.of(parsed(TEXT))
    assert found.nodes == 6
    assert found.operators == {
        "Add": 2, "Constant": 1, "If": 1, "Neg": 1, "com.microsoft::Gelu": 1
    }  # fmt: skip
    first, *rest = found.operators
    assert (first, rest) == ("Add", sorted(rest))
    assert found.parameters == 5
    assert found.nbytes == parsed(TEXT).to_proto().ByteSize()
    assert found.record() == {
        "nodes": 6, "operators": found.operators, "parameters": 5, "bytes": found.nbytes
    }  # fmt: skip


def test_the_bytes_of_a_known_file_are_not_counted_again() -> None:
    assert ModelStatistics.of(parsed(TEXT), file=7).nbytes == 7


def statistics(
    nodes: int, nbytes: int = 100, parameters: int = 0, **operators: int
) -> ModelStatistics:
    return ModelStatistics(nodes, operators, parameters, nbytes)


def summary(before: ModelStatistics, after: ModelStatistics, **fields: object) -> list[str]:
    given = {"seconds": 1.234, "rewrites": 1, "opt_level": 3, "backend": "b", "verified": False}
    return str(OptimizeSummary(before, after, **{**given, **fields})).splitlines()  # type: ignore[arg-type]  # any


def test_a_summary_is_a_table_of_what_changed() -> None:
    lines = summary(statistics(1200, Add=1000, Mul=200), statistics(300, Add=100, Mul=200, Neg=3))
    assert lines[0] == "-O3 for b: 1 rewrite in 1.23 s, not verified"
    cells = [line.split() for line in lines[1:]]
    assert cells[0] == ["before", "after", "change"]
    names = [row[0] for row in cells[1:]]
    assert names == ["Add", "Neg", "nodes", "parameters", "bytes"]
    assert cells[1][1:3] == ["1,000", "100"]
    assert cells[2][1:3] == ["0", "3"]
    # Columns are as wide as their widest cell.
    assert len({line.index("after") + len("after") for line in lines[1:2]}) == 1
    ends = [line.find("1,000") + 5 for line in lines if "1,000" in line]
    assert ends == [lines[1].index("before") + 6]


def test_a_summary_says_whether_it_was_verified_and_where_it_was_written() -> None:
    same = statistics(1, Add=1)
    assert summary(same, same, verified=True)[0].endswith("s, verified")
    assert summary(same, same, rewrites=2)[0].startswith("-O3 for b: 2 rewrites in")
    assert summary(same, same, out="out.onnx")[-1] == "written to out.onnx"
    assert [line.split()[0] for line in summary(same, same)[2:]] == ["nodes", "parameters", "bytes"]


def test_a_result_has_the_report_of_its_context() -> None:
    result = optimize_model(parse(IDENTITY), passes=["eliminate_identity"])
    changed = [each.name for each in result.report.ran() if each.changed]
    assert changed[0] == "eliminate_identity"
    assert result.verified is None
    assert result.summary.rewrites == sum(each.rewrites for each in result.report.ran())
    assert (result.summary.opt_level, result.summary.backend) == (2, str(result.context.target))
    assert not result.summary.verified
    assert str(result) == str(result.summary)
    assert result.remarks == result.context.remarks
    page = result._repr_html_()
    for text in ("Identity", "nodes", "bytes", "What changed"):
        assert text in page


@pytest.mark.parametrize(("verify", "count"), [("structure", None), (True, 1)])
def test_outputs_were_compared_if_they_were_run(verify: Any, count: int | None) -> None:
    result = optimize_model(parse(IDENTITY), passes=["eliminate_identity"], verify=verify)
    found = result.verified
    assert (None if found is None else bool(found)) is (None if count is None else True)
    assert result.summary.verified is (count is not None)


def test_a_summary_of_a_context_counts_its_rewrites() -> None:
    with PassContext(opt_level=1) as ctx:
        pass
    stats = ModelStatistics.of(small())
    made = summary_of(ctx, stats, stats, 2.0, None, "o")
    assert (made.rewrites, made.opt_level, made.seconds, made.out) == (0, 1, 2.0, "o")
    assert made.verified is False


def test_weights_that_are_external_count_beside_the_file(tmp_path: object) -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    model.main.add_constant(Tensor.of(np.zeros(10, np.float32)), "w")
    assert ModelStatistics.of(model).parameters == 10
    assert ModelStatistics.of(model, file=50).nbytes == 50  # none is external
