"""Starts real processes, kills them, and compares what they were told with what the store has."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from cleveragents.infrastructure.audit import verify_balances, verify_chain
from cleveragents.infrastructure.store import Store

FOLDER = Path(__file__).parent


@dataclass
class Told:
    """What dead processes were told: all of it must be in the store, each of it once."""

    reserved: set[str] = field(default_factory=set)
    settled: dict[str, int] = field(default_factory=dict)
    recorded: dict[str, int] = field(default_factory=dict)
    errors: list[int] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)

    def listen(self, lines: list[str]) -> None:
        for line in lines:
            match line.split():
                case ["reserved", reservation]:
                    self.reserved.add(reservation)
                case ["settled", reservation, pico]:
                    self.settled[reservation] = int(pico)
                case ["recorded", key, pico]:
                    self.recorded[key] = int(pico)
                case ["error", seq]:
                    self.errors.append(int(seq))
                case ["change", changeset, path]:
                    self.changes.append((changeset, path))

    @property
    def count(self) -> int:
        return sum(
            map(len, (self.reserved, self.settled, self.recorded, self.errors, self.changes))
        )


def start(path: Path, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(FOLDER / "load.py"), str(path), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_after(process: subprocess.Popen[str], lines: int) -> list[str]:
    """Let the process acknowledge some lines, kill it, and return all that it said."""
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if len(said) >= lines:
            break
    process.kill()
    rest, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors, errors
    # The last line may be cut; a cut acknowledgement was not heard.
    return [*said, *(line + "\n" for line in rest.split("\n")[:-1])]


def check(path: Path, told: Told) -> None:
    """Fail unless everything told is there, once, and the books balance."""
    with Store(path) as store, store.read() as connection:
        verdict = verify_chain(connection)
        assert verdict.holds, verdict
        verdict = verify_balances(connection)
        assert verdict.holds, verdict
        reservations = {
            row[0]: row[1:]
            for row in connection.execute("SELECT id, state, pico, billed FROM reservations")
        }
        bills = dict(connection.execute("SELECT key, billed FROM bills"))
        assert told.reserved <= reservations.keys()
        for reservation, pico in told.settled.items():
            assert reservations[reservation][0] == "settled"
            assert reservations[reservation][2] == pico
        for key, pico in told.recorded.items():
            assert bills[key] == pico
        spent, held = connection.execute(
            "SELECT spent, held FROM accounts WHERE key = 'plan:p'"
        ).fetchone() or (0, 0)
        assert spent == sum(row[2] for row in reservations.values()) + sum(bills.values())
        assert held == sum(row[1] for row in reservations.values() if row[0] == "open")
        check_facts(connection, told)


def check_facts(connection, told: Told) -> None:
    recorded = [
        json.loads(body)
        for (body,) in connection.execute(
            "SELECT body FROM events WHERE kind = 'error.recorded' ORDER BY seq"
        )
    ]
    numbers = [body["seq"] for body in recorded]
    assert numbers == list(range(1, len(numbers) + 1))
    assert set(told.errors) <= set(numbers)
    entries = [
        (changeset, path.decode())
        for changeset, path in connection.execute(
            "SELECT s.id, c.path FROM changes c JOIN changesets s ON s.number = c.changeset"
        )
    ]
    assert len(entries) == len(set(entries))
    assert set(told.changes) <= set(entries)
