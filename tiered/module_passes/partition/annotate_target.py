"""A node that a target takes  =>  the node, marked with the target"""

from tiered import Model, PassContext, get_backend, module_pass
from tiered.extensions.partition.regions import mark_targets
from tiered.extensions.partition.supports import BackendSupport


@module_pass(opt_level=None, touches=("*",))
def annotate_target(model: Model, ctx: PassContext, *, targets: tuple[str, ...] = ()) -> None:
    """Mark each node with the first target that takes it: metadata `tiered.compiler`.

    A node with bodies is marked if one target takes all nodes of its bodies; otherwise the nodes of
    its bodies are marked. Without targets and without a backend there is nothing to do.

    Args:
        targets: names of backends, or their TOML files; the backend of the context by default.
    """
    backends = [get_backend(name) for name in targets]
    if not targets and ctx.names_backend:
        backends = [ctx.backend]
    if backends:
        mark_targets(model, {backend.name: BackendSupport(backend) for backend in backends})
