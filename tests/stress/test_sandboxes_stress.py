"""Sandboxes made, sealed, released and collected by many threads and processes at once."""

from __future__ import annotations

import pytest

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.sandbox.sandbox import SandboxState
from cleveragents.testing import run_together
from sandboxkit import KINDS, Other, World, expected, plant, seen

THREADS = 100


@pytest.fixture
def world(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    plant(root)
    world = World.open(root)
    yield world
    world.store.close()


@pytest.fixture(params=KINDS)
def kind(request, world):
    with world.manager() as manager:
        if (why := manager.available()[request.param]) is not None:
            pytest.skip(f"`{request.param}` is not available: {why}")
    return request.param


@pytest.mark.stress
@pytest.mark.usefixtures("frequent_switches")
def test_hundred_creations_at_once_none_fails(world, kind):
    with world.manager(kind) as manager:
        made = run_together([lambda: manager.create("p", "n", 1)] * THREADS)
        assert len({one.path for one in made}) == THREADS == len(manager.list())
        assert seen(made[0].path) == seen(made[-1].path) == expected(world.root)
        run_together([lambda one=one: manager.release(one.id, discard=True) for one in made])
    assert world.leftovers() == []


@pytest.mark.stress
@pytest.mark.usefixtures("frequent_switches")
def test_one_of_many_releases_a_sandbox(world, kind):
    def release():
        try:
            manager.release(sandbox.id)
        except SandboxError as error:
            return error.code
        return "released"

    with world.manager(kind) as manager:
        for number in range(5):
            sandbox = manager.create("p", "n", number)
            manager.mark_sealed(sandbox.id, "c")
            answers = run_together([release] * 16)
            assert sorted(answers) == ["CA5004"] * 15 + ["released"]
    assert world.leftovers() == []


@pytest.mark.stress
@pytest.mark.usefixtures("frequent_switches")
def test_every_sandbox_of_the_dead_is_salvaged_once_while_others_work(world, kind):
    dead = [Other(world.root, kind) for _ in range(4)]
    for other in dead:
        other.kill()
    met = []
    managers = [world.manager(kind) for _ in range(3)]

    def collect(manager):
        def salvage(sandbox):
            met.append((sandbox.id, seen(sandbox.path)["written"]))
            manager.mark_sealed(sandbox.id, "c")

        return lambda: manager.collect_garbage(salvage)

    def work(manager):
        def attempt():
            sandbox = manager.create("p", "living", 1)
            (sandbox.path / "mine").write_text(sandbox.id)
            assert (sandbox.path / "mine").read_text() == sandbox.id
            return sandbox.id

        return attempt

    run_together([job(one) for one in managers for job in (collect, work, collect, work)])
    assert sorted(met) == sorted(
        (other.said["id"], ("file", False, b"by the dead")) for other in dead
    )
    living = [one for one in managers[0].list() if one.node == "living"]
    assert [one.state for one in living] == [SandboxState.LIVE] * 6
    for manager in managers:
        manager.close()


@pytest.mark.stress
def test_large_files_come_whole(world, kind):
    """100 MB, all but its end a hole."""
    size_bytes = 100_000_000
    with (world.root / "large").open("wb") as large:
        large.truncate(size_bytes)
        large.seek(size_bytes)
        large.write(b"end")
    world.base = world.head = world.repository.snapshot()
    with world.manager(kind) as manager:
        path = manager.create("p", "n", 1).path / "large"
        assert path.stat().st_size == size_bytes + 3
        with path.open("rb") as large:
            large.seek(size_bytes)
            assert large.read() == b"end"
