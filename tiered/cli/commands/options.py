"""List the config options of `tiered optimize --set`.

Examples:
    tiered options

`--json` prints an array of objects: name, takes, default, doc.
"""

from __future__ import annotations

from tiered.cli.output.tables import print_table
from tiered.cli.output.terminal import print_json, results
from tiered.cli.shared_options import AsJson
from tiered.support.config_options import config_options
from tiered.support.option_text import format_value


def options(*, as_json: AsJson = False) -> None:
    """Print all config options."""
    rows = [
        (option.name, option.takes, format_value(option.default), option.doc)
        for option in config_options().values()
    ]
    headers = ("name", "takes", "default", "doc")
    if as_json:
        print_json([dict(zip(headers, row, strict=True)) for row in rows])
    else:
        print_table(results(), f"{len(rows)} config options", headers, rows)
