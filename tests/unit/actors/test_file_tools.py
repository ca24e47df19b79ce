from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from cleveragents.actors.search_tool import search_text
from cleveragents.actors.standard_tools import standard_tools
from cleveragents.actors.tool_journal import MemoryToolJournal
from cleveragents.actors.tool_registry import ToolRegistry
from cleveragents.actors.tool_service import ToolService
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import RequestError, SandboxError
from cleveragents.domain.plan import CommandActor, Node
from cleveragents.domain.stop_signal import Stopped, StopSignal


@pytest.fixture
def service():
    return ToolService(standard_tools(), MemoryToolJournal())


@pytest.fixture
def call(world, service):
    """Call a tool on one attempt that lasts for the test."""
    with world.attempt() as attempt:
        yield lambda name, **arguments: service.call(attempt, name, arguments).text


def test_read_shows_lines_with_numbers(call):
    assert call("read_file", path="src/twin.py") == "     1\tx = 1\n     2\ty = 1\n     3\tx = 1"


def test_read_of_a_part_says_how_to_go_on(call):
    shown = call("read_file", path="src/app.py", first_line=4, lines_max=1)
    assert shown == "     4\tdef main():\n[1 more lines: go on with `first_line` 5]"


@pytest.mark.parametrize(
    ("path", "options", "shown"),
    [
        ("windows.txt", {"lines_max": 1}, "     1\tone\n[2 more lines: go on with `first_line` 2]"),
        ("picture.bin", {}, "`picture.bin` is a binary file of 6 bytes: it has no lines to show"),
        ("empty.txt", {}, "[`empty.txt` has 0 lines, none from line 1]"),
        ("no_end.txt", {"first_line": 2}, "     2\tlast"),
        ("no_end.txt", {"first_line": 9}, "[`no_end.txt` has 2 lines, none from line 9]"),
        (
            "latin.txt",
            {"lines_max": 1},
            (
                "     1\tcaf\ufffd\n[1 more lines: go on with `first_line` 2]"
                "\n[the file is not UTF-8: each byte that is not is shown as \ufffd]"
            ),
        ),
    ],
    ids=["windows", "binary", "empty", "part", "behind-the-end", "latin"],
)
def test_read_of_unusual_files_tells_what_they_are(call, path, options, shown):
    assert call("read_file", path=path, **options) == shown


def test_replacement_character_of_a_file_is_no_broken_byte(call):
    call("write_file", path="sign.txt", text="\ufffd\n")
    assert call("read_file", path="sign.txt") == "     1\t\ufffd"


def test_long_lines_are_cut(call):
    call("write_file", path="long.txt", text="x" * 5_000)
    assert call("read_file", path="long.txt").endswith("x… [line cut]")


@pytest.mark.parametrize(
    ("path", "code"), [("missing", "CA5007"), ("../out", "CA5001"), ("src", "CA5007")]
)
def test_read_of_what_is_no_file_of_the_tree_is_refused(call, path, code):
    with pytest.raises(SandboxError) as caught:
        call("read_file", path=path)
    assert caught.value.code == code


def test_list_shows_a_folder(call):
    names = call("list_files").splitlines()
    assert "src/" in names
    assert "latin.txt" in names
    assert call("list_files", folder="src/") == "app.py\ntwin.py"


def test_list_with_a_pattern_shows_all_files_that_match(call):
    assert call("list_files", pattern="*.py") == "src/app.py\nsrc/twin.py"
    assert call("list_files", folder="src", pattern="a*") == "src/app.py"
    assert call("list_files", folder="src", pattern="*.c") == "[nothing]"


def test_list_is_bounded_and_one_name_stays_one_line(world, service):
    with world.attempt() as attempt:
        folder = attempt.files.tree.folder / "many"
        folder.mkdir()
        for number in range(2_001):
            (folder / f"{number:04}\n").touch()
        listed = service.call(attempt, "list_files", {"folder": "many"})
        shutil.rmtree(folder)
    lines = listed.text.splitlines()
    assert lines[0] == "'0000\\n'"
    assert (len(lines), lines[-1][:16]) == (2_001, "[more than 2000:")


MADE = "--- /dev/null\n+++ b/other.py\n@@ -0,0 +1 @@\n+x\n"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write_file", {"path": "src/app.py", "text": ""}),
        ("edit_file", {"path": "src/app.py", "old": "def main", "new": "def other"}),
        ("apply_patch", {"patch": MADE}),
    ],
)
def test_tools_refuse_at_once_what_the_node_must_not_change(world, service, tool, arguments):
    """Told at the end of the attempt, a model could not take it back: its work is done again."""
    node = Node(name="n", actor=CommandActor("true"), writes=("docs/**",))
    with world.attempt(node) as attempt:
        before = list(attempt.files.walk()), attempt.files.read("src/app.py")
        with pytest.raises(SandboxError, match="the node may change `docs/\\*\\*`") as caught:
            service.call(attempt, tool, arguments)
        assert caught.value.code == "CA5202"
        assert (list(attempt.files.walk()), attempt.files.read("src/app.py")) == before
        service.call(attempt, "write_file", {"path": "docs/a.md", "text": "a"})


def test_writes_carry_the_id_of_their_call(world, service):
    with world.attempt() as attempt:
        answers = [
            service.call(attempt, "write_file", {"path": "new.txt", "text": "caf\u00e9"}),
            service.call(attempt, "edit_file", {"path": "new.txt", "old": "f", "new": "F"}),
        ]
    assert [answer.text for answer in answers] == [
        "Wrote 5 bytes to `new.txt`",
        "Edited `new.txt`: 5 bytes became 5",
    ]
    assert [entry.tool_call for entry in world.entries()] == [one.call_id for one in answers]


def test_edit_keeps_all_bytes_around_it(call, world):
    call("edit_file", path="latin.txt", old="plain", new="better")
    assert world.entries()[-1].after.data == b"caf\xe9\nbetter\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_edit_takes_the_line_ends_of_the_file(call, world, end):
    call("edit_file", path="windows.txt", old=f"one{end}two", new=f"1{end}2")
    assert world.entries()[-1].after.data == b"1\r\n2\r\nthree\r\n"


def test_edit_everywhere_replaces_all(call, world):
    call("edit_file", path="src/twin.py", old="x", new="z", everywhere=True)
    assert world.entries()[-1].after.data == b"z = 1\ny = 1\nz = 1\n"


@pytest.mark.parametrize(
    ("path", "old", "new", "says"),
    [
        ("src/app.py", "def mian():", "x", "is close to line 4: def main():"),
        ("src/app.py", "zzzzzzzzzz", "x", "must stand in 'src/app.py', and it does not"),
        ("src/twin.py", "x = 1", "x", "once, got 2 times, at lines 1, 3"),
        ("src/twin.py", "x", "x", "must differ from the text that replaces it"),
    ],
    ids=["close", "far", "twice", "same"],
)
def test_edit_that_does_not_fit_says_what_would(call, path, old, new, says):
    with pytest.raises(RequestError) as caught:
        call("edit_file", path=path, old=old, new=new)
    assert caught.value.code == "CA5207"
    assert says in caught.value.message


def test_edit_of_a_text_that_stands_often_names_the_first_lines(call):
    call("write_file", path="many.txt", text="a\n" * 12)
    with pytest.raises(RequestError, match="12 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"):
        call("edit_file", path="many.txt", old="a", new="b")


# -- search --------------------------------------------------------------------------------


@pytest.fixture(params=[True, False], ids=["ripgrep", "python"])
def search(request, world):
    service = ToolService(ToolRegistry((search_text(ripgrep=request.param),)), MemoryToolJournal())
    with world.attempt() as attempt:
        attempt.files.write("src/deep/long.txt", b"match " + b"y" * 1_000 + b"\n")
        attempt.files.write("-dash/.hidden", b"MATCH\r\n")
        yield lambda **arguments: service.call(attempt, "search_text", arguments).text


def test_search_shows_path_number_and_line(search):
    assert search(pattern="^x = \\d") == "src/twin.py:1:x = 1\nsrc/twin.py:3:x = 1"


def test_search_in_a_folder_and_by_names(search):
    assert search(pattern="return", folder="src/", files="a*.py") == "src/app.py:5:    return 1"
    assert search(pattern="return", folder="src", files="*.c") == "[no match]"
    assert search(pattern="nowhere to be found") == "[no match]"


def test_search_may_take_capitals_for_small_letters(search):
    shown = search(pattern="match", ignore_case=True).splitlines()
    assert shown[0] == "-dash/.hidden:1:MATCH"
    assert shown[1].endswith("y… [line cut]")
    assert len(shown) == 2


def test_search_shows_no_binary_files(search):
    assert search(pattern="PNG") == "[no match]"


def test_search_refuses_a_pattern_that_is_none(search):
    with pytest.raises(RequestError) as caught:
        search(pattern="(")
    assert caught.value.code == "CA5203"


@pytest.mark.parametrize("folder", ["../out", "/etc"])
def test_search_stays_in_the_tree(search, folder):
    with pytest.raises(SandboxError) as caught:
        search(pattern="root", folder=folder)
    assert caught.value.code == "CA5001"


def test_search_with_many_matches_says_so(call):
    call("write_file", path="many.txt", text="needle\n" * 600)
    shown = call("search_text", pattern="needle").splitlines()
    assert len(shown) == 501
    assert shown[-1].startswith("[more than 500 matches")


def test_search_that_floods_shows_what_came(call):
    call("run_command", command=f"yes 'needle {'x' * 900}' | head -12000 > flood.txt")
    shown = call("search_text", pattern="needle").splitlines()
    assert shown[0].startswith("flood.txt:1:needle")
    assert shown[-1].startswith("[more than 500 matches")


def test_search_in_a_folder_that_is_not_there_finds_nothing(search):
    try:
        assert search(pattern="x", folder="no/such") == "[no match]"
    except RequestError as error:
        assert "No such file" in error.message  # noqa: PT017  # ripgrep says it, Python does not


def test_search_with_more_output_than_is_kept_says_so(call):
    call("write_file", path="many.txt", text=f"needle {'x' * 900}\n" * 1_500)
    call("write_file", path="more.txt", text=f"needle {'x' * 900}\n" * 1_500)
    shown = call("search_text", pattern="needle", files="*.c")
    assert shown == "[some matches are left out: make the pattern narrower]"


# -- commands ------------------------------------------------------------------------------


def test_command_shows_code_and_output(call):
    shown = call("run_command", command="echo out; echo token=hunter2hunter2 >&2; exit 3")
    assert shown == (
        "[exit code 3]\n[standard output]\nout\n\n[standard error]\ntoken=[redacted]\n"
    )


def test_command_that_prints_much_shows_both_ends(call):
    shown = call("run_command", command="seq 100000")
    assert shown.startswith("[exit code 0]\n[standard output]\n1\n2\n")
    assert shown.endswith("99999\n100000\n")
    assert 25_000 < len(shown) < 26_000


def test_command_runs_where_its_node_says(world, service):
    it = Node(name="n", actor=CommandActor(("true",)), folder="src", env={"KEY": "value"})
    with world.attempt(it) as attempt:
        shown = service.call(attempt, "run_command", {"command": 'ls; echo "$KEY"'}).text
    assert shown == "[exit code 0]\n[standard output]\napp.py\ntwin.py\nvalue\n"


def test_command_out_of_time_is_a_timeout(call):
    with pytest.raises(SandboxError) as caught:
        call("run_command", command="sleep 30", timeout_s=1)
    assert caught.value.code == "CA5005"
    assert caught.value.facts["category"] is ErrorCategory.TOOL_TIMEOUT


def test_stop_of_the_attempt_ends_the_command(world, service):
    stop = StopSignal()

    class Stopping:
        """Stops the attempt as soon as its command is about to run."""

        def __init__(self, bench):
            self.bench = bench

        def run(self, command, **options):
            stop.stop("enough")
            return self.bench.run(command, **options)

    with world.attempt(stop=stop) as attempt:
        stopping = replace(attempt, bench=Stopping(attempt.bench))
        with pytest.raises(Stopped, match="enough"):
            service.call(stopping, "run_command", {"command": "sleep 30"})
