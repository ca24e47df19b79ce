from __future__ import annotations

import pytest

from unit.infrastructure.changes.worlds import PLAN, file, world

LINK = 0o120000


@pytest.fixture
def here(terminal, tmp_path):
    """A plan that made a link out of the tree, and left a file out."""
    with world(tmp_path) as opened:
        trees, changesets = opened.changes.trees, opened.changes.changesets
        base = opened.begin()
        made = opened.changes.repository.commit(
            base, {"keys": file("../keys", LINK), "ok": file("app.txt", LINK)}
        )
        changeset = changesets.start(PLAN, actor="ann", node="n")
        changesets.finish(changeset)
        trees.seal(PLAN, changeset, base, made, {"big.bin": "It is too large"})
        trees.merge(changeset)
        opened.terminal = terminal
        yield opened


TOLD = (
    "warning[CA4110]: 1 link leads out of the tree, in plan `p-1`\n"
    "  keys  leads to ../keys\n"
    "warning[CA4111]: 1 path was left out of plan `p-1`\n"
    "  big.bin  It is too large\n"
)


def test_show_tells_links_that_lead_out_and_what_was_left_out(here):
    answer = here.terminal.run("changes", "show", PLAN)
    assert (answer.code, answer.err) == (0, TOLD)
    *_, link, left_out = here.terminal.run("changes", "show", PLAN, "--json").records
    assert link == {"kind": "outward_link", "path": "keys", "target": "../keys", "plan": PLAN}
    assert (left_out["kind"], left_out["path"]) == ("left_out", "big.bin")
    assert left_out["reason"] == "It is too large"


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--json",)], ids=["apply", "dry", "json"])
def test_apply_tells_them_before_it_does_anything(here, more):
    answer = here.terminal.run("changes", "apply", PLAN, *more)
    assert answer.code == 0
    assert answer.err.startswith(TOLD)
    assert (here.root / "keys").is_symlink() is (more != ("--dry-run",))


def test_apply_of_a_part_tells_only_the_links_of_that_part(here):
    answer = here.terminal.run("changes", "apply", PLAN, "--path", "ok")
    assert "CA4110" not in answer.err


def test_what_a_rejected_changeset_left_out_is_not_told(here):
    trees, changesets = here.changes.trees, here.changes.changesets
    base = trees.tree_of(PLAN).base
    changeset = changesets.start(PLAN, actor="bob", node="m")
    changesets.finish(changeset)
    trees.seal(PLAN, changeset, base, base, {"other.bin": "It is too large"})
    assert "other.bin" in here.terminal.run("changes", "show", PLAN).err
    trees.reject(changeset)
    assert "other.bin" not in here.terminal.run("changes", "show", PLAN).err


def test_long_list_is_cut_and_odd_names_stay_on_their_line(here):
    trees, changesets = here.changes.trees, here.changes.changesets
    base = trees.tree_of(PLAN).base
    changeset = changesets.start(PLAN, actor="bob", node="m")
    changesets.finish(changeset)
    many = {f"f\n{number}": "Too large" for number in range(20)}
    trees.seal(PLAN, changeset, base, base, many)
    told = here.terminal.run("changes", "show", PLAN).err
    assert "  f 0" in told
    assert told.endswith("  and 11 more: `cleveragents changes show p-1 --json` tells all\n")
