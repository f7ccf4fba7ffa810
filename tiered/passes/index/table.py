"""The info of each pass, without its file. `make index` writes this."""

from typing import Final, Literal

from tiered.passes.index.entry import Indexed
from tiered.passes.interface.pass_info import PassInfo
from tiered.support.numerics import FEW_BITS, QUANTIZED, Numerics
from tiered.support.typed_options import Option, Size

INDEX: Final[dict[str, Indexed]] = {
    "add_checkpoints": Indexed("module_passes/interface", PassInfo(
        name='add_checkpoints', opt_level=None,
        required=('infer_shapes',),
        changes_interface=True,
        options=(
            Option('tensors', tuple[str, ...], (),
                'the names of the tensors, in the order of the new outputs.'),
        ),
    ), None),

    "alter_op_layout": Indexed("module_passes/layout", PassInfo(
        name='alter_op_layout', opt_level=3,
        touches=('*',),
        numerics=Numerics.REASSOCIATING,
        options=(
            Option('default_dim', int, 16, 'the size of a dynamic dim when bytes are counted.'),
        ),
    ), None),

    "annotate_target": Indexed("module_passes/partition", PassInfo(
        name='annotate_target', opt_level=None,
        touches=('*',),
        options=(
            Option('targets', tuple[str, ...], (),
                'names of backends, or their TOML files; the backend of the context by default.'),
        ),
    ), None),

    "attribute_to_input": Indexed("module_passes/opset", PassInfo(
        name='attribute_to_input', opt_level=None,
        required=('infer_shapes',),
        touches=('*',),
        changes_interface=True,
        options=(
            Option('op', tuple[str, ...], (),
                'the operators; by default all that have such attributes.'),
        ),
    ), None),

    "auto_insert_remap": Indexed("module_passes/partition", PassInfo(
        name='auto_insert_remap', opt_level=None,
        touches=('Add', 'MatMul', 'Slice'),
        options=(
            Option('remap_mode', tuple[Literal['after_matmul', 'after_slice', 'before_add'], ...], ('after_matmul',),
                '`after_matmul`, `after_slice`, `before_add`, or several.'),
        ),
    ), None),

    "backward_fold_scale_axis": Indexed("function_passes/scale_axis", PassInfo(
        name='backward_fold_scale_axis', opt_level=3, kind='function',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Conv', 'ConvTranspose', 'Div', 'Gemm', 'MatMul', 'Mul'),
        numerics=Numerics.REASSOCIATING,
    ), ('Div', 'Mul')),

    "bake_parameters": Indexed("module_passes/initializers", PassInfo(
        name='bake_parameters', opt_level=None,
        conflicts=('unbake',),
        options=(
            Option('tensors', tuple[str, ...], (),
                'names or globs of initializers, in bodies too; all by default.'),
            Option('max_size', Size, '1GiB', 'larger weights stay external.'),
        ),
    ), None),

    "batchnorm_workaround": Indexed("function_passes/normalization", PassInfo(
        name='batchnorm_workaround', kind='function',
        touches=('BatchNormalization',),
    ), ('BatchNormalization',)),

    "canonicalize_cast": Indexed("function_passes/cast", PassInfo(
        name='canonicalize_cast', opt_level=None, kind='function',
        conflicts=('eliminate_common_subexpr',),
        touches=('Cast',),
    ), ('Cast',)),

    "canonicalize_ops": Indexed("function_passes/arithmetic", PassInfo(
        name='canonicalize_ops', opt_level=3, kind='function',
        required=('infer_shapes',),
        touches=(
            'Add', 'And', 'BitwiseAnd', 'BitwiseOr', 'BitwiseXor', 'Conv', 'ConvTranspose', 'Gemm',
            'Mul', 'Or', 'Sum', 'Transpose', 'Xor',
        ),
        numerics_option='bias',
        options=(
            Option('bias', Literal['', 'split'], '',
                '`split` makes an Add of the bias of Conv, ConvTranspose and Gemm; passes that '
                'fuse biases would fuse it again.'),
        ),
    ), (
        'Add', 'And', 'BitwiseAnd', 'BitwiseOr', 'BitwiseXor', 'Conv', 'ConvTranspose', 'Gemm',
        'Mul', 'Or', 'Sum', 'Transpose', 'Xor',
    )),

    "change_batch": Indexed("module_passes/interface", PassInfo(
        name='change_batch', opt_level=None,
        required=('inline', 'infer_shapes'),
        touches=('*',),
        numerics=Numerics.REASSOCIATING,
        changes_interface=True,
        options=(
            Option('size', int | str, 16, 'the new size, or a name: the batch is dynamic then.'),
            Option('axes', dict[str, int] | None, None,
                'the axis of the batch by input. By default axis 0 of the first input, and of '
                'all that have the same size there.'),
        ),
    ), None),

    "check_with_fake_data": Indexed("module_passes/check", PassInfo(
        name='check_with_fake_data', opt_level=None,
        analysis=True,
        options=(
            Option('origin_model', str, '',
                'the file of the original; by default the model as it was loaded.'),
            Option('rtol', float | None, None,
                'instead of the tolerance of reassociated floats, relative to each element.'),
            Option('atol', float | None, None, 'the same, relative to the largest element.'),
            Option('seed', int, 0, 'of the generated inputs.'),
        ),
    ), None),

    "combine_parallel_batch_matmul": Indexed("function_passes/matmul", PassInfo(
        name='combine_parallel_batch_matmul', opt_level=4, kind='function',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('MatMul',),
        numerics=Numerics.REASSOCIATING,
        options=(
            Option('min_num_branches', int, 3, 'fewer are left alone.'),
            Option('min_depth', int, 16, 'the length of the sums; less is left alone.'),
        ),
    ), ('MatMul',)),

    "combine_parallel_conv2d": Indexed("function_passes/conv", PassInfo(
        name='combine_parallel_conv2d', opt_level=4, kind='function',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Conv',),
        numerics=Numerics.REASSOCIATING,
        options=(
            Option('min_num_branches', int, 3, 'the least number of branches.'),
            Option('min_depth', int, 16, 'the least product of channels and kernel size.'),
        ),
    ), ('Conv',)),

    "combine_parallel_dense": Indexed("function_passes/matmul", PassInfo(
        name='combine_parallel_dense', opt_level=4, kind='function',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Gemm', 'MatMul'),
        numerics=Numerics.REASSOCIATING,
        options=(
            Option('min_num_branches', int, 3, 'fewer are left alone.'),
            Option('min_depth', int, 16, 'the length of the sums; less is left alone.'),
        ),
    ), ('Gemm', 'MatMul')),

    "const_batch_size": Indexed("module_passes/interface", PassInfo(
        name='const_batch_size', opt_level=None,
        changes_interface=True,
        options=(
            Option('batch_size', int, 1, 'the size.'),
            Option('keep', list[str] | None, None, 'inputs without a batch dim.'),
            Option('only', list[str] | None, None,
                'the inputs with a batch; default: all but `keep`.'),
        ),
    ), None),

    "const_input_shape": Indexed("module_passes/interface", PassInfo(
        name='const_input_shape', opt_level=None,
        changes_interface=True,
        options=(
            Option('shape', dict[str, list[int | str]] | None, None,
                'dims by input name: a size, a name, or -1 to keep the dim.'),
            Option('dim', dict[str, int | str] | None, None,
                'a size or a new name by dim name, for all inputs with this dim.'),
        ),
    ), None),

    "const_output_shape": Indexed("module_passes/interface", PassInfo(
        name='const_output_shape', opt_level=None,
        required=('infer_shapes',),
        changes_interface=True,
    ), None),

    "conv_to_matmul": Indexed("function_passes/conv", PassInfo(
        name='conv_to_matmul', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('fold_constant', 'eliminate_unused_initializer'),
        touches=('Conv',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('Conv',)),

    "convert_layout": Indexed("module_passes/layout", PassInfo(
        name='convert_layout', opt_level=3,
        touches=('*',),
        numerics=Numerics.REASSOCIATING,
        interface_options=(('io_layout', 'convert'),),
        options=(
            Option('desired_layouts', dict[str, str], {'Conv': 'NCHW'},
                'NHWC or NCHW by operator, or by `Operator@glob of node names`. NCHW is the '
                'layout of standard ONNX.'),
            Option('io_layout', Literal['keep', 'convert'], 'keep',
                'whether inputs and outputs that are images keep their layout or are converted:'
                ' to NHWC if it is desired for any operator.'),
            Option('default_dim', int, 16, 'the size of a dynamic dim when bytes are counted.'),
        ),
    ), None),

    "convert_opset": Indexed("module_passes/opset", PassInfo(
        name='convert_opset', opt_level=None,
        required=('infer_shapes',),
        touches=('*',),
        numerics_option='numerics',
        changes_interface=True,
        options=(
            Option('to', int, 0, 'the opset.'),
            Option('most', int, 0,
                'for a model of a newer opset, the opset to convert it to, as far as all of its'
                ' nodes have a form there; a model of an older one stays. Profiles of targets '
                'use it.'),
            Option('ir', int, 0,
                'the IR version; 0 raises it only if the opset needs a newer one.'),
            Option('numerics', Literal['exact', 'reassociating'], 'exact',
                '`reassociating` also expands operators that the opset lacks into the function '
                'bodies that ONNX defines them by.'),
        ),
    ), None),

    "convert_qdq_to_qonnx": Indexed("function_passes/quantization", PassInfo(
        name='convert_qdq_to_qonnx', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        conflicts=('convert_qonnx_to_qdq',),
        touches=('Clip', 'DequantizeLinear', 'QuantizeLinear'),
        numerics=Numerics.REASSOCIATING,
    ), ('DequantizeLinear',)),

    "convert_qonnx_to_qdq": Indexed("function_passes/quantization", PassInfo(
        name='convert_qonnx_to_qdq', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer', 'remove_unused_functions'),
        conflicts=('convert_qdq_to_qonnx',),
        touches=('onnx.brevitas::Quant', 'qonnx.custom_op.general::Quant'),
        numerics=Numerics.REASSOCIATING,
    ), ('onnx.brevitas::Quant', 'qonnx.custom_op.general::Quant')),

    "decompose_gemm": Indexed("function_passes/matmul", PassInfo(
        name='decompose_gemm', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        conflicts=('fuse_gemm',),
        touches=('Gemm',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('Gemm',)),

    "dense_to_sparse": Indexed("module_passes/initializers", PassInfo(
        name='dense_to_sparse', opt_level=None,
        options=(
            Option('tensors', tuple[str, ...], (),
                'names or globs of initializers; all by default.'),
            Option('threshold', float, 0.3,
                'the share of elements that are not zero, at most; each takes 12 bytes, not 4.'),
            Option('block', tuple[int, ...], (),
                'rows and columns of blocks, for a remark about each matrix that they divide: '
                'the share of its elements and blocks that is zero. It decides nothing.'),
        ),
    ), None),

    "double_to_float": Indexed("module_passes/precision", PassInfo(
        name='double_to_float', opt_level=None,
        touches=('*',),
        numerics=Numerics.LOSSY,
    ), None),

    "drop_false_declarations": Indexed("module_passes/metadata", PassInfo(
        name='drop_false_declarations',
        required=('infer_shapes',),
    ), None),

    "drop_unused_inputs": Indexed("module_passes/interface", PassInfo(
        name='drop_unused_inputs', opt_level=None,
        changes_interface=True,
        options=(
            Option('keep', tuple[str, ...], (), 'inputs that stay.'),
        ),
    ), None),

    "eight_bits_io": Indexed("module_passes/interface", PassInfo(
        name='eight_bits_io', opt_level=None,
        required=('infer_shapes',),
        touches=('*',),
        changes_interface=True,
        options=(
            Option('name', str, '', 'the input; may be left out if the model has one.'),
            Option('scale', tuple[float, ...], (1.0,), 'one number, or one for each channel.'),
            Option('bias', tuple[float, ...], (0.0,), 'one number, or one for each channel.'),
            Option('axis', int, 1, 'the axis of the channels: 1 for NCHW, -1 for NHWC.'),
        ),
    ), None),

    "eliminate_addend_before_softmax": Indexed("function_passes/activation", PassInfo(
        name='eliminate_addend_before_softmax', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Add', 'LogSoftmax', 'Softmax', 'Sub'),
        numerics=Numerics.REASSOCIATING,
    ), ('LogSoftmax', 'Softmax')),

    "eliminate_allowzero": Indexed("function_passes/shape", PassInfo(
        name='eliminate_allowzero', opt_level=None, kind='function',
        required=('infer_shapes',),
        touches=('Reshape',),
    ), ('Reshape',)),

    "eliminate_cast_before_shape": Indexed("function_passes/shape", PassInfo(
        name='eliminate_cast_before_shape', opt_level=1, kind='function',
        touches=('Shape', 'Size'),
    ), ('Shape', 'Size')),

    "eliminate_common_subexpr": Indexed("function_passes/constant", PassInfo(
        name='eliminate_common_subexpr', opt_level=3, kind='function',
        required=('infer_shapes',),
        conflicts=('canonicalize_cast',),
        touches=('*',),
    ), None),

    "eliminate_deadend": Indexed("function_passes/identity", PassInfo(
        name='eliminate_deadend', kind='function',
        touches=('*',),
    ), None),

    "eliminate_duplicate_initializer": Indexed("function_passes/constant", PassInfo(
        name='eliminate_duplicate_initializer', opt_level=1, kind='function',
        conflicts=('format_parameter',),
        options=(
            Option('max_read', Size, '16GB',
                'the most bytes of files that are read to compare tensors, in bytes or as a '
                'share of the model; those that would need more stay apart, and a remark says '
                'how many.'),
        ),
    ), None),

    "eliminate_idempotent": Indexed("function_passes/arithmetic", PassInfo(
        name='eliminate_idempotent', opt_level=2, kind='rewrite',
        touches=('Abs', 'BitwiseNot', 'Ceil', 'Floor', 'Neg', 'Not', 'Relu', 'Round', 'Sign'),
    ), ('Abs', 'BitwiseNot', 'Ceil', 'Floor', 'Neg', 'Not', 'Relu', 'Round', 'Sign')),

    "eliminate_identity": Indexed("function_passes/identity", PassInfo(
        name='eliminate_identity', kind='rewrite',
        touches=('Identity',),
    ), ('Identity',)),

    "eliminate_key_bias": Indexed("function_passes/attention", PassInfo(
        name='eliminate_key_bias', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Add',),
        numerics=Numerics.REASSOCIATING,
    ), ('Add',)),

    "eliminate_nop_arithmetic": Indexed("function_passes/arithmetic", PassInfo(
        name='eliminate_nop_arithmetic', opt_level=2, kind='rewrite',
        touches=(
            'Add', 'And', 'BitShift', 'BitwiseAnd', 'BitwiseOr', 'BitwiseXor', 'Div', 'Mul', 'Or',
            'Pow', 'Sub', 'Xor',
        ),
        options=(
            Option('allow_signed_zero', bool, False,
                'also drop x + 0.0 and x - (-0.0), which change the sign of a zero.'),
        ),
    ), (
        'Add', 'And', 'BitShift', 'BitwiseAnd', 'BitwiseOr', 'BitwiseXor', 'Div', 'Mul', 'Or',
        'Pow', 'Sub', 'Xor',
    )),

    "eliminate_nop_cast": Indexed("function_passes/cast", PassInfo(
        name='eliminate_nop_cast', opt_level=1, kind='rewrite',
        touches=('Cast', 'CastLike'),
    ), ('Cast', 'CastLike')),

    "eliminate_nop_concat": Indexed("function_passes/gather_slice", PassInfo(
        name='eliminate_nop_concat', opt_level=1, kind='rewrite',
        touches=('Concat',),
    ), ('Concat',)),

    "eliminate_nop_expand": Indexed("function_passes/shape", PassInfo(
        name='eliminate_nop_expand', opt_level=1, kind='rewrite',
        touches=('Expand',),
    ), ('Expand',)),

    "eliminate_nop_flatten": Indexed("function_passes/shape", PassInfo(
        name='eliminate_nop_flatten', opt_level=1, kind='rewrite',
        touches=('Flatten',),
    ), ('Flatten',)),

    "eliminate_nop_gather": Indexed("function_passes/gather_slice", PassInfo(
        name='eliminate_nop_gather', opt_level=1, kind='rewrite',
        touches=('Gather',),
    ), ('Gather',)),

    "eliminate_nop_if": Indexed("function_passes/control_flow", PassInfo(
        name='eliminate_nop_if', opt_level=1, kind='function',
        touches=('*',),
    ), ('If',)),

    "eliminate_nop_pad": Indexed("function_passes/shape", PassInfo(
        name='eliminate_nop_pad', opt_level=1, kind='rewrite',
        touches=('Pad',),
    ), ('Pad',)),

    "eliminate_nop_reduce": Indexed("function_passes/reduction", PassInfo(
        name='eliminate_nop_reduce', opt_level=2, kind='rewrite',
        touches=('ReduceMax', 'ReduceMean', 'ReduceMin', 'ReduceProd', 'ReduceSum'),
    ), ('ReduceMax', 'ReduceMean', 'ReduceMin', 'ReduceProd', 'ReduceSum')),

    "eliminate_nop_reshape": Indexed("function_passes/shape", PassInfo(
        name='eliminate_nop_reshape', opt_level=1, kind='rewrite',
        touches=('Reshape',),
    ), ('Reshape',)),

    "eliminate_nop_scatter": Indexed("function_passes/gather_slice", PassInfo(
        name='eliminate_nop_scatter', opt_level=1, kind='rewrite',
        required=('infer_shapes',),
        touches=('ScatterND',),
    ), ('ScatterND',)),

    "eliminate_nop_slice": Indexed("function_passes/gather_slice", PassInfo(
        name='eliminate_nop_slice', opt_level=1, kind='rewrite',
        touches=('Slice',),
    ), ('Slice',)),

    "eliminate_nop_split": Indexed("function_passes/gather_slice", PassInfo(
        name='eliminate_nop_split', opt_level=1, kind='rewrite',
        touches=('Split',),
    ), ('Split',)),

    "eliminate_nop_squeeze": Indexed("function_passes/shape", PassInfo(
        name='eliminate_nop_squeeze', opt_level=1, kind='rewrite',
        touches=('Squeeze',),
    ), ('Squeeze',)),

    "eliminate_nop_tile": Indexed("function_passes/shape", PassInfo(
        name='eliminate_nop_tile', opt_level=1, kind='rewrite',
        touches=('Tile',),
    ), ('Tile',)),

    "eliminate_nop_transpose": Indexed("function_passes/layout", PassInfo(
        name='eliminate_nop_transpose', opt_level=1, kind='rewrite',
        touches=('Transpose',),
    ), ('Transpose',)),

    "eliminate_nop_trilu": Indexed("function_passes/shape", PassInfo(
        name='eliminate_nop_trilu', opt_level=2, kind='rewrite',
        required=('infer_shapes',),
        touches=('Trilu',),
    ), ('Trilu',)),

    "eliminate_nop_variadic": Indexed("function_passes/arithmetic", PassInfo(
        name='eliminate_nop_variadic', opt_level=1, kind='rewrite',
        touches=('Max', 'Mean', 'Min', 'Sum'),
    ), ('Max', 'Mean', 'Min', 'Sum')),

    "eliminate_q_dq_pair": Indexed("function_passes/quantization", PassInfo(
        name='eliminate_q_dq_pair', opt_level=2, kind='rewrite',
        touches=(
            'DequantizeLinear', 'QuantizeLinear', 'com.microsoft::DequantizeLinear',
            'com.microsoft::QuantizeLinear',
        ),
    ), ('QuantizeLinear', 'com.microsoft::QuantizeLinear')),

    "eliminate_reshape_around_elementwise": Indexed("function_passes/shape", PassInfo(
        name='eliminate_reshape_around_elementwise', opt_level=2, kind='function',
        required=('infer_shapes',),
        touches=('Flatten', 'Reshape', 'Squeeze', 'Unsqueeze', 'elementwise'),
    ), ('Flatten', 'Reshape', 'Squeeze', 'Unsqueeze')),

    "eliminate_reshape_around_matmul": Indexed("function_passes/shape", PassInfo(
        name='eliminate_reshape_around_matmul', opt_level=2, kind='rewrite',
        required=('infer_shapes',),
        touches=('Flatten', 'MatMul', 'Reshape', 'Squeeze', 'Unsqueeze'),
    ), ('Flatten MatMul', 'MatMul Reshape', 'MatMul Squeeze', 'MatMul Unsqueeze')),

    "eliminate_reshape_around_rows": Indexed("function_passes/shape", PassInfo(
        name='eliminate_reshape_around_rows', opt_level=2, kind='function',
        required=('infer_shapes',),
        touches=('Reshape',),
    ), ('Reshape',)),

    "eliminate_reshape_before_reduce": Indexed("function_passes/reduction", PassInfo(
        name='eliminate_reshape_before_reduce', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=(
            'Flatten', 'ReduceL1', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp', 'ReduceMax',
            'ReduceMean', 'ReduceMin', 'ReduceProd', 'ReduceSum', 'ReduceSumSquare', 'Reshape',
            'Squeeze', 'Transpose', 'Unsqueeze',
        ),
        numerics=Numerics.REASSOCIATING,
    ), (
        'ReduceL1', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp', 'ReduceMax', 'ReduceMean',
        'ReduceMin', 'ReduceProd', 'ReduceSum', 'ReduceSumSquare',
    )),

    "eliminate_same_operands": Indexed("function_passes/arithmetic", PassInfo(
        name='eliminate_same_operands', opt_level=2, kind='rewrite',
        required=('infer_shapes',),
        touches=('And', 'BitwiseAnd', 'BitwiseOr', 'Expand', 'Max', 'Min', 'Or', 'Where'),
    ), ('And', 'BitwiseAnd', 'BitwiseOr', 'Max', 'Min', 'Or', 'Where')),

    "eliminate_sequence": Indexed("function_passes/gather_slice", PassInfo(
        name='eliminate_sequence', opt_level=1, kind='function',
        touches=('ConcatFromSequence', 'SequenceAt'),
    ), ('ConcatFromSequence', 'SequenceAt')),

    "eliminate_split_concat": Indexed("function_passes/gather_slice", PassInfo(
        name='eliminate_split_concat', opt_level=1, kind='rewrite',
        touches=('Concat',),
    ), ('Concat',)),

    "eliminate_squeeze_unsqueeze": Indexed("function_passes/shape", PassInfo(
        name='eliminate_squeeze_unsqueeze', opt_level=1, kind='rewrite',
        touches=('Squeeze', 'Unsqueeze'),
    ), ('Squeeze Unsqueeze',)),

    "eliminate_transpose_around_elementwise": Indexed("function_passes/layout", PassInfo(
        name='eliminate_transpose_around_elementwise', opt_level=2, kind='function',
        required=('infer_shapes',),
        touches=('Transpose', 'elementwise'),
    ), ('Transpose',)),

    "eliminate_unused_initializer": Indexed("function_passes/constant", PassInfo(
        name='eliminate_unused_initializer', kind='function',
    ), None),

    "eliminate_where": Indexed("function_passes/arithmetic", PassInfo(
        name='eliminate_where', opt_level=2, kind='rewrite',
        touches=('Where',),
    ), ('Where',)),

    "eliminate_zero_addend": Indexed("function_passes/arithmetic", PassInfo(
        name='eliminate_zero_addend', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Add', 'Sub'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add', 'Sub')),

    "eliminate_zero_bias": Indexed("function_passes/conv", PassInfo(
        name='eliminate_zero_bias', opt_level=1, kind='function',
        touches=('QLinearConv',),
    ), ('QLinearConv',)),

    "eliminate_zero_state": Indexed("function_passes/recurrent", PassInfo(
        name='eliminate_zero_state', opt_level=1, kind='function',
        touches=('GRU', 'LSTM', 'RNN'),
    ), ('GRU', 'LSTM', 'RNN')),

    "eta_expand": Indexed("module_passes/functions", PassInfo(
        name='eta_expand', opt_level=None,
        conflicts=('inline',),
        touches=('*',),
        options=(
            Option('ops', tuple[str, ...], (),
                'the operators that are wrapped: `Relu`, `com.microsoft::Gelu`; `*` is all of '
                'them; none without it.'),
            Option('calls', bool, False, 'wrap calls of local functions too.'),
            Option('domain', str, 'tiered.expanded', 'the domain of the new functions.'),
        ),
    ), None),

    "explicit_global_pool": Indexed("function_passes/pooling", PassInfo(
        name='explicit_global_pool', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('GlobalAveragePool', 'GlobalMaxPool'),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('GlobalAveragePool', 'GlobalMaxPool')),

    "extract": Indexed("module_passes/interface", PassInfo(
        name='extract', opt_level=None,
        required=('infer_shapes',),
        followed_by=('remove_unused_functions', 'remove_unused_opsets'),
        touches=('*',),
        changes_interface=True,
        options=(
            Option('inputs', tuple[str, ...], (),
                'tensors that become the inputs, in this order. The inputs of the model that '
                'are still needed follow. By default, only these.'),
            Option('outputs', tuple[str, ...], (),
                "tensors that become the outputs, in this order; by default the model's outputs"
                ' that depend on `inputs`.'),
        ),
    ), None),

    "extract_constant_to_initializer": Indexed("function_passes/constant", PassInfo(
        name='extract_constant_to_initializer', opt_level=1, kind='function',
        touches=('Constant',),
    ), ('Constant',)),

    "factorize": Indexed("function_passes/streamline", PassInfo(
        name='factorize', opt_level=None, kind='rewrite',
        followed_by=('eliminate_unused_initializer',),
        touches=('Add', 'Div', 'Mul', 'Sub'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add', 'Sub')),

    "fast_exp": Indexed("function_passes/activation", PassInfo(
        name='fast_exp', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Exp',),
        numerics=Numerics.APPROXIMATE,
        legalizes='default',
    ), ('Exp',)),

    "fast_softmax": Indexed("function_passes/activation", PassInfo(
        name='fast_softmax', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Softmax',),
        numerics=Numerics.APPROXIMATE,
    ), ('Softmax',)),

    "fast_tanh": Indexed("function_passes/activation", PassInfo(
        name='fast_tanh', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Tanh',),
        numerics=Numerics.APPROXIMATE,
        legalizes='default',
    ), ('Tanh',)),

    "fill_squeeze_axes": Indexed("function_passes/shape", PassInfo(
        name='fill_squeeze_axes', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Squeeze',),
    ), ('Squeeze',)),

    "final_check": Indexed("module_passes/check", PassInfo(
        name='final_check',
        analysis=True,
    ), None),

    "float_to_bfloat16": Indexed("module_passes/precision", PassInfo(
        name='float_to_bfloat16', opt_level=None,
        required=('inline', 'eliminate_deadend'),
        followed_by=('eliminate_nop_cast', 'eliminate_unused_initializer', 'eliminate_deadend'),
        touches=('*',),
        numerics=Numerics.LOSSY,
        interface_options=(('keep_io_types', False),),
        options=(
            Option('keep_io_types', bool, True, 'inputs and outputs of the model stay float.'),
            Option('skip_op_types', tuple[str, ...], (), 'operators that stay float.'),
            Option('skip_nodes', tuple[str, ...], (),
                'globs of the names of nodes that stay float.'),
            Option('force_op_types', tuple[str, ...], (),
                'operators that do not, if the schema allows it.'),
            Option('force_nodes', tuple[str, ...], (), 'globs of the names of nodes that do not.'),
        ),
    ), None),

    "float_to_fp8": Indexed("module_passes/precision", PassInfo(
        name='float_to_fp8', opt_level=None,
        required=('inline',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Conv', 'ConvTranspose', 'Gemm', 'MatMul'),
        numerics=Numerics.LOSSY,
        options=(
            Option('format', Literal['E4M3FN', 'E4M3FNUZ', 'E5M2', 'E5M2FNUZ', 'F143', 'F152'], 'E4M3FN',
                "the type of data; F143 and F152 are Graphcore's: E4M3FNUZ and E5M2FNUZ."),
            Option('weight_format', Literal['E4M3FN', 'E4M3FNUZ', 'E5M2', 'E5M2FNUZ', 'F143', 'F152'], 'E4M3FN',
                'the type of weights.'),
            Option('exponent', int | None, None,
                'the scale of all data is 2 to this power; none for the largest measured '
                'number.'),
            Option('weight_exponent', int | None, None,
                'the same for weights; none for the largest number of each channel.'),
            Option('exponents', tuple[str, ...], (),
                'other exponents of data by node, as `encoder/*=-3`; the name may be a glob.'),
            Option('weight_exponents', tuple[str, ...], (), 'the same for weights.'),
            Option('inputs', tuple[str, ...], (),
                'files to measure on: x.npy, feeds.npz or a folder; made without any.'),
            Option('seed', int, 0, 'of generated inputs.'),
            Option('samples', int, 8, 'how many inputs are made.'),
            Option('min_elements', int, 1024, 'smaller weights stay.'),
            Option('skip_op_types', tuple[str, ...], (), 'operators that stay float.'),
            Option('skip_nodes', tuple[str, ...], (),
                'globs of the names of nodes that stay float.'),
            Option('budget', str, '',
                'the limit of the outputs, as cosine>=0.999; products return to float until it '
                'holds; empty for none.'),
        ),
    ), None),

    "float_to_half": Indexed("module_passes/precision", PassInfo(
        name='float_to_half', opt_level=None,
        required=('inline', 'eliminate_deadend'),
        followed_by=('eliminate_nop_cast', 'eliminate_unused_initializer', 'eliminate_deadend'),
        touches=('*',),
        numerics=Numerics.LOSSY,
        interface_options=(('keep_io_types', False),),
        options=(
            Option('keep_io_types', bool, True, 'inputs and outputs of the model stay float.'),
            Option('skip_op_types', tuple[str, ...], (), 'operators that stay float.'),
            Option('skip_nodes', tuple[str, ...], (),
                'globs of the names of nodes that stay float.'),
            Option('force_op_types', tuple[str, ...], (),
                'operators that do not, if the schema allows it.'),
            Option('force_nodes', tuple[str, ...], (), 'globs of the names of nodes that do not.'),
            Option('measure', bool, False,
                'run the model: what leaves the range of float16 on inputs stays float.'),
            Option('inputs', tuple[str, ...], (),
                'files to measure on: x.npy, feeds.npz or a folder; made without any.'),
            Option('seed', int, 0, 'of generated inputs.'),
            Option('samples', int, 2, 'how many inputs are made.'),
        ),
    ), None),

    "float_to_mixed": Indexed("module_passes/precision", PassInfo(
        name='float_to_mixed', opt_level=None,
        required=('inline', 'eliminate_deadend'),
        followed_by=('eliminate_nop_cast', 'eliminate_unused_initializer', 'eliminate_deadend'),
        touches=('*',),
        numerics=Numerics.LOSSY,
        interface_options=(('keep_io_types', False),),
        options=(
            Option('to', Literal['fp16', 'bf16'], 'fp16', 'the narrower type.'),
            Option('budget', str, '',
                'the limit of the outputs: cosine>=0.999, sqnr>=40, relative<=1e-3, '
                'max_abs<=0.1 or mean_abs<=0.01; empty for none.'),
            Option('inputs', tuple[str, ...], (),
                'files to measure on: x.npy, feeds.npz or a folder; made without any.'),
            Option('order', Literal['auto', 'error', 'sensitivity'], 'auto',
                'the worst nodes for a budget by their own error, or by its effect on the '
                'outputs, by gradients; auto is the effect, and the error where an operator has'
                ' no gradient.'),
            Option('max_error', float, 0.05,
                'a node with a larger error of its own, L2 error / L2 norm, stays float.'),
            Option('keep_io_types', bool, True, 'inputs and outputs of the model stay float.'),
            Option('skip_op_types', tuple[str, ...], (), 'operators that stay float.'),
            Option('skip_nodes', tuple[str, ...], (),
                'globs of the names of nodes that stay float.'),
            Option('force_op_types', tuple[str, ...], (),
                'operators that do not, if the schema allows it.'),
            Option('force_nodes', tuple[str, ...], (), 'globs of the names of nodes that do not.'),
            Option('seed', int, 0, 'of generated inputs.'),
            Option('samples', int, 2, 'how many inputs are made.'),
        ),
    ), None),

    "fold_constant": Indexed("function_passes/constant", PassInfo(
        name='fold_constant', opt_level=2, kind='function',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('*',),
        options=(
            Option('max_growth', Size, '1%',
                'the most growth, in bytes or as a share of the model; at least 4 KiB.'),
            Option('max_tensor_size', int, -1,
                'the most bytes of a computed constant; -1 for no limit.'),
        ),
    ), None),

    "fold_quantize": Indexed("function_passes/quantization", PassInfo(
        name='fold_quantize', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('QuantizeLinear', 'com.microsoft::QuantizeLinear'),
    ), ('QuantizeLinear', 'com.microsoft::QuantizeLinear')),

    "format_parameter": Indexed("function_passes/constant", PassInfo(
        name='format_parameter', opt_level=None, kind='function',
        conflicts=('eliminate_duplicate_initializer',),
    ), None),

    "forward_fold_scale_axis": Indexed("function_passes/scale_axis", PassInfo(
        name='forward_fold_scale_axis', opt_level=3, kind='function',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Conv', 'ConvTranspose', 'Div', 'Gemm', 'MatMul', 'Mul'),
        numerics=Numerics.REASSOCIATING,
    ), ('Div', 'Mul')),

    "fp8_weight": Indexed("module_passes/precision", PassInfo(
        name='fp8_weight', opt_level=None,
        followed_by=('eliminate_unused_initializer',),
        touches=('Conv', 'Gather', 'Gemm', 'MatMul'),
        numerics=Numerics.LOSSY,
        options=(
            Option('format', Literal['E4M3FN', 'E4M3FNUZ', 'E5M2', 'E5M2FNUZ', 'F143', 'F152'], 'E4M3FN',
                "the type; F143 and F152 are Graphcore's, which are E4M3FNUZ and E5M2FNUZ."),
            Option('exponent', int | None, None,
                'all scales are 2 to this power; none for the largest number of each channel.'),
            Option('exponents', tuple[str, ...], (),
                'other exponents by node, as `encoder/*=-3`; the name may be a glob.'),
            Option('min_elements', int, 1024, 'smaller weights stay.'),
            Option('skip_op_types', tuple[str, ...], (), 'operators that keep their weights.'),
            Option('skip_nodes', tuple[str, ...], (),
                'globs of the names of nodes that keep their weights.'),
            Option('budget', str, '',
                'the limit of the outputs, as cosine>=0.999; weights return to float until it '
                'holds; empty for none.'),
            Option('inputs', tuple[str, ...], (),
                'files to measure the budget on: x.npy, feeds.npz or a folder; made without '
                'any.'),
            Option('seed', int, 0, 'of generated inputs.'),
            Option('samples', int, 2, 'how many inputs are made.'),
        ),
    ), None),

    "fuse_affine_into_comparison": Indexed("function_passes/streamline", PassInfo(
        name='fuse_affine_into_comparison', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Add', 'Div', 'Greater', 'GreaterOrEqual', 'Less', 'LessOrEqual', 'Mul', 'Sub'),
    ), ('Greater', 'GreaterOrEqual', 'Less', 'LessOrEqual')),

    "fuse_affine_into_layernorm": Indexed("function_passes/normalization", PassInfo(
        name='fuse_affine_into_layernorm', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Add', 'LayerNormalization', 'Mul'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add LayerNormalization', 'LayerNormalization Mul')),

    "fuse_affine_into_threshold": Indexed("function_passes/streamline", PassInfo(
        name='fuse_affine_into_threshold', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=(
            'Add', 'Div', 'Mul', 'Sub', 'onnx.brevitas::MultiThreshold',
            'qonnx.custom_op.general::MultiThreshold',
        ),
    ), ('onnx.brevitas::MultiThreshold', 'qonnx.custom_op.general::MultiThreshold')),

    "fuse_attention": Indexed("function_passes/attention", PassInfo(
        name='fuse_attention', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Add', 'Div', 'IsNaN', 'MatMul', 'Mul', 'Softmax', 'Where'),
        numerics=Numerics.REASSOCIATING,
    ), ('MatMul Softmax',)),

    "fuse_bias_add": Indexed("function_passes/conv", PassInfo(
        name='fuse_bias_add', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Add', 'Conv', 'ConvTranspose', 'Squeeze'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add',)),

    "fuse_bias_gelu": Indexed("function_passes/activation", PassInfo(
        name='fuse_bias_gelu', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::BiasGelu', 'com.microsoft::FastGelu'),
        touches=('Add', 'Gelu', 'com.microsoft::FastGelu', 'com.microsoft::Gelu'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add Gelu', 'Add com.microsoft::FastGelu', 'Add com.microsoft::Gelu')),

    "fuse_blocks_into_matmul": Indexed("function_passes/quantization", PassInfo(
        name='fuse_blocks_into_matmul', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        makes=('com.microsoft::MatMulNBits',),
        touches=('DequantizeLinear', 'MatMul'),
        quantization='operators',
        numerics=Numerics.REASSOCIATING,
    ), ('DequantizeLinear MatMul',)),

    "fuse_bn_into_conv": Indexed("function_passes/conv", PassInfo(
        name='fuse_bn_into_conv', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('BatchNormalization', 'Conv', 'ConvTranspose'),
        numerics=Numerics.REASSOCIATING,
        options=(
            Option('max_growth', Size, '1%',
                'the most growth by all copies, in bytes or as a share of the model; at least 4'
                ' KiB.'),
        ),
    ), ('BatchNormalization',)),

    "fuse_bn_into_gemm": Indexed("function_passes/matmul", PassInfo(
        name='fuse_bn_into_gemm', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('BatchNormalization', 'Gemm', 'MatMul'),
        numerics=Numerics.REASSOCIATING,
    ), ('BatchNormalization',)),

    "fuse_cast_into_constantofshape": Indexed("function_passes/shape", PassInfo(
        name='fuse_cast_into_constantofshape', opt_level=1, kind='rewrite',
        touches=('Cast', 'ConstantOfShape'),
    ), ('Cast ConstantOfShape',)),

    "fuse_cast_into_onehot": Indexed("function_passes/gather_slice", PassInfo(
        name='fuse_cast_into_onehot', opt_level=2, kind='rewrite',
        touches=('Cast', 'OneHot'),
    ), ('Cast OneHot',)),

    "fuse_clip_into_quantize": Indexed("function_passes/quantization", PassInfo(
        name='fuse_clip_into_quantize', opt_level=2, kind='rewrite',
        touches=('Clip', 'QuantizeLinear', 'Relu', 'com.microsoft::QuantizeLinear'),
    ), ('QuantizeLinear', 'com.microsoft::QuantizeLinear')),

    "fuse_concat_into_slice": Indexed("function_passes/gather_slice", PassInfo(
        name='fuse_concat_into_slice', opt_level=1, kind='function',
        required=('infer_shapes',),
        touches=('Concat',),
    ), ('Concat',)),

    "fuse_consecutive_add": Indexed("function_passes/arithmetic", PassInfo(
        name='fuse_consecutive_add', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Add', 'Sub'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add', 'Sub')),

    "fuse_consecutive_cast": Indexed("function_passes/cast", PassInfo(
        name='fuse_consecutive_cast', opt_level=1, kind='rewrite',
        touches=('Cast',),
    ), ('Cast',)),

    "fuse_consecutive_clip": Indexed("function_passes/arithmetic", PassInfo(
        name='fuse_consecutive_clip', opt_level=2, kind='rewrite',
        touches=('Clip', 'Max', 'Min', 'Relu'),
    ), ('Clip', 'Max', 'Relu')),

    "fuse_consecutive_concat": Indexed("function_passes/gather_slice", PassInfo(
        name='fuse_consecutive_concat', opt_level=1, kind='rewrite',
        touches=('Concat',),
    ), ('Concat',)),

    "fuse_consecutive_flatten": Indexed("function_passes/shape", PassInfo(
        name='fuse_consecutive_flatten', opt_level=1, kind='rewrite',
        required=('infer_shapes',),
        touches=('Flatten', 'Reshape', 'Squeeze', 'Unsqueeze'),
    ), ('Flatten',)),

    "fuse_consecutive_gather": Indexed("function_passes/gather_slice", PassInfo(
        name='fuse_consecutive_gather', opt_level=1, kind='rewrite',
        touches=('Gather',),
    ), ('Gather',)),

    "fuse_consecutive_mask": Indexed("function_passes/attention", PassInfo(
        name='fuse_consecutive_mask', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_common_subexpr',),
        touches=('Add', 'Softmax'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add Softmax',)),

    "fuse_consecutive_minmax": Indexed("function_passes/arithmetic", PassInfo(
        name='fuse_consecutive_minmax', opt_level=1, kind='rewrite',
        touches=('Max', 'Min'),
    ), ('Max', 'Min')),

    "fuse_consecutive_reshape": Indexed("function_passes/shape", PassInfo(
        name='fuse_consecutive_reshape', opt_level=1, kind='rewrite',
        touches=('Cast', 'Flatten', 'Reshape', 'Squeeze', 'Unsqueeze'),
    ), ('Reshape',)),

    "fuse_consecutive_scale": Indexed("function_passes/arithmetic", PassInfo(
        name='fuse_consecutive_scale', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Div', 'Mul', 'Reciprocal'),
        numerics=Numerics.REASSOCIATING,
    ), ('Div', 'Mul', 'Reciprocal')),

    "fuse_consecutive_slice": Indexed("function_passes/gather_slice", PassInfo(
        name='fuse_consecutive_slice', opt_level=1, kind='rewrite',
        touches=('Slice',),
    ), ('Slice',)),

    "fuse_consecutive_squeeze": Indexed("function_passes/shape", PassInfo(
        name='fuse_consecutive_squeeze', opt_level=1, kind='rewrite',
        touches=('Squeeze',),
    ), ('Squeeze',)),

    "fuse_consecutive_transpose": Indexed("function_passes/layout", PassInfo(
        name='fuse_consecutive_transpose', opt_level=1, kind='rewrite',
        touches=('Transpose',),
    ), ('Transpose',)),

    "fuse_consecutive_unsqueeze": Indexed("function_passes/shape", PassInfo(
        name='fuse_consecutive_unsqueeze', opt_level=1, kind='rewrite',
        touches=('Unsqueeze',),
    ), ('Unsqueeze',)),

    "fuse_conv_activation": Indexed("function_passes/conv", PassInfo(
        name='fuse_conv_activation', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::FusedConv',),
        touches=('Clip', 'Conv', 'HardSigmoid', 'LeakyRelu', 'Relu', 'Sigmoid', 'Tanh'),
        numerics=Numerics.REASSOCIATING,
    ), (
        'Clip Conv', 'Conv HardSigmoid', 'Conv LeakyRelu', 'Conv Relu', 'Conv Sigmoid',
        'Conv Tanh',
    )),

    "fuse_dequantize_into_matmul": Indexed("function_passes/quantization", PassInfo(
        name='fuse_dequantize_into_matmul', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::MatMulIntegerToFloat',),
        touches=('MatMul',),
        quantization='operators',
        numerics=Numerics.REASSOCIATING,
    ), ('MatMul',)),

    "fuse_dynamic_quantize_matmul": Indexed("function_passes/quantization", PassInfo(
        name='fuse_dynamic_quantize_matmul', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::DynamicQuantizeMatMul',),
        touches=(
            'Add', 'Cast', 'DynamicQuantizeLinear', 'MatMulInteger', 'Mul',
            'com.microsoft::DynamicQuantizeMatMul',
        ),
        quantization='operators',
        numerics=Numerics.REASSOCIATING,
    ), (
        'Add com.microsoft::DynamicQuantizeMatMul', 'Cast DynamicQuantizeLinear MatMulInteger Mul',
    )),

    "fuse_embed_layernorm": Indexed("function_passes/normalization", PassInfo(
        name='fuse_embed_layernorm', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::EmbedLayerNormalization',),
        touches=('Add', 'Gather', 'LayerNormalization'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add Gather LayerNormalization',)),

    "fuse_expand_into_binary": Indexed("function_passes/shape", PassInfo(
        name='fuse_expand_into_binary', opt_level=2, kind='function',
        touches=('Expand', 'elementwise'),
    ), ('Expand',)),

    "fuse_gather_into_shape": Indexed("function_passes/shape", PassInfo(
        name='fuse_gather_into_shape', opt_level=1, kind='rewrite',
        required=('infer_shapes',),
        touches=('Gather', 'Shape', 'Slice', 'Unsqueeze'),
    ), ('Gather Shape', 'Shape Slice')),

    "fuse_gelu": Indexed("function_passes/activation", PassInfo(
        name='fuse_gelu', opt_level=3, kind='rewrite',
        may_make=('com.microsoft::Gelu', 'com.microsoft::FastGelu'),
        touches=('Add', 'Div', 'Erf', 'Mul', 'Neg', 'Pow', 'Sub', 'Tanh'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add Mul Tanh', 'Erf Mul')),

    "fuse_gemm": Indexed("function_passes/matmul", PassInfo(
        name='fuse_gemm', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Add', 'Gemm', 'MatMul'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add',)),

    "fuse_gemm_activation": Indexed("function_passes/matmul", PassInfo(
        name='fuse_gemm_activation', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::FusedGemm',),
        touches=('Gemm', 'LeakyRelu', 'Relu', 'Sigmoid', 'Tanh'),
        numerics=Numerics.REASSOCIATING,
    ), ('Gemm LeakyRelu', 'Gemm Relu', 'Gemm Sigmoid', 'Gemm Tanh')),

    "fuse_group_query_attention": Indexed("function_passes/attention", PassInfo(
        name='fuse_group_query_attention', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::GroupQueryAttention',),
        touches=(
            'Add', 'Div', 'IsNaN', 'MatMul', 'Mul', 'Reshape', 'Softmax', 'Transpose', 'Where',
        ),
        numerics=Numerics.REASSOCIATING,
    ), ('MatMul Reshape Softmax',)),

    "fuse_groupnorm": Indexed("function_passes/normalization", PassInfo(
        name='fuse_groupnorm', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Add', 'InstanceNormalization', 'Mul', 'Reshape'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add InstanceNormalization Mul Reshape',)),

    "fuse_hardsigmoid": Indexed("function_passes/activation", PassInfo(
        name='fuse_hardsigmoid', opt_level=3, kind='rewrite',
        touches=('Add', 'Clip', 'Div', 'Mul'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add Clip Div', 'Add Clip Mul')),

    "fuse_hardswish": Indexed("function_passes/activation", PassInfo(
        name='fuse_hardswish', opt_level=3, kind='rewrite',
        touches=('Add', 'Clip', 'Div', 'HardSigmoid', 'Mul'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add Clip Mul', 'HardSigmoid Mul')),

    "fuse_instancenorm": Indexed("function_passes/normalization", PassInfo(
        name='fuse_instancenorm', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=(
            'Add', 'Div', 'InstanceNormalization', 'Mul', 'Pow', 'Reciprocal', 'ReduceMean',
            'Sqrt', 'Sub',
        ),
        numerics=Numerics.REASSOCIATING,
    ), (
        'Add Div ReduceMean Sqrt Sub', 'Add InstanceNormalization', 'Add Mul ReduceMean Sub',
        'InstanceNormalization Mul',
    )),

    "fuse_layernorm": Indexed("function_passes/normalization", PassInfo(
        name='fuse_layernorm', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('fuse_affine_into_layernorm',),
        may_make=('LayerNormalization',),
        touches=('Add', 'Div', 'Mul', 'Pow', 'Reciprocal', 'ReduceMean', 'Sqrt', 'Sub'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add Div ReduceMean Sqrt Sub', 'Add Mul ReduceMean Sub')),

    "fuse_log_softmax": Indexed("function_passes/activation", PassInfo(
        name='fuse_log_softmax', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Log', 'Softmax'),
        numerics=Numerics.REASSOCIATING,
    ), ('Log Softmax',)),

    "fuse_matmul_scale": Indexed("function_passes/matmul", PassInfo(
        name='fuse_matmul_scale', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::FusedMatMul',),
        touches=('Cast', 'Div', 'MatMul', 'Mul', 'Transpose', 'com.microsoft::FusedMatMul'),
        numerics=Numerics.REASSOCIATING,
    ), ('Div', 'MatMul', 'Mul', 'com.microsoft::FusedMatMul')),

    "fuse_minmax_into_clip": Indexed("function_passes/arithmetic", PassInfo(
        name='fuse_minmax_into_clip', opt_level=3, kind='rewrite',
        touches=('Max', 'Min', 'Relu'),
        numerics=Numerics.REASSOCIATING,
    ), ('Max Min', 'Min Relu')),

    "fuse_mish": Indexed("function_passes/activation", PassInfo(
        name='fuse_mish', opt_level=3, kind='rewrite',
        touches=('Add', 'Exp', 'Log', 'Mul', 'Softplus', 'Tanh'),
        numerics=Numerics.REASSOCIATING,
    ), ('Mul Tanh',)),

    "fuse_multi_head_attention": Indexed("function_passes/attention", PassInfo(
        name='fuse_multi_head_attention', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::MultiHeadAttention',),
        touches=(
            'Add', 'Div', 'IsNaN', 'MatMul', 'Mul', 'Reshape', 'Softmax', 'Transpose', 'Where',
        ),
        numerics=Numerics.REASSOCIATING,
        options=(
            Option('masked', bool, False,
                'also fuse if a mask is added; at most sizes the kernel is slower with one.'),
        ),
    ), ('MatMul Reshape Softmax Transpose',)),

    "fuse_narrow_gemm": Indexed("function_passes/matmul", PassInfo(
        name='fuse_narrow_gemm', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Add', 'MatMul'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add MatMul',)),

    "fuse_neg": Indexed("function_passes/arithmetic", PassInfo(
        name='fuse_neg', opt_level=2, kind='function',
        touches=('Add', 'Div', 'Mul', 'Neg', 'Sub'),
    ), ('Add', 'Div', 'Mul', 'Neg', 'Sub')),

    "fuse_neg_into_sub": Indexed("function_passes/arithmetic", PassInfo(
        name='fuse_neg_into_sub', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Add', 'Div', 'Mul', 'Neg', 'Sub'),
        numerics=Numerics.REASSOCIATING,
    ), ('Div', 'Mul', 'Neg')),

    "fuse_not_into_where": Indexed("function_passes/arithmetic", PassInfo(
        name='fuse_not_into_where', opt_level=2, kind='rewrite',
        touches=('Not', 'Where'),
    ), ('Not Where',)),

    "fuse_ops": Indexed("module_passes/functions", PassInfo(
        name='fuse_ops', opt_level=None,
        required=('infer_shapes',),
        conflicts=('inline',),
        touches=('*',),
        options=(
            Option('level', int, -1,
                '0 makes no groups, 1 groups without reductions, 2 all; -1 is the level of the '
                'context.'),
            Option('max_depth', int, 256, 'the most nodes of a group.'),
            Option('domain', str, 'tiered.fused', 'the domain of the functions.'),
        ),
    ), None),

    "fuse_pad_into_conv": Indexed("function_passes/conv", PassInfo(
        name='fuse_pad_into_conv', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Conv', 'ConvInteger', 'Pad'),
        numerics=Numerics.REASSOCIATING,
    ), ('Conv Pad', 'ConvInteger Pad')),

    "fuse_pad_into_pool": Indexed("function_passes/pooling", PassInfo(
        name='fuse_pad_into_pool', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('AveragePool', 'MaxPool', 'Pad'),
        numerics=Numerics.REASSOCIATING,
    ), ('AveragePool Pad', 'MaxPool Pad')),

    "fuse_past_into_attention": Indexed("function_passes/attention", PassInfo(
        name='fuse_past_into_attention', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::Attention',),
        touches=('Div', 'MatMul', 'Mul', 'Reshape', 'Softmax', 'Transpose', 'Where'),
        numerics=Numerics.REASSOCIATING,
        options=(
            Option('wide', bool, False,
                'also fuse if x is wider than 256 and the batch is not known to be 1.'),
        ),
    ), ('MatMul Reshape Softmax Transpose Where',)),

    "fuse_qdq_into_binary": Indexed("function_passes/quantization", PassInfo(
        name='fuse_qdq_into_binary', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::QLinearAdd', 'com.microsoft::QLinearMul'),
        touches=('Add', 'Mul', 'QuantizeLinear'),
        quantization='operators',
        numerics=Numerics.REASSOCIATING,
        limits=QUANTIZED,
    ), ('QuantizeLinear',)),

    "fuse_qdq_into_concat": Indexed("function_passes/quantization", PassInfo(
        name='fuse_qdq_into_concat', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::QLinearConcat',),
        touches=('Concat', 'QuantizeLinear'),
        quantization='operators',
        numerics=Numerics.REASSOCIATING,
        limits=QUANTIZED,
    ), ('Concat QuantizeLinear',)),

    "fuse_qdq_into_conv": Indexed("function_passes/quantization", PassInfo(
        name='fuse_qdq_into_conv', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Conv', 'QuantizeLinear'),
        quantization='operators',
        numerics=Numerics.REASSOCIATING,
        limits=QUANTIZED,
    ), ('Conv QuantizeLinear',)),

    "fuse_qdq_into_gemm": Indexed("function_passes/quantization", PassInfo(
        name='fuse_qdq_into_gemm', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::QGemm',),
        touches=('Gemm', 'QuantizeLinear'),
        quantization='operators',
        numerics=Numerics.REASSOCIATING,
        limits=QUANTIZED,
    ), ('Gemm QuantizeLinear',)),

    "fuse_qdq_into_matmul": Indexed("function_passes/quantization", PassInfo(
        name='fuse_qdq_into_matmul', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('MatMul', 'QuantizeLinear'),
        quantization='operators',
        numerics=Numerics.REASSOCIATING,
        limits=QUANTIZED,
    ), ('MatMul QuantizeLinear',)),

    "fuse_qdq_into_move": Indexed("function_passes/quantization", PassInfo(
        name='fuse_qdq_into_move', opt_level=3, kind='rewrite',
        touches=(
            'DepthToSpace', 'Expand', 'Flatten', 'Gather', 'Identity', 'MaxPool', 'QuantizeLinear',
            'Reshape', 'Slice', 'SpaceToDepth', 'Squeeze', 'Tile', 'Transpose', 'Unsqueeze',
        ),
        quantization='operators',
        options=(
            Option('pools', bool, False,
                "also fuse MaxPool; onnxruntime's kernel for integers takes 40 times as long as"
                ' the one for floats.'),
        ),
    ), ('QuantizeLinear',)),

    "fuse_qdq_into_pool": Indexed("function_passes/quantization", PassInfo(
        name='fuse_qdq_into_pool', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::QLinearAveragePool', 'com.microsoft::QLinearGlobalAveragePool'),
        touches=('AveragePool', 'GlobalAveragePool', 'QuantizeLinear'),
        quantization='operators',
        numerics=Numerics.REASSOCIATING,
        limits=QUANTIZED,
    ), ('QuantizeLinear',)),

    "fuse_qdq_into_softmax": Indexed("function_passes/quantization", PassInfo(
        name='fuse_qdq_into_softmax', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::QLinearSoftmax',),
        touches=('QuantizeLinear', 'Softmax'),
        quantization='operators',
        numerics=Numerics.REASSOCIATING,
        limits=QUANTIZED,
    ), ('QuantizeLinear Softmax',)),

    "fuse_qdq_into_unary": Indexed("function_passes/quantization", PassInfo(
        name='fuse_qdq_into_unary', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::QLinearLeakyRelu', 'com.microsoft::QLinearSigmoid'),
        touches=('LeakyRelu', 'QuantizeLinear', 'Sigmoid'),
        quantization='operators',
        numerics=Numerics.REASSOCIATING,
        limits=QUANTIZED,
    ), ('QuantizeLinear',)),

    "fuse_qdq_into_where": Indexed("function_passes/quantization", PassInfo(
        name='fuse_qdq_into_where', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::QLinearWhere',),
        touches=('QuantizeLinear', 'Where'),
        quantization='operators',
        numerics=Numerics.REASSOCIATING,
        limits=QUANTIZED,
    ), ('QuantizeLinear Where',)),

    "fuse_qkv": Indexed("function_passes/matmul", PassInfo(
        name='fuse_qkv', opt_level=4, kind='function',
        required=('infer_shapes',),
        followed_by=('fold_constant', 'eliminate_unused_initializer'),
        touches=('MatMul',),
        numerics=Numerics.REASSOCIATING,
    ), ('MatMul',)),

    "fuse_qkv_into_attention": Indexed("function_passes/attention", PassInfo(
        name='fuse_qkv_into_attention', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        makes=('com.microsoft::Attention',),
        touches=(
            'Add', 'Div', 'IsNaN', 'MatMul', 'Mul', 'Reshape', 'Softmax', 'Transpose', 'Where',
        ),
        numerics=Numerics.REASSOCIATING,
        options=(
            Option('wide', bool, False,
                'also fuse if x is wider than 256, unless the batch is 1 or the length at least'
                ' 128.'),
        ),
    ), ('MatMul Reshape Softmax Transpose',)),

    "fuse_quick_gelu": Indexed("function_passes/activation", PassInfo(
        name='fuse_quick_gelu', opt_level=3, kind='rewrite',
        makes=('com.microsoft::QuickGelu',),
        touches=('Mul', 'Sigmoid'),
        numerics=Numerics.REASSOCIATING,
    ), ('Mul Sigmoid',)),

    "fuse_reciprocal_into_div": Indexed("function_passes/arithmetic", PassInfo(
        name='fuse_reciprocal_into_div', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Div', 'Mul', 'Reciprocal'),
        numerics=Numerics.REASSOCIATING,
    ), ('Mul',)),

    "fuse_reshape_into_reduce": Indexed("function_passes/reduction", PassInfo(
        name='fuse_reshape_into_reduce', opt_level=1, kind='rewrite',
        required=('infer_shapes',),
        touches=(
            'Flatten', 'ReduceL1', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp', 'ReduceMax',
            'ReduceMean', 'ReduceMin', 'ReduceProd', 'ReduceSum', 'ReduceSumSquare', 'Reshape',
            'Squeeze', 'Unsqueeze',
        ),
    ), ('Flatten', 'Reshape', 'Squeeze', 'Unsqueeze')),

    "fuse_residual_into_conv": Indexed("function_passes/conv", PassInfo(
        name='fuse_residual_into_conv', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::FusedConv',),
        touches=('Add', 'Conv', 'Relu', 'com.microsoft::FusedConv'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add Conv', 'Relu com.microsoft::FusedConv')),

    "fuse_rmsnorm": Indexed("function_passes/normalization", PassInfo(
        name='fuse_rmsnorm', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=(
            'Add', 'Div', 'Mul', 'Pow', 'RMSNormalization', 'Reciprocal', 'ReduceMean', 'Sqrt',
        ),
        numerics=Numerics.REASSOCIATING,
    ), ('Add Div ReduceMean Sqrt', 'Add Mul ReduceMean', 'Mul RMSNormalization')),

    "fuse_rotary_embedding": Indexed("function_passes/attention", PassInfo(
        name='fuse_rotary_embedding', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        may_make=('com.microsoft::RotaryEmbedding',),
        touches=('Add', 'Concat', 'Mul', 'Neg', 'Slice', 'Split', 'Sub'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add Concat Mul Neg', 'Add Concat Mul Split Sub')),

    "fuse_scale_into_matmul_integer": Indexed("function_passes/quantization", PassInfo(
        name='fuse_scale_into_matmul_integer', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::MatMulIntegerToFloat',),
        touches=('Add', 'Cast', 'MatMulInteger', 'Mul', 'com.microsoft::MatMulIntegerToFloat'),
        quantization='operators',
        numerics=Numerics.REASSOCIATING,
    ), ('Add com.microsoft::MatMulIntegerToFloat', 'Cast MatMulInteger Mul')),

    "fuse_silu": Indexed("function_passes/activation", PassInfo(
        name='fuse_silu', opt_level=None, kind='rewrite',
        touches=('Mul', 'Sigmoid'),
        numerics=Numerics.REASSOCIATING,
    ), ('Mul Sigmoid',)),

    "fuse_skip_layernorm": Indexed("function_passes/normalization", PassInfo(
        name='fuse_skip_layernorm', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::SkipLayerNormalization',),
        touches=('Add', 'LayerNormalization'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add LayerNormalization',)),

    "fuse_skip_rmsnorm": Indexed("function_passes/normalization", PassInfo(
        name='fuse_skip_rmsnorm', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        makes=('com.microsoft::SkipSimplifiedLayerNormalization',),
        touches=('Add', 'Div', 'Mul', 'Pow', 'Reciprocal', 'ReduceMean', 'Sqrt'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add Mul ReduceMean',)),

    "fuse_slice_into_expand": Indexed("function_passes/shape", PassInfo(
        name='fuse_slice_into_expand', opt_level=2, kind='rewrite',
        required=('infer_shapes',),
        touches=('Expand', 'Gather', 'Slice'),
    ), ('Expand Gather', 'Expand Slice')),

    "fuse_slice_into_gather": Indexed("function_passes/gather_slice", PassInfo(
        name='fuse_slice_into_gather', opt_level=1, kind='rewrite',
        required=('infer_shapes',),
        touches=('Gather', 'Slice'),
    ), ('Gather Slice',)),

    "fuse_slices_into_split": Indexed("function_passes/gather_slice", PassInfo(
        name='fuse_slices_into_split', opt_level=3, kind='function',
        required=('infer_shapes',),
        touches=('Slice',),
    ), ('Slice',)),

    "fuse_softmax": Indexed("function_passes/activation", PassInfo(
        name='fuse_softmax', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Div', 'Exp', 'ReduceMax', 'ReduceSum', 'Sub'),
        numerics=Numerics.REASSOCIATING,
    ), ('Div Exp ReduceMax ReduceSum Sub',)),

    "fuse_space_to_depth": Indexed("function_passes/layout", PassInfo(
        name='fuse_space_to_depth', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Reshape', 'Transpose'),
    ), ('Reshape Transpose',)),

    "fuse_squeeze_into_reduce": Indexed("function_passes/reduction", PassInfo(
        name='fuse_squeeze_into_reduce', opt_level=1, kind='rewrite',
        touches=(
            'ReduceL1', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp', 'ReduceMax', 'ReduceMean',
            'ReduceMin', 'ReduceProd', 'ReduceSum', 'ReduceSumSquare', 'Squeeze',
        ),
    ), ('Squeeze',)),

    "fuse_squeeze_into_reshape": Indexed("function_passes/shape", PassInfo(
        name='fuse_squeeze_into_reshape', opt_level=1, kind='rewrite',
        required=('infer_shapes',),
        touches=('Reshape', 'Squeeze', 'Unsqueeze'),
    ), ('Reshape Squeeze', 'Reshape Unsqueeze')),

    "fuse_tile_into_gather": Indexed("function_passes/gather_slice", PassInfo(
        name='fuse_tile_into_gather', opt_level=1, kind='rewrite',
        required=('infer_shapes',),
        touches=('Gather', 'Slice', 'Tile'),
    ), ('Gather Tile', 'Slice Tile')),

    "fuse_transpose_into_gather": Indexed("function_passes/gather_slice", PassInfo(
        name='fuse_transpose_into_gather', opt_level=1, kind='rewrite',
        required=('infer_shapes',),
        touches=('Gather', 'Transpose'),
    ), ('Gather Transpose',)),

    "fuse_transpose_into_matmul": Indexed("function_passes/matmul", PassInfo(
        name='fuse_transpose_into_matmul', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Cast', 'MatMul', 'Transpose'),
        numerics=Numerics.REASSOCIATING,
    ), ('MatMul Transpose',)),

    "fuse_unsqueeze_into_dequantize": Indexed("function_passes/quantization", PassInfo(
        name='fuse_unsqueeze_into_dequantize', opt_level=2, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('DequantizeLinear', 'Unsqueeze', 'com.microsoft::DequantizeLinear'),
    ), ('Unsqueeze',)),

    "fuse_unsqueeze_into_reduce": Indexed("function_passes/reduction", PassInfo(
        name='fuse_unsqueeze_into_reduce', opt_level=1, kind='rewrite',
        touches=(
            'ReduceL1', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp', 'ReduceMax', 'ReduceMean',
            'ReduceMin', 'ReduceProd', 'ReduceSum', 'ReduceSumSquare', 'Unsqueeze',
        ),
    ), ('Unsqueeze',)),

    "fuse_value_bias": Indexed("function_passes/attention", PassInfo(
        name='fuse_value_bias', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Add',),
        numerics=Numerics.REASSOCIATING,
    ), ('Add',)),

    "fuse_view_into_binary": Indexed("function_passes/shape", PassInfo(
        name='fuse_view_into_binary', opt_level=2, kind='function',
        required=('infer_shapes',),
        touches=('Flatten', 'Reshape', 'Squeeze', 'Unsqueeze', 'elementwise'),
    ), ('Flatten', 'Reshape', 'Squeeze', 'Unsqueeze')),

    "gradient": Indexed("module_passes/gradient", PassInfo(
        name='gradient', opt_level=None,
        required=('inline', 'infer_shapes'),
        touches=('*',),
        changes_interface=True,
        options=(
            Option('of', tuple[str, ...], (),
                'the values that are differentiated; the only float output by default. Several '
                'are added up, each times its seed.'),
            Option('with_respect_to', tuple[str, ...], (),
                'inputs and initializers, with wildcards; by default all float inputs.'),
            Option('seed', Literal['none', 'ones', 'input'], 'none',
                '`none`: each value of `of` is a single number. `ones`: its elements are added '
                'up. `input`: each is weighed by an input `seed/<name>`: a vector-Jacobian '
                'product.'),
            Option('stop_at', tuple[str, ...], (),
                'labels of nodes and names of values that count as constants.'),
            Option('higher_order', bool, False,
                'an error if a node of the backward pass has no gradient itself.'),
            Option('recompute', bool, False,
                'the backward pass computes tensors of the forward pass again, segment by '
                'segment, where that lowers the peak of memory. The copies are marked, so that '
                'no pass merges them: the IR version becomes 10 at least.'),
            Option('stay', tuple[str, ...], (),
                'tensors and nodes, with wildcards, that are not computed again, nor what comes'
                ' after the last of them; all others are. By default, those with the lowest '
                'peak of memory.'),
            Option('dims', tuple[str, ...], (),
                'the sizes of dynamic dims for the peak, as `name=size`.'),
            Option('default_dim', int, 16, 'the size of all others.'),
        ),
    ), None),

    "group_constants": Indexed("function_passes/arithmetic", PassInfo(
        name='group_constants', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('fold_constant', 'eliminate_unused_initializer'),
        touches=('Add', 'Mul'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add', 'Mul')),

    "hoist_from_if": Indexed("function_passes/control_flow", PassInfo(
        name='hoist_from_if', opt_level=None, kind='function',
        conflicts=('sink_into_if',),
        touches=('*',),
    ), ('If',)),

    "hoist_quantize": Indexed("function_passes/quantization", PassInfo(
        name='hoist_quantize', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=(
            'DepthToSpace', 'Expand', 'Flatten', 'Gather', 'Identity', 'QuantizeLinear', 'Reshape',
            'Slice', 'SpaceToDepth', 'Squeeze', 'Tile', 'Transpose', 'Unsqueeze',
            'com.microsoft::QuantizeLinear',
        ),
    ), ('QuantizeLinear', 'com.microsoft::QuantizeLinear')),

    "hoist_quantize_past_split": Indexed("function_passes/quantization", PassInfo(
        name='hoist_quantize_past_split', opt_level=None, kind='function',
        required=('infer_shapes',),
        touches=('QuantizeLinear', 'Split', 'com.microsoft::QuantizeLinear'),
    ), ('Split',)),

    "hoist_slice": Indexed("function_passes/gather_slice", PassInfo(
        name='hoist_slice', opt_level=2, kind='function',
        required=('infer_shapes',),
        touches=('Gather', 'Slice', 'elementwise'),
    ), ('Gather', 'Slice')),

    "import_qonnx": Indexed("module_passes/quantization", PassInfo(
        name='import_qonnx', opt_level=None,
        conflicts=('inline',),
        touches=(
            'onnx.brevitas::BipolarQuant', 'onnx.brevitas::MultiThreshold', 'onnx.brevitas::Quant',
            'onnx.brevitas::Trunc', 'qonnx.custom_op.general::BipolarQuant',
            'qonnx.custom_op.general::MultiThreshold', 'qonnx.custom_op.general::Quant',
            'qonnx.custom_op.general::Trunc',
        ),
    ), (
        'onnx.brevitas::BipolarQuant', 'onnx.brevitas::MultiThreshold', 'onnx.brevitas::Quant',
        'onnx.brevitas::Trunc', 'qonnx.custom_op.general::BipolarQuant',
        'qonnx.custom_op.general::MultiThreshold', 'qonnx.custom_op.general::Quant',
        'qonnx.custom_op.general::Trunc',
    )),

    "infer_shapes": Indexed("module_passes/metadata", PassInfo(
        name='infer_shapes',
        options=(
            Option('annotate', bool, False,
                'write the inferred types of inner values into the model, as value_info.'),
        ),
    ), None),

    "inline": Indexed("module_passes/functions", PassInfo(
        name='inline', opt_level=1,
        followed_by=('remove_unused_functions', 'remove_unused_opsets'),
        touches=('*',),
        options=(
            Option('once', bool, False, 'inline only functions with a single call.'),
            Option('max_nodes', int, 200000,
                'if the model would have more nodes than this, nothing is inlined: with '
                'functions that each call the next one twice, the size grows exponentially.'),
            Option('domains', tuple[str, ...], (),
                'inline the functions of these domains also where they, or calls of them, are '
                'marked to be kept.'),
            Option('only', tuple[str, ...], (),
                'inline the functions of these domains alone; of all domains without it.'),
        ),
    ), ('function',)),

    "insert_attention_mask": Indexed("function_passes/legalize", PassInfo(
        name='insert_attention_mask', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Cast', 'Mul', 'Sub'),
        legalizes='default',
        options=(
            Option('assume_binary', bool, False, 'the elements of an integer mask are 0 and 1.'),
        ),
    ), ('Cast Mul Sub',)),

    "int64_to_int32": Indexed("module_passes/precision", PassInfo(
        name='int64_to_int32', opt_level=None,
        required=('inline', 'eliminate_deadend'),
        followed_by=('eliminate_nop_cast', 'eliminate_unused_initializer', 'eliminate_deadend'),
        touches=('*',),
        options=(
            Option('bounds', tuple[str, ...], (), 'the ranges of inputs, as `name=low:high`.'),
            Option('max_dim', int, 2147483647, 'the largest size of a dim that is not a number.'),
            Option('skip_op_types', tuple[str, ...], (), 'operators that stay as they are.'),
            Option('skip_nodes', tuple[str, ...], (),
                'globs of the names of nodes that stay as they are.'),
        ),
    ), None),

    "io_layout": Indexed("module_passes/interface", PassInfo(
        name='io_layout', opt_level=None,
        required=('infer_shapes',),
        touches=('Transpose',),
        changes_interface=True,
        options=(
            Option('inputs', dict[str, str] | None, None,
                'the present and the new order by input, as in {x: NCHW->NHWC}.'),
            Option('outputs', dict[str, str] | None, None, 'the same by output.'),
        ),
    ), None),

    "lambda_lift": Indexed("module_passes/functions", PassInfo(
        name='lambda_lift', opt_level=None,
        conflicts=('inline',),
        touches=('*',),
        options=(
            Option('min_nodes', int, 1, 'bodies with fewer nodes stay.'),
            Option('domain', str, 'tiered.lifted', 'the domain of the functions.'),
        ),
    ), ('If', 'Loop', 'Scan')),

    "layer_precision_compare": Indexed("module_passes/check", PassInfo(
        name='layer_precision_compare', opt_level=None,
        analysis=True,
        options=(
            Option('origin_model', str, '',
                'the file of the original; by default the model as it was loaded.'),
            Option('operators', list[str], ['Conv', 'Gemm', 'MatMul'],
                'only the outputs of these; empty for all.'),
            Option('seed', int, 0, 'of the generated inputs.'),
        ),
    ), None),

    "lazy_gradient_init": Indexed("function_passes/arithmetic", PassInfo(
        name='lazy_gradient_init', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Add', 'Mul'),
        numerics=Numerics.REASSOCIATING,
    ), ('Add', 'Mul')),

    "legalize": Indexed("module_passes/legalize", PassInfo(
        name='legalize', opt_level=1,
        followed_by=(
            'replace_castlike_with_cast', 'trace_folding', 'fold_constant', 'eliminate_nop_if',
            'trace_folding', 'eliminate_identity', 'fold_constant', 'eliminate_unused_initializer',
            'remove_unused_functions',
        ),
        touches=('*',),
        numerics_option='numerics',
        options=(
            Option('numerics', Literal['exact', 'reassociating', 'approximate'], 'exact',
                'the loosest class of a legalization; with `reassociating` the pass runs from '
                'level 3, with `approximate` from level 4.'),
            Option('maps', tuple[str, ...], ('default',),
                'the maps of registered legalizations to use.'),
            Option('leave', tuple[str, ...], (),
                'operators that stay as they are: Softmax, com.microsoft::Gelu.'),
        ),
    ), None),

    "legalize_cumsum": Indexed("function_passes/legalize", PassInfo(
        name='legalize_cumsum', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('CumSum',),
        legalizes='default',
    ), ('CumSum',)),

    "legalize_float_ops": Indexed("function_passes/legalize", PassInfo(
        name='legalize_float_ops', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=(
            'Abs', 'Add', 'ArgMax', 'ArgMin', 'Clip', 'CumSum', 'Div', 'Equal', 'Greater',
            'GreaterOrEqual', 'Less', 'LessOrEqual', 'MatMul', 'Max', 'MaxPool', 'Min', 'Mul',
            'Neg', 'Pow', 'ReduceMax', 'ReduceMin', 'ReduceProd', 'ReduceSum', 'Relu', 'Sign',
            'Sub', 'Sum', 'TopK',
        ),
        numerics_option='numerics',
        legalizes='default',
        options=(
            Option('numerics', Literal['exact', 'approximate'], 'exact',
                '`approximate` takes all integers, results and operands beyond 2**24 are '
                'rounded, operators that compute and overflow otherwise, and doubles.'),
        ),
    ), (
        'Abs', 'Add', 'ArgMax', 'ArgMin', 'Clip', 'CumSum', 'Div', 'Equal', 'Greater',
        'GreaterOrEqual', 'Less', 'LessOrEqual', 'MatMul', 'Max', 'MaxPool', 'Min', 'Mul', 'Neg',
        'Pow', 'ReduceMax', 'ReduceMin', 'ReduceProd', 'ReduceSum', 'Relu', 'Sign', 'Sub', 'Sum',
        'TopK',
    )),

    "legalize_half_scatter": Indexed("function_passes/legalize", PassInfo(
        name='legalize_half_scatter', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('ScatterElements', 'ScatterND'),
        numerics_option='numerics',
        legalizes='default',
        options=(
            Option('numerics', Literal['exact', 'reassociating'], 'exact',
                '`reassociating` adds and multiplies in float too, which rounds once, not after'
                ' each update.'),
        ),
    ), ('ScatterElements', 'ScatterND')),

    "legalize_index_dtype": Indexed("function_passes/legalize", PassInfo(
        name='legalize_index_dtype', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Gather', 'GatherElements'),
        legalizes='default',
    ), ('Gather', 'GatherElements')),

    "legalize_indices": Indexed("function_passes/legalize", PassInfo(
        name='legalize_indices', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Gather', 'GatherElements'),
        legalizes='default',
    ), ('Gather', 'GatherElements')),

    "legalize_rank": Indexed("function_passes/legalize", PassInfo(
        name='legalize_rank', opt_level=1, kind='function',
        required=('infer_shapes',),
        touches=('*',),
        options=(
            Option('max_rank', int, 0, 'the highest rank; 0 is that of the backend.'),
        ),
    ), None),

    "lower_conv": Indexed("function_passes/lower", PassInfo(
        name='lower_conv', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('fold_constant', 'eliminate_unused_initializer'),
        touches=('Conv',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('Conv',)),

    "lower_dequantize": Indexed("function_passes/lower", PassInfo(
        name='lower_dequantize', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('DequantizeLinear', 'com.microsoft::DequantizeLinear'),
        legalizes='default',
    ), ('DequantizeLinear', 'com.microsoft::DequantizeLinear')),

    "lower_global_pool": Indexed("function_passes/lower", PassInfo(
        name='lower_global_pool', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('GlobalAveragePool', 'GlobalLpPool', 'GlobalMaxPool'),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('GlobalAveragePool', 'GlobalLpPool', 'GlobalMaxPool')),

    "lower_groupnorm": Indexed("function_passes/lower", PassInfo(
        name='lower_groupnorm', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('GroupNormalization',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('GroupNormalization',)),

    "lower_instancenorm": Indexed("function_passes/lower", PassInfo(
        name='lower_instancenorm', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        conflicts=('fuse_instancenorm',),
        touches=('InstanceNormalization',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('InstanceNormalization',)),

    "lower_layernorm": Indexed("function_passes/lower", PassInfo(
        name='lower_layernorm', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        conflicts=('fuse_layernorm',),
        touches=('LayerNormalization',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('LayerNormalization',)),

    "lower_logsumexp": Indexed("function_passes/lower", PassInfo(
        name='lower_logsumexp', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('ReduceLogSumExp',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('ReduceLogSumExp',)),

    "lower_lpnormalization": Indexed("function_passes/lower", PassInfo(
        name='lower_lpnormalization', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('LpNormalization',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('LpNormalization',)),

    "lower_mean_variance": Indexed("function_passes/lower", PassInfo(
        name='lower_mean_variance', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('MeanVarianceNormalization',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('MeanVarianceNormalization',)),

    "lower_pooling": Indexed("function_passes/lower", PassInfo(
        name='lower_pooling', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('fold_constant', 'eliminate_unused_initializer'),
        touches=('AveragePool', 'LpPool', 'MaxPool'),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('AveragePool', 'LpPool', 'MaxPool')),

    "lower_qdq_pair": Indexed("function_passes/lower", PassInfo(
        name='lower_qdq_pair', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('DequantizeLinear', 'QuantizeLinear'),
        numerics_option='numerics',
        legalizes='default',
        options=(
            Option('numerics', Literal['exact', 'approximate'], 'exact',
                '`approximate` clamps by Clip everywhere, for targets without Where: NaN stays '
                'NaN.'),
            Option('comparisons', bool, True,
                'clamp by a comparison where there may be a NaN; such pairs stay otherwise.'),
        ),
    ), ('DequantizeLinear QuantizeLinear',)),

    "lower_quantize": Indexed("function_passes/lower", PassInfo(
        name='lower_quantize', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('QuantizeLinear', 'com.microsoft::QuantizeLinear'),
        legalizes='default',
    ), ('QuantizeLinear', 'com.microsoft::QuantizeLinear')),

    "lower_quantized_constant": Indexed("function_passes/lower", PassInfo(
        name='lower_quantized_constant', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('DequantizeLinear',),
        legalizes='default',
    ), ('DequantizeLinear',)),

    "lower_rmsnorm": Indexed("function_passes/lower", PassInfo(
        name='lower_rmsnorm', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        conflicts=('fuse_rmsnorm',),
        touches=('RMSNormalization',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('RMSNormalization',)),

    "lower_sigmoid": Indexed("function_passes/activation", PassInfo(
        name='lower_sigmoid', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Sigmoid',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('Sigmoid',)),

    "lower_softplus": Indexed("function_passes/lower", PassInfo(
        name='lower_softplus', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Softplus',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('Softplus',)),

    "matmul_rotary_embedding": Indexed("function_passes/legalize", PassInfo(
        name='matmul_rotary_embedding', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Concat', 'Neg', 'Slice', 'Split'),
        numerics=Numerics.REASSOCIATING,
    ), ('Concat Neg Slice', 'Concat Neg Split')),

    "measure_error": Indexed("module_passes/check", PassInfo(
        name='measure_error', opt_level=None,
        analysis=True,
        options=(
            Option('inputs', tuple[str, ...], (),
                'files to measure on: x.npy, feeds.npz or a folder; made without any.'),
            Option('seed', int, 0, 'of generated inputs.'),
            Option('samples', int, 2, 'how many inputs are made.'),
            Option('max_bytes', int, 268435456,
                'a model with more bytes of weights is not run, if there is no budget.'),
            Option('budget', str, '',
                'an error unless the outputs are within it, as cosine>=0.999; empty for none.'),
        ),
    ), None),

    "merge_compiler_regions": Indexed("module_passes/partition", PassInfo(
        name='merge_compiler_regions', opt_level=None,
        touches=('*',),
    ), None),

    "merge_composite": Indexed("module_passes/partition", PassInfo(
        name='merge_composite', opt_level=None,
        touches=('*',),
        options=(
            Option('tables', tuple[str, ...], (),
                'the targets with the tables; the backend of the context by default.'),
        ),
    ), None),

    "merge_models": Indexed("module_passes/interface", PassInfo(
        name='merge_models', opt_level=None,
        touches=('*',),
        changes_interface=True,
        options=(
            Option('file', str, '', 'the second model.'),
            Option('connect', dict[str, str | list[str]] | None, None,
                'the input of the second model by output of this one, or a list of inputs; by '
                'default those of equal name.'),
            Option('prefix', str, '', 'for the names of the second model that are not connected.'),
            Option('keep', bool, False, 'connected outputs stay outputs.'),
        ),
    ), None),

    "model_overview": Indexed("module_passes/check", PassInfo(
        name='model_overview', opt_level=None,
        analysis=True,
        options=(
            Option('text', bool, False,
                'print all nodes as `onnx.printer` writes them, without large weights.'),
            Option('header', str, '', 'printed before it.'),
        ),
    ), None),

    "move_subgraph_initializer": Indexed("module_passes/initializers", PassInfo(
        name='move_subgraph_initializer', opt_level=1,
    ), ('body',)),

    "normalize_axes": Indexed("function_passes/gather_slice", PassInfo(
        name='normalize_axes', opt_level=1, kind='function',
        touches=(
            'ArgMax', 'ArgMin', 'Concat', 'Gather', 'GatherElements', 'Hardmax',
            'LayerNormalization', 'LogSoftmax', 'RMSNormalization', 'ReduceL1', 'ReduceL2',
            'ReduceLogSum', 'ReduceLogSumExp', 'ReduceMax', 'ReduceMean', 'ReduceMin',
            'ReduceProd', 'ReduceSum', 'ReduceSumSquare', 'ScatterElements', 'Softmax', 'Split',
            'Squeeze', 'TopK', 'Unsqueeze',
        ),
    ), (
        'ArgMax', 'ArgMin', 'Concat', 'Gather', 'GatherElements', 'Hardmax', 'LayerNormalization',
        'LogSoftmax', 'RMSNormalization', 'ReduceL1', 'ReduceL2', 'ReduceLogSum',
        'ReduceLogSumExp', 'ReduceMax', 'ReduceMean', 'ReduceMin', 'ReduceProd', 'ReduceSum',
        'ReduceSumSquare', 'ScatterElements', 'Softmax', 'Split', 'Squeeze', 'TopK', 'Unsqueeze',
    )),

    "overlap_io": Indexed("module_passes/partition", PassInfo(
        name='overlap_io', opt_level=None,
        options=(
            Option('tensors', tuple[str, ...], (), 'inputs and outputs; all by default.'),
        ),
    ), None),

    "packed_transformer": Indexed("module_passes/packing", PassInfo(
        name='packed_transformer', opt_level=None,
        required=(
            'inline', 'infer_shapes', 'replace_castlike_with_cast', 'trace_folding',
            'fold_constant', 'eliminate_nop_arithmetic',
        ),
        touches=('*',),
        numerics=Numerics.REASSOCIATING,
        changes_interface=True,
        options=(
            Option('inputs', tuple[str, ...], (),
                'the inputs [batch, length, ...]; by default those with two dynamic dims first.'),
            Option('max_valid_num', int, 0,
                'the fixed number of sequences of a run; 0 for any number.'),
        ),
    ), None),

    "partial_evaluate": Indexed("module_passes/control_flow", PassInfo(
        name='partial_evaluate', opt_level=2,
        touches=('*',),
        options=(
            Option('max_iterations', int, 0, 'the highest trip count that is unrolled.'),
            Option('max_nodes', int, 10000, 'bound on the nodes that unrolling adds.'),
        ),
    ), ('Loop', 'Scan')),

    "partition_graph": Indexed("module_passes/partition", PassInfo(
        name='partition_graph', opt_level=None,
        followed_by=('topological_sort',),
        touches=('*',),
    ), None),

    "post_expand": Indexed("function_passes/shape", PassInfo(
        name='post_expand', opt_level=3, kind='rewrite',
        touches=(
            'Abs', 'Cast', 'Ceil', 'Cos', 'Erf', 'Exp', 'Expand', 'Floor', 'Gelu', 'LeakyRelu',
            'Log', 'Neg', 'Not', 'Reciprocal', 'Relu', 'Sigmoid', 'Sign', 'Sin', 'Softplus',
            'Sqrt', 'Tanh',
        ),
        numerics=Numerics.REASSOCIATING,
    ), (
        'Abs Expand', 'Cast Expand', 'Ceil Expand', 'Cos Expand', 'Erf Expand', 'Exp Expand',
        'Expand Floor', 'Expand Gelu', 'Expand LeakyRelu', 'Expand Log', 'Expand Neg',
        'Expand Not', 'Expand Reciprocal', 'Expand Relu', 'Expand Sigmoid', 'Expand Sign',
        'Expand Sin', 'Expand Softplus', 'Expand Sqrt', 'Expand Tanh',
    )),

    "pre_scale": Indexed("function_passes/attention", PassInfo(
        name='pre_scale', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Add', 'Div', 'MatMul', 'Mul', 'Softmax'),
        numerics=Numerics.REASSOCIATING,
        options=(
            Option('always', bool, False,
                'also with no fewer elements in the queries than in the scores, or dynamic '
                'dims.'),
        ),
    ), ('MatMul Softmax',)),

    "quantize": Indexed("module_passes/quantization", PassInfo(
        name='quantize', opt_level=None,
        required=('inline', 'eliminate_deadend', 'fuse_bn_into_conv', 'fold_constant'),
        followed_by=('eliminate_unused_initializer', 'eliminate_deadend'),
        touches=('Conv', 'ConvTranspose', 'Gemm', 'MatMul'),
        numerics=Numerics.LOSSY,
        options=(
            Option('inputs', tuple[str, ...], (),
                'files and folders of samples; without any, inputs are made.'),
            Option('method', Literal['minmax', 'percentile', 'mse', 'entropy', 'auto'], 'mse',
                'how the range of a tensor follows from its numbers; auto tries all, and takes '
                'the one with the least noise on samples that are held back.'),
            Option('percentile', float, 99.999,
                'of the numbers that the method of that name keeps.'),
            Option('samples', int, 8, 'how many inputs are made.'),
            Option('seed', int, 0, 'of generated inputs.'),
            Option('budget', str, '',
                'how far outputs may move, as `sqnr>=20dB`; the worst products return to float.'),
            Option('order', Literal['auto', 'error', 'sensitivity'], 'auto',
                'the worst by their own error, or by its effect on the outputs, by gradients; '
                'auto is the effect, and the error where an operator has no gradient.'),
            Option('reduce_range', bool | None, None,
                '7 bits for weights; by default as the backend needs.'),
            Option('processor', Literal['here', 'avx2', 'vnni', 'any'], 'here',
                'where the result runs: on x86-64 without VNNI (avx2, any) pairs of weights are'
                ' limited, so that their products do not saturate.'),
            Option('rounding', Literal['samples', 'nearest'], 'samples',
                'of weights: samples lets the errors of each product cancel on its data; '
                'nearest is faster.'),
            Option('skip_op_types', tuple[str, ...], (), 'operators that stay float.'),
            Option('skip_nodes', tuple[str, ...], (),
                'globs of the names of nodes that stay float.'),
        ),
        limits=FEW_BITS,
    ), None),

    "quantize_dynamic": Indexed("module_passes/quantization", PassInfo(
        name='quantize_dynamic', opt_level=None,
        required=('inline', 'eliminate_deadend', 'fold_constant'),
        followed_by=('eliminate_unused_initializer', 'eliminate_deadend'),
        touches=('Conv', 'ConvTranspose', 'Gemm', 'MatMul'),
        numerics=Numerics.LOSSY,
        options=(
            Option('convolutions', bool, False,
                'quantise Conv too, which onnxruntime computes slowly.'),
            Option('reduce_range', bool | None, None, '7 bits for weights; by default 8.'),
            Option('processor', Literal['here', 'avx2', 'vnni', 'any'], 'here',
                'where the result runs: on x86-64 without VNNI (avx2, any) pairs of weights are'
                ' limited, so that their products do not saturate.'),
            Option('skip_op_types', tuple[str, ...], (), 'operators that stay float.'),
            Option('skip_nodes', tuple[str, ...], (),
                'globs of the names of nodes that stay float.'),
            Option('budget', str, '',
                'how far outputs may move, as `sqnr>=20dB`; the worst products return to float.'),
            Option('inputs', tuple[str, ...], (),
                'files and folders of samples to measure the budget on; made without any.'),
            Option('seed', int, 0, 'of generated inputs.'),
            Option('samples', int, 2, 'how many inputs are made.'),
        ),
        limits=FEW_BITS,
    ), None),

    "range_annotation": Indexed("module_passes/metadata", PassInfo(
        name='range_annotation', opt_level=None,
        required=('infer_shapes',),
        touches=('*',),
        options=(
            Option('remove', bool, False, 'remove all annotations instead.'),
        ),
    ), None),

    "recompute": Indexed("module_passes/memory", PassInfo(
        name='recompute', opt_level=None,
        required=('infer_shapes',),
        options=(
            Option('max_multiply_adds', int, 0,
                'what the copies of products and convolutions may cost together; other '
                'operators cost nothing.'),
            Option('dims', tuple[str, ...], (), 'the sizes of dynamic dims, as `name=size`.'),
            Option('default_dim', int, 16, 'the size of all others.'),
        ),
    ), None),

    "remove_initializer_from_input": Indexed("module_passes/interface", PassInfo(
        name='remove_initializer_from_input', opt_level=None,
        changes_interface=True,
    ), None),

    "remove_input_cast": Indexed("module_passes/interface", PassInfo(
        name='remove_input_cast', opt_level=None,
        required=('infer_shapes',),
        touches=('Cast',),
        changes_interface=True,
        options=(
            Option('inputs', tuple[str, ...], (),
                'the inputs; by default all that only Casts read.'),
        ),
    ), None),

    "remove_unused_functions": Indexed("module_passes/functions", PassInfo(
        name='remove_unused_functions',
        touches=('*',),
        options=(
            Option('entry_functions', list[str] | None, None,
                'functions to keep with all functions that they call: `name` or `domain.name`.'),
        ),
    ), ('function',)),

    "remove_unused_opsets": Indexed("module_passes/opset", PassInfo(
        name='remove_unused_opsets', opt_level=1,
    ), None),

    "rename": Indexed("module_passes/interface", PassInfo(
        name='rename', opt_level=None,
        changes_interface=True,
        options=(
            Option('tensors', dict[str, str] | None, None, 'the new name by the present one.'),
            Option('dims', dict[str, str] | None, None,
                'the new name of a dim by its present one; it changes in the whole model.'),
        ),
    ), None),

    "reorder": Indexed("module_passes/interface", PassInfo(
        name='reorder', opt_level=None,
        changes_interface=True,
        options=(
            Option('inputs', tuple[str, ...], (), 'names of inputs.'),
            Option('outputs', tuple[str, ...], (), 'names of outputs.'),
        ),
    ), None),

    "replace_bn_with_conv": Indexed("function_passes/normalization", PassInfo(
        name='replace_bn_with_conv', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('BatchNormalization',),
        numerics=Numerics.REASSOCIATING,
    ), ('BatchNormalization',)),

    "replace_bn_with_mul_add": Indexed("function_passes/normalization", PassInfo(
        name='replace_bn_with_mul_add', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('BatchNormalization',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('BatchNormalization',)),

    "replace_castlike_with_cast": Indexed("function_passes/cast", PassInfo(
        name='replace_castlike_with_cast', opt_level=1, kind='rewrite',
        touches=('CastLike',),
    ), ('CastLike',)),

    "replace_celu": Indexed("function_passes/legalize", PassInfo(
        name='replace_celu', opt_level=None, kind='rewrite',
        touches=('Celu',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('Celu',)),

    "replace_clip_empty_inputs": Indexed("function_passes/arithmetic", PassInfo(
        name='replace_clip_empty_inputs', opt_level=1, kind='rewrite',
        touches=('Clip',),
    ), ('Clip',)),

    "replace_consecutive_cast_with_notzero": Indexed("function_passes/legalize", PassInfo(
        name='replace_consecutive_cast_with_notzero', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Cast',),
        legalizes='default',
    ), ('Cast',)),

    "replace_contrib_quantize": Indexed("function_passes/quantization", PassInfo(
        name='replace_contrib_quantize', opt_level=2, kind='rewrite',
        touches=('com.microsoft::DequantizeLinear', 'com.microsoft::QuantizeLinear'),
    ), ('com.microsoft::DequantizeLinear', 'com.microsoft::QuantizeLinear')),

    "replace_cumsum_with_matmul": Indexed("function_passes/legalize", PassInfo(
        name='replace_cumsum_with_matmul', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('CumSum',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('CumSum',)),

    "replace_div_by_sqrt_with_pow": Indexed("function_passes/legalize", PassInfo(
        name='replace_div_by_sqrt_with_pow', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Div', 'Sqrt'),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('Div Sqrt',)),

    "replace_div_with_mul": Indexed("function_passes/arithmetic", PassInfo(
        name='replace_div_with_mul', opt_level=2, kind='rewrite',
        touches=('Div',),
    ), ('Div',)),

    "replace_div_with_reciprocal": Indexed("function_passes/arithmetic", PassInfo(
        name='replace_div_with_reciprocal', opt_level=4, kind='rewrite',
        touches=('Div',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('Div',)),

    "replace_einsum_with_matmul": Indexed("function_passes/matmul", PassInfo(
        name='replace_einsum_with_matmul', opt_level=3, kind='rewrite',
        required=('infer_shapes',),
        touches=('Einsum',),
        numerics=Numerics.REASSOCIATING,
    ), ('Einsum',)),

    "replace_erf_with_erfv2": Indexed("function_passes/activation", PassInfo(
        name='replace_erf_with_erfv2', opt_level=None, kind='rewrite',
        touches=('Erf',),
        numerics=Numerics.APPROXIMATE,
        legalizes='default',
    ), ('Erf',)),

    "replace_expand_with_tile": Indexed("function_passes/legalize", PassInfo(
        name='replace_expand_with_tile', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Expand',),
        legalizes='default',
    ), ('Expand',)),

    "replace_flatten_with_reshape": Indexed("function_passes/legalize", PassInfo(
        name='replace_flatten_with_reshape', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Flatten',),
        legalizes='default',
    ), ('Flatten',)),

    "replace_gather_with_gathernd": Indexed("function_passes/legalize", PassInfo(
        name='replace_gather_with_gathernd', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Gather',),
        legalizes='default',
    ), ('Gather',)),

    "replace_gather_with_slice": Indexed("function_passes/legalize", PassInfo(
        name='replace_gather_with_slice', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Gather',),
        legalizes='default',
    ), ('Gather',)),

    "replace_gelu_with_tanh": Indexed("function_passes/activation", PassInfo(
        name='replace_gelu_with_tanh', opt_level=4, kind='rewrite',
        touches=('Gelu',),
        numerics=Numerics.APPROXIMATE,
    ), ('Gelu',)),

    "replace_greater_or_equal": Indexed("function_passes/legalize", PassInfo(
        name='replace_greater_or_equal', opt_level=None, kind='rewrite',
        touches=('GreaterOrEqual',),
        legalizes='default',
    ), ('GreaterOrEqual',)),

    "replace_groupnorm_with_fast_norm": Indexed("function_passes/legalize", PassInfo(
        name='replace_groupnorm_with_fast_norm', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('GroupNormalization',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
        options=(
            Option('custom', str, '',
                'an operator of the target instead, as "ai.graphcore::FastNorm": it is called '
                'as a local function that holds the GroupNormalization.'),
        ),
    ), ('GroupNormalization',)),

    "replace_half_reducemean": Indexed("function_passes/reduction", PassInfo(
        name='replace_half_reducemean', opt_level=None, kind='rewrite',
        touches=('ReduceMean',),
        numerics=Numerics.APPROXIMATE,
        options=(
            Option('form', Literal['product', 'float'], 'product',
                'divide each number first, or compute the mean in float.'),
        ),
    ), ('ReduceMean',)),

    "replace_hardswish": Indexed("function_passes/legalize", PassInfo(
        name='replace_hardswish', opt_level=None, kind='rewrite',
        conflicts=('fuse_hardswish',),
        touches=('HardSwish',),
        legalizes='default',
    ), ('HardSwish',)),

    "replace_if_with_where": Indexed("function_passes/legalize", PassInfo(
        name='replace_if_with_where', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('If',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
        options=(
            Option('max_nodes', int, 1000, 'the most nodes of both branches.'),
        ),
    ), ('If',)),

    "replace_int8_with_uint8": Indexed("function_passes/quantization", PassInfo(
        name='replace_int8_with_uint8', opt_level=3, kind='function',
        required=('infer_shapes',),
        touches=('DequantizeLinear',),
        quantization='operators',
    ), ('DequantizeLinear',)),

    "replace_interleaved_rotary": Indexed("function_passes/legalize", PassInfo(
        name='replace_interleaved_rotary', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('RotaryEmbedding',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('RotaryEmbedding',)),

    "replace_isinf": Indexed("function_passes/legalize", PassInfo(
        name='replace_isinf', opt_level=None, kind='rewrite',
        touches=('IsInf',),
        options=(
            Option('domain', str, 'ai.graphcore', 'the domain of IsInfV2.'),
        ),
    ), ('IsInf',)),

    "replace_isnan": Indexed("function_passes/legalize", PassInfo(
        name='replace_isnan', opt_level=None, kind='rewrite',
        touches=('IsNaN',),
        legalizes='default',
    ), ('IsNaN',)),

    "replace_less_or_equal": Indexed("function_passes/legalize", PassInfo(
        name='replace_less_or_equal', opt_level=None, kind='rewrite',
        touches=('LessOrEqual',),
        legalizes='default',
    ), ('LessOrEqual',)),

    "replace_lone_split_with_slice": Indexed("function_passes/gather_slice", PassInfo(
        name='replace_lone_split_with_slice', opt_level=1, kind='function',
        required=('infer_shapes',),
        touches=('Split',),
    ), ('Split',)),

    "replace_matmul_with_gemm": Indexed("function_passes/legalize", PassInfo(
        name='replace_matmul_with_gemm', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        conflicts=('decompose_gemm',),
        touches=('MatMul',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('MatMul',)),

    "replace_mean_with_add": Indexed("function_passes/legalize", PassInfo(
        name='replace_mean_with_add', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Mean',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('Mean',)),

    "replace_neg_with_mul": Indexed("function_passes/legalize", PassInfo(
        name='replace_neg_with_mul', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Neg',),
        legalizes='default',
    ), ('Neg',)),

    "replace_nonzero": Indexed("function_passes/legalize", PassInfo(
        name='replace_nonzero', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('NonZero',),
        numerics=Numerics.LOSSY,
        options=(
            Option('count', int, 1, 'how many elements of x are not zero, in every run.'),
        ),
    ), ('NonZero',)),

    "replace_pow": Indexed("function_passes/arithmetic", PassInfo(
        name='replace_pow', opt_level=2, kind='rewrite',
        touches=('Pow',),
        legalizes='default',
        options=(
            Option('cubes', bool, True, 'also replace Pow(x, 3) by two Muls.'),
        ),
    ), ('Pow',)),

    "replace_pow_with_roots": Indexed("function_passes/arithmetic", PassInfo(
        name='replace_pow_with_roots', opt_level=4, kind='rewrite',
        followed_by=('eliminate_cast_before_shape',),
        touches=('Pow',),
        numerics=Numerics.APPROXIMATE,
    ), ('Pow',)),

    "replace_reciprocal_with_div": Indexed("function_passes/legalize", PassInfo(
        name='replace_reciprocal_with_div', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Reciprocal',),
        legalizes='default',
    ), ('Reciprocal',)),

    "replace_round": Indexed("function_passes/legalize", PassInfo(
        name='replace_round', opt_level=None, kind='rewrite',
        touches=('Round',),
        options=(
            Option('domain', str, 'ai.graphcore', 'the domain of RoundV2.'),
        ),
    ), ('Round',)),

    "replace_sigmoid_with_hardsigmoid": Indexed("function_passes/activation", PassInfo(
        name='replace_sigmoid_with_hardsigmoid', opt_level=None, kind='rewrite',
        touches=('Sigmoid',),
        numerics=Numerics.LOSSY,
    ), ('Sigmoid',)),

    "replace_slice_with_gather": Indexed("function_passes/gather_slice", PassInfo(
        name='replace_slice_with_gather', opt_level=1, kind='rewrite',
        required=('infer_shapes',),
        touches=('Reshape', 'Slice', 'Squeeze'),
    ), ('Reshape Slice', 'Slice Squeeze')),

    "replace_softmax": Indexed("function_passes/legalize", PassInfo(
        name='replace_softmax', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Softmax',),
        options=(
            Option('domain', str, 'ai.graphcore', 'the domain of SoftmaxV2.'),
        ),
    ), ('Softmax',)),

    "replace_split_with_slice": Indexed("function_passes/legalize", PassInfo(
        name='replace_split_with_slice', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Split',),
        legalizes='default',
    ), ('Split',)),

    "replace_strided_slice": Indexed("function_passes/legalize", PassInfo(
        name='replace_strided_slice', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Slice',),
        legalizes='default',
    ), ('Slice',)),

    "replace_sub_with_add": Indexed("function_passes/legalize", PassInfo(
        name='replace_sub_with_add', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Sub',),
        legalizes='default',
    ), ('Sub',)),

    "replace_sum_with_add": Indexed("function_passes/legalize", PassInfo(
        name='replace_sum_with_add', opt_level=None, kind='rewrite',
        touches=('Sum',),
        numerics_option='numerics',
        legalizes='default',
        options=(
            Option('numerics', Literal['exact', 'reassociating'], 'exact',
                '`reassociating` adds more than two operands, for which the order of the sums '
                'is not defined.'),
        ),
    ), ('Sum',)),

    "replace_tile_with_expand": Indexed("function_passes/shape", PassInfo(
        name='replace_tile_with_expand', opt_level=2, kind='rewrite',
        required=('infer_shapes',),
        touches=('Tile',),
    ), ('Tile',)),

    "replace_transpose_with_reshape": Indexed("function_passes/layout", PassInfo(
        name='replace_transpose_with_reshape', opt_level=2, kind='rewrite',
        required=('infer_shapes',),
        touches=('Transpose',),
    ), ('Transpose',)),

    "replace_trilu": Indexed("function_passes/legalize", PassInfo(
        name='replace_trilu', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Trilu',),
        legalizes='default',
    ), ('Trilu',)),

    "replace_uint8_with_int8": Indexed("function_passes/quantization", PassInfo(
        name='replace_uint8_with_int8', opt_level=1, kind='function',
        required=('infer_shapes',),
        touches=('DequantizeLinear',),
    ), ('DequantizeLinear',)),

    "replace_where_mask": Indexed("function_passes/arithmetic", PassInfo(
        name='replace_where_mask', opt_level=None, kind='rewrite',
        touches=('Softmax', 'Where'),
        numerics=Numerics.APPROXIMATE,
        options=(
            Option('least', float, 1000.0, 'how far below 0 the masked value must be.'),
        ),
    ), ('Softmax Where',)),

    "replace_where_with_gather": Indexed("function_passes/legalize", PassInfo(
        name='replace_where_with_gather', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Where',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
    ), ('Where',)),

    "replace_where_with_mul_add": Indexed("function_passes/legalize", PassInfo(
        name='replace_where_with_mul_add', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Where',),
        numerics=Numerics.REASSOCIATING,
        legalizes='default',
        options=(
            Option('assume_finite', bool, False,
                'x and y are finite wherever they are not selected.'),
        ),
    ), ('Where',)),

    "replace_where_with_wherev2": Indexed("function_passes/legalize", PassInfo(
        name='replace_where_with_wherev2', opt_level=None, kind='rewrite',
        touches=('Where',),
        options=(
            Option('domain', str, 'ai.graphcore', 'the domain of WhereV2.'),
        ),
    ), ('Where',)),

    "rewrite_annotated_ops": Indexed("module_passes/partition", PassInfo(
        name='rewrite_annotated_ops', opt_level=None,
        touches=('*',),
        options=(
            Option('fallback_device', str, '', 'the device of nodes without one.'),
            Option('sharding', tuple[str, ...], (), 'cuts, as `node=device`.'),
            Option('pipelining', tuple[str, ...], (),
                'cuts, as `node=stage`; nodes after the last one are of one more stage.'),
            Option('propagate', bool, False,
                'nodes without a device, between nodes of one device, are on it too.'),
        ),
    ), None),

    "round_thresholds": Indexed("function_passes/streamline", PassInfo(
        name='round_thresholds', opt_level=None, kind='function',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('onnx.brevitas::MultiThreshold', 'qonnx.custom_op.general::MultiThreshold'),
    ), ('onnx.brevitas::MultiThreshold', 'qonnx.custom_op.general::MultiThreshold')),

    "schedule": Indexed("module_passes/memory", PassInfo(
        name='schedule', opt_level=None,
        required=('infer_shapes',),
        options=(
            Option('objective', Literal['peak', 'depth'], 'peak',
                '`peak`, or `depth`: first the nodes with the shortest longest path to them. '
                'That may raise the peak.'),
            Option('dims', tuple[str, ...], (), 'the sizes of dynamic dims, as `name=size`.'),
            Option('default_dim', int, 16, 'the size of all others.'),
        ),
    ), None),

    "serialize_matmul": Indexed("module_passes/memory", PassInfo(
        name='serialize_matmul', opt_level=None,
        required=('infer_shapes',),
        touches=('MatMul',),
        numerics=Numerics.REASSOCIATING,
        options=(
            Option('split', tuple[str, ...], (),
                'which nodes, as `node=parts` or `node=parts/dim`.'),
            Option('dim', Literal['columns', 'rows', 'inner'], 'columns',
                'cut the columns of the result, its rows, or the inner dim and add the '
                'products.'),
            Option('max_bytes', int, 0,
                'cut a node if its second factor (by rows: its result) is larger, into parts '
                'that are not; 0 for none.'),
        ),
    ), ('MatMul',)),

    "serialize_matmul_add": Indexed("module_passes/memory", PassInfo(
        name='serialize_matmul_add', opt_level=None,
        required=('infer_shapes',),
        touches=('MatMul',),
        numerics=Numerics.REASSOCIATING,
        options=(
            Option('split', tuple[str, ...], (),
                'which nodes, as `node=parts` or `node=parts/dim`; a node is named by its '
                'MatMul, its Add, or as `matmul/add`.'),
            Option('dim', Literal['columns', 'rows', 'inner'], 'columns',
                'cut the columns of the result, its rows, or the inner dim and add the '
                'products.'),
            Option('max_bytes', int, 0,
                'cut a node if its second factor (by rows: its result) is larger, into parts '
                'that are not; 0 for none.'),
        ),
    ), ('MatMul',)),

    "simplify_inference": Indexed("function_passes/identity", PassInfo(
        name='simplify_inference', kind='function',
        touches=(
            'BatchNormalization', 'Dropout', 'GroupNormalization', 'InstanceNormalization',
            'LayerNormalization', 'LpNormalization', 'MeanVarianceNormalization',
            'RMSNormalization',
        ),
        numerics_option='expand_norms',
        options=(
            Option('expand_norms', bool, False,
                'also write normalizations by elementary operators, from level 3 on; passes '
                'that fuse norms would fuse them again.'),
        ),
    ), (
        'BatchNormalization', 'Dropout', 'GroupNormalization', 'InstanceNormalization',
        'LayerNormalization', 'LpNormalization', 'MeanVarianceNormalization', 'RMSNormalization',
    )),

    "sink_affine_past_concat": Indexed("function_passes/streamline", PassInfo(
        name='sink_affine_past_concat', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Concat',),
    ), ('Concat',)),

    "sink_affine_past_move": Indexed("function_passes/streamline", PassInfo(
        name='sink_affine_past_move', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=(
            'Add', 'Div', 'Flatten', 'Mul', 'Reshape', 'Slice', 'Squeeze', 'Sub', 'Transpose',
            'Unsqueeze',
        ),
    ), ('Flatten', 'Reshape', 'Slice', 'Squeeze', 'Transpose', 'Unsqueeze')),

    "sink_affine_past_split": Indexed("function_passes/streamline", PassInfo(
        name='sink_affine_past_split', opt_level=None, kind='function',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Add', 'Div', 'Mul', 'Split', 'Sub'),
    ), ('Split',)),

    "sink_dequantize": Indexed("function_passes/quantization", PassInfo(
        name='sink_dequantize', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=(
            'DepthToSpace', 'DequantizeLinear', 'Expand', 'Flatten', 'Gather', 'Identity',
            'Reshape', 'Slice', 'SpaceToDepth', 'Squeeze', 'Tile', 'Transpose', 'Unsqueeze',
            'com.microsoft::DequantizeLinear',
        ),
    ), (
        'DepthToSpace', 'Expand', 'Flatten', 'Gather', 'Identity', 'Reshape', 'Slice',
        'SpaceToDepth', 'Squeeze', 'Tile', 'Transpose', 'Unsqueeze',
    )),

    "sink_dequantize_past_concat": Indexed("function_passes/quantization", PassInfo(
        name='sink_dequantize_past_concat', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Concat',),
    ), ('Concat',)),

    "sink_dequantize_past_maximum": Indexed("function_passes/quantization", PassInfo(
        name='sink_dequantize_past_maximum', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('DequantizeLinear', 'MaxPool', 'Relu', 'com.microsoft::DequantizeLinear'),
    ), ('MaxPool', 'Relu')),

    "sink_dequantize_past_split": Indexed("function_passes/quantization", PassInfo(
        name='sink_dequantize_past_split', opt_level=None, kind='function',
        required=('infer_shapes',),
        touches=('DequantizeLinear', 'Split', 'com.microsoft::DequantizeLinear'),
    ), ('Split',)),

    "sink_expand": Indexed("function_passes/shape", PassInfo(
        name='sink_expand', opt_level=2, kind='function',
        required=('infer_shapes',),
        touches=('Expand', 'Tile', 'elementwise'),
    ), ('Expand', 'Tile')),

    "sink_into_if": Indexed("function_passes/control_flow", PassInfo(
        name='sink_into_if', opt_level=None, kind='function',
        conflicts=('hoist_from_if',),
        touches=('*',),
        options=(
            Option('max_nodes', int, 100,
                'the most nodes of a branch; a branch of this size takes in no more.'),
        ),
    ), ('If',)),

    "sink_offset_past_product": Indexed("function_passes/streamline", PassInfo(
        name='sink_offset_past_product', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Add', 'Conv', 'MatMul', 'Sub'),
        numerics=Numerics.REASSOCIATING,
    ), ('Conv', 'MatMul')),

    "sink_scale_past_maximum": Indexed("function_passes/streamline", PassInfo(
        name='sink_scale_past_maximum', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        touches=('Div', 'GlobalMaxPool', 'MaxPool', 'Mul', 'Relu'),
        numerics=Numerics.REASSOCIATING,
    ), ('GlobalMaxPool', 'MaxPool', 'Relu')),

    "sink_scale_past_product": Indexed("function_passes/streamline", PassInfo(
        name='sink_scale_past_product', opt_level=None, kind='rewrite',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('Conv', 'Div', 'MatMul', 'Mul'),
        numerics=Numerics.REASSOCIATING,
    ), ('Conv', 'MatMul')),

    "specialize_functions": Indexed("module_passes/functions", PassInfo(
        name='specialize_functions', opt_level=None,
        conflicts=('inline',),
        touches=('*',),
    ), None),

    "split_by_budget": Indexed("module_passes/memory", PassInfo(
        name='split_by_budget', opt_level=None,
        required=('infer_shapes',),
        numerics=Numerics.REASSOCIATING,
        options=(
            Option('max_bytes', int, 0, "the budget of `memory_plan`'s peak."),
            Option('dims', tuple[str, ...], (),
                'the sizes of dynamic dims, as `name=size`; a tensor that has one is not cut.'),
            Option('default_dim', int, 16, 'the size of all others.'),
        ),
    ), None),

    "strip": Indexed("module_passes/metadata", PassInfo(
        name='strip', opt_level=None,
        options=(
            Option('what', tuple[Literal['metadata', 'names', 'docs', 'marks', 'all'], ...], ('metadata',),
                'of the model, graphs, nodes and tensors; names only of nodes and inner '
                'tensors. `all` is metadata, names and docs.'),
        ),
    ), None),

    "topological_sort": Indexed("module_passes/check", PassInfo(
        name='topological_sort',
        analysis=True,
    ), None),

    "trace_folding": Indexed("function_passes/shape", PassInfo(
        name='trace_folding', opt_level=2, kind='function',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=('*',),
    ), None),

    "truncate_on_var": Indexed("module_passes/interface", PassInfo(
        name='truncate_on_var', opt_level=None,
        touches=('*',),
        changes_interface=True,
        options=(
            Option('var', str, '', 'the name of the value, in the main graph.'),
            Option('mark_as_output', bool, True, 'append the value to the outputs.'),
        ),
    ), None),

    "unbake": Indexed("module_passes/initializers", PassInfo(
        name='unbake', opt_level=None,
        conflicts=('bake_parameters',),
        options=(
            Option('tensors', tuple[str, ...], (),
                'names or globs of initializers, in bodies too; all by default.'),
            Option('min_size', Size, '1KB', 'smaller weights stay in the model file.'),
        ),
    ), None),

    "unbroadcast": Indexed("function_passes/streamline", PassInfo(
        name='unbroadcast', opt_level=None, kind='function',
        required=('infer_shapes',),
        followed_by=('eliminate_unused_initializer',),
        touches=(
            'Add', 'And', 'BitwiseAnd', 'BitwiseOr', 'BitwiseXor', 'Div', 'Equal', 'Greater',
            'GreaterOrEqual', 'Less', 'LessOrEqual', 'Mul', 'Or', 'Sub', 'Where', 'Xor',
        ),
    ), (
        'Add', 'And', 'BitwiseAnd', 'BitwiseOr', 'BitwiseXor', 'Div', 'Equal', 'Greater',
        'GreaterOrEqual', 'Less', 'LessOrEqual', 'Mul', 'Or', 'Sub', 'Where', 'Xor',
    )),

    "unique_name_for_nodes": Indexed("module_passes/metadata", PassInfo(
        name='unique_name_for_nodes',
        options=(
            Option('unnamed', bool, True,
                'also name unnamed nodes; runtimes accept these, and names take space.'),
        ),
    ), None),

    "verify_equality": Indexed("module_passes/check", PassInfo(
        name='verify_equality', opt_level=None,
        analysis=True,
        options=(
            Option('origin_model', str, '',
                'the file of the original; by default the model as it was loaded.'),
            Option('seed', int, 0, 'of the generated inputs.'),
        ),
    ), None),

    "verify_metric": Indexed("module_passes/check", PassInfo(
        name='verify_metric', opt_level=None,
        analysis=True,
        options=(
            Option('metric', str, 'cosine',
                'cosine, argmax_agreement, top_5_agreement, mispredictions, max_abs_error or '
                'mean_abs_error.'),
            Option('accepted', list[float], [0.99, 1.01], 'its lowest and highest value.'),
            Option('origin_model', str, '',
                'the file of the original; by default the model as it was loaded.'),
            Option('seed', int, 0, 'of the generated inputs.'),
        ),
    ), None),

    "weights_to_int4": Indexed("module_passes/precision", PassInfo(
        name='weights_to_int4', opt_level=None,
        followed_by=('eliminate_unused_initializer',),
        touches=('Conv', 'Gather', 'Gemm', 'MatMul'),
        numerics=Numerics.LOSSY,
        options=(
            Option('block_size', int, 32, 'the numbers that share a scale and a zero point.'),
            Option('min_elements', int, 1024, 'smaller weights stay.'),
            Option('skip_op_types', tuple[str, ...], (), 'operators that keep their weights.'),
            Option('skip_nodes', tuple[str, ...], (),
                'globs of the names of nodes that keep their weights.'),
            Option('budget', str, '',
                'the limit of the outputs, as cosine>=0.999; weights return to float until it '
                'holds; empty for none.'),
            Option('inputs', tuple[str, ...], (),
                'files of samples: x.npy, feeds.npz or a folder; made without any, for a model '
                'of up to 256 MiB of weights.'),
            Option('seed', int, 0, 'of generated inputs.'),
            Option('samples', int, 8, 'how many inputs are made.'),
            Option('rounding', Literal['samples', 'nearest'], 'samples',
                'samples runs the model; nearest does not.'),
            Option('sensitive', Literal['int8', 'int4'], 'int8',
                'the type of tables that a Gather reads, of kernels of Conv, and of the weights'
                ' of the last products, whose rounding costs most; int8 leaves few kernels in '
                'float that would decide the error of the outputs.'),
        ),
    ), None),

    "weights_to_int8": Indexed("module_passes/precision", PassInfo(
        name='weights_to_int8', opt_level=None,
        followed_by=('eliminate_unused_initializer',),
        touches=('Conv', 'Gather', 'Gemm', 'MatMul'),
        numerics=Numerics.LOSSY,
        options=(
            Option('block_size', int, 0,
                'the numbers that share a scale; 0 for a scale for each channel.'),
            Option('min_elements', int, 1024, 'smaller weights stay.'),
            Option('skip_op_types', tuple[str, ...], (), 'operators that keep their weights.'),
            Option('skip_nodes', tuple[str, ...], (),
                'globs of the names of nodes that keep their weights.'),
            Option('budget', str, '',
                'the limit of the outputs, as cosine>=0.999; weights return to float until it '
                'holds; empty for none.'),
            Option('inputs', tuple[str, ...], (),
                'files to measure the budget on: x.npy, feeds.npz or a folder; made without '
                'any.'),
            Option('seed', int, 0, 'of generated inputs.'),
            Option('samples', int, 2, 'how many inputs are made.'),
        ),
    ), None),
}
