"""Makes the result pages: `python -m docs.results PAPER=REPORT.json …` stores each report next to its page and renders the page from it.

Without arguments, all pages are rendered again from the stored reports. `--check` only says whether the pages are up to date.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path

from .claims import Report, shortened

FOLDER = Path(__file__).parent
PAPERS = ("consistency_specificity", "neuron_circuits", "gradient_causal", "mutation")
DERIVED = {"training": "consistency_specificity"}  # further pages, from the report of a paper


def render(paper: str) -> str:
    """The page of a paper, or one derived of it, from its stored report."""
    page = import_module(f".{paper}", __package__)
    read = getattr(page, "stored_report", Report.read)  # a page that is not made of claims reads its own
    text: str = page.page(read(FOLDER / f"{DERIVED.get(paper, paper)}.json"))
    return text


def draw(page: str) -> None:
    """Draw the figure of a derived page again (needs matplotlib)."""
    from pytest_circuits.report.renderers import RENDERERS
    from pytest_circuits.report.renderers.json_file import read_report

    RENDERERS.get("figure")().write(read_report(FOLDER / f"{DERIVED[page]}.json"), FOLDER / f"{page}.svg")


def store(paper: str, report: Path) -> None:
    """Store a report next to its page. A page that needs only a part of each claim selects it by `kept(claim)`, or by `stored(content)`."""
    page, whole = import_module(f".{paper}", __package__), json.loads(report.read_text(encoding="utf-8"))
    if hasattr(page, "stored"):
        content = page.stored(whole)
    else:
        content = shortened(whole)
        kept = getattr(page, "kept", dict)
        content["claims"] = [kept(claim) for claim in content["claims"]]
    (FOLDER / f"{paper}.json").write_text(json.dumps(content, indent=0, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    """Store, render, write; or check."""
    parser = argparse.ArgumentParser(prog="python -m docs.results", description=__doc__)
    parser.add_argument("reports", nargs="*", metavar="PAPER=REPORT.json", help=f"PAPER is one of {', '.join(PAPERS)}")
    parser.add_argument("--check", action="store_true", help="fail if a page is not what its stored report gives")
    arguments = parser.parse_args()
    given = dict(text.partition("=")[::2] for text in arguments.reports)
    for paper in given:
        if paper not in PAPERS or not given[paper]:
            parser.error(f"{paper!r} is not of the form PAPER=REPORT.json with PAPER one of {', '.join(PAPERS)}")
        store(paper, Path(given[paper]))
    derived = [page for page, paper in DERIVED.items() if not given or paper in given]
    for page in derived if given else ():
        draw(page)
    stale = []
    for paper in (*(given or PAPERS), *derived):
        path, text = FOLDER / f"{paper.replace('_', '-')}.md", render(paper)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
            if not arguments.check:
                path.write_text(text, encoding="utf-8")
    print(f"{'out of date' if arguments.check else 'written'}: {', '.join(stale) or 'nothing'}")
    return int(arguments.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
