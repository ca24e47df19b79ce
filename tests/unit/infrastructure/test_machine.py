from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections import namedtuple
from importlib import metadata

import pytest

from cleveragents.infrastructure import machine
from cleveragents.infrastructure.code_index.index import StoredCodeIndex
from cleveragents.infrastructure.code_index.storage import Storage
from cleveragents.infrastructure.git.program import git_program
from cleveragents.infrastructure.machine import Check, look
from cleveragents.infrastructure.sandbox.confinement import Bubblewrap
from cleveragents.infrastructure.store import Store
from indexkit import LATER, PATIENT, view_of

Room = namedtuple("Room", "total used free")  # noqa: PYI024  # as shutil returns it


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    return root


def seen(root, **environment: str) -> dict[str, Check]:
    checks = look(root, root / ".cleveragents" / "state.db", environment)
    return {check.name: check for check in checks}


def files_below(root) -> list[str]:
    return sorted(f"{folder}/{name}" for folder, _, names in os.walk(root) for name in names)


def never_probed(monkeypatch) -> None:
    """Leave out what asks the kernel: these tests are about something else."""
    monkeypatch.setattr(machine, "_why_no_overlay", lambda _: None)
    monkeypatch.setattr(machine, "probe_bubblewrap", lambda: Bubblewrap("bwrap", ()))


class TestLooking:
    @pytest.mark.parametrize("known", [True, False], ids=["state-folder", "none"])
    def test_looking_leaves_nothing_behind(self, root, tmp_path, monkeypatch, known):
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(temporary))
        if known:
            Store(root / ".cleveragents" / "state.db").close()
        before = files_below(tmp_path)
        checks = seen(root)
        assert files_below(tmp_path) == before
        assert list(temporary.iterdir()) == []
        assert all(check.works for check in checks.values() if check.basic), checks

    def test_names_are_distinct_and_only_what_does_not_work_has_a_hint(self, root):
        checks = look(root, root / "state.db", {})
        assert len({check.name for check in checks}) == len(checks)
        assert [check.name for check in checks if check.works and check.hint] == []
        assert [check.name for check in checks if not check.works and not check.hint] == []

    def test_overlay_is_tried_out_for_real(self, root):
        """Whether it works differs from machine to machine; that it is told does not."""
        check = seen(root)["overlay"]
        assert check.works is (check.hint is None)
        assert check.says

    def test_overlay_that_cannot_even_be_tried_is_told(self, root, monkeypatch):
        def full(_: object) -> None:
            raise OSError("no space left on device")

        monkeypatch.setattr(machine, "_why_no_overlay", full)
        check = seen(root)["overlay"]
        assert (check.works, check.says) == (False, "no space left on device")

    def test_reason_against_bubblewrap_is_told(self, root, monkeypatch):
        never_probed(monkeypatch)
        monkeypatch.setattr(machine, "probe_bubblewrap", lambda: "`bwrap` is not installed")
        check = seen(root)["bubblewrap"]
        assert (check.works, check.basic, check.says) == (False, False, "`bwrap` is not installed")


class TestPrograms:
    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch):
        never_probed(monkeypatch)

    def test_machine_without_programs_is_told_what_to_install(self, root, monkeypatch):
        git_program.cache_clear()
        monkeypatch.setenv("PATH", str(root))
        try:
            checks = seen(root)
        finally:
            git_program.cache_clear()
        assert (checks["git"].works, checks["git"].basic) == (False, True)
        assert "Install git 2.38" in checks["git"].hint
        assert (checks["ripgrep"].works, checks["ripgrep"].basic) == (False, False)

    def test_program_that_cannot_be_run_has_no_first_line(self, root):
        assert machine._said(str(root / "none"), "--version") == ""

    def test_python_that_is_too_old_is_broken(self, root, monkeypatch):
        monkeypatch.setattr(machine, "PYTHON_MIN", (9, 0))
        assert seen(root)["python"].hint == "Install Python 3.11 or later"

    def test_free_threaded_python_is_told(self, root, monkeypatch):
        monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
        assert ", free-threaded" in seen(root)["python"].says


class TestStore:
    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch):
        never_probed(monkeypatch)

    @pytest.fixture
    def path(self, root):
        path = root / ".cleveragents" / "state.db"
        Store(path).close()
        return path

    def test_store_that_opens_has_its_version_and_its_room(self, root, path):
        check = seen(root)["store"]
        assert check.works
        assert "free" in check.says
        assert f"{path}: version " in check.says

    def test_store_that_is_not_there_is_made_when_needed(self, root):
        check = seen(root)["store"]
        assert check.works
        assert "made when it is needed" in check.says

    def test_folder_that_cannot_be_written_is_broken(self, root, monkeypatch):
        monkeypatch.setattr(os, "access", lambda *_: False)
        checks = seen(root)
        assert "or name another file in `store`" in checks["store"].hint
        assert (checks["tree"].works, checks["tree"].basic) == (False, True)

    def test_disk_without_room_is_broken(self, root, monkeypatch):
        monkeypatch.setattr("shutil.disk_usage", lambda _: Room(9, 9, 1024))
        assert seen(root)["store"].hint == "Free room on this disk"

    def test_file_of_another_program_is_broken(self, root, path):
        path.unlink()
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE t (x)")
        other.close()
        assert "of another program" in seen(root)["store"].says

    def test_file_that_is_no_database_is_broken(self, root, path):
        path.write_bytes(b"x" * 5000)
        assert seen(root)["store"].hint == "Put back a backup of the store"

    def test_store_of_a_newer_version_is_broken(self, root, path):
        with sqlite3.connect(path) as other:
            other.execute("PRAGMA user_version = 999")
        other.close()
        assert "version 999 of " in seen(root)["store"].says

    def test_tree_says_whether_it_is_a_repository(self, root):
        assert "no git repository" in seen(root)["tree"].says
        subprocess.run(["git", "init", "--quiet", root], check=True)
        assert seen(root)["tree"].says.endswith(": a git repository")


class TestModels:
    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch):
        never_probed(monkeypatch)

    def test_keys_are_named_by_their_variable_and_never_shown(self, root):
        secret = "s3cret"
        checks = seen(root, OPENAI_API_KEY=secret, GOOGLE_API_KEY=secret, GROQ_API_KEY="")
        assert checks["keys"].says == "OPENAI_API_KEY, GOOGLE_API_KEY"
        assert secret not in str(checks)

    def test_no_key_is_no_fault(self, root):
        check = seen(root)["keys"]
        assert (check.works, check.basic) == (False, False)

    def test_extras_tell_what_is_missing_of_them(self, root, monkeypatch):
        lines = [
            "genai-prices>=0.2.1",
            "pytest==9.2.0; extra == 'present'",
            "no-such-package>=1; extra == 'absent'",
            "another_one[x]>=1; python_version > '3' and extra == \"absent\"",
            "litellm==1; extra == 'bench'",
        ]
        monkeypatch.setattr(metadata, "requires", lambda _: lines)
        checks = seen(root)
        assert [name for name in checks if name.startswith("extra")] == [
            "extra present",
            "extra absent",
        ]
        assert checks["extra present"].says == "installed"
        assert checks["extra absent"].says == "without no-such-package, another_one"
        assert "pip install 'cleveragents[absent]'" in checks["extra absent"].hint

    @pytest.mark.parametrize("known", [True, False], ids=["no-extras", "not-installed"])
    def test_package_without_extras_tells_none(self, root, monkeypatch, known):
        def requires(_: str) -> None:
            if not known:
                raise metadata.PackageNotFoundError

        monkeypatch.setattr(metadata, "requires", requires)
        assert not any(name.startswith("extra") for name in seen(root))


class TestCodeIndex:
    def check(self, root, setting: str) -> Check:
        checks = look(root, root / "state.db", {}, setting)
        return next(one for one in checks if one.name == "code index")

    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch):
        never_probed(monkeypatch)

    def test_index_is_told_where_it_will_be_made(self, root, tmp_path):
        check = self.check(root, str(tmp_path / "index"))
        assert check.works
        assert check.says.endswith(": made when it is needed")
        assert not (tmp_path / "index").exists()

    def test_index_that_is_switched_off_is_told_with_the_way_back(self, root):
        check = self.check(root, "off")
        assert not check.works
        assert "`context_index_folder`" in (check.hint or "")

    def test_index_of_the_cache_folder_is_told_with_its_size(self, root, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        (root / "app.py").write_text("x = 1\n")
        with StoredCodeIndex(limits=PATIENT, clocks=LATER) as index:
            view_of(index, root)
        assert "1 file of 1 tree" in self.check(root, "auto").says

    def test_damaged_index_is_told_with_the_cure(self, root, tmp_path):
        path = Storage(tmp_path).path
        path.write_bytes(b"no database" * 1000)
        check = self.check(root, str(tmp_path))
        assert not check.works
        assert "`cleveragents context --rebuild`" in (check.hint or "")

    def test_package_that_is_missing_is_told(self, root, monkeypatch):
        monkeypatch.setitem(sys.modules, "cleveragents.infrastructure.code_index.upkeep", None)
        check = self.check(root, "auto")
        assert not check.works
        assert check.hint == "Install CleverAgents again"
