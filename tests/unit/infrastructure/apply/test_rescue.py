"""Who still writes into a file while it is replaced loses nothing: the old file is kept aside."""

from __future__ import annotations

import errno
import os

import pytest

from unit.infrastructure.apply.forest import HOME, check_clean, engine, look, target

pytestmark = pytest.mark.usefixtures("quick", "road")
RESCUED = f"{HOME}/rescued/p1"


def writing(open_file, point="before-done"):
    def fault(reached):
        if reached == point:
            open_file.write(b"late\n")
            open_file.flush()

    return fault


def wishes(tree):
    return [target(tree, "src/app.py", b"new"), target(tree, "gone/only.py", None)]


@pytest.mark.parametrize("path", ["src/app.py", "gone/only.py"])
def test_line_that_is_written_after_the_flip_is_kept_and_told(tree, path):
    old = (tree / path).read_bytes()
    with (tree / path).open("ab") as file:
        done = engine(tree, fault=writing(file)).apply("p1", wishes(tree))
        assert done.rescued == (path,)
        file.write(b"later still\n")
    assert (tree / RESCUED / path).read_bytes() == old + b"late\nlater still\n"
    assert (tree / "src/app.py").read_bytes() == b"new"
    assert not engine(tree).pending()


def test_file_that_nobody_wrote_to_is_not_kept(tree):
    assert engine(tree).apply("p1", wishes(tree)).rescued == ()
    check_clean(tree)


def test_death_after_the_flip_keeps_the_line_and_the_new_tree(tree):
    """The books say already that it is applied: it must not be taken back for this line."""

    def die(point):
        if point == "before-done":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine(tree, fault=die).apply("p1", wishes(tree), note=b"n")
    (old,) = (tree / HOME / "apply" / "p1").glob("0*")
    with old.open("ab") as file:
        file.write(b"late\n")
    now = look(tree)
    (found,) = engine(tree).recover()
    assert (found.outcome, found.note, found.rescued) == ("new", b"n", ("src/app.py",))
    assert look(tree) == now
    assert (tree / RESCUED / "src/app.py").read_bytes() == b"oldlate\n"


def test_file_that_cannot_be_kept_is_not_removed(tree):
    with (tree / "src/app.py").open("ab") as file:
        late, full = writing(file), []

        def fault(point):
            late(point)
            full.extend([1] if point == "before-done" else [])
            if full and point == "call:make-folder":
                raise OSError(errno.ENOSPC, "full")

        assert engine(tree, fault=fault).apply("p1", wishes(tree)).rescued == ()
    assert (tree / "src/app.py").read_bytes() == b"new"
    (found,) = engine(tree).recover()
    assert (found.outcome, found.rescued) == ("new", ("src/app.py",))
    assert (tree / RESCUED / "src/app.py").read_bytes() == b"oldlate\n"


def test_file_on_another_device_is_copied_also_the_second_time(tree, monkeypatch):
    (tree / RESCUED / "src").mkdir(parents=True)
    (tree / RESCUED / "src" / "app.py").write_bytes(b"of a rescue that died")
    rename = os.rename

    def other_device(source, place, **folders):
        if place == "app.py" and source != "app.py":
            raise OSError(errno.EXDEV, "another device")
        rename(source, place, **folders)

    with (tree / "src/app.py").open("ab") as file:
        late = writing(file)

        def fault(point):
            late(point)
            if point == "before-done":
                monkeypatch.setattr(os, "rename", other_device)

        done = engine(tree, fault=fault).apply("p1", wishes(tree))
    assert done.rescued == ("src/app.py",)
    assert (tree / RESCUED / "src/app.py").read_bytes() == b"oldlate\n"
    assert not engine(tree).pending()
