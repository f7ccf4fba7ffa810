"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.analysis.layout.axis_propagation",
        "tiered.analysis.layout.body_permutation",
        "tiered.analysis.layout.cost",
        "tiered.analysis.layout.derived",
        "tiered.analysis.layout.equivalence",
        "tiered.analysis.layout.expansion_cut",
        "tiered.analysis.layout.kernel_times",
        "tiered.analysis.layout.layout_page",
        "tiered.analysis.layout.layout_region",
        "tiered.analysis.layout.nhwc",
        "tiered.analysis.layout.reach",
        "tiered.analysis.layout.search_memory",
        "tiered.analysis.layout.sizes",
        "tiered.analysis.layout.solve",
        "tiered.analysis.layout.transpose_report",
        "tiered.analysis.layout.work",
    )
