"""The checker: do two regions compute the same? Proved, or not and why.

It knows operators, not passes. Each side is evaluated with a term for each element. Equal terms of
all outputs, at all sizes that are tried, are a proof for every value of the inputs at those sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Self

import numpy as np

from tiered.certify.all_sizes import why_not_for_all
from tiered.certify.axioms import RUNTIME
from tiered.certify.definitions.contrib_definitions import BY_DEFINITION, REALS_AND_CONTRIB
from tiered.certify.domains.affine_elements import Affine
from tiered.certify.domains.bits import RULES, Bits
from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.call import Domain, EvaluatedCall, Results, constant
from tiered.certify.evaluation.evaluate import NameScope, ProofSetting
from tiered.certify.evaluation.values import (
    CheckedTensor,
    Misfit,
    TensorList,
    Unproved,
    class_of,
    numpy_dtype,
)
from tiered.certify.problem import Problem, Side
from tiered.certify.trial_sizes import TrialSizes
from tiered.graph.core.dtypes import float_info
from tiered.graph.core.types import TensorType

MOST_FITTED: Final = 128
"""Dims that get another size, as the first one does not fit, get no larger one."""
DomainName = Literal["bits", "reals"]


@dataclass(frozen=True)
class Proof:
    """What the checker found.

    Attributes:
        domain: the domain of the proof; "" if there is none.
        sizes: the sizes at which it holds; [{}] where all dims have sizes.
        axioms: the axioms that it used.
        reason: why there is no proof.
        differs: the output that differs, and the sizes at which it does, if one does.
        except_for: what differs at sizes of 0, where that is excused.
        bound: how far computed constants are from exact ones, in ulps; 0 without any.
        is_for_all: whether it holds for all sizes of dims that have none.
        needs_numbers: whether the numbers of all constants are part of it, also those of constants
            that could be unknowns.
        is_plain: whether no rule could use what a runtime grants.
    """

    domain: DomainName | Literal[""]
    sizes: Sequence[Mapping[str, int]] = ()
    axioms: frozenset[str] = frozenset()
    reason: str = ""
    differs: tuple[str, Mapping[str, int]] | None = None
    bound: float = 0.0
    except_for: str = ""
    is_for_all: bool = False
    needs_numbers: bool = False
    is_plain: bool = False

    @property
    def has_named_sizes(self) -> bool:
        """Whether sizes had to be tried."""
        return any(self.sizes)

    @property
    def is_proved(self) -> bool:
        return bool(self.domain)

    @property
    def word(self) -> Literal["bits", "reals"]:
        """The domain of a proof."""
        assert self.domain
        return self.domain

    @property
    def trusts_runtime(self) -> bool:
        """Whether it used an axiom that a runtime grants."""
        return not self.axioms.isdisjoint(RUNTIME)


@dataclass(frozen=True)
class ProofMethod:
    """One way to prove: a domain with its rules."""

    name: DomainName
    domain: Callable[[Problem], Domain]
    rules: dict[str, Callable[[EvaluatedCall], Results]]
    trusts_runtime: bool = False
    unrolls: bool = False

    def says_more(self, other: ProofMethod, problem: Problem) -> bool:
        """Return whether it may prove of a problem what another one does not."""
        if self.unrolls and not problem.has_loops:
            return False
        if self.trusts_runtime != other.trusts_runtime or self.unrolls != other.unrolls:
            return True
        return any(self.rules.get(op) is not other.rules.get(op) for op in problem.operators)


def _affine(problem: Problem) -> Affine:
    """Return the domain of reals, whose numbers are as coarse as the constants of a problem."""
    dtypes = {tensor.dtype for side in problem.sides for tensor in side.constants.values()}
    dtypes |= {border.dtype for border in problem.borders.values()}
    floats = [numpy_dtype(dtype) for dtype in dtypes if class_of(dtype) == "float"]
    return Affine(max((float(float_info(dtype).eps) for dtype in floats), default=2.0**-52))


METHODS: Final = (
    ProofMethod("bits", lambda _: Bits(), RULES, trusts_runtime=True),
    ProofMethod("bits", lambda _: Bits(), RULES),
    ProofMethod("bits", lambda _: Bits(), RULES, trusts_runtime=True, unrolls=True),
    ProofMethod("reals", _affine, REALS_AND_CONTRIB, trusts_runtime=True),
    ProofMethod("reals", _affine, BY_DEFINITION, trusts_runtime=True),
)
"""In the order in which they are tried; what trusts a runtime proves more, so it is first."""


class Illegal(Exception):
    """What was there before has no terms at some sizes."""


class Checker:
    """Proves problems, equal ones once."""

    def __init__(self, methods: Sequence[ProofMethod] = METHODS) -> None:
        self._methods = methods
        self._known: dict[Hashable, Proof] = {}

    def prove(
        self, problem: Problem, *, bits_only: bool = False, like: Proof | None = None
    ) -> Proof:
        """Return the proof in the first domain that has one; else the reason of the first.

        Where a shape is computed from integers outside of the region, these are tried at sizes.

        Args:
            problem: the problem.
            bits_only: whether a proof over the reals is none.
            like: the proof of a similar problem: its domain is tried first. If that needed the
                numbers of all constants, they have them here, too. Without it large constants are
                unknowns at first: a proof is then one for other numbers as well.
        """
        if like is not None and like.needs_numbers:
            proof = self._proof_of(problem, [frozenset()], like, bits_only=bits_only)
            if proof.is_proved:
                return replace(proof, needs_numbers=True)
        shared = problem.shared()
        abstracts = [shared, frozenset[str]()] if shared else [shared]
        proof = self._proof_of(problem, abstracts, like, bits_only=bits_only)
        if proof.is_proved or proof.differs:
            return proof
        for assuming in problem.assuming():
            found = self._proof_of(assuming, abstracts, like, bits_only=bits_only)
            if found.is_proved:
                return found
        return proof

    def _proof_of(
        self,
        problem: Problem,
        abstracts: Sequence[frozenset[str]],
        like: Proof | None,
        *,
        bits_only: bool,
    ) -> Proof:
        failed: Proof | None = None
        for methods in self._by_domain(like):
            if bits_only and methods[0].name != "bits":
                continue
            for abstract in abstracts:
                key = methods[0].name, problem.key(abstract)
                proof = self._known.get(key)
                if proof is None:
                    proof = _first(problem, abstract, methods)
                    if not problem.is_fitted_to_values:
                        self._known[key] = proof
                if proof.is_proved:
                    return replace(proof, needs_numbers=abstract != abstracts[0])
                if failed is None or (proof.differs and not failed.differs):
                    failed = proof
        assert failed is not None
        return failed

    def _by_domain(self, like: Proof | None) -> Sequence[Sequence[ProofMethod]]:
        """Return the methods of each domain together, those like that of a proof first."""
        groups = itertools.groupby(self._methods, key=lambda method: method.name)
        found = [tuple(methods) for _, methods in groups]
        if like is None:
            return found
        found.sort(key=lambda methods: methods[0].name != like.domain)
        return [
            sorted(methods, key=lambda method: like.is_plain and method.trusts_runtime)
            for methods in found
        ]


def _first(problem: Problem, abstract: frozenset[str], methods: Sequence[ProofMethod]) -> Proof:
    """Return the proof of the first method that has one, else the reason of the first.

    A method is left out where it cannot say more than one that failed. Elements that differ as
    those of sums and lists differ as functions of whole operands, too.
    """
    failed: Proof | None = None
    trusting: Proof | None = None
    tried: list[ProofMethod] = []
    for method in methods:
        if trusting is not None and method.trusts_runtime:
            continue
        if failed is not None and failed.differs and not method.trusts_runtime:
            continue
        if any(not method.says_more(other, problem) for other in tried):
            continue
        tried.append(method)
        proof, has_asked = _proof(problem, method, abstract)
        if proof.is_proved and not (has_asked and proof.trusts_runtime and method.name == "bits"):
            return proof
        if proof.is_proved:
            trusting = proof  # perhaps there is one that does not trust the runtime
        elif failed is None or (proof.differs and not failed.differs):
            failed = proof
    found = trusting or failed
    assert found is not None
    return found


def _proof(problem: Problem, method: ProofMethod, abstract: frozenset[str]) -> tuple[Proof, bool]:
    """Return a proof, and whether a rule asked if it may trust the runtime."""
    axioms: set[str] = set()
    held: list[Mapping[str, int]] = []
    refused, empty, bound = "", "", 0.0
    has_asked = is_for_all = False
    pending = [
        problem.fitted.get(id(sizes), sizes)
        for sizes in problem.sizes[::-1]
        if problem.has_unknown_ranks or not sizes.for_ranks
    ]
    while pending:
        sizes = pending.pop()
        with _At(problem, method, sizes, abstract) as at:
            try:
                before = at.outputs(0)
            except Unproved as error:
                # The sizes may be none that the model takes.
                other = _fitted(problem, at, sizes, error)
                if other is not None:
                    pending.append(other)
                else:
                    refused = refused or str(error)
                continue
            try:
                after = at.outputs(1)
                wrong = [n for n in problem.outputs if not at.equal(before[n], after[n])]
            except Unproved as error:
                return Proof("", reason=str(error)), at.has_asked
            except Illegal as error:
                refused = refused or str(error)
                continue
            used = {**problem.used(sizes), **{name: sizes[name] for name in at.data_dims}}
            axioms |= at.axioms()
            has_asked |= at.has_asked
            bound = max(bound, at.bound)
            is_only = not used and not at.uses_sizes
        if wrong and held and problem.excuses_empty and not any(used.values()):
            empty = f"{wrong[0]} at {_shown(used)}"
        elif wrong:
            text = f"{wrong[0]} is not computed alike" + (f" at {_shown(used)}" if used else "")
            return Proof("", reason=text, differs=(wrong[0], used)), has_asked
        else:
            held.append(used)
        is_for_all = not empty and _is_for_all(problem, held)
        if is_only or (is_for_all and not (refused or at.data_dims)):
            break  # other sizes would show nothing new
    dims = [[size for name, size in used.items() if "(" not in name] for used in held]
    is_small = all(min(sizes, default=2) < 2 for sizes in dims)
    if not held or (refused and is_small and not problem.has_unknown_ranks):
        return Proof("", reason=refused or "no sizes were tried"), has_asked
    return (
        Proof(
            method.name, held, frozenset(axioms), bound=bound, except_for=empty,
            is_for_all=is_for_all, is_plain=not method.trusts_runtime,
        ),
        has_asked,
    )  # fmt: skip


def _fitted(problem: Problem, at: _At, sizes: TrialSizes, error: Unproved) -> TrialSizes | None:
    """Return sizes that fit where others did not; None if none are found.

    A dim whose name has a size of its own gets the one that it must have. The first side was
    evaluated at these sizes as at any: they are named in the proof.
    """
    if not isinstance(error, Misfit):
        return None
    first = next((s for s in problem.sizes if problem.fitted.get(id(s), s) is sizes), None)
    for old, new in error.repairs:
        for name in (*problem.summands(old, sizes), *at.data_dims):
            size = sizes[name] + new - old
            is_open = sizes[name] <= old and name not in sizes.changed and old != new
            if is_open and first is not None and 0 < size <= MOST_FITTED:
                made = problem.fitted[id(first)] = sizes.having(name, size)
                return made
    return None


def _is_for_all(problem: Problem, held: Sequence[Mapping[str, int]]) -> bool:
    return any(held) and not why_not_for_all(problem, held)


def _shown(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def _equal(domain: Domain, one: CheckedTensor | None, other: CheckedTensor | None) -> bool:
    if one is other:
        return True
    if isinstance(one, TensorList) and isinstance(other, TensorList):
        pairs = itertools.zip_longest(one.items, other.items)
        return all(_equal(domain, *pair) for pair in pairs)
    if one is None or other is None or one.dtype != other.dtype or one.shape != other.shape:
        return False
    try:
        _ = one.known is not None or one.terms
    except Unproved as error:
        raise Illegal(str(error)) from error
    if isinstance(domain, Affine):
        return domain.are_equal(one, other)
    if one.known is not None and other.known is not None and one.known.dtype.kind in "iubf":
        return _are_same(one.known, other.known)
    return bool(np.array_equal(one.terms, other.terms))


def _are_same(one: Array, other: Array) -> bool:
    """Return whether numbers have the same bits; all NaNs count as one."""
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    bits = f"u{one.dtype.itemsize}"
    same = np.ascontiguousarray(one).view(bits) == np.ascontiguousarray(other).view(bits)
    return bool((same | (np.isnan(one) & np.isnan(other))).all())


class _At:
    """A problem at some sizes, in one domain."""

    def __init__(
        self, problem: Problem, method: ProofMethod, sizes: TrialSizes, abstract: frozenset[str]
    ) -> None:
        self._problem = problem
        self._sizes = sizes
        self._setting = ProofSetting(
            method.domain(problem), method.rules, problem.opsets, {},
            method.trusts_runtime, method.unrolls, sizes,
        )  # fmt: skip
        self._abstract = abstract
        self._known = problem.given.at(sizes)
        self._values: dict[str, CheckedTensor] = {}
        self._scopes: list[NameScope] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Tensors and scopes hold each other: what is dropped here is freed at once.
        self._setting.results.clear()
        self._setting.unknowns.clear()
        self._setting.constants.clear()
        self._values.clear()
        for scope in self._scopes:
            scope.values.clear()

    def outputs(self, index: int) -> dict[str, CheckedTensor | None]:
        """Return the outputs of a side.

        Raises:
            Unproved: one has no terms.
        """
        side = self._problem.sides[index]
        scope = NameScope(replace(self._setting, functions=side.functions))
        self._scopes.append(scope)
        scope.values.update(self._borders())
        scope.values.update((name, self._constant(name, side)) for name in side.constants)
        scope.run(side.nodes)
        return {name: scope.find(name) for name in self._problem.outputs}

    def equal(self, one: CheckedTensor | None, other: CheckedTensor | None) -> bool:
        """Return whether two outputs are equal."""
        return _equal(self._setting.domain, one, other)

    @property
    def bound(self) -> float:
        """How far numbers that counted as one were apart, in ulps."""
        domain = self._setting.domain
        return domain.bound if isinstance(domain, Affine) else 0.0

    def axioms(self) -> set[str]:
        """Return the axioms of nodes that are on one side alone."""
        before, after = (scope.axioms for scope in self._scopes)
        alone = [axioms for key, axioms in before.items() if not key or key not in after]
        alone += [axioms for key, axioms in after.items() if not key or key not in before]
        return {axiom for each in alone for axiom in each}

    @property
    def data_dims(self) -> Collection[str]:
        """The names of dims that depend on data."""
        return self._setting.dims.values()

    @property
    def has_asked(self) -> bool:
        """Whether a rule asked if it may trust the runtime."""
        return bool(self._setting.asked)

    @property
    def uses_sizes(self) -> bool:
        """Whether what borders are known to be depends on sizes."""
        return bool(self._known)

    def _borders(self) -> dict[str, CheckedTensor]:
        if not self._values:
            for name in self._problem.borders:
                self._values[name] = self._border(name)
        return self._values

    def _border(self, name: str) -> CheckedTensor:
        border, domain = self._problem.borders[name], self._setting.domain
        numbers = self._known.get(name)
        if numbers is not None:
            return constant(domain, numbers, border.dtype)
        shape = border.shape(self._sizes)
        if shape is None:
            raise Unproved(f"no shape of {name} is known: {border}")
        numpy_dtype(border.dtype)
        return self._setting.free(TensorType(border.dtype, shape), ("border", name))

    def _constant(self, name: str, side: Side) -> CheckedTensor:
        if name in self._values:
            return self._values[name]
        stored, domain = side.constants[name], self._setting.domain
        if name in self._abstract:
            made = self._setting.free(TensorType(stored.dtype, stored.shape), ("constant", name))
        else:
            made = self._setting.shared(constant(domain, stored.dense(), stored.dtype))
        if all(side.constants.get(name) is stored for side in self._problem.sides):
            self._values[name] = made
        return made
