from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.infrastructure.code_index import syntax
from cleveragents.infrastructure.code_index.chunking import LINES_MAX, card_of, cut_of

PATHS = [
    "a.py",
    "a.js",
    "a.ts",
    "a.tsx",
    "a.go",
    "a.rs",
    "a.java",
    "a.c",
    "a.cpp",
    "a.rb",
    "a.md",
    "a",
]

SAMPLES = {
    "a.py": "X = 1\n\n\n@wrapped\nclass Alpha:\n    def beta(self):\n        pass\n\n\n"
    "def gamma():\n    pass",
    "a.js": "class Alpha {\n  beta() {}\n}\nexport const gamma = () => {\n  return 1\n}",
    "a.ts": "interface Alpha {\n  beta(): void\n}\nexport function gamma(): void {\n}",
    "a.go": "type Alpha struct {\n  x int\n}\n\nfunc (a Alpha) beta() {\n}\n\nfunc gamma() {\n}",
    "a.rs": "struct Alpha;\nimpl Alpha {\n    fn beta() {}\n}\npub fn gamma() {\n}",
    "a.java": "class Alpha {\n  void beta() {}\n}\nclass gamma {\n}",
    "a.c": "struct Alpha {\n  int x;\n};\nint beta(void) {\n}\nchar *gamma(int x) {\n}",
    "a.cpp": "class Alpha {\n  void beta() {}\n};\nint ns::gamma() {\n}",
    "a.rb": "class Alpha\n  def beta\n  end\nend\ndef gamma\nend",
    "a.kt": "class Alpha {\n    fun beta() {\n    }\n}\nfun gamma() {\n}",
}


def parts_of(card) -> bool:
    """Whether the chunks are the file, in order, without gaps."""
    ends = [0, *(end for _, end in card.chunks)]
    starts = [start for start, _ in card.chunks]
    return starts == [end + 1 for end in ends[:-1]] and ends[-1] == card.lines


@pytest.fixture(params=["grammar", "lines"])
def cut(request, monkeypatch):
    """Both ways of cutting keep the promises: grammars are optional."""
    if request.param == "lines":
        monkeypatch.setattr(syntax, "_language", lambda _: None)
    return request.param


@pytest.mark.parametrize("path", SAMPLES)
def test_definitions_are_found_in_every_language(path, cut):
    names = {symbol.name for symbol in card_of(path, SAMPLES[path]).symbols}
    expected = {"Alpha", "beta", "gamma"}
    if cut == "lines" and path in {"a.js", "a.ts", "a.java", "a.c", "a.cpp"}:
        expected = {"Alpha"}  # without a grammar only what a keyword introduces
    assert expected <= names


def test_symbol_tells_its_lines_its_head_and_where_it_stands():
    card = card_of("a.py", SAMPLES["a.py"])
    beta = next(symbol for symbol in card.symbols if symbol.name == "beta")
    assert (beta.kind, beta.start_line, beta.head, beta.within) == (
        "method",
        6,
        "def beta(self):",
        "Alpha",
    )


def test_decorators_belong_to_their_definition():
    alpha = next(s for s in card_of("a.py", SAMPLES["a.py"]).symbols if s.name == "Alpha")
    assert (alpha.start_line, alpha.end_line, alpha.head) == (4, 7, "class Alpha:")


@pytest.mark.parametrize(
    ("path", "one"), [("a.py", "def {}():\n    return 1\n"), ("a.go", "func {}() {{\n}}\n")]
)
def test_lines_are_right_in_a_long_file(path, one):
    """A version of the parser's bindings told wrong rows beyond 256."""
    text = "\n".join(one.format(f"f{n}") for n in range(400))
    symbols = card_of(path, text).symbols
    assert [(one.name, one.start_line) for one in symbols] == [
        (f"f{n}", 3 * n + 1) for n in range(400)
    ]


@pytest.mark.usefixtures("cut")
def test_long_definition_is_cut_and_small_ones_are_joined():
    long = "def long():\n" + "\n".join(f"    x{n} = {n}" + "\n" * (n % 9 == 0) for n in range(150))
    card = card_of("a.py", f"{long}\n\ndef a():\n    pass\n\n\ndef b():\n    pass")
    assert parts_of(card)
    assert len(card.chunks) > 2
    assert all(end - start < LINES_MAX for start, end in card.chunks)
    a, b = (next(s.start_line for s in card.symbols if s.name == name) for name in "ab")
    assert any(start <= a and b <= end for start, end in card.chunks)


def test_headings_are_what_prose_defines():
    card = card_of("a.md", "# One\n\ntext\n\n## Two\n\nmore\n\n# Three")
    assert [(s.name, s.start_line, s.end_line, s.within) for s in card.symbols] == [
        ("One", 1, 7, ""),
        ("Two", 5, 7, "One"),
        ("Three", 9, 9, ""),
    ]


def test_generated_file_is_cut_by_its_lines(monkeypatch):
    monkeypatch.setattr(syntax, "BYTES_MAX", 10)
    assert {s.name for s in card_of("a.go", SAMPLES["a.go"]).symbols} >= {"Alpha", "beta", "gamma"}


def test_broken_bindings_count_as_missing(monkeypatch):
    sitter = pytest.importorskip("tree_sitter")
    monkeypatch.setattr(sitter, "__version__", "0.26.0", raising=False)
    assert syntax._language.__wrapped__("go") is None


def test_missing_package_counts_as_no_grammar(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tree_sitter", None)
    assert syntax._language.__wrapped__("go") is None
    assert syntax._language.__wrapped__("text") is None


@pytest.mark.usefixtures("cut")
def test_cut_names_language_and_tool():
    assert cut_of("a.md") == "markdown/lines"
    assert cut_of("a.py") == "python/lines"
    assert cut_of("a.go") == f"go/{'grammar' if syntax.has_grammar('go') else 'lines'}"


LINES = st.lists(
    st.sampled_from(
        [
            "",
            "class A:",
            "    def b(self):",
            "        pass",
            "def c(): pass",
            "}",
            "# x",
            "function d() {",
            "a = 1",
        ]
    )
    | st.text(st.characters(exclude_characters="\n"), max_size=10),
    max_size=150,
)


@given(path=st.sampled_from(PATHS), lines=LINES)
def test_chunks_are_the_file_whatever_it_holds(path, lines):
    card = card_of(path, "\n".join(lines).replace("\r", ""))
    assert parts_of(card)
    assert all(1 <= s.start_line <= s.end_line <= card.lines for s in card.symbols)
