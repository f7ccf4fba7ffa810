"""Windows as indices: which elements each reads, and the same numbers by a Gather."""

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered.rewriter.idioms import windows as module
from tiered.rewriter.idioms.windows import Windows, convolved, windows_of
from tiered.rewriter.skip import Skip
from tiered.runtime import run_reference


def found(call: str, image: str = "1,1,5", kernel: tuple[int, ...] = (2,)) -> Windows | str:
    dims = ",".join("ABCD"[: image.count(",") + 1])
    model = parsed(f"(float[{image}] x) => (float[{dims}] y) {{ y = {call} }}")
    made = windows_of(made_by(model, "y"), named(model, "x"), kernel)
    return str(made) if isinstance(made, Skip) else made


@pytest.mark.parametrize(
    ("settings", "places", "pads"),
    [
        ("kernel_shape = [2]", [[0, 1, 2, 3], [1, 2, 3, 4]], (0, 0)),
        ("kernel_shape = [2], strides = [2]", [[0, 2], [1, 3]], (0, 0)),
        ("kernel_shape = [2], pads = [1,0]", [[-1, 0, 1, 2, 3], [0, 1, 2, 3, 4]], (1, 0)),
        ("kernel_shape = [2], dilations = [3]", [[0, 1], [3, 4]], (0, 0)),
        ('kernel_shape = [2], auto_pad = "SAME_UPPER"', [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]], (0, 1)),
        ('kernel_shape = [2], auto_pad = "SAME_LOWER"', [[-1, 0, 1, 2, 3], [0, 1, 2, 3, 4]],
         (1, 0)),
        ('kernel_shape = [2], auto_pad = "VALID", strides = [2]', [[0, 2], [1, 3]], (0, 0)),
    ],
)  # fmt: skip
def test_the_places_of_each_element_of_each_window(
    settings: str, places: list[list[int]], pads: tuple[int, int]
) -> None:
    made = found(f"MaxPool<{settings}>(x)")
    assert isinstance(made, Windows)
    (axis,) = made.axes
    assert axis.places.tolist() == places
    assert (axis.size, axis.before, axis.after) == (5, *pads)
    assert (made.kernel, made.counts) == (2, (len(places[0]),))


def test_places_outside_of_the_image_are_told_from_its_padding() -> None:
    made = found("MaxPool<kernel_shape = [2], pads = [1,0]>(x)")
    assert isinstance(made, Windows)
    assert made.inside().tolist() == [[False, True, True, True, True], [True] * 5]
    assert made.inside(is_padding_inside=True).all()
    assert made.axes[0].beyond == 0
    beyond = found("MaxPool<kernel_shape = [2], strides = [2], ceil_mode = 1>(x)")
    assert isinstance(beyond, Windows)
    assert beyond.axes[0].beyond == 1
    assert beyond.inside(is_padding_inside=True).tolist() == [[True] * 3, [True, True, False]]


def test_one_window_that_is_the_image_is_whole() -> None:
    whole = found("MaxPool<kernel_shape = [5]>(x)", kernel=(5,))
    assert isinstance(whole, Windows)
    assert whole.is_whole
    part = found("MaxPool<kernel_shape = [4]>(x)", kernel=(4,))
    assert isinstance(part, Windows)
    assert not part.is_whole


@pytest.mark.parametrize(
    ("call", "image", "because"),
    [
        ("MaxPool<kernel_shape = [2]>(x)", "1,1,N", "sizes of image and result are not known"),
        ('Conv<kernel_shape = [2], auto_pad = "SAME_UPPER", dilations = [2]>(x, x)', "1,1,5",
         "runtimes differ on auto_pad with dilations"),
        ("MaxPool<kernel_shape = [2], pads = [-1,0]>(x)", "1,1,5", "cropped by negative pads"),
        ("MaxPool<kernel_shape = [2], pads = [0,-1]>(x)", "1,1,5", "cropped by negative pads"),
        ("MaxPool<kernel_shape = [2]>(x)", "1,1,0", "sizes of image and result are not known"),
        ("MaxPool<kernel_shape = [2,2]>(x)", "1,1,5,5", "sizes of image and result are not known"),
    ],
)  # fmt: skip
def test_windows_that_are_not_known(call: str, image: str, because: str) -> None:
    assert because in str(found(call, image))


def test_too_many_elements_are_not_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_INDICES", 8)
    assert isinstance(found("MaxPool<kernel_shape = [2]>(x)"), Windows)
    assert found("MaxPool<kernel_shape = [2]>(x)", "1,1,6") == "the windows have 10 elements"


@pytest.mark.parametrize(
    ("settings", "image", "weight", "group"),
    [
        ("pads = [1,0]", "2,2,5", "4,2,3", 1),
        ("strides = [2], group = 2", "2,4,5", "6,2,2", 2),
        ("pads = [1,0,2,1], dilations = [1,2]", "1,2,4,5", "3,2,2,2", 1),
    ],
)
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_convolution_as_a_product_has_the_same_numbers(
    settings: str, image: str, weight: str, group: int, has_bias: bool
) -> None:
    sizes = [tuple(map(int, text.split(","))) for text in (image, weight)]
    dims, bias = ",".join("ABCD"[: len(sizes[0])]), ", b" if has_bias else ""
    model = parsed(
        f"(float[{image}] x, float[{weight}] w, float[{sizes[1][0]}] b) => (float[{dims}] y)"
        f" {{ y = Conv<{settings}>(x, w{bias}) }}"
    )
    rng = np.random.default_rng(0)
    shapes = {"x": sizes[0], "w": sizes[1], "b": (sizes[1][0],)}
    feeds = {name: rng.integers(-3, 4, shape).astype(np.float32) for name, shape in shapes.items()}
    expected = run_reference(model.to_proto(), feeds)["y"]
    graph, node = model.main, made_by(model, "y")
    windows = windows_of(node, named(model, "x"), sizes[1][2:])
    assert isinstance(windows, Windows)
    made = convolved(
        graph, windows, named(model, "x"), named(model, "w"), node.input(2),
        kernels=sizes[1][0], group=group,
    )  # fmt: skip
    graph.replace(node, (made,))
    np.testing.assert_array_equal(run_reference(model.to_proto(), feeds)["y"], expected)


def test_the_channels_of_an_image_need_not_be_numbers_nor_its_batch() -> None:
    for image in ("N,1,5", "1,C,5"):
        made = found("MaxPool<kernel_shape = [2]>(x)", image)
        assert isinstance(made, Windows) is (image == "N,1,5"), image


def test_same_pads_of_an_odd_total_have_one_more_on_one_side() -> None:
    for how, pads in (("SAME_UPPER", (1, 2)), ("SAME_LOWER", (2, 1))):
        made = found(f'MaxPool<kernel_shape = [4], auto_pad = "{how}">(x)', kernel=(4,))
        assert isinstance(made, Windows)
        assert made.axes[0][1:3] == pads
    none = found('MaxPool<kernel_shape = [1], auto_pad = "SAME_UPPER", strides = [3]>(x)',
                 kernel=(1,))  # fmt: skip
    assert isinstance(none, Windows)
    assert none.axes[0][1:3] == (0, 0)


def test_a_window_that_begins_later_is_not_the_image() -> None:
    made = found("MaxPool<kernel_shape = [5], pads = [1,0]>(x)", kernel=(5,))
    assert isinstance(made, Windows)
    assert not made.is_whole
    (axis,) = made.axes
    shifted = Windows((axis._replace(places=axis.places[:, :1]),))
    assert not shifted.is_whole
    assert Windows((axis._replace(places=axis.places[:, 1:]),)).is_whole
