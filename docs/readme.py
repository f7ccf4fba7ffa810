"""The numbers and the chart of README.md and docs/tour.md: `python -m docs.readme` writes them.

They come from a run on a model of examples/models, from the registry of passes, and from the table
of docs/peers.md, which `make bench` measured. `tests/cli/test_readme.py` holds the files to them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tiered.passes.interface.registry import registry

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = ("README.md", "docs/tour.md")
CHART: Final = "docs/readme.svg"
MODEL: Final = "examples/models/bert.ts.onnx"
SHOWN: Final = 6
"""Tools in the chart."""

_ROW: Final = re.compile(r"^\| ([^|]+) \| \**([\d.]+)\** \| \**([\d.]+)\** \|.*ms", re.MULTILINE)


def peers() -> list[tuple[str, float, float]]:
    """Return each tool of docs/peers.md with its share of nodes and of latency."""
    rows = _ROW.findall((ROOT / "docs" / "peers.md").read_text(encoding="utf-8"))
    return [(name.strip(), float(nodes), float(latency)) for name, nodes, latency in rows]


def numbers() -> list[tuple[str, str]]:
    """Return patterns of the pages, and what is there in their place."""
    summary = _summary()
    (_, nodes, latency), *_ = peers()
    rows = (r"^ nodes .*$", r"^ parameters .*$", r"^ bytes .*$", r"\(\d{2,} passes\)")
    return [
        *((pattern, _found(pattern, summary)) for pattern in rows),
        (r"lists all [\d,]+", f"lists all {len(registry.names()):,}"),
        (r"[\d.]+ % of the nodes", f"{nodes * 100:.0f} % of the nodes"),
        (r"[\d.]+ % of the time", f"{latency * 100:.0f} % of the time"),
    ]


def _summary() -> str:
    """Return what a run on the model prints."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["optimize", MODEL, str(Path(folder) / "bert.onnx"), "-O3"]
        done = subprocess.run(
            [sys.executable, "-m", "tiered", *command],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    return done.stdout


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, pattern
    return found[0].rstrip()


def written(page: str, found: list[tuple[str, str]]) -> str:
    """Return the text of a page with the numbers that were found, each at its first place."""
    for pattern, text in found:
        page = re.sub(pattern, text, page, count=1, flags=re.MULTILINE)
    return page


def chart() -> str:
    """Return bars of what is left of the nodes and of the latency, by tool, as SVG."""
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 236" role="img">',
        "<title>What is left of 20 models: nodes and latency, 100 % is the original</title>",
        "<style>text { font: 13px sans-serif; fill: #24292f } rect { fill: #afb8c1 }"
        " .ours { fill: #0969da } .title { font-weight: bold }"
        " @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } rect { fill: #484f58 }"
        " .ours { fill: #4493f8 } }</style>",
        '<text class="title" x="215" y="20">nodes left</text>',
        '<text class="title" x="490" y="20">latency left</text>',
    ]
    for at, (name, *shares) in enumerate(peers()[:SHOWN]):
        y, kind = 32 + at * 34, ' class="ours"' if at == 0 else ""
        lines.append(f'<text x="205" y="{y + 17}" text-anchor="end">{name}</text>')
        for x, share in zip((215, 490), shares, strict=True):
            wide = round(share * 200)
            lines.append(f'<rect{kind} x="{x}" y="{y}" width="{wide}" height="24"/>')
            lines.append(f'<text x="{x + wide + 6}" y="{y + 17}">{share:.0%}</text>')
    return "\n".join((*lines, "</svg>")) + "\n"


def main() -> None:
    """Write the numbers into the pages, and the chart."""
    found = numbers()
    for name in PAGES:
        path = ROOT / name
        path.write_text(written(path.read_text(encoding="utf-8"), found), encoding="utf-8")
    (ROOT / CHART).write_text(chart(), encoding="utf-8")


if __name__ == "__main__":
    main()
