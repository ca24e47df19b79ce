"""What a model is told at the beginning: standing orders, the task, and what is known about it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from cleveragents.actors.json_value import as_json
from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.errors import SetupError
from cleveragents.domain.plan_options import Capture

if TYPE_CHECKING:
    from pathlib import Path

    from cleveragents.application.attempts import AttemptContext
    from cleveragents.domain.plan_actors import LlmActor as LlmValue

#: Where a tree keeps its own prompts, each in place of ours of the same name.
OWN_PROMPTS: Final = ".cleveragents/prompts"
_TOKENS_OF_CONTEXT: Final = 8_000
_SHAPES: Final = {
    Capture.LINES: "Your last answer must be a list: one item on each line, and nothing else.",
    Capture.JSON: "Your last answer must be one JSON value, and nothing else.",
}


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompt files of the package, or those of a tree where it has its own."""

    root: Path | None = None

    def text(self, name: str) -> str:
        """Return a prompt without its first line, which tells its version."""
        own = None if self.root is None else self.root / OWN_PROMPTS / f"{name}.md"
        try:
            if own is not None and own.is_file():
                return without_version(own.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(
                f"The prompt `{OWN_PROMPTS}/{name}.md` cannot be read: {error}",
                hint="Let it be a text in UTF-8, or take it away to use the usual one",
            ) from None
        ours = files("cleveragents.actors.llm") / "prompts" / f"{name}.md"
        return without_version(ours.read_text(encoding="utf-8"))


def without_version(text: str) -> str:
    """Return what a prompt file says to the model."""
    first, _, rest = text.partition("\n")
    return (rest if first.startswith("<!--") else text).strip()


def system_text(prompts: Prompts, value: LlmValue) -> str:
    """Return the standing orders: ours, those about tools, and those of the node."""
    parts = (prompts.text("system"), prompts.text("tools"), value.system or "")
    return "\n\n".join(part for part in parts if part)


def task_text(attempt: AttemptContext, value: LlmValue) -> str:
    """Return what the node asks for: the goal behind it, its prompt, and its inputs."""
    sections = [("The goal of the whole plan", attempt.goal), ("Your task", value.prompt)]
    if attempt.inputs:
        told = "\n".join(f"- {name}: {_shown(one)}" for name, one in attempt.inputs.items())
        sections.append(("Inputs", told))
    if attempt.node.writes is not None:
        allowed = "\n".join(f"- {one}" for one in attempt.node.writes) or "- nothing"
        sections.append(("Paths that you may change", allowed))
    shape = shape_text(attempt.node.outputs)
    if shape:
        sections.append(("The form of your answer", shape))
    return _headed(sections)


def shape_text(wanted: Capture | tuple[str, ...]) -> str:
    """Say what the node promises about its output."""
    if isinstance(wanted, Capture):
        return _SHAPES.get(wanted, "")
    keys = ", ".join(f"`{key}`" for key in wanted)
    return f"Your last answer must be one JSON object with the keys {keys}, and nothing else."


def feedback_text(feedback: tuple[str, ...]) -> str:
    """Tell what became of the attempts so far; nothing where there was none."""
    if not feedback:
        return ""
    told = "\n".join(f"- {one}" for one in feedback)
    return _headed([("What happened to the attempts before, the newest last", told)])


def context_of(attempt: AttemptContext, root: Path | None) -> str:
    """Return what the pipeline finds for the task, if the plan wants it and there is one."""
    wish = attempt.node.context
    if wish is None or attempt.find_context is None or root is None:
        return ""
    request = ContextRequest(
        wish.task or attempt.goal, root, wish.files, wish.tokens_max or _TOKENS_OF_CONTEXT
    )
    found = rendered_context(attempt.find_context(request))
    return _headed([("What was found in the tree", found)]) if found else ""


def rendered_context(found: Any) -> str:
    """Return what a pipeline found as text."""
    render = getattr(found, "render", None)
    return str(render() if callable(render) else found).strip()


def digest_of(system: str, task: str) -> str:
    """Return the mark of what a conversation is about."""
    return hashlib.sha256(f"{system}\0{task}".encode(errors="backslashreplace")).hexdigest()


def _headed(sections: list[tuple[str, str]]) -> str:
    return "\n\n".join(f"# {title}\n\n{text}" for title, text in sections)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else as_json(value)
