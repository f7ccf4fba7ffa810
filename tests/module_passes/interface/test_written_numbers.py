"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.module_passes.interface.add_checkpoints",
        "tiered.module_passes.interface.change_batch",
        "tiered.module_passes.interface.const_batch_size",
        "tiered.module_passes.interface.const_input_shape",
        "tiered.module_passes.interface.const_output_shape",
        "tiered.module_passes.interface.drop_unused_inputs",
        "tiered.module_passes.interface.eight_bits_io",
        "tiered.module_passes.interface.extract",
        "tiered.module_passes.interface.io_layout",
        "tiered.module_passes.interface.merge_models",
        "tiered.module_passes.interface.remove_initializer_from_input",
        "tiered.module_passes.interface.remove_input_cast",
        "tiered.module_passes.interface.rename",
        "tiered.module_passes.interface.reorder",
        "tiered.module_passes.interface.truncate_on_var",
    )
