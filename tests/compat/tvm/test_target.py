"""Targets of TVM are backends."""

from tests.recorded import assert_values
from tiered.compat.tvm.target import Target, create
from tiered.context import PassContext


def backend_of(*args: object, **more: object) -> tuple[str, str]:
    """Return the text of a target and the name of its backend."""
    made = Target(*args, **more)  # type: ignore[arg-type]  # wrong ones too
    return str(made), made.backend.name


def entered(*names: str) -> list[str]:
    """Return the backends of the context around, within and after targets."""
    target = create(names[0])
    found = [str(PassContext.current().target)]
    with target:
        found.append(str(PassContext.current().target))
        with target, Target(names[-1]):
            found.append(str(PassContext.current().target))
        found.append(str(PassContext.current().target))
    return [*found, str(PassContext.current().target)]


def test_a_target_is_a_backend() -> None:
    names = {"backend_of": backend_of, "entered": entered, "Target": Target}
    assert_values(__file__, names)
