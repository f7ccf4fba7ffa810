"""A certificate is checked again from the two files; one that was changed proves nothing."""

import copy
import hashlib
import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import onnx
import pytest

from tiered import Model, optimize
from tiered.certify.evaluation.values import Unproved
from tiered.certify.regions.certificate_replay import CertificateReplay, Checked, Tampered, _lost
from tiered.certify.regions.region_text import digest_of
from tiered.cli import main
from tiered.graph.core.tensor import Tensor as Stored
from tiered.testing import parse
from tiered.verify.part_extraction import GraphPart

WEIGHTS = ",".join(str(at % 7 + 1) for at in range(8 * 8 * 3 * 3))
EIGHT = "1,2,3,4,5,6,7,8"
FOLDED = f"""(float[N,8,6,6] x) => (float[N,8,4,4] y) <float[8,8,3,3] w = {{{WEIGHTS}}},
    float[8] s = {{{EIGHT}}}, float[8] b = {{{EIGHT}}}, float[8] m = {{{EIGHT}}},
    float[8] v = {{{EIGHT}}}, float k = {{3}}> {{
    c = Conv(x, w)  d = BatchNormalization(c, s, b, m, v)  e = Mul(d, k)  y = Relu(e) }}"""
MOVED = """(float[N,4] x, float[4] z) => (float[N,4] y) <float one = {1}, int64[2] s = {-1, 4}> {
    a = Mul(x, one)  b = Reshape(a, s)  c = Sub(b, z)  d = Relu(c)  y = Identity(d) }"""
Certificate = dict[str, Any]


class Run:
    """A model, what became of it, and its certificate."""

    def __init__(self, folder: Path, text: str, level: int) -> None:
        self.before, self.after = folder / "in.onnx", folder / "out.onnx"
        self.file = folder / "c.json"
        onnx.save(parse(text), self.before)
        optimize(self.before, self.after, opt_level=level, certify=str(self.file))
        self.certificate: Certificate = json.loads(self.file.read_text())

    def checked(self, certificate: Certificate | None = None) -> list[Checked]:
        before, after = (Model.from_proto(onnx.load(path)) for path in (self.before, self.after))
        return list(CertificateReplay(before, after, certificate or self.certificate).run())

    def command(self, certificate: Certificate | None = None, *options: str) -> int:
        """Return the exit code of the command, with the digests of the files as they are."""
        held = copy.deepcopy(certificate or self.certificate)
        for name, path in (("before", self.before), ("after", self.after)):
            held[name]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        self.file.write_text(json.dumps(held))
        files = [str(path) for path in (self.before, self.after, self.file)]
        return main(["certify", *files[:2], "--with", files[2], *options])


@pytest.fixture
def moved(tmp_path: Path) -> Run:
    return Run(tmp_path, MOVED, 2)


def changed(run: Run, change: Callable[[Certificate], object]) -> Certificate:
    """Return a certificate after a change, with counts that agree with it."""
    held = copy.deepcopy(run.certificate)
    change(held)
    held["counts"] = dict(Counter(each["proved"] for each in held["rewrites"]))
    return held


def regions(held: Certificate) -> list[dict[str, Any]]:
    return [each["region"] for each in held["rewrites"] if isinstance(each["region"], dict)]


def test_each_rewrite_is_proved_again(moved: Run) -> None:
    found = moved.checked()
    assert len(found) == len(moved.certificate["rewrites"])
    assert all(each.proof is None or each.proof.domain == "bits" for each in found)
    assert any(each.proof is not None for each in found)


def test_rewrites_whose_constants_are_in_neither_file_are_checked_together(tmp_path: Path) -> None:
    run = Run(tmp_path, FOLDED, 3)
    found = run.checked()
    assert any(len(each.numbers) > 1 for each in found)
    assert {each.proof.domain for each in found if each.proof is not None} == {"bits", "reals"}
    assert run.command() == 0


def test_small_constants_that_the_certificate_lacks_are_no_hindrance(moved: Run) -> None:
    held = changed(moved, lambda held: held.pop("constants"))
    assert all(each.proof is None or each.proof.is_proved for each in moved.checked(held))


def _other_text(held: Certificate) -> None:
    region = next(region for region in regions(held) if "Sub" in region["before"])
    region["before"] = region["before"].replace("Sub", "Add")


def _no_text(held: Certificate) -> None:
    regions(held)[0]["after"] = "neither"


def _other_value(held: Certificate) -> None:
    digests = list(held["constants"])
    held["constants"][digests[0]] = held["constants"][digests[1]]


def _no_value(held: Certificate) -> None:
    held["constants"][next(iter(held["constants"]))] = "neither"


def _none_of_a_region(held: Certificate) -> None:
    next(each for each in held["rewrites"] if each["region"] is not None)["region"] = None


def _of_a_later_one(held: Certificate) -> None:
    held["rewrites"][0]["region"] = "#99"


CHANGES = {
    "a rewrite is missing": lambda held: held["rewrites"].pop(0),
    "rewrites in another order": lambda held: held["rewrites"].reverse(),
    "a rewrite twice": lambda held: held["rewrites"].append(held["rewrites"][0]),
    "nodes that are not there": _other_text,
    "no nodes": _no_text,
    "a constant of another digest": _other_value,
    "no constant": _no_value,
    "no region": _none_of_a_region,
    "a region of a later rewrite": _of_a_later_one,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_certificate_that_was_changed_is_refused(
    moved: Run, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert moved.command(changed(moved, CHANGES[name])) == 3
    assert "is no certificate of these files" in capsys.readouterr().err


MALFORMED: list[tuple[str, object]] = [
    ("rewrites", None), ("rewrites", [None]), ("rewrites", [{}]), ("rewrites.0.number", None),
    ("rewrites.0.proved", []), ("rewrites.0.pass", 3), ("rewrites.0.region", 3),
    ("rewrites.0.region", []), ("rewrites.0.region", {}), ("rewrites.0.region", "#²"),
    ("rewrites.0.region.before", None), ("rewrites.0.region.after", 3),
    ("rewrites.0.region.constants", None), ("rewrites.0.region.constants", [{}]),
    ("rewrites.0.region.constants", [{}, {"one": []}]), ("constants", None),
    ("constants", {"a": 3}), ("counts", None),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value"), MALFORMED)
def test_a_certificate_of_another_form_is_refused(moved: Run, place: str, value: object) -> None:
    *path, last = place.split(".")
    held = copy.deepcopy(moved.certificate)
    at: Any = held
    for name in path:
        at = at[int(name) if name.isdigit() else name]
    at[last] = value
    with pytest.raises(Tampered):
        moved.checked(held)
    if place != "constants":  # they are only a help
        del at[last]
        with pytest.raises(Tampered):
            moved.checked(held)


def test_text_that_is_no_region_is_named_in_words(moved: Run) -> None:
    words = r"rewrite #\d+: no region: \[ParseError at .*\] Error context: neither Expected"
    with pytest.raises(Tampered, match=words):
        moved.checked(changed(moved, _no_text))


def _with_two(number: int) -> Callable[[Certificate], None]:
    """Return a change: two rewrites of one number, which do nothing, are appended."""
    one = {"number": number, "proved": "bits", "pass": "nothing", "region": None}
    return lambda held: held["rewrites"].extend([one, dict(one)])


def test_a_number_names_one_rewrite(moved: Run) -> None:
    with pytest.raises(Tampered, match="rewrite #99 is there twice"):
        moved.checked(changed(moved, _with_two(99)))


def test_edits_beside_rewrites_have_one_number(moved: Run) -> None:
    held = changed(moved, _with_two(0))
    assert len(moved.checked(held)) == len(held["rewrites"])


def test_counts_that_are_not_those_of_the_rewrites_are_refused(moved: Run) -> None:
    held = {**moved.certificate, "counts": {"bits": 99}}
    with pytest.raises(Tampered, match="its counts"):
        moved.checked(held)


def test_another_file_is_refused(moved: Run) -> None:
    model = onnx.load(moved.after)
    model.graph.node[0].op_type = "Add"
    onnx.save(model, moved.after)
    with pytest.raises(Tampered, match="do not end in the second model"):
        moved.checked()
    assert moved.command() == 3


def test_another_weight_of_the_second_file_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path, FOLDED, 3)
    model = onnx.load(run.after)
    weight = next(each for each in model.graph.initializer if len(each.dims) == 4)
    array = onnx.numpy_helper.to_array(weight).copy()
    array.flat[0] += 1
    weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
    onnx.save(model, run.after)
    with pytest.raises(Tampered, match="another constant"):
        run.checked()


@pytest.mark.parametrize("word", ["bits", "reals", "run"])
def test_a_lie_that_agrees_with_the_files_is_not_proved(moved: Run, word: str) -> None:
    """The second file computes z - b, and the certificate has a rewrite that says so."""
    model = onnx.load(moved.after)
    node = next(node for node in model.graph.node if node.op_type == "Sub")
    old = f"{node.output[0]} = Sub ({node.input[0]}, {node.input[1]})"
    node.input[:] = reversed(node.input)
    onnx.save(model, moved.after)
    new = f"{node.output[0]} = Sub ({node.input[0]}, {node.input[1]})"
    text = "region (x, z) => (y) {{ {} }}"

    def lie(held: Certificate) -> None:
        region = {
            "before": text.format(old), "after": text.format(new), "constants": [{}, {}],
            "borders": {}, "outputs": [],
        }  # fmt: skip
        held["rewrites"].append(
            {**held["rewrites"][0], "number": 99, "proved": word, "region": region, "pass": "lie"}
        )

    held = changed(moved, lie)
    last = moved.checked(held)[-1]
    assert last.proof is not None
    assert not last.proof.is_proved
    assert moved.command(held) == 4


def test_what_is_proved_over_the_reals_is_not_the_same_bits(tmp_path: Path) -> None:
    run = Run(tmp_path, FOLDED, 3)

    def claim(held: Certificate) -> None:
        for each in held["rewrites"]:
            each["proved"] = "bits"

    found = run.checked(changed(run, claim))
    assert [each for each in found if each.proof is not None and not each.proof.is_proved]


def test_a_rewrite_without_a_proof_and_a_region_cannot_be_checked(moved: Run) -> None:
    def take(held: Certificate) -> None:
        held["rewrites"][-1] |= {"proved": "interface", "region": None}

    with pytest.raises(Unproved, match="has no region"):
        moved.checked(changed(moved, take))


# --- files and regions that do not go together ----------------------------------------------------


def _function(name: str, op_type: str) -> onnx.FunctionProto:
    node = onnx.helper.make_node(op_type, ["p"], ["q"])
    opsets = [onnx.helper.make_opsetid("", 21)]
    return onnx.helper.make_function("local", name, ["p"], ["q"], [node], opsets)


@pytest.mark.parametrize(
    ("change", "because"),
    [
        (
            lambda made: made.graph.input.add(name="k").type.tensor_type.shape.Clear(),
            "the inputs of the two models differ",
        ),
        (
            lambda made: made.graph.output.append(
                onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [4])
            ),
            "the outputs of the two models differ",
        ),
        (
            lambda made: setattr(made.opset_import[0], "version", 20),
            "the models import other opsets of ai.onnx",
        ),
        (
            lambda made: setattr(made.opset_import[1], "version", 2),
            "the models import other opsets of own",
        ),
        (
            lambda made: made.functions[0].CopyFrom(_function("F", "Abs")),
            "the local function F differs",
        ),
        (lambda made: made.functions.append(_function("G", "Abs")), ""),
        (lambda made: made.functions.pop(), ""),
    ],
)
def test_the_frames_of_both_files_are_one(
    moved: Run, change: Callable[[onnx.ModelProto], object], because: str
) -> None:
    for path in (moved.before, moved.after):
        made = onnx.load(path)
        made.opset_import.add(domain="own", version=1)
        made.functions.append(_function("F", "Neg"))
        if path == moved.after:
            change(made)
        for info in made.graph.input:
            info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
        onnx.save(made, path)
    if because:
        with pytest.raises(Tampered, match=because):
            moved.checked()
    else:
        assert moved.checked()


@pytest.mark.parametrize(
    ("side", "old", "new", "because"),
    [
        ("after", "Relu (c)", "Relu (nowhere)", "reads nowhere, which is not there"),
        ("after", "   y = Relu (c)", "   c = Relu (c)\n   y = Neg (c)", "makes a value that is"),
        ("after", "   y = Relu (c)", "   z = Relu (c)\n   y = Neg (z)", "makes a value that is"),
        ("after", "   y = Relu (c)", "   k = Relu (c)\n   k = Neg (c)\n   y = Neg (k)",
         "makes a value that is"),
        ("after", "   y = Relu (c)\n", "", "rewrite #1"),
        ("before", "Identity (d)", "Identity (c)", "begins with a node that is not there"),
    ],
)  # fmt: skip
def test_a_region_fits_what_is_there(
    moved: Run, side: str, old: str, new: str, because: str
) -> None:
    def edit(held: Certificate) -> None:
        region = regions(held)[0]
        assert old in region[side]
        region[side] = region[side].replace(old, new)

    with pytest.raises(Tampered, match=because):
        moved.checked(changed(moved, edit))


def test_a_region_begins_with_the_constants_that_are_there(moved: Run) -> None:
    for at, name in ((1, "s"), (2, "one")):

        def edit(held: Certificate, at: int = at, name: str = name) -> None:
            regions(held)[at]["constants"][0][name] = "0" * 32

        with pytest.raises(Tampered, match=f"begins with another constant {name}"):
            moved.checked(changed(moved, edit))

    def invent(held: Certificate) -> None:
        regions(held)[1]["constants"][0]["nowhere"] = "0" * 32

    with pytest.raises(Tampered, match="begins with another constant nowhere"):
        moved.checked(changed(moved, invent))


def test_a_constant_that_nodes_compute_keeps_its_rank() -> None:
    for text, shape in (("float k = {2}", ()), ("float[2] k = {2, 3}", (2,))):
        part = GraphPart.of(
            parse(f"(float[2] x) => (float[2] y) <{text}> {{ c = Neg(k)  y = Add(x, c) }}")
        )
        replay: Any = SimpleNamespace(_now=part, _unknown=set())
        found = CertificateReplay._folded(replay, "c", [0])
        assert found is not None
        assert found.shape == shape
        replay._unknown = {"k"}
        assert CertificateReplay._folded(replay, "c", [0]) is None


def test_what_nodes_compute_of_no_constants_is_no_constant() -> None:
    part = GraphPart.of(
        parse("""(float[2] x) => (float[2] y) {
            a = Neg(x)  b = RandomNormal<shape = [2]>()  c = Add(a, b)  y = Neg(c) }""")
    )
    replay: Any = SimpleNamespace(_now=part, _unknown=set())
    for name, nodes in (("a", [0]), ("b", [1]), ("c", [0, 1, 2]), ("nowhere", [1])):
        assert CertificateReplay._folded(replay, name, nodes) is None, name


def test_a_new_constant_is_one_of_its_digest_or_unknown() -> None:
    one, two = (Stored(None, np.array([number], np.float32)) for number in (1, 2))
    text = "(float[1] x) => (float[1] y) {} {{ y = Neg(x) }}"
    none, held = (GraphPart.of(parse(text.format(each))) for each in ("", "<float[1] c = {1}>"))
    wanted = digest_of(one)
    for now, after, given, folded, expected in (
        (held, none, {}, None, [1]),
        (none, held, {}, None, [1]),
        (none, none, {wanted: one}, None, [1]),
        (none, none, {wanted: two}, one, None),
        (none, none, {}, one, [1]),
        (none, none, {}, two, None),
        (none, none, {}, None, None),
    ):
        replay: Any = SimpleNamespace(
            _now=now, _after=after, _given=given, _unknown={"c", "other"},
            _constant=partial(CertificateReplay._constant, cast("Any", None)),
            _folded=lambda _, __, it=folded: it,
        )  # fmt: skip
        region = {"constants": [{}, {"c": wanted}]}
        made = CertificateReplay._with_values(replay, region, [])
        assert [*made] == ["c"]
        assert made["c"].numpy().tolist() == (expected or [])
        assert replay._unknown == ({"other"} if expected else {"c", "other"})


def test_the_constants_that_are_read_are_those_of_the_second_model() -> None:
    text = "(float[1] x) => (float[1] y) {} {{ y = Mul(x, c) }}"
    sides = [
        GraphPart.of(parse(text.format(each)))
        for each in ("<float[1] c = {1}>", "<float[1] c = {2}>", "<float[1] d = {1}>")
    ]
    for now, is_same in zip(sides, (True, False, False), strict=True):
        replay: Any = SimpleNamespace(
            _now=now,
            _after=sides[0],
            _constant=partial(CertificateReplay._constant, cast("Any", None)),
        )
        if is_same:
            CertificateReplay._compare(replay)
            continue
        with pytest.raises(Tampered, match="the rewrites end in another constant c"):
            CertificateReplay._compare(replay)


def test_a_value_that_is_read_outside_is_not_taken_away() -> None:
    head = "(float[2] x, int64[1] k) => (float[?] y)"
    before = GraphPart.of(parse(f"{head} {{ , i = TopK(x, k)  y = Cast<to = 1>(i) }}"))
    for text, lost in (
        ("y = Cast<to = 1>(i)", "i"),
        (", i = TopK(x, k)  y = Cast<to = 1>(i)", ""),
        ("y = Neg(x)", ""),
        ("y = Clip(x, , x)", ""),  # which reads no value by the name ""
    ):
        after = GraphPart.of(parse(f"{head} {{ {text} }}"))
        assert _lost((before, after), (frozenset({0}), frozenset())) == lost, text
