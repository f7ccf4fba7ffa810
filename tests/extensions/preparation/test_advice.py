"""The doctor: the fewest remedies with the fewest refused nodes, each tried in memory."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest

from tests.small import parsed
from tiered import Backend
from tiered.extensions.preparation import advice
from tiered.extensions.preparation.advice import (
    _clashes,
    _Doctor,
    _is_smaller,
    diagnose,
    doctor,
)
from tiered.extensions.preparation.remedies import Remedy
from tiered.graph import DataType, Model
from tiered.pipeline.result import ModelStatistics
from tiered.support.errors import BackendNotFoundError, ModelError, RuntimeFailure
from tiered.targets.operator_rule import Bounds, OperatorRule

TEXT = "(float[N,2] x) => (float[N,2] y) { a = Relu(x)  y = Erf(a) }"


def target(*operators: str, **more: object) -> Backend:
    rules = {("", each): (OperatorRule(),) for each in operators}
    return Backend(name="npu", operators=rules, **more)  # type: ignore[arg-type]  # of any


def whats(model: Model, backend: Backend) -> list[str]:
    return [each.what for each in diagnose(model, backend=backend, opt_level=0).remedies]


def test_a_legal_model_needs_nothing_and_stays_as_it_is() -> None:
    model = parsed(TEXT)
    before = model.to_proto()
    found = diagnose(model, backend=target("Relu", "Erf"), opt_level=0)
    assert (found.is_legal, found.remedies, found.failed) == (True, (), ())
    assert (found.backend, found.complaint, found.complaint_after) == ("npu", "", "")
    assert found.statistics == ModelStatistics.of(model)
    assert model.to_proto() == before


def test_what_the_target_cannot_do_without_is_chosen() -> None:
    old = target("Relu", "Erf", opset=Bounds(13, 17))
    assert whats(parsed(TEXT, opset=21), old) == ["opset 17"]
    assert whats(parsed(TEXT), target("Relu", "Erf", shapes="static")) == ["fix dims"]
    both = target("Relu", "Erf", shapes="static", opset=Bounds(13, 17))
    assert whats(parsed(TEXT), both) == ["opset 17", "fix dims"]


def test_what_does_not_help_is_left_out() -> None:
    found = diagnose(parsed(TEXT), backend=target("Relu"), opt_level=0)
    assert found.remedies == ()
    assert not found.is_legal_after
    assert found.has_a_way


def test_a_remedy_that_fails_is_named_once() -> None:
    text = "(int64[2] x) => (int64[2] y) { a = Abs(x)  y = Neg(a) }"
    ints = Backend(name="npu", unlisted="standard", activations=frozenset({DataType.INT32}))
    found = diagnose(parsed(text), backend=ints, opt_level=0)
    assert found.remedies == ()
    assert [each.split(":")[0] for each in found.failed] == ["quantise first", "int64 to int32"]
    assert "not proven to fit int32" in found.failed[1]


def test_a_remedy_that_cannot_be_tried_is_told() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Gelu(x) }", opset=20)
    found = diagnose(model, backend=target("Gelu", opset=Bounds(13, 17)), opt_level=0)
    assert any(each.startswith("opset 17: ") for each in found.failed)


def test_steps_are_said() -> None:
    said: list[str] = []
    diagnose(parsed(TEXT), backend=target("Relu", "Erf"), opt_level=0, on_step=said.append)
    assert said[0] == "trying the passes of the target"
    said.clear()
    static = target("Relu", "Erf", shapes="static")
    diagnose(parsed(TEXT), backend=static, opt_level=0, on_step=said.append)
    assert said[0] == "trying: fix dims"


def test_a_file_is_named_in_the_commands(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    proto = parsed(TEXT).to_proto()
    onnx.save(proto, path)
    backend = target("Relu", "Erf", shapes="static")
    found = doctor(path, backend=backend, opt_level=0)
    assert found.source == str(path)
    assert str(path) in found.commands()[0]
    of_proto = doctor(proto, backend=backend, opt_level=0)
    assert (of_proto.source, proto) == ("", parsed(TEXT).to_proto())


def test_what_cannot_be_read_or_is_no_target_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        doctor(tmp_path / "none.onnx")
    with pytest.raises(BackendNotFoundError):
        doctor(parsed(TEXT).to_proto(), backend="no_such_target")


@pytest.mark.parametrize(
    ("nodes", "nbytes", "is_smaller"),
    [
        ((100, 100), (1000, 991), False),
        ((100, 100), (1000, 990), True),
        ((100, 99), (1000, 1000), False),
        ((100, 98), (1000, 1000), True),
        ((100, 98), (1000, 1001), False),
        ((100, 101), (1000, 900), True),
    ],
)
def test_a_hundredth_of_the_bytes_or_nodes_is_a_gain(
    nodes: tuple[int, int], nbytes: tuple[int, int], *, is_smaller: bool
) -> None:
    before, after = (
        ModelStatistics(count, {}, 0, size) for count, size in zip(nodes, nbytes, strict=True)
    )
    assert _is_smaller(before, after) == is_smaller


def test_remedies_clash_that_set_the_same_but_conversions() -> None:
    opset, other = Remedy("a", "", {"opset": 17}), Remedy("b", "", {"opset": 21, "ir": 10})
    half, ints = Remedy("c", "", {"to": ("fp16",)}), Remedy("d", "", {"to": ("int32",)})
    assert _clashes(opset, [half, other])
    assert not _clashes(opset, [half])
    assert not _clashes(half, [ints])
    assert not _clashes(opset, [])


def test_smaller_results_are_suggested() -> None:
    text = """(float[2,2] x) => (float[2,2] y) {
        a = Identity(x)  b = Identity(a)  c = Identity(b)  y = Relu(c) }"""
    found = diagnose(parsed(text), backend=target("Relu", "Identity"), opt_level=2)
    first = found.suggestions[0]
    assert (first.what, first.why, first.error) == ("optimise", "", "")
    assert (first.before.nodes, first.after.nodes) == (4, 1)
    assert first.line == "tiered prepare model.onnx out.onnx --for npu -O2"


# --- the search for the fewest remedies, without models -------------------------------------------


class Search(_Doctor):
    """A doctor of a model of which as many nodes are refused as a table says.

    Args:
        remedies: "opset=17! level=4": what each sets; "!" for those that are needed.
        refused: by the remedies; those that are not there cannot be tried.
    """

    def __init__(self, remedies: str, refused: dict[str, int]) -> None:
        self.remedies = []
        for text in remedies.split():
            name = text.rstrip("!")
            key, _, value = name.partition("=")
            changes = {key: (value,) if key == "to" else value}
            self.remedies.append(Remedy(name, "", changes, text.endswith("!")))
        self.refused = refused
        self.said: list[str] = []
        self.on_step = self.said.append

    def _candidates(self, coverage: Any) -> list[Remedy]:
        return self.remedies

    def _tried(self, remedies: Any, *_: Any, **more: Any) -> Any:
        names = " ".join(each.what for each in remedies)
        self.said.append(names or "nothing")
        found = self.refused.get(names)
        return None if found is None else SimpleNamespace(coverage=None, refused=found)

    def _wrong(self, made: Any) -> int:
        return int(made.refused)

    def chosen(self, monkeypatch: pytest.MonkeyPatch) -> str:
        """Return the remedies that are chosen, and what was tried."""
        bare = SimpleNamespace(coverage=None, refused=self.refused[""])
        self.model: Any = SimpleNamespace(copy=lambda: None)
        self.base: Any = None
        monkeypatch.setattr(advice, "prepare_model", lambda *_, **more: bare)
        needed, made = self._needed(SimpleNamespace())  # type: ignore[arg-type]  # a fake
        first = " ".join(each.what for each in needed)
        if self._wrong(made):
            needed, made = self._shortest(needed, made)
        names = " ".join(each.what for each in needed)
        return f"[{first}] [{names}] {self._wrong(made)}: {', '.join(self.said)}".replace(
            PASSES, "PASSES"
        )


PASSES = "trying the passes of the target"


@pytest.mark.parametrize(
    ("remedies", "refused", "expected"),
    [
        ("", {"": 0}, "[] [] 0: PASSES"),
        ("", {"": 2}, "[] [] 2: PASSES"),
        ("opset=17!", {"": 3, "opset=17": 0}, "[opset=17] [opset=17] 0: opset=17"),
        ("opset=17!", {"": 3}, "[] [] 3: opset=17, PASSES, opset=17"),
        (
            "opset=17! opset=21!",
            {"": 3, "opset=17": 1, "opset=21": 0},
            "[opset=17] [opset=17] 1: opset=17",
        ),
        (
            "opset=17! opset=21!",
            {"": 3, "opset=21": 0},
            "[opset=21] [opset=21] 0: opset=17, opset=21",
        ),
        (
            "opset=17! ir=8!",
            {"": 3, "opset=17 ir=8": 0},
            "[opset=17 ir=8] [opset=17 ir=8] 0: opset=17 ir=8",
        ),
        (
            "ir=8! to=a! to=b",
            {"": 3, "ir=8 to=a": 2, "ir=8 to=a to=b": 0},
            "[ir=8 to=a] [ir=8 to=a to=b] 0: ir=8 to=a, ir=8 to=a to=b, ir=8 to=a",
        ),
        (
            "level=4 to=b",
            {"": 3, "level=4": 2, "level=4 to=b": 1, "to=b": 1},
            "[] [to=b] 1: PASSES, level=4, level=4 to=b, to=b",
        ),
        (
            "level=4 to=b",
            {"": 3, "level=4": 2, "level=4 to=b": 1, "to=b": 2},
            "[] [level=4 to=b] 1: PASSES, level=4, level=4 to=b, to=b, level=4",
        ),
        ("level=4 to=b", {"": 3, "level=4": 0}, "[] [level=4] 0: PASSES, level=4"),
        (
            "opset=17! ir=8!",
            {"": 3, "opset=17": 3},
            "[] [opset=17] 3: opset=17 ir=8, PASSES, opset=17, opset=17 ir=8",
        ),
        ("level=4 to=b", {"": 3, "level=4": 3, "to=b": 3}, "[] [] 3: PASSES, level=4, to=b"),
        ("level=4 level=3", {"": 3, "level=4": 2, "level=3": 0}, "[] [level=4] 2: PASSES, level=4"),
        ("opset=17! to=b", {"": 3, "to=b": 1}, "[] [to=b] 1: opset=17, PASSES, opset=17, to=b"),
        (
            "opset=17! opset=21! to=b",
            {"": 3, "opset=21": 2, "opset=21 to=b": 2},
            "[opset=21] [opset=21] 2: opset=17, opset=21, opset=21 to=b",
        ),
        (
            "to=a to=b to=c",
            {"": 5, "to=a": 4, "to=a to=b": 3, "to=a to=b to=c": 1, "to=b to=c": 1, "to=c": 1},
            "[] [to=c] 1: PASSES, to=a, to=a to=b, to=a to=b to=c, to=b to=c, to=c",
        ),
    ],
)
def test_which_remedies_are_chosen(
    remedies: str, refused: dict[str, int], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Search(remedies, refused).chosen(monkeypatch) == expected


def test_what_any_runtime_lacks_is_said_and_tried() -> None:
    said: list[str] = []
    own = parsed("(float[2] x) => (float[2] y) { a = own.F(x)  y = Relu(a) }")
    found = diagnose(own, opt_level=0, on_step=said.append)
    assert (found.backend, found.coverage, found.remedies) == ("", None, ())
    assert "own" in found.complaint
    assert found.complaint_after == found.complaint.partition("\n")[0]
    assert said[0] == "trying the passes of the target"
    legal = diagnose(parsed(TEXT), opt_level=0)
    assert (legal.backend, legal.complaint, legal.complaint_after) == ("", "", "")
    assert (legal.is_legal, legal.is_legal_after) == (True, True)


class Bare(_Doctor):
    """A doctor without a model."""

    def __init__(self, target: Any = None, complaint: str = "") -> None:
        self.target, self.complaint = target, complaint
        self.said: list[str] = []
        self.on_step = self.said.append
        self.failed: list[str] = []
        self.base: Any = SimpleNamespace()
        self.model: Any = SimpleNamespace(copy=lambda: None)

    def _complaint(self, model: Any) -> str:
        return self.complaint


def test_how_many_nodes_are_refused_and_what_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    for refused, faults, complaint, wrong in (
        (None, [], "", 0), (None, [], "no", 1), (0, [], "no", 0), (2, [], "", 2),
        (2, ["opset", "ir"], "", 12),
    ):  # fmt: skip
        coverage = SimpleNamespace(refused=Counter({"Op": refused or 0}), nodes=5, model=faults)
        made: Any = SimpleNamespace(coverage=None if refused is None else coverage, model=None)
        assert Bare(complaint=complaint)._wrong(made) == wrong
    monkeypatch.setattr(advice, "for_any_runtime", lambda: "any")
    monkeypatch.setattr(advice, "for_target", lambda *given: given[1:])
    some: Any = SimpleNamespace()
    cases: list[Any] = [
        (None, None, "any"), (None, some, "any"), (some, None, "any"), (some, some, (some, some)),
    ]  # fmt: skip
    for target, coverage, wanted in cases:
        assert Bare(target)._candidates(coverage) == wanted

    def fail(*_: Any, **more: Any) -> Any:
        raise RuntimeFailure(f"no {more}\nin lines")

    monkeypatch.setattr(advice, "prepare_model", fail)
    remedies: Any = [SimpleNamespace(what=name, applied=lambda options: options) for name in "ab"]
    bare = Bare()
    assert bare._tried(remedies, measures=True) is None
    assert bare._tried([]) is None
    assert bare.said == ["trying: a, b", "trying: less"]
    assert bare.failed == ["a, b: no {'verify': 'off', 'measures': True}", ": no {'verify': 'off'}"]


def test_what_is_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    def result(nodes: int, wrong: int, error: str = "") -> Any:
        figures = ModelStatistics(nodes, {}, 0, 1000)
        return SimpleNamespace(after=figures, wrong=wrong, error=error, options=f"of {nodes}")

    class Trying(Bare):
        def _tried(self, remedies: Any, *given: Any, **more: Any) -> Any:
            (remedy,) = remedies
            assert (given, more) == (("base",), {"measures": True})
            found = tried[remedy.what]
            if isinstance(found, RuntimeFailure):
                raise found
            return found

        def _wrong(self, made: Any) -> int:
            return int(made.wrong)

    tried = {
        "half": result(50, 1, "off by 1"), "texts": result(90, 0, "none"), "more": result(20, 2),
        "same": result(100, 1), "fails": RuntimeFailure("no"), "lost": None,
    }  # fmt: skip
    changes = {"half": {"to": ("fp16",)}}
    remedies = [Remedy(name, f"as {name}", changes.get(name, {})) for name in tried]
    monkeypatch.setattr(advice, "gaining", lambda *given: remedies)
    monkeypatch.setattr(advice, "prepare_line", lambda *given, host: f"{given[0]} {host}")
    whole = ModelStatistics(200, {}, 0, 1000)
    monkeypatch.setattr(advice, "ModelStatistics", SimpleNamespace(of=lambda model: whole))
    doctor = Trying()
    doctor.source = "m.onnx"
    for base, first in (("base", [("optimise", "base True", 200, 100, "")]), ("other", [])):
        doctor.base = base
        made = result(100, 1)
        made.options = "base"
        found = [
            (each.what, each.line, each.before.nodes, each.after.nodes, each.error)
            for each in doctor._suggestions(made)
        ]
        assert found == [
            *first, ("half", "of 50 True", 100, 50, "off by 1"),
            ("texts", "of 90 False", 100, 90, ""),
        ]  # fmt: skip
