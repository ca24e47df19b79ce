from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from cleveragents.domain.errors import RequestError, StoreError
from cleveragents.infrastructure import schema
from cleveragents.infrastructure import store as store_module
from cleveragents.infrastructure.audit import verify_chain
from cleveragents.infrastructure.store import Store
from cleveragents.testing import Gate, run_together


def append(kind: str = "test"):
    return lambda tx: tx.event(kind, {"a": 1}, at=1)


def kinds(store: Store) -> list[str]:
    with store.read() as connection:
        return [row[0] for row in connection.execute("SELECT kind FROM events ORDER BY seq")]


def submitted_together(store: Store, *writes):
    """Have writes taken as one group, after one that changes nothing; return their tickets."""
    gate = Gate()
    first = store.submit(lambda _: gate.pass_through())
    gate.wait_for(1)
    tickets = [store.submit(one) for one in writes]
    gate.open()
    first.result()
    return tickets


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".cleveragents" / "state.db"


def test_write_is_there_after_reopening(path):
    with Store(path) as store:
        assert store.write(append("first")) == 1
    with Store(path) as store:
        assert store.write(append("second")) == 2
        assert kinds(store) == ["first", "second"]


def test_write_that_raises_is_undone_alone_and_its_neighbours_are_kept(path):
    gate = Gate()

    def slow(tx):
        gate.pass_through()
        return tx.event("slow", {}, at=1)

    def broken(tx):
        tx.event("broken", {}, at=1)
        raise KeyError("mine alone")

    with Store(path) as store:
        first = store.submit(slow)
        gate.wait_for(1)
        tickets = [store.submit(one) for one in (append("a"), broken, append("b"))]
        gate.open()
        assert first.result() == 1
        assert tickets[0].result() == 2
        with pytest.raises(KeyError, match="mine alone"):
            tickets[1].result()
        assert tickets[2].result() == 3
        assert kinds(store) == ["slow", "a", "b"]
        with store.read() as connection:
            assert verify_chain(connection).holds


def test_write_sees_the_events_that_it_appended(path):
    def write(tx):
        tx.event("one", {}, at=1)
        tx.event("two", {}, at=1)
        return tx.execute("SELECT kind FROM events ORDER BY seq").fetchall()

    with Store(path) as store:
        assert store.write(write) == [("one",), ("two",)]


@pytest.mark.parametrize("count", [1, 7, 8, 64, 65, 200])
def test_events_of_one_commit_stand_in_their_order(path, count):
    with Store(path) as store:
        store.write(lambda tx: [tx.event(str(number), {}, at=1) for number in range(count)])
        assert kinds(store) == [str(number) for number in range(count)]
        with store.read() as connection:
            assert verify_chain(connection).holds


def test_event_that_cannot_be_written_is_undone_with_its_own_write_alone(path):
    def nameless(tx):
        return tx.event("broken", {}, at=1, plan="\udc80")

    with Store(path) as store:
        tickets = submitted_together(store, append("a"), nameless, append("b"))
        assert [tickets[0].result(), tickets[2].result()] == [1, 2]
        with pytest.raises(UnicodeEncodeError):
            tickets[1].result()
        assert kinds(store) == ["a", "b"]
        with store.read() as connection:
            assert verify_chain(connection).holds


class SlowDisk:
    """Stands for `time` and for faults: every commit takes two minutes, and nothing else does."""

    def __init__(self):
        self.now_s = 0.0
        self.commits = 0

    def monotonic(self):
        return self.now_s

    def at(self, point):
        if point == "before-commit":
            self.now_s += 120
            self.commits += 1


@pytest.fixture
def slow_disk(monkeypatch):
    disk = SlowDisk()
    monkeypatch.setattr(store_module, "_LINGER_S_MAX", 60.0)
    monkeypatch.setattr(store_module, "time", disk)
    return disk


def test_callers_who_come_back_share_the_next_commit(path, slow_disk):
    with Store(path, fault=slow_disk.at) as store:
        both = submitted_together(store, append(), append())
        assert [one.result() for one in both] == [1, 2]
        before = slow_disk.commits
        early = store.submit(append())
        with pytest.raises(StoreError, match="did not answer"):
            early.result(timeout_s=0.05)
        late = store.submit(append())
        assert [early.result(), late.result()] == [3, 4]
        assert slow_disk.commits == before + 1


def test_who_comes_after_one_alone_never_waits(path, slow_disk):
    with Store(path, fault=slow_disk.at) as store:
        assert [store.write(append()) for _ in range(3)] == [1, 2, 3]


def test_caller_whose_neighbours_stay_away_is_answered_all_the_same(path):
    with Store(path) as store:
        many = submitted_together(store, *[append()] * 20)
        assert [one.result() for one in many] == list(range(1, 21))
        assert store.write(append()) == 21


def test_broken_constraint_reaches_its_caller_as_a_coded_error(path):
    with Store(path) as store, pytest.raises(StoreError) as caught:
        store.write(lambda tx: tx.execute("INSERT INTO chain VALUES (2, 0, x'00')"))
    assert caught.value.code == "CA6008"


def test_reader_sees_one_moment_while_others_write(path):
    with Store(path) as store:
        store.write(append())
        with store.read() as connection:
            before = connection.execute("SELECT count(*) FROM events").fetchone()
            store.write(append())
            assert connection.execute("SELECT count(*) FROM events").fetchone() == before
        assert len(kinds(store)) == 2


def test_reader_cannot_write(path):
    with Store(path) as store, pytest.raises(StoreError) as caught, store.read() as connection:
        connection.execute("DELETE FROM events")
    assert caught.value.code == "CA6006"


def test_full_queue_makes_callers_wait_and_loses_nothing(path):
    gate = Gate()
    with Store(path, queue_max=2) as store:
        first = store.submit(lambda _: gate.pass_through())
        gate.wait_for(1)
        threads = [threading.Thread(target=store.write, args=(append(),)) for _ in range(8)]
        for thread in threads:
            thread.start()
        gate.open()
        for thread in threads:
            thread.join(10)
        first.result()
        assert len(kinds(store)) == 8


def test_closing_writes_what_was_accepted_and_refuses_the_rest(path):
    store = Store(path)
    tickets = [store.submit(append()) for _ in range(20)]
    store.close()
    store.close()
    assert [ticket.result() for ticket in tickets] == list(range(1, 21))
    for refused in (lambda: store.write(append()), lambda: kinds(store)):
        with pytest.raises(StoreError, match="closed") as caught:
            refused()
        assert caught.value.code == "CA6001"


def test_reader_that_outlives_its_store_is_closed(path):
    store = Store(path)
    with store.read() as connection:
        store.close()
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")


def test_wait_for_an_answer_can_be_limited(path):
    gate = Gate()
    with Store(path) as store:
        ticket = store.submit(lambda _: gate.pass_through())
        with pytest.raises(StoreError, match="did not answer within") as caught:
            ticket.result(timeout_s=0.01)
        assert caught.value.code == "CA6005"
        gate.open()
        ticket.result()


def test_two_stores_on_one_file_write_one_chain(path):
    with Store(path) as one, Store(path) as other:
        run_together(
            [
                lambda: [one.write(append()) for _ in range(20)],
                lambda: [other.write(append()) for _ in range(20)],
            ]
        )
        with one.read() as connection:
            verdict = verify_chain(connection)
    assert (verdict.holds, verdict.checked) == (True, 40)


def test_text_that_utf8_cannot_hold_survives(path):
    with Store(path) as store:
        store.write(lambda tx: tx.event("odd", {"name": "\udcff"}, at=1))
        with store.read() as connection:
            assert verify_chain(connection).holds


class TestOpening:
    def test_file_of_a_newer_version_is_refused_unchanged(self, path):
        Store(path).close()
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()
        with pytest.raises(StoreError, match="has version 99, newer than") as caught:
            Store(path)
        assert caught.value.code == "CA6002"

    def test_database_of_another_program_is_refused_unchanged(self, path):
        path.parent.mkdir()
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE theirs (a)")
        connection.close()
        with pytest.raises(StoreError, match="of another program"):
            Store(path)
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (1,)
        connection.close()

    def test_steps_are_taken_once_and_recorded(self, path):
        Store(path).close()
        with Store(path) as store, store.read() as connection:
            names = [row[0] for row in connection.execute("SELECT name FROM migrations")]
        assert names == [name for name, _ in schema.steps()]

    def test_damaged_file_is_refused(self, path):
        path.parent.mkdir()
        path.write_bytes(b"this is no database, and it is long enough to be looked at" * 20)
        with pytest.raises(StoreError, match="damaged or no SQLite") as caught:
            Store(path)
        assert caught.value.code == "CA6004"

    def test_folder_that_cannot_be_made_is_refused(self, path):
        path.parent.write_text("a file where the folder should be")
        with pytest.raises(StoreError, match="cannot be made") as caught:
            Store(path)
        assert caught.value.code == "CA6007"

    def test_folder_in_place_of_the_file_is_refused(self, path):
        path.mkdir(parents=True)
        with pytest.raises(StoreError, match="cannot be opened") as caught:
            Store(path)
        assert caught.value.code == "CA6007"

    def test_queue_must_hold_something(self, path):
        with pytest.raises(RequestError, match="`queue_max`"):
            Store(path, queue_max=0)


class TestFaults:
    def test_full_disk_refuses_the_write_and_the_store_goes_on(self, path):
        with Store(path) as store:
            store.write(append("before"))
            store.write(lambda tx: tx.execute("PRAGMA max_page_count = 60"))
            with pytest.raises(StoreError, match="disk is full") as caught:
                store.write(lambda tx: tx.event("big", {"a": "x" * 1_000_000}, at=1))
            assert caught.value.code == "CA6003"
            assert store.write(append("after")) == 2
            assert kinds(store) == ["before", "after"]

    def test_locked_file_is_said_to_be_locked(self, path, monkeypatch):
        monkeypatch.setattr("cleveragents.infrastructure.store._BUSY_S", 0.01)
        with Store(path) as store:
            blocker = sqlite3.connect(path, isolation_level=None)
            blocker.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="locked by another program") as caught:
                store.write(append())
            assert caught.value.code == "CA6005"
            blocker.execute("ROLLBACK")
            blocker.close()
            assert store.write(append()) == 1

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write what is read-only")
    def test_read_only_file_is_said_to_be_so(self, path):
        Store(path).close()
        path.chmod(0o444)
        with pytest.raises(StoreError) as caught:
            Store(path)
        assert caught.value.code == "CA6006"

    @pytest.mark.parametrize("point", ["before-begin", "before-write", "before-commit"])
    def test_store_survives_failure_of_write(self, path, point):
        """The n-th time fails, n rising until no fault is reached: told and kept are the same."""
        number = 0
        reached = True
        while reached:
            number += 1
            passed, reached = 0, False

            def fault(at: str, number: int = number) -> None:
                nonlocal passed, reached
                passed += at == point
                if passed == number and not reached:
                    reached = True
                    raise sqlite3.OperationalError("disk I/O error")

            file = path.with_name(f"{number}.db")
            told = []
            with Store(file, fault=fault) as store:
                for turn in range(3):
                    with contextlib.suppress(StoreError):
                        store.write(append(f"k{turn}"))
                        told.append(f"k{turn}")
                assert kinds(store) == told
        assert number >= 3

    def test_store_whose_folder_was_deleted_says_so_and_acknowledges_nothing(self, path):
        """SQLite alone would go on writing into a file without a name."""
        with Store(path) as store:
            store.write(append())
            shutil.rmtree(path.parent)
            with pytest.raises(StoreError, match="was deleted or replaced") as caught:
                store.write(append())
        assert caught.value.code == "CA6007"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
    def test_read_only_file_is_said_to_be_so_to_those_who_may_not_write(self, request):
        # Not in a folder of pytest, which it closes to others whenever it starts anywhere.
        place = tempfile.TemporaryDirectory()
        request.addfinalizer(place.cleanup)
        shared = Path(place.name, "shared")
        Store(shared / "state.db").close()
        for one in (shared.parent, shared):
            one.chmod(0o755)
        program = (
            "import os, sys; from pathlib import Path;"
            "from cleveragents.infrastructure.store import Store;"
            "from cleveragents.domain.errors import StoreError\n"
            "os.setuid(65534)\n"
            "try: Store(Path(sys.argv[1]))\n"
            "except StoreError as error: print(error.code)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(shared / "state.db")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.strip() == "CA6006", done.stderr
