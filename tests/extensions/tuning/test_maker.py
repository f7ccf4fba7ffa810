"""Forms of a model as files: equal ones once, and what cannot be made."""

from pathlib import Path

import onnx
import pytest

from tests.small import proto
from tiered import Model
from tiered.extensions.tuning.decision_text import pipeline_text
from tiered.extensions.tuning.maker import Maker, check_candidates, digest_of
from tiered.extensions.tuning.model_forms import ModelForm
from tiered.pipeline.instruments import Trace
from tiered.support.errors import TieredError, UsageError
from tiered.testing import parse

TEXT = "(float[2] x) => (float[2] y) { a = Identity(x)  b = Relu(a)  y = Relu(b) }"
ORIGINAL, O0, O2 = ModelForm(None), ModelForm(0), ModelForm(2)


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    return Maker(parse(TEXT), str(tmp_path))


def folders(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in tmp_path.iterdir())


def test_a_form_is_a_file_in_a_folder_of_its_own(maker: Maker, tmp_path: Path) -> None:
    made = maker.made(O2)
    assert made is not None
    assert (made.form, made.path) == (O2, str(tmp_path / "0" / "model.onnx"))
    assert [node.op_type for node in onnx.load(made.path).graph.node] == ["Relu"]
    assert (made.nodes, made.nbytes) == (1, Path(made.path).stat().st_size)
    assert made.digest == digest_of(made.path)
    assert maker.failure(O2) == ""


def test_a_file_as_it_is_stays_so(maker: Maker) -> None:
    made = maker.made(ORIGINAL)
    assert made is not None
    kinds = [node.op_type for node in onnx.load(made.path).graph.node]
    assert kinds == ["Identity", "Relu", "Relu"]
    assert made.nodes == 3


def test_a_form_is_made_once(maker: Maker, tmp_path: Path) -> None:
    assert maker.made(O2) is maker.made(O2)
    assert folders(tmp_path) == ["0"]


def test_forms_of_equal_bytes_share_a_file(maker: Maker, tmp_path: Path) -> None:
    one, other = maker.made(O2), maker.made(ModelForm(2, disabled=("fuse_gelu",)))
    assert one is not None
    assert other is not None
    assert (one.path, one.digest, one.nodes, one.nbytes) == (
        other.path, other.digest, other.nodes, other.nbytes
    )  # fmt: skip
    assert (one.form, other.form) == (O2, ModelForm(2, disabled=("fuse_gelu",)))
    assert folders(tmp_path) == ["0"]


def test_a_form_that_cannot_be_made_has_a_reason(maker: Maker) -> None:
    wrong = ModelForm(2, disabled=("no_such_pass",))
    assert maker.made(wrong) is None
    assert "no_such_pass" in maker.failure(wrong)
    assert "\n" not in maker.failure(wrong)
    assert maker.made(wrong) is None
    assert maker.failure(ModelForm(1)) == ""


def test_a_form_that_was_forgotten_is_made_once_more(maker: Maker, tmp_path: Path) -> None:
    first = maker.made(O2)
    assert first is not None
    maker.forget(first)
    assert folders(tmp_path) == []
    again = maker.made(O2)
    assert again is not None
    assert again.digest == first.digest
    assert folders(tmp_path) == ["1"]
    maker.forget(again)
    maker.forget(again)


def test_a_candidate_begins_with_its_own_file(maker: Maker, tmp_path: Path) -> None:
    path = tmp_path / "candidate.onnx"
    onnx.save(parse("(float[2] x) => (float[2] y) { y = Neg(x) }"), path)
    made = maker.made(ModelForm(None, file=str(path)))
    assert made is not None
    assert [node.op_type for node in onnx.load(made.path).graph.node] == ["Neg"]
    assert maker.made(ModelForm(None, file=str(tmp_path / "none.onnx"))) is None


def test_the_digest_of_what_a_pipeline_makes(maker: Maker, tmp_path: Path) -> None:
    made = maker.made(O2)
    assert made is not None
    assert maker.digest_with(pipeline_text(O2), O2) == made.digest
    only = maker.digest_with("eliminate_identity", O2)
    assert only != made.digest
    assert only == maker.digest_with("eliminate_identity", O0)
    assert folders(tmp_path) == ["0"]
    with pytest.raises(TieredError):
        maker.digest_with("no_such_pass", O2)


def test_the_result_of_a_form_may_be_traced(maker: Maker) -> None:
    trace = Trace()
    found = maker.result(O2, trace)
    assert len(found.model.main.nodes) == 1
    assert maker.model == parse(TEXT)


def test_a_view_of_a_file_as_it_is_runs_no_pass(maker: Maker) -> None:
    assert len(maker.view(ORIGINAL).main.nodes) == 3
    assert len(maker.view(O2).main.nodes) == 1


# --- digests --------------------------------------------------------------------------------------


def test_the_digest_of_a_model_is_that_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(proto(), path)
    assert digest_of(path) == digest_of(str(path))
    assert digest_of(proto()) == digest_of(proto())
    other = proto()
    other.doc_string = "other"
    assert digest_of(other) != digest_of(proto())


def test_candidates_have_to_be_there(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"")
    check_candidates(())
    check_candidates((str(path),))
    for missing in (tmp_path / "none.onnx", tmp_path):
        with pytest.raises(UsageError, match=r"--candidates '.*': no such file"):
            check_candidates((str(path), str(missing)))


def test_the_model_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(parse(TEXT), path)
    maker = Maker(str(path), str(tmp_path))
    assert isinstance(maker.loaded(O2), Model)
    assert maker.made(O2) is not None
