"""PrintIR: the model around passes, as text that reads back."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from tests.small import failing, fuse_relu, look, model, proto, registered
from tiered import Model, PassContext, Sequential
from tiered.pipeline.instruments import PrintIR
from tiered.support.errors import PassError, PassNotFoundError, UsageError

PIPELINE = Sequential([look, fuse_relu])


def printed(**settings: Any) -> list[str]:
    """Return the first lines of what is printed."""
    texts: list[str] = []
    with (
        registered(look, fuse_relu),
        PassContext(instruments=[PrintIR(write=texts.append, **settings)]),
    ):
        PIPELINE(model())
    return [text.splitlines()[0] for text in texts]


AFTER_LOOK, AFTER_FUSE = "# after look: the model", "# after fuse_relu: the model"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [AFTER_FUSE]),
        ({"only_changed": False}, [AFTER_LOOK, AFTER_FUSE]),
        ({"after": False}, []),
        ({"after": ["look"], "only_changed": False}, [AFTER_LOOK]),
        ({"after": ["FuseRelu"]}, [AFTER_FUSE]),
        ({"after": ["fuse_*"]}, [AFTER_FUSE]),
        ({"before": True, "after": False}, ["# before look: the model",
                                            "# before fuse_relu: the model"]),
        ({"before": ["fuse_relu"]}, ["# before fuse_relu: the model", AFTER_FUSE]),
    ],
)  # fmt: skip
def test_it_prints_all_or_some_and_by_default_only_what_changed(
    settings: Any, expected: list[str]
) -> None:
    assert printed(**settings) == expected


def test_wrong_names_raise_at_once() -> None:
    with pytest.raises(PassNotFoundError, match="did you mean 'fold_constant'"):
        PrintIR(after=["fold_constnat"])
    with pytest.raises(PassNotFoundError, match="no pass fits"):
        PrintIR(before=["nothing_*"])
    with pytest.raises(UsageError, match="after takes a list of passes"):
        PrintIR(after="look")


def test_the_text_reads_back() -> None:
    texts: list[str] = []
    with PassContext(instruments=[PrintIR(write=texts.append)]):
        result = fuse_relu(proto())
    assert parser.parse_model(texts[0]).graph.node == result.graph.node


def test_large_weights_show_their_type_only() -> None:
    made = proto("g (float[2,3] x) => (float[2,3] y) { a = Relu(x)  b = Relu(a)  y = Add(b, w) }")
    weight = np.arange(6000, dtype=np.float32).reshape(1000, 2, 3)
    made.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    made.graph.node.append(
        onnx.helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(weight))
    )
    texts: list[str] = []
    with PassContext(instruments=[PrintIR(write=texts.append)]):
        fuse_relu(Model.from_proto(made))
    assert "float[1000,2,3] w" in texts[0]
    assert "(float[2,3] x) =>" in texts[0]
    assert len(texts[0]) < 600


def test_it_goes_to_stderr_and_a_failing_pass_prints_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with PassContext(instruments=[PrintIR(only_changed=False)]):
        with pytest.raises(PassError):
            failing(ValueError())(model())
        fuse_relu(model())
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("# after fuse_relu: the model\n<\n")
