"""Long texts for models, which pay for every character: the beginning and the end."""

from __future__ import annotations


def without_middle(text: str, chars_max: int) -> str:
    """Return a text whole, or its two halves with a line between them that says what is missing."""
    if len(text) <= chars_max:
        return text
    half = chars_max // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
