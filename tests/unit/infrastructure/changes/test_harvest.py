"""Sealing: what an attempt left on disk is in its changeset, all of it and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleveragents.domain.changeset import ChangeEntry
from cleveragents.domain.errors import PlanError, SandboxError
from cleveragents.infrastructure.changes import harvest as harvest_module
from cleveragents.infrastructure.changes.harvest import Harvest
from cleveragents.infrastructure.changes.plan_trees import PlanTrees
from cleveragents.infrastructure.git.repository import GitRepository
from cleveragents.infrastructure.sandbox.confined_tree import ConfinedTree
from cleveragents.infrastructure.sandbox.sandbox import Ground, Sandbox
from cleveragents.infrastructure.sqlite_changesets import SqliteChangesetStore
from cleveragents.infrastructure.store import Store
from cleveragents.testing import run_together
from unit.infrastructure.git.user_trees import contents, git, put

TEXT = b"".join(b"line %d\n" % n for n in range(30))


class Watched(Sandbox):
    """A sandbox that knows what was touched, as overlays do; it names far too many paths."""

    __slots__ = ()

    def touched(self):
        found = set(TREE)
        for above, folders, names in os.walk(self.path):
            found |= {os.path.relpath(Path(above, name), self.path) for name in [*names, *folders]}
        return tuple(sorted(found))


TREE = {
    "a": b"1\n",
    "text": TEXT,
    "folder/one": b"one\n",
    "folder/two": b"two\n",
    "program": b"#!\n",
    "build/kept": b"kept\n",
    ".gitignore": b"build/\n*.log\n",
}


def sandboxed(kind, repository, trees, folder):
    folder.mkdir()
    start = trees.begin("p").head
    repository.checkout(start, folder)
    return kind(
        id="s-1",
        plan="p",
        node="n",
        attempt=1,
        kind="copy",
        commit=start,
        root=repository.root,
        ground=Ground(folder, folder),
    )


@pytest.fixture(params=[Sandbox, Watched], ids=["compared", "watched"])
def sandbox(request, repository, trees, root, tmp_path):
    git(root, "init", "--quiet")
    for path, data in TREE.items():
        put(root, path, data, mode=0o755 if path == "program" else 0o644)
    (root / "link").symlink_to("a")
    git(root, "add", "--all", "--force", "build")
    return sandboxed(request.param, repository, trees, tmp_path / "sandbox")


@pytest.fixture
def changeset_id(changesets):
    return changesets.start("p", actor="ann", node="n", attempt=1)


@pytest.fixture
def sealed(harvest, sandbox, changeset_id):
    """Seal, and return each entry as one line."""

    def seal():
        entries = harvest.seal(sandbox, changeset_id).entries
        return sorted(
            " ".join(filter(None, [entry.kind, entry.old_path, entry.path])) for entry in entries
        )

    return seal


def result(trees, repository):
    """Return what the last sealed changeset makes of the tree."""
    commit = trees.merges("p")[-1].theirs
    found = repository.files(commit)
    return dict(zip(found, repository.read([one.oid for one in found.values()]), strict=True))


def test_nothing_changed_nothing_recorded(sealed, sandbox, trees):
    assert sealed() == []
    [row] = trees.merges("p")
    assert (row.state, row.start) == ("sealed", sandbox.commit)
    assert trees.merge(row.changeset_id).state == "merged"


def test_new_file_that_a_tool_edited_to_and_fro_is_sealed(
    sealed, sandbox, changesets, changeset_id, trees
):
    """By its entries nothing happened to it; but a command had made it before the first."""
    put(sandbox.path, "new", "1\n")
    changesets.record(changeset_id, ChangeEntry.modify("new", b"1\n", b"2\n"))
    changesets.record(changeset_id, ChangeEntry.modify("new", b"2\n", b"1\n"))
    assert sealed() == ["modify new", "modify new"]
    assert trees.merges("p")[-1].theirs != sandbox.commit


def test_what_is_returned_is_what_the_store_holds(harvest, sandbox, changesets, changeset_id):
    changesets.record(changeset_id, ChangeEntry.create("told", b"1"))
    put(sandbox.path, "told", "1")
    put(sandbox.path, "a", "2\n")
    assert harvest.seal(sandbox, changeset_id) == changesets.get(changeset_id)


def test_what_a_command_changed_is_recorded(sealed, sandbox, changesets, changeset_id):
    put(sandbox.path, "a", "2\n")
    put(sandbox.path, "new", "n\n")
    (sandbox.path / "folder/one").unlink()
    (sandbox.path / "text").rename(sandbox.path / "moved")
    (sandbox.path / "program").chmod(0o644)
    (sandbox.path / "folder/two").chmod(0o755)
    assert sealed() == [
        "create new",
        "delete folder/one",
        "mode folder/two",
        "mode program",
        "modify a",
        "rename text moved",
    ]
    assert changesets.get(changeset_id).finished


def test_what_a_tool_recorded_is_not_told_twice(sealed, sandbox, changesets, changeset_id):
    changesets.record(changeset_id, ChangeEntry.modify("a", b"1\n", b"2\n", tool_call="t-1"))
    put(sandbox.path, "a", "2\n")
    put(sandbox.path, "by-command", "1")
    assert sealed() == ["create by-command", "modify a"]
    assert changesets.get(changeset_id).entries[0].tool_call == "t-1"


def test_what_a_command_did_after_the_tool_comes_after_it(
    sealed, sandbox, changesets, changeset_id
):
    changesets.record(
        changeset_id,
        ChangeEntry.modify("a", b"1\n", b"2\n"),
        ChangeEntry.create("new", b"1"),
        ChangeEntry.create("undone", b"1"),
        ChangeEntry.rename("text", "moved"),
        ChangeEntry.change_mode("program", 0o755, 0o644),
    )
    put(sandbox.path, "a", "3\n")
    put(sandbox.path, "new", "2")
    (sandbox.path / "text").rename(sandbox.path / "elsewhere")
    assert sealed() == [
        "create new",
        "create undone",
        "delete undone",
        "mode program",
        "mode program",
        "modify a",
        "modify a",
        "modify new",
        "rename moved elsewhere",
        "rename text moved",
    ]


def test_what_a_tool_took_away_a_command_may_bring_back(sealed, sandbox, plan, changeset_id):
    plan.changesets.record(
        changeset_id,
        ChangeEntry.delete("a", b"1\n"),
        ChangeEntry.delete("folder/one", b"one\n"),
    )
    (sandbox.path / "folder/one").unlink()
    assert sealed() == ["create a", "delete a", "delete folder/one"]
    assert "folder/one" not in result(plan.trees, plan.repository)


def test_what_a_tool_moved_from_an_ignored_place_is_sealed(sealed, sandbox, plan, changeset_id):
    """Nothing that the plan knows is there; the disk tells what was moved."""
    put(sandbox.path, "moved", "1")
    plan.changesets.record(changeset_id, ChangeEntry.rename("build/out", "moved"))
    sealed()
    assert result(plan.trees, plan.repository)["moved"] == b"1"


def test_what_a_command_took_back_is_told_as_taken_back(sealed, changesets, changeset_id, trees):
    changesets.record(changeset_id, ChangeEntry.modify("a", b"1\n", b"2\n"))
    assert sealed() == ["modify a", "modify a"]
    [row] = trees.merges("p")
    assert trees.merge(row.changeset_id).state == "merged"


def test_ignored_files_are_left_out_unless_a_tool_wrote_them_or_the_tree_has_them(
    sealed, sandbox, changeset_id, plan
):
    put(sandbox.path, "build/out", "1")
    put(sandbox.path, "x.log", "1")
    put(sandbox.path, "build/kept", "changed\n")
    put(sandbox.path, "build/wanted", "1")
    plan.changesets.record(changeset_id, ChangeEntry.create("build/wanted", b"1"))
    assert sealed() == ["create build/wanted", "modify build/kept"]
    assert {"build/out", "x.log"}.isdisjoint(result(plan.trees, plan.repository))


def test_types_may_change(sealed, sandbox, trees, repository):
    (sandbox.path / "a").unlink()
    (sandbox.path / "a").symlink_to("text")
    (sandbox.path / "link").unlink()
    put(sandbox.path, "link", "no link\n")
    assert sealed() == ["create a", "create link", "delete a", "delete link"]
    found = repository.files(trees.merges("p")[-1].theirs)
    assert (found["a"].mode, found["link"].mode) == (0o120000, 0o100644)


def test_a_link_may_lead_elsewhere(sealed, sandbox):
    (sandbox.path / "link").unlink()
    (sandbox.path / "link").symlink_to("text")
    assert sealed() == ["modify link"]


def test_files_become_folders_and_folders_files(sealed, sandbox, trees, repository):
    (sandbox.path / "a").unlink()
    put(sandbox.path, "a/inside", "new content\n")
    shutil.rmtree(sandbox.path / "folder")
    put(sandbox.path, "folder", "now a file\n")
    assert sealed() == [
        "create a/inside",
        "create folder",
        "delete a",
        "delete folder/one",
        "delete folder/two",
    ]
    assert result(trees, repository)["folder"] == b"now a file\n"


def test_a_folder_may_become_a_link_to_another(sealed, sandbox):
    """What lies behind the link is not there a second time."""
    (sandbox.path / "folder").rename(sandbox.path / "other")
    (sandbox.path / "folder").symlink_to("other")
    assert sealed() == [
        "create folder",
        "rename folder/one other/one",
        "rename folder/two other/two",
    ]


def test_files_that_changed_places_are_told_without_renames(sealed, sandbox, plan):
    """Each rename would need the other to have happened before."""
    other = TEXT.replace(b"line", b"other")
    put(sandbox.path, "folder/one", other)
    plan.changesets.record(
        plan.changesets.of_plan("p")[0].id, ChangeEntry.modify("folder/one", b"one\n", other)
    )
    (sandbox.path / "folder/two").unlink()
    (sandbox.path / "folder/one").rename(sandbox.path / "aside")
    (sandbox.path / "folder").rmdir()
    (sandbox.path / "text").rename(sandbox.path / "folder")
    (sandbox.path / "text").mkdir()
    (sandbox.path / "aside").rename(sandbox.path / "text/in")
    told = sealed()
    assert not any(line.startswith("rename") for line in told), told
    found = result(plan.trees, plan.repository)
    assert (found["folder"], found["text/in"]) == (TEXT, other)


def test_pipes_git_folders_and_torn_writes_are_no_files(sealed, sandbox):
    (sandbox.path / "a").unlink()
    os.mkfifo(sandbox.path / "a")
    os.mkfifo(sandbox.path / "pipe")
    git(sandbox.path, "init", "--quiet")
    assert sealed() == ["delete a"]


def test_repositories_made_inside_are_left_alone(sealed, sandbox):
    for name in ("unborn", "deep/born"):
        (sandbox.path / name).mkdir(parents=True)
        git(sandbox.path / name, "init", "--quiet")
        put(sandbox.path, f"{name}/f", "1")
    git(sandbox.path / "deep/born", "add", "f")
    git(sandbox.path / "deep/born", "commit", "--quiet", "-m", "x")
    put(sandbox.path, "deep/beside", "1")
    git(sandbox.path / "folder", "init", "--quiet")
    put(sandbox.path, "folder/three", "3")
    assert sealed() == ["create deep/beside", "create folder/three"]


@pytest.mark.parametrize(
    "name",
    ["-dash", ":colon", "a\nb", 'q"', " s ", os.fsdecode(b"\xe9"), "*", "a\\b", "c:x", "u\\x2d.m"],
)
def test_any_name_is_sealed(sealed, sandbox, name, trees, repository):
    put(sandbox.path, name, "1")
    assert sealed() == [f"create {name}"]
    assert result(trees, repository)[name] == b"1"


@pytest.mark.parametrize("name", ["git~1", ".git.", ".GIT", "d/.git /f", "a\\.git\\f", "..\\f"])
def test_a_name_that_is_not_safe_everywhere_is_left_out_and_told(
    sealed, sandbox, changeset_id, trees, name
):
    put(sandbox.path, name, "1")
    put(sandbox.path, "good", "1")
    assert sealed() == ["create good"]
    assert list(trees.left_out(changeset_id)) == [name]


def test_what_is_left_out_is_an_event_of_the_plan(sealed, sandbox, changeset_id, store):
    put(sandbox.path, "git~1", "1")
    sealed()
    with store.read() as connection:
        query = "SELECT plan, body FROM events WHERE kind = 'changeset.left_out'"
        [(plan_id, body)] = connection.execute(query)
    told = json.loads(body)
    assert (plan_id, told["changeset"], told["path"]) == ("p", changeset_id, "git~1")
    assert told["reason"].startswith("The path of a file in a sandbox must stay out of `.git`")


def test_a_file_that_is_too_large_is_left_out_and_stays_as_it_was(
    sealed, sandbox, changeset_id, plan, monkeypatch
):
    monkeypatch.setattr(harvest_module, "FILE_BYTES_MAX", 1_000)
    put(sandbox.path, "a", b"x" * 1_001)
    put(sandbox.path, "large", b"x" * 1_001)
    put(sandbox.path, "large.log", b"x" * 1_001)
    put(sandbox.path, "limit", b"x" * 1_000)
    assert sealed() == ["create limit"]
    assert plan.trees.left_out(changeset_id) == {
        "a": "The file 'a' has more than 1000 bytes",
        "large": "The file 'large' has more than 1000 bytes",
    }
    assert result(plan.trees, plan.repository)["a"] == b"1\n"


def test_large_files_are_sealed_one_by_one(sealed, sandbox, trees, repository, monkeypatch):
    sizes = []
    keep = repository.keep
    monkeypatch.setattr(repository, "keep", lambda data: sizes.append(len(data)) or keep(data))
    put(sandbox.path, "large", bytes(1_000_000), mode=0o755)
    put(sandbox.path, "small", bytes(999_999))
    assert sealed() == ["create large", "create small"]
    assert sizes == [1_000_000]
    assert result(trees, repository)["large"] == bytes(1_000_000)


def test_a_link_in_the_place_of_gits_list_is_left_out(sealed, sandbox, changeset_id, trees):
    """Git would refuse every tree that has it."""
    (sandbox.path / ".gitmodules").symlink_to("a")
    put(sandbox.path, "good", "1")
    assert sealed() == ["create good"]
    assert list(trees.left_out(changeset_id)) == [".gitmodules"]


def test_what_an_attempt_closed_is_opened_and_sealed(sealed, sandbox, changeset_id, trees):
    put(sandbox.path, "closed/deep/f", "1")
    put(sandbox.path, "folder/one", "2\n")
    put(sandbox.path, "secret", "1", mode=0o000)
    for name in ("closed/deep", "closed", "folder"):
        (sandbox.path / name).chmod(0o000)
    assert sealed() == ["create closed/deep/f", "create secret", "modify folder/one"]
    assert trees.left_out(changeset_id) == {}
    # A user who is not root could not have read them otherwise.
    names = ("closed/deep", "closed", "folder", "secret")
    assert all((sandbox.path / name).stat().st_mode & 0o400 for name in names)


def test_what_stays_closed_is_left_out_and_stays_as_it_was(
    sealed, sandbox, changeset_id, plan, monkeypatch
):
    monkeypatch.setattr(harvest_module, "closed_folders", lambda *_: ("folder",))
    (sandbox.path / "folder/one").unlink()
    put(sandbox.path, "folder/new", "1")
    put(sandbox.path, "good", "1")
    assert sealed() == ["create good"]
    assert plan.trees.left_out(changeset_id) == {"folder": "The folder may not be read"}
    assert result(plan.trees, plan.repository)["folder/one"] == b"one\n"


def test_what_cannot_be_looked_at_is_left_out(sealed, sandbox, changeset_id, trees, monkeypatch):
    def lstat(path):
        if path.name == "odd":
            raise PermissionError(13, "Permission denied")
        return os.lstat(path)

    def version(tree, path, **options):
        if path == "odd":
            raise SandboxError("It cannot be used", code="CA5007")
        return read(tree, path, **options)

    read = ConfinedTree.version
    put(sandbox.path, "odd", "1")
    put(sandbox.path, "good", "1")
    monkeypatch.setattr(Path, "lstat", lstat)
    monkeypatch.setattr(ConfinedTree, "version", version)
    assert sealed() == ["create good"]
    assert trees.left_out(changeset_id) == {"odd": "It cannot be used"}


def test_a_failure_that_may_pass_leaves_nothing_out(harvest, sandbox, changeset_id, monkeypatch):
    """The sandbox goes once it is sealed: what could be read next time must not go with it."""

    def version(*_, **__):
        raise SandboxError("It cannot be used", code="CA5007") from OSError(24, "Too many files")

    put(sandbox.path, "good", "1")
    with monkeypatch.context() as patched:
        patched.setattr(ConfinedTree, "version", version)
        with pytest.raises(SandboxError):
            harvest.seal(sandbox, changeset_id)
    assert [entry.path for entry in harvest.seal(sandbox, changeset_id).entries] == ["good"]


def test_repositories_of_the_user_are_left_alone(sealed, sandbox, changeset_id, root, plan):
    """Neither a submodule, also one that is not checked out, nor a repository of its own."""
    for name in ("lib", "own"):
        git(root, "init", "--quiet", name)
    empty = git(root, "hash-object", "-t", "tree", "/dev/null").decode().strip()
    for name in ("lib", "bare/lib"):
        git(root, "update-index", "--add", "--cacheinfo", f"160000,{empty},{name}")
    plan.changesets.record(changeset_id, ChangeEntry.create("lib/tool", b"1"))
    for name in ("lib/tool", "lib/new", "own/deep/new", "bare/lib"):
        put(sandbox.path, name, "1")
    put(sandbox.path, "bare/beside", "2")
    assert sealed() == ["create bare/beside", "create lib/tool", "delete lib/tool"]
    assert set(plan.trees.left_out(changeset_id)) == {"lib", "own", "bare/lib"}
    found = result(plan.trees, plan.repository)
    assert set(found) == {*TREE, "link", "bare/beside"}


def test_a_link_of_the_user_to_a_repository_is_no_repository(sealed, sandbox, root, tmp_path):
    git(tmp_path, "init", "--quiet", "elsewhere")
    (root / "link").unlink()
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (sandbox.path / "link").unlink()
    put(sandbox.path, "link/new", "1")
    assert sealed() == ["create link/new", "delete link"]


def test_sealing_twice_is_sealing_once(harvest, sandbox, changeset_id, trees):
    put(sandbox.path, "a", "2\n")
    first = harvest.seal(sandbox, changeset_id)
    put(sandbox.path, "a", "later\n")
    assert harvest.seal(sandbox, changeset_id) == first
    trees.merge(changeset_id)
    shutil.rmtree(sandbox.path)
    assert harvest.seal(sandbox, changeset_id) == first
    assert len(trees.merges("p")) == 1


def test_threads_seal_one_attempt_once(harvest, sandbox, changeset_id, trees, changesets):
    put(sandbox.path, "a", "2\n")

    def seal():
        try:
            return harvest.seal(sandbox, changeset_id)
        except PlanError as error:
            assert error.code in {"CA4002", "CA4003"}  # noqa: PT017  # the others were faster
            return None

    found = [one for one in run_together([seal] * 4) if one is not None]
    assert found
    assert harvest.seal(sandbox, changeset_id) == changesets.get(changeset_id)
    assert len(trees.merges("p")) == 1


class Crash(Exception):  # noqa: N818  # stands for the end of a process
    pass


@pytest.fixture(params=["record", "finish", "seal"])
def crashed(request, harvest, sandbox, changeset_id, plan):
    """An attempt whose sealing ended half-way."""
    put(sandbox.path, "a", "2\n")
    put(sandbox.path, "new", "1")

    def crash(*_, **__):
        raise Crash

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            plan.trees if request.param == "seal" else plan.changesets, request.param, crash
        )
        with pytest.raises(Crash):
            harvest.seal(sandbox, changeset_id)
    return changeset_id


def test_a_crash_half_way_is_made_good_by_sealing_again(harvest, sandbox, crashed, plan):
    assert not plan.trees.is_sealed(crashed)
    entries = harvest.seal(sandbox, crashed).entries
    assert [entry.path for entry in entries] == ["new", "a"]
    found = result(plan.trees, plan.repository)
    assert (found["a"], found["new"]) == (b"2\n", b"1")


def test_a_changeset_that_was_finished_too_early_is_refused(
    harvest, sandbox, changeset_id, changesets, trees
):
    changesets.finish(changeset_id)
    put(sandbox.path, "a", "2\n")
    put(sandbox.path, "new", "1")
    with pytest.raises(PlanError, match=r"'a' and 1 more") as caught:
        harvest.seal(sandbox, changeset_id)
    assert caught.value.code == "CA4108"
    (sandbox.path / "new").unlink()
    with pytest.raises(PlanError, match=r"'a'$"):
        harvest.seal(sandbox, changeset_id)
    assert not trees.is_sealed(changeset_id)


def test_a_finished_changeset_is_believed_over_torn_files(harvest, sandbox, changeset_id, plan):
    """The machine fell after the record was complete, and before it was handed in."""
    plan.changesets.record(changeset_id, ChangeEntry.modify("a", b"1\n", b"2\n"))
    plan.changesets.finish(changeset_id)
    put(sandbox.path, "a", "")
    harvest.seal(replace(sandbox, torn=True), changeset_id)
    assert result(plan.trees, plan.repository)["a"] == b"2\n"


def test_a_sandbox_that_is_gone_is_not_taken_for_an_empty_one(harvest, sandbox, changeset_id):
    if isinstance(sandbox, Watched):
        pytest.skip("it does not look")
    shutil.rmtree(sandbox.path)
    with pytest.raises(SandboxError) as caught:
        harvest.seal(sandbox, changeset_id)
    assert caught.value.code == "CA5004"


def test_many_files_are_sealed(harvest, sandbox, changeset_id, trees, repository):
    for n in range(300):
        put(sandbox.path, f"many/{n % 7}/{n}", f"{n}\n" * 20)
    assert len(harvest.seal(sandbox, changeset_id).entries) == 300
    assert len(result(trees, repository)) == len(TREE) + 301


# -- random deeds --------------------------------------------------------------------------

PATHS = [
    "a",
    "text",
    "folder",
    "folder/one",
    "folder/x/y",
    "new",
    "new/deep",
    "build/kept",
    "x.log",
]
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "remove", "move", "link", "program", "pipe", "tool"]),
        st.sampled_from(PATHS),
        st.sampled_from([*PATHS, "other", "other/place"]),
        st.sampled_from([b"", b"1\n", TEXT, TEXT + b"more\n", b"\0bin"]),
    ),
    max_size=8,
)


def act(folder, deed, tool):
    """Do one thing to the files, or fail at it as commands do."""
    what, path, other, data = deed
    place = folder / path
    if place.is_fifo() and what in {"write", "tool"}:
        # Whoever opens a pipe that nobody reads waits for ever.
        raise BrokenPipeError(path)
    if what == "write":
        put(folder, path, data)
    elif what == "remove":
        shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
    elif what == "move":
        (folder / other).parent.mkdir(parents=True, exist_ok=True)
        place.rename(folder / other)
    elif what == "link":
        place.symlink_to(other)
    elif what == "program":
        place.chmod(0o755)
    elif what == "pipe":
        os.mkfifo(place)
    else:
        before = place.read_bytes() if place.is_file() and not place.is_symlink() else None
        put(folder, path, data)
        tool(
            ChangeEntry.modify(path, before, data)
            if before is not None
            else ChangeEntry.create(path, data)
        )


@settings(max_examples=int(os.environ.get("MERGE_EXAMPLES", "10")))
@given(deeds=DEEDS)
def test_the_seal_is_what_the_disk_shows_by_both_roads_and_by_the_entries(deeds):
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "root")
        for path, data in TREE.items():
            put(root, path, data)
        repository = GitRepository(root, root / ".cleveragents")
        with Store(root / ".cleveragents" / "state.db") as store:
            trees, changesets = PlanTrees(store, repository), SqliteChangesetStore(store)
            harvest = Harvest(repository, changesets, trees)
            found = {}
            for kind in (Sandbox, Watched):
                sandbox = sandboxed(kind, repository, trees, Path(scratch, kind.__name__))
                changeset_id = changesets.start("p")
                for deed in deeds:
                    try:
                        act(sandbox.path, deed, partial(changesets.record, changeset_id))
                    except (OSError, PlanError):
                        continue
                changeset = harvest.seal(sandbox, changeset_id)
                theirs = trees.merges("p")[-1].theirs
                told = harvest._told(sandbox.commit, changeset, "x")
                assert repository.tree_of(told) == repository.tree_of(theirs)
                found[kind] = repository.tree_of(theirs)
                out = Path(scratch, f"out-{kind.__name__}")
                out.mkdir()
                repository.checkout(theirs, out)
                wanted = {entry.path for entry in changeset.entries}.union(
                    repository.files(sandbox.commit)
                )
                assert contents(out) == {
                    path: one
                    for path, one in contents(sandbox.path).items()
                    # A folder can be called `x.log` too, and is ignored with all that is in it.
                    if path in wanted or (".log/" not in f"{path}/" and path[:6] != "build/")
                }
            assert len(set(found.values())) == 1
