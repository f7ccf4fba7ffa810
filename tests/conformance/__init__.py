"""The contract of `tiered.optimize`, judged on whole models and on the ONNX backend cases.

    python -m tests.conformance [--models DIR] [--suite models|backend|all] \
        [--levels 0,1,2,3,4] [--jobs N] [--only GLOB] [--json OUT]

At every level the result must be valid, keep the interface and the opsets, run on onnxruntime,
give the same outputs (bit for bit up to level 2), hardly grow, and be the same bytes whenever it
is made.
pytest does not collect this package: it takes minutes. `tests/test_conformance.py` shows that the
judge finds what it is for.
"""
