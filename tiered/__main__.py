"""`python -m tiered` is the command `tiered`."""

from tiered.cli import process

if __name__ == "__main__":
    process()
