"""Fixers of Python, from `pyproject.toml` and the files that came before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cleveragents.infrastructure.fixers.configuration import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cleveragents.infrastructure.fixers.configuration import Configuration
    from cleveragents.infrastructure.fixers.fixer import Fixer, FoundCheck, Programs

_PYPROJECT: Final = "pyproject.toml"
#: What configures ruff's linter where it stood before it had a table of its own.
_OLD_LINT_KEYS: Final = ("select", "extend-select", "ignore", "extend-ignore", "fixable")

_RUFF_CHECK: Final = ("ruff", "check", "--fix", "--exit-zero", "--no-cache", ".")
_RUFF_FORMAT: Final = ("ruff", "format", "--no-cache", ".")

#: In the order in which a person runs them: what rewrites code before what lays it out.
#: Name, command, exit codes, and where it is configured besides `[tool.NAME]`.
_TOOLS: Final[tuple[tuple[str, str, tuple[int, ...], tuple[tuple[str, str], ...]], ...]] = (
    ("codespell", "codespell --write-changes", (0, 64, 65), (("setup.cfg", "codespell"),)),
    ("autoflake", "autoflake --in-place --recursive .", (0,), (("setup.cfg", "autoflake"),)),
    (
        "isort",
        "isort --quiet .",
        (0,),
        (
            (".isort.cfg", "settings"),
            ("setup.cfg", "isort"),
            ("setup.cfg", "tool:isort"),
            ("tox.ini", "isort"),
        ),
    ),
    (
        "docformatter",
        "docformatter --in-place --recursive .",
        (0, 3),
        (("setup.cfg", "docformatter"), ("tox.ini", "docformatter")),
    ),
    (
        "autopep8",
        "autopep8 --in-place --recursive .",
        (0,),
        (("setup.cfg", "autopep8"), ("tox.ini", "autopep8"), (".flake8", "autopep8")),
    ),
    (
        "yapf",
        "yapf --in-place --recursive .",
        (0,),
        ((".style.yapf", "style"), ("setup.cfg", "yapf")),
    ),
    ("black", "black --quiet .", (0,), ()),
    ("djlint", "djlint --reformat --quiet .", (0, 1), ()),
    ("mdformat", "mdformat .", (0,), ()),
)


def python_fixers(files: Configuration, programs: Programs) -> Iterator[Fixer]:
    """Yield what tidies the Python of a tree, and texts by tools of Python."""
    linter = _ruff(files, "lint")
    if linter:
        yield programs.fixer("ruff", _RUFF_CHECK, linter)
    for name, command, codes, places in _TOOLS:
        why = _configured(files, name, places)
        if why:
            yield programs.fixer(name, tuple(command.split()), why, codes=codes)
    formatter = _ruff(files, "format")
    if formatter:
        yield programs.fixer("ruff-format", _RUFF_FORMAT, formatter)
    if files.has(".mdformat.toml") and table(files.toml(_PYPROJECT), "tool", "mdformat") is None:
        yield programs.fixer("mdformat", ("mdformat", "."), ".mdformat.toml")


def python_check(files: Configuration, programs: Programs) -> FoundCheck | None:
    """Return how the tests of a tree of Python run, if it is configured for `pytest`."""
    places = (
        ("pytest.ini", "pytest"),
        (".pytest.ini", "pytest"),
        ("tox.ini", "pytest"),
        ("setup.cfg", "tool:pytest"),
    )
    why = _configured(files, "pytest", places) or files.first("conftest.py", "tests/conftest.py")
    # What it caches would be a change of the tree where nobody ignores it.
    return programs.check(("pytest", "-q", "-p", "no:cacheprovider"), why) if why else None


def _configured(files: Configuration, name: str, places: tuple[tuple[str, str], ...]) -> str | None:
    if table(files.toml(_PYPROJECT), "tool", name) is not None:
        return f"{_PYPROJECT} [tool.{name}]"
    return next((f"{file} [{part}]" for file, part in places if part in files.sections(file)), None)


def _ruff(files: Configuration, part: str) -> str | None:
    """Say where ruff is configured to lint, or to format: a formatter nobody chose is not run."""
    own = files.first("ruff.toml", ".ruff.toml")
    where = own or f"{_PYPROJECT} [tool.ruff"
    settings = files.toml(own) if own else table(files.toml(_PYPROJECT), "tool", "ruff")
    if not isinstance(settings, dict):
        return None
    if part in settings:
        return f"{own} [{part}]" if own else f"{where}.{part}]"
    if part == "format" or not _lints(settings):
        return None
    return own or f"{where}]"


def _lints(settings: dict[str, Any]) -> bool:
    return "format" not in settings or any(key in settings for key in _OLD_LINT_KEYS)
