"""Rename `price` to `net_price` in one module.

The first attempt is careless and renames text that people see. When the tests say so, the next
one leaves texts alone: a model that is told why it failed does the same.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

path = Path(sys.argv[1])
source = path.read_text(encoding="utf-8")
careful = bool(os.environ.get("CLEVERAGENTS_FEEDBACK"))
pieces = re.split(r"(\"[^\"]*\")", source) if careful else [source]
renamed = [
    piece if piece.startswith('"') else re.sub(r"\bprice\b", "net_price", piece) for piece in pieces
]
path.write_text("".join(renamed), encoding="utf-8")
print(f"renamed in {path}{', texts left alone' if careful else ''}")
