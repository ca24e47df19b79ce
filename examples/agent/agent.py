"""A stand-in for a command-line agent: does its task, and prints its answer and cost as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

task = sys.argv[1]
name = "NOTES.md" if "NOTES.md" in task else task.split()[-1]
path = Path(name)
if path.suffix == ".py":
    source = path.read_text(encoding="utf-8")
    path.write_text(f'"""The {path.stem} of the shop."""\n\n{source}', encoding="utf-8")
else:
    path.write_text("Every module has a docstring now.\n", encoding="utf-8")
usage = {"input_tokens": 1200, "output_tokens": 80}
print(json.dumps({"result": f"changed {name}", "total_cost_usd": 0.0125, "usage": usage}))
