"""Fixers of JavaScript and its kin, from `package.json` and the files of each tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cleveragents.infrastructure.fixers.configuration import table
from cleveragents.infrastructure.fixers.fixer import Fixer, FoundCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cleveragents.infrastructure.fixers.configuration import Configuration
    from cleveragents.infrastructure.fixers.fixer import Programs

_PACKAGE: Final = "package.json"
#: Names that people give to scripts which change files.
_SCRIPTS: Final = (
    "fix",
    "lint:fix",
    "lint-fix",
    "lintfix",
    "eslint:fix",
    "format",
    "format:fix",
    "format:write",
    "prettier:fix",
    "prettier:write",
    "fmt",
)
#: What a script of such a name says when it only looks.
_ONLY_LOOKS: Final = ("--check", "--list-different", "--dry-run", "prettier -c", "prettier -l")
_LOCKS: Final = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
}

#: Name, package, command, exit codes that are no failure, files that configure it, and the key
#: of `package.json` that does.
_TOOLS: Final = (
    (
        ("eslint", "eslint", "eslint --fix .", (0, 1)),
        (
            *("eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts"),
            *(".eslintrc", ".eslintrc.js", ".eslintrc.cjs", ".eslintrc.json", ".eslintrc.yml"),
            ".eslintrc.yaml",
        ),
        "eslintConfig",
    ),
    (("standard", "standard", "standard --fix", (0, 1)), (), "standard"),
    (
        ("stylelint", "stylelint", "stylelint --fix --allow-empty-input **/*.{css,scss}", (0, 2)),
        (
            *(".stylelintrc", ".stylelintrc.json", ".stylelintrc.yml", ".stylelintrc.js"),
            *("stylelint.config.js", "stylelint.config.mjs", "stylelint.config.cjs"),
        ),
        "stylelint",
    ),
    (
        ("biome", "@biomejs/biome", "biome check --write .", (0, 1)),
        ("biome.json", "biome.jsonc"),
        "",
    ),
    (
        ("prettier", "prettier", "prettier --write --ignore-unknown .", (0,)),
        (
            *(".prettierrc", ".prettierrc.json", ".prettierrc.yml", ".prettierrc.yaml"),
            *(".prettierrc.js", ".prettierrc.cjs", ".prettierrc.mjs", ".prettierrc.toml"),
            *("prettier.config.js", "prettier.config.cjs", "prettier.config.mjs"),
        ),
        "prettier",
    ),
)


def node_fixers(files: Configuration, programs: Programs) -> Iterator[Fixer]:
    """Yield the scripts of a package that fix, and the tools that no such script runs."""
    scripts = list(_fixing_scripts(files))
    for name, _ in scripts:
        yield _script(files, programs, name)
    for (name, package, command, codes), marks, key in _TOOLS:
        if any(package.rpartition("/")[2] in text for _, text in scripts):
            continue
        why = _configured(files, package, marks, key)
        if why:
            yield programs.fixer(name, tuple(command.split()), why, codes=codes)


def node_check(files: Configuration, programs: Programs) -> FoundCheck | None:
    """Return how the tests of a package run, unless its script is the one that `npm init` wrote."""
    text = table(files.json(_PACKAGE), "scripts", "test")
    if not isinstance(text, str) or "no test specified" in text:
        return None
    found = programs.check((_runner(files), "test"), f"{_PACKAGE} scripts.test")
    why_not = found.why_not or _missing_packages(files)
    return FoundCheck(found.argv, found.why, why_not)


def _fixing_scripts(files: Configuration) -> Iterator[tuple[str, str]]:
    scripts: Any = table(files.json(_PACKAGE), "scripts")
    for name in _SCRIPTS:
        text = table(scripts, name)
        if isinstance(text, str) and not any(sign in text for sign in _ONLY_LOOKS):
            yield name, text


def _script(files: Configuration, programs: Programs, name: str) -> Fixer:
    why = f"{_PACKAGE} scripts.{name}"
    found = programs.fixer(name.replace(":", "-"), (_runner(files), "run", name), why)
    return Fixer(found.name, found.argv, why, found.why_not or _missing_packages(files))


def _runner(files: Configuration) -> str:
    lock = files.first(*_LOCKS)
    return _LOCKS[lock] if lock else "npm"


def _missing_packages(files: Configuration) -> str | None:
    package = files.json(_PACKAGE)
    needs = any(table(package, key) for key in ("dependencies", "devDependencies"))
    if not needs or (files.root / "node_modules").is_dir():
        return None
    return f"`node_modules` is not there: run `{_runner(files)} install`"


def _configured(files: Configuration, package: str, marks: tuple[str, ...], key: str) -> str | None:
    mark = files.first(*marks)
    if mark:
        return mark
    content = files.json(_PACKAGE)
    if key and table(content, key) is not None:
        return f"{_PACKAGE} {key}"
    for part in ("devDependencies", "dependencies"):
        if table(content, part, package) is not None:
            return f"{_PACKAGE} {part}.{package}"
    return None
