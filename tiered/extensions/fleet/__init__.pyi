from tiered.extensions.fleet.batch_api import (
    FleetOptions as FleetOptions,
    run as run,
    submit as submit,
)
from tiered.extensions.fleet.job import Command as Command
from tiered.extensions.fleet.manifest import read_manifest as read_manifest
from tiered.extensions.fleet.result_line import Result as Result
