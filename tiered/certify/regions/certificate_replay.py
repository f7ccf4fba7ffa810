"""A certificate checked again: its rewrites lead from one file to the other, and each is proved.

Nothing in the certificate is believed. A rewrite says which nodes go and which come; the nodes
that go must be there. Borders, results and types of values are found again, and the
checker proves that it is the same. At the end the nodes and constants must be those of the second
file. So a certificate that was changed either fails here, or is another proof of the same claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx

from tiered.certify.checker import Checker, Proof
from tiered.certify.domains.bits import RULES, Bits
from tiered.certify.evaluation.call import constant
from tiered.certify.evaluation.evaluate import NameScope, ProofSetting
from tiered.certify.evaluation.values import Unproved
from tiered.certify.problem import Problem
from tiered.certify.regions.problems import KnownSizes, problem_of, side_of
from tiered.certify.regions.region_text import content_of, digest_of, line_of, nodes_of, unpacked
from tiered.certify.regions.replayed_types import TypesOfValues
from tiered.graph import Model
from tiered.graph.core.tensor import Tensor as Stored
from tiered.verify.changed_region import Inside, changed_nodes, pieces, region_of
from tiered.verify.live_extract import part_of
from tiered.verify.part_extraction import GraphPart

WORDS: Final = ("bits", "reals", "run", "unproved", "refuted", "interface")
"""What a certificate says of a rewrite, the strongest first."""


class Tampered(Exception):
    """A certificate that is none of the two models; the message says where."""


@dataclass(frozen=True)
class Checked:
    """Rewrites that were checked together: one, or some whose constants are in neither file.

    Attributes:
        numbers: of the rewrites.
        name: of the pass of the last one.
        word: the weakest word that the certificate has for them.
        proof: of the region; None where nothing that is read changed.
        problem: that region.
    """

    numbers: tuple[int, ...]
    name: str
    word: str
    proof: Proof | None
    problem: Problem | None = None


@dataclass
class _Open:
    """Rewrites that are not proved yet, as constants between them are unknown."""

    start: GraphPart
    numbers: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    name: str = ""


class CertificateReplay:
    """Two models, and the model that rewrites of a certificate make of the first one."""

    def __init__(self, before: Model, after: Model, certificate: Mapping[str, Any]) -> None:
        self._after = part_of(after)
        self._now = part_of(before)
        self._rewrites = _rewrites_of(certificate)
        # Any values would do between the two models: they are part of the proof, not of the claim.
        self._given = _constants_of(certificate)
        self._regions: dict[int, Mapping[str, Any]] = {}
        self._unknown: set[str] = set()
        self._lines: dict[str, set[int]] = {}
        self._next = 1 + max((*self._now.nodes, *self._after.nodes), default=0)
        self._final = {line_of(node): node for node in self._after.nodes.values()}
        self._types = TypesOfValues(before)
        self._checker = Checker()
        self._known = KnownSizes(self._now, self._types)
        self._open: _Open | None = None
        self._join_frames()
        for at, node in self._now.nodes.items():
            self._lines.setdefault(line_of(node), set()).add(at)

    def run(self) -> Iterator[Checked]:
        """Yield what is known of each rewrite.

        Raises:
            Tampered: the rewrites do not lead from the first model to the second.
            Unproved: a rewrite has no region that could be checked.
        """
        if [*self._now.inputs] != [*self._after.inputs]:
            raise Tampered("the inputs of the two models differ")
        if [*self._now.outputs] != [*self._after.outputs]:
            raise Tampered("the outputs of the two models differ")
        for rewrite in self._rewrites:
            yield from self._step(rewrite)
        if self._open is not None:
            yield from self._close()
        self._compare()

    # --- rewrites ------------------------------------------------------------------------------

    def _step(self, rewrite: Mapping[str, Any]) -> Iterator[Checked]:
        number, word = rewrite["number"], rewrite["proved"]
        region = self._region(rewrite)
        if region is None:
            if word not in ("bits", "reals"):
                raise Unproved(f"rewrite #{number} has no region: {rewrite.get('reason', word)}")
            yield Checked((number,), rewrite["pass"], word, None)
            return
        before = self._now.copy()
        before.frame = self._now.frame
        inside, weights = self._apply(number, region)
        sides = before, self._now
        self._types.follow(sides, inside)
        if self._unknown & self._constants_of(sides, inside):
            self._open = self._open or _Open(before)
        if self._open is not None:
            self._open.numbers.append(number)
            self._open.words.append(word)
            self._open.name = rewrite["pass"]
            if not self._unknown & self._live_constants():
                yield from self._close()
            return
        yield self._proved((number,), rewrite["pass"], word, sides, inside, weights)

    def _region(self, rewrite: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the region of a rewrite, which may be that of an earlier one."""
        found: Mapping[str, Any] | str | None = rewrite["region"]
        number: int = rewrite["number"]
        if isinstance(found, str):
            digits = found.removeprefix("#")
            first = int(digits) if digits.isdecimal() else -1
            if first not in self._regions:
                raise Tampered(f"rewrite #{number} has the region of {found}, which has none")
            found = self._regions[first]
        if found is not None:
            self._regions.setdefault(number, found)
        return found

    def _apply(self, number: int, region: Mapping[str, Any]) -> tuple[Inside, set[str]]:
        """Take the nodes of a region out, and put the others in."""
        removed: list[int] = []
        for node in self._parsed(number, region["before"]):
            line = line_of(node)
            places = self._lines.get(line, set()).difference(removed)
            if not places:
                raise Tampered(f"rewrite #{number} begins with a node that is not there: {line}")
            removed.append(min(places))
        for name, digest in region["constants"][0].items():
            held = self._constant(self._now, name)
            if name not in self._unknown and (held is None or digest_of(held) != digest):
                raise Tampered(f"rewrite #{number} begins with another constant {name}")
        old = {name: self._now.weights.get(name) for name in region["constants"][1]}
        made = self._with_values(region, removed)
        nodes = self._parsed(number, region["after"])
        added = {self._next + at: node for at, node in enumerate(nodes)}
        added = {at: self._final.get(line_of(node), node) for at, node in added.items()}
        self._next += len(added)
        for at in removed:
            self._lines[line_of(self._now.nodes[at])].discard(at)
        self._check_new(number, added, removed)
        self._now.weights.update(made)
        self._now.exchange(removed, added)
        for at, node in added.items():
            self._lines.setdefault(line_of(node), set()).add(at)
        self._check_reads(number, added)
        weights = {name for name in made if made[name] is not old[name]}
        return (frozenset(removed), frozenset(added)), weights

    def _parsed(self, number: int, text: str) -> Sequence[onnx.NodeProto]:
        try:
            return nodes_of(text)
        except ValueError as error:
            raise Tampered(f"rewrite #{number}: {error}") from error

    def _check_new(
        self, number: int, added: Mapping[int, onnx.NodeProto], removed: Sequence[int]
    ) -> None:
        """Check that each new value is one: no input, and of no node that stays."""
        made = [name for node in added.values() for name in node.output if name]
        free = {None, *removed}
        there = (
            name in self._now.inputs or self._now.producer.get(name) not in free for name in made
        )
        if len({*made}) < len(made) or any(there):
            raise Tampered(f"rewrite #{number} makes a value that is there")

    def _check_reads(self, number: int, added: Mapping[int, onnx.NodeProto]) -> None:
        """Check that what new nodes read is there."""
        for at in added:
            for name in self._now.reads[at]:
                if not self._now.has(name):
                    raise Tampered(f"rewrite #{number} reads {name}, which is not there")

    def _with_values(self, region: Mapping[str, Any], removed: Sequence[int]) -> dict[str, Stored]:
        """Return the new constants of a region: of a file, or computed by the nodes that go."""
        made: dict[str, Stored] = {}
        for name, digest in region["constants"][1].items():
            self._unknown.discard(name)
            for part in (self._now, self._after):
                held = self._constant(part, name)
                if held is not None and digest_of(held) == digest:
                    made[name] = held
                    break
            else:
                held = self._given.get(digest) or self._folded(name, removed)
                if held is None or digest_of(held) != digest:
                    self._unknown.add(name)
                    held = Stored(None, np.zeros(0, np.float32))
                made[name] = held
        return made

    def _folded(self, name: str, removed: Sequence[int]) -> Stored | None:
        """Return a value that nodes compute of constants; None if they do not."""
        side = side_of(self._now, removed, [])
        opsets = {each.domain: each.version for each in self._now.frame.opset_import}
        scope = NameScope(ProofSetting(Bits(), RULES, opsets, side.functions, trusts_runtime=True))
        try:
            for each, stored in side.constants.items():
                if each in self._unknown:
                    return None
                scope.values[each] = constant(Bits(), stored.dense(), stored.dtype)
            scope.run(side.nodes)
            found = scope.find(name)
        except Unproved:
            return None
        if found is None or found.known is None:
            return None
        return Stored(None, np.asarray(found.known, order="C"))

    # --- proofs --------------------------------------------------------------------------------

    def _proved(
        self, numbers: tuple[int, ...], name: str, word: str, sides: tuple[GraphPart, GraphPart],
        inside: Inside, weights: set[str],
    ) -> Checked:  # fmt: skip
        region = region_of(sides, inside, weights)
        lost = _lost(sides, inside)
        if lost:
            raise Tampered(f"rewrite #{numbers[-1]} takes away {lost}, which is read")
        if region is None:
            return Checked(numbers, name, word, None)
        self._known.part = sides[0]
        try:
            problem = problem_of(region, self._types, self._known)
        except Unproved as error:
            return Checked(numbers, name, word, Proof("", reason=str(error)))
        proof = self._checker.prove(problem, bits_only=word == "bits")
        return Checked(numbers, name, word, proof, problem)

    def _close(self) -> Iterator[Checked]:
        """Prove what several rewrites made of the model together, piece by piece."""
        held = self._open
        assert held is not None
        self._open = None
        word = max(held.words, key=WORDS.index)
        sides = held.start, self._now
        numbers = tuple(held.numbers)
        for inside in pieces(sides, changed_nodes(sides)):
            yield self._proved(numbers, held.name, word, sides, inside, {*self._now.weights})

    def _constants_of(self, sides: tuple[GraphPart, GraphPart], inside: Inside) -> set[str]:
        return {
            name
            for part, nodes in zip(sides, inside, strict=True)
            for at in nodes
            for name in part.reads[at]
        }

    def _live_constants(self) -> set[str]:
        return {name for reads in self._now.reads.values() for name in reads}

    # --- the two files -------------------------------------------------------------------------

    def _join_frames(self) -> None:
        """Give the model the opsets and local functions of both.

        Raises:
            Tampered: they differ.
        """
        frame, other = self._now.frame, self._after.frame
        versions = {each.domain: each.version for each in frame.opset_import}
        for each in other.opset_import:
            if versions.setdefault(each.domain, each.version) != each.version:
                raise Tampered(f"the models import other opsets of {each.domain or 'ai.onnx'}")
        known = {(f.domain, f.name, f.overload): f for f in frame.functions}
        joined = onnx.ModelProto()
        joined.CopyFrom(frame)
        del joined.opset_import[:]
        for domain, version in versions.items():
            joined.opset_import.add(domain=domain, version=version)
        for function in other.functions:
            key = function.domain, function.name, function.overload
            if key not in known:
                joined.functions.append(function)
            elif known[key] != function:
                raise Tampered(f"the local function {function.name} differs")
        self._now.frame = joined

    def _constant(self, part: GraphPart, name: str) -> Stored | None:
        weight = part.weights.get(name)
        if weight is None:
            return None
        return weight if isinstance(weight, Stored) else Stored(weight)

    def _compare(self) -> None:
        """Check that the model is the second one now, as far as outputs need it.

        Raises:
            Tampered: it is not.
        """
        sides = self._now, self._after
        live = [part.needed(part.outputs) for part in sides]
        made, wanted = (
            sorted(content_of(part.nodes[at]) for at in nodes)
            for part, nodes in zip(sides, live, strict=True)
        )
        if made != wanted:
            raise Tampered("the rewrites do not end in the second model")
        read = {name for at in live[1] for name in self._after.reads[at]} | {*self._after.outputs}
        for name in sorted(read & self._after.weights.keys()):
            one, other_ = (self._constant(part, name) for part in sides)
            if one is None or other_ is None or one.key() != other_.key():
                raise Tampered(f"the rewrites end in another constant {name}")


def _lost(sides: tuple[GraphPart, GraphPart], inside: Inside) -> str:
    """Return a value that is read outside, and that is no longer computed."""
    before, after = sides
    for at in sorted(inside[0]):
        for name in before.nodes[at].output:
            is_read = bool(after.consumers.get(name)) or name in after.outputs
            if name and is_read and not after.has(name):
                return name
    return ""


def _constants_of(certificate: Mapping[str, Any]) -> Mapping[str, Stored]:
    """Return the constants that a certificate keeps, by digest.

    Raises:
        Tampered: one has another digest.
    """
    held = certificate.get("constants", {})
    if not _has_texts(held):
        raise Tampered("its constants are not texts by digest")
    found = {}
    for digest, text in held.items():
        try:
            found[digest] = unpacked(text)
        except ValueError as error:
            raise Tampered(f"constant {digest} is none: {error}") from error
        if digest_of(found[digest]) != digest:
            raise Tampered(f"constant {digest} has another digest")
    return found


def _rewrites_of(certificate: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the rewrites of a certificate in order.

    Raises:
        Tampered: they have not the fields that rewrites have, or other counts than it says.
    """
    rewrites = certificate.get("rewrites")
    if not isinstance(rewrites, list):
        raise Tampered("it has no list of rewrites")
    counts: dict[str, int] = {}
    numbers = set[int]()
    for place, each in enumerate(rewrites, 1):
        if not isinstance(each, Mapping) or not isinstance(each.get("number"), int):
            raise Tampered(f"rewrite {place} in its list has no number")
        number, word = each["number"], each.get("proved")
        if word not in WORDS:
            raise Tampered(f"rewrite #{number} is {word}")
        if number in numbers:
            raise Tampered(f"rewrite #{number} is there twice")
        if number:  # 0 is no rewrite's, but that of all edits beside them
            numbers.add(number)
        if not isinstance(each.get("pass"), str) or not _is_region(each.get("region", 0)):
            raise Tampered(f"rewrite #{number} has not the pass and region of a rewrite")
        counts[word] = counts.get(word, 0) + 1
    if counts != certificate.get("counts"):
        raise Tampered("its counts are not those of its rewrites")
    return rewrites


def _is_region(region: object) -> bool:
    """Return whether an entry has the fields of a region, is the number of one, or null."""
    if region is None or isinstance(region, str):
        return True
    if not isinstance(region, Mapping):
        return False
    constants = region.get("constants")
    sides = isinstance(constants, list) and len(constants) == 2 and all(map(_has_texts, constants))
    return sides and all(isinstance(region.get(text), str) for text in ("before", "after"))


def _has_texts(entries: object) -> bool:
    """Return whether an object maps names to texts."""
    return isinstance(entries, Mapping) and all(isinstance(text, str) for text in entries.values())
