"""Documents can fail: codes, settings, locks and exports are compared with the code."""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import fields

import cleveragents
from cleveragents.domain.errors import CODES
from cleveragents.infrastructure.plan_files import reference
from cleveragents.settings import ENVIRONMENT_PREFIX, Settings
from tidy.counts import counts, documented
from tidy.source import PACKAGE, ROOT, sources, tree_of

DOCS = ROOT / "docs"


def table_rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|") and not set(line) <= set("|-: ")
    ][1:]


def test_every_error_code_is_documented_with_its_meaning():
    documented = {row[0].strip("`"): row[1] for row in table_rows((DOCS / "errors.md").read_text())}
    assert documented == dict(CODES)


def test_every_code_in_the_source_is_registered():
    used = {code for path in sources() for code in re.findall(r"\bCA\d{4}\b", path.read_text())}
    assert used == set(CODES)


def test_every_setting_is_documented_with_its_default():
    documented = {row[0].strip("`"): row for row in table_rows((DOCS / "settings.md").read_text())}
    expected = {
        one.name: [
            f"`{one.name}`",
            f"`{ENVIRONMENT_PREFIX}{one.name.upper()}`",
            "none" if one.default in (None, ()) else str(one.default),
            one.metadata["about"],
        ]
        for one in fields(Settings)
    }
    assert documented == expected


def locks() -> set[str]:
    """Every lock in the source as `Class._lock`."""
    found = set()
    for path in sources():
        for owner in ast.walk(tree_of(path)):
            if not isinstance(owner, ast.ClassDef):
                continue
            for node in ast.walk(owner):
                if isinstance(node, ast.Assign) and re.search(
                    r"threading\.(Lock|Condition)\(", ast.unparse(node.value)
                ):
                    found.add(f"{owner.name}.{ast.unparse(node.targets[0]).removeprefix('self.')}")
    return found


def test_every_lock_has_a_row_with_a_proof_that_exists():
    rows = table_rows((DOCS / "concurrency.md").read_text())
    documented = {row[1].strip("`") + "." + row[2].strip("`"): row for row in rows}
    assert set(documented) == locks()
    for lock, row in documented.items():
        assert len(row) == 7, f"{lock}: a row has seven cells"
        assert all(row), f"{lock}: no cell is empty"
        proofs = re.findall(r"`(tests/[\w/]+\.py)`", row[6])
        assert proofs, f"{lock}: its proof is not named"
        assert all((ROOT / proof).is_file() for proof in proofs), f"{lock}: {proofs}"


def test_module_locks_are_not_used():
    at_module_level = [
        path.name
        for path in sources()
        for node in tree_of(path).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and node.value is not None
        and "threading." in ast.unparse(node.value)
    ]
    assert at_module_level == []


def test_public_door_opens_on_everything_it_names():
    for name in cleveragents.__all__:
        assert getattr(cleveragents, name) is not None
    assert sorted(cleveragents.__all__) == list(cleveragents.__all__)
    assert set(cleveragents.__all__) <= set(dir(cleveragents))


def test_modules_export_what_exists():
    for path in sources():
        tree = tree_of(path)
        if any(
            isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__" for n in tree.body
        ):
            module = ".".join(
                ("cleveragents", *path.relative_to(PACKAGE).with_suffix("").parts)
            ).removesuffix(".__init__")
            loaded = importlib.import_module(module)
            assert all(hasattr(loaded, name) for name in loaded.__all__), module


def test_links_between_documents_lead_somewhere():
    broken = [
        f"{path.name}: {target}"
        for path in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text())
        if not (path.parent / target).exists()
    ]
    assert broken == []


def test_layout_in_the_architecture_shows_every_folder():
    layout = (DOCS / "architecture.md").read_text()
    drawn = set(re.findall(r"(?m)^[│ ]*[├└]── (\w+)/ ", layout))
    folders = {path.parent for path in PACKAGE.rglob("*") if path.is_file()} - {PACKAGE}
    known = {path.name for path in folders if path.name != "__pycache__"}
    assert drawn == known


def test_counts_of_tests_are_up_to_date():
    """Run `PYTHONPATH=tests python -m tidy.counts` to write them."""
    assert documented() == counts()


def test_reference_of_plan_files_is_made_from_their_rules():
    """Write `reference()` to docs/plans.md after a rule has changed."""
    assert (DOCS / "plans.md").read_text() == reference()
