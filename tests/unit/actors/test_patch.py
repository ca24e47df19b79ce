from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.actors.patch import patched, read_patch
from cleveragents.actors.standard_tools import standard_tools
from cleveragents.actors.tool_journal import MemoryToolJournal
from cleveragents.actors.tool_service import ToolService
from cleveragents.domain.changeset import Content, FileMode
from cleveragents.domain.diff import unified_diff
from cleveragents.domain.errors import RequestError, SandboxError
from cleveragents.domain.net_change import FileVersion, NetChange

LINES = st.lists(
    st.sampled_from([b"a", b"b", b"", b"-- a", b"++ b", b"@@ x", b"caf\xe9", b"c\r"]), max_size=12
)
TEXTS = st.builds(lambda lines, end: b"\n".join(lines) + end, LINES, st.sampled_from([b"", b"\n"]))


def change(before, after, path="f"):
    versions = (
        FileVersion(path, Content(data), FileMode.REGULAR) if data is not None else None
        for data in (before, after)
    )
    return NetChange(*versions)


@given(TEXTS, TEXTS)
def test_patch_gives_exactly_the_file_after(before, after):
    """What `git diff` would print for any two files is read back without loss."""
    patch = unified_diff([change(before, after)])
    if before == after:
        return
    (read,) = read_patch(patch)
    assert patched(read, before) == after


@given(TEXTS, TEXTS, LINES)
def test_patch_finds_its_place_when_lines_came_above(before, after, above):
    if before == after or not before:
        return
    (read,) = read_patch(unified_diff([change(before, after)]))
    shifted = b"".join(b"shift\n" for _ in above)
    try:
        result = patched(read, shifted + before)
    except RequestError:
        return
    # Where context repeats, the nearest place may be another one; nothing above is touched.
    assert len(result) == len(shifted) + len(after)


def one(text, data):
    (read,) = read_patch(text)
    return patched(read, data)


HEAD = "--- a/f\n+++ b/f\n"


@pytest.mark.parametrize(
    ("hunks", "before", "after"),
    [
        ("@@ -9,2 +9,2 @@\n a\n-b\n+c\n", b"a\nb\n", b"a\nc\n"),
        ("@@ -1,9 +1,9 @@\n a\n-b\n+c\n", b"a\nb\n", b"a\nc\n"),
        ("@@ -1 +1 @@ def f():\n-a\n+b\n\n\n", b"a\nz\n", b"b\nz\n"),
        ("@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", b"a\n\nb\n", b"a\n\nc\n"),
        ("@@ -1,2 +1,2 @@\n one\n-two\n+2\n", b"one\r\ntwo\r\n", b"one\r\n2\r\n"),
        ("@@ -1,2 +1,2 @@\n one\r\n-two\r\n+2\r\n", b"one\r\ntwo\r\n", b"one\r\n2\r\n"),
        ("@@ -1,2 +1,3 @@\n first\n last\n+more\n", b"first\nlast", b"first\nlast\nmore\n"),
        ("@@ -1,2 +1,2 @@\n-first\n+1\n last\n", b"first\nlast", b"1\nlast"),
        ("@@ -2,0 +3,1 @@\n+c\n", b"a\nb\nd\n", b"a\nb\nc\nd\n"),
        ("@@ -9,0 +9,1 @@\n+c\n", b"a\n", b"a\nc\n"),
        ("@@ -1 +1,2 @@\n+0\n a\n@@ -2 +3 @@\n-b\n+c\n", b"a\nb\n", b"0\na\nc\n"),
    ],
    ids=[
        "number-off",
        "count-off",
        "blank-lines-behind",
        "blank-context",
        "windows-file",
        "windows-patch",
        "last-line-without-end",
        "last-line-kept",
        "pure-insert",
        "insert-behind-the-end",
        "two-hunks",
    ],
)
def test_patch_written_by_hand_fits(hunks, before, after):
    assert one(HEAD + hunks, before) == after


def test_deleted_line_that_looks_like_a_header_is_a_line():
    text = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n end\n"
    assert one(text, b"-- old\nend\n") == b"++ new\nend\n"


@pytest.mark.parametrize(
    ("hunks", "data", "says"),
    [
        (
            "@@ -1 +1 @@\n-a\n+b\n@@ -3,2 +3,2 @@\n x\n-y\n+z\n",
            b"a\nb\nx\nn\n",
            "Hunk 2 of 'f' (@@ -3,2 +3,2 @@) does not fit: at line 4 expected 'y', found 'n'",
        ),
        ("@@ -5 +5 @@\n-a\n+b\n", b"x\n", "expected 'a', the file ends there"),
    ],
    ids=["differs", "ends"],
)
def test_hunk_that_does_not_fit_is_named_with_both_lines(hunks, data, says):
    with pytest.raises(RequestError) as caught:
        one(HEAD + hunks, data)
    assert caught.value.code == "CA5207"
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it names no file"),
        ("diff --git a/f b/f\n", "says nothing about one"),
        ("diff --git a/f b/g\nindex 1..2\n", "it names no file"),
        (HEAD, "says nothing about one"),
        ("@@ -1 +1 @@\n-a\n", "line 1 is no header of a hunk"),
        (f"{HEAD}@@ def f():\n-a\n", "line 3 is no header of a hunk"),
        (f"{HEAD}@@ -1,2 +1 @@\n-a\noops\n", "line 5 begins with 'o'"),
        ("diff --git a/f b/f\nGIT binary patch\n", "`GIT binary patch` is not supported"),
        ("diff --git a/f b/f\nnew file mode 120000\n", "symbolic link"),
    ],
)
def test_patch_that_cannot_be_read_says_where(text, says):
    with pytest.raises(RequestError) as caught:
        read_patch(text)
    assert caught.value.code == "CA5207"
    assert says in caught.value.message


def test_end_mark_without_a_line_is_harmless():
    text = f"{HEAD}@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n"
    assert one(text, b"a\n") == b"b\n"


def test_names_in_quotes_are_read_as_bytes():
    path = 'caf\udce9 "q"\t\u20ac'
    (read,) = read_patch(unified_diff([change(None, b"x\n", path)]))
    assert (read.old, read.new, read.mode) == (None, path, FileMode.REGULAR)


# -- the tool ------------------------------------------------------------------------------


@pytest.fixture
def service():
    return ToolService(standard_tools(), MemoryToolJournal())


@pytest.fixture
def apply(world, service):
    with world.attempt() as attempt:

        def applied(text):
            return service.call(attempt, "apply_patch", {"patch": text})

        applied.files = attempt.files
        yield applied


MANY = """\
diff --git a/src/app.py b/src/app.py
--- a/src/app.py
+++ b/src/app.py
@@ -4,2 +4,2 @@
 def main():
-    return 1
+    return 2
diff --git a/new.sh b/new.sh
new file mode 100755
--- /dev/null
+++ b/new.sh
@@ -0,0 +1 @@
+#!/bin/sh
diff --git a/empty.txt b/empty.txt
deleted file mode 100644
--- a/no_end.txt
+++ /dev/null
@@ -1,2 +0,0 @@
-first
-last
\\ No newline at end of file
diff --git a/src/twin.py b/moved.py
similarity index 90%
rename from src/twin.py
rename to moved.py
--- a/src/twin.py
+++ b/moved.py
@@ -1 +1 @@
-x = 1
+x = 2
"""


def test_patch_changes_makes_deletes_and_moves_files(apply, world):
    result = apply(MANY)
    assert result.text == (
        "Applied the patch: moved `src/twin.py` to `moved.py`,"
        " changed `src/app.py`, made `new.sh`, deleted `no_end.txt`,"
        " changed `moved.py`"
    )
    assert apply.files.read("src/app.py").endswith(b"return 2\n")
    assert apply.files.read("moved.py") == b"x = 2\ny = 1\nx = 1\n"
    entries = {entry.path: entry for entry in world.entries()}
    assert entries["new.sh"].mode_after is FileMode.EXECUTABLE
    assert {entry.tool_call for entry in world.entries()} == {result.call_id}


def test_patches_of_one_file_follow_each_other(apply):
    apply(
        "--- a/windows.txt\n+++ b/windows.txt\n@@ -1 +1 @@\n-one\n+1\n"
        "--- a/windows.txt\n+++ b/windows.txt\n@@ -1 +1 @@\n-1\n+uno\n"
    )
    assert apply.files.read("windows.txt").startswith(b"uno\r\n")


def test_file_that_is_made_and_deleted_is_not_there(apply, world):
    apply(
        "--- /dev/null\n+++ b/brief\n@@ -0,0 +1 @@\n+x\n"
        "--- a/brief\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    )
    assert world.entries() == ()


def test_patch_without_lines_changes_modes_and_empty_files(apply, world):
    """Of these, git prints no `---` and `+++`: their names stand in the first line alone."""
    apply(
        "diff --git a/windows.txt b/windows.txt\nold mode 100644\nnew mode 100755\n"
        "diff --git a/empty.txt b/empty.txt\ndeleted file mode 100644\nindex e69de29..0000000\n"
        'diff --git "a/hol low" "b/hol low"\nnew file mode 100644\nindex 0000000..e69de29\n'
    )
    assert [(entry.kind, entry.path) for entry in world.entries()] == [
        ("mode", "windows.txt"),
        ("delete", "empty.txt"),
        ("create", "hol low"),
    ]


def test_moved_file_stays_executable(apply, world):
    apply.files.write("run.sh", b"#!/bin/sh\n", FileMode.EXECUTABLE)
    apply("diff --git a/run.sh b/go.sh\nrename from run.sh\nrename to go.sh\n")
    assert os.access(apply.files.tree.folder / "go.sh", os.X_OK)
    assert [entry.kind for entry in world.entries()] == ["create", "rename"]


def test_file_that_takes_the_place_of_a_deleted_one_is_written_anew(apply):
    apply(
        "--- a/no_end.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-first\n-last\n"
        "diff --git a/src/twin.py b/no_end.txt\nrename from src/twin.py\nrename to no_end.txt\n"
    )
    assert apply.files.read("no_end.txt") == b"x = 1\ny = 1\nx = 1\n"
    assert apply.files.names("src") == ("app.py",)


def test_file_that_is_made_and_then_moved_is_at_its_last_place(apply):
    apply(
        "--- /dev/null\n+++ b/first\n@@ -0,0 +1 @@\n+x\n"
        "diff --git a/first b/second\nrename from first\nrename to second\n"
    )
    assert apply.files.read("second") == b"x\n"
    assert "first" not in apply.files.names()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("--- /dev/null\n+++ b/src/app.py\n@@ -0,0 +1 @@\n+x\n", "which is there already"),
        ("--- a/missing\n+++ b/missing\n@@ -1 +1 @@\n-a\n+b\n", "which is not there"),
        ("--- a/src/twin.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n", "leaves lines in it"),
        (
            "diff --git a/x b/y\nrename from src/twin.py\nrename to src/app.py\n",
            "moves a file to 'src/app.py', which is there already",
        ),
    ],
    ids=["make", "change", "delete", "move"],
)
def test_patch_that_does_not_fit_the_tree_is_refused(apply, world, text, says):
    with pytest.raises(RequestError) as caught:
        apply(text)
    assert caught.value.code == "CA5207"
    assert says in caught.value.message
    assert world.entries() == ()


def test_patch_with_one_bad_hunk_changes_nothing(apply, world):
    bad = MANY.replace("-x = 1\n", "-x = 7\n")
    with pytest.raises(RequestError, match=r"Hunk 1 of 'moved\.py'"):
        apply(bad)
    assert world.entries() == ()


def test_patch_that_cannot_be_written_is_taken_back(apply):
    """`src/app.py/x` passes every check but the disk's: a file is in the way of its folder."""
    text = (
        "diff --git a/src/twin.py b/moved.py\nrename from src/twin.py\nrename to moved.py\n"
        "--- a/windows.txt\n+++ b/windows.txt\n@@ -1 +1 @@\n-one\n+1\n"
        "--- a/no_end.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-first\n-last\n"
        "--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+x\n"
        "--- /dev/null\n+++ b/src/app.py/x\n@@ -0,0 +1 @@\n+x\n"
    )
    with pytest.raises(SandboxError):
        apply(text)
    assert apply.files.read("windows.txt") == b"one\r\ntwo\r\nthree\r\n"
    assert apply.files.read("no_end.txt") == b"first\nlast"
    assert apply.files.read("src/twin.py") == b"x = 1\ny = 1\nx = 1\n"
    assert not {"made.txt", "moved.py"} & set(apply.files.names())


def test_patch_out_of_the_tree_is_refused(apply):
    with pytest.raises(SandboxError) as caught:
        apply("--- /dev/null\n+++ b/../out\n@@ -0,0 +1 @@\n+x\n")
    assert caught.value.code == "CA5001"
