from __future__ import annotations

import hashlib
import pickle
from contextlib import suppress
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.application.memory_changesets import InMemoryChangesetStore
from cleveragents.domain.changeset import ChangeEntry, ChangeKind, Content, FileMode
from cleveragents.domain.errors import PlanError
from cleveragents.domain.net_change import net_changes
from cleveragents.domain.paths import folders_of

REFUSED_PATHS = {
    "empty": "",
    "not-text": b"a.py",
    "none": None,
    "nul": "a\0b",
    "absolute": "/etc/passwd",
    "unc-slashes": "//server/share/a",
    "parent-backslash": "src\\..\\..\\a.py",
    "git-backslash": ".git\\config",
    "git-short-name-backslash": "a\\GIT~1\\config",
    "trailing-slash": "src/",
    "dot": ".",
    "dot-segment": "src/./a.py",
    "parent": "../a.py",
    "parent-inside": "src/../../a.py",
    "empty-segment": "src//a.py",
    "git": ".git/config",
    "git-inside": "vendor/.git/hooks/post-checkout",
    "git-file": "sub/.git",
    "git-upper": ".GIT/config",
    "git-short-name": "git~1/config",
    "git-trailing-dot": ".git./config",
    "git-trailing-space": ".git /config",
    "git-stream": ".git::$INDEX_ALLOCATION/config",
    "git-zero-width": ".g\u200cit/config",
    "lone-surrogate": "a\ud800",
    "two-spellings": "caf\udcc3\udca9",
}
ACCEPTED_PATHS = {
    "plain": "src/app.py",
    "dots": "..a/b../...",
    "gitignore": ".gitignore",
    "git-in-name": "src/git/x.git",
    "spaces": " a b /c d",
    "quotes": 'it\'s "quoted"',
    "newline": "a\nb\tc",
    "non-ascii": "ünï/码.txt",
    "not-utf-8": "caf\udce9.txt",
    "colon": "src/a:b",
    "drive": "c:x.txt",
    "backslash": "dev-disk\\x2duuid.mount",
}


@pytest.mark.parametrize("path", REFUSED_PATHS.values(), ids=REFUSED_PATHS)
def test_a_change_refuses_a_path_that_is_no_plain_name_inside_the_tree(path):
    with pytest.raises(PlanError) as caught:
        ChangeEntry.create(path, b"x")
    assert caught.value.code == "CA4003"
    assert f"got {path!r}" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("path", ACCEPTED_PATHS.values(), ids=ACCEPTED_PATHS)
def test_a_change_accepts_every_other_file_name(path):
    assert ChangeEntry.create(path, b"x").path == path


def test_a_rename_checks_the_path_that_it_leaves_too():
    with pytest.raises(PlanError, match="must be relative"):
        ChangeEntry.rename("/a", "b")


def test_folders_of_a_path_are_named_from_the_outermost():
    assert folders_of("a/b/c.py") == ["a", "a/b"]
    assert folders_of("c.py") == []


def test_content_knows_its_hash_size_and_kind():
    content = Content.of(b"one\ntwo\n")
    assert content.sha256 == hashlib.sha256(b"one\ntwo\n").hexdigest()
    assert (content.size, content.binary, content.data) == (8, False, b"one\ntwo\n")
    assert Content.of(b"\x89PNG\0").binary


@pytest.mark.parametrize("data", [b"caf\xc3\xa9\r\n", bytearray(b"x"), memoryview(b"x")])
def test_content_takes_any_bytes(data):
    assert Content.of(data).data == bytes(data)


def test_content_encodes_text_as_utf_8_and_keeps_line_ends():
    assert Content.of("é\r\n").data == b"\xc3\xa9\r\n"
    assert Content.of("caf\udce9").data == b"caf\xe9"


def test_content_of_content_is_the_same_object():
    content = Content.of(b"x")
    assert Content.of(content) is content


@pytest.mark.parametrize("data", [7, None, "\ud800"], ids=["number", "none", "lone-surrogate"])
def test_content_refuses_what_has_no_bytes(data):
    with pytest.raises(PlanError, match="must be bytes or text") as caught:
        Content.of(data)
    assert caught.value.code == "CA4003"


def test_content_is_compared_by_its_hash_and_never_shown():
    assert Content.of(b"secret") == Content.of("secret")
    assert Content.of(b"secret") != Content.of(b"other")
    assert "secret" not in repr(Content.of(b"secret"))


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        (0o644, FileMode.REGULAR),
        (0o600, FileMode.REGULAR),
        (0o755, FileMode.EXECUTABLE),
        (0o100664, FileMode.REGULAR),
        (0o100700, FileMode.EXECUTABLE),
        (0o120777, FileMode.SYMLINK),
        (FileMode.SYMLINK, FileMode.SYMLINK),
    ],
)
def test_file_mode_finds_what_git_would_keep(given, mode):
    assert FileMode(given) is mode


@pytest.mark.parametrize("given", [0o040755, -1, 2**20, "rwx"])
def test_file_mode_refuses_what_is_neither_file_nor_link(given):
    with pytest.raises(PlanError, match="A file mode must be") as caught:
        FileMode(given)
    assert caught.value.code == "CA4003"


def test_each_constructor_says_what_it_does():
    create = ChangeEntry.create("a", "x", mode=0o755, actor="w", node="n", attempt=1)
    assert (create.kind, create.mode_after) == (ChangeKind.CREATE, FileMode.EXECUTABLE)
    assert (create.actor, create.node, create.attempt) == ("w", "n", 1)
    modify = ChangeEntry.modify("a", before=b"x", after=b"y", tool_call="t-1", at=7.0)
    assert (modify.before, modify.after) == (Content.of(b"x"), Content.of(b"y"))
    assert (modify.tool_call, modify.at) == ("t-1", 7.0)
    delete = ChangeEntry.delete("a", before=b"x")
    assert (delete.before, delete.after, delete.mode_before) == (Content.of(b"x"), None, 0o100644)
    mode = ChangeEntry.change_mode("a", before=0o644, after=0o755)
    assert (mode.mode_before, mode.mode_after) == (FileMode.REGULAR, FileMode.EXECUTABLE)


def test_a_rename_may_tell_no_content_the_same_or_an_edit():
    assert ChangeEntry.rename("a", "b").before is None
    kept = ChangeEntry.rename("a", "b", before=b"x")
    assert kept.after == kept.before == Content.of(b"x")
    assert ChangeEntry.rename("a", "b", before=b"x", after=b"y").after == Content.of(b"y")


REFUSED_ENTRIES = {
    "create-without-content": lambda: ChangeEntry.create("a", None),
    "modify-without-change": lambda: ChangeEntry.modify("a", before=b"x", after="x"),
    "modify-without-before": lambda: ChangeEntry.modify("a", before=None, after=b"x"),
    "delete-without-before": lambda: ChangeEntry.delete("a", before=None),
    "rename-to-itself": lambda: ChangeEntry.rename("a", "a"),
    "rename-with-after-alone": lambda: ChangeEntry.rename("a", "b", after=b"x"),
    "rename-from-nowhere": lambda: ChangeEntry(kind=ChangeKind.RENAME, path="a"),
    "mode-to-itself": lambda: ChangeEntry.change_mode("a", 0o644, 0o600),
    "mode-to-link": lambda: ChangeEntry.change_mode("a", 0o644, FileMode.SYMLINK),
    "create-with-old-path": lambda: ChangeEntry(
        kind=ChangeKind.CREATE,
        path="a",
        old_path="b",
        after=Content.of(b""),
        mode_after=FileMode.REGULAR,
    ),
}


@pytest.mark.parametrize("make", REFUSED_ENTRIES.values(), ids=REFUSED_ENTRIES)
def test_an_entry_that_changes_nothing_or_tells_too_little_is_refused_at_birth(make):
    with pytest.raises(PlanError) as caught:
        make()
    assert caught.value.code == "CA4003"
    assert not caught.value.message.endswith(".")


def test_a_refusal_names_what_the_entry_must_come_with():
    with pytest.raises(PlanError) as caught:
        ChangeEntry.create("a.py", None)
    assert caught.value.message == (
        "A `create` of 'a.py' must come with `after` and `mode_after` alone, got `mode_after`"
    )


def test_an_entry_is_a_value():
    entry = ChangeEntry.modify("a", before=b"x", after=b"y", at=1.0)
    with pytest.raises(FrozenInstanceError):
        entry.path = "b"
    assert pickle.loads(pickle.dumps(entry)) == entry
    assert len({entry, ChangeEntry.modify("a", before="x", after="y", at=2.0)}) == 1


CREATE = {
    "kind": ChangeKind.CREATE,
    "path": "a",
    "after": Content.of(b"x"),
    "mode_after": FileMode.REGULAR,
}
RENAME = {"kind": ChangeKind.RENAME, "path": "a", "old_path": "b"}
WRONG_VALUES = [
    *((CREATE, "kind", value) for value in ("create", "nonsense", None, 7, ["create"])),
    *((CREATE, "after", value) for value in (b"x", "x", 7)),
    *((CREATE, "mode_after", value) for value in (0o644, 0o100644, "644", True)),
    (RENAME | {"after": Content.of(b"x")}, "before", b"x"),
    *((CREATE, name, value) for name in ("actor", "node", "tool_call") for value in (7, b"w")),
    *((CREATE, "attempt", value) for value in ("1", 1.5, True, -1, [1])),
    *((CREATE, "at", value) for value in ("now", True, float("nan"), float("inf"), 10**400)),
]


@pytest.mark.parametrize(("entry", "name", "value"), WRONG_VALUES)
def test_a_value_of_the_wrong_kind_is_refused_at_birth(entry, name, value):
    """Later it would fail half-way: in a store, in a diff, while the change is applied."""
    ChangeEntry(**CREATE)
    with pytest.raises(PlanError) as caught:
        ChangeEntry(**entry | {name: value})
    assert caught.value.code == "CA4003"
    assert caught.value.message.startswith(f"`{name}` of a change must be ")
    assert "got " in caught.value.message
    assert caught.value.hint


def test_a_refusal_never_shows_the_content_of_a_file():
    for content in (b"hunter2", "hunter2"):
        with pytest.raises(PlanError) as caught:
            ChangeEntry(**CREATE | {"after": content})
        assert "hunter2" not in str(caught.value.to_dict())


@pytest.mark.parametrize("data", ["x", bytearray(b"x"), None], ids=["text", "mutable", "none"])
def test_content_itself_holds_nothing_but_bytes(data):
    with pytest.raises(PlanError, match="must be bytes") as caught:
        Content(data)
    assert caught.value.code == "CA4003"


def test_a_truth_value_is_no_file_mode():
    with pytest.raises(PlanError, match="A file mode must be"):
        ChangeEntry.create("a", b"x", mode=True)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: st.one_of(
                st.none(),
                st.integers(-1, 0o177777),
                st.text(max_size=3),
                st.binary(max_size=3),
                st.sampled_from([*ChangeKind, *FileMode, Content.of(b"x"), Content.of(b"y"), []]),
            )
            for name in ChangeEntry.__dataclass_fields__
        },
    )
)
def test_what_is_not_refused_with_a_rule_can_be_recorded(fields):
    store = InMemoryChangesetStore()
    changeset_id = store.start("p")
    with suppress(PlanError):
        entry = ChangeEntry(**{"kind": ChangeKind.CREATE, "path": "a"} | fields)
        store.record(changeset_id, entry)
        assert store.get(changeset_id).entries == (entry,)
        assert net_changes([entry])
