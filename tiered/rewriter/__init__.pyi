from tiered.idioms.attention import (
    attention_of_heads as attention_of_heads,
)
from tiered.idioms.attention import (
    heads_pattern as heads_pattern,
)
from tiered.idioms.attention import (
    is_mask_of as is_mask_of,
)
from tiered.idioms.attention import (
    numbers_of_mask as numbers_of_mask,
)
from tiered.idioms.key_value_cache import cache_of_heads as cache_of_heads
from tiered.idioms.normalization import (
    BatchNorm as BatchNorm,
)
from tiered.idioms.normalization import (
    attention_pattern as attention_pattern,
)
from tiered.idioms.normalization import (
    attention_scale as attention_scale,
)
from tiered.idioms.normalization import (
    batch_norm_of as batch_norm_of,
)
from tiered.idioms.normalization import (
    batch_norm_pattern as batch_norm_pattern,
)
from tiered.idioms.normalization import (
    bias_apart as bias_apart,
)
from tiered.idioms.normalization import (
    is_held_by_attribute as is_held_by_attribute,
)
from tiered.idioms.normalization import (
    keys_as_heads as keys_as_heads,
)
from tiered.idioms.normalization import (
    layer_norm_pattern as layer_norm_pattern,
)
from tiered.idioms.normalization import (
    norm_epsilon as norm_epsilon,
)
from tiered.idioms.normalization import (
    norm_over_last_dims as norm_over_last_dims,
)
from tiered.idioms.normalization import (
    rms_norm_pattern as rms_norm_pattern,
)
from tiered.idioms.normalization import (
    scale_apart as scale_apart,
)
from tiered.idioms.normalization import (
    swish_factor as swish_factor,
)
from tiered.idioms.normalization import (
    swish_pattern as swish_pattern,
)
from tiered.idioms.parallel_branches import (
    combine_branches as combine_branches,
)
from tiered.idioms.parallel_branches import (
    only_reader as only_reader,
)
from tiered.idioms.parallel_branches import (
    parallel_branches as parallel_branches,
)
from tiered.idioms.quantization import (
    INTEGER_SPAN as INTEGER_SPAN,
)
from tiered.idioms.quantization import (
    Quantized as Quantized,
)
from tiered.idioms.quantization import (
    bias_in_steps as bias_in_steps,
)
from tiered.idioms.quantization import (
    dequantized as dequantized,
)
from tiered.idioms.quantization import (
    is_number_or_column as is_number_or_column,
)
from tiered.idioms.quantization import (
    kernel_unit as kernel_unit,
)
from tiered.idioms.quantization import (
    overflow_of as overflow_of,
)
from tiered.idioms.quantization import (
    quantized_by as quantized_by,
)
from tiered.idioms.quantization import (
    quantized_unit as quantized_unit,
)
from tiered.idioms.quantization import (
    weight_unit as weight_unit,
)
from tiered.idioms.scale import (
    Scale as Scale,
)
from tiered.idioms.scale import (
    loses_digits as loses_digits,
)
from tiered.idioms.scale import (
    push_scale_back as push_scale_back,
)
from tiered.idioms.scale import (
    push_scale_on as push_scale_on,
)
from tiered.idioms.scale import (
    scaling_of as scaling_of,
)
from tiered.idioms.scale import (
    write_rescaled as write_rescaled,
)
from tiered.rewriter.driver import apply_rule as apply_rule
from tiered.rewriter.language import (
    Operator as Operator,
)
from tiered.rewriter.language import (
    chain as chain,
)
from tiered.rewriter.language import (
    const as const,
)
from tiered.rewriter.language import (
    op as op,
)
from tiered.rewriter.language import (
    opt as opt,
)
from tiered.rewriter.language import (
    rest as rest,
)
from tiered.rewriter.language import (
    var as var,
)
from tiered.rewriter.match import (
    Match as Match,
)
from tiered.rewriter.match import (
    compile_pattern as compile_pattern,
)
from tiered.rewriter.match import (
    find_matches as find_matches,
)
from tiered.rewriter.match import (
    match_node as match_node,
)
from tiered.rewriter.pattern import (
    COMMUTATIVE as COMMUTATIVE,
)
from tiered.rewriter.pattern import (
    Pattern as Pattern,
)
from tiered.rewriter.pattern import (
    PatternError as PatternError,
)
from tiered.rewriter.rule import Rule as Rule
from tiered.rewriter.skip import Skip as Skip
from tiered.rewriter.subgraphs.replace import (
    ReplacedPattern as ReplacedPattern,
)
from tiered.rewriter.subgraphs.replace import (
    SubgraphMatch as SubgraphMatch,
)
from tiered.rewriter.subgraphs.replace import (
    SubgraphMatcher as SubgraphMatcher,
)
from tiered.rewriter.subgraphs.replace import (
    replace_pattern as replace_pattern,
)
from tiered.rewriter.subgraphs.search import (
    opset_matching as opset_matching,
)
from tiered.rewriter.subgraphs.search import (
    path_matching as path_matching,
)
from tiered.rewriter.subgraphs.search import (
    pattern_matching as pattern_matching,
)

__all__: list[str]
