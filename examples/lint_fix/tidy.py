"""A formatter for an example: no space at the end of a line, one line end at the end."""

from __future__ import annotations

import sys
from pathlib import Path

path = Path(sys.argv[1])
lines = [line.rstrip() for line in path.read_text(encoding="utf-8").splitlines()]
tidy = "\n".join(lines).rstrip("\n") + "\n"
if tidy != path.read_text(encoding="utf-8"):
    path.write_text(tidy, encoding="utf-8")
    print(f"tidied {path}")
