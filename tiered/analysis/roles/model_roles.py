"""The roles of a model: which nodes must not compute in a narrower type, and why."""

from __future__ import annotations

from tiered.analysis.roles.epsilons import epsilon_roles
from tiered.analysis.roles.float_positions import position_roles
from tiered.analysis.roles.indices import index_product_roles, index_roles
from tiered.analysis.roles.large import large_roles
from tiered.analysis.roles.masks import mask_roles
from tiered.analysis.roles.probabilities import probability_roles
from tiered.analysis.roles.role import Ignored, Narrow, Role
from tiered.graph import DataType, Model, Node


def roles_of(model: Model, low: DataType, ignored: Ignored) -> dict[Node, Role]:
    """Return the nodes whose role keeps them from a narrower type of floats.

    Nodes of local functions, and of other domains than ONNX's, have none.

    Args:
        model: the model; its types are known.
        low: the narrower type.
        ignored: whether a node is in that type whatever its constants become.
    """
    narrow = Narrow.of(low)
    # Of a node with several roles the last is reported.
    return (
        probability_roles(model, narrow)
        | mask_roles(model, narrow)
        | large_roles(model, narrow, ignored)
        | epsilon_roles(model, narrow, ignored)
        | position_roles(model)
        | index_roles(model)
    )


def few_bit_roles(model: Model) -> dict[Node, Role]:
    """Return the nodes that must not be stored or computed in 8 bits or fewer for their role.

    Scales follow the numbers, so small and large constants have no role there.

    Args:
        model: the model; its types are known.
    """
    return position_roles(model) | index_product_roles(model)
