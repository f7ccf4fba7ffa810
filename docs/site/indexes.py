"""The indexes of passes: by group, by level and by operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from docs.site import markdown
from docs.site.markdown import code, text
from docs.site.pass_pages import group_of, level_of
from tiered.passes import PassInfo

OTHERS = {"*": "any operator", "elementwise": "elementwise operators"}


def index_pages(infos: Iterable[PassInfo]) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of each index."""
    passes = sorted(infos, key=lambda info: info.name)
    groups = _grouped((group_of(info), info) for info in passes)
    for group, members in groups.items():
        yield f"groups/{group}.md", _page(group, [_table(members)])
    levels = _grouped((level_of(info), info) for info in passes)
    parts = [f"## Level {level}\n\n{_table(levels[level])}" for level in sorted(levels)]
    yield "by_level.md", _page("Passes by level", parts)
    operators = _grouped((name, info) for info in passes for name in info.touches)
    parts = [
        f"## {text(OTHERS.get(name, name))}\n\n{_table(operators[name])}"
        for name in sorted(operators, key=lambda name: (name in OTHERS, name.lower()))
    ]
    yield "by_operator.md", _page("Passes by operator", parts)
    first = [
        f"{len(passes)} passes. A group is the operator that remains after the rewrite.",
        "See also the passes [by level](by_level.md) and [by operator](by_operator.md).",
        *(
            f"## [{group}](groups/{group}.md)\n\n{', '.join(map(_link, members))}"
            for group, members in groups.items()
        ),
    ]
    listed = ["by_level", "by_operator", *(f"groups/{group}" for group in groups)]
    yield "index.md", _page("Passes", first, listed)


def _grouped(pairs: Iterable[tuple[str, PassInfo]]) -> dict[str, list[PassInfo]]:
    found: dict[str, list[PassInfo]] = {}
    for key, info in pairs:
        found.setdefault(key, []).append(info)
    return dict(sorted(found.items()))


def _page(title: str, parts: Iterable[str], listed: Iterable[str] = ()) -> str:
    tree = "\n".join(listed)
    toctree = f"```{{toctree}}\n:hidden:\n\n{tree}\n```" if tree else ""
    return "\n\n".join((f"# {text(title)}", *parts, toctree)).strip() + "\n"


def _link(info: PassInfo) -> str:
    return f"[{text(info.name)}](/passes/{info.name}.md)"


def _table(infos: Iterable[PassInfo]) -> str:
    rows = (
        (_link(info), code(info.law), level_of(info),
         "changes nothing" if info.analysis else info.numerics.value)
        for info in infos
    )  # fmt: skip
    return markdown.table(("pass", "law", "level", "numeric class"), rows)
