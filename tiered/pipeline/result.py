"""The results of an optimisation beside the model."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from tiered.context import PassContext
from tiered.graph import Model
from tiered.graph.queries.stored_tensors import stored_tensors
from tiered.passes.interface.report import Remark, Report
from tiered.pipeline.pipeline_base import Pipeline
from tiered.support.amounts import change, counted, size
from tiered.support.operator_name import operator_name

if TYPE_CHECKING:
    from tiered.certify.certify_instrument import Certify
    from tiered.runtime import Comparison
    from tiered.verify.verify_instrument import Verify


class ModelStatistics(NamedTuple):
    """The contents of a model in numbers.

    Attributes:
        nodes: in the main graph, bodies and local functions together.
        operators: how many of each, the most frequent first; `com.microsoft::Gelu` with its domain.
        parameters: elements of all initializers and Constant nodes.
        nbytes: bytes of the model as a file, with external data.
    """

    nodes: int
    operators: dict[str, int]
    parameters: int
    nbytes: int

    @classmethod
    def of(cls, model: Model, *, file: int | None = None) -> ModelStatistics:
        """Count the contents of a model; no bytes of tensors are read.

        Args:
            model: the model.
            file: the bytes of the model file, where they are known already.
        """
        operators = _operators(model)
        tensors = [tensor for _, tensor in stored_tensors(model.graphs())]
        if file is None:
            nbytes = model.skeleton_size() + sum(t.nbytes for t in tensors if t.is_on_disk)
        else:
            nbytes = file + sum(t.nbytes for t in tensors if t.is_external)
        return cls(
            nodes=sum(operators.values()),
            operators=operators,
            parameters=sum(tensor.size for tensor in tensors),
            nbytes=nbytes,
        )

    def record(self) -> dict[str, Any]:
        """Return them as plain data."""
        return {
            "nodes": self.nodes,
            "operators": self.operators,
            "parameters": self.parameters,
            "bytes": self.nbytes,
        }


def _operators(model: Model) -> dict[str, int]:
    """Return how many nodes of each operator there are, the most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    for graph in model.graphs():
        counts.update({key: len(alike) for key, alike in graph._by_op.items() if alike})
    named = {operator_name(domain, name): n for (domain, name), n in counts.items()}
    return dict(sorted(named.items(), key=lambda item: (-item[1], item[0])))


class OptimizeSummary(NamedTuple):
    """The changes of an optimisation; as text it is a table.

    Attributes:
        before, after: the contents of the model.
        seconds: the time that the passes took, without loading, with verification.
        rewrites: how many rewrites the passes made.
        opt_level: the level.
        backend: the name of the target.
        verified: whether outputs were compared after each pass that changed something, and all kept
            their promises.
        out: the file that was written; "" for none.
    """

    before: ModelStatistics
    after: ModelStatistics
    seconds: float
    rewrites: int
    opt_level: int
    backend: str
    verified: bool
    out: str = ""

    def __str__(self) -> str:
        head = f"-O{self.opt_level} for {self.backend}: {counted(self.rewrites, 'rewrite')}"
        head += f" in {self.seconds:.2f} s, {'' if self.verified else 'not '}verified"
        rows = [("", "before", "after", "change")]
        counts = self.before.operators, self.after.operators
        for name in dict.fromkeys(name for each in counts for name in each):
            rows.append(_row(name, counts[0].get(name, 0), counts[1].get(name, 0)))
        rows = [row for row in rows if row[3]]  # Unchanged rows are left out.
        rows += [
            _row("nodes", self.before.nodes, self.after.nodes),
            _row("parameters", self.before.parameters, self.after.parameters),
            _row("bytes", self.before.nbytes, self.after.nbytes),
        ]
        widths = [max(len(row[at]) for row in rows) for at in range(4)]
        lines = [head]
        for name, *cells in rows:
            padded = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
            lines.append("  ".join([name.ljust(widths[0]), *padded]).rstrip())
        return "\n".join([*lines, *([f"written to {self.out}"] if self.out else [])])


def _row(name: str, before: int, after: int) -> tuple[str, str, str, str]:
    return name, f"{before:,}", f"{after:,}", change(before, after)


class OptimizeResult(NamedTuple):
    """An optimised model and how it came about; as text it is the table of its summary.

    Attributes:
        model: the optimised model; `to_proto()`, `save(path)`.
        pipeline: the passes that were asked; `pipeline.plan(result.context)` says which run.
        context: the context they ran in, left by now.
        before, after: the contents of the model.
        seconds: the time that the passes took, without loading, with verification.
        verify: the instrument that verified, if that was asked for.
        certify: the instrument that proved the rewrites, if that was asked for.
    """

    model: Model
    pipeline: Pipeline
    context: PassContext
    before: ModelStatistics
    after: ModelStatistics
    seconds: float
    verify: Verify | None = None
    certify: Certify | None = None

    @property
    def verified(self) -> tuple[Comparison, ...] | None:
        """How the outputs compared last, for each sample; None if nothing was run."""
        if self.verify is None or self.verify.how == "structure":
            return None
        return tuple(self.verify.comparisons)

    @property
    def report(self) -> Report:
        """The result of each pass, in order, with its time."""
        return self.context.report

    @property
    def remarks(self) -> list[Remark]:
        """The remarks: applied, missed, skipped, found."""
        return self.context.remarks

    @property
    def summary(self) -> OptimizeSummary:
        """The figures, without the model."""
        return summary_of(self.context, self.before, self.after, self.seconds, self.verify)

    def __str__(self) -> str:
        return str(self.summary)

    def _repr_html_(self) -> str:
        """Return the summary as tables, for a notebook."""
        from tiered.support.pages.render import fragment, short
        from tiered.support.pages.sections import Table

        was, now = self.before, self.after
        rows = [
            (short(name), was.operators.get(name, 0), now.operators.get(name, 0))
            for name in dict.fromkeys((*was.operators, *now.operators))
        ]
        cells = [(*row, change(row[1], row[2])) for row in rows if row[1] != row[2]]
        cells.append(("nodes", was.nodes, now.nodes, change(was.nodes, now.nodes)))
        sizes = size(was.nbytes), size(now.nbytes), change(was.nbytes, now.nbytes)
        headers = ("", "before", "after", "change")
        title = str(self).partition("\n")[0]
        return fragment(title, Table("What changed", headers, [*cells, ("bytes", *sizes)]))


def summary_of(
    context: PassContext,
    before: ModelStatistics,
    after: ModelStatistics,
    seconds: float,
    verify: Verify | None,
    out: str = "",
) -> OptimizeSummary:
    """Return the summary of a run that has ended; arguments as the attributes of the results."""
    return OptimizeSummary(
        before=before,
        after=after,
        seconds=seconds,
        rewrites=sum(result.rewrites for result in context.report.ran()),
        opt_level=context.opt_level,
        backend=str(context.target),
        verified=verify is not None and verify.verdict.is_proved,
        out=out,
    )
