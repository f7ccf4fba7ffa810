from tiered.fleet.api import (
    FleetOptions as FleetOptions,
    run as run,
    submit as submit,
)
from tiered.fleet.job import Command as Command
from tiered.fleet.manifest import read_manifest as read_manifest
from tiered.fleet.result import Result as Result
