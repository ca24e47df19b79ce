"""Which language a file is written in, by its name."""

from __future__ import annotations

from typing import Final

__all__ = ["language_of"]

_BY_SUFFIX: Final = {
    suffix: language
    for language, suffixes in {
        "c": "c h",
        "cpp": "cc cpp cxx hh hpp hxx inl",
        "csharp": "cs",
        "css": "css less scss",
        "go": "go",
        "html": "htm html jinja jinja2 svelte vue",
        "java": "java",
        "javascript": "cjs js jsx mjs",
        "json": "json jsonc jsonl",
        "kotlin": "kt kts",
        "markdown": "markdown md mdx",
        "php": "php",
        "python": "py pyi",
        "restructuredtext": "rst",
        "ruby": "gemspec rake rb",
        "rust": "rs",
        "shell": "bash sh zsh",
        "sql": "sql",
        "swift": "swift",
        "toml": "toml",
        "tsx": "tsx",
        "typescript": "cts mts ts",
        "yaml": "yaml yml",
    }.items()
    for suffix in suffixes.split()
}


def language_of(path: str) -> str:
    """Return the name of the language, or `text`."""
    _, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return _BY_SUFFIX.get(suffix.lower(), "text") if dot else "text"
