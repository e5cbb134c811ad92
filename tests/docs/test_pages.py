"""The pages in docs/ stay true to the sources and to each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.markdown import ROOT

DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


def _package() -> Path:
    folder = ROOT / "cuda_fork_guard"
    if not folder.is_dir():
        pytest.skip("the package's sources are not beside these tests")
    return folder


def _codes() -> set[str]:
    sources = [*_package().rglob("*.py"), *(ROOT / "csrc").rglob("*.cpp")]
    return {code for file in sources for code in re.findall(r"\bCFG\d{3}\b", file.read_text(encoding="utf-8"))}


def test_every_code_has_its_page_and_every_page_a_code() -> None:
    assert {page.stem for page in (DOCS / "errors").glob("*.md")} == _codes()


@pytest.mark.parametrize("page", sorted((DOCS / "errors").glob("*.md")), ids=lambda page: page.stem)
def test_a_codes_page_says_what_it_means_and_what_to_do(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {page.stem}: ")
    assert "## What it means" in text
    assert "## What to do" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_index_leads_to_every_page() -> None:
    linked = {
        (DOCS / target).resolve() for target in re.findall(r"\]\(([^)#]+)\)", (DOCS / "index.md").read_text("utf-8"))
    }
    assert [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page.resolve() not in linked] == ["index.md"]


def test_every_fact_names_tests_that_exist() -> None:
    rows = [line for line in (DOCS / "facts.md").read_text("utf-8").splitlines() if line.startswith("| ")][2:]
    assert rows
    for row in rows:
        tests = re.findall(r"(tests/[\w/]+\.py)::(\w+)", row)
        assert tests, f"no test is named for: {row}"
        for file, name in tests:
            assert re.search(rf"^def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE), f"{file} has no {name}"
