"""Profiles of nodes that took made times."""

from tiered.extensions.measurement.profile.executed import ExecutedPlace
from tiered.extensions.measurement.profile.kernel_events import Shape
from tiered.extensions.measurement.profile.model_profile import NodeTime, Profile
from tiered.runtime.opening import Opening


def timed(name: str, op_type: str = "Add", seconds: float = 1.0, **place: object) -> NodeTime:
    shape = (Shape("float", (2,)),)
    where = ExecutedPlace(**place)  # type: ignore[arg-type]  # its fields, by name
    return NodeTime(name, op_type, "CPU", where, seconds, 1, shape, shape, 16, 0)


def profile_of(*nodes: NodeTime) -> Profile:
    return Profile("m", nodes, sum(node.seconds for node in nodes), 1, Opening())
