"""The methods of verification: those that can be asked for, and a chain of objects that apply one.

The first method that applies to a case checks it; `instrument.METHODS` is the chain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from tiered.graph.queries.narrow_floats import narrow_floats
from tiered.runtime.compare.outputs import left_out
from tiered.support.amounts import counted
from tiered.support.errors import UsageError, did_you_mean
from tiered.support.numerics import Promise, loosest
from tiered.targets import Verification
from tiered.verify.changed_region import PREFIX
from tiered.verify.pass_promises import held_to

if TYPE_CHECKING:
    from tiered.graph import Model, RewriteRecord
    from tiered.passes.interface.pass_info import PassInfo
    from tiered.runtime import Worker
    from tiered.runtime.compare.outputs import Comparison
    from tiered.runtime.inputs.samples import Sample, Wanted
    from tiered.verify.baseline import Baseline, RecordedBaseline

    AnyBaseline = Baseline | RecordedBaseline

Judge = Literal["onnxruntime", "onnx.reference"]

How = Literal["each", "region", "final", "structure", "off"]


def how_of(given: bool | str | None) -> How:
    """Return the method that was asked for; True means "each".

    Raises:
        UsageError: there is no such method.
    """
    if given is None or isinstance(given, bool):
        return "each" if given else "off"
    if given not in get_args(How):
        raise UsageError(
            f"verify takes {', '.join(get_args(How))}, not {given!r}"
            f"{did_you_mean(given, get_args(How))}"
        )
    return given  # type: ignore[return-value]  # one of the names, as was just checked


@dataclass(frozen=True)
class VerificationMethod:
    """How one pass was verified.

    Attributes:
        pass_name: the pass; "" for all passes together.
        by: "model" (the whole model ran), "region" (the changed nodes ran, before and after),
            "sameness" (no edit changed a computation) or "nothing" (nothing could be compared).
        nodes: how many nodes ran, for "region".
        inputs: "given", "generated", or for "region" also "recorded" in a run of the model.
        judge: who compared: "onnx.reference" where it also ran the changed nodes of a model with
            16-bit floats, which onnxruntime computes in 32 bits.
        why: the reason of "nothing".
        left_out: the outputs that could not be compared, each with the reason.
    """

    pass_name: str
    by: Literal["model", "region", "sameness", "nothing"]
    nodes: int = 0
    inputs: Literal["", "given", "generated", "recorded"] = ""
    judge: Judge = "onnxruntime"
    why: str = ""
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = self.pass_name or "all passes"
        match self.by:
            case "model":
                also = ", and the changed nodes on onnx.reference"
                ran = f"{name}: the model ran on {self.inputs} inputs"
                left = f"; {', '.join(self.left_out)}" if self.left_out else ""
                return f"{ran}{also if self.judge == 'onnx.reference' else ''}{left}"
            case "region":
                ran = counted(self.nodes, "node")
                return f"{name}: {ran} ran before and after, on {self.inputs} values"
            case "sameness":
                return f"{name}: nothing that is computed changed"
        return f"{name}: {self.why or 'nothing ran'}"


UNLIMITED = Verification()

Computed = tuple[tuple[str, Any], ...]
"""Names of values, each with the narrower dtype that it is computed from."""


def computed_in(model: Model) -> Computed:
    """Return the values that a model computes from narrower floats, each with the dtype.

    They are there by their names at the borders of regions too.
    """
    found = narrow_floats(model).items()
    return tuple((at + name, dtype.numpy) for name, dtype in found for at in ("", PREFIX))


@dataclass(frozen=True)
class VerifiedPasses:
    """The passes to verify: one with its rewrites, or all of a run."""

    infos: tuple[PassInfo, ...]
    rewrites: tuple[RewriteRecord, ...] = ()
    limits: Verification = UNLIMITED
    """How far results may be from the original's on the target."""
    computed: Computed = ()
    """The dtypes of values that the original computes from narrower floats, by name."""

    @property
    def name(self) -> str:
        """The name of the one pass; "" of several."""
        return self.infos[0].name if len(self.infos) == 1 else ""

    @property
    def promise(self) -> Promise:
        """What they promise together, within the limits of the target."""
        promise = held_to(loosest([info.promise for info in self.infos]), self.limits)
        return promise.changed(computed=self.computed)

    @property
    def changes_interface(self) -> bool:
        """Whether one of them declares so."""
        return any(info.changes_interface for info in self.infos)


@dataclass
class Case:
    """Passes to verify, and the evidence that a method finds.

    Attributes:
        model: the model after the passes.
        before: the baseline: the model before them.
        subject: the passes.
        wanted: the samples to run on.
        worker: the process that runs models.
        budget: the bytes of weights that may be in memory at once.
        comparisons: of the outputs, one for each sample.
        samples: the samples of `comparisons`.
        remarks: remarks for the report that are no failure.
        methods: how the passes were verified.
        has_run: whether anything ran.
    """

    model: Model
    before: AnyBaseline
    subject: VerifiedPasses
    wanted: Wanted
    worker: Worker
    budget: int
    comparisons: list[Comparison] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    methods: list[VerificationMethod] = field(default_factory=list)
    has_run: bool = False

    def verified(
        self,
        by: Literal["model", "region", "sameness", "nothing"],
        nodes: int = 0,
        inputs: Literal["", "given", "generated", "recorded"] = "",
        judge: Judge = "onnxruntime",
        why: str = "",
    ) -> None:
        """Record how the passes were verified."""
        names, name = left_out(self.comparisons), self.subject.name
        self.methods.append(VerificationMethod(name, by, nodes, inputs, judge, why, names))


class Method(Protocol):
    """One method of verification."""

    def applies(self, case: Case) -> bool:
        """Return whether the method can verify the case."""

    def check(self, case: Case) -> AnyBaseline | None:
        """Verify the case, and return the baseline of the next one; None to take a new one.

        Raises:
            VerificationError: a promise is broken, or the model does not run any more.
        """
