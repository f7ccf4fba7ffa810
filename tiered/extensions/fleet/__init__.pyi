from tiered.extensions.fleet.api import (
    FleetOptions as FleetOptions,
    run as run,
    submit as submit,
)
from tiered.extensions.fleet.job import Command as Command
from tiered.extensions.fleet.manifest import read_manifest as read_manifest
from tiered.extensions.fleet.result import Result as Result
