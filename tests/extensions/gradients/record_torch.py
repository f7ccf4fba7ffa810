"""Record the gradients of torch.autograd, beside which `test_torch.py` puts ours.

It needs torch and numpy only:
python tests/extensions/gradients/record_torch.py > tests/extensions/gradients/torch.json
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

CASES: dict[str, tuple[list[tuple[int, ...]], Callable[..., Any]]] = {
    "conv": (
        [(2, 4, 7, 6), (6, 2, 3, 2), (6,)],
        lambda x, w, b: functional.conv2d(
            x, w, b, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2
        ),
    ),
    "conv_transpose": (
        [(2, 4, 4, 3), (4, 3, 3, 3)],
        lambda x, w: functional.conv_transpose2d(
            x, w, stride=2, padding=1, output_padding=1, groups=2
        ),
    ),
    "max_pool": ([(2, 3, 6, 6)], lambda x: functional.max_pool2d(x, 3, 2, padding=1)),
    "average_pool": (
        [(2, 3, 6, 6)],
        lambda x: functional.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False),
    ),
    "layer_norm": (
        [(2, 3, 8), (8,), (8,)], lambda x, w, b: functional.layer_norm(x, (8,), w, b)
    ),
    "group_norm": (
        [(2, 4, 5), (4,), (4,)], lambda x, w, b: functional.group_norm(x, 2, w, b)
    ),
    "instance_norm": (
        [(2, 4, 5), (4,), (4,)], lambda x, w, b: functional.instance_norm(x, weight=w, bias=b)
    ),
    "log_softmax": ([(3, 5)], lambda x: functional.log_softmax(x, -1)),
    "gelu": ([(3, 5)], functional.gelu),
    "gelu_tanh": ([(3, 5)], lambda x: functional.gelu(x, approximate="tanh")),
    "mish": ([(3, 5)], functional.mish),
    "hardswish": ([(3, 5)], functional.hardswish),
    "softplus": ([(3, 5)], functional.softplus),
    "cumsum": ([(3, 5)], lambda x: torch.cumsum(x, 1)),
    "logsumexp": ([(3, 5)], lambda x: torch.logsumexp(x, 1)),
    "prod": ([(3, 5)], lambda x: torch.prod(x, 1)),
    "matmul": ([(2, 1, 3, 4), (5, 4, 2)], torch.matmul),
    "attention": (
        [(1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)], functional.scaled_dot_product_attention
    ),
    "resize": (
        [(1, 2, 3, 4)],
        lambda x: functional.interpolate(x, (6, 7), mode="bilinear", align_corners=False),
    ),
    "cumprod": ([(3, 5)], lambda x: torch.cumprod(x * (x > -0.5), 1)),
    "det": ([(2, 4, 4)], torch.det),
    "fft": ([(3, 5)], lambda x: torch.view_as_real(torch.fft.fft(x))),
    "irfft": (
        [(3, 4, 2)],
        lambda x: torch.fft.irfft(torch.view_as_complex(x), 6),
    ),
    "stft": (
        [(2, 11), (4,)],
        lambda x, w: torch.view_as_real(
            torch.stft(x, 4, 3, window=w, center=False, return_complex=True)
        ).transpose(1, 2),
    ),
    "col2im": (
        [(2, 12, 6)],
        lambda x: functional.fold(
            torch.cat([x, x[:, :, :3]], 2), (5, 4), (3, 2), stride=(1, 1)
        ),
    ),
    **{
        f"grid_{mode}_{padding}": (
            [(2, 2, 3, 4), (2, 2, 3, 2)],
            lambda x, grid, mode=mode, padding=padding: functional.grid_sample(
                x, grid, mode=mode, padding_mode=padding, align_corners=False
            ),
        )
        for mode in ("bilinear", "bicubic")
        for padding in ("zeros", "border", "reflection")
    },
    "scatter_prod": (
        [(3, 4), (2, 4)],
        lambda x, u: x.scatter_reduce(0, torch.tensor([[0, 1, 2, 2], [0, 2, 2, 1]]), u, "prod"),
    ),
    "scatter_amax": (
        [(3, 4), (2, 4)],
        lambda x, u: x.scatter_reduce(0, torch.tensor([[0, 1, 2, 2], [0, 2, 2, 1]]), u, "amax"),
    ),
    "max_unpool": (
        [(1, 1, 2, 2)],
        lambda x: functional.max_unpool2d(x, torch.tensor([[[[5, 7], [13, 15]]]]), 2),
    ),
    "einsum_diagonal": ([(2, 3, 3)], lambda x: torch.einsum("bii->bi", x)),
    "pad_reflect": ([(2, 3, 5)], lambda x: functional.pad(x, (2, 1), mode="reflect")),
}  # fmt: skip
"""The shapes of the operands, and the function."""


def operands(name: str) -> list[np.ndarray[Any, Any]]:
    """Return the operands of a case, which the test makes in the same way."""
    random = np.random.default_rng(len(name))
    return [random.standard_normal(shape) for shape in CASES[name][0]]


def main() -> None:
    """Print the operands, the seed and the gradients of each case as JSON."""
    found = {}
    for name, (_, function) in CASES.items():
        arrays = operands(name)
        tensors = [torch.tensor(each, requires_grad=True) for each in arrays]
        y = function(*tensors)
        seed = np.random.default_rng(99).standard_normal(tuple(y.shape))
        y.backward(torch.tensor(seed))
        found[name] = {
            "operands": [_listed(each) for each in arrays],
            "seed": _listed(seed),
            "gradients": [_listed(each.grad.numpy()) for each in tensors],
        }
    json.dump({"torch": torch.__version__, "cases": found}, sys.stdout, separators=(",", ":"))


def _listed(array: np.ndarray[Any, Any]) -> Any:
    return np.round(array, 7).tolist()


if __name__ == "__main__":
    main()
