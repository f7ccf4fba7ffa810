"""Merged and split models compute what their parts compute in turn, or the check says not."""

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import numpy_helper

from tests.small import model, proto
from tests.verify.in_process import InProcess, in_process
from tiered import Model
from tiered.support.errors import NotVerifiable, RuntimeFailure, TargetError, VerificationError
from tiered.verify import merged
from tiered.verify.merged import check_merged, check_split

HEAD = "g (float[2] x) => (float[2] y) { y = Neg(x) }"
TAIL = "g (float[2] y) => (float[2] z) { z = Exp(y) }"
WHOLE = "g (float[2] x) => (float[2] z) { y = Neg(x)  z = Exp(y) }"
BOTH = "g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x)  z = Exp(y) }"
X = [{"x": np.array([1, 2], np.float32)}]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """Run the models in this process."""
    made, worker = in_process()
    monkeypatch.setattr(merged, "shared_worker", lambda: worker)
    return made


def models(*texts: str) -> Sequence[Model]:
    return [model(text) for text in texts]


@pytest.mark.parametrize("whole", [WHOLE, BOTH])
def test_a_merged_model_that_computes_the_same_passes(here: InProcess, whole: str) -> None:
    found = check_merged(models(HEAD, TAIL), model(whole), [{}], X)
    assert [each.ok for each in found] == [True]
    assert [output.name for output in found[0].outputs] == (["z"] if whole == WHOLE else ["y", "z"])
    assert len(here.opened) == 3
    assert all(each.is_closed for each in here.opened)


def test_names_of_a_model_are_those_of_the_merged_one() -> None:
    """The second model has its own names: `x` reads `y`, and `y` is `z`."""
    second = "g (float[2] x) => (float[2] y) { y = Exp(x) }"
    named = [{"x": "y", "y": "z"}]
    assert check_merged(models(HEAD, second), model(WHOLE), named, X)[0].ok
    third = "g (float[2] z) => (float[2] u) { u = Abs(z) }"
    whole = "g (float[2] x) => (float[2] u) { y = Neg(x)  z = Exp(y)  u = Abs(z) }"
    assert check_merged(models(HEAD, second, third), model(whole), [*named, {}], X)[0].ok


def test_a_merged_model_that_differs_is_an_error_with_its_inputs() -> None:
    wrong = WHOLE.replace("Exp", "Log")
    with pytest.raises(VerificationError) as failed:
        check_merged(models(HEAD, TAIL), model(wrong), [{}], X)
    text = str(failed.value)
    assert text.startswith("the merged model computes something else than the models: ")
    assert "\n  inputs      inputs 1" in text


def test_inputs_are_made_without_any() -> None:
    found = check_merged(models(HEAD, TAIL), model(WHOLE), [{}])
    assert len(found) >= 1
    assert all(each.ok for each in found)
    assert all(each.ok for each in check_split(model(WHOLE), models(HEAD, TAIL)))


def test_outputs_that_are_drawn_are_not_compared() -> None:
    drawn = "g (float[2] x) => (float[2] y, float[2] r) { y = Neg(x)  r = RandomUniformLike(x) }"
    whole = f"{drawn[:-1]} z = Exp(y) }}".replace("float[2] r)", "float[2] r, float[2] z)")
    (found,) = check_merged(models(drawn, TAIL), model(whole), [{}], X)
    assert [output.note != "" for output in found.outputs] == [False, True, False]
    (found,) = check_split(model(whole), models(drawn, TAIL), X)
    assert [output.note != "" for output in found.outputs] == [False, True, False]


def test_models_whose_outputs_are_all_drawn_are_not_verified() -> None:
    head = "g (float[2] x) => (float[2] y) { y = RandomUniformLike(x) }"
    tail = "g (float[2] y) => (float[2] z) { z = RandomUniformLike(y) }"
    whole = "g (float[2] x) => (float[2] z) { y = RandomUniformLike(x)  z = RandomUniformLike(y) }"
    with pytest.raises(TargetError, match=r"not verified: z \(not comparable: random\)"):
        check_merged(models(head, tail), model(whole), [{}], X)
    with pytest.raises(TargetError, match=r"not verified: z \(not comparable: random\)"):
        check_split(model(whole), models(head, tail), X)


def test_models_that_do_not_run_are_not_verified() -> None:
    """Of a split model only the whole counts: that a part alone does not run is no excuse."""
    head = """g (float[2] x) => (float[1] y) <int64[1] i = {7}> { y = Gather(x, i) }"""
    tail = TAIL.replace("[2]", "[1]")
    with pytest.raises(NotVerifiable, match=r"not verified: .*out of data bounds"):
        check_split(model(head), models(head), X)
    with pytest.raises(NotVerifiable, match=r"not verified: .*out of data bounds"):
        check_merged(models(head, tail), model(WHOLE), [{}], X)
    with pytest.raises(RuntimeFailure, match="out of data bounds") as failed:
        check_split(model(WHOLE), models(head, tail), X)
    assert not isinstance(failed.value, NotVerifiable)


def test_parts_that_compute_the_same_pass(here: InProcess) -> None:
    (found,) = check_split(model(BOTH), models(HEAD, TAIL), X)
    assert found.ok
    assert [output.name for output in found.outputs] == ["y", "z"]
    assert len(here.opened) == 3
    assert all(each.is_closed for each in here.opened)


def test_parts_that_differ_are_an_error_with_its_inputs() -> None:
    with pytest.raises(VerificationError) as failed:
        check_split(model(WHOLE), models(HEAD, TAIL.replace("Exp", "Sin")), X)
    text = str(failed.value)
    assert text.startswith("the parts compute something else than the model: ")
    assert "\n  inputs      inputs 1" in text


def test_all_samples_are_compared() -> None:
    samples = [*X, {"x": np.array([3, 4], np.float32)}]
    assert len(check_merged(models(HEAD, TAIL), model(WHOLE), [{}], samples)) == 2
    assert len(check_split(model(WHOLE), models(HEAD, TAIL), samples)) == 2


def test_defaults_that_are_fed_are_fed_to_the_parts_too() -> None:
    tail = "g (float[2] y, float[2] w) => (float[2] z) { z = Add(y, w) }"
    whole = "g (float[2] x, float[2] w) => (float[2] z) { y = Neg(x)  z = Add(y, w) }"
    zeros = numpy_helper.from_array(np.zeros(2, np.float32), "w")
    protos = [proto(HEAD), proto(tail), proto(whole)]
    for made in protos[1:]:
        made.graph.initializer.append(zeros)
    first, second, both = map(Model.from_proto, protos)
    fed = [{**X[0], "w": np.array([5, 6], np.float32)}]
    assert check_merged([first, second], both, [{"y": "y", "w": "w", "z": "z"}], fed)[0].ok
    assert check_split(both, [first, second], fed)[0].ok


def test_models_without_outputs_are_not_verified() -> None:
    with pytest.raises(TargetError, match=r"^not verified: there are no outputs$"):
        merged._not_empty([])
