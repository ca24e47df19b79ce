"""Ways out of a sandbox, each tried by every verb and by commands: a canary outside notices."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cleveragents.domain.changeset import FileMode
from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.sandbox.command import Command, CommandRunner, Place
from cleveragents.infrastructure.sandbox.confined_tree import ConfinedTree

CANARY = b"canary: nobody reads or writes this"

HOSTILE_PATHS = {
    "parent": "..",
    "parent's file": "../outside/canary",
    "up and down": "a/../../outside/canary",
    "up in the middle": "a/../b",
    "up at the end": "a/..",
    "many ups": "../" * 30 + "etc/passwd",
    "up after a long way": "a/b/c/../../../../outside/canary",
    "here": ".",
    "here first": "./a",
    "here in the middle": "a/./b",
    "nothing": "",
    "absolute": "/etc/passwd",
    "two slashes first": "//etc/passwd",
    "two slashes inside": "a//b",
    "slash at the end": "a/",
    "root": "/",
    "process root": "/proc/self/root",
    "process folder": "/proc/self/cwd/../outside/canary",
    "descriptor": "/dev/fd/0",
    "device": "/dev/zero",
    "nul": "\0",
    "nul after a good name": "a\0/../b",
    "backslash": "..\\outside\\canary",
    "backslash inside": "a\\..\\..\\b",
    "git": ".git",
    "git hook": ".git/hooks/pre-commit",
    "git below": "a/.git/config",
    "git in capitals": ".GIT/config",
    "git in title": ".Git/HEAD",
    "git with an invisible letter": ".g\u200cit/config",
    "git with a mark": "\ufeff.git/config",
    "git behind a backslash": "a\\.git\\config",
    "git with a dot": ".git./config",
    "git with a space": ".git /config",
    "git by its short name": "git~1/config",
    "git as a stream": ".git::$INDEX_ALLOCATION/config",
    "two spellings": "caf\udcc3\udca9",
    "lone surrogate": "a\ud800",
    "too long": "a/" * 2049 + "b",
}

#: Links made in the sandbox; `OUT` is the folder outside, `BOX` the sandbox.
LINKS = {
    "absolute": "OUT/canary",
    "relative": "../outside/canary",
    "folder": "../outside",
    "folder-slash": "../outside/",
    "absolute-folder": "OUT",
    "everything": "/",
    "parent": "..",
    "winding": "sub/../../outside/canary",
    "sub/deep": "../../outside/canary",
    "chain": "relative",
    "chain-2": "chain",
    "through-parent": "parent/outside/canary",
    "through-sub": "sub/climb/outside/canary",
    "sub/climb": "../..",
    "dangling": "../outside/new",
    "dangling-absolute": "OUT/new",
    "dangling-middle": "missing/../../outside/canary",
    "absolute-inside": "BOX/sub/file",
    "process-root": "/proc/self/root",
    "process-folder": "/proc/self/cwd",
    "descriptors": "/dev/fd",
    "device": "/dev/null",
    "git": ".git/config",
    "git-capitals": "sub/.GIT/config",
    "backslash": "..\\outside\\canary",
    "loop-1": "loop-2",
    "loop-2": "loop-1",
    "self": "self/x",
}
#: Links to folders outside, and what is tried through them.
THROUGH = {
    "folder": ("canary", "new", "deep/new"),
    "folder-slash": ("canary", "new"),
    "absolute-folder": ("canary", "new"),
    "parent": ("outside/canary", "outside/new"),
    "everything": ("etc/passwd",),
    "sub/climb": ("outside/canary",),
    "process-root": ("etc/passwd",),
    "process-folder": ("setup.py",),
    "descriptors": ("0", "1"),
    "dangling": ("new",),
    "loop-1": ("x",),
}
TARGETS = [
    *("", "/", "/etc/passwd", "..", "../outside/canary", "sub/../..", "sub/../../outside/canary"),
    *("missing/../../outside", "parent/outside/canary", "sub/climb", "relative", "a\0b", "..\\x"),
    *(".git/config", "sub/.git", "/proc/self/root", "folder/canary", "chain-2"),
]


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "canary").write_bytes(CANARY)
    before = (folder / "canary").stat()
    yield folder
    after = (folder / "canary").stat()
    assert [one.name for one in folder.iterdir()] == ["canary"]
    assert (folder / "canary").read_bytes() == CANARY
    assert (after.st_mode, after.st_mtime_ns, after.st_ino, after.st_nlink) == (
        *(before.st_mode, before.st_mtime_ns, before.st_ino, before.st_nlink),
    )


@pytest.fixture
def box(tmp_path, outside):
    folder = tmp_path / "box"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/file").write_bytes(b"inside")
    (folder / ".git").mkdir()
    (folder / ".git/config").write_bytes(b"config")
    for name, target in LINKS.items():
        (folder / name).symlink_to(target.replace("OUT", str(outside)).replace("BOX", str(folder)))
    yield folder
    assert (folder / ".git/config").read_bytes() == b"config"


@pytest.fixture
def tree(box):
    with ConfinedTree(box) as tree:
        yield tree


#: What a tool can do to a path.
VERBS = {
    "read": lambda tree, path: tree.read(path),
    "write": lambda tree, path: tree.write(path, b"escaped"),
    "set_mode": lambda tree, path: tree.set_mode(path, FileMode.EXECUTABLE),
    "rename_from": lambda tree, path: tree.rename(path, "stolen"),
    "rename_to": lambda tree, path: tree.rename("sub/file", path),
    "list": lambda tree, path: tree.list(path),
    # These act on a link itself, so they are refused only where a path leads through one.
    "version": lambda tree, path: tree.version(path),
    "remove": lambda tree, path: tree.remove(path),
    "link": lambda tree, path: tree.link(path, "sub/file"),
}
FOLLOWING = ("read", "write", "set_mode", "rename_from", "rename_to", "list")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("path", HOSTILE_PATHS.values(), ids=HOSTILE_PATHS)
def test_no_verb_takes_a_hostile_path(tree, verb, path):
    if (verb, path) == ("list", "."):
        return  # the one folder that has no other name
    with pytest.raises(SandboxError) as caught:
        VERBS[verb](tree, path)
    assert caught.value.code == "CA5001"


@pytest.mark.parametrize("verb", FOLLOWING)
@pytest.mark.parametrize("link", LINKS)
def test_no_verb_follows_a_link_that_leads_out(tree, verb, link):
    with pytest.raises(SandboxError) as caught:
        VERBS[verb](tree, link)
    # Who looks for what is missing stops there, before the way out.
    assert caught.value.code == "CA5001" or link == "dangling-middle"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "path", [f"{at}/{name}" for at, names in THROUGH.items() for name in names]
)
def test_no_verb_goes_through_a_link_that_leads_out(tree, verb, path):
    with pytest.raises(SandboxError) as caught:
        VERBS[verb](tree, path)
    assert caught.value.code == "CA5001"


@pytest.mark.parametrize("link", LINKS)
def test_a_link_that_leads_out_is_told_and_removed_as_itself(tree, box, link):
    found = tree.version(link)
    assert found is not None
    assert found.mode is FileMode.SYMLINK
    tree.remove(link)
    assert not (box / link).is_symlink()


@pytest.mark.parametrize("target", TARGETS)
def test_no_link_is_made_to_the_outside(tree, target):
    before = sorted(tree.walk())
    below = f"../{target}" if target and target[0] != "/" else target
    for path, way in (("made", target), ("relative", target), ("sub/made", below)):
        with pytest.raises(SandboxError) as caught:
            tree.link(path, way)
        assert caught.value.code == "CA5001"
    assert sorted(tree.walk()) == before


def test_a_link_that_moves_so_that_it_leads_out_is_not_followed(tree):
    tree.link("sub/to-file", "../sub/file")
    assert tree.read("sub/to-file") == b"inside"
    tree.rename("sub/to-file", "to-file")

    with pytest.raises(SandboxError, match="leads out"):
        tree.read("to-file")


def test_walk_and_list_never_leave(tree):
    paths = set(tree.walk())

    assert paths == {*LINKS, "sub/file"}
    assert not any("canary" in path for path in paths)


def test_a_folder_swapped_for_a_link_after_it_was_entered_is_the_old_folder(tree, box, outside):
    """What is held open cannot be redirected: the swap comes while the file is put in place."""
    rename = os.rename

    def swap_first(*arguments, **where):
        os.rename = rename
        (box / "sub").rename(box / "moved")
        (box / "sub").symlink_to(outside)
        rename(*arguments, **where)

    os.rename = swap_first
    try:
        tree.write("sub/file", b"new")
    finally:
        os.rename = rename
    assert (box / "moved/file").read_bytes() == b"new"


pytestmark_bwrap = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="needs bubblewrap, which confines commands"
)

#: Each is a shell script that runs in the sandbox, with the canary's folder readable as `$OUT`.
ATTACKS = {
    "write by its path": 'echo escaped > "$OUT/canary"',
    "append by its path": 'echo escaped >> "$OUT/canary"',
    "new file": 'touch "$OUT/new"',
    "remove": 'rm -f "$OUT/canary"',
    "rename": 'mv "$OUT/canary" .',
    "permissions": 'chmod 777 "$OUT/canary"',
    "times": 'touch "$OUT/canary"',
    "through a link": 'ln -s "$OUT" out && echo escaped > out/canary',
    "by a hard link": 'ln "$OUT/canary" hard && echo escaped > hard',
    "from the folder above": "cd .. && echo escaped > outside/canary",
    "by the current folder": "echo escaped > /proc/self/cwd/../outside/canary",
    "by the first process": 'echo escaped > "/proc/1/root$OUT/canary"',
    "by our own root": 'echo escaped > "/proc/self/root$OUT/canary"',
    "by the parent": 'echo escaped > "/proc/$PARENT/root$OUT/canary"',
    "remount": 'mount -o remount,rw,bind "$OUT" && echo escaped > "$OUT/canary"',
    "remount all": 'mount -o remount,rw / && echo escaped > "$OUT/canary"',
    "unmount": 'umount "$OUT" && echo escaped > "$OUT/canary"',
    "mount over": 'mount --bind . "$OUT"',
    "new namespace": 'unshare -Urm sh -c "mount -o remount,rw,bind $OUT"',
    "make a device": "mknod disk b 8 0",
    "change the root": "chroot / true",
    "write the system": "test -w /usr/bin",
    # Harmless should it succeed: the value is what it was.
    "write a setting of the kernel": "read v < $SETTING && echo $v > $SETTING",
    "write to the kernel": "test -w /proc/sysrq-trigger",
    "read the key": 'cat "$REAL_HOME/.ssh/id"',
    "read the token": 'cat "$REAL_HOME/.config/gh/hosts.yml"',
    "read the tree itself": 'cat "$TREE/untracked-secret"',
    "read the store": 'cat "$TREE/.cleveragents/state.db"',
    "read the parent's environment": 'cat "/proc/$PARENT/environ"',
    "signal the parent": 'kill -0 "$PARENT"',
    "end a process of the user": 'kill -KILL "$VICTIM"',
}


@pytestmark_bwrap
class TestCommands:
    @pytest.fixture
    def home(self, tmp_path, monkeypatch):
        home = tmp_path / "home"
        for name in (".ssh/id", ".config/gh/hosts.yml", ".aws/credentials", ".netrc"):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_bytes(CANARY)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("SECRET_API_KEY", CANARY.decode())
        return home

    @pytest.fixture
    def place(self, tmp_path):
        tree, sandbox = tmp_path / "tree", tmp_path / "sandbox"
        (tree / ".cleveragents").mkdir(parents=True)
        (tree / "untracked-secret").write_bytes(CANARY)
        (tree / ".cleveragents/state.db").write_bytes(CANARY)
        sandbox.mkdir()
        return Place(sandbox, root=tree)

    @pytest.fixture
    def run(self, place, home, outside):
        runner = CommandRunner("required", readable=(outside,))

        def run(*argv, **env):
            known = {
                "OUT": str(outside),
                "TREE": str(place.root),
                "REAL_HOME": str(home),
                "PARENT": str(os.getpid()),
                "SETTING": "/proc/sys/vm/swappiness",
            }
            return runner.run(Command(argv, env=known | env), place)

        return run

    @pytest.fixture
    def victim(self):
        process = subprocess.Popen(["sleep", "60"])
        yield process
        assert process.poll() is None, "a command reached a process outside"
        process.kill()
        process.wait()

    @pytest.mark.parametrize("script", ATTACKS.values(), ids=ATTACKS)
    def test_no_attack_reaches_the_outside(self, run, victim, script):
        done = run("sh", "-c", script, VICTIM=str(victim.pid))

        assert done.exit_code != 0
        assert CANARY not in done.stdout

    def test_the_canary_can_be_read_where_that_is_allowed(self, run):
        """Otherwise the attacks above would fail for want of a target."""
        assert run("sh", "-c", 'cat "$OUT/canary"').stdout == CANARY

    def test_the_environment_holds_no_secret(self, run):
        everything = run("sh", "-c", "env; cat /proc/[0-9]*/environ")

        assert b"PATH=" in everything.stdout
        assert CANARY not in everything.stdout

    def test_nothing_of_the_home_is_seen(self, run):
        assert run("sh", "-c", 'cd "$HOME" && find . -type f').stdout == b""

    def test_no_command_chooses_what_is_shown_of_the_home(self, run, home, place):
        """Programs of the home are shown, so a command may try to pass a folder off as one."""
        for name in ("private/bin/diary", "private/notes/diary"):
            (home / name).parent.mkdir(parents=True)
            (home / name).write_bytes(CANARY)
        script = place.path / "script"
        script.write_text(f"#!{home}/private/bin/diary\n")
        script.chmod(0o755)
        (place.path / "link").symlink_to(home / "private/bin/diary")
        look = "cat $REAL_HOME/private/*/diary"

        for name in ("script", "link"):
            with pytest.raises(SandboxError):
                run(str(place.path / name))
            with pytest.raises(SandboxError):
                run(str(place.root / name))
        for folder in ("private/bin", "private/notes"):
            assert run("sh", "-c", look, PATH=f"{home}/{folder}:/usr/bin:/bin").stdout == b""
            with pytest.raises(SandboxError):
                run(str(home / folder))

    def test_only_the_sandbox_and_private_folders_can_be_written(self, run, place):
        script = "touch here /tmp/a /var/tmp/a ~/a /dev/shm/a && ls /tmp /run"
        done = run("sh", "-c", script)

        assert done.exit_code == 0, done.stderr
        assert [one.name for one in place.path.iterdir()] == ["here"]
        assert not Path("/tmp/a").exists()

    def test_no_descriptor_of_ours_is_handed_in(self, run):
        done = run("sh", "-c", "ls /proc/self/fd")

        assert done.stdout.split() == [b"0", b"1", b"2", b"3"]  # the last is of `ls` itself

    def test_no_privilege_is_left(self, run):
        done = run("grep", "Cap", "/proc/self/status")

        assert set(done.stdout.split()[1::2]) == {b"0" * 16}

    def test_the_loopback_is_another_one(self, run):
        code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = str(server.getsockname()[1])
            done = run(sys.executable, "-c", code, port)
            assert b"Connection refused" in done.stderr

    def test_a_daemon_does_not_stay(self, run):
        token = f"9{os.getpid()}.5"
        done = run("sh", "-c", f"setsid sleep {token} >/dev/null 2>&1 & echo started")

        assert done.stdout == b"started\n"
        assert not any(
            token.encode() in one.read_bytes() for one in Path("/proc").glob("[0-9]*/cmdline")
        )
