"""`python -m tiered` is the command `tiered`."""

from tiered.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
