"""The decisions that are offered: which, in which order."""

from types import SimpleNamespace
from typing import Any, Literal

from tiered.extensions.tuning.blocks import blocks_of
from tiered.extensions.tuning.choices import (
    LOWERING,
    NOT_TRIED,
    Blocks,
    Probe,
    _by_block,
    _disabled,
    _options,
    choices_of,
)
from tiered.extensions.tuning.model_forms import Choice, ModelForm
from tiered.extensions.tuning.output_tolerance import parse_budget
from tiered.graph import Model
from tiered.passes.interface.registry import registry
from tiered.pipeline.instruments import Trace
from tiered.pipeline.optimize import optimize_model
from tiered.support.errors import UsageError
from tiered.support.numerics import Numerics
from tiered.testing import parse

NEGS = "(float[2,4] x, float[2,4] z) => (float[2,4] y) { a = Sub(x, z)  y = Sub(a, z) }"


def offered(text: str, form: ModelForm, budget: str = "reassociating") -> list[str]:
    trace, model = Trace(), parse(text)
    result = optimize_model(model, **form.settings, instruments=[trace])
    probe = Probe(lambda: Model.from_proto(model), form.backend)
    found = choices_of(form, result, blocks_of(trace), [probe], parse_budget(budget))
    return [choice.text for choice in found]


def test_passes_that_are_left_aside_exist() -> None:
    names = {*registry.names()}
    assert names >= NOT_TRIED
    assert all(any(name.startswith(start) for name in names) for start in LOWERING)


def test_a_file_as_it_is_offers_nothing() -> None:
    model = parse(NEGS)
    result = optimize_model(model, opt_level=3)
    assert [*choices_of(ModelForm(None), result, {}, [], parse_budget("exact"))] == []


def test_passes_that_lower_come_last() -> None:
    found = offered(NEGS, ModelForm(3))
    assert found[-1].startswith("with replace_sub_with_")


def test_the_budget_decides_what_is_offered() -> None:
    text = "(float[2,4] x) => (float[2,4] y) { y = Exp(x) }"
    assert "with float_to_half" not in offered(text, ModelForm(3, "onnxruntime_cpu"))
    assert "with float_to_half" in offered(text, ModelForm(3, "onnxruntime_cpu"), "cosine>=0.9")


def test_what_is_decided_already_is_not_offered_again() -> None:
    name = "replace_sub_with_add"
    assert f"with {name}" in offered(NEGS, ModelForm(3))
    assert f"with {name}" not in offered(NEGS, ModelForm(3, required=(name,)))
    assert f"with {name}" not in offered(NEGS, ModelForm(3, disabled=(name,)))


class Changing:
    """A pass with options, as far as decisions ask for it."""

    def __init__(self, name: str, level: int | None = 3, **options: Any) -> None:
        self.name, self.options = name, options
        kinds: dict[str, Any] = {"mode": Literal["a", "b", "c"], "size": int}
        self.info = SimpleNamespace(
            opt_level=level, is_node_wise=name.endswith("node"), numerics=Numerics.EXACT,
            options=[
                SimpleNamespace(name=each, type=kinds.get(each, bool)) for each in options
                if each != "desired_layouts"
            ],
        )  # fmt: skip

    def with_options(self, **options: Any) -> "Changing":
        if options.get("mode") == "c":
            raise UsageError("no c")
        other = Changing(self.name, self.info.opt_level, **{**self.options, **options})
        if options.get("loose"):
            other.info.numerics = Numerics.LOSSY
        return other


class Answers:
    """A probe that knows which settings change its model."""

    def __init__(self, **blocks: str) -> None:
        self.known = blocks

    def blocks(self, pass_: Any) -> tuple[str, ...] | None:
        found = self.known.get(pass_.name)
        return None if found is None else tuple(found)


def steps_of(*passes: Changing, decision: bool = True) -> list[Any]:
    return [SimpleNamespace(pass_=each, decision=decision) for each in passes]


def lines(choices: Any) -> list[str]:
    """Return decisions as lines: what they say, set and count, and their blocks."""
    return [
        f"{each.text}: {' '.join((*each.disabled, *each.edits))} {each.count} "
        f"{''.join(each.blocks)}"
        for each in choices
    ]


def test_a_fusion_may_be_left_out_at_a_kind_of_blocks() -> None:
    fusions = [Choice(f"without {name}", disabled=(name,)) for name in ("a_node", "b", "c_node")]
    many = tuple(f"n{at}" for at in range(201))
    kinds = {"one": ("n",), "two": ("n1", "n2", "n1"), "none": ("n", ""), "many": many}
    others = {name: (f"n{name}",) for name in "zyxw"} | {"most": many[1:]}
    steps = steps_of(*map(Changing, ("a_node", "b", "c_node", "d_node")))
    cases: tuple[tuple[Blocks, list[str]], ...] = (
        ({"a_node": {"one": ("n",)}, "b": kinds, "d_node": kinds}, []),
        ({"a_node": kinds, "c_node": others}, [
            "without a_node at n1 and 1 equal block: a_node@'n1|n2' 2 two",
            "without a_node at n: a_node@'n' 1 one",
            f"without c_node at n1 and 199 equal blocks: c_node@'{'|'.join(many[1:])}' 200 most",
            "without c_node at nw: c_node@'nw' 1 w", "without c_node at nx: c_node@'nx' 1 x",
            "without c_node at ny: c_node@'ny' 1 y",
        ]),
    )  # fmt: skip
    for blocks, expected in cases:
        assert lines(_by_block(steps, fusions, blocks)) == expected


def test_passes_that_changed_the_model_may_be_left_out() -> None:
    ran = [("fuse", True, 3), ("fold", True, 0), ("idle", False, 2), ("fuse", True, 2),
           ("open", True, 1), ("asked", True, 1), ("zero", True, 1), ("late", True, 9)]  # fmt: skip
    results = [
        SimpleNamespace(name=name, changed=changed, rewrites=count) for name, changed, count in ran
    ]
    report = SimpleNamespace(ran=lambda: results)
    result: Any = SimpleNamespace(context=SimpleNamespace(report=report))
    levels = {"fuse": 3, "fold": 2, "idle": 3, "zero": 0, "late": 4}
    steps = steps_of(*(Changing(name, level) for name, level in levels.items()))
    steps += steps_of(Changing("open", None), Changing("asked", None), decision=False)
    fusions, others = _disabled(
        ModelForm(3, required=("asked",)), steps, result, {"fuse": {"k": ("n",), "l": ("m",)}}
    )
    assert lines(fusions) == [
        "without late: late 9 ", "without fuse: fuse 5 kl", "without asked: asked 1 "
    ]  # fmt: skip
    assert lines(others) == ["without fold: fold 1 "]


def test_options_of_few_values_are_set_otherwise() -> None:
    steps = steps_of(
        Changing("fuse", mode="a", flag=True, size=4, annotate=False, loose=False),
        Changing("fuse", mode="b"),
        Changing("idle", flag=True),
        Changing("left", flag=True),
        Changing("low", 0, flag=True),
        Changing("asked", None, flag=True),
        Changing("convert_layout", desired_layouts={"Conv": "NCHW"}, flag=False),
    )
    steps += steps_of(Changing("open", flag=True), decision=False)
    probes: list[Any] = [Answers(fuse="p"), Answers(fuse="q", convert_layout="r", open="s")]
    budget = parse_budget("reassociating")
    assert lines(_options(steps, {"without left"}, probes, budget)) == [
        "fuse with mode=b: set fuse{mode=b} 0 p",
        "fuse with flag=false: set fuse{flag=false} 0 p",
        "left with flag=false: set left{flag=false} 0 ",
        "Conv in NHWC: set convert_layout{desired_layouts={Conv: NHWC}} 0 r",
        "convert_layout with flag=true: set convert_layout{flag=true} 0 r",
    ]
