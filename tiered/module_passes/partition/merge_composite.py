"""A match of the pattern table of a target  =>  a call of a function of its nodes"""

from tiered import Model, PassContext, module_pass
from tiered.extensions.partition.composite import merge_composites, named_tables, pattern_table


@module_pass(opt_level=None, touches=("*",))
def merge_composite(model: Model, ctx: PassContext, *, tables: tuple[str, ...] = ()) -> None:
    """Outline the matches of pattern tables: functions of the domain `tiered.composite`.

    `tiered.extensions.partition.register_pattern_table` sets the table of a target; earlier entries
    come first. Without a table there is nothing to do.

    Args:
        tables: the targets with the tables; the backend of the context by default.

    Raises:
        UsageError: a target that is named has no table.
    """
    own = pattern_table(ctx.backend.name) if ctx.names_backend and not tables else ()
    merge_composites(model, [*own, *named_tables(tables)], ctx.skip)
