"""Reshape(Transpose(Reshape(x, [n,c,h,b,w,b])), [n,c*b*b,h,w])  =>  SpaceToDepth(x)"""

from collections.abc import Mapping, Sequence
from typing import Final

from tiered import Constant, DataType, Graph, Node, Skip, Value, const, op, rewrite, var

_MODES: Final[Mapping[tuple[int, ...], str]] = {
    (0, 3, 5, 1, 2, 4): "DCR",
    (0, 1, 3, 5, 2, 4): "CRD",
}
"""Whether the new channels are the places of a block, each with all old channels, or the inverse.

CRD has an attribute from opset 28 on; with one channel the two are the same.
"""

_DTYPES: Final = (DataType.FLOAT, DataType.DOUBLE)

_split = op.Reshape(var.x, const(name="split"))
_moved = op.Transpose(_split, perm=lambda perm: tuple(perm) in _MODES).bind("moved")


@rewrite(op.Reshape(_moved, const(name="joined")), opt_level=3, required=("infer_shapes",))
def fuse_space_to_depth(
    graph: Graph, x: Value, split: Constant, moved: Node, joined: Constant
) -> Value | Skip:
    """Move the blocks of images into their channels by one operator."""
    sizes, target = split.const.ravel().tolist(), joined.const.ravel().tolist()
    if x.shape is None or (len(x.shape), len(sizes), len(target)) != (4, 6, 4):
        return Skip("these are not blocks of images")
    block = sizes[3]
    if block < 2 or sizes[5] != block:
        return Skip("the blocks are not squares")
    if x.dtype not in _DTYPES:
        return Skip("SpaceToDepth has no kernel for the dtype")
    image = [size if isinstance(size, int) else None for size in x.shape]
    if not _are_same(
        [sizes[0], sizes[1], _times(sizes[2], block), _times(sizes[4], block)],
        image,
        copied=(0, 1),
    ):
        return Skip("a dim of the image may change")
    _, channels, height, width = image
    if channels is None:
        return Skip("the number of channels is not known")
    result = [
        image[0],
        channels * block * block,
        None if height is None else height // block,
        None if width is None else width // block,
    ]
    if not _are_same(target, result, copied=(0,)):
        return Skip("the channels may be joined differently")
    mode = _MODES[tuple(moved.attr("perm"))]
    if mode == "CRD" and channels != 1:
        return graph.op.SpaceToDepth(x, blocksize=block, mode=mode)
    return graph.op.SpaceToDepth(x, blocksize=block)


def _times(size: int, block: int) -> int:
    return max(size, size * block)


def _are_same(target: Sequence[int], dims: Sequence[int | None], copied: Sequence[int]) -> bool:
    """Return whether a target of Reshape has these dims; one -1 is what remains.

    Args:
        target: sizes, 0 for a copied dim, one -1.
        dims: the dims, None for what is not known.
        copied: the axes at which a 0 copies the same dim.
    """
    return all(
        size in (-1, dim) or (size == 0 and axis in copied)
        for axis, (size, dim) in enumerate(zip(target, dims, strict=True))
    )
