"""The manager of sandboxes: one contract for all kinds, and what becomes of the dead's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import sandboxkit
from cleveragents.domain.errors import RequestError, SandboxError, StoreError
from cleveragents.infrastructure.sandbox import sandbox_rows as rows
from cleveragents.infrastructure.sandbox.owner import Owner, this_machine
from cleveragents.infrastructure.sandbox.process_tree import MARK
from cleveragents.infrastructure.sandbox.sandbox import SandboxState
from cleveragents.testing import FrozenClock, Gate, run_together
from sandboxkit import KINDS, Other, expected, file, seen


@pytest.fixture(params=KINDS)
def kind(request, world):
    with world.manager() as manager:
        if (why := manager.available()[request.param]) is not None:
            pytest.skip(f"`{request.param}` is not available: {why}")
    return request.param


@pytest.fixture
def manager(world, kind):
    with world.manager(kind) as manager:
        yield manager


def events(world):
    with world.store.read() as connection:
        return [
            row[0]
            for row in connection.execute(
                "SELECT kind FROM events WHERE kind LIKE 'sandbox.%' ORDER BY seq"
            )
        ]


def sealer(manager, met):
    """A salvage that looks at the files, remembers them, and seals."""

    def salvage(sandbox):
        met.append((sandbox.id, seen(sandbox.path), sandbox.touched()))
        manager.mark_sealed(sandbox.id, "c-saved")

    return salvage


def refuse(sandbox):
    raise AssertionError(f"{sandbox.id} must not be salvaged")


# -- what an attempt sees ------------------------------------------------------------------


def test_sandbox_shows_the_tree_as_it_was(world, manager):
    before = expected(world.root)
    manager.prepare(world.base)
    (world.root / "plain.txt").write_text("edited later")
    (world.root / "later.txt").write_text("made later")
    (world.root / "later-folder").mkdir()
    sandbox = manager.create("p", "n", 1)
    assert seen(sandbox.path) == before
    assert sandbox.commit == world.base


def test_snapshot_is_made_ready_before_the_first_sandbox(world, manager, kind):
    manager.prepare(world.base)
    snapshot = world.root / ".cleveragents" / "snapshots" / world.base
    assert snapshot.is_dir() == (kind != "worktree")


def test_sandboxes_see_their_own_writes_and_nobody_elses(world, manager):
    before = expected(world.root)
    one, other = manager.create("p", "a", 1), manager.create("p", "b", 1)
    (one.path / "plain.txt").write_text("one's")
    (one.path / "new").write_text("one's")
    (one.path / "dir" / "other").unlink()
    (one.path / "run.sh").chmod(0o644)
    (one.path / "link").unlink()
    assert seen(other.path) == before == seen(manager.create("p", "c", 1).path)
    assert expected(world.root) == before
    assert (one.path / "plain.txt").read_text() == "one's"
    assert not (one.path / "dir" / "other").exists()


def test_sandbox_starts_from_where_the_plan_has_come_to(world, manager):
    """Deleted, changed and new files, folders for files and files for folders, links for both."""
    world.move_head(
        {
            "plain.txt": file("changed"),
            "run.sh": file("#!/bin/sh\n"),
            "crlf.txt": None,
            "dir/deep/file": None,
            "dir/deep": file("a file now"),
            "binary": None,
            "binary/in/here": file("a folder now", 0o100755),
            "folder-link": None,
            "folder-link/file": file("a folder that was a link"),
            "link": file("dangling", 0o120000),
            "new/deep/file": file("new"),
            "hollow/nested/deeper/file": file("not hollow"),
            "caf\udce9": file("still not utf-8"),
            "new\nline": None,
        }
    )
    found = seen(manager.create("p", "n", 1).path)
    plain = expected(world.root)
    for gone in ("crlf.txt", "dir/deep", "dir/deep/file", "new\nline", "binary", "folder-link"):
        del plain[gone]
    plain |= {
        "plain.txt": ("file", False, b"changed"),
        "run.sh": ("file", False, b"#!/bin/sh\n"),
        "dir/deep": ("file", False, b"a file now"),
        "binary": "folder",
        "binary/in": "folder",
        "binary/in/here": ("file", True, b"a folder now"),
        "folder-link": "folder",
        "folder-link/file": ("file", False, b"a folder that was a link"),
        "link": ("link", "dangling"),
        "new": "folder",
        "new/deep": "folder",
        "new/deep/file": ("file", False, b"new"),
        "hollow/nested/deeper/file": ("file", False, b"not hollow"),
        "caf\udce9": ("file", False, b"still not utf-8"),
    }
    assert found == plain


def test_folder_goes_with_its_last_file(world, manager):
    world.move_head({"dir/deep/file": None, "dir/other": None})
    found = seen(manager.create("p", "n", 1).path)
    assert not [name for name in found if name.startswith("dir/")]
    assert "hollow/nested/deeper" in found


def test_sandbox_names_what_may_differ_or_says_that_all_may(manager, kind):
    sandbox = manager.create("p", "n", 1)
    (sandbox.path / "plain.txt").write_text("changed")
    assert sandbox.touched() == (("plain.txt",) if kind == "overlay" else None)


def test_command_finds_the_files_at_the_place_of_the_sandbox(world, manager):
    sandbox = manager.create("p", "n", 1)
    (sandbox.path / "plain.txt").write_text("seen by a command")
    place = sandbox.place
    ran = subprocess.run(
        [*place.enter, "cat", f"{place.path}/plain.txt"], capture_output=True, check=True
    )
    assert ran.stdout == b"seen by a command"
    assert place.root == world.root


# -- the life of a sandbox -----------------------------------------------------------------


def test_sealed_sandbox_is_released_with_its_folder(world, manager):
    sandbox = manager.create("p", "n", 3)
    manager.mark_sealed(sandbox.id, "c-1")
    manager.mark_sealed(sandbox.id, "c-1")
    manager.release(sandbox.id)
    assert world.leftovers() == []
    assert manager.list() == ()
    (info,) = manager.list(released_too=True)
    assert (info.state, info.changeset, info.attempt) == (SandboxState.RELEASED, "c-1", 3)
    assert events(world) == ["sandbox.created", "sandbox.sealed", "sandbox.released"]
    with pytest.raises(SandboxError, match="cannot be reached") as caught:
        sandbox.check()
    assert caught.value.code == "CA5004"


def test_manager_that_closes_leaves_no_empty_folder_of_its_own(world):
    with world.manager("copy") as manager:
        manager.release(manager.create("p", "n", 1).id, discard=True)
    assert list((world.root / ".cleveragents/sandboxes").iterdir()) == []


def test_release_refuses_work_that_is_not_sealed(world, manager):
    sandbox = manager.create("p", "n", 1)
    with pytest.raises(SandboxError, match="not in the store") as caught:
        manager.release(sandbox.id)
    assert caught.value.code == "CA5003"
    assert (sandbox.path / "plain.txt").exists()
    manager.release(sandbox.id, discard=True)
    assert world.leftovers() == []


def test_second_release_is_refused(manager):
    sandbox = manager.create("p", "n", 1)
    manager.release(sandbox.id, discard=True)
    for again in (manager.release, manager.open):
        with pytest.raises(SandboxError, match="was released") as caught:
            again(sandbox.id)
        assert caught.value.code == "CA5004"


def test_seal_is_not_replaced_by_another(manager):
    sandbox = manager.create("p", "n", 1)
    manager.mark_sealed(sandbox.id, "c-1")
    with pytest.raises(SandboxError, match="c-1"):
        manager.mark_sealed(sandbox.id, "c-2")


def test_unknown_sandbox_is_refused(manager):
    for verb in (manager.open, manager.release, lambda one: manager.mark_sealed(one, "c")):
        with pytest.raises(SandboxError, match="no sandbox") as caught:
            verb("s-none")
        assert caught.value.code == "CA5004"


def test_list_tells_of_all_or_of_one_plan(manager):
    manager.create("p", "a", 1)
    manager.create("q", "b", 2)
    assert [info.node for info in manager.list()] == ["a", "b"]
    assert [info.node for info in manager.list("q")] == ["b"]


def test_open_returns_a_sandbox_of_ours_with_what_was_written(manager):
    sandbox = manager.create("p", "n", 1)
    (sandbox.path / "plain.txt").write_text("mine")
    again = manager.open(sandbox.id)
    assert (again.path / "plain.txt").read_text() == "mine"
    assert again.path == sandbox.path


def test_read_only_folders_and_files_are_deleted(world, manager):
    sandbox = manager.create("p", "n", 1)
    locked = sandbox.path / "locked" / "inside"
    locked.mkdir(parents=True)
    (locked / "file").write_text("x")
    (locked / "out").symlink_to(world.root)
    for one, mode in ((locked / "file", 0o400), (locked, 0o500), (locked.parent, 0o000)):
        one.chmod(mode)
    before = expected(world.root)
    manager.release(sandbox.id, discard=True)
    assert world.leftovers() == []
    assert expected(world.root) == before


# -- after the dead ------------------------------------------------------------------------


def test_killed_process_loses_its_sandbox_but_not_its_work(world, kind):
    other = Other(world.root, kind)
    other.kill()
    assert other.keeper_ended()
    met = []
    with world.manager() as manager:
        (gone,) = manager.collect_garbage(sealer(manager, met))
        ((sandbox_id, files, touched),) = met
        assert sandbox_id == other.said["id"] == gone.id
        assert files["written"] == ("file", False, b"by the dead")
        assert "plain.txt" not in files
        assert touched in {None, ("plain.txt", "written")}
        assert gone.state is SandboxState.RELEASED
        assert gone.fence == 2
        assert manager.collect_garbage(refuse) == ()
    assert world.leftovers() == []
    assert str(world.root) not in Path("/proc/self/mountinfo").read_text()


def test_two_collectors_salvage_a_sandbox_once(world, kind):
    for _ in range(3):
        Other(world.root, kind).kill()
    met = []
    with world.manager() as one, world.manager() as other:
        gone = run_together(
            [lambda: one.collect_garbage(sealer(one, met))] * 2
            + [lambda: other.collect_garbage(sealer(other, met))] * 2
        )
        assert len(met) == 3 == len({sandbox_id for sandbox_id, *_ in met})
        assert sum(map(len, gone)) == 3
    assert world.leftovers() == []


def test_sandbox_that_is_being_salvaged_is_nobody_elses(world):
    Other(world.root, "copy").kill()
    met = []
    with world.manager() as one, world.manager() as other:

        def salvage(sandbox):
            assert other.collect_garbage(refuse) == ()
            sealer(one, met)(sandbox)

        one.collect_garbage(salvage)
    assert len(met) == 1


def test_takeover_that_does_not_compare_would_salvage_twice(world, monkeypatch):
    """The planted bug: what the test above must be able to catch."""
    Other(world.root, "copy").kill()
    monkeypatch.setattr(rows, "take", lambda *_: lambda _: True)
    met = []
    with world.manager() as one, world.manager() as other:

        def salvage(sandbox):
            met.append(sandbox.id)
            if len(met) == 1:
                other.collect_garbage(salvage)

        with pytest.raises(SandboxError):
            one.collect_garbage(salvage)
    assert len(met) == 2


def test_living_process_keeps_its_sandbox(world, kind):
    other = Other(world.root, kind)
    with world.manager() as manager:
        assert manager.collect_garbage(refuse) == ()
        for verb in (manager.open, lambda one: manager.release(one, discard=True)):
            with pytest.raises(SandboxError, match="another process") as caught:
                verb(other.said["id"])
            assert caught.value.code == "CA5004"
        other.kill()
        sandbox = manager.open(other.said["id"])
        assert (sandbox.path / "written").read_text() == "by the dead"
        manager.mark_sealed(sandbox.id, "c")
        manager.release(sandbox.id)
    assert world.leftovers() == []


DEATHS = [
    "layers:Layers._fill_snapshot",
    "layers:_sync",
    "layers:Layers.make_empty_folders",
    "layers:Layers.write",
    "layers:_write_file",
    "sandboxes:SandboxManager._sandbox",
    "sandbox_rows:add",
    "sandbox_rows:release",
    "sandboxes:SandboxManager._remove",
    "erasure:_remove",
]
#: A worktree is git's work, without snapshots and layers.
NOT_ON_THE_ROAD = {
    ("worktree", "layers:Layers._fill_snapshot"),
    ("worktree", "layers:Layers.write"),
    ("worktree", "layers:_write_file"),
}


@pytest.mark.parametrize("death", DEATHS, ids=lambda one: one.rpartition(":")[2])
def test_death_at_any_step_leaves_nothing_that_is_not_collected(world, kind, death):
    world.move_head({"plain.txt": file("moved"), "binary": None})
    (world.root / ".cleveragents" / "moved").write_text(world.head)
    other = Other(world.root, kind, death)
    other.end()
    died = other.process.returncode == -signal.SIGKILL
    assert died or (kind, death) in NOT_ON_THE_ROAD
    with world.manager(kind) as manager:
        manager.collect_garbage(lambda sandbox: manager.mark_sealed(sandbox.id, "c"))
        assert world.leftovers() == []
        found = seen(manager.create("p", "n", 2).path)
        assert found["plain.txt"] == ("file", False, b"moved")


def test_salvage_that_fails_keeps_the_sandbox_for_the_next_collection(world, kind):
    for _ in range(2):
        Other(world.root, kind).kill()
    met = []
    with world.manager() as manager:
        first = manager.list()[0].id

        def fail_on_the_first(sandbox):
            if sandbox.id == first:
                raise StoreError("no room")
            sealer(manager, met)(sandbox)

        with pytest.raises(StoreError, match="no room"):
            manager.collect_garbage(fail_on_the_first)
        assert len(met) == 1
        with pytest.raises(SandboxError, match="not in the store") as caught:
            manager.collect_garbage(lambda _: None)
        assert caught.value.code == "CA5003"
        with pytest.raises(KeyboardInterrupt):
            manager.collect_garbage(interrupt)
        assert [one.id for one in manager.collect_garbage(sealer(manager, met))] == [first]
        assert met[1][1]["written"] == ("file", False, b"by the dead")
    assert world.leftovers() == []


def interrupt(_):
    raise KeyboardInterrupt


def test_sealed_sandbox_of_the_dead_is_deleted_without_salvage(world, kind):
    with world.manager(kind) as manager:
        sandbox = manager.create("p", "n", 1)
        manager.mark_sealed(sandbox.id, "c")
    with world.manager() as manager:
        assert [one.id for one in manager.collect_garbage(refuse)] == [sandbox.id]
    assert world.leftovers() == []


def test_closed_manager_leaves_its_sandboxes_to_others(world, kind):
    with world.manager(kind) as manager:
        sandbox = manager.create("p", "n", 1)
        (sandbox.path / "plain.txt").write_text("kept")
    with world.manager(kind) as other:
        assert (other.open(sandbox.id).path / "plain.txt").read_text() == "kept"


# -- what sandboxes stood on ---------------------------------------------------------------


def layers_of(world):
    folder = world.root / ".cleveragents" / "layers"
    return {one.name for one in folder.iterdir() if one.is_dir()} if folder.is_dir() else set()


def overlay_or_skip(world):
    manager = world.manager()
    if (why := manager.available()["overlay"]) is not None:
        manager.close()
        pytest.skip(f"`overlay` is not available: {why}")
    return manager


def test_layers_go_with_the_last_sandbox_on_them_but_for_the_newest(world):
    with overlay_or_skip(world) as manager:
        made = []
        for number in range(3):
            world.move_head({"plain.txt": file(str(number))})
            made += [manager.create("p", "n", number), manager.create("p", "m", number)]
        assert len(layers_of(world)) == 3
        manager.release(made[0].id, discard=True)
        assert len(layers_of(world)) == 3
        manager.release(made[1].id, discard=True)
        assert len(layers_of(world)) == 2
        for sandbox in made[2:]:
            assert (sandbox.path / "plain.txt").read_text() in {"1", "2"}
            manager.release(sandbox.id, discard=True)
        assert layers_of(world) == {f"{world.base}-{world.head}"}


def test_sandbox_on_layers_shows_what_a_copy_shows(world):
    many = {f"many/{number}": file("one") for number in range(40)}
    with overlay_or_skip(world) as manager, world.manager("copy") as copies:
        for step in (
            {**many, "swap": file("a file"), "fold/in/it": file("1")},
            {"swap": None, "swap/deep/file": file("a folder"), "fold/in/it": None},
            {"fold/other": file("back"), "many/1": None, "run.sh": file("changed", 0o100755)},
            {"swap/deep/file": None, "swap": file("again"), "many/1": file("two")},
        ):
            world.move_head(step)
            sandbox = manager.create("p", "n", 1)
            assert seen(sandbox.path) == seen(copies.create("p", "n", 1).path)
        assert len(sandbox.ground.lowers) > 2
        (sandbox.path / "many" / "1").unlink()
        assert sandbox.touched() == ("many/1",)


def test_release_is_not_refused_for_a_layer_that_cannot_be_deleted(world, monkeypatch, caplog):
    def busy(*_):
        raise OSError("busy")

    with overlay_or_skip(world) as manager:
        world.move_head({"plain.txt": file("moved")})
        sandbox = manager.create("p", "n", 1)
        monkeypatch.setattr("cleveragents.infrastructure.sandbox.layers.Layers.sweep", busy)
        manager.release(sandbox.id, discard=True)
        assert manager.list() == ()
    assert "stood on is not deleted yet" in caplog.text


def test_collection_deletes_what_no_plan_has_stood_on_for_a_day(world):
    clock = FrozenClock(datetime.now(UTC))
    with overlay_or_skip(world), world.manager("overlay", clock=clock) as manager:
        world.move_head({"plain.txt": file("moved")})
        sandbox = manager.create("p", "n", 1)
        snapshot = world.root / ".cleveragents" / "snapshots" / world.base
        clock.advance(2 * 86_400)
        manager.collect_garbage(refuse)
        assert (sandbox.path / "binary").read_bytes() == bytes(range(256))
        manager.release(sandbox.id, discard=True)
        manager.collect_garbage(refuse)
        assert layers_of(world) == set()
        assert not snapshot.exists()
        assert seen(manager.create("p", "n", 2).path)["plain.txt"] == ("file", False, b"moved")


def test_layer_is_not_deleted_under_a_sandbox_that_is_being_made(world, monkeypatch):
    """The other collects after the mount, and before the row that tells of it."""
    plain = rows.add
    with overlay_or_skip(world) as manager, world.manager() as other:
        world.move_head({"plain.txt": file("moved")})

        def late(*arguments):
            other.collect_garbage(refuse)
            return plain(*arguments)

        monkeypatch.setattr(rows, "add", late)
        sandbox = manager.create("p", "n", 1)
        assert (sandbox.path / "plain.txt").read_text() == "moved"
        assert layers_of(world) == {f"{world.base}-{world.head}"}


# -- what dead processes left running ------------------------------------------------------

LEAVES_A_COMMAND = """
import sys
from pathlib import Path
from cleveragents.infrastructure.sandbox.command import Command, CommandRunner
from sandboxkit import World
world = World.open(Path(sys.argv[1]))
manager = world.manager("copy")
sandbox = manager.create("p", "n", 1)
script = "echo $$ > pid; echo started >&2; exec sleep 600"
CommandRunner("off").run(
    Command(("sh", "-c", script)),
    sandbox.place,
    on_output=lambda _: print("started", flush=True),
)
"""


def test_commands_of_the_dead_are_ended_before_their_sandbox_is_sealed(world):
    tests = Path(sandboxkit.__file__).parent
    with subprocess.Popen(
        [sys.executable, "-c", LEAVES_A_COMMAND, world.root],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(tests)},
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"started\n"
        other.kill()
    alive = []
    with world.manager("copy") as manager:

        def salvage(sandbox):
            pid = int((sandbox.path / "pid").read_text())
            alive.append(is_running(pid))
            if alive[-1]:
                os.kill(pid, signal.SIGKILL)
            manager.mark_sealed(sandbox.id, "c")

        manager.collect_garbage(salvage)
    assert alive == [False]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes() != b""
    except OSError:
        return False


def test_commands_of_a_process_that_lives_are_not_ended(world):
    """It closed its sandboxes, and may have others."""
    mark = f"{Owner.here().process}-feed"
    command = subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: mark})
    try:
        with world.manager("copy") as manager:
            manager.create("p", "n", 1)
        with world.manager("copy") as manager:
            manager.collect_garbage(sealer(manager, []))
        assert is_running(command.pid)
    finally:
        command.kill()
        command.wait()


# -- leases --------------------------------------------------------------------------------


def elsewhere():
    return Owner("0123456789abcdef", 1, "1", "feed")


def test_silence_beyond_the_lease_costs_the_sandboxes_for_good(world, kind):
    """The owner lives, and writes: from the moment of the takeover it is refused."""
    clock = FrozenClock()
    silent = world.manager(kind, clock=clock, lease_s=3600, owner=elsewhere())
    with silent, world.manager(kind, clock=clock, lease_s=3600) as collector:
        sandbox = silent.create("p", "n", 1)
        clock.advance(3599)
        assert collector.collect_garbage(refuse) == ()
        clock.advance(2)
        met = []
        assert len(collector.collect_garbage(sealer(collector, met))) == 1
        for verb in (
            lambda: silent.mark_sealed(sandbox.id, "late"),
            lambda: silent.release(sandbox.id, discard=True),
            lambda: silent.create("p", "n", 2),
        ):
            with pytest.raises(SandboxError) as caught:
                verb()
            assert caught.value.code == "CA5004"
        kept = collector.list(released_too=True)
        assert [info.changeset for info in kept] == ["c-saved"]


def test_heart_renews_the_lease(world):
    gate, clock = Gate(), FrozenClock()
    gate.open()

    def later_each_time():
        clock.advance(100)
        gate.pass_through()
        return clock()

    with world.manager(clock=later_each_time, lease_s=0.04):
        # The first reading is of the beginning; at the third, one beat is over.
        gate.wait_for(3)
        with world.store.read() as connection:
            (until,) = rows.owners(connection).values()
    assert until > FrozenClock()() + 150


def test_heart_survives_a_store_that_fails(world, monkeypatch, caplog):
    gate = Gate()
    gate.open()

    def fail(*_):
        gate.pass_through()
        raise StoreError("no room")

    monkeypatch.setattr(rows, "renew", fail)
    with world.manager(lease_s=0.04):
        gate.wait_for(2)
    assert "was not renewed" in caplog.text


def test_work_from_before_a_restart_of_the_machine_may_be_torn(world, kind):
    clock = FrozenClock()
    with world.manager(kind, clock=clock, owner=elsewhere()) as before:
        sandbox = before.create("p", "n", 1)
    with world.manager(kind, clock=clock) as after:
        assert after.open(sandbox.id).torn
        assert not after.create("p", "n", 2).torn


# -- refusals and choices ------------------------------------------------------------------


def test_unknown_kind_is_refused(world):
    with pytest.raises(RequestError, match="`kind` must be"):
        world.manager("docker")


def test_names_that_cannot_be_stored_are_refused(manager):
    with pytest.raises(RequestError, match="`node` must be"):
        manager.create("p", "\udce9", 1)


def no_overlay(monkeypatch):
    monkeypatch.setattr(
        "cleveragents.infrastructure.sandbox.overlay.OverlayKind.why_not", lambda _: "forbidden"
    )


def test_overlay_that_is_not_available_is_refused_with_the_reason(world, monkeypatch):
    no_overlay(monkeypatch)
    with world.manager("overlay") as manager:
        with pytest.raises(SandboxError, match="forbidden") as caught:
            manager.create("p", "n", 1)
        assert caught.value.code == "CA5002"
        assert manager.available() == {"overlay": "forbidden", "worktree": None, "copy": None}


def test_without_overlays_a_repository_gets_worktrees_and_a_folder_copies(world, monkeypatch):
    no_overlay(monkeypatch)
    with world.manager() as manager:
        assert manager.create("p", "n", 1).kind == "copy"
        (world.root / ".git").mkdir()
        assert manager.create("p", "n", 1).kind == "worktree"


def test_kinds_are_tried_out_once(world, monkeypatch):
    tried = []
    monkeypatch.setattr(
        "cleveragents.infrastructure.sandbox.overlay.OverlayKind.why_not",
        lambda _: tried.append(1),
    )
    with world.manager() as manager:
        answers = run_together([manager.available] * 16)
    assert len(tried) == 1
    assert all(answer == answers[0] for answer in answers)


def test_failed_creation_leaves_no_trace(world, kind, monkeypatch):
    def full(*_):
        raise StoreError("no room")

    with world.manager(kind) as manager:
        monkeypatch.setattr(rows, "add", full)
        with pytest.raises(StoreError, match="no room"):
            manager.create("p", "n", 1)
        assert manager.list() == ()
    assert world.leftovers() == []


def test_folder_that_another_program_deleted_is_told_of_and_can_be_discarded(world):
    with world.manager("copy") as manager:
        sandbox = manager.create("p", "n", 1)
        subprocess.run(["rm", "-r", sandbox.path.parent], check=True)
        with pytest.raises(SandboxError, match="deleted by another") as caught:
            manager.open(sandbox.id)
        assert caught.value.code == "CA5004"
        manager.release(sandbox.id, discard=True)


def test_folder_that_cannot_be_deleted_is_left_to_a_collection(world, monkeypatch, caplog):
    def busy(*_):
        raise OSError("busy")

    with world.manager("copy") as manager:
        sandbox = manager.create("p", "n", 1)
        with monkeypatch.context() as patch:
            patch.setattr("cleveragents.infrastructure.sandbox.copies.erase", busy)
            manager.release(sandbox.id, discard=True)
    assert "not deleted yet" in caplog.text
    assert world.leftovers() != []
    with world.manager("copy") as manager:
        with monkeypatch.context() as patch:
            patch.setattr("cleveragents.infrastructure.sandbox.sandboxes.erase", busy)
            manager.collect_garbage(refuse)
        assert world.leftovers() != []
        manager.collect_garbage(refuse)
    assert world.leftovers() == []


# -- owners --------------------------------------------------------------------------------


def test_owner_is_told_apart_from_a_later_process_of_the_same_number():
    here = Owner.here()
    assert Owner.parse(str(here)) == here
    assert not here.is_gone
    assert Owner(this_machine(), os.getpid(), "1", "feed").is_gone
    assert Owner(this_machine(), 2**22 + 1, "1", "feed").is_gone
    assert not elsewhere().is_gone


@pytest.mark.parametrize("text", ["", "lost+found", "a-b-c-d"])
def test_names_of_other_things_are_no_owners(text):
    assert Owner.parse(text) is None


def test_dead_process_that_nobody_buried_is_gone():
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert Owner(this_machine(), child.pid, "1", "feed").is_gone
    finally:
        child.wait()


def test_without_proc_a_process_counts_as_long_as_its_number_lives(monkeypatch):
    from cleveragents.infrastructure.sandbox import owner

    this_machine.cache_clear()
    monkeypatch.setattr(owner, "Path", lambda _: Path("/nonexistent"))
    try:
        here = Owner.here()
        assert not here.is_gone
        assert Owner(this_machine(), 2**22 + 1, "0", "feed").is_gone
        monkeypatch.setattr(os, "kill", forbidden)
        assert not here.is_gone
    finally:
        this_machine.cache_clear()


def forbidden(*_):
    raise PermissionError


def test_environment_of_the_user_is_there_for_commands_to_read(world, manager):
    """Ignored folders are no part of a tree, but programs run from them."""
    program = world.root / ".venv" / "bin" / "tool"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho from the environment\n")
    program.chmod(0o755)
    (world.root / ".gitignore").write_text(".venv\n")
    sandbox = manager.create("p", "n", 1)
    assert sandbox.place.shared == (".venv",)
    (sandbox.path / ".venv").mkdir()
    assert sandbox.place.shared == (".venv",), "a command left the folder that it saw it in"
    (sandbox.path / ".venv" / "own").write_text("the attempt's own")
    assert sandbox.place.shared == ()


def test_no_sandbox_leads_into_our_repository(world, manager):
    sandbox = manager.create("p", "n", 1)
    assert ".git" not in seen(sandbox.path)
    assert not (world.repository.folder / "worktrees").exists()
