"""What holds for every test."""

from hypothesis import settings

# How long an example takes depends on the machine, and nothing is left in the checkout.
settings.register_profile("tiered", deadline=None, database=None)
settings.load_profile("tiered")
