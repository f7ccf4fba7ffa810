"""Certify each rewrite rule of the default pipeline on generated instances: `make prove`.

    python -m tests.certify.prove --state build/prove.json --variants 12 --seed 0

The instances of a rule are the models that its own tests assert that it rewrites, and these with
one change or two: sizes 0 to 3, a rank more, other dtypes of a class, attributes and small
constants beside their values. Each pass runs alone, and a checker that knows no pass certifies each
rewrite: bit for bit for passes that promise it, else over the reals. A killed run goes on where it
stopped.

A rule is proved if all of its instances are. Those that are not are on the list
`unproved_rules.txt`, with a reason; the list only shrinks.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import cyclopts
import numpy as np
import onnx
from onnx import ModelProto, TensorProto, numpy_helper

from docs.site.examples import Example, rewrites_of
from tests.conformance.nested.examples import pipeline_passes, runs
from tiered import Model, PassContext, TieredError, get_pass
from tiered.certify import Certify
from tiered.passes import PassInfo
from tiered.passes.index import proofs
from tiered.support.numerics import Numerics
from tiered.support.whole_files import write_text

LIST: Final = Path(__file__).with_name("unproved_rules.txt")
TABLE: Final = Path(proofs.__file__)
MOST_LEVEL: Final = 3
SMALL: Final = 16
_DTYPES: Final = {
    TensorProto.FLOAT: (TensorProto.FLOAT16, TensorProto.DOUBLE),
    TensorProto.INT64: (TensorProto.INT32,),
}


_BEGIN: Final = "PROOFS: Final[dict[str, Proved]] = {\n"


class Outcome(NamedTuple):
    """What a rule's instances showed.

    Attributes:
        instances: how many the pass rewrote.
        proved: how many of them were proved in each rewrite.
        left: why others were not, and how many.
        refuted: the rewrites that a run refutes.
        words: how many rewrites were proved in which domain.
    """

    instances: int
    proved: int
    left: dict[str, int]
    refuted: list[str]
    words: dict[str, int]

    @property
    def is_proved(self) -> bool:
        return not self.left and not self.refuted


def rules() -> list[PassInfo]:
    """Return the rewriting passes of the default pipeline up to level 3."""
    return [
        info for info in pipeline_passes()
        if info.opt_level is not None and info.opt_level <= MOST_LEVEL
    ]  # fmt: skip


def listed() -> dict[str, str]:
    """Return the rules without a proof, each with its reason."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    pairs = (line.split(": ", 1) for line in lines if line and not line.startswith("#"))
    return dict(pairs)


# --- instances ------------------------------------------------------------------------------------


def instances(source: random.Random, example: Example, count: int) -> Iterator[ModelProto]:
    """Yield the model of an example, and valid ones with changes."""
    yield example.before
    changes = list(_changes(example.before))
    source.shuffle(changes)
    for change in changes[:count]:
        made = ModelProto()
        made.CopyFrom(example.before)
        change(made)
        if source.random() < 0.3:
            source.choice(changes)(made)
        if (valid := _valid(made)) is not None:
            yield valid


def _valid(model: ModelProto) -> ModelProto | None:
    """Return a model with the types of its outputs; None if it is none."""
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    try:
        made = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        for info in made.graph.output:
            if not info.type.tensor_type.elem_type:
                return None
        onnx.checker.check_model(made, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError):
        return None
    del made.graph.value_info[:]
    return made


def _changes(model: ModelProto) -> Iterator[Any]:
    graph = model.graph
    sizes = {
        dim.dim_value
        for info in graph.input
        for dim in info.type.tensor_type.shape.dim
        if dim.HasField("dim_value")
    }
    for old in sorted(sizes):
        for new in range(4):
            if new != old:
                yield lambda made, old=old, new=new: _resize(made, old, new)
    yield _with_rank
    for old, others in _DTYPES.items():
        for new in others:
            yield lambda made, old=old, new=new: _retype(made, old, new)
    for at, node in enumerate(graph.node):
        for attribute in node.attribute:
            for value in _beside(attribute):
                yield lambda made, at=at, name=attribute.name, value=value: _set(
                    made, at, name, value
                )
    for at, tensor in enumerate(graph.initializer):
        if numpy_helper.to_array(tensor).size <= SMALL and tensor.data_type != TensorProto.STRING:
            for change in (np.zeros_like, np.ones_like, np.negative, lambda a: a[::-1], _more):
                yield lambda made, at=at, change=change: _renumber(made, at, change)


def _more(array: Any) -> Any:
    return array + np.ones((), array.dtype)


def _resize(model: ModelProto, old: int, new: int) -> None:
    """Give all dims of a size another one, in weights and small integers as well."""
    for info in model.graph.input:
        for dim in info.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value == old:
                dim.dim_value = new
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if tensor.data_type == TensorProto.INT64:
            array = np.where(array == old, new, array)
        else:
            for axis in [axis for axis, size in enumerate(array.shape) if size == old and old]:
                array = np.take(array, np.arange(new) % old, axis)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _with_rank(model: ModelProto) -> None:
    """Give each input below rank 4 a leading dim of 2."""
    for info in model.graph.input:
        shape = info.type.tensor_type.shape
        if info.type.HasField("tensor_type") and len(shape.dim) < 4:
            dims = [onnx.TensorShapeProto.Dimension(dim_value=2), *shape.dim]
            del shape.dim[:]
            shape.dim.extend(dims)


def _retype(model: ModelProto, old: int, new: int) -> None:
    """Give inputs, outputs and constants of a dtype another one of its class."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(new)
    for info in (*model.graph.input, *model.graph.output):
        if info.type.tensor_type.elem_type == old:
            info.type.tensor_type.elem_type = new
    for tensor in model.graph.initializer:
        if tensor.data_type == old and old == TensorProto.FLOAT:
            with np.errstate(over="ignore"):
                array = numpy_helper.to_array(tensor).astype(dtype)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _beside(attribute: onnx.AttributeProto) -> Iterator[Any]:
    if attribute.name == "keepdims":
        yield 1 - attribute.i  # other values have no meaning
    elif attribute.type == onnx.AttributeProto.INT:
        yield from {0, 1, attribute.i - 1, attribute.i + 1} - {attribute.i}
    elif attribute.type == onnx.AttributeProto.INTS:
        values = list(attribute.ints)
        yield from (values[::-1], [value + 1 for value in values])
    elif attribute.type == onnx.AttributeProto.FLOAT:
        yield from (0.0, 1.0, -attribute.f, attribute.f / 2)


def _set(model: ModelProto, at: int, name: str, value: Any) -> None:
    for attribute in model.graph.node[at].attribute:
        if attribute.name == name:
            attribute.CopyFrom(onnx.helper.make_attribute(name, value))


def _renumber(model: ModelProto, at: int, change: Any) -> None:
    tensor = model.graph.initializer[at]
    array = numpy_helper.to_array(tensor)
    if array.dtype.kind in "fiu" and array.ndim:
        with np.errstate(all="ignore"):
            made = np.ascontiguousarray(change(array)).astype(array.dtype)
        tensor.CopyFrom(numpy_helper.from_array(made, tensor.name))


# --- verdicts -------------------------------------------------------------------------------------


def outcome(info: PassInfo, *, variants: int, seed: int) -> Outcome:
    """Run a pass on the instances of its rules, and certify each of its rewrites."""
    left, refuted, domains = Counter[str](), list[str](), Counter[str]()
    count = proved = 0
    for at, example in enumerate(rewrites_of(info)):
        if example.beside or example.storage is not None:
            continue
        source = random.Random(f"{seed} {info.name} {at}")
        for model in instances(source, example, variants):
            certify = Certify()
            context = PassContext.isolated(
                opt_level=4, backend=example.backend, instruments=[certify]
            )
            try:
                get_pass(info.name, **example.options).apply(Model.from_proto(model), context)
            except TieredError:
                continue  # it refuses the model by name
            words = certify.findings.rewrites
            if not words:
                continue
            wrong = [each for each in words if not each.is_proved and each.word != "interface"]
            is_exact = info.numerics is Numerics.EXACT and not example.options
            wrong += [each for each in words if is_exact and each.word == "reals"]
            if wrong and runs(model) is None:
                continue  # no model that the runtime takes
            count += 1
            proved += not wrong
            domains.update(each.word for each in words if each.is_proved)
            left.update(f"{each.reason or each.word}"[:100] for each in wrong)
            refuted += [str(each)[:300] for each in wrong if each.word == "refuted"]
    return Outcome(count, proved, dict(left), refuted, dict(domains))


def guarded(info: PassInfo, *, variants: int, seed: int) -> Outcome:
    """Return the outcome of a pass from a process of its own: models may crash the runtime.

    Where they do, other ones are tried, and at last the examples alone.
    """
    context = multiprocessing.get_context("fork")
    for turn, count in enumerate((variants, variants, variants // 2, 0)):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_sent, args=(sender, info, count, seed + 1_000 * turn))
        process.start()
        sender.close()
        try:
            found: Outcome = receiver.recv()
        except EOFError:
            process.join()
            continue
        process.join()
        return found
    return Outcome(0, 0, {"the runtime crashes": 1}, [], {})


def _sent(sender: Connection, info: PassInfo, variants: int, seed: int) -> None:
    sender.send(outcome(info, variants=variants, seed=seed))


def main(
    *,
    state: Path = Path("build/prove.json"),
    variants: int = 12,
    seed: int = 0,
    only: str = "",
    write: bool = False,
) -> None:
    """Certify all rules, print what was found, and compare it with the list.

    Args:
        state: a JSON file of what was found of each pass: a killed run goes on there.
        variants: how many changed models for each example.
        seed: of the changes.
        only: names of passes, separated by commas; all by default.
        write: the table of what `tiered docs PASS` says of proofs.
    """
    known: dict[str, Any] = {}
    if state.exists():
        known = json.loads(state.read_text(encoding="utf-8"))
    state.parent.mkdir(parents=True, exist_ok=True)
    reasons, wrong = listed(), 0
    shares = {2: [0, 0], MOST_LEVEL: [0, 0]}
    for info in rules():
        if only and info.name not in only.split(","):
            continue
        key = f"{info.name} {variants} {seed}"
        if key not in known:
            known[key] = guarded(info, variants=variants, seed=seed)
            state.write_text(json.dumps(known, indent=1), encoding="utf-8")
        found = Outcome(*known[key])
        assert info.opt_level is not None
        share = shares[2 if info.opt_level <= 2 else MOST_LEVEL]
        share[0] += found.is_proved
        share[1] += 1
        is_listed = info.name in reasons
        if not found.is_proved or is_listed:
            note = "" if is_listed != found.is_proved else " (the list says otherwise)"
            wrong += bool(found.refuted) or (not found.is_proved and not is_listed)
            print(f"{info.name}: {found.proved} of {found.instances} proved{note}")
            for reason, count in (*found.left.items(), *((each, 1) for each in found.refuted)):
                print(f"{count:>6}  {reason}")
            sys.stdout.flush()
    for level, (proved, total) in shares.items():
        print(f"levels to {level}: {proved} of {total} rules proved")
    counts = [Outcome(*each) for each in known.values()]
    print(f"{sum(c.proved for c in counts)} of {sum(c.instances for c in counts)} instances proved")
    if write:
        held = {info.name: known.get(f"{info.name} {variants} {seed}") for info in rules()}
        write_text(str(TABLE), table_of({k: Outcome(*each) for k, each in held.items() if each}))
    if wrong:
        sys.exit(1)


def table_of(found: Mapping[str, Outcome]) -> str:
    """Return the table of what was found of rules, as the text of a module; others stay in it."""
    reasons = listed()
    rows: dict[str, proofs.Proved] = {
        name: proofs.Proved(each.proved, each.instances, _domain(each), reasons.get(name, ""))
        for name, each in found.items()
    }
    kept = {info.name: proofs.PROOFS.get(info.name) for info in rules()}
    rows = {name: each for name, each in (kept | rows).items() if each is not None}
    head = TABLE.read_text(encoding="utf-8").partition(_BEGIN)[0]
    return f"{head}{_BEGIN}{''.join(_row(name, row) for name, row in sorted(rows.items()))}}}\n"


def _row(name: str, row: proofs.Proved) -> str:
    parts = f'{row.proved}, {row.instances}, "{row.domain}"'
    if not row.reason:
        return f'    "{name}": Proved({parts}),\n'
    return f'    "{name}": Proved(\n        {parts},\n        "{row.reason}",\n    ),\n'


def _domain(found: Outcome) -> Literal["bits", "reals"]:
    return "reals" if found.words.get("reals") else "bits"


if __name__ == "__main__":
    app = cyclopts.App()
    app.default(main)
    app()
