from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from cleveragents.domain.errors import SetupError
from cleveragents.infrastructure.sandbox import confinement, program_folders
from cleveragents.infrastructure.sandbox.command import Command, CommandRunner, Place
from cleveragents.infrastructure.sandbox.confinement import (
    Bubblewrap,
    Confinement,
    Confiner,
    View,
    probe_bubblewrap,
)
from cleveragents.infrastructure.sandbox.program_folders import (
    ProgramFolders,
    confined_home,
    find_program,
    hidden_folders,
    search_path,
    secrets_of_machine,
)

WITH_BWRAP = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="needs bubblewrap, which confines commands"
)
WORKING = Bubblewrap("bwrap", ())

#: Refused by the system also to those whom no permission stops.
UNREACHABLE = "x" * 300


def write_program(path, text="#!/bin/sh\necho ran\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


class TestPolicy:
    def test_auto_says_once_that_commands_run_unconfined(self):
        told = []
        confiner = Confiner(on_notice=told.append, probe=lambda: "it is not there")

        assert confiner.bubblewrap() is None
        assert confiner.bubblewrap() is None
        assert [(one.code, one.message) for one in told] == [
            ("CA5006", "Commands run unconfined: it is not there")
        ]

    def test_required_refuses_every_command(self):
        told = []
        confiner = Confiner(Confinement.REQUIRED, on_notice=told.append, probe=lambda: "no reason")
        for _ in range(2):
            with pytest.raises(SetupError, match="no reason") as caught:
                confiner.bubblewrap()
            assert caught.value.code == "CA5006"
        assert told == []

    def test_off_does_not_even_look(self):
        assert Confiner(Confinement.OFF, probe=lambda: 1 / 0).bubblewrap() is None

    @pytest.mark.parametrize("policy", [Confinement.AUTO, Confinement.REQUIRED])
    def test_what_works_is_found_out_once(self, policy):
        probed = []
        confiner = Confiner(policy, probe=lambda: probed.append(1) or WORKING)

        assert confiner.bubblewrap() is confiner.bubblewrap() is WORKING
        assert probed == [1]

    def test_the_first_of_two_answers_counts_and_is_told(self):
        """The second thread asks while the first still looks, and finishes before it."""
        told, asked = [], []

        def probe():
            asked.append(1)
            if len(asked) == 1:
                confiner.bubblewrap()
                return WORKING
            return "the inner answer came first"

        confiner = Confiner(on_notice=told.append, probe=probe)

        assert confiner.bubblewrap() is None
        assert len(told) == 1


class TestProbe:
    @pytest.fixture
    def fake(self, tmp_path, monkeypatch):
        def fake(script):
            write_program(tmp_path / "bin/bwrap", f"#!/bin/sh\n{script}\n")
            monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")

        return fake

    def test_a_missing_program_is_the_reason(self, monkeypatch):
        monkeypatch.setattr(confinement.shutil, "which", lambda _: None)

        assert probe_bubblewrap() == "`bwrap` is not installed"

    def test_what_it_says_is_the_reason(self, fake):
        fake("echo No permission >&2; exit 1")

        assert probe_bubblewrap() == "`bwrap` does not work here: No permission"

    def test_one_that_cannot_be_run_is_no_help(self, fake, monkeypatch):
        def broken(*_, **__):
            raise subprocess.TimeoutExpired("bwrap", 20)

        fake("")
        monkeypatch.setattr(confinement.subprocess, "run", broken)

        assert "timed out" in probe_bubblewrap()

    def test_an_old_one_does_without_the_newest_option(self, fake):
        fake('case "$*" in *--disable-userns*) exit 1;; esac')
        found = probe_bubblewrap()

        assert isinstance(found, Bubblewrap)
        assert "--disable-userns" not in found.options
        assert "--unshare-pid" in found.options

    @WITH_BWRAP
    def test_the_real_one_is_found(self):
        assert isinstance(probe_bubblewrap(), Bubblewrap)


class TestHiddenFolders:
    def test_homes_and_temporary_folders_are_hidden(self, tmp_path):
        hidden = hidden_folders(str(tmp_path))

        assert os.path.realpath("/tmp") in hidden
        assert any(str(tmp_path.resolve()).startswith(folder) for folder in hidden)

    def test_none_lies_in_another_and_none_is_the_root(self):
        hidden = hidden_folders("/")

        assert "/" not in hidden
        assert not any(
            one != other and one.startswith(f"{other}/") for one in hidden for other in hidden
        )

    def test_a_home_elsewhere_is_hidden(self, tmp_path, monkeypatch):
        monkeypatch.setattr(program_folders, "_PRIVATE", ())
        (tmp_path / "real").mkdir()
        (tmp_path / "home").symlink_to("real")

        assert hidden_folders(str(tmp_path / "home")) == (str(tmp_path / "real"),)

    @pytest.mark.parametrize("home", ["/", "/nonexistent", "~"])
    def test_who_has_no_home_gets_a_private_one(self, home):
        assert confined_home(home) == "/tmp"

    def test_the_home_keeps_its_name(self, tmp_path):
        assert confined_home(str(tmp_path)) == str(tmp_path)


class TestFindProgram:
    def test_names_are_searched_and_paths_are_not(self, tmp_path):
        tool = write_program(tmp_path / "bin/tool")
        folders = search_path(f"relative::{tmp_path}/none:{tmp_path}/bin")

        assert folders == (f"{tmp_path}/none", f"{tmp_path}/bin")
        assert find_program("tool", folders) == tool
        assert find_program(tool, ()) == tool
        assert find_program("bin/tool", folders) is None
        assert find_program("gone", folders) is None

    def test_a_folder_that_cannot_be_looked_into_is_skipped(self, tmp_path):
        tool = write_program(tmp_path / "bin/tool")
        folders = (f"{tmp_path}/{UNREACHABLE}", f"{tmp_path}/bin")
        assert find_program("tool", folders) == tool


class TestShown:
    @pytest.fixture
    def home(self, tmp_path):
        home = tmp_path / "home"
        home.mkdir()
        return home

    @pytest.fixture
    def shown(self, home, tmp_path, monkeypatch):
        monkeypatch.setattr(program_folders, "_PRIVATE", ())
        return ProgramFolders(str(home), (str(home),), apart=str(tmp_path / "tree"))

    def test_a_folder_that_cannot_be_looked_into_is_not_shown(self, shown, home):
        shown.show_search_folder(f"{home}/{UNREACHABLE}/bin")
        shown.show(f"{home}/{UNREACHABLE}")
        assert shown.folders == ()

    def test_a_secret_that_cannot_be_looked_at_needs_no_mask(self, shown, home, monkeypatch):
        monkeypatch.setattr(program_folders, "_SECRET", (f"shown/{UNREACHABLE}",))
        (home / "shown").mkdir()
        shown.show(f"{home}/shown")
        assert (shown.masked_folders, shown.masked_files) == ((), ())

    @pytest.mark.parametrize(
        ("searched", "expected"),
        [
            ("bin", {"bin"}),
            (".local/bin", {".local/bin", ".local/lib"}),
            (".cargo/bin", {".cargo", ".rustup"}),
            (".pyenv/shims", {".pyenv"}),
            (".nvm/versions/node/v20/bin", {".nvm/versions/node/v20"}),
            (".config/bin", {".config/bin"}),
            (".docker/bin", {".docker/bin"}),
            (".docker/other", set()),
            ("go/tools", {"go/tools"}),
            (".", set()),
            (".ssh", set()),
            ("gone/bin", set()),
        ],
    )
    def test_a_folder_of_programs_is_shown_with_its_libraries(
        self, shown, home, searched, expected
    ):
        for name in (searched, ".local/lib", ".rustup", ".ssh"):
            if searched != "gone/bin" or name != searched:
                (home / name).mkdir(parents=True, exist_ok=True)
        shown.show_search_folder(os.path.normpath(home / searched))

        assert {os.path.relpath(one, home) for one in shown.folders} == expected
        assert shown.links == {}

    def test_folders_of_the_system_are_not_looked_through(self, shown):
        shown.show_search_folder("/usr/bin")

        assert shown.folders == ()

    def test_secrets_inside_are_masked(self, shown, home):
        for name in (".cargo/bin", ".config/gh", ".config/tool/bin"):
            (home / name).mkdir(parents=True)
        (home / ".cargo/credentials.toml").touch()
        (home / ".cargo/credentials").symlink_to("credentials.toml")
        shown.show_search_folder(str(home / ".cargo/bin"))
        shown.show(str(home / ".config"))

        assert shown.masked_files == (str(home / ".cargo/credentials.toml"),)
        assert shown.masked_folders == (str(home / ".config/gh"),)

    def test_links_are_shown_hop_by_hop(self, shown, home):
        real = write_program(home / "store/python-3/bin/python3")
        (home / "hop/bin").mkdir(parents=True)
        (home / "hop/bin/python").symlink_to(real)
        (home / "store/python").symlink_to("python-3")
        (home / "env/bin").mkdir(parents=True)
        (home / "env/bin/python").symlink_to("../../hop/bin/python")
        (home / "env/bin/other").symlink_to(home / "store/python/bin/python3")
        shown.show_search_folder(str(home / "env/bin"))

        assert {os.path.relpath(one, home) for one in shown.folders} == {
            *("env", "hop", "store/python-3"),
        }
        assert shown.links == {str(home / "store/python"): str(home / "store/python-3")}

    def test_links_in_a_circle_end(self, shown, home):
        (home / "bin").mkdir()
        (home / "bin/a").symlink_to("b")
        (home / "bin/b").symlink_to("a")
        shown.show_program(str(home / "bin/a"))

        assert shown.folders == (str(home / "bin"),)

    def test_the_interpreter_of_a_script_is_shown(self, shown, home, monkeypatch):
        write_program(home / "python/bin/python3")
        script = write_program(home / "tool/run", f"#!{home}/python/bin/python3 -I\n")
        shown.show_program(script)
        assert shown.folders == (str(home / "python"), str(home / "tool"))

        write_program(home / "ruby/bin/ruby")
        monkeypatch.setenv("PATH", f"{home}/ruby/bin")
        shown.show_program(write_program(home / "tool/gem", "#!/usr/bin/env -S ruby\n"))
        assert str(home / "ruby") in shown.folders

    @pytest.mark.parametrize("first", ["#!\n", "#!python\n", "#!/usr/bin/env gone\n", "\x7fELF"])
    def test_a_first_line_that_names_nobody_is_nothing(self, shown, home, first):
        shown.show_program(write_program(home / "tool/run", first))

        assert shown.folders == (str(home / "tool"),)

    def test_the_interpreter_of_an_environment_is_shown(self, shown, home):
        """Also where the environment has a copy of it, and no link to it."""
        write_program(home / "env/bin/python")
        write_program(home / "base/bin/python")
        (home / "env/pyvenv.cfg").write_text(f"version = 3\nhome = {home}/base/bin\n")
        shown.show_search_folder(str(home / "env/bin"))

        assert shown.folders == (str(home / "base"), str(home / "env"))

    def test_the_tree_of_the_user_is_not_shown(self, shown, home):
        shown.apart = str(home / "tree")
        write_program(home / "tree/.venv/bin/tool")
        (home / "base").mkdir()
        (home / "tree/.venv/bin/python").symlink_to(home / "base/python")
        shown.show_search_folder(str(home / "tree/.venv/bin"))
        shown.show_program(str(home / "tree/.venv/bin/tool"))

        assert shown.folders == ()

    def test_a_link_inside_a_shown_folder_needs_no_second_one(self, shown, home):
        (home / ".pyenv/versions/3.11.7/bin").mkdir(parents=True)
        (home / ".pyenv/versions/3.11").symlink_to("3.11.7")
        shown.show(str(home / ".pyenv"))
        shown.show_search_folder(str(home / ".pyenv/versions/3.11/bin"))

        assert shown.folders == (str(home / ".pyenv"),)
        assert shown.links == {}

    def test_a_folder_that_is_a_link_is_there_by_both_names(self, shown, home):
        (home / "dotfiles/bin").mkdir(parents=True)
        (home / "bin").symlink_to("dotfiles/bin")
        shown.show_search_folder(str(home / "bin"))

        assert shown.folders == (str(home / "dotfiles/bin"),)
        assert shown.links == {str(home / "bin"): str(home / "dotfiles/bin")}


class TestArguments:
    def arguments(self, tmp_path, *, home="/", network=False):
        view = View(home, "/usr/bin", (), 7)
        return WORKING.arguments(Command(("ls",), network=network), Place(tmp_path / "box"), view)

    def test_the_network_is_off_unless_allowed(self, tmp_path):
        assert "--unshare-net" in self.arguments(tmp_path)
        assert "--unshare-net" not in self.arguments(tmp_path, network=True)

    def test_names_can_still_be_looked_up(self, tmp_path, monkeypatch):
        """Where the file lies in `/run`, which is hidden, it alone is shown."""
        (tmp_path / "run").mkdir()
        file = tmp_path / "run/resolv.conf"
        file.touch()
        real = os.path.realpath
        monkeypatch.setattr(
            os.path,
            "realpath",
            lambda path: str(file) if path == "/etc/resolv.conf" else real(path),
        )
        monkeypatch.setattr(program_folders, "_PRIVATE", (str(tmp_path / "run"),))

        assert str(file) in self.arguments(tmp_path, network=True)
        assert str(file) not in self.arguments(tmp_path)

    def test_secrets_are_masked_after_their_folder_is_shown(self, tmp_path):
        home = tmp_path / "home"
        for name in (".tool/bin", ".config/gh"):
            (home / name).mkdir(parents=True)
        (home / ".config/git").mkdir()
        (home / ".config/git/credentials").touch()
        view = View(str(home), "", (home / ".config",), 7)
        found = WORKING.arguments(Command(("ls",)), Place(tmp_path / "box"), view)
        at = {one: number for number, one in enumerate(found)}

        assert found[at[f"{home}/.config/gh"] - 1] == "--tmpfs"
        assert found[at[f"{home}/.config/git/credentials"] - 1] == os.devnull
        assert at[f"{home}/.config"] < at[f"{home}/.config/gh"] < at[f"{tmp_path}/box"]


@WITH_BWRAP
class TestProgramsOfTheHome:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path, monkeypatch):
        home = tmp_path / "home"
        (home / ".ssh").mkdir(parents=True)
        (home / ".ssh/id").write_text("secret")
        monkeypatch.setenv("HOME", str(home))
        return home

    @pytest.fixture
    def run(self, tmp_path):
        (tmp_path / "box").mkdir()

        def run(*argv):
            return CommandRunner("required").run(Command(argv), Place(tmp_path / "box"))

        return run

    @pytest.mark.parametrize("none", ["/", "/nonexistent"])
    def test_without_a_home_commands_run(self, run, monkeypatch, none):
        monkeypatch.setenv("HOME", none)

        assert run("sh", "-c", "touch ~/file && echo $HOME").stdout == b"/tmp\n"

    def test_a_linked_program_finds_its_libraries(self, home, run, monkeypatch):
        store = home / ".local/share/tool"
        write_program(
            store / "bin/tool", '#!/bin/sh\n. "$(dirname "$(readlink -f "$0")")/../lib.sh"\n'
        )
        (store / "lib.sh").write_text("echo found its library\n")
        (home / ".local/bin").mkdir()
        (home / ".local/bin/tool").symlink_to(store / "bin/tool")
        monkeypatch.setenv("PATH", f"{home}/.local/bin:{os.environ['PATH']}")

        assert run("tool").stdout == b"found its library\n"
        assert run("sh", "-c", "tool").stdout == b"found its library\n"
        assert run("ls", "-A", str(home)).stdout == b".local\n"

    def test_a_virtual_environment_runs(self, home, run):
        venv.create(home / "env", with_pip=False, symlinks=True)
        script = write_program(home / "env/bin/tool", f"#!{home}/env/bin/python\nprint('ran')\n")

        assert run(script).stdout == b"ran\n"
        code = "import sys, json; print(sys.prefix)"
        assert run(str(home / "env/bin/python"), "-c", code).stdout.strip() == os.fsencode(
            home / "env"
        )

    def test_our_own_interpreter_runs(self, run):
        assert run(sys.executable, "-c", "import cleveragents; print('ran')").stdout == b"ran\n"

    def test_more_can_be_made_readable(self, home, tmp_path):
        (home / "data").mkdir()
        (home / "data/file").write_text("data")
        (tmp_path / "box").mkdir()
        runner = CommandRunner("required", readable=(home / "data",))
        done = runner.run(
            Command(("sh", "-c", "cat ~/data/file; echo >~/data/new; cat ~/.ssh/id")),
            Place(tmp_path / "box"),
        )

        assert done.stdout == b"data"
        assert not (home / "data/new").exists()
        assert Path(home / ".ssh/id").read_text() == "secret"

    def test_a_sandbox_in_the_home_is_the_only_thing_there(self, home):
        box = home / "cache/box"
        box.mkdir(parents=True)
        done = CommandRunner("required").run(
            Command(("sh", "-c", "touch file; find ~ -type f")), Place(box)
        )

        assert done.stdout.strip() == os.fsencode(box / "file")
        assert (box / "file").exists()


@WITH_BWRAP
class TestMachine:
    """What belongs to the machine, its services and its other users."""

    def out(self, tmp_path, script):
        box = tmp_path / "box"
        box.mkdir(exist_ok=True)
        return CommandRunner(Confinement.REQUIRED).run(Command(("sh", "-c", script)), Place(box))

    @pytest.mark.parametrize(
        "folder", ["/home", "/media", "/mnt", "/srv", "/var/log", "/var/mail", "/var/spool"]
    )
    def test_folder_of_others_is_empty(self, tmp_path, folder):
        assert self.out(tmp_path, f"test ! -e {folder} || ls -A {folder}").stdout == b""

    def test_services_are_hidden_and_what_programs_need_is_not(self, tmp_path):
        seen = self.out(tmp_path, "ls -A /var/lib").stdout.decode().split()
        assert set(seen) <= set(program_folders._OF_PROGRAMS)
        assert set(seen) == {
            one for one in program_folders._OF_PROGRAMS if Path("/var/lib", one).exists()
        }

    def test_secrets_of_the_machine_cannot_be_read(self, tmp_path):
        names = "/etc/shadow /etc/shadow- /etc/gshadow /etc/ssl/private /etc/ssh/ssh_host_*_key"
        script = (
            f"for one in {names} /etc/sudoers; do"
            " if test -d $one; then ls -A $one; elif test -e $one; then cat $one; fi; done"
        )
        assert self.out(tmp_path, script).stdout == b""

    def test_rest_of_etc_is_there(self, tmp_path):
        assert self.out(tmp_path, "cat /etc/passwd").stdout == Path("/etc/passwd").read_bytes()


class TestSecretsOfTheMachine:
    def test_those_that_can_be_read_are_found(self, tmp_path):
        names = ["shadow", "shadow-", "ssh/ssh_host_rsa_key", "ssl/private/x", "sudoers.d/y"]
        for name in (*names, "passwd", "ssh/ssh_host_rsa_key.pub", "ssl/certs/z"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        folders, files = secrets_of_machine(tmp_path)
        assert [os.path.relpath(one, tmp_path) for one in folders] == ["ssl/private", "sudoers.d"]
        assert [os.path.relpath(one, tmp_path) for one in files] == [
            "shadow",
            "shadow-",
            "ssh/ssh_host_rsa_key",
        ]
        apart = (f"{tmp_path}/ssl", f"{tmp_path}/ssh/ssh_host_rsa_key")
        folders, files = secrets_of_machine(tmp_path, apart=apart)
        assert (len(folders), len(files)) == (1, 2)
