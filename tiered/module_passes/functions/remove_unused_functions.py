"""A local function that no chain of calls reaches from the main graph  =>  nothing"""

from tiered import Function, Model, PassContext, UsageError, module_pass


@module_pass(opt_level=0, matches=("function",), touches=("*",))
def remove_unused_functions(
    model: Model, ctx: PassContext, *, entry_functions: list[str] | None = None
) -> None:
    """Keep only functions that are reachable from the main graph or an entry function.

    Args:
        entry_functions: functions to keep with all functions that they call: `name` or
            `domain.name`.

    Raises:
        UsageError: the model has no such entry function.
    """
    if not model.functions:
        return
    # Slow to import, and few models have functions.
    import networkx as nx

    calls = model.call_graph()
    reached = set(nx.descendants(calls, model.main))
    for name in entry_functions or ():
        entries = [function for function in model.functions if _is_named(function, name)]
        if not entries:
            known = ", ".join(sorted(_full_name(function) for function in model.functions))
            raise UsageError(f"the model has no function {name!r}; it has {known}")
        for function in entries:
            reached |= {function.id, *nx.descendants(calls, function.id)}
    for function in list(model.functions):
        if function.id not in reached:
            model.remove(function)


def _full_name(function: Function) -> str:
    return f"{function.domain}.{function.function_name}"


def _is_named(function: Function, name: str) -> bool:
    return name in (function.function_name, _full_name(function))
