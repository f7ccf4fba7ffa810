"""Statistics: what each pass did."""

from tests.small import drop_neg, failing, fuse_relu, keep_abs, model
from tiered import PassContext, Sequential
from tiered.pipeline.instruments import Statistics


def test_each_pass_is_counted_over_all_its_runs() -> None:
    statistics = Statistics()
    with PassContext(on_error="skip", instruments=[statistics]):
        for _ in range(2):
            Sequential([fuse_relu, drop_neg, keep_abs, failing(ValueError())])(model())
    fused, kept = statistics["fuse_relu"], statistics["keep_abs"]
    assert (fused.runs, fused.rewrites, fused.nodes, fused.skipped) == (2, 2, -2, 0)
    assert fused.edits > 2
    assert (kept.attempts, kept.rewrites, kept.declined) == (2, 0, 2)
    assert (statistics["drop_neg"].runs, statistics["drop_neg"].skipped) == (0, 2)
    assert (statistics["failing"].failed, statistics["failing"].rewrites) == (2, 0)
    assert "sequential" not in statistics.passes


def test_it_reads_as_a_table() -> None:
    statistics = Statistics()
    with PassContext(instruments=[statistics]):
        fuse_relu(model())
    head, row = str(statistics).splitlines()
    assert head.split()[:4] == ["runs", "skipped", "failed", "attempts"]
    assert row.split()[0] == "1"
    assert row.endswith("fuse_relu")
