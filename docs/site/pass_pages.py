"""The page of each pass, from its declaration, its file and its tests."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from docs.site import markdown
from docs.site.examples import ROOT, example_of, own_tests
from docs.site.markdown import code, text
from docs.site.pictures import picture_of
from tiered.cli.commands.docs import reference
from tiered.cli.commands.passes import describe
from tiered.graph import Model
from tiered.passes import PassInfo
from tiered.passes.interface.registry import registry
from tiered.pipeline.instruments.onnx_text import model_text
from tiered.support import aliases as aliases_module
from tiered.support.option_text import format_value
from tiered.support.pages.render import script_json

FOLDERS = ("function_passes", "module_passes")
CLASSES = {
    "exact": "exact: the outputs stay the same bit for bit",
    "reassociating": "reassociating: within float tolerance",
    "approximate": "approximate: within a stated metric",
    "lossy": "lossy: accuracy is lost",
}


def own_passes() -> list[PassInfo]:
    """Return the passes of this repository, those of other packages left out."""
    inside = ROOT / "tiered"
    infos = [registry.named(name).info for name in registry.names()]
    return [info for info in infos if Path(info.source).resolve().is_relative_to(inside)]


def group_of(info: PassInfo) -> str:
    """Return the folder of a pass: the operator that remains, or "module"."""
    folder = Path(info.source).resolve().parent
    return "module" if folder.name == "module_passes" else folder.name


def level_of(info: PassInfo) -> str:
    """Return the level from which a pass runs."""
    return "opt-in" if info.opt_level is None else str(info.opt_level)


def pass_page(info: PassInfo) -> str:
    """Return the page of a pass as Markdown.

    Raises:
        ValueError: no test has a rewrite of a pass that changes models.
    """
    found = reference(info)
    aliases: list[str] = describe(info)["aliases"]
    example = None if info.analysis else example_of(info)
    if example is None and not info.analysis and info.kind != "pipeline":
        raise ValueError(
            f"no test shows what {info.name} makes of a model; expected an example in "
            f"{own_tests(info).name}, test_golden.py or test_golden_files.py"
        )
    picture = None if example is None else picture_of(info, example)
    beside = {} if example is None else example.beside
    options = {} if example is None else example.options
    return markdown.render(
        "pass.md.j2",
        info=info,
        facts=_facts(info),
        reference=found,
        aliases=[(name, _systems().get(name, "")) for name in aliases],
        option_table=_options(info),
        example=example,
        options=", ".join(f"{name}={format_value(value)}" for name, value in options.items()),
        picture=picture,
        beside=[(name, model_text(Model.from_proto(model))) for name, model in beside.items()],
        place=_place(info, found["required_by"], found["pipeline"]),
        sentences=list(_sentences(own_tests(info))),
        script_json=script_json,
    )


def _facts(info: PassInfo) -> str:
    level = level_of(info)
    touches = ("any operator" if name == "*" else code(name) for name in info.touches)
    rows = {
        "level": "opt-in: runs only when required" if level == "opt-in" else level,
        "numeric class": "changes nothing" if info.analysis else CLASSES[info.numerics.value],
        "interface": "may change names, dims or dtypes" if info.changes_interface else "",
        "kind": info.kind,
        "group": f"[{group_of(info)}](groups/{group_of(info)}.md)",
        "touches": ", ".join(touches),
        "file": code(_relative(info.source)),
        "tests": code(own_tests(info).relative_to(ROOT).as_posix()),
    }
    return markdown.table(("", ""), ((name, fact) for name, fact in rows.items() if fact))


def _options(info: PassInfo) -> str:
    if not info.options:
        return ""
    rows = (
        (code(option.name), text(option.takes), code(format_value(option.default)),
         text(option.doc))
        for option in info.options
    )  # fmt: skip
    return markdown.table(("option", "takes", "default", "meaning"), rows)


def _place(info: PassInfo, required_by: Iterable[str], places: Iterable[str]) -> str:
    """Return what a pass needs, and what comes before and after it."""
    in_order = ", ".join(dict.fromkeys(code(place) for place in places))
    rows = {
        "runs before it": _linked(info.required),
        "runs after it": _linked(info.followed_by),
        "required by": _linked(required_by),
        "conflicts with": _linked(info.conflicts),
        "needs the operators": " or ".join(map(code, info.makes)),
        "writes, if the backend has them": " or ".join(map(code, info.may_make)),
        "needs quantised models of the form": code(info.quantization),
        "groups of the default pipeline": in_order or "none: it runs only if a pipeline lists it",
    }
    return markdown.table(("", ""), ((name, fact) for name, fact in rows.items() if fact))


@cache
def _systems() -> dict[str, str]:
    """Return the system that each alias comes from: the comments of the table of aliases."""
    system, found = "", {}
    for line in Path(aliases_module.__file__).read_text(encoding="utf-8").splitlines():
        if line.startswith("    # "):
            system = line.removeprefix("    # ").rstrip(".")
        elif line.startswith('    "'):
            found[line.split('"')[1]] = system
    return found


def _linked(names: Iterable[str]) -> str:
    return ", ".join(f"[{text(name)}](/passes/{name}.md)" for name in names)


def _sentences(path: Path) -> Iterator[str]:
    """Yield the names of tests as sentences."""
    if not path.is_file():
        return
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name.removeprefix("test_").replace("_", " ")


def _relative(source: str) -> str:
    return Path(source).resolve().relative_to(ROOT).as_posix()
