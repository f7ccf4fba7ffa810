"""A model whose rows hold several sequences is compared with runs of single sequences."""

import numpy as np
import pytest

from tiered import (
    InterfaceMap,
    Model,
    PassContext,
    VerificationError,
    get_pass,
    module_pass,
    optimize_model,
)
from tiered.graph.core.interface_map import PackMap
from tiered.support.errors import RuntimeFailure
from tiered.testing import parse
from tiered.verify.packed import joined, sequences_of

ENCODER = """(float[B,T,4] x) => (float[B,T,4] y, float[B,4] z) <int64 zero = {0}> {
    kt = Transpose<perm = [0,2,1]>(x)  scores = MatMul(x, kt)  p = Softmax<axis = 2>(scores)
    y = MatMul(p, x)  z = Gather<axis = 1>(y, zero) }"""


@pytest.mark.parametrize("most", [0, 2, 5])
def test_each_sequence_is_compared(most: int) -> None:
    pack = get_pass("packed_transformer", max_valid_num=most)
    result = optimize_model(parse(ENCODER), passes=[pack], verify=True)
    assert result.verify is not None
    assert result.verify.verdict.word == "yes"
    assert [o.name for o in result.verify.comparisons[-1].outputs] == ["y", "z"]
    feeds = result.verify.samples[-1].inputs.feeds
    assert feeds["x"].shape[0] == (1 if most == 2 else 2)
    assert len(feeds["sequence_starts"]) == (most or 4)


def test_sequences_that_attend_to_each_other_are_found() -> None:
    @module_pass(opt_level=None, changes_interface=True, name="unmasked")
    def unmasked(model: Model, ctx: PassContext) -> None:
        """Say that rows hold several sequences, and mask none."""
        main = model.main
        main.set_graph_outputs(main.outputs[:1], main.output_infos[:1])
        model.note_interface(InterfaceMap(packed=PackMap(("x",), frozenset())))

    with pytest.raises(VerificationError, match="unmasked changed output 'y'"):
        optimize_model(parse(ENCODER), passes=[unmasked], verify=True)


def test_two_rows_without_padding() -> None:
    feeds = {"x": np.arange(6).reshape(2, 3), "k": np.ones(2)}
    packed = PackMap(("x",), frozenset({"z"}), 5)
    made = sequences_of(feeds, packed)
    assert made.batch.inputs["x"].tolist() == [[0, 1, 2, 3, 4], [2, 0, 5, 3, 4]]
    assert made.batch.used == 1
    alone = [run["x"][0].tolist() for run in made.runs]
    assert alone == [[0, 1, 2], [3, 4], [2, 0], [5, 3, 4]]
    runs = [{"y": run["x"] + 10, "z": run["x"][:, 0]} for run in made.runs]
    found = joined(runs, made, packed)
    assert found["z"].tolist() == [0, 3, 2, 5, 0]
    assert found["y"].tolist() == [[10, 11, 12, 13, 14], [12, 10, 15, 13, 14]]


def test_rows_without_tokens_and_models_of_one_sequence_are_not_compared() -> None:
    for shape, most, count in (
        ((0, 3), 0, None), ((2, 0), 0, None), ((2, 3), 1, None), ((1, 1), 0, 4), ((2, 3), 2, 2),
        ((2, 3), 3, 2), ((2, 3), 4, 4),
    ):  # fmt: skip
        packed = PackMap(("x",), frozenset(), most)
        if count is None:
            with pytest.raises(RuntimeFailure, match="its rows have no tokens, or it takes no two"):
                sequences_of({"x": np.zeros(shape)}, packed)
        else:
            assert len(sequences_of({"x": np.zeros(shape)}, packed).runs) == count, (shape, most)
