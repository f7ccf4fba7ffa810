"""The peak of the memory of a process."""

import sys

import pytest

from tiered.support.peak import peak_since_reset, reset_peak

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux counts it")


def test_the_peak_is_what_the_system_counts_in_bytes() -> None:
    reset_peak()
    peak = peak_since_reset()
    assert peak is not None
    with open("/proc/self/status", encoding="ascii") as file:
        counted = dict(line.rstrip().split(":") for line in file)["VmHWM"].split()
    assert counted[1] == "kB"
    assert peak % 1024 == 0
    assert 0 <= int(counted[0]) * 1024 - peak < 1 << 24
