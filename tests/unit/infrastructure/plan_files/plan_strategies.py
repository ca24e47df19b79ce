"""Plans of all shapes for property tests: each is right, and uses every field somewhere."""

from __future__ import annotations

from hypothesis import strategies as st

from cleveragents.domain.conditions import Template
from cleveragents.domain.error_record import Action, ErrorCategory
from cleveragents.domain.errors import RequestError
from cleveragents.domain.plan import (
    ApplyMode,
    Budget,
    BudgetLimit,
    Capture,
    Check,
    CommandActor,
    ContextWish,
    Defaults,
    DeleteStep,
    EditStep,
    FailStep,
    ForEach,
    LlmActor,
    McpServer,
    Node,
    NodeBudget,
    OnFailure,
    Plan,
    PrintStep,
    PythonActor,
    Recovery,
    ScriptedActor,
    SleepStep,
    SpendStep,
    WriteStep,
)


def is_plain(text):
    """Say whether a text holds neither NUL nor anything like a template."""
    try:
        return "\0" not in text and not Template.parse(text).references
    except RequestError:
        return False


# Line ends and blanks of all kinds, which writers of YAML like to fold away.
LINES = st.text(alphabet="ab \t\n\r\x85\u2028\ufeff#:-", max_size=12)
TEXT = (st.text(max_size=30) | LINES).filter(is_plain)
SAID = TEXT.filter(str.strip)
# Words that YAML 1.1, YAML 1.2 or a careless writer would take for something else.
TRICKY = st.sampled_from(
    ["no", "on", "~", "null", "0o17", "1e3", "010", "<<", "=", "- x", "#", "a: b", " x ", "x\n"]
)
WORDS = st.one_of(SAID, TRICKY)
SEGMENTS = st.text(alphabet="abc.-_ 0é\udc80", min_size=1, max_size=5).filter(
    lambda text: text not in {".", ".."}
)
PATHS = st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join)
MONEY = st.decimals(0, 1000, places=12).map(str)
SECONDS = st.floats(0.001, 1000)
LITERALS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
COMMANDS = st.lists(TEXT, max_size=2).map(lambda words: ("prog", *words))
ENV = st.dictionaries(st.sampled_from(["A", "B_1"]), TEXT | TRICKY, max_size=2)


def maybe(strategy):
    return st.none() | strategy


STEPS = st.one_of(
    st.builds(WriteStep, PATHS, TEXT),
    st.builds(EditStep, PATHS, SAID, TEXT),
    st.builds(DeleteStep, PATHS),
    st.builds(PrintStep, TEXT),
    st.builds(FailStep, WORDS, st.sampled_from(ErrorCategory), maybe(st.integers(1, 100))),
    st.builds(SpendStep, MONEY),
    st.builds(SleepStep, SECONDS),
)
ACTORS = st.one_of(
    st.builds(CommandActor, COMMANDS),
    st.builds(CommandActor, WORDS, shell=st.just(True)),
    st.builds(PythonActor, st.sampled_from(["a:b", "pkg.mod:Class.method"])),
    st.builds(ScriptedActor, st.lists(STEPS, max_size=3)),
    st.builds(LlmActor, WORDS, WORDS, maybe(WORDS), maybe(st.floats(0, 2)), maybe(st.just(5))),
)
CHECKS = st.builds(Check, COMMANDS, timeout_s=SECONDS) | st.builds(Check, COMMANDS)
RECOVERIES = st.builds(
    Recovery,
    cures=st.dictionaries(
        st.sampled_from([ErrorCategory.TOOL_CRASH, ErrorCategory.RATE_LIMIT]),
        st.lists(st.sampled_from(Action), unique=True, max_size=3).map(
            lambda actions: sorted(actions, key=lambda action: action.rung)
        ),
        max_size=2,
    ),
    times_max=st.dictionaries(st.sampled_from([Action.RETRY, Action.REPLAN]), st.integers(0, 100)),
)
BUDGETS = st.builds(
    Budget,
    max_usd=maybe(MONEY),
    limits=st.lists(
        st.builds(
            BudgetLimit,
            kind=st.sampled_from(["day", "model"]),
            max_usd=MONEY,
            name=maybe(WORDS),
            hard=st.booleans(),
            warn_at=maybe(st.lists(st.floats(0.01, 1), unique=True, max_size=2)),
        ),
        unique=True,
        max_size=2,
    ),
)
DEFAULTS = st.builds(
    Defaults,
    actor=maybe(ACTORS),
    timeout_s=SECONDS,
    attempts_max=st.integers(1, 100),
    on_failure=maybe(st.sampled_from(OnFailure)),
    check=maybe(CHECKS),
    network=st.booleans(),
    env=ENV,
)


SERVERS = st.dictionaries(
    st.sampled_from(["web", "no", "x_1"]),
    st.builds(
        McpServer,
        command=st.lists(WORDS, min_size=1, max_size=3),
        env=st.dictionaries(st.sampled_from(["A", "no"]), TEXT, max_size=2),
        timeout_s=SECONDS,
        permission=st.sampled_from(["read", "write", "run"]),
        tools=maybe(st.lists(WORDS, unique=True, max_size=2)),
    )
    | st.builds(McpServer, url=st.just("http://127.0.0.1:8000/mcp")),
    max_size=2,
)


def fan_outs(upstream):
    items = [st.lists(LITERALS, max_size=3), st.dictionaries(TEXT, LITERALS, max_size=3)]
    if upstream:
        items.append(st.sampled_from([f"${{nodes.{name}.output.x}}" for name in upstream]))
    return st.builds(
        ForEach,
        over=st.one_of(items),
        item_name=st.sampled_from(["item", "part"]),
        items_max=st.integers(3, 10_000),
    )


@st.composite
def nodes(draw, name, upstream):
    inputs = draw(st.dictionaries(st.sampled_from(["x", "y"]), LITERALS, max_size=2))
    if upstream:
        inputs["up"] = draw(
            st.sampled_from([f"got ${{nodes.{one}.output.x.1}} $${{" for one in upstream])
        )
    return Node(
        name=name,
        actor=draw(ACTORS),
        needs=upstream,
        inputs=inputs,
        outputs=draw(st.just(Capture.JSON) | st.just(("x", "y"))),
        for_each=None if draw(st.booleans()) else draw(fan_outs(upstream)),
        when=draw(maybe(st.sampled_from(["true", "plan.goal == 'no'", "1 in [1, -2.5]"]))),
        context=draw(
            maybe(st.builds(ContextWish, task=maybe(WORDS), files=st.lists(PATHS, unique=True)))
        ),
        tools=draw(maybe(st.lists(WORDS, unique=True, max_size=2))),
        mcp=draw(SERVERS),
        folder=draw(st.just(".") | PATHS),
        writes=draw(maybe(st.lists(PATHS, unique=True, max_size=2))),
        env=draw(ENV),
        network=draw(maybe(st.booleans())),
        timeout_s=draw(maybe(SECONDS)),
        attempts_max=draw(maybe(st.integers(1, 100))),
        on_failure=draw(maybe(st.sampled_from(OnFailure))),
        recovery=draw(maybe(RECOVERIES)),
        budget=draw(maybe(st.builds(NodeBudget, max_usd=MONEY))),
        check=draw(maybe(CHECKS)),
    )


@st.composite
def plans(draw):
    names = draw(st.lists(st.sampled_from(["a", "no", "0", "b.c", "d-e"]), min_size=1, unique=True))
    fanned = set()
    made = []
    for place, name in enumerate(names):
        plain = [one for one in names[:place] if one not in fanned]
        upstream = draw(st.lists(st.sampled_from(plain), unique=True)) if plain else []
        made.append(draw(nodes(name, upstream)))
        if made[-1].for_each is not None:
            fanned.add(name)
    return Plan(
        name=draw(maybe(st.sampled_from(["p", "no"]))),
        goal=draw(WORDS),
        budget=draw(maybe(BUDGETS)),
        at_once=draw(st.integers(1, 256)),
        deadline_s=draw(maybe(SECONDS)),
        on_failure=draw(st.sampled_from(OnFailure)),
        apply=draw(st.sampled_from(ApplyMode)),
        mcp=draw(SERVERS),
        defaults=draw(DEFAULTS),
        nodes=made,
    )
