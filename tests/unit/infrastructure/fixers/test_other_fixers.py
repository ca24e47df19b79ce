from __future__ import annotations


def test_each_language_is_told_by_its_file(repository):
    for name in ("Cargo.toml", "go.mod", ".rubocop.yml", ".clang-format", "main.tf"):
        repository.write(name)
    assert {fixer.name: fixer.why for fixer in repository.fixers} == {
        "rustfmt": "Cargo.toml",
        "gofmt": "go.mod",
        "rubocop": ".rubocop.yml",
        "clippy": "Cargo.toml",
        "clang-format": ".clang-format",
        "terraform": "main.tf",
    }


def test_what_may_change_meaning_runs_only_on_request(repository):
    repository.write("Cargo.toml")
    assert [fixer.name for fixer in repository.fixers if fixer.on_request] == ["clippy"]


def test_a_formatter_that_finds_no_files_by_itself_is_given_them(repository):
    repository.write(".clang-format")
    (fixer,) = repository.fixers
    assert fixer.files.takes("src/a.cpp")
    assert not fixer.files.takes("a.py")


def test_modules_are_tested_by_their_own_program(repository):
    repository.write("go.mod")
    assert repository.check.argv == ("go", "test", "./...")
    repository.write("Cargo.toml")
    assert repository.check.argv == ("cargo", "test", "--offline")
