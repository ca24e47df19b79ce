from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.errors import RequestError, SandboxError, SetupError
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.infrastructure.sandbox import command as command_module
from cleveragents.infrastructure.sandbox import process_tree
from cleveragents.infrastructure.sandbox.capped_output import CappedOutput
from cleveragents.infrastructure.sandbox.command import (
    Command,
    CommandLimits,
    CommandRunner,
    Place,
)
from cleveragents.testing import run_together

WITH_BWRAP = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="needs bubblewrap, which confines commands"
)
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="finds processes by /proc")
EITHER_WAY = ["off", pytest.param("required", marks=WITH_BWRAP)]


@pytest.fixture
def box(tmp_path):
    folder = tmp_path / "box"
    folder.mkdir()
    return folder


@pytest.fixture
def place(box):
    return Place(box)


@pytest.fixture(params=EITHER_WAY)
def runner(request):
    return CommandRunner(request.param)


@pytest.fixture
def token():
    """How long a process of the test sleeps: by that it is found."""
    return f"86{threading.get_native_id()}.{int.from_bytes(os.urandom(6))}"


def shell(script, **options):
    return Command(("sh", "-c", script), **options)


def limits(**limits):
    return CommandLimits(**limits)


def still_runs(token):
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if token.encode() in cmdline.read_bytes():
                return True
        except OSError:
            continue
    return False


class TestRun:
    def test_output_code_and_time_are_told(self, runner, place):
        done = runner.run(shell("echo out; echo err >&2; exit 3"), place)

        assert (done.stdout, done.stderr, done.exit_code) == (b"out\n", b"err\n", 3)
        assert (done.signal, done.stopped) == (None, None)
        assert 0 < done.duration_s < 30

    def test_a_signal_is_told_as_shells_tell_it(self, runner, place):
        done = runner.run(shell("kill -TERM $$"), place)

        assert (done.exit_code, done.signal) == (128 + signal.SIGTERM, signal.SIGTERM)

    def test_input_of_any_size_is_there_and_need_not_be_read(self, runner, place):
        data = bytes(range(256)) * 4000

        assert runner.run(Command(("cat",), stdin=data), place).stdout == data
        assert runner.run(Command(("true",), stdin=data), place).exit_code == 0
        assert runner.run(Command(("cat",)), place).stdout == b""

    def test_much_on_both_streams_does_not_block(self, runner, place):
        script = "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero"
        done = runner.run(shell(script), place)

        assert (len(done.stdout), len(done.stderr)) == (1_000_000, 1_000_000)

    def test_arguments_reach_the_program_as_they_are(self, runner, place):
        arguments = ("a b", "$HOME", "", "*", os.fsdecode(b"\xff\n"), "--", "-x")
        done = runner.run(Command(("printf", "%s|", *arguments)), place)

        assert done.stdout == b"".join(os.fsencode(one) + b"|" for one in arguments)

    def test_files_are_written_in_the_sandbox(self, runner, place, box):
        (box / "sub").mkdir()
        done = runner.run(shell("pwd; echo data > file", folder="sub"), place)

        assert done.stdout.strip() == os.fsencode(box / "sub")
        assert (box / "sub/file").read_bytes() == b"data\n"

    def test_output_is_heard_as_it_comes(self, runner, place):
        heard = []
        runner.run(shell("echo one; echo two >&2"), place, on_output=heard.append)

        assert sorted(b"".join(heard).split()) == [b"one", b"two"]

    def test_a_listener_that_raises_does_not_hurt(self, runner, place):
        assert runner.run(shell("echo one"), place, on_output=lambda _: 1 / 0).stdout == b"one\n"

    def test_a_program_that_closes_its_output_is_waited_for(self, runner, place):
        done = runner.run(shell("exec >&- 2>&-; sleep 0.2; exit 7"), place)

        assert done.exit_code == 7

    def test_threads_share_a_runner(self, runner, place):
        jobs = [
            lambda number=number: runner.run(shell(f"echo {number}"), place).stdout
            for number in range(12)
        ]

        assert run_together(jobs) == [f"{number}\n".encode() for number in range(12)]

    @pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors by /proc")
    def test_no_descriptor_is_left_behind(self, runner, place):
        before = os.listdir("/proc/self/fd")  # noqa: PTH208  # names alone
        runner.run(shell("echo one"), place)
        with pytest.raises(SandboxError):
            runner.run(Command(("no-such-program",)), place)
        with pytest.raises(SandboxError):
            runner.run(shell("true", folder="no-such-folder"), place)

        assert os.listdir("/proc/self/fd") == before  # noqa: PTH208  # names alone


class TestEnvironment:
    def test_only_harmless_variables_are_seen(self, runner, place, monkeypatch):
        for name in ("API_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "PYTHONPATH", "LD_PRELOAD_X"):
            monkeypatch.setenv(name, "secret")
        monkeypatch.setenv("LC_TIME", "C")
        monkeypatch.setenv("TZ", "UTC")
        done = runner.run(Command(("env",), env={"MORE": "m=1"}), place)
        seen = dict(line.split("=", 1) for line in done.stdout.decode().splitlines())

        ours = {"PWD", "CLEVERAGENTS_COMMAND", "GIT_CEILING_DIRECTORIES"}
        assert seen.keys() - ours <= {
            *("PATH", "LANG", "LC_TIME", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "USER", "HOME"),
            "MORE",
        }
        assert (seen["MORE"], seen["LC_TIME"]) == ("m=1", "C")

    @pytest.mark.parametrize("stands_for_a_tree", [False, True])
    def test_git_finds_no_repository_around_the_sandbox(self, runner, tmp_path, stands_for_a_tree):
        """A reset in a sandbox would otherwise be one of the user's own tree."""
        subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
        box = tmp_path / "user" / "box"
        (box / "deep").mkdir(parents=True)
        place = Place(box, root=box.parent if stands_for_a_tree else None)
        asked = runner.run(Command(("git", "rev-parse", "--git-dir"), folder="deep"), place)
        assert (asked.exit_code, asked.stdout) == (128, b"")
        assert b"not a git repository" in asked.stderr
        made = runner.run(shell("git init -q && cd deep && git rev-parse --show-prefix"), place)
        assert made.stdout == b"deep/\n"

    def test_the_home_is_private_and_empty(self, runner, place, tmp_path, monkeypatch):
        home = tmp_path / "home"
        home.mkdir()
        (home / "secret").touch()
        monkeypatch.setenv("HOME", str(home))
        done = runner.run(shell("ls -A ~; touch ~/mine && echo written"), place)

        assert done.stdout == b"written\n"
        assert [one.name for one in home.iterdir()] == ["secret"]

    def test_a_home_that_is_asked_for_is_given(self, runner, place, box):
        done = runner.run(shell("echo $HOME", env={"HOME": str(box)}), place)

        assert done.stdout.strip() == os.fsencode(box)

    def test_without_a_path_the_system_is_searched(self, runner, place, monkeypatch):
        monkeypatch.delenv("PATH")

        assert runner.run(shell("echo one"), place).stdout == b"one\n"


class TestLimits:
    def test_a_command_that_takes_too_long_is_ended(self, runner, place, token):
        done = runner.run(shell(f"echo begun; sleep {token}", limits=limits(time_s=0.3)), place)

        assert (done.stopped, done.signal, done.exit_code) == ("time", 9, 137)
        assert done.stdout == b"begun\n"
        assert done.duration_s < 10
        assert not still_runs(token)

    def test_too_much_output_is_cut_in_the_middle(self, runner, place):
        script = "printf 'head%0500dmiddle%0500dtail' 0 0"
        done = runner.run(shell(script, limits=limits(output_bytes_max=400)), place)

        assert done.stopped is None
        assert done.stdout.startswith(b"head0")
        assert b"0\n[... 614 bytes left out ...]\n0" in done.stdout
        assert done.stdout.endswith(b"0tail")

    @pytest.mark.parametrize("stream", ["stdout", "stderr"])
    def test_a_flood_is_ended(self, runner, place, stream):
        script = "exec yes" if stream == "stdout" else "exec yes >&2"
        done = runner.run(shell(script, limits=limits(output_bytes_max=1000)), place)

        assert done.stopped == "output"
        assert getattr(done, stream).startswith(b"y\ny\n")
        assert len(getattr(done, stream)) < 1100

    @ON_LINUX
    def test_memory_is_limited(self, runner, place):
        script = "x = bytearray(2_000_000_000); print('got it')"
        done = runner.run(
            Command((sys.executable, "-c", script), limits=limits(memory_bytes_max=500_000_000)),
            place,
        )

        assert b"MemoryError" in done.stderr
        assert done.exit_code == 1

    def test_a_limit_of_memory_needs_its_program(self, place, monkeypatch):
        monkeypatch.setattr(command_module.shutil, "which", lambda _: None)
        with pytest.raises(SetupError) as caught:
            CommandRunner("off").run(shell("true", limits=limits(memory_bytes_max=1)), place)

        assert caught.value.code == "CA1006"

    @pytest.mark.parametrize(
        "limit", [{"time_s": 0}, {"memory_bytes_max": -1}, {"output_bytes_max": 0}]
    )
    def test_limits_are_positive(self, limit):
        with pytest.raises(RequestError, match="more than 0"):
            CommandLimits(**limit)


class TestCancel:
    def test_a_running_command_is_ended(self, runner, place, token):
        stop = StopSignal()
        done = runner.run(
            shell(f"echo begun; sleep {token}"), place, stop=stop, on_output=lambda _: stop.stop()
        )

        assert (done.stopped, done.stdout) == ("cancelled", b"begun\n")
        assert not still_runs(token)

    def test_what_is_stopped_before_is_not_started(self, runner, place, box):
        stop = StopSignal()
        stop.stop()
        done = runner.run(shell("touch file"), place, stop=stop)

        assert (done.stopped, done.exit_code) == ("cancelled", 137)
        assert list(box.iterdir()) == []

    def test_an_interrupt_ends_the_command_and_goes_on(self, runner, place, token):
        def interrupt(_):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            runner.run(shell(f"echo begun; sleep {token}"), place, on_output=interrupt)
        assert not still_runs(token)


@ON_LINUX
class TestWholeTree:
    def test_a_child_that_holds_the_output_open_is_not_waited_for(self, runner, place, token):
        done = runner.run(shell(f"sleep {token} & echo done"), place)

        assert (done.stdout, done.exit_code) == (b"done\n", 0)
        assert done.duration_s < 10
        assert not still_runs(token)

    def test_a_child_that_goes_on_writing_is_not_waited_for(self, runner, place):
        done = runner.run(shell("while echo more; do sleep 0.01; done & sleep 0.2; exit 5"), place)

        assert (done.exit_code, done.stopped) == (5, None)

    def test_a_daemon_in_its_own_session_is_ended(self, runner, place, box, token):
        """Forked twice, of another session and group, with nothing of ours open."""
        code = (
            "import os, sys\n"
            "if os.fork():\n"
            "    while not os.path.exists('ready'): pass\n"
            "    sys.exit('left')\n"
            "os.setsid()\n"
            "if os.fork(): os._exit(0)\n"
            "os.closerange(0, 9)\n"
            "open('ready', 'w').close()\n"
            "os.execvp('sleep', ['sleep', sys.argv[1]])\n"
        )
        command = Command((sys.executable, "-c", code, token), limits=limits(time_s=30))
        done = runner.run(command, place)

        assert done.stderr == b"left\n"
        assert (box / "ready").exists()
        assert not still_runs(token)


class TestStart:
    def test_a_missing_program_is_told(self, runner, place):
        with pytest.raises(SandboxError, match="no-such-program") as caught:
            runner.run(Command(("no-such-program",)), place)

        assert caught.value.code == "CA5008"
        assert "No such file" in caught.value.facts["reason"]

    def test_a_file_that_is_no_program_is_told(self, runner, place, box):
        (box / "text").write_text("text")
        with pytest.raises(SandboxError) as caught:
            runner.run(Command(("./text",)), place)

        assert caught.value.code == "CA5008"

    def test_a_program_of_the_sandbox_is_run(self, runner, place, box):
        (box / "run").write_text("#!/bin/sh\necho mine\n")
        (box / "run").chmod(0o755)

        assert runner.run(Command(("./run",)), place).stdout == b"mine\n"

    def test_a_missing_folder_is_told(self, runner, place):
        with pytest.raises(SandboxError) as caught:
            runner.run(shell("true", folder="gone"), place)

        assert caught.value.code == "CA5008"

    def test_unconfined_no_folder_leads_out(self, place, box, tmp_path):
        (box / "out").symlink_to(tmp_path)
        with pytest.raises(SandboxError) as caught:
            CommandRunner("off").run(shell("true", folder="out"), place)

        assert caught.value.code == "CA5001"

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda: Command(()),
            lambda: Command(("",)),
            lambda: Command("ls -l"),
            lambda: Command(("ls", "a\0b")),
            lambda: Command(("ls",), env={"A": "\0"}),
            lambda: Command(("ls",), env={"A=B": "1"}),
            lambda: Command(("ls",), env={"": "1"}),
        ],
    )
    def test_a_command_is_refused_at_birth(self, wrong):
        with pytest.raises(RequestError):
            wrong()

    @pytest.mark.parametrize("path", ["..", "/", "a/../..", ".git"])
    def test_folders_outside_are_refused_at_birth(self, path, tmp_path):
        with pytest.raises(SandboxError):
            Command(("ls",), folder=path)
        with pytest.raises(SandboxError):
            Place(tmp_path, shared=(path,))

    def test_secrets_and_output_are_not_in_a_repr(self, place):
        command = shell("cat", env={"KEY": "secret"}, stdin=b"secret")

        assert "secret" not in repr(command)
        assert "secret" not in repr(CommandRunner("off").run(command, place))


@WITH_BWRAP
class TestPlaceOfTheUsersTree:
    @pytest.fixture
    def root(self, tmp_path):
        root = tmp_path / "project"
        (root / ".venv/bin").mkdir(parents=True)
        (root / ".venv/bin/tool").write_text("#!/bin/sh\necho tool\n")
        (root / ".venv/bin/tool").chmod(0o755)
        (root / "real").write_text("the user's")
        return root

    def test_the_sandbox_stands_where_the_tree_is(self, box, root):
        (box / "file").write_text("the sandbox's")
        place = Place(box, root=root)
        done = CommandRunner("required").run(shell(f"cd {root}; ls -A; echo new > new"), place)

        assert done.stdout == b"file\n"
        assert (box / "new").exists()
        assert not (root / "new").exists()

    def test_shared_folders_are_there_to_read_and_run(self, box, root, monkeypatch):
        monkeypatch.setenv("PATH", f"{root}/.venv/bin:{os.environ['PATH']}")
        place = Place(box, root=root, shared=(".venv", "not-there"))
        done = CommandRunner("required").run(shell("tool; ls -A; touch .venv/new"), place)

        assert done.stdout == b"tool\n.venv\n"
        assert b"Read-only" in done.stderr

    def test_a_tree_named_through_a_link_is_replaced_as_well(self, box, root, tmp_path):
        (tmp_path / "link").symlink_to(root)
        (box / "file").touch()
        place = Place(box, root=tmp_path / "link")
        script = f"pwd; ls -A {root} {tmp_path / 'link'}/"
        done = CommandRunner("required").run(shell(script), place)

        assert done.stdout.split().count(b"file") == 2
        assert b"real" not in done.stdout


@ON_LINUX
class TestEnter:
    @pytest.fixture
    def entered(self, box):
        """A folder that only the processes of a namespace see."""
        script = f"mount -t tmpfs none '{box}' && touch '{box}/seen' && echo ready && exec cat"
        keeper = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if keeper.stdout.readline() != b"ready\n":
            keeper.communicate()
            pytest.skip("user namespaces are not allowed here")
        prefix = ("nsenter", "--preserve-credentials", "-U", "-m", "-t", str(keeper.pid), "--")
        yield prefix
        keeper.communicate()

    def test_commands_run_where_the_prefix_leads(self, runner, box, entered, tmp_path):
        root = tmp_path / "root"
        root.mkdir()
        place = Place(box, root=root, enter=entered)
        done = runner.run(shell("ls -A; mkdir -p sub; touch sub/new"), place)

        assert (done.stdout, done.stderr) == (b"seen\n", b"")
        assert runner.run(shell("ls -A", folder="sub"), place).stdout == b"new\n"
        assert list(box.iterdir()) == []


class TestPortableRoad:
    def test_without_descriptors_of_processes_the_end_is_polled(self, runner, place, monkeypatch):
        monkeypatch.delattr(process_tree.os, "pidfd_open", raising=False)
        done = runner.run(shell("echo one; exit 4"), place)

        assert (done.stdout, done.exit_code) == (b"one\n", 4)

    def test_a_kernel_that_refuses_them_is_no_hindrance(self, runner, place, monkeypatch):
        def refuse(_):
            raise OSError(38, "not implemented")

        monkeypatch.setattr(process_tree.os, "pidfd_open", refuse, raising=False)

        assert runner.run(shell("exit 4"), place).exit_code == 4

    def test_a_process_that_does_not_die_is_not_waited_for_forever(self, place, monkeypatch):
        def wait(self, timeout=None):
            if timeout is not None:
                raise subprocess.TimeoutExpired(self.args, timeout)
            return really(self)

        really = subprocess.Popen.wait
        started = []
        spawn = process_tree._spawn
        monkeypatch.setattr(
            process_tree, "_spawn", lambda start: started.append(spawn(start)) or started[0]
        )
        monkeypatch.setattr(subprocess.Popen, "wait", wait)
        done = CommandRunner("off").run(shell("true"), place)
        really(started[0])

        assert done.exit_code == 137


class TestCappedOutput:
    @given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 60))
    def test_head_and_tail_are_kept_and_the_rest_is_counted(self, parts, bytes_max):
        output = CappedOutput(bytes_max)
        for part in parts:
            output.add(part)
        everything = b"".join(parts)
        text = output.text()

        assert output.seen == len(everything)
        if len(everything) <= bytes_max:
            assert text == everything
        else:
            head, tail = (bytes_max + 1) // 2, bytes_max // 2
            note = f"\n[... {len(everything) - bytes_max} bytes left out ...]\n".encode()
            assert text == everything[:head] + note + everything[len(everything) - tail :]

    def test_a_long_run_is_kept_within_bounds(self):
        output = CappedOutput(1000)
        for _ in range(1000):
            output.add(b"x" * 1000)

        assert len(output._tail) < 70_000
        assert output.text().count(b"x") == 1000
