"""A model, and the model of a file that reads its outputs  =>  one model"""

from tiered import InterfaceMap, Model, PassContext, Skip, Unable, merge, module_pass
from tiered.pipeline.compose.merging import has_merged


@module_pass(opt_level=None, touches=("*",), changes_interface=True)
def merge_models(
    model: Model,
    ctx: PassContext,
    *,
    file: str = "",
    connect: dict[str, str | list[str]] | None = None,
    prefix: str = "",
    keep: bool = False,
) -> Skip | None:
    """Connect outputs of the model with inputs of a second one, as `tiered merge` does.

    Names, opsets and functions are reconciled; inputs of equal name and type are one input.

    Args:
        file: the second model.
        connect: the input of the second model by output of this one, or a list of inputs; by
            default those of equal name.
        prefix: for the names of the second model that are not connected.
        keep: connected outputs stay outputs.

    Raises:
        UsageError: there is no such output or input, or nothing connects.
        ModelError: the file cannot be read, or the models do not fit together.
    """
    if not file:
        return Unable("no second model is given")
    second = Model.load(file)
    if has_merged(model, second, connect=connect, prefix=prefix, keep=keep):
        return Skip("the model has the outputs of the second")
    model.exchange(merge(model, second, connect=connect, prefix=prefix, keep=keep))
    model.note_interface(InterfaceMap(new=f"the outputs of {file} were added"))
    return None
