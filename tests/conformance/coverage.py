"""The nodes of models that each built-in profile takes after its pipeline: a table in Markdown.

`python -m tests.conformance.coverage models`: beside each `name.onnx` a `name.json` may have the
shapes of its inputs (`{"inputs": [{"name": ..., "shape": [...]}]}`), to which they are fixed for
targets with static shapes. For targets without float a model is optimised and quantised first.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import cyclopts

from tiered import (
    Model,
    PassContext,
    Sequential,
    TieredError,
    get_backend,
    pipeline_for,
)
from tiered.targets import Coverage
from tiered.targets.known import built_in_backends


def shapes_of(path: Path) -> dict[str, list[int]]:
    """Return the shapes of inputs that stand beside a model; none without such a file."""
    beside = path.with_suffix(".json")
    if not beside.exists():
        return {}
    return {each["name"]: each["shape"] for each in json.loads(beside.read_text())["inputs"]}


def measured(path: Path, backend: str, level: int) -> Coverage:
    """Run the pipeline of a backend on a model, and return what the backend takes of the result."""
    target, model = get_backend(backend), Model.load(path)
    if target.shapes == "static":
        model.set_input_shapes(shapes_of(path))
    if not target.computes_floats:
        with PassContext(opt_level=level):
            pipeline_for("portable", target.edits)(model)
        with PassContext(backend=target, required=["quantize"]):
            Sequential(["infer_shapes", "quantize{method=minmax, samples=1}"])(model)
    with PassContext(opt_level=level, backend=target):
        pipeline_for(target)(model)
    return target.coverage(model)


def cell(coverage: Coverage) -> str:
    """Return the share of the nodes that are taken, or how many are not."""
    taken = coverage.nodes - coverage.refused.total()
    mark = "*" if coverage.model else ""
    return f"{100 * taken / max(coverage.nodes, 1):.4g}%{mark}"


def remains(found: dict[tuple[str, str], Coverage], backend: str) -> Iterator[str]:
    """Yield a row for each reason why a backend refuses nodes, with their number and models."""
    nodes: Counter[str] = Counter()
    models: dict[str, list[str]] = {}
    for (model, name), coverage in found.items():
        for gap in coverage.gaps if name == backend else ():
            nodes[str(gap)] += len(gap.nodes)
            models.setdefault(str(gap), []).append(model)
        for refusal in coverage.model if name == backend else ():
            nodes[f"the model: {refusal}"] += 1
            models.setdefault(f"the model: {refusal}", []).append(model)
    for reason, count in nodes.most_common():
        named = list(dict.fromkeys(models[reason]))
        shown = ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
        yield f"| {backend} | {count} | {reason} | {shown} |"


def table(names: Sequence[str], rows: dict[str, list[str]]) -> Iterator[str]:
    """Yield the lines of the table of models and backends."""
    yield f"| model | {' | '.join(names)} |"
    yield "|" + "---|" * (len(names) + 1)
    for model, cells in rows.items():
        yield f"| {model} | {' | '.join(cells)} |"


def main(folder: Path, *, targets: str = "", models: str = "*", level: int = 3) -> None:
    """Print the table, and what remains.

    Args:
        folder: where the models are.
        targets: backends, separated by commas; all that are built in by default.
        models: a glob of the names of models.
        level: the optimisation level.
    """
    names = targets.split(",") if targets else [each.name for each in built_in_backends()]
    found: dict[tuple[str, str], Coverage] = {}
    rows: dict[str, list[str]] = {}
    for path in sorted(folder.glob(f"{models}.onnx")):
        cells = rows.setdefault(path.stem, [])
        for name in names:
            try:
                found[path.stem, name] = measured(path, name, level)
            except TieredError as error:
                cells.append(f"{type(error).__name__}: {error}")
            else:
                cells.append(cell(found[path.stem, name]))
    print("\n".join(table(names, rows)))
    print("\n| backend | nodes | what stops them | models |\n|---|---|---|---|")
    for name in names:
        for line in remains(found, name):
            print(line)


if __name__ == "__main__":
    cyclopts.run(main)
