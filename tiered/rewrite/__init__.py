"""Rewriting: the pattern language, the matcher and the driver; what few need loads on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiered.loading import load_later
from tiered.rewrite.driver import apply_rule
from tiered.rewrite.language import Operator, chain, const, op, opt, rest, var
from tiered.rewrite.matcher import Match, compile_pattern, find_matches, match_node
from tiered.rewrite.pattern import COMMUTATIVE, Pattern, PatternError
from tiered.rewrite.rule import Rule
from tiered.rewrite.skip import Skip

if TYPE_CHECKING:
    from tiered.rewrite.caches import cache_of_heads
    from tiered.rewrite.heads import (
        attention_of_heads,
        heads_pattern,
        is_mask_of,
        numbers_of_mask,
    )
    from tiered.rewrite.idioms import (
        BatchNorm,
        attention_pattern,
        attention_scale,
        batch_norm_of,
        batch_norm_pattern,
        bias_apart,
        is_held_by_attribute,
        keys_as_heads,
        layer_norm_pattern,
        norm_epsilon,
        norm_over_last_dims,
        rms_norm_pattern,
        scale_apart,
        swish_factor,
        swish_pattern,
    )
    from tiered.rewrite.parallel import combine_branches, only_reader, parallel_branches
    from tiered.rewrite.quantized import (
        INTEGER_SPAN,
        Quantized,
        bias_in_steps,
        dequantized,
        is_number_or_column,
        kernel_unit,
        overflow_of,
        quantized_by,
        quantized_unit,
        weight_unit,
    )
    from tiered.rewrite.scaling import (
        Scale,
        loses_digits,
        push_scale_back,
        push_scale_on,
        scaling_of,
        write_rescaled,
    )
    from tiered.rewrite.search import opset_matching, path_matching, pattern_matching
    from tiered.rewrite.subgraph import (
        ReplacedPattern,
        SubgraphMatch,
        SubgraphMatcher,
        replace_pattern,
    )

__all__ = [
    "COMMUTATIVE",
    "INTEGER_SPAN",
    "BatchNorm",
    "Match",
    "Operator",
    "Pattern",
    "PatternError",
    "Quantized",
    "ReplacedPattern",
    "Rule",
    "Scale",
    "Skip",
    "SubgraphMatch",
    "SubgraphMatcher",
    "apply_rule",
    "attention_of_heads",
    "attention_pattern",
    "attention_scale",
    "batch_norm_of",
    "batch_norm_pattern",
    "bias_apart",
    "bias_in_steps",
    "cache_of_heads",
    "chain",
    "combine_branches",
    "compile_pattern",
    "const",
    "dequantized",
    "find_matches",
    "heads_pattern",
    "is_held_by_attribute",
    "is_mask_of",
    "is_number_or_column",
    "kernel_unit",
    "keys_as_heads",
    "layer_norm_pattern",
    "loses_digits",
    "match_node",
    "norm_epsilon",
    "norm_over_last_dims",
    "numbers_of_mask",
    "only_reader",
    "op",
    "opset_matching",
    "opt",
    "overflow_of",
    "parallel_branches",
    "path_matching",
    "pattern_matching",
    "push_scale_back",
    "push_scale_on",
    "quantized_by",
    "quantized_unit",
    "replace_pattern",
    "rest",
    "rms_norm_pattern",
    "scale_apart",
    "scaling_of",
    "swish_factor",
    "swish_pattern",
    "var",
    "weight_unit",
    "write_rescaled",
]

_HOME = {
    "caches": ("cache_of_heads",),
    "heads": ("attention_of_heads", "heads_pattern", "is_mask_of", "numbers_of_mask"),
    "idioms": (
        "BatchNorm",
        "attention_pattern",
        "attention_scale",
        "batch_norm_of",
        "batch_norm_pattern",
        "bias_apart",
        "keys_as_heads",
        "layer_norm_pattern",
        "is_held_by_attribute",
        "norm_epsilon",
        "norm_over_last_dims",
        "rms_norm_pattern",
        "scale_apart",
        "swish_factor",
        "swish_pattern",
    ),
    "parallel": ("combine_branches", "only_reader", "parallel_branches"),
    "quantized": (
        "INTEGER_SPAN",
        "Quantized",
        "bias_in_steps",
        "dequantized",
        "is_number_or_column",
        "kernel_unit",
        "overflow_of",
        "quantized_by",
        "quantized_unit",
        "weight_unit",
    ),
    "scaling": (
        "Scale",
        "loses_digits",
        "push_scale_back",
        "push_scale_on",
        "scaling_of",
        "write_rescaled",
    ),
    "search": ("opset_matching", "path_matching", "pattern_matching"),
    "subgraph": ("ReplacedPattern", "SubgraphMatch", "SubgraphMatcher", "replace_pattern"),
}

if not TYPE_CHECKING:  # with a __getattr__ to fall back to, type checkers would take any name
    __getattr__, __dir__ = load_later(__name__, _HOME)
