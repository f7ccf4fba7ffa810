"""`python -m tiered.compat.onnx_passes [-o OUT] [-c CONFIG] [-s STATE] MODEL [PASS]...`"""

import sys

from tiered.compat.onnx_passes.command_line import main

if __name__ == "__main__":
    sys.exit(main())
