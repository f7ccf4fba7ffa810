"""ConvertLayout, as TVM writes it."""

from tests.recorded import assert_values
from tiered.compat.tvm.layouts import ConvertLayout


def test_layouts_are_those_of_images() -> None:
    names = {"shown": lambda *args, **options: str(ConvertLayout(*args, **options))}
    assert_values(__file__, names)
