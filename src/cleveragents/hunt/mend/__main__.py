"""`python -m cleveragents.hunt.mend ROOT`: findings in, as JSON; files mended; what holds, out."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from cleveragents.hunt.mend.holding import mend_files
from cleveragents.hunt.records import finding_from


def main() -> int:
    """Mend what standard input names, in the tree that the first argument names."""
    asked = json.load(sys.stdin)
    findings = [finding_from(one) for one in asked["findings"]]
    told = mend_files(Path(sys.argv[1]).resolve(), findings, asked["options"])
    sys.stdout.write(json.dumps(asdict(told)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
