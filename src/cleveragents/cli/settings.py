"""`cleveragents settings`: every setting, its value, where it comes from, what it is about."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

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
            "value": _plain(getattr(settings, one.name)),
            "source": sources[one.name],
            "about": one.metadata["about"],
        }
        for one in fields(Settings)
    ]
    for row in rows:
        if options.json:
            output.record(row)
        else:
            value = row["value"] if row["value"] not in (None, {}) else "none"
            shown = ", ".join(value) if isinstance(value, dict) else value
            output.data(f"{row['setting']:<24} {shown!s:<12} {row['source']}\n  {row['about']}")
    return 0


def _plain(value: Any) -> Any:
    """Return tables as they are written in the file; what is not set is left out."""
    if not isinstance(value, tuple):
        return value
    return {
        name: {key: one for key, one in asdict(table).items() if one is not None}
        for name, table in value
    }
