"""`cleveragents init`: a first plan to edit, and the state folder."""

from __future__ import annotations

import json
import os
import shlex
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleveragents.cli import output, state
from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.infrastructure.plan_files import schema
from cleveragents.workspace import made_home

if TYPE_CHECKING:
    from argparse import Namespace

#: What is written, in the current folder.
PLAN_FILE: Final = "plan.yaml"
#: In the state folder; the first line of the plan tells editors of it.
SCHEMA_FILE: Final = "plan.schema.json"
_NEXT: Final = f"cleveragents run {PLAN_FILE}"


def init(options: Namespace) -> int:
    """Write an example plan and what editors need to check it, or print the schema."""
    if options.schema:
        output.data(_schema())
        return 0
    text = _template(options.template)
    plan = Path.cwd() / PLAN_FILE
    if not options.force and os.path.lexists(plan):
        again = shlex.join(["cleveragents", "init", "--force", f"--template={options.template}"])
        raise RequestError(
            f"`{plan}` is there already; nothing was written",
            facts={"file": plan},
            hint=f"Run `{again}` to replace it",
        )
    try:
        described = made_home(state.root()) / SCHEMA_FILE
        described.write_text(_schema() + "\n", encoding="utf-8")
        reached = Path(os.path.relpath(described, plan.parent)).as_posix()
        _write(plan, text.replace("SCHEMA", reached, 1), force=options.force)
    except OSError as error:
        raise SetupError(
            f"`{error.filename}` cannot be written: {error.strerror}",
            facts={"file": error.filename},
            hint="Make the folder writable, or run this in another one",
        ) from None
    if options.json:
        record = {"kind": "plan_file", "file": str(plan), "schema": str(described), "next": _NEXT}
        output.record(record)
    else:
        output.data(str(plan))
        output.talk(f"\nhint: Run `{_NEXT}` as it is, or edit the plan first")
    return 0


def _write(plan: Path, text: str, *, force: bool) -> None:
    # `x` refuses a file that somebody made meanwhile.
    with plan.open("w" if force else "x", encoding="utf-8") as file:
        file.write(text)


def _template(name: str) -> str:
    file = files("cleveragents.cli") / "templates" / f"{name}.yaml"
    return file.read_text(encoding="utf-8")


def _schema() -> str:
    return json.dumps(schema(), indent=2, ensure_ascii=False)
