"""`pytest-circuits figure`: the drawing is read back, and holds the numbers of the document and no others."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from math import log10
from xml.etree import ElementTree

import pytest

from pytest_circuits.cli import main
from pytest_circuits.report.build import build_report
from pytest_circuits.report.curves import curves
from pytest_circuits.report.model import ClaimRecord
from pytest_circuits.report.record import RecordedClaim
from pytest_circuits.report.renderers.json_file import read_report
from tests.paths import DOCS

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
needs_matplotlib = pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is an extra")


def record(claim, estimate, verdict="certified", bound=None, **more):
    """A claim of a document, as far as a figure reads it."""
    interval = None if estimate is None else [estimate - 0.1, estimate + 0.05]
    return {
        "nodeid": f"s.circuits.yaml::{claim}::m", "claim": claim, "property": "reuse", "model": "m", "tasks": ["ioi"], "parameters": {},
        "file": "s.circuits.yaml", "line": 1, "estimate": estimate, "interval": interval, "verdict": verdict, "refuted_at": 0.01,
        "bound": bound or {"at_least": 0.4}, "details": {}, "cost": {"forwards": 0, "backwards": 0, "hits": 0},
        "n": 10, "passed": True, "reason": "", **more,
    }  # fmt: skip


def each(claim="recurs", of="run"):
    """One claim on five checkpoints, with every verdict; the places are far apart."""
    verdicts = [(25, 0.3, "refuted"), (50, 0.42, "inconclusive"), (100, None, "invalid"), (400, 0.6, "certified"), (1000, 0.7, "certified")]
    return [record(claim, value, verdict, checkpoint={"of": of, "at": float(at)}) for at, value, verdict in verdicts]


def course(shape="no_drop", at=None, claim="keeps"):
    """A claim about a whole series."""
    points = [
        {"at": a, "value": v, "interval": None if v is None else [v - 0.2, v + 0.1]} for a, v in ((1.0, None), (2.0, 0.5), (3.0, 0.8))
    ]
    details = {"of": "accuracy", "unit": "share of examples", "shape": shape, "at": at, "curve": points}
    return record(claim, 0.5, "refuted", {"at_least": 0.6}, property="trajectory", model="run", details=details,
                  series=[{"model": f"run@{a}", "at": a} for a in (1.0, 2.0, 3.0)])  # fmt: skip


def report(*records):
    """The JSON document of these claims."""
    return build_report([RecordedClaim(record=ClaimRecord.model_validate(one), model=None) for one in records], 1.0).as_json()


def edited(records, key, value):
    """A report, the first claim of which somebody changed."""
    content = json.loads(json.dumps(report(*records)))
    if key is None:
        content["claims"][0] = value
    else:
        content["claims"][0][key] = value
    return content


@pytest.fixture
def drawn(tmp_path, capsys):
    """Draws a document; returns the parsed picture."""

    def draw(*records):
        (tmp_path / "report.json").write_text(json.dumps(report(*records)), encoding="utf-8")
        assert main(["figure", str(tmp_path / "report.json"), "--out", str(tmp_path / "out.svg")]) == 0, capsys.readouterr().err
        return Picture((tmp_path / "out.svg").read_text(encoding="utf-8"))

    return draw


class Picture:
    """An SVG by the ids of its parts."""

    def __init__(self, text):
        self.root = ElementTree.fromstring(text)
        self.groups = {g.get("id"): g for g in self.root.iter(f"{SVG}g") if g.get("id")}
        self.texts = ["".join(t.itertext()) for t in self.root.iter(f"{SVG}text")]

    def ids(self, start):
        return sorted(name for name in self.groups if name.startswith(start))

    def place(self, name):
        """Where the marker of a point was put."""
        use = next(self.groups[name].iter(f"{SVG}use"))
        return float(use.get("x")), float(use.get("y"))

    def shape(self, name):
        """The outline of its marker."""
        drawn = next(self.groups[name].iter(f"{SVG}use")).get(HREF).removeprefix("#")
        return next(path for path in self.root.iter(f"{SVG}path") if path.get("id") == drawn).get("d")

    def ends(self, name):
        """First and last point of a line."""
        path = next(self.groups[name].iter(f"{SVG}path")).get("d")
        numbers = [float(x) for x in re.findall(r"-?\d+\.?\d*", path)]
        return (numbers[0], numbers[1]), (numbers[-2], numbers[-1])

    def axis(self, panel, which):
        """From values to places along an axis: two labelled ticks, by which all others can be checked."""
        found = []
        for group in self.groups[f"axes_{panel + 1}"].iter(f"{SVG}g"):
            if (group.get("id") or "").startswith(f"{which}tick_"):
                use, text = next(group.iter(f"{SVG}use"), None), "".join(next(group.iter(f"{SVG}text")).itertext())
                found.append((float(text.replace("−", "-")), float(use.get("x" if which == "x" else "y"))))
        return found


def scaled(ticks, value, by=lambda x: x):
    (a, p), (b, q) = ticks[0], ticks[-1]
    return p + (by(value) - by(a)) / (by(b) - by(a)) * (q - p)


@needs_matplotlib
def test_points_stand_where_the_document_says_with_their_intervals(drawn):
    records = each()
    picture = drawn(*records)
    x, y = picture.axis(0, "x"), picture.axis(0, "y")
    assert [at for at, _ in x] == [25, 50, 100, 400, 1000], "every checkpoint is a tick"
    for i, one in enumerate(records):
        name = f"point-0-{i}-{one['verdict']}"
        across, down = picture.place(name)
        assert across == pytest.approx(scaled(x, one["checkpoint"]["at"], log10), abs=0.1)
        if one["estimate"] is None:
            assert f"interval-0-{i}" not in picture.groups
            continue
        assert down == pytest.approx(scaled(y, one["estimate"]), abs=0.1)
        ends = sorted(y for _, y in picture.ends(f"interval-0-{i}"))
        assert ends == pytest.approx(sorted(scaled(y, end) for end in one["interval"]), abs=0.1)
    assert len(picture.ids("point-0-")) == 5 and len(picture.ids("interval-0-")) == 4
    (_, first), (_, last) = picture.ends("bound-0-0")
    assert first == last == pytest.approx(scaled(y, 0.4), abs=0.1)


@needs_matplotlib
def test_each_verdict_has_a_shape_of_its_own_and_the_legend_names_those_that_occur(drawn):
    picture = drawn(*each())
    shapes = {name.rpartition("-")[2]: picture.shape(name) for name in picture.ids("point-0-")}
    assert len(set(shapes.values())) == len(shapes) == 4
    assert {"certified", "refuted", "inconclusive", "invalid"} <= set(picture.texts) and "measured" not in picture.texts


@needs_matplotlib
def test_labels_say_property_task_series_claim_and_bound(drawn):
    picture = drawn(*each(), course(), *each("other"))
    told = " ".join(picture.texts)
    assert "reuse(ioi)" in told and "run: recurs, at least 0.4" in told
    assert "accuracy(ioi)" in told and "run: keeps, no_drop 0.500, at least 0.6: refuted" in told and "share of examples" in told
    assert len([name for name in picture.groups if re.fullmatch(r"axes_\d+", name)]) == 2, "equal curves share a panel"
    assert "run: other, at least 0.4" in told


@needs_matplotlib
def test_a_claim_about_a_series_is_drawn_from_its_curve(drawn):
    picture = drawn(course("emerges_by", 2.0))
    x, y = picture.axis(0, "x"), picture.axis(0, "y")
    assert picture.ids("point-0-") == ["point-0-0-invalid", "point-0-1-measured", "point-0-2-measured"]
    for i, (at, value) in enumerate([(2.0, 0.5), (3.0, 0.8)], 1):
        assert picture.place(f"point-0-{i}-measured") == pytest.approx((scaled(x, at), scaled(y, value)), abs=0.1)
    (left, level), _ = picture.ends("bound-0-0")
    assert (left, level) == pytest.approx((scaled(x, 2.0), scaled(y, 0.6)), abs=0.1), "the bound holds from there on"
    assert not drawn(course()).ids("bound-"), "a drop is no level of the curve"


@needs_matplotlib
def test_a_figure_has_no_number_that_the_document_has_not(drawn, tmp_path):
    """Another document, another picture; the same one, the same bytes."""
    first = drawn(*each())
    text = (tmp_path / "out.svg").read_bytes()
    drawn(*each())
    assert (tmp_path / "out.svg").read_bytes() == text
    moved = copy.deepcopy(each())
    moved[3]["estimate"] = 0.65
    assert drawn(*moved).place("point-0-3-certified") != first.place("point-0-3-certified")


@pytest.mark.parametrize(("content", "out", "told"), [
    ("{", "a.svg", "it is not JSON"),
    ("[]", "a.svg", "is not a report of pytest-circuits; make one with pytest"),
    (None, "a.svg", "cannot be read: No such file"),
    (report(record("one", 0.5)), "a.svg", "no claim over a series of models: give a model `checkpoints`"),
    (report(course()), "a.gif", "written as .svg, .pdf, .png"),
    (report(course()), "folder.svg", "is a folder"),
    (edited(each(), "estimate", float("nan")), "a.svg",
     "s.circuits.yaml::recurs::m is not as a run writes it (estimate: Input should be a finite number)"),
    (edited(each(), "estimate", "0.3"), "a.svg", "(estimate: Input should be a valid number)"),
    (edited(each(), "interval", [0.2]), "a.svg", "is not as a run writes it (interval.1: Field required)"),
    (edited(each(), "verdict", "sure"), "a.svg", "(verdict: Input should be 'certified', 'refuted', 'inconclusive' or 'invalid')"),
    (edited(each(), "bound", {}), "a.svg", "(bound: Value error, a bound is exactly one of at_least, at_most and within)"),
    (edited(each(), "bound", {"around": 1}), "a.svg", "(bound.around: Extra inputs are not permitted)"),
    (edited(each(), "checkpoint", {"of": "run", "at": "ten"}), "a.svg", "(checkpoint.at: Input should be a valid number)"),
    (edited(each(), "checkpoint", {"at": 1}), "a.svg", "(checkpoint.of: Field required)"),
    (edited(each(), None, "x"), "a.svg", "a claim is not as a run writes it"),
    (edited([course()], "details", {"curve": [{"at": 1.0, "value": 0.5}]}), "a.svg", "s.circuits.yaml::keeps::m is not as a run writes it"),
])  # fmt: skip
def test_mistakes_are_one_line_and_no_file(tmp_path, capsys, content, out, told):
    path = tmp_path / "report.json"
    if content is not None:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    (tmp_path / "folder.svg").mkdir()
    assert main(["figure", str(path), "--out", str(tmp_path / out)]) == 1
    error = capsys.readouterr().err
    assert told in error and len(error.splitlines()) == 1 and not (tmp_path / out).is_file()


@needs_matplotlib
def test_names_are_no_formulas_and_an_infinite_end_is_no_damage(drawn):
    """Two dollar signs would be mathematics to matplotlib; an infinite end of an interval in a curve is null in JSON."""
    found = drawn(*({**one, "tasks": ["$cost_{$"]} for one in each()))
    assert any("$cost_{$" in text for text in found.texts) and len(found.ids("point-0-")) == 5
    claim = course()
    for point in claim["details"]["curve"]:
        point["interval"] = point["interval"] and [point["interval"][0], None]
    assert len(drawn(claim).ids("point-0-")) == 3


def test_without_matplotlib_the_message_says_how_to_get_it(tmp_path):
    (tmp_path / "report.json").write_text(json.dumps(report(course())), encoding="utf-8")
    code = "import sys; sys.modules['matplotlib'] = None; from pytest_circuits.cli import main; sys.exit(main(['figure', 'report.json']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "needs matplotlib, which is not installed: pip install 'pytest-circuits[figure]'" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_importing_the_command_imports_no_matplotlib():
    code = "import sys, pytest_circuits.cli, pytest_circuits.report.renderers.figure; assert not {'matplotlib', 'numpy', 'torch'} & set(sys.modules)"  # noqa: E501
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def stored():
    folder = DOCS / "results"
    return read_report(folder / "consistency_specificity.json"), (folder / "training.svg").read_text("utf-8")


def test_the_stored_figure_has_all_points_of_the_stored_report(stored):
    content, text = stored
    picture, found = Picture(text), curves(content.claims)
    for i, curve in enumerate(found):
        assert [name.rpartition("-")[2] for name in sorted(picture.ids(f"point-{i}-"))] == [point.mark for point in curve.points]
        y = picture.axis(i, "y")
        for j, point in enumerate(curve.points):
            if point.value is not None:
                assert picture.place(f"point-{i}-{j}-{point.mark}")[1] == pytest.approx(scaled(y, point.value), abs=0.1)
    assert len(found) == len([name for name in picture.groups if re.fullmatch(r"axes_\d+", name)])


def test_the_page_beside_it_is_what_the_report_gives():
    from docs.results.__main__ import FOLDER, render

    assert (FOLDER / "training.md").read_text(encoding="utf-8") == render("training")
