"""Layers: the modules that exporters write into the names or the metadata of nodes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Final

import onnx

_SCOPES: Final = "pkg.torch.onnx.name_scopes"
_BETWEEN: Final = "; "
"""Metadata of nodes that were fused is joined by this."""
FEW: Final = 40
"""The most layers of the depth that is chosen."""
NONE: Final = "(no layer)"


def layer_of(node: onnx.NodeProto | None, outputs: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the path of the module that a node is part of, outermost first.

    Args:
        node: its metadata decide, then its name; None if it is in no file.
        outputs: the names of its outputs, which have a path if the name has none.
    """
    if node is not None:
        for entry in node.metadata_props:
            if entry.key == _SCOPES:
                return _of_scopes(entry.value.split(_BETWEEN)[0])
    names = (*([] if node is None else [node.name]), *outputs)
    with_path = next((name for name in names if "/" in name), "")
    return tuple(filter(None, with_path.split("/")[:-1]))


def _of_scopes(text: str) -> tuple[str, ...]:
    """Return the path of the last module: the last of all scopes is the node itself."""
    try:
        scopes = [str(each) for each in ast.literal_eval(text)]
    except (SyntaxError, TypeError, ValueError):
        return ()
    modules = [each for each in scopes[:-1] if each]
    return tuple(modules[-1].split(".")) if modules else ()


def depth_for(paths: Iterable[tuple[str, ...]], most: int = FEW) -> int:
    """Return the largest depth that cuts the paths into at most a number of layers."""
    known = set(paths)
    deepest = max(map(len, known), default=0)
    depths = (depth for depth in range(deepest, 0, -1) if len(cut(known, depth)) <= most)
    return next(depths, 1)


def cut(paths: Iterable[tuple[str, ...]], depth: int) -> set[tuple[str, ...]]:
    """Return the paths, cut to a depth."""
    return {path[:depth] for path in paths}


def text_of(path: Sequence[str]) -> str:
    """Return a path as text."""
    return "/".join(path) or NONE
