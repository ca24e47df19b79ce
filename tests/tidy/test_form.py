"""Form is a test that only tightens: the lists of exceptions may shrink, never grow."""

from __future__ import annotations

import ast
import re

import pytest

from tidy.source import PACKAGE, ROOT, name_of, project_python, sources, tree_of

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50
PARAMETERS_MAX = 5

#: Functions with more parameters than five, all but the first by keyword.
MANY_PARAMETERS = {
    "application/services/circuit_breaker.py:__init__",
    "application/services/error_recovery_service.py:__init__",
    "infrastructure/durable_cost_tracker.py:__init__",
    "infrastructure/sandbox/sandboxes.py:__init__",
    "providers/cost_tracker.py:__init__",
}

BANNED_MODULES = {"utils", "util", "helpers", "common", "manager", "base", "misc"}

#: Who may import `threading`: every owner of shared state, and nobody else.
THREADING = {
    "actors/mcp/connections.py",
    "actors/pause.py",
    "actors/tool_journal.py",
    "actors/tool_service.py",
    "application/memory_changesets.py",
    "application/services/attempt_workers.py",
    "application/services/circuit_breaker.py",
    "application/services/error_recovery_service.py",
    "application/services/plan_execution_context.py",
    "application/services/provider_gate.py",
    "application/services/result_keeper.py",
    "application/services/strategy_executor.py",
    "application/services/worker_pool.py",
    "bootstrap.py",
    "cli/leaving.py",
    "cli/log_file.py",
    "domain/stop_signal.py",
    "hunt/inputs/recorder.py",
    "hunt/prove/stage.py",
    "hunt/prove/world.py",
    "infrastructure/changes/turns.py",
    "infrastructure/code_index/index.py",
    "infrastructure/code_index/opening.py",
    "infrastructure/code_index/rounds.py",
    "infrastructure/durable_cost_tracker.py",
    "infrastructure/embeddings/chunk_vectors.py",
    "infrastructure/escrow_cost_tracker.py",
    "infrastructure/plan_jobs.py",
    "infrastructure/sandbox/confined_tree.py",
    "infrastructure/sandbox/confinement.py",
    "infrastructure/sandbox/sandboxes.py",
    "infrastructure/store.py",
    "infrastructure/write_queue.py",
    "providers/cost_tracker.py",
    "providers/model_access/desk.py",
    "providers/model_access/line.py",
    "providers/model_access/rate_limiter.py",
    "providers/pricing.py",
    "strategies/shared_view.py",
    "testing/desk.py",
    "testing/model_server.py",
    "testing/order.py",
}


#: They read, stand in for, or write the locks of other people's code.
SPEAKS_OF_LOCKS = {
    "src/cleveragents/hunt/find/vocabulary.py",
    "src/cleveragents/hunt/mend/guarding.py",
    "src/cleveragents/hunt/mend/placing.py",
    "src/cleveragents/hunt/prove/snapshot.py",
    "src/cleveragents/hunt/prove/world.py",
}
#: Programs that run in a sandbox, and answer on stdout.
PROGRAMS = {"src/cleveragents/hunt/inputs/observe.py", "src/cleveragents/hunt/mend/__main__.py"}
#: Code to be hunted in, as people write it.
CODE_OF_OTHERS = {
    "tests/unit/hunt/find/test_find.py",
    "tests/unit/hunt/prove/cases.py",
    "tests/unit/hunt/prove/test_program.py",
}


def functions():
    for path in sources():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(PACKAGE).as_posix()}:{node.name}", node


def test_files_fit_one_noun():
    too_long = {
        name_of(p): n for p in sources() if (n := p.read_text().count("\n")) > FILE_LINES_MAX
    }
    assert too_long == {}


def test_functions_fit_a_screen():
    too_long = {
        name: lines
        for name, node in functions()
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    }
    assert too_long == {}


def test_functions_take_few_parameters():
    def count(node):
        names = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        return len([one for one in names if one.arg not in {"self", "cls"}])

    many = {name for name, node in functions() if count(node) > PARAMETERS_MAX}
    assert many == MANY_PARAMETERS


def test_modules_are_named_by_a_noun():
    assert [name_of(path) for path in sources() if path.stem in BANNED_MODULES] == []


def test_folders_have_at_least_three_files():
    small = [
        name_of(folder)
        for folder in {path.parent for path in sources()}
        if len([one for one in folder.iterdir() if one.name != "__pycache__"]) < 3
    ]
    assert small == []


def test_threading_is_imported_only_by_owners_of_shared_state():
    importing = {
        path.relative_to(PACKAGE).as_posix()
        for path in sources()
        if any(
            isinstance(node, ast.Import) and any(one.name == "threading" for one in node.names)
            for node in ast.walk(tree_of(path))
        )
    }
    assert importing == THREADING


def test_locks_are_made_in_the_open():
    """`threading.Lock()` in `__init__`, where proofs can see it: no import of the name alone."""
    captured = [
        name_of(path)
        for path in sources()
        if name_of(path) not in SPEAKS_OF_LOCKS
        and re.search(
            r"from threading import|default_factory=threading\.(Lock|Cond)|RLock", path.read_text()
        )
    ]
    assert captured == []


def test_only_output_prints():
    printing = [
        name_of(path)
        for path in sources()
        if path.name != "output.py"
        and name_of(path) not in PROGRAMS
        and re.search(r"\bprint\(|sys\.std(out|err)\.write", path.read_text())
    ]
    assert printing == []


def test_annotations_are_lazy_everywhere():
    missing = [
        name_of(path)
        for path in project_python()
        if any(not isinstance(node, ast.Expr) for node in tree_of(path).body)
        and "from __future__ import annotations" not in path.read_text()
        and path.name != "_version.py"
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"#\s*type:\s*" + "ignore", "types are right or they are not"),
        (r"\b(TO" + r"DO|FIX" + r"ME)\b", "unfinished work is an open question, not a comment"),
        (r"raise NotImplemented" + "Error", "a stub is not a part"),
        (r"/(?:work|root|home)/\w", "a path of one machine"),
        (r"#\s*pragma:\s*no cover\s*$", "an exclusion needs its reason"),
        (r"#\s*noqa(?::\s*[A-Z0-9, ]+)?\s*$", "a lint exception needs its reason"),
    ],
    ids=["types", "unfinished", "stubs", "machine", "coverage", "lint"],
)
def test_nothing_is_swept_under_the_rug(pattern, why):
    found = [
        f"{name_of(path)}:{number}"
        for path in project_python()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert found == [], why


def test_no_test_sleeps():
    sleeping = [
        name_of(path)
        for folder in ("tests", "features")
        for path in sources(ROOT / folder)
        if name_of(path) not in CODE_OF_OTHERS
        and re.search(r"\btime\.sleep" + r"\(", path.read_text())
    ]
    assert sleeping == []


def test_ci_runs_exactly_the_test_command_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text().strip().splitlines()[-1]
    assert f"\n{script}\n" in (ROOT / "README.md").read_text()
