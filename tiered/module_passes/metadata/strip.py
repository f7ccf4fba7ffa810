"""Metadata, doc strings and names that no runtime computes with  =>  nothing"""

from typing import Final, Literal

from tiered import Model, PassContext, Skip, module_pass

_PARTS: Final = ("metadata", "names", "docs")


@module_pass(opt_level=None)
def strip(
    model: Model,
    ctx: PassContext,
    *,
    what: tuple[Literal["metadata", "names", "docs", "marks", "all"], ...] = ("metadata",),
) -> Skip | None:
    """Remove texts that exporters leave in models, such as stack traces; a remark lists them.

    Entries of metadata of tiered itself (`tiered.*`) stay: they state what a file is, and what
    passes leave as it is; `marks` removes those that say which model a result came from, and what
    its steps promise. So do the declarations of the interface with their texts, the names of
    inputs and outputs of all graphs, and the producer.

    Args:
        what: of the model, graphs, nodes and tensors; names only of nodes and inner tensors. `all`
            is metadata, names and docs.
    """
    lost = model.strip((*what, *(_PARTS if "all" in what else ())))
    for text in lost:
        ctx.remark(text)
    return None if lost else Skip("the model has none of these texts")
