from __future__ import annotations

import shutil
import subprocess

import pytest

from cleveragents.cli.completion import SHELLS, grammar


@pytest.fixture
def script(terminal):
    return terminal.run("completion", "bash").out


def completed(script: str, line: str) -> list[str]:
    """Have bash complete the last word of a line, as readline would ask for it."""
    words = [word for part in line.split(" ") for word in split_at_equals(part)]
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        f"{script}\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(words) - 1}\n"
        '_cleveragents\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "--norc", "-uc", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def split_at_equals(word: str) -> list[str]:
    name, equals, value = word.partition("=")
    return [name, equals, *([value] if value else [])] if equals else [word]


class TestBash:
    @pytest.mark.parametrize(
        ("line", "offered"),
        [
            ("cleveragents und", ["undo"]),
            ("cleveragents --v", ["--version"]),
            ("cleveragents changes re", ["revert", "resolve"]),
            ("cleveragents changes revert --t", ["--take"]),
            ("cleveragents changes revert --take m", ["mine"]),
            ("cleveragents changes revert --take=m", ["mine"]),
            ("cleveragents changes revert --take=", ["mine", "plan"]),
            ("cleveragents completion f", ["fish"]),
            ("cleveragents init --template a", ["agents"]),
            ("cleveragents audit verify --j", ["--json"]),
            ("cleveragents costs --by ", [""]),
            ("cleveragents nonsense --j", [""]),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_word_is_completed_by_what_the_grammar_allows(self, script, line, offered):
        assert completed(script, line) == offered

    def test_every_command_offers_its_own_options(self, script):
        for command in grammar():
            flags = sorted(flag for option in command.options for flag in option.flags)
            line = " ".join(["cleveragents", *command.words, "-"])
            assert sorted(completed(script, line)) == flags

    def test_files_are_offered_where_a_file_is_asked_for(self, script, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "an app.txt").touch()
        assert completed(script, "cleveragents blame an") == ["an app.txt"]
        assert completed(script, "cleveragents changes resolve k-1 --with an") == ["an app.txt"]
        assert completed(script, "cleveragents undo an") == [""]

    def test_both_names_of_the_program_are_registered(self, script):
        done = subprocess.run(
            ["bash", "--norc", "-uc", f"{script}\ncomplete -p cleveragents clever"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines() == [
            "complete -o filenames -F _cleveragents cleveragents",
            "complete -o filenames -F _cleveragents clever",
        ]


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_shell_itself_can_read_the_script(terminal, shell, tmp_path):
    answer = terminal.run("completion", shell)
    assert (answer.code, answer.err) == (0, "")
    assert shell in answer.out.splitlines()[0]
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(answer.out)
    done = subprocess.run([program, "-n", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_fish_is_told_every_command_with_what_it_is_for(terminal):
    lines = terminal.run("completion", "fish").out.splitlines()
    take = "-l take -x -a 'mine plan' -d 'whose version, where a place was edited since'"
    assert f"complete -c cleveragents -n \"__cleveragents_at 'undo'\" {take}" in lines
    assert "complete -c clever -n \"__cleveragents_at 'blame'\" -F" in lines
    assert "complete -c cleveragents -n \"__cleveragents_at 'completion'\" -a zsh" in lines
    undo = [one for one in lines if " -a undo -d " in one]
    assert undo[0].endswith("-d 'take back what was applied last, or one actor\\'s part'")
    assert any(" -l with -r -F " in one for one in lines)


def test_zsh_runs_the_script_of_bash_without_its_own_special_names(terminal):
    bash, zsh = (terminal.run("completion", shell).out for shell in ("bash", "zsh"))
    assert zsh.endswith(bash.split("\n", 1)[1])
    assert "bashcompinit" in zsh
    assert " path=" not in bash
    assert " words=" not in bash


def test_record_holds_the_script(terminal):
    (record,) = terminal.run("completion", "bash", "--json").records
    assert record["script"] + "\n" == terminal.run("completion", "bash").out
