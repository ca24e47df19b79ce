"""Hooks of pre-commit that change files, as the programs that they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_PYTHON: Final = (".py", ".pyi")
C_SUFFIXES: Final = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".m", ".mm")
_SCRIPTS: Final = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue")
_WEB: Final = (
    *_SCRIPTS,
    *(".css", ".scss", ".less", ".html", ".json", ".md", ".mdx", ".yaml", ".yml", ".graphql"),
)


@dataclass(frozen=True, slots=True)
class KnownHook:
    """What a hook runs: its program with arguments, and on which files."""

    name: str
    command: tuple[str, ...]
    #: Without any, it takes every text file.
    suffixes: tuple[str, ...] = ()
    #: Exit codes that are no failure.
    codes: tuple[int, ...] = (0,)
    #: One that is given no files, because it finds them by itself.
    finds_files: bool = False


def _known(
    name: str, command: str, suffixes: tuple[str, ...] = (), codes: tuple[int, ...] = (0,)
) -> KnownHook:
    return KnownHook(name, tuple(command.split()), suffixes, codes)


_RUFF: Final = _known(
    "ruff",
    "ruff check --fix --exit-zero --no-cache --force-exclude",
    (*_PYTHON, ".ipynb"),
)
_BLACK: Final = _known("black", "black --quiet", _PYTHON)
_DJLINT: Final = _known("djlint", "djlint --reformat --quiet", (".html",), (0, 1))
_GOFMT: Final = _known("gofmt", "gofmt -w", (".go",))
_RUSTFMT: Final = KnownHook("rustfmt", ("cargo", "fmt"), finds_files=True)

#: By the id of the hook. Those of the `pre-commit-hooks` package end with 1 when they fixed a file.
KNOWN_HOOKS: Final[dict[str, KnownHook]] = {
    "ruff": _RUFF,
    "ruff-check": _RUFF,
    "ruff-format": _known(
        "ruff-format", "ruff format --no-cache --force-exclude", (*_PYTHON, ".ipynb")
    ),
    "black": _BLACK,
    "black-jupyter": _BLACK,
    "isort": _known("isort", "isort --quiet --filter-files", _PYTHON),
    "pyupgrade": _known("pyupgrade", "pyupgrade --exit-zero-even-if-changed", _PYTHON),
    "autoflake": _known("autoflake", "autoflake --in-place", _PYTHON),
    "docformatter": _known("docformatter", "docformatter --in-place", _PYTHON, (0, 3)),
    "autopep8": _known("autopep8", "autopep8 --in-place", _PYTHON),
    "yapf": _known("yapf", "yapf --in-place", _PYTHON),
    "add-trailing-comma": _known(
        "add-trailing-comma", "add-trailing-comma --exit-zero-even-if-changed", _PYTHON
    ),
    "reorder-python-imports": _known(
        "reorder-python-imports", "reorder-python-imports --exit-zero-even-if-changed", _PYTHON
    ),
    "django-upgrade": _known(
        "django-upgrade", "django-upgrade --exit-zero-even-if-changed", _PYTHON
    ),
    "blacken-docs": _known("blacken-docs", "blacken-docs", (".md", ".rst", ".py"), (0, 1)),
    "pyproject-fmt": _known("pyproject-fmt", "pyproject-fmt", ("pyproject.toml",), (0, 1)),
    "setup-cfg-fmt": _known("setup-cfg-fmt", "setup-cfg-fmt", ("setup.cfg",), (0, 1)),
    "tox-ini-fmt": _known("tox-ini-fmt", "tox-ini-fmt", ("tox.ini",), (0, 1)),
    "yamlfmt": _known("yamlfmt", "yamlfmt", (".yaml", ".yml")),
    "nbstripout": _known("nbstripout", "nbstripout", (".ipynb",)),
    "mdformat": _known("mdformat", "mdformat", (".md",)),
    "djlint-reformat": _DJLINT,
    "djlint-reformat-django": _DJLINT,
    "djlint-reformat-jinja": _DJLINT,
    "codespell": _known("codespell", "codespell --write-changes", (), (0, 64, 65)),
    "prettier": _known("prettier", "prettier --write --ignore-unknown", _WEB),
    "eslint": _known("eslint", "eslint --fix", _SCRIPTS, (0, 1)),
    "stylelint": _known("stylelint", "stylelint --fix", (".css", ".scss"), (0, 2)),
    "biome-check": _known("biome", "biome check --write --no-errors-on-unmatched", _WEB, (0, 1)),
    "biome-format": _known("biome", "biome format --write --no-errors-on-unmatched", _WEB),
    "clang-format": _known("clang-format", "clang-format -i", C_SUFFIXES),
    "shfmt": _known("shfmt", "shfmt -w", (".sh", ".bash")),
    "taplo-format": _known("taplo", "taplo format", (".toml",)),
    "rubocop": _known("rubocop", "rubocop --autocorrect", (".rb",), (0, 1)),
    "stylua": _known("stylua", "stylua", (".lua",)),
    "gofmt": _GOFMT,
    "go-fmt": _GOFMT,
    "fmt": _RUSTFMT,
    "rustfmt": _RUSTFMT,
    "terraform_fmt": _known("terraform", "terraform fmt", (".tf", ".tfvars")),
    "terraform-fmt": _known("terraform", "terraform fmt", (".tf", ".tfvars")),
    "trailing-whitespace": _known("trailing-whitespace", "trailing-whitespace-fixer", (), (0, 1)),
    "end-of-file-fixer": _known("end-of-file", "end-of-file-fixer", (), (0, 1)),
    "mixed-line-ending": _known("mixed-line-ending", "mixed-line-ending", (), (0, 1)),
    "fix-byte-order-marker": _known("byte-order-marker", "fix-byte-order-marker", (), (0, 1)),
    "double-quote-string-fixer": _known(
        "double-quote-string", "double-quote-string-fixer", _PYTHON, (0, 1)
    ),
    "requirements-txt-fixer": _known(
        "requirements-txt", "requirements-txt-fixer", ("requirements.txt",), (0, 1)
    ),
    "pretty-format-json": _known(
        "pretty-format-json", "pretty-format-json --autofix", (".json",), (0, 1)
    ),
}

#: Hooks that only look; by the beginning of their ids where a family of them has one.
CHECKS: Final = (
    *("check-", "detect-", "forbid-", "no-commit-to-branch", "name-tests-test", "debug-statements"),
    *("destroyed-symlinks", "python-", "rst-", "text-unicode", "validate-", "gitleaks", "bandit"),
    *("mypy", "pyright", "flake8", "pylint", "pydocstyle", "pycodestyle", "yamllint", "shellcheck"),
    *("actionlint", "hadolint", "commitizen", "conventional-pre-commit", "gitlint", "vulture"),
    *("interrogate", "djlint", "clippy", "cargo-check", "cargo-test", "go-vet", "zizmor", "typos"),
    *("markdownlint", "pip-audit", "uv-lock", "poetry-check", "sphinx-lint", "codespell-check"),
)

#: What identify calls the kinds of files, as the ends of their names.
TAGS: Final[dict[str, tuple[str, ...]]] = {
    "text": (),
    "file": (),
    "python": _PYTHON,
    "pyi": (".pyi",),
    "jupyter": (".ipynb",),
    "javascript": (".js", ".mjs", ".cjs"),
    "jsx": (".jsx",),
    "ts": (".ts", ".mts", ".cts"),
    "tsx": (".tsx",),
    "vue": (".vue",),
    "css": (".css",),
    "scss": (".scss",),
    "less": (".less",),
    "html": (".html", ".htm"),
    "json": (".json",),
    "yaml": (".yaml", ".yml"),
    "toml": (".toml",),
    "markdown": (".md",),
    "rst": (".rst",),
    "shell": (".sh", ".bash"),
    "c": (".c", ".h"),
    "c++": (".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx"),
    "go": (".go",),
    "rust": (".rs",),
    "ruby": (".rb",),
    "lua": (".lua",),
    "terraform": (".tf", ".tfvars"),
}
