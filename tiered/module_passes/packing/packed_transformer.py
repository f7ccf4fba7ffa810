"""An encoder of one sequence a row  =>  an encoder of several sequences a row, kept apart"""

from tiered import Model, PassContext, Skip, module_pass
from tiered.extensions.packing.transform import pack_rows


@module_pass(
    opt_level=None,
    required=(
        "inline",
        "infer_shapes",
        "replace_castlike_with_cast",
        "trace_folding",
        "fold_constant",
        "eliminate_nop_arithmetic",
    ),
    touches=("*",),
    numerics="reassociating",
    changes_interface=True,
)
def packed_transformer(
    model: Model,
    ctx: PassContext,
    *,
    inputs: tuple[str, ...] = (),
    max_valid_num: int = 0,
) -> Skip | None:
    """Take several short sequences in each row: PopRT's packed_transformer, for encoders.

    New inputs: `sequence_ids` has the number of the sequence of each token, `position_ids` its
    position, `sequence_starts` the place of each sequence. Attention masks other sequences, and the
    first token, sum or mean of a row becomes that of each sequence. The arrays are made by
    `tiered.extensions.packing.pack_sequences`. Values have to be finite: 0 * Inf of another
    sequence is NaN.

    Args:
        inputs: the inputs [batch, length, ...]; by default those with two dynamic dims first.
        max_valid_num: the fixed number of sequences of a run; 0 for any number.

    Raises:
        UsageError: there is no such input, or its first two dims are not dynamic.
        ModelError: an operator may mix tokens of different sequences; the message names it.
    """
    if any(value.name == "sequence_ids" for value in model.main.inputs):
        return Skip("the model has sequence_ids already")
    ctx.remark(pack_rows(model, inputs, max_valid_num=max_valid_num))
    return None
