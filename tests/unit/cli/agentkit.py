"""A repository with a failing test, a scripted model, and the command line between them."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass

from cleveragents.cli.main import main
from cleveragents.domain.money import Money
from cleveragents.providers.pricing import PriceTable
from cleveragents.testing import CallTool, ModelServer

MODEL = "openai:gpt-5.2"
SOURCE = "def add(a, b):\n    return a - b\n"
TEST = "from sums import add\n\nassert add(2, 3) == 5, f'2 + 3 is 5, got {add(2, 3)}'\n"
CHECK = [sys.executable, "-B", "test_sums.py"]
READ = CallTool("read_file", {"path": "sums.py"})
WRONG = CallTool("edit_file", {"path": "sums.py", "old": "a - b", "new": "a * b"})
RIGHTED = CallTool("edit_file", {"path": "sums.py", "old": "a * b", "new": "a + b"})
RIGHT = CallTool("edit_file", {"path": "sums.py", "old": "a - b", "new": "a + b"})
#: What an answer with a plan looks like; the model and the server in it are not the user's.
PLAN = f"""Here is the plan:

```yaml
goal: something
nodes:
  fix:
    actor: {{llm: {{model: "openai:gpt-9", prompt: Fix add in sums.py}}}}
    check: {CHECK!r}
    writes: [sums.py]
```
"""


def plan_file(base_url, budget="1"):
    return (
        f"goal: Make the test pass\nbudget: {{max_usd: {budget}}}\nnodes:\n  fix:\n"
        f'    actor: {{llm: {{model: "{MODEL}", base_url: "{base_url}", prompt: Fix sums.py}}}}\n'
        f"    check: {CHECK!r}\n    writes: [sums.py]\n"
    )


@dataclass
class Done:
    code: int
    out: str
    err: str


@dataclass
class AgentTree:
    """A repository next to a model server; commands run as processes of their own.

    With `capsys` they run here, which is quicker: SDKs take their time to be imported.
    """

    root: object
    server: ModelServer
    capsys: object = None

    def run(self, *words, **environment):
        if self.capsys is not None:
            code = main(words)
            return Done(code, *self.capsys.readouterr())
        done = subprocess.run(
            [sys.executable, "-m", "cleveragents", *words],
            cwd=self.root,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def goal(self, *words):
        options = ("--model", MODEL, "--base-url", self.server.openai_url)
        return self.run("run", "Make the sum right", *options, *words)

    def environment(self, **more):
        state = str(self.root / ".cleveragents" / "state")
        return {**os.environ, "XDG_STATE_HOME": state, "NO_PROXY": "127.0.0.1", **more}

    @property
    def billed(self):
        prices = PriceTable()
        return Money(sum(prices.cost_of(MODEL, one.usage).pico for one in self.server.bills))

    def read(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def plans(self):
        return sorted((self.root / ".cleveragents" / "plans").glob("*.yaml"))


@contextmanager
def agent_tree(root, *replies, capsys=None, script=None):
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    (root / "sums.py").write_text(SOURCE, encoding="utf-8")
    (root / "test_sums.py").write_text(TEST, encoding="utf-8")
    with ModelServer(script or [*replies]) as server:
        yield AgentTree(root, server, capsys)
