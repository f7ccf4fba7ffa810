"""Write a skeleton of a pass and of its failing test.

Examples:
    tiered new shape/fuse_x --kind function
    tiered new shape/fuse_y --from found.json#0

In a checkout of tiered the two go where `tiered passes` and pytest find them.
"""

from __future__ import annotations

import json
import os
import re
from typing import Annotated, Literal

from tiered.cli.line.declaration import Flags
from tiered.cli.output.terminal import notes, printable, results
from tiered.support.errors import ModelError, UsageError
from tiered.support.whole_files import write_text

Kind = Literal["rewrite", "function", "module"]

_PATH = re.compile(r"([a-z][a-z0-9_]*)/([a-z][a-z0-9_]*)")
_VERBS = (
    *("bake", "canonicalize", "combine", "convert", "eliminate", "extract", "fold", "fuse"),
    *("hoist", "infer", "insert", "inline", "lift", "outline", "remove", "replace", "simplify"),
    "sink",
)

_REWRITE = '''\
"""Identity(x)  =>  x: write the law here, before and after"""

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(op.Identity(var.x), opt_level=None)
def {name}(graph: Graph, x: Value) -> Value | Skip:
    """Describe in a sentence the rewrite and why it is correct."""
    if x.shape is None:
        return Skip("the shape of x is not known")
    return Skip("it is not written yet")
'''

_FUNCTION = '''\
"""Nodes of a graph  =>  their replacement"""

from tiered import Graph, PassContext, Skip, function_pass


@function_pass(opt_level=None)
def {name}(graph: Graph, ctx: PassContext) -> None:
    """Describe in a sentence the rewrite and why it is correct."""
    for node in graph.nodes_of("Identity"):
        ctx.skip(node, Skip("it is not written yet"))
'''

_MODULE = '''\
"""Parts of a model  =>  their replacement"""

from tiered import Model, PassContext, Skip, module_pass


@module_pass(opt_level=None)
def {name}(model: Model, ctx: PassContext) -> None:
    """Describe in a sentence the rewrite and why it is correct."""
    for node in model.main.nodes_of("Identity"):
        ctx.skip(node, Skip("it is not written yet"))
'''

_TEST = """\
from tiered.testing import assert_rewrites, assert_unchanged


def test_it_does_what_its_law_says() -> None:
    assert_rewrites(
        "{name}",
        "(float[2] x) => (float[2] y) {{ h = Identity(x)  y = Relu(h) }}",
        "(float[2] x) => (float[2] y) {{ y = Relu(x) }}",
    )
{guard}"""

_GUARD = """

def test_an_unknown_shape_stays() -> None:
    assert_unchanged(
        "{name}",
        "(float[] x) => (float[] y) {{ h = Identity(x)  y = Relu(h) }}",
        because="the shape of x is not known",
    )
"""

_TEMPLATES = {"rewrite": _REWRITE, "function": _FUNCTION, "module": _MODULE}


def new(
    path: Annotated[str, Flags("FOLDER/NAME")],
    /,
    *,
    kind: Kind = "rewrite",
    root: str = ".",
    from_: Annotated[str | None, Flags("--from")] = None,
) -> None:
    """Write a pass and its test, and print the next steps.

    Args:
        path: The folder (the operator that the pass rewrites) and the name: shape/fuse_x.
        kind: The object of a rewrite: a pattern, a graph, or a whole model.
        root: The checkout of tiered to write into.
        from_: FOUND.json of `tiered discover --json`, or FOUND.json#2 for its third finding.

    Raises:
        UsageError: the path names no new pass, the root is not a checkout, or there is no such
            finding.
        ModelError: the file of findings cannot be read.
    """
    folder, name = _checked(path)
    package = "module_passes" if kind == "module" else "function_passes"
    home = os.path.join(root, "tiered", package)
    if not os.path.isdir(home) or not os.path.isdir(os.path.join(root, "tests")):
        raise UsageError(
            f"{printable(root)!r} is not a checkout of tiered: it has no tiered/{package} and "
            "tests (--root says where it is; passes of a package of your own come in through entry "
            "points, see examples/third_party_pass)"
        )
    texts = _TEMPLATES[kind].format(name=name), _test(name, kind)
    if from_ is not None:
        if kind != "rewrite":
            raise UsageError(f"what was found is a rewrite; it is no {kind} pass")
        texts = _from_finding(name, from_)
    files = {
        os.path.join(home, folder, f"{name}.py"): texts[0],
        os.path.join(root, "tests", package, folder, f"test_{name}.py"): texts[1],
    }
    for file in files:
        if os.path.lexists(file):
            raise UsageError(f"there is {printable(file)!r} already")
    marker = os.path.join(home, folder, "__init__.py")
    if not os.path.exists(marker):
        files[marker] = ""
    for file, text in files.items():
        os.makedirs(os.path.dirname(file), exist_ok=True)
        write_text(file, text)
        results().print(f"wrote {printable(file)}", soft_wrap=True)
    if not name.startswith(_VERBS):
        notes().print(f"{name} begins with no verb that passes begin with: {', '.join(_VERBS)}")
    results().print(
        f"\nNext: write the law, the pattern and the guards; make the test pass:\n"
        f"  pytest {printable(_test_file(root, package, folder, name))}\n"
        f"and add {name} with its reason to tiered/pipeline/default.py, and its level to\n"
        "tests/house/pass_levels.txt; `make index` then adds it to the index of passes.",
        soft_wrap=True,
    )


def _from_finding(name: str, found: str) -> tuple[str, str]:
    """Return the files of a pass for a finding of `tiered discover --json`, and of its test."""
    file, _, number = found.partition("#")
    try:
        with open(file, encoding="utf-8") as opened:
            finding = json.load(opened)["findings"][int(number or 0)]
        law, before, after = finding["law"], finding["before"], finding["after"]
    except (OSError, json.JSONDecodeError, TypeError, KeyError) as error:
        raise ModelError(f"{printable(file)!r} has no findings: {error}") from error
    except (IndexError, ValueError) as error:
        raise UsageError(
            f"{printable(file)!r} has no finding {number or 0!r}; FOUND.json#0 is the first"
        ) from error
    from tiered.support.loading import extension

    skeleton = extension("discovery.skeleton")
    return skeleton.pass_text(name, law, before, after), skeleton.proof_text(name, before, after)


def _checked(path: str) -> tuple[str, str]:
    found = _PATH.fullmatch(path)
    if found is None:
        raise UsageError(
            f"{printable(path)!r} is not FOLDER/NAME: the operator that it rewrites and what it "
            "does, as in shape/fuse_consecutive_reshape"
        )
    from tiered.passes.interface.registry import registry

    folder, name = found.groups()
    if name in registry:
        raise UsageError(f"there is a pass {name!r} already (`tiered passes {name}` shows it)")
    return folder, name


def _test(name: str, kind: Kind) -> str:
    guard = _GUARD.format(name=name) if kind == "rewrite" else ""
    text = _TEST.format(name=name, guard=guard)
    return text if guard else text.replace(", assert_unchanged", "")


def _test_file(root: str, package: str, folder: str, name: str) -> str:
    return os.path.join(root, "tests", package, folder, f"test_{name}.py")
