"""What a reader of a plan's changes must not overlook: links that lead out, files left out."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cleveragents.cli import output
from cleveragents.cli.table import one_line
from cleveragents.infrastructure.changes.outward_links import outward_links
from cleveragents.infrastructure.stored_text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cleveragents.infrastructure.changes.merge_rows import LeftOut
    from cleveragents.infrastructure.changes.outward_links import OutwardLink
    from cleveragents.infrastructure.git.repository import TreeChange
    from cleveragents.workspace import PlanChanges

_SHOWN_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Cautions:
    """Of one plan: its links that lead out of the tree, and what its changesets left out."""

    plan_id: str
    links: tuple[OutwardLink, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @classmethod
    def of(cls, changes: PlanChanges, plan_id: str) -> Cautions:
        """Look at all that a plan did."""
        tree = changes.trees.tree_of(plan_id)
        made = changes.repository.changes(tree.base, tree.head)
        return cls.of_changes(changes, plan_id, tree.head, made)

    @classmethod
    def of_changes(
        cls, changes: PlanChanges, plan_id: str, commit: str, made: Iterable[TreeChange]
    ) -> Cautions:
        """Look at a part of what a plan did, as it is in a commit."""
        links = outward_links(changes.repository, commit, made)
        return cls(plan_id, links, changes.trees.left_out_of(plan_id))

    def tell(self) -> None:
        """Tell them to a person; nothing when there are none."""
        plan = f"plan `{one_line(self.plan_id)}`"
        what = "link leads" if len(self.links) == 1 else "links lead"
        self._list(
            f"warning[CA4110]: {len(self.links)} {what} out of the tree, in {plan}",
            [(one.path, f"leads to {one.target}") for one in self.links],
        )
        what = "path was" if len(self.left_out) == 1 else "paths were"
        self._list(
            f"warning[CA4111]: {len(self.left_out)} {what} left out of {plan}",
            [(one.path, one.reason) for one in self.left_out],
        )

    def records(self) -> list[dict[str, Any]]:
        """Return them as `--json` shows them."""
        links = [
            {"kind": "outward_link", "path": plain(one.path), "target": plain(one.target)}
            for one in self.links
        ]
        left_out = [
            {
                "kind": "left_out",
                "changeset": one.changeset_id,
                "path": one.path,
                "reason": one.reason,
            }
            for one in self.left_out
        ]
        return [{**one, "plan": self.plan_id} for one in (*links, *left_out)]

    def _list(self, head: str, rows: Sequence[tuple[str, str]]) -> None:
        if not rows:
            return
        output.talk(head)
        shown = [(one_line(plain(path)), one_line(plain(why))) for path, why in rows[:_SHOWN_MAX]]
        output.talk(output.facts(shown))
        if len(rows) > _SHOWN_MAX:
            all_of_them = shlex.join(["cleveragents", "changes", "show", self.plan_id, "--json"])
            output.talk(f"  and {len(rows) - _SHOWN_MAX} more: `{all_of_them}` tells all")
