"""`cleveragents settings`: every setting, its value, where it comes from, what it is about."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from cleveragents.cli import output
from cleveragents.settings import Settings, load

if TYPE_CHECKING:
    from argparse import Namespace


def show_settings(options: Namespace) -> int:
    """Print the settings in force."""
    settings, sources = load()
    rows = [
        {
            "setting": one.name,
            "value": getattr(settings, one.name),
            "source": sources[one.name],
            "about": one.metadata["about"],
        }
        for one in fields(Settings)
    ]
    for row in rows:
        if options.json:
            output.record(row)
        else:
            value = "none" if row["value"] is None else row["value"]
            output.data(f"{row['setting']:<24} {value!s:<12} {row['source']}\n  {row['about']}")
    return 0
