"""Names that stand for pipelines: the groups of onnx-passes, and names with an option in them."""

from __future__ import annotations

import re
from typing import Final

_TEXTS: Final = {
    "cleanup": (
        "remove_initializer_from_input,extract_constant_to_initializer,move_subgraph_initializer,"
        "eliminate_duplicate_initializer,unique_name_for_nodes,eliminate_deadend,"
        "remove_unused_functions,remove_unused_opsets,topological_sort"
    ),
    "cleanuprangeannotation": "range_annotation{remove=true}",
    "eliminate": "eliminate_*",
    "inlineqonnx": "import_qonnx,inline",
    "linkops": "import_qonnx",
    "streamlineshapes": (
        "trace_folding,fold_constant,fix(fuse_consecutive_reshape,fuse_consecutive_squeeze,"
        "fuse_consecutive_unsqueeze,fuse_consecutive_flatten,fuse_consecutive_transpose,"
        "eliminate_nop_reshape,eliminate_nop_flatten,eliminate_nop_transpose),convert_layout"
    ),
    "verify": "verify_equality",
}
_CONVERT: Final = re.compile(r"convertopset(\d+)")


def pipeline_text(name: str) -> str | None:
    """Return the pipeline that a name stands for, as text; None if it is no such name."""
    squashed = name.replace("_", "").replace("-", "").lower()
    converts = _CONVERT.fullmatch(squashed)
    if converts is not None:
        return f"convert_opset{{to={converts[1]}}}"
    # The name of a pass of PopRT is constant_folding.
    if name == "constant-folding":
        return "trace_folding,fold_constant"
    return _TEXTS.get(squashed)
