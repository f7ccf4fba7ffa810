"""A graph input that has an initializer  =>  the initializer alone"""

from tiered import Model, PassContext, module_pass


@module_pass(opt_level=None, changes_interface=True)
def remove_initializer_from_input(model: Model, ctx: PassContext) -> None:
    """Make overridable initializers constant: callers can no longer override them.

    Before IR 4 each initializer must be an input, so a lower IR version is raised to 4.
    """
    graph = model.main
    kept = [
        (value, info)
        for value, info in zip(graph.inputs, graph.input_infos, strict=True)
        if not value.is_overridable
    ]
    if len(kept) == len(graph.inputs):
        return
    if model.ir_version < 4:
        model.set_ir_version(4)
    graph.set_graph_inputs([value for value, _ in kept], [info for _, info in kept])
