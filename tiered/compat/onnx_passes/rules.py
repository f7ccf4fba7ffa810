"""Rules of a pattern, a check and a rewrite that are methods with `op` as first parameter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tiered
from tiered.compat.onnx_passes.rule_values import bare, wrapped
from tiered.compat.signatures import with_parameters
from tiered.passes import Pass
from tiered.rewriter import Skip, op, var
from tiered.rewriter.pattern import OpPattern
from tiered.support.errors import UsageError


class _Calls:
    """The `op` of patterns and replacements: with `_domain`, and `_outputs` as a number or names.

    Args:
        op: the operators of tiered: of the pattern language, or of a graph.
        outputs: gets the named outputs of a pattern, each with its node and number; None for a
            replacement, whose outputs are values anyway.
    """

    def __init__(self, op: Any, outputs: dict[str, tuple[str, int]] | None) -> None:
        self._op = op
        self._outputs = outputs

    def __call__(self, domain: str) -> _Calls:
        return _Calls(self._op(domain), self._outputs)

    def __getattr__(self, op_type: str) -> Any:
        if op_type.startswith("__"):
            raise AttributeError(op_type)
        return partial(self._call, op_type)

    def _call(
        self,
        op_type: str,
        *operands: Any,
        _domain: str = "",
        _outputs: int | Sequence[str] = 1,
        _allow_other_attributes: bool = False,
        **attributes: Any,
    ) -> Any:
        names = [] if isinstance(_outputs, int) else list(_outputs)
        count = _outputs if isinstance(_outputs, int) else len(names)
        operator = getattr(self._op(_domain) if _domain else self._op, op_type)
        if self._outputs is None:
            several = {"outputs": count} if count > 1 else {}
            return operator(*bare(operands), **several, **attributes)
        if _allow_other_attributes:
            attributes["attrs"] = ...
        made = operator(*operands, **attributes)
        if names:
            node = f"node_of_{names[0]}"
            made = made.bind(node)
            self._outputs.update((name, (node, at)) for at, name in enumerate(names) if name)
        return made if count == 1 else tuple(made.out(at) for at in range(count))


def rule_of(
    declared: dict[str, Any],
    pattern: Callable[..., Any],
    check: Callable[..., object],
    rewrite: Callable[..., Any],
) -> Pass:
    """Return the pass of a rule, which visits each node once: its own result may match again.

    Raises:
        UsageError: the pattern has several values, which are not the outputs of one node in order.
    """
    variables = {name: getattr(var, name) for name in _names(pattern)}
    outputs: dict[str, tuple[str, int]] = {}
    made = pattern(_Calls(op, outputs), **variables)
    if isinstance(made, tuple):
        made = _node_of(made, declared["name"])
    asked = dict.fromkeys((*_names(check), *_names(rewrite)))
    parameters = dict.fromkeys(outputs[name][0] if name in outputs else name for name in asked)

    def function(graph: Any, *found: Any) -> Any:
        bound = dict(zip(parameters, found, strict=True))
        for name, (node, at) in outputs.items():
            if node in bound:
                bound[name] = bound[node].outputs[at]
        calls, given = _Calls(graph.op, None), wrapped(bound)
        if not check(calls, **{name: given[name] for name in _names(check)}):
            return Skip("the check returned False")
        return bare(rewrite(calls, **{name: given[name] for name in _names(rewrite)}))

    rule = tiered.rewrite(made, **declared)(with_parameters(function, ["graph", *parameters]))
    rule.rule.once = True
    return rule


def _node_of(made: tuple[Any, ...], name: str) -> OpPattern:
    """Return the pattern of the node that makes all values of a pattern.

    Raises:
        UsageError: they are of several nodes, or in another order.
    """
    outputs = [each for each in made if isinstance(each, OpPattern)]
    numbers = [each.output for each in outputs]
    nodes = {id(each.identity) for each in outputs}
    if len(nodes) != 1 or numbers != [*range(len(made))]:
        raise UsageError(f"{name}: a pattern of several values has the outputs of one node")
    return outputs[0]


def _names(function: Callable[..., Any]) -> list[str]:
    """Return the parameters after `op`, without *args and **kwargs."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is kind][1:]
