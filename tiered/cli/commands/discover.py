"""Search a model for subgraphs that a cheaper graph replaces, and that no pass knows.

Examples:
    tiered discover in.onnx
    tiered discover in.onnx --apply out.onnx
    tiered discover in.onnx --json > found.json

With `--json`, one object:
    model, level: the file, and the level of the pipeline that ran first.
    nodes: of the model after it.
    subgraphs, kinds, skipped: how many there are, how many differ, how many could not be tried.
    left: how many kinds were not searched, as there are more than `--most-kinds`.
    applied: how many subgraphs `--apply` replaced; null without it.
    findings: [{law, proved: "bits" or "reals", places, nodes, bytes, roots, before, after}]: nodes
        and bytes are what all places save; before and after are models as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from tiered.cli.files import check_input, check_output
from tiered.cli.line.declaration import Flags
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shared_options import AsJson
from tiered.support.amounts import counted
from tiered.support.errors import TargetError

if TYPE_CHECKING:
    from tiered.extensions.discovery.mining import Finding, Mined

_WORDS = {"bits": "bit for bit", "reals": "over the reals"}


def discover(
    file: Annotated[str, Flags("MODEL")],
    /,
    *,
    apply: str | None = None,
    opt_level: Annotated[int, Flags("--opt-level")] = 3,
    most_nodes: int = 4,
    most_kinds: int = 400,
    as_json: AsJson = False,
) -> None:
    """Print what could still go in the model of a file; each finding is proved at small sizes.

    What is applied is proved again for the model: exit code 4 if it is not, and nothing is written.

    Args:
        file: The ONNX file to read.
        apply: The file to write, with each finding applied once, for this model.
        opt_level: The level of the pipeline that runs first.
        most_nodes: The most nodes of a subgraph.
        most_kinds: The most kinds of subgraphs that are searched, the most frequent ones first.

    Raises:
        ModelError: a file cannot be read or written.
        UsageError: the file to write is the one that is read.
        TargetError: there is nothing to apply, or the result is not certified; nothing is written.
    """
    check_input(file)
    if apply is not None:
        check_output(file, apply)
    with Progress() as progress:
        progress.say(f"optimising {printable(file)}")
        from tiered.extensions.discovery.mining import mine
        from tiered.pipeline.optimize import optimize_model

        model = optimize_model(file, opt_level=opt_level).model
        nodes = len(model.main.nodes)

        def reached(at: int, count: int) -> None:
            progress.say(f"searching: {at} of {count} kinds of subgraphs")

        mined = mine(model, most_nodes=most_nodes, most_kinds=most_kinds, reached=reached)
        applied = None
        if apply is not None:
            from tiered.extensions.discovery.applying import apply_findings

            if not mined.findings:
                raise TargetError(f"nothing was found in {printable(file)}; nothing is written")
            progress.say("applying and proving")
            applied = apply_findings(model, mined.findings)
            model.save(apply)
    if as_json:
        print_json(_record(file, opt_level, nodes, mined, applied))
        return
    for line in _said(nodes, mined):
        results().print(printable(line), soft_wrap=True)
    if apply is not None and applied is not None:
        left = len(model.main.nodes)
        results().print(
            f"wrote {printable(apply)}: {counted(applied, 'subgraph')} replaced, {nodes} to {left} "
            "nodes, certified",
            soft_wrap=True,
        )


def _said(nodes: int, mined: Mined) -> list[str]:
    lines = [
        f"{counted(nodes, 'node')}: {counted(mined.subgraphs, 'subgraph')} of "
        f"{counted(mined.kinds, 'kind')}, {mined.skipped} of them without terms or too large"
    ]
    if mined.left:
        lines.append(f"{counted(mined.left, 'rare kind')} not searched (see --most-kinds)")
    if not mined.findings:
        return [*lines, "nothing was found"]
    for number, each in enumerate(mined.findings):
        saved = counted(each.gain[0], "node") if each.nodes > 0 else f"{each.gain[1]} bytes"
        lines.append(
            f"  {number}: {each.law}  ({counted(len(each.places), 'place')}, {saved} fewer, "
            f"equal {_WORDS[each.domain]})"
        )
        lines.append(f"     {each.source}  =>  {each.target}")
    return [*lines, "tiered new FOLDER/NAME --from FOUND.json#0 writes the first one as a pass"]


def _record(file: str, level: int, nodes: int, mined: Mined, applied: int | None) -> dict[str, Any]:
    return {
        "model": file,
        "level": level,
        "nodes": nodes,
        "subgraphs": mined.subgraphs,
        "kinds": mined.kinds,
        "skipped": mined.skipped,
        "left": mined.left,
        "applied": applied,
        "findings": [_finding(each) for each in mined.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    from tiered.extensions.discovery.skeleton import model_text

    return {
        "law": finding.law,
        "proved": finding.domain,
        "places": len(finding.places),
        "nodes": finding.gain[0],
        "bytes": finding.gain[1],
        "roots": [cut.root.label for cut in finding.places],
        "before": model_text(finding.source, finding.source),
        "after": model_text(finding.target, finding.source),
    }
