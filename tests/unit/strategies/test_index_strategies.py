from __future__ import annotations

from pathlib import Path

import pytest

from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.strategies.history import History
from cleveragents.strategies.lexical import Lexical
from cleveragents.strategies.names import Names
from cleveragents.strategies.references import References, identifiers_of
from viewkit import FakeIndex, FakeView

PARSER = "import sys\n\n\n\n\ndef parse_header(line):\n    return line\n\n\n"
TREE = {
    "src/parser.py": PARSER,
    "src/server.py": "def serve():\n    parse_header('x')\n    # sockets and header lines",
    "tests/test_parser.py": "def test_parse_header():\n    parse_header('header')",
    "README.md": "The header of the parser",
}


def found(strategy, task, tree=TREE, **more):
    request = ContextRequest(task, Path("tree"))
    return list(strategy(FakeIndex(FakeView(tree, **more))).find(request, StopSignal()))


def paths(fragments):
    return list(dict.fromkeys(one.path for one in fragments))


@pytest.mark.parametrize("strategy", [Lexical, Names, References, History])
class TestEveryStrategy:
    def test_nothing_like_the_task_is_nothing(self, strategy):
        assert found(strategy, "`zebra_crossing`") == []

    def test_an_empty_tree_is_nothing(self, strategy):
        assert found(strategy, "Fix `parse_header`", {}) == []

    def test_a_stopped_request_ends(self, strategy):
        stop = StopSignal()
        search = strategy(FakeIndex(FakeView(TREE))).find(
            ContextRequest("Fix `parse_header`", Path("tree")), stop
        )
        stop.stop()

        with pytest.raises(Stopped):
            list(search)

    def test_a_file_that_changed_meanwhile_is_left_out(self, strategy):
        class Gone(FakeView):
            def text(self, path):
                return None if path == "src/parser.py" else super().text(path)

        view = Gone(TREE, commits=[("parse_header", ["src/parser.py", "src/server.py"])])
        request = ContextRequest("Fix `parse_header` of the server", Path("tree"))

        fragments = list(strategy(FakeIndex(view)).find(request, StopSignal()))

        assert "src/parser.py" not in paths(fragments)
        assert "src/server.py" in paths(fragments)

    def test_the_lines_are_those_of_the_file(self, strategy):
        commits = [("parse_header", list(TREE))]

        for one in found(strategy, "Fix `parse_header`", commits=commits):
            lines = TREE[one.path].split("\n")
            assert one.lines == lines[one.start_line - 1 : one.end_line]
            assert one.source == strategy.name


class TestLexical:
    def test_the_chunk_that_holds_the_words_is_found(self):
        (one,) = found(Lexical, "parse the header", {"src/parser.py": PARSER})

        assert (one.start_line, one.end_line, one.reason) == (6, 10, "is like the task")

    def test_code_comes_before_tests_and_texts_with_more_of_the_words(self):
        tree = {"a.py": "header", "tests/b.py": "header header", "c.md": "header header"}

        assert paths(found(Lexical, "header", tree))[0] == "a.py"

    def test_the_first_line_of_the_task_counts_more(self):
        tree = {"a.py": "socket", "b.py": "window"}

        assert paths(found(Lexical, "window\n\nsocket", tree)) == ["b.py", "a.py"]

    def test_a_file_gives_only_its_best_chunks(self):
        tree = {"long.py": "\n".join(["header"] * 100)}

        assert len(found(Lexical, "header", tree)) == 5


class TestNames:
    def test_the_definition_with_the_words_in_its_name_is_found(self):
        best = found(Names, "The header is wrong")[0]

        assert (best.path, best.start_line) == ("src/parser.py", 6)
        assert best.reason == "defines `parse_header`"

    def test_a_path_with_the_words_shows_how_the_file_begins(self):
        tree = {"src/socket.py": "x = 1\ny = 2"}

        (one,) = found(Names, "Close the socket", {**tree, "src/other.py": "x"})

        assert (one.path, one.start_line) == ("src/socket.py", 1)
        assert one.reason == "its path holds words of the task"

    def test_a_second_definition_scores_less(self):
        tree = {"a.py": "def read_header():\n    pass\ndef write_header():\n    pass"}

        first, second = found(Names, "header", tree)

        assert first.score > second.score


class TestReferences:
    def test_definitions_and_users_are_found_with_their_reasons(self):
        fragments = found(References, "`parse_header` fails")

        assert {one.path: one.reason for one in fragments} == {
            "src/parser.py": "defines `parse_header`",
            "src/server.py": "uses `parse_header`",
            "tests/test_parser.py": "uses `parse_header`",
        }
        assert fragments[0].path == "src/parser.py"

    def test_a_name_that_everybody_uses_gives_only_its_definition(self):
        tree = {f"use{n:03}.py": "run_it()" for n in range(201)}

        assert paths(found(References, "`run_it`", {**tree, "a.py": "def run_it(): x"})) == ["a.py"]

    @pytest.mark.parametrize(
        ("task", "names"),
        [
            ("Fix `Parser`", ["Parser"]),
            ("snake_case and camelCase and PascalCase", ["snake_case", "camelCase", "PascalCase"]),
            ("call() it, os.path.join", ["call", "path", "join"]),
            ("Plain words. And HTTP", []),
            ("a_b a_b", ["a_b"]),
        ],
    )
    def test_identifiers_are_what_looks_like_code(self, task, names):
        assert identifiers_of(task) == names


class TestHistory:
    def test_commits_like_the_task_vote_for_what_they_changed(self):
        commits = [("tidy", ["src/server.py"]), ("fix header", ["src/parser.py", "gone.py"])]

        fragments = found(History, "header", commits=commits)

        assert fragments[0].path == "src/parser.py"
        assert fragments[0].reason == "changed by 0000000000: fix header"
        assert "gone.py" not in paths(fragments)

    def test_what_changes_together_is_found_without_a_word_in_common(self):
        commits = [("fix header", ["src/parser.py"])]
        commits += [("tidy", ["src/parser.py", "src/server.py"])] * 3

        fragments = found(History, "header", commits=commits)

        assert paths(fragments) == ["src/parser.py", "src/server.py"]
        assert fragments[1].reason == "changes together with files that fit"

    def test_a_commit_of_many_files_says_less_about_each(self):
        many = ["README.md", *(f"m{n}.py" for n in range(8)), "src/server.py"]
        commits = [("header", many), ("header", ["src/parser.py"])]

        assert paths(found(History, "header", commits=commits))[0] == "src/parser.py"

    def test_no_history_is_nothing(self):
        assert found(History, "header") == []

    def test_a_file_without_the_words_shows_how_it_begins(self):
        tree = {"a.py": "one\ntwo\nthree\nfour\nfive\nsix"}

        (one,) = found(History, "header", tree, commits=[("header", ["a.py"])])

        assert (one.start_line, one.end_line) == (1, 5)
