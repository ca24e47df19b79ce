"""`python -m cleveragents.hunt.inputs.observe ROOT`: run the tests on a copy, print what they call.

The command comes as JSON on stdin, such as `["pytest", "-q"]`. Whether the tests pass does not
matter here; what they wrote into their tree is gone with the copy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

_PLUGIN = "cleveragents.hunt.inputs.recorder"


def main() -> int:
    """Run the command that standard input names, with the recorder in pytest."""
    command = json.load(sys.stdin)
    with TemporaryDirectory() as folder:
        tree, rows = Path(folder, "tree"), Path(folder, "calls.json")
        shutil.copytree(sys.argv[1], tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        options = os.environ.get("PYTEST_ADDOPTS", "")
        environment = {
            **os.environ,
            "PYTEST_ADDOPTS": f"{options} -p no:cacheprovider -p {_PLUGIN} --hunt-record={rows}",
        }
        subprocess.run(command, cwd=tree, env=environment, stdout=sys.stderr, check=False)
        sys.stdout.write(rows.read_text(encoding="utf-8") if rows.exists() else "{}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
