"""`cleveragents demo --llm`: an agent fixes a test, by a scripted model behind the real protocol.

The model is a script on 127.0.0.1, so nothing is paid and no key is needed; the SDK, the requests,
the tools, the check, the bills and the books are what they are with any provider.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from importlib import import_module
from typing import Any, Final

from cleveragents.cli import demo_world as world
from cleveragents.cli import output
from cleveragents.cli.demo_run import DemoRun
from cleveragents.domain.errors import SetupError
from cleveragents.domain.money import Money
from cleveragents.providers.pricing import PriceTable
from cleveragents.testing import CallTool, ModelServer

MODEL: Final = "openai:gpt-5.2"
BROKEN: Final = "discount.py"
_BUDGET: Final = Money.of("0.50")
_SOURCE: Final = '''\
"""The discounts of a shop."""


def discounted(price, percent):
    return price - percent
'''
_TEST: Final = """\
from discount import discounted

assert discounted(200, 10) == 180, f"10 % off 200 is 180, got {discounted(200, 10)}"
assert discounted(50, 0) == 50
"""
_WRONG: Final = "return price * percent / 100"
_RIGHT: Final = "return price - price * percent / 100"
#: What the model answers, one after the other. Its first edit is wrong, as edits of models are.
SCRIPT: Final = (
    (
        "I look at the code and its test first.",
        CallTool("read_file", {"path": BROKEN}),
        CallTool("read_file", {"path": "test_discount.py"}),
    ),
    (CallTool("edit_file", {"path": BROKEN, "old": "return price - percent", "new": _WRONG}),),
    "The discount is now a share of the price.",
    (
        "That is the discount itself. I take it off the price.",
        CallTool("edit_file", {"path": BROKEN, "old": _WRONG, "new": _RIGHT}),
    ),
    "The discount is now taken off the price, and the test holds.",
)


def check_packages() -> None:
    """Refuse where the packages for models are not installed, and say how to get them."""
    try:
        import_module("pydantic_ai.models.openai")
    except ImportError as error:
        raise SetupError(
            "`demo --llm` needs packages that are not installed",
            code="CA1007",
            facts={"missing": error.name},
            hint="Run `pip install 'cleveragents[llm]'`",
        ) from error


def plan_text(base_url: str) -> str:
    """Return the plan of the demo."""
    # JSON is YAML, so that nothing needs quotes of its own.
    check = json.dumps([sys.executable, "-B", "test_discount.py"])
    return f"""\
goal: Make the test pass
budget: {{max_usd: {_BUDGET.usd:f}}}
nodes:
  fix:
    actor:
      llm:
        model: {MODEL}
        base_url: {base_url}
        prompt: Find out why test_discount.py fails, and fix {BROKEN}
    check: {check}
    writes: [{BROKEN}]
"""


class LlmDemo(DemoRun):
    """Plays the demo of one agent; the processes are run as those of the other demo."""

    def run(self) -> dict[str, Any]:
        """Play everything and return the report."""
        began = time.monotonic()
        with ModelServer([*SCRIPT]) as server:
            files = {
                BROKEN: _SOURCE,
                "test_discount.py": _TEST,
                "plan.yaml": plan_text(server.openai_url),
            }
            world.commit_files(self.root, files)
            failed_before = not self._test_passes()
            self._command("run", "plan.yaml")
            asked, bills = len(server.asked), server.bills
        end = self._books(BROKEN)
        billed = Money(sum(PriceTable().cost_of(MODEL, one.usage).pico for one in bills))
        self._command("logs", end.plan_id)
        diff = self._review(end)
        self._command("apply", end.plan_id)
        self.checks |= {
            "the test failed before": failed_before,
            "the wrong edit was caught by the check, and told": end.errors
            == {"plan.check_failed": 1},
            "every error has a decision": end.errors.total() == end.decisions.total(),
            f"the node is done, after {asked} requests": end.is_done and asked == len(SCRIPT),
            f"the books say what the server billed: {billed}": end.spent == billed,
            "no budget was exceeded": end.limit is not None and end.spent <= end.limit,
            "the test passes in your tree": self._test_passes(),
        }
        self.checks["verify: all books hold"] = self._command("verify") == 0
        return {
            "plan": end.plan_id,
            "model": MODEL,
            "requests": asked,
            "input_tokens": sum(one.usage.input_tokens for one in bills),
            "output_tokens": sum(one.usage.output_tokens for one in bills),
            "spent": str(end.spent),
            "billed": str(billed),
            "budget": str(end.limit),
            "errors": dict(end.errors),
            "seconds": round(time.monotonic() - began, 1),
            "diff": diff.decode("utf-8", "replace"),
            "checks": self.checks,
        }

    def _test_passes(self) -> bool:
        ran = subprocess.run(  # our own test, by our own interpreter
            [sys.executable, "-B", "test_discount.py"],
            cwd=self.root,
            env=world.environment(),
            capture_output=True,
            check=False,
        )
        return ran.returncode == 0


def as_text(report: dict[str, Any]) -> str:
    """Return the report as people read it."""
    tokens = f"{report['input_tokens']:,} tokens in, {report['output_tokens']:,} out"
    facts = {
        "plan": report["plan"],
        "model": f"{report['model']}, scripted: nothing of this was paid",
        "requests": f"{report['requests']}, {tokens}",
        "spent": f"{report['spent']} of {report['budget']} by the books",
        "billed": f"{report['billed']} by the server",
        "took": f"{report['seconds']} s",
        **({"kept": report["folder"]} if "folder" in report else {}),
    }
    checks = (f"  {'✓' if holds else '✗'} {check}" for check, holds in report["checks"].items())
    return "\n".join([output.facts(facts), "", *checks])
