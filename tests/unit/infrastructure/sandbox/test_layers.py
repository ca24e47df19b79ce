"""Snapshots, layers, the workshop that makes them, and how folders are deleted for good."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import stat
from pathlib import Path

import pytest

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.git.repository import Blob, TreeChange
from cleveragents.infrastructure.sandbox import copies, erasure, layers
from cleveragents.infrastructure.sandbox.erasure import erase
from cleveragents.infrastructure.sandbox.layers import Delta, Layers, Used, delta_of, make_folders
from cleveragents.infrastructure.sandbox.sandbox import PlanTree
from cleveragents.infrastructure.sandbox.upper import touched_paths
from cleveragents.infrastructure.sandbox.workshop import Workshop
from cleveragents.testing import Gate, run_together
from sandboxkit import expected, file, seen

BLOB = Blob(0o100644, "1" * 40)


@pytest.fixture
def workshop(world):
    workshop = Workshop(world.repository.home)
    yield workshop
    workshop.close()


def names(folder):
    return sorted(one.name for one in folder.iterdir())


# -- the rule ------------------------------------------------------------------------------


def gone(path):
    return TreeChange(path, BLOB, None)


def made(path):
    return TreeChange(path, None, BLOB)


@pytest.mark.parametrize(
    ("changes", "folders", "removed", "written"),
    [
        ([gone("a/b/c")], {"a", "a/b"}, ("a/b/c",), ()),
        ([gone("a/b/c"), gone("a/b/d")], {"a"}, ("a/b",), ()),
        ([gone("a/b/c")], set(), ("a",), ()),
        ([gone("a/b"), made("a")], set(), ("a",), ("a",)),
        ([gone("a"), made("a/b")], {"a"}, ("a",), ("a/b",)),
        ([TreeChange("a", BLOB, BLOB)], set(), (), ("a",)),
    ],
    ids=["file", "folder", "outermost", "folder-to-file", "file-to-folder", "changed"],
)
def test_delta_removes_the_outermost_that_is_gone(changes, folders, removed, written):
    delta = delta_of(changes, folders)
    assert delta == Delta(removed, tuple((path, BLOB) for path in written))


# -- snapshots -----------------------------------------------------------------------------


def test_snapshot_is_made_once_for_all_who_ask(world, workshop, monkeypatch):
    checkouts = []
    plain = type(world.repository).checkout

    def counted(repository, commit, folder):
        checkouts.append(commit)
        plain(repository, commit, folder)

    monkeypatch.setattr(type(world.repository), "checkout", counted)
    ours = Layers(world.repository, workshop)
    other_shop = Workshop(world.repository.home)
    others = Layers(world.repository, other_shop)
    found = run_together(
        [lambda: ours.snapshot(world.base), lambda: others.snapshot(world.base)] * 4
    )
    other_shop.close()
    assert len(set(found)) == 1
    assert checkouts == [world.base]
    assert seen(found[0]) == expected(world.root)


def test_empty_folders_are_those_of_the_moment_of_the_note(world, workshop):
    ours = Layers(world.repository, workshop)
    ours.prepare(world.base)
    (world.root / "later").mkdir()
    snapshot = ours.snapshot(world.base)
    assert (snapshot / "hollow" / "nested" / "deeper").is_dir()
    assert (snapshot / "dir" / "void").is_dir()
    assert not (snapshot / "later").exists()
    assert not (snapshot / "built").exists()
    assert not (snapshot / "objects").exists()


def test_layer_holds_the_changes_alone(world, workshop):
    world.move_head({"plain.txt": file("new"), "dir/other": None})
    layer, _ = Layers(world.repository, workshop).lowers(PlanTree(world.base, world.head))
    assert names(layer) == ["dir", "plain.txt"]
    whiteout = os.lstat(layer / "dir" / "other")
    assert stat.S_ISCHR(whiteout.st_mode)
    assert whiteout.st_rdev == 0


def test_half_made_layers_are_replaced(world, workshop):
    ours = Layers(world.repository, workshop)
    part = ours.home / "snapshots" / f"{world.base}.part"
    (part / "plain.txt").mkdir(parents=True)
    assert seen(ours.snapshot(world.base)) == expected(world.root)
    assert not part.exists()


def test_folders_are_never_made_through_a_link(tmp_path):
    top, outside = tmp_path / "top", tmp_path / "outside"
    top.mkdir()
    outside.mkdir()
    (top / "link").symlink_to(outside)
    assert not make_folders(top, "link/inside")
    assert not make_folders(top, "missing/inside", make=False)
    assert make_folders(top, "link/inside", replace=True)
    assert make_folders(top, "")
    assert names(outside) == []
    assert (top / "link" / "inside").is_dir()


def test_disks_without_a_sync_of_their_own_are_synced_with_all_others(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    monkeypatch.setattr(os, "sync", lambda: synced.append(1))
    layers._sync(tmp_path)
    assert synced == [1]


def test_clone_shares_blocks_where_the_disk_can(tmp_path, monkeypatch):
    (tmp_path / "old").write_text("old")
    asked = []
    monkeypatch.setattr(fcntl, "ioctl", lambda *request: asked.append(request))
    copies._clone(str(tmp_path / "old"), str(tmp_path / "new"))
    assert len(asked) == 1
    assert (tmp_path / "new").exists()


# -- layers on layers ----------------------------------------------------------------------


def shown(lowers):
    """What an overlay of these folders shows."""
    found = {}
    for lower in reversed(lowers):
        for folder, folders, files in os.walk(lower):
            for name in (*folders, *files):
                path = Path(folder, name)
                inside = str(path.relative_to(lower))
                mode = os.lstat(path).st_mode
                if not stat.S_ISDIR(mode) or found.get(inside) != "folder":
                    found = {
                        one: what
                        for one, what in found.items()
                        if not f"{one}/".startswith(f"{inside}/")
                    }
                if stat.S_ISDIR(mode):
                    found[inside] = "folder"
                elif not stat.S_ISCHR(mode):
                    found[inside] = path.readlink() if path.is_symlink() else path.read_bytes()
    return found


def flat(world):
    """The same, of a home that has no layers yet."""
    home = world.root / ".cleveragents"
    shutil.rmtree(home / "layers")
    shop = Workshop(home)
    try:
        return shown(Layers(world.repository, shop).lowers(PlanTree(world.base, world.head)))
    finally:
        shop.close()


def test_layer_of_a_step_holds_that_step_alone(world, workshop):
    ours = Layers(world.repository, workshop)
    world.move_head({f"many/{number}": file("one") for number in range(8)})
    first, snapshot = ours.lowers(PlanTree(world.base, world.head))
    world.move_head({"many/3": file("two"), "many/4": None})
    lowers = ours.lowers(PlanTree(world.base, world.head))
    assert lowers[1:] == (first, snapshot)
    assert names(lowers[0] / "many") == ["3", "4"]
    found = shown(lowers)
    assert found["many/3"] == b"two"
    assert "many/4" not in found
    assert found == flat(world)


def test_layers_are_at_most_the_logarithm_of_the_changes(world, workshop):
    ours = Layers(world.repository, workshop)
    world.move_head({f"many/{number}": file("one") for number in range(20)})
    depths, written = [], 0
    for number in range(16):
        lowers = ours.lowers(PlanTree(world.base, world.head))
        depths.append(len(lowers) - 1)
        written += sum(len(files) for *_, files in os.walk(lowers[0]))
        world.move_head({f"step{number}": file("new")})
    assert max(depths) <= 5
    assert written < 20 + 16 * 4
    assert shown(ours.lowers(PlanTree(world.base, world.head))) == flat(world)


def test_files_and_folders_may_take_each_others_place_from_layer_to_layer(world, workshop):
    ours = Layers(world.repository, workshop)
    many = {f"many/{number}": file("one") for number in range(30)}
    world.move_head(many | {"swap": file("a file"), "fold/in/it": file("1"), "fold/too": file("2")})
    ours.lowers(PlanTree(world.base, world.head))
    for step in (
        {"swap": None, "swap/deep/file": file("a folder"), "fold/in/it": None, "fold/too": None},
        {"fold/other": file("back"), "swap/deep/file": None, "swap": file("again")},
        {"dir/deep/file": None, "dir/other": None},
        {"dir/other": file("back")},
    ):
        world.move_head(step)
        lowers = ours.lowers(PlanTree(world.base, world.head))
        assert len(lowers) > 2 or "dir/other" in step
        assert shown(lowers) == expected_flat(world)


def expected_flat(world):
    """As `flat`, but with the layers kept for the next step."""
    home = world.root / ".cleveragents"
    (home / "layers").rename(home / "kept")
    try:
        (home / "layers").mkdir()
        return flat(world)
    finally:
        shutil.rmtree(home / "layers")
        (home / "kept").rename(home / "layers")


def test_empty_folder_is_shown_as_if_there_had_been_no_step_in_between(world, workshop):
    ours = Layers(world.repository, workshop)
    many = {f"many/{number}": file("one") for number in range(30)}
    world.move_head(many | {"hollow/nested/file": file("x")})
    ours.lowers(PlanTree(world.base, world.head))
    world.move_head({"hollow/nested/file": None})
    assert "hollow/nested/deeper" in shown(ours.lowers(PlanTree(world.base, world.head)))
    world.move_head({"hollow": file("a file")})
    assert shown(ours.lowers(PlanTree(world.base, world.head)))["hollow"] == b"a file"
    world.move_head({"hollow": None})
    assert "hollow/nested/deeper" in shown(ours.lowers(PlanTree(world.base, world.head)))


# -- what nobody stands on -----------------------------------------------------------------


def test_sweep_keeps_what_the_used_stand_on(world, workshop):
    ours = Layers(world.repository, workshop)
    trees = []
    for step in ({f"many/{number}": file() for number in range(9)}, {"a": file()}, {"b": file()}):
        world.move_head(step)
        trees.append(PlanTree(world.base, world.head))
        ours.lowers(trees[-1])
    workshop.do(lambda: ours.sweep(lambda: Used((trees[1],)), 0.0))
    left = {one.name for one in (ours.home / "layers").iterdir() if one.is_dir()}
    assert left == {f"{tree.base}-{tree.head}" for tree in trees[:2]}
    assert len(names(ours.home / "layers")) == 4
    assert names(ours.home / "snapshots") == [world.base, f"{world.base}.folders"]
    assert len(ours.lowers(trees[1])) == 3


def test_sweep_keeps_what_may_soon_be_used_until_it_is_old(world, workshop):
    ours = Layers(world.repository, workshop)
    world.move_head({"a": file()})
    tree = PlanTree(world.base, world.head)
    layer, snapshot = ours.lowers(tree)
    workshop.do(lambda: ours.sweep(lambda: Used(newest=(tree,)), layer.stat().st_mtime - 1))
    assert layer.is_dir()
    assert snapshot.is_dir()
    workshop.do(lambda: ours.sweep(lambda: Used(newest=(tree,)), layer.stat().st_mtime + 1))
    assert names(ours.home / "layers") == []
    assert names(ours.home / "snapshots") == [f"{world.base}.folders"]


def test_nothing_is_swept_while_somebody_is_about_to_use_it(world, workshop):
    ours = Layers(world.repository, workshop)
    world.move_head({"a": file()})
    with ours.in_use():
        layer, _ = ours.lowers(PlanTree(world.base, world.head))
        workshop.do(lambda: ours.sweep(Used, 0.0))
        assert layer.is_dir()
    workshop.do(lambda: ours.sweep(Used, 0.0))
    assert not layer.exists()


# -- the workshop --------------------------------------------------------------------------


def test_work_of_two_workshops_never_overlaps(world):
    shops = [Workshop(world.repository.home) for _ in range(2)]
    inside, most = [], []

    def work():
        inside.append(1)
        most.append(len(inside))
        inside.pop()

    run_together([lambda shop=shop: shop.do(work) for shop in shops * 8])
    for shop in shops:
        shop.close()
    assert most == [1] * 16


def test_workshop_that_another_keeps_too_long_is_told_of(world):
    gate = Gate()
    busy, waiting = (
        Workshop(world.repository.home),
        Workshop(world.repository.home, wait_s_max=0.02),
    )

    def ask():
        gate.wait_for(1)
        try:
            with pytest.raises(SandboxError, match="Another process") as caught:
                waiting.do(lambda: None)
            return caught.value.code
        finally:
            gate.open()

    answers = run_together([lambda: busy.do(gate.pass_through), ask])
    busy.close()
    waiting.close()
    assert answers[1] == "CA5004"


def test_error_of_a_piece_of_work_reaches_who_asked_and_frees_the_workshop(workshop):
    with pytest.raises(ZeroDivisionError):
        workshop.do(lambda: 1 // 0)
    assert workshop.do(lambda: 1) == 1


# -- deleting ------------------------------------------------------------------------------


def deep_folder(top, depth):
    top.mkdir()
    before = os.open(".", os.O_RDONLY)
    try:
        os.chdir(top)
        for _ in range(depth):
            Path("d").mkdir()
            os.chdir("d")
    finally:
        os.fchdir(before)
        os.close(before)


def test_folder_thousands_deep_is_deleted(tmp_path):
    deep_folder(tmp_path / "deep", 3000)
    erase(tmp_path / "deep")
    assert names(tmp_path) == []


def test_deleting_does_not_follow_links(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (tmp_path / "top" / "in").mkdir(parents=True)
    (tmp_path / "top" / "link").symlink_to(outside)
    (tmp_path / "top" / "in" / "link").symlink_to(outside)
    erase(tmp_path / "top")
    assert names(outside) == ["file"]
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(OSError, match="link"):
        erase(tmp_path / "link")
    assert names(outside) == ["file"]


def test_absent_folder_is_deleted_already(tmp_path):
    erase(tmp_path / "absent")


def test_many_may_delete_the_same_folder(tmp_path):
    for index in range(200):
        (tmp_path / "top" / str(index % 7) / str(index)).mkdir(parents=True)
        (tmp_path / "top" / str(index % 7) / str(index) / "file").touch()
    run_together([lambda: erase(tmp_path / "top")] * 4)
    assert names(tmp_path) == []


def test_folders_without_permissions_are_made_ours(tmp_path, monkeypatch):
    """The superuser may do all: so the refusals of the system are played."""
    (tmp_path / "top" / "in" / "deep").mkdir(parents=True)
    refused = {"open": {"in"}, "rename": {"deep"}}
    plain_open, plain_rename = os.open, os.rename

    def strict_open(name, flags, **options):
        if not flags & os.O_PATH and name in refused["open"]:
            refused["open"].remove(name)
            raise PermissionError
        return plain_open(name, flags, **options)

    def strict_rename(name, new, **options):
        if name in refused["rename"]:
            refused["rename"].remove(name)
            raise PermissionError
        plain_rename(name, new, **options)

    monkeypatch.setattr(os, "open", strict_open)
    monkeypatch.setattr(os, "rename", strict_rename)
    erase(tmp_path / "top")
    assert refused == {"open": set(), "rename": set()}
    assert names(tmp_path) == []


def test_permissions_are_changed_without_handles_where_there_are_none(tmp_path, monkeypatch):
    changed = []
    monkeypatch.delattr(os, "O_PATH")
    monkeypatch.setattr(os, "chmod", lambda *_, **options: changed.append(options))
    erasure._make_ours(str(tmp_path), None)
    assert changed == [{"dir_fd": None, "follow_symlinks": False}]


def test_error_that_is_not_about_what_is_left_stops_the_deletion(tmp_path, monkeypatch):
    """As a mount point does, which can be neither moved nor removed."""

    def busy(_):
        raise OSError(16, "busy")

    (tmp_path / "top").mkdir()
    monkeypatch.setattr(type(tmp_path), "rmdir", busy)
    with pytest.raises(OSError, match="busy"):
        erase(tmp_path / "top")


def test_entry_that_is_a_folder_is_removed_whole(tmp_path):
    (tmp_path / "folder" / "in").mkdir(parents=True)
    layers.remove_entry(tmp_path / "folder")
    layers.remove_entry(tmp_path / "folder")
    assert names(tmp_path) == []


# -- what was written into an overlay ------------------------------------------------------


def test_link_in_a_lower_folder_is_not_followed(tmp_path):
    """A folder that replaces a link hides the link, not what it points to."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").touch()
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    (upper / "link").mkdir(parents=True)
    (upper / "link" / "new").touch()
    lower.mkdir()
    (lower / "link").symlink_to(outside)
    assert touched_paths(upper, (lower,)) == ("link", "link/new")


def test_file_that_replaces_a_folder_touches_all_that_was_in_it(tmp_path):
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    (lower / "d" / "e").mkdir(parents=True)
    (lower / "d" / "e" / "f").touch()
    (lower / "d" / "g").touch()
    upper.mkdir()
    (upper / "d").touch()
    assert touched_paths(upper, (lower, tmp_path / "absent")) == ("d", "d/e/f", "d/g")
    shutil.rmtree(lower)
