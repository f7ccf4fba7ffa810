"""Constants of two graphs: paired by name and content, and how they differ."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model
from tiered.extensions.differences.constant_pairing import (
    TELLING,
    ConstantPair,
    NamedConstant,
    change_of,
    constants_of,
    identities,
    paired,
    same_content,
)
from tiered.graph import Tensor
from tiered.testing import parse


def model_of(nodes: int = 0, **arrays: np.ndarray) -> Model:
    """Return a model with initializers; the last `nodes` of them are Constant nodes."""
    proto = parse("(float[1] x) => (float[1] y) { y = Neg(x) }")
    names = [*arrays]
    for name in names[: len(names) - nodes]:
        proto.graph.initializer.append(numpy_helper.from_array(arrays[name], name))
    for name in names[len(names) - nodes :]:
        value = numpy_helper.from_array(arrays[name])
        proto.graph.node.append(onnx.helper.make_node("Constant", [], [name], value=value))
    return Model.from_proto(proto)


def constants(nodes: int = 0, **arrays: np.ndarray) -> list[NamedConstant]:
    return constants_of(model_of(nodes, **arrays).main)


def numbers(first: int, count: int = 2) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.float32)


def names(pairs: list[ConstantPair]) -> list[tuple[str, str]]:
    """Return the names of each pair, "" for a side without one."""
    return [
        ("" if one is None else one.value.name, "" if two is None else two.value.name)
        for one, two in pairs
    ]


def test_initializers_come_before_constant_nodes() -> None:
    found = constants(1, a=numbers(1), b=np.ones((2, 3), np.int64), c=numbers(5))
    assert [(each.value.name, each.type, each.is_node) for each in found] == [
        ("a", "float[2]", False), ("b", "int64[2,3]", False), ("c", "float[2]", True)
    ]  # fmt: skip


SMALL, LARGE = 2, TELLING

PAIRED: dict[str, tuple[list[NamedConstant], list[NamedConstant], list[tuple[str, str]]]] = {
    "equal": (
        constants(a=numbers(1), b=numbers(2)),
        constants(b=numbers(2), a=numbers(1)),
        [("a", "a"), ("b", "b")],
    ),
    "other bits of one name": (
        constants(a=numbers(1)),
        constants(a=numbers(5)),
        [("a", "a")],
    ),
    "renamed": (constants(a=numbers(1)), constants(z=numbers(1)), [("a", "z")]),
    "removed and added": (
        constants(a=numbers(1)),
        constants(z=numbers(5)),
        [("a", ""), ("", "z")],
    ),
    "small ones keep their names": (
        constants(a=numbers(1), b=numbers(2)),
        constants(a=numbers(2), b=numbers(1)),
        [("a", "a"), ("b", "b")],
    ),
    "large ones are known by their content": (
        constants(a=numbers(1, LARGE), b=numbers(2, LARGE)),
        constants(a=numbers(2, LARGE), b=numbers(1, LARGE)),
        [("a", "b"), ("b", "a")],
    ),
    "just too small to tell": (
        constants(a=numbers(1, LARGE - 1), b=numbers(2, LARGE - 1)),
        constants(a=numbers(2, LARGE - 1), b=numbers(1, LARGE - 1)),
        [("a", "a"), ("b", "b")],
    ),
    "a new name comes before a name that is there": (
        constants(a=numbers(1), b=numbers(1)),
        constants(b=numbers(5), z=numbers(1)),
        [("a", "z"), ("b", "b")],
    ),
    "another dtype of one name": (
        constants(a=numbers(1)),
        constants(a=numbers(1).astype(np.float64)),
        [("a", "a")],
    ),
    "merged": (
        constants(a=numbers(1), b=numbers(1)),
        constants(a=numbers(1)),
        [("a", "a"), ("b", "")],
    ),
    "equal contents in order": (
        constants(a=numbers(1), b=numbers(1)),
        constants(c=numbers(1), d=numbers(1)),
        [("a", "c"), ("b", "d")],
    ),
    "nothing": ([], [], []),
}


@pytest.mark.parametrize("case", PAIRED)
def test_constants_are_paired_by_content_where_that_says_more(case: str) -> None:
    first, second, expected = PAIRED[case]
    assert names(paired(first, second)) == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (numbers(1), numbers(1), True),
        (numbers(1), numbers(2), False),
        (numbers(1), numbers(1).astype(np.float64), False),
        (numbers(1, 4), numbers(1, 4).reshape(2, 2), False),
        (np.array([0.0], np.float32), np.array([-0.0], np.float32), False),
        (np.array([np.nan], np.float32), np.array([np.nan], np.float32), True),
        (np.array(["a"], object), np.array(["b"], object), False),
    ],
)
def test_content_is_dtype_dims_and_bits(one: np.ndarray, other: np.ndarray, *, same: bool) -> None:
    (first,), (second,) = constants(a=one), constants(b=other)
    assert same_content(first, second) == same


def test_elements_at_the_same_place_of_a_file_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proto = model_of(a=numbers(1, 300)).to_proto()
    path = tmp_path / "m.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (first,), (second,) = (constants_of(Model.load(path).main) for _ in range(2))
    monkeypatch.setattr(Tensor, "key", lambda self: pytest.fail("it is read"))
    assert same_content(first, second)


def ids(first: list[NamedConstant], second: list[NamedConstant]) -> tuple[list[str], list[str]]:
    """Return the identities of the constants of both sides, numbered by first use."""
    found = identities(paired(first, second))
    known = {text: str(at) for at, text in enumerate(dict.fromkeys(
        text for side in found for text in side.values()))}  # fmt: skip
    return tuple(
        [known[side[each.value]] for each in whole]
        for side, whole in zip(found, (first, second), strict=True)
    )  # type: ignore[return-value]  # two


def test_a_pair_has_one_identity_also_if_it_differs() -> None:
    assert ids(constants(a=numbers(1)), constants(a=numbers(5))) == (["0"], ["0"])
    assert ids(constants(a=numbers(1)), constants(z=numbers(5))) == (["0"], ["1"])


def test_equal_contents_are_one_whatever_their_names() -> None:
    first, second = constants(a=numbers(1), b=numbers(1)), constants(a=numbers(1))
    assert ids(first, second) == (["0", "0"], ["0"])
    assert ids(second, first) == (["0"], ["0", "0"])


def test_a_pair_that_differs_is_not_one_with_others_of_its_content() -> None:
    first = constants(a=numbers(1), b=numbers(1), c=numbers(9))
    second = constants(a=numbers(5), b=numbers(1))
    found = ids(first, second)
    assert found[0][0] == found[1][0]
    assert found[0][0] != found[0][1]


CHANGES = {
    "same": (constants(a=numbers(1)), constants(a=numbers(1)), None),
    "renamed": (constants(a=numbers(1)), constants(b=numbers(1)), ("renamed",)),
    "values": (constants(a=numbers(1)), constants(a=numbers(3)), ("values",)),
    "dtype": (constants(a=numbers(1)), constants(a=numbers(1).astype("f8")), ("dtype",)),
    "dims": (constants(a=numbers(1, 4)), constants(a=numbers(1, 4).reshape(2, 2)), ("dims",)),
    "moved": (constants(a=numbers(1)), constants(1, a=numbers(1)), ("moved",)),
    "all": (
        constants(a=numbers(1, 4)),
        constants(1, b=numbers(1, 4).astype("f8").reshape(2, 2)),
        ("renamed", "dtype", "dims", "moved"),
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_how_a_constant_differs(case: str) -> None:
    (one,), (other,), what = CHANGES[case]
    found = change_of(ConstantPair(one, other), "body")
    assert (None if found is None else found.what) == what
    if found is not None:
        assert (found.graph, found.before) == ("body", "a")
        assert (found.type_before, found.bytes_before) == (one.type, one.tensor.nbytes)
        assert (found.type_after, found.bytes_after) == (other.type, other.tensor.nbytes)


def test_a_side_may_lack_a_constant() -> None:
    (one,) = constants(a=numbers(1))
    removed, added = change_of(ConstantPair(one, None), ""), change_of(ConstantPair(None, one), "")
    assert removed is not None
    assert added is not None
    assert removed == ("", ("removed",), "a", "", "float[2]", "", 8, 0)
    assert added == ("", ("added",), "", "a", "", "float[2]", 0, 8)


def test_elements_in_files_are_compared_by_place_dtype_and_content(tmp_path: Path) -> None:
    def stored(name: str, array: np.ndarray, dtype: int = onnx.TensorProto.FLOAT) -> NamedConstant:
        path = tmp_path / f"{name}.onnx"
        onnx.save(
            model_of(a=array).to_proto(), path, save_as_external_data=True,
            location=f"{name}.bin", size_threshold=0,
        )  # fmt: skip
        proto = onnx.load(path, load_external_data=False)
        proto.graph.initializer[0].data_type = dtype
        onnx.save(proto, path)
        (found,) = constants_of(Model.load(path).main)
        return found

    one, same, other = (
        stored(name, numbers(first, 300)) for name, first in (("a", 1), ("b", 1), ("c", 2))
    )
    assert same_content(one, same)
    assert not same_content(one, other)
    assert not same_content(one, stored("a", numbers(1, 300), onnx.TensorProto.INT32))
