"""What an actor printed, as the output that its node promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cleveragents.actors.json_value import output_error, parsed_json
from cleveragents.domain.plan_options import Capture

if TYPE_CHECKING:
    from cleveragents.domain.errors import SandboxError


def captured(printed: bytes, wanted: Capture | tuple[str, ...], *, of: str) -> Any:
    """Return printed output as text, lines, JSON, or the named keys of a JSON object.

    As in shells, line ends at the very end do not count. Bytes that are not UTF-8 become `\ufffd`.
    What is not what the node promises is refused with CA5204.
    """
    text = printed.decode("utf-8", "replace").rstrip("\r\n")
    if wanted is Capture.TEXT:
        return text
    if wanted is Capture.LINES:
        return [line.removesuffix("\r") for line in text.split("\n")] if text else []
    try:
        value = parsed_json(text)
    except ValueError as error:
        raise output_error(
            f"The output of {of} must be one JSON value: {error}",
            of,
            hint="Print JSON alone to standard output, and all else to standard error",
        ) from None
    return value if isinstance(wanted, Capture) else _keys_of(value, wanted, of)


def _keys_of(value: Any, wanted: tuple[str, ...], of: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _keys_missing(of, wanted, f"got a `{type(value).__name__}`")
    missing = [key for key in wanted if key not in value]
    if missing:
        raise _keys_missing(of, wanted, f"missing {_listed(missing)}")
    return {key: value[key] for key in wanted}


def _keys_missing(of: str, wanted: tuple[str, ...], got: str) -> SandboxError:
    return output_error(
        f"The output of {of} must be a JSON object with {_listed(wanted)}, {got}",
        of,
        hint="Print an object with these keys, or change `outputs` of the node",
    )


def _listed(keys: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys)
