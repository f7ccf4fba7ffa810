"""`python -m tiered` is the command `tiered`; `serve-jobs` makes it the process of a batch."""

import sys

if __name__ == "__main__":
    if sys.argv[1:] == ["serve-jobs"]:
        from tiered.cli.job_server import main

        main()
    else:
        from tiered.cli import process

        process()
