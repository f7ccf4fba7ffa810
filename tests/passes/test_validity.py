"""Whether a result is valid ONNX: which error says so, and what the model had before."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import onnx
import pytest

from tests.small import made_by, model, named, parsed
from tiered import Model, ModelError, PassContext, ShapeError, get_pass
from tiered.passes import validity
from tiered.passes.validity import check_result, is_contrib_complaint_new
from tiered.runtime.worker import client
from tiered.support.errors import RuntimeFailure

PAIR = "(float[N,2] x, float[M,2] z) => (float[N,2] y) { a = Add(x, z)  y = Relu(a) }"


def checked(of: Model, *, strict: bool = False) -> list[str]:
    """Return the notes of a model that is held against the check."""
    before = len(of.notes)
    check_result(of, PassContext.isolated(strict=strict))
    return [str(note) for note in of.notes][before:]


def set_alpha(of: Model) -> None:
    of.main.set_attribute(made_by(of, "y"), "alpha", 1.0)


def test_an_edit_that_the_checker_rejects_is_an_error_of_the_result() -> None:
    of = parsed(PAIR)
    set_alpha(of)
    with pytest.raises(ModelError, match=r"onnx.checker rejects the result: .*alpha"):
        checked(of)


def _sized(**shapes: tuple[int, int]) -> tuple[Model, PassContext]:
    of, ctx = parsed(PAIR), PassContext.isolated()
    with ctx:
        get_pass("const_input_shape", shape=shapes)(of)
    return of, ctx


def test_sizes_that_fit_are_not_blamed_for_another_fault() -> None:
    of, ctx = _sized(x=(3, 2), z=(3, 2))
    set_alpha(of)
    with pytest.raises(ModelError, match=r"onnx.checker rejects the result: .*alpha") as error:
        check_result(of, ctx)
    assert not isinstance(error.value, ShapeError)


def _of_opset(of: Model) -> onnx.ModelProto:
    proto = of.to_proto()
    proto.opset_import[0].version = 99
    return proto


def _without_outputs(of: Model) -> onnx.ModelProto:
    proto = of.to_proto()
    del proto.graph.output[:]
    return proto


def _of_another_domain(of: Model) -> onnx.ModelProto:
    proto = of.to_proto()
    proto.graph.node[0].domain = "acme"
    return proto


def _with_one_name(of: Model) -> onnx.ModelProto:
    proto = of.to_proto()
    for node in proto.graph.node:
        node.name = "twice"
    return proto


def _with_alpha(of: Model) -> onnx.ModelProto:
    set_alpha(of)
    return of.to_proto()


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (_of_opset, "the model is of opset 99, and onnx"),
        (_without_outputs, "the model has no outputs: nothing that it computes is used"),
        (_of_another_domain, "[Nn]o opset (of the|import for) domain 'acme'"),
        (_with_one_name, "two nodes of one graph are named 'twice'"),
        (_with_alpha, "onnx.checker rejects the model as it was loaded"),
    ],
)
def test_what_the_model_had_before_is_a_note_and_strictly_an_error(
    change: Callable[[Model], onnx.ModelProto], note: str
) -> None:
    proto = change(model(f"g {PAIR}"))
    assert any(re.search(note, text) for text in checked(Model.from_proto(proto)))
    with pytest.raises(ModelError, match=note):
        checked(Model.from_proto(proto), strict=True)


def test_a_valid_model_has_no_note() -> None:
    of = parsed(PAIR)
    for node in of.main.nodes:
        of.main.rename_node(node, "")  # no name is no name twice
    assert checked(of) == []


BIASED = """(float[3,4] x, float[4] b) => (float[3,4] y) <float[3] c = {1, 2, 3}> {
    a = com.microsoft.BiasGelu(x, %s)  y = Relu(a) }"""


def test_operands_that_never_fit_are_a_note_and_those_of_a_pass_an_error() -> None:
    (note,) = checked(parsed(BIASED % "c"))
    assert note.startswith("operands do not fit in the model as it was loaded: ")
    with pytest.raises(ModelError, match="operands do not fit in the model as it was loaded"):
        checked(parsed(BIASED % "c"), strict=True)
    of = parsed(BIASED % "b")
    of.main.set_input(made_by(of, "a"), 1, named(of, "c"))
    with pytest.raises(ModelError, match="operands do not fit in the result: "):
        checked(of)


def test_a_model_that_no_file_holds_has_no_earlier_fault() -> None:
    of = parsed(BIASED % "c")
    of.origin = None
    assert not is_contrib_complaint_new(of)


DECLARES = "the model declares types that contradict what follows from its inputs"
REJECTS = "onnx.checker rejects the result: c"


def test_who_is_to_blame_for_what_the_checker_rejects(monkeypatch: pytest.MonkeyPatch) -> None:
    of = parsed(PAIR)
    plain: dict[str, Any] = {
        "complaint": "c", "wrong": {}, "before": None, "only": False, "folded": None,
        "stated": {}, "only_stated": False, "runs": False, "sized": False,
    }  # fmt: skip

    def outcome(strict: bool = False, **held: Any) -> str:
        now = plain | held
        answers = {
            "complaint_of": lambda *_: now["complaint"],
            "wrong_declarations": lambda _: now["wrong"],
            "is_only_declared": lambda _, *stated: now["only_stated" if stated else "only"],
            "_complaint_about_folded": lambda _: now["folded"],
            "_wrong_before": lambda _: now["stated"],
            "_runs_although_rejected": lambda _: now["runs"],
        }
        for name, answer in answers.items():
            monkeypatch.setattr(validity, name, answer)
        monkeypatch.setattr(Model, "complaint_as_loaded", lambda _: now["before"])
        results = [SimpleNamespace(changed=False), SimpleNamespace(changed=now["sized"])]
        report = SimpleNamespace(of=lambda name: results if name == "const_input_shape" else [])
        ctx: Any = SimpleNamespace(strict=strict, report=report)
        of.notes.clear()
        try:
            validity._check_standard(of, ctx)
        except ModelError as error:
            return f"{type(error).__name__}: {error}"
        return "; ".join(map(str, of.notes))

    one, two = {"a": "w1"}, {"a": "w1", "b": "w2"}
    rows: list[tuple[dict[str, Any], str]] = [
        ({"complaint": None}, ""),
        ({"complaint": None, "wrong": one}, f"{DECLARES}: w1"),
        ({"complaint": None, "wrong": two}, f"{DECLARES}: w1, and 1 more"),
        ({"complaint": None, "wrong": {**two, "c": "w3"}}, f"{DECLARES}: w1, and 2 more"),
        ({"before": "b"}, "onnx.checker rejects the model as it was loaded: b"),
        ({"before": "b", "wrong": one}, "onnx.checker rejects the model as it was loaded: b: w1"),
        ({"only": True}, f"{DECLARES}: c"),
        ({"folded": "f"}, "the model contradicts itself once its constants are folded: f"),
        ({"stated": one, "only_stated": True}, f"{DECLARES}: c: w1"),
        ({"only_stated": True}, f"ModelError: {REJECTS}"),
        ({"stated": one}, f"ModelError: {REJECTS}"),
        ({"runs": True},
         "onnx.checker rejects what its nodes do not show, and onnxruntime runs: c"),
        ({"sized": True, "wrong": one},
         "ShapeError: the sizes that were set do not fit together: w1 (c)"),
        ({"sized": True}, f"ModelError: {REJECTS}"),
        ({"wrong": one}, f"ModelError: {REJECTS}"),
        ({"only": True, "strict": True}, f"ModelError: {DECLARES}: c"),
    ]  # fmt: skip
    for held, expected in rows:
        assert outcome(**held) == expected, held


def test_an_operator_of_a_later_opset_that_the_target_has_is_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = parsed(PAIR)

    def outcome(
        complaint: str | None, found: str | None, names: bool, early: str, takes: str
    ) -> tuple[str | None, list[str]]:
        nodes = [SimpleNamespace(op_type=kind) for kind in early]
        monkeypatch.setattr(
            validity, "current_complaint", lambda _, early=False: found if early else complaint
        )
        monkeypatch.setattr(validity, "early_nodes", lambda _: nodes)
        backend = type("B", (), {"__str__": lambda _: "B"})()
        backend.takes = lambda node: node.op_type in takes
        ctx: Any = SimpleNamespace(names_backend=names, backend=backend)
        of.notes.clear()
        return validity.complaint_of(of, ctx), list(map(str, of.notes))

    note = (
        f"G, H is not in ONNX at opset {of.opset()}, but B has it there; onnx.checker refuses the "
        "file, and `tiered convert --opset 17` makes it standard"
    )
    assert outcome(None, "f", True, "G", "G") == (None, [])
    assert outcome("c", None, False, "G", "G") == ("c", [])
    assert outcome("c", None, True, "", "G") == ("c", [])
    assert outcome("c", None, True, "GH", "G") == ("c", [])
    assert outcome("c", "f", True, "GH", "GH") == ("f", [])
    assert outcome("c", None, True, "HGH", "GH") == (None, [note])


def test_what_no_file_holds_was_not_wrong_before(monkeypatch: pytest.MonkeyPatch) -> None:
    of = parsed(PAIR)
    assert validity._complaint_about_folded(of) is None
    assert validity._wrong_before(of) == {}
    of.origin = None
    monkeypatch.setattr(validity, "current_complaint", lambda _: "c")
    monkeypatch.setattr(validity, "wrong_declarations", lambda _: {"a": "w"})
    assert validity._complaint_about_folded(of) is None
    assert validity._wrong_before(of) == {}
    for node in of.main.nodes:
        node.proto.name = "twice"
    with pytest.raises(ModelError, match="two nodes of one graph are named 'twice'"):
        validity._check_names(of, PassContext.isolated())


def test_a_name_that_passes_gave_twice_is_their_error() -> None:
    of = parsed(PAIR)
    for node in of.main.nodes:
        node.proto.name = "twice"
    with pytest.raises(ModelError, match="two nodes of one graph are named 'twice'"):
        validity._check_names(of, PassContext.isolated())


def test_only_what_onnxruntime_opens_runs_although_it_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = parsed(PAIR)

    class Opens:
        def open(self, proto: object) -> Any:
            if proto == "refused":
                raise RuntimeFailure("no")
            return self

        def close(self) -> None: ...

    monkeypatch.setattr(client, "shared_worker", Opens)
    for proto, expected in ((None, False), ("refused", False), ("taken", True)):
        monkeypatch.setattr(validity, "without_false_errors", lambda _, proto=proto: proto)
        assert validity._runs_although_rejected(of) is expected


def test_a_fault_that_folding_exposes_is_none_of_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    of = parsed(BIASED % "b")
    for folds, complaints, expected in (
        (True, [None, None], True), (True, [None, "x"], False), (False, [None, "x"], True),
        (True, ["x", None], False),
    ):  # fmt: skip
        left = iter(complaints)
        monkeypatch.setattr(validity, "_fold", lambda _, folds=folds: folds)
        monkeypatch.setattr(validity, "contrib_complaint", lambda _, left=left: next(left))
        assert is_contrib_complaint_new(of) is expected, (folds, complaints)


def test_the_newest_opset_of_onnx_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    of = parsed(PAIR)
    for newest, count in ((of.opset(), 0), (of.opset() - 1, 1)):
        monkeypatch.setattr(onnx.defs, "onnx_opset_version", lambda newest=newest: newest)
        assert len(list(validity._unchecked(of))) == count


def test_what_cannot_be_folded_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    of = parsed("(float[2] x) => (float[2] y) <float[2] w = {1,2}> { a = Neg(w)  y = Add(x, a) }")
    monkeypatch.setattr("tiered.passes.lookup.pass_named", get_pass)
    assert validity._fold(of)
    assert [node.op_type for node in of.main.nodes] == ["Add"]

    def fails(name: str) -> Any:
        raise ModelError("no")

    monkeypatch.setattr("tiered.passes.lookup.pass_named", fails)
    assert not validity._fold(of)


def test_a_domain_without_an_opset_is_named() -> None:
    of = Model.from_proto(_of_another_domain(model(f"g {PAIR}")))
    (text,) = validity._unchecked(of)
    assert text == (
        f"no opset of the domain 'acme' is imported, which node {of.main.nodes[0].label!r} needs"
    )
    assert list(validity._unchecked(parsed(PAIR))) == []


def test_what_folding_exposes_is_asked_of_the_loaded_model(monkeypatch: pytest.MonkeyPatch) -> None:
    of = parsed(PAIR)
    monkeypatch.setattr(validity, "current_complaint", lambda loaded: None if loaded is of else "c")
    assert validity._complaint_about_folded(of) == "c"
    monkeypatch.setattr(validity, "_fold", lambda _: False)
    assert validity._complaint_about_folded(of) is None
