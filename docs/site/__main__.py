"""`python -m docs.site [TARGET]`: build the documentation site, by default in build/docs."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.site.examples import ROOT
from docs.site.links import broken_links, missing_passes
from docs.site.sources import DOCS, write_sources


def build(target: Path) -> int:
    """Build the site in a folder; return 0, or 1 if there is a warning or a broken link."""
    from sphinx.cmd.build import main as sphinx

    sources, site = target / "sources", target / "html"
    write_sources(sources)
    options = ["-q", "-W", "--keep-going", "-b", "html", "-j", "2", "-d", str(target / "doctrees")]
    options += ["-D", f"html_static_path={sources / '_static'}"]
    code = sphinx([*options, "-c", str(DOCS), str(sources), str(site)])
    found = [*broken_links(site), *missing_passes(site)]
    for sentence in found:
        print(sentence, file=sys.stderr)
    if code or found:
        return 1
    print(f"{sum(1 for _ in site.rglob('*.html'))} pages: {site / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build" / "docs"))
