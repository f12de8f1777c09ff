"""What a verdict does to its test: passes, failures, letters, words, exit codes, marks."""

from __future__ import annotations

import pytest

VALUES = {
    "certified": "stated: {value: 0.9, low: 0.8, high: 1.0}",
    "refuted": "stated: {value: 0.1, low: 0.0, high: 0.2}",
    "inconclusive": "stated: {value: 0.55, low: 0.45, high: 0.7}",
    "invalid": "stated: {raises: invalid}",
}
HEADLINES = {
    "certified": "certified: stated = 0.900 [[]0.800, 1.000], is at least 0.5",
    "refuted": "refuted: stated = 0.100 [[]0.000, 0.200], should be at least 0.5",
    "inconclusive": "inconclusive: stated = 0.550 [[]0.450, 0.700], should be at least 0.5",
    "invalid": "invalid: stated: there is nothing to measure",
}

TELLING = pytest.version_tuple >= (9,)  # the short summary of older ones has no text for failures that explain themselves


def claim(verdict, expect="certified", more="", name="c"):
    return f"{name}:\n  {VALUES[verdict]}\n  at_least: 0.5\n  expect: {expect}\n{more}"


@pytest.mark.parametrize("expect", VALUES)
def test_a_claim_passes_with_the_expected_verdict_and_no_other(box, expect):
    """A negative control passes only when refuted; a failure says what was found and what was expected."""
    box.spec("\n".join(claim(verdict, expect, name=verdict) for verdict in VALUES))
    result = box.run("-rA")
    result.assert_outcomes(passed=1, failed=3)
    assert result.ret == 1
    assert "Traceback" not in result.stdout.str() and "Error" not in result.stdout.str()
    for verdict, record in box.claims.items():
        assert (record["verdict"], record["expect"], record["passed"]) == (verdict, expect, verdict == expect)
        where = f"s.circuits.yaml::{verdict}::tiny"
        if verdict == expect:
            word = verdict.upper() + ("" if verdict == "certified" else " (as expected)")
            result.stdout.fnmatch_lines([f"{word} {where}"])
        else:
            wanted = "" if expect == "certified" else f"; the claim expects {expect}"
            result.stdout.fnmatch_lines(
                [HEADLINES[verdict] + wanted, f"  s.circuits.yaml:{record['line']} claim '{verdict}', model 'tiny'"]
            )
            result.stdout.fnmatch_lines([f"  rerun: pytest {where}"])
            word = verdict.upper() + ("" if expect == "certified" else f" (expected {expect})")
            result.stdout.fnmatch_lines([f"{word} {where}{f' - {verdict}: stated' if TELLING else ''}*"])


def test_a_study_passes_with_any_verdict_but_invalid(box):
    """`expect: measured` shows how a published bound fares; what could not be measured still fails."""
    box.spec("\n".join(claim(verdict, "measured", name=verdict) for verdict in VALUES))
    result = box.run("-rA")
    result.assert_outcomes(passed=3, failed=1)
    assert {name: record["passed"] for name, record in box.claims.items()} == {verdict: verdict != "invalid" for verdict in VALUES}
    result.stdout.fnmatch_lines(["REFUTED (a study) s.circuits.yaml::refuted::tiny"])
    result.stdout.fnmatch_lines(["INVALID (expected measured) s.circuits.yaml::invalid*"])
    result.stdout.fnmatch_lines(["refuted * refuted (a study)", "invalid * invalid (expected measured)"])


def test_each_verdict_has_its_letter_and_its_word(box):
    box.spec("\n".join(claim(verdict, name=verdict) for verdict in VALUES))
    box.run("-p", "no:cacheprovider")
    box.result.stdout.fnmatch_lines(["s.circuits.yaml .F[?]! *"])
    box.run("-p", "no:cacheprovider", "-v")
    box.result.stdout.fnmatch_lines([f"s.circuits.yaml::{verdict}::tiny {verdict.upper()} *" for verdict in VALUES])


@pytest.mark.parametrize("way", ["option", "ini", "option over ini"])
@pytest.mark.parametrize(("value", "expect", "code", "word"), [
    ("fail", "certified", 1, "INCONCLUSIVE"),
    ("skip", "certified", 0, "SKIPPED"),
    ("pass", "certified", 0, "INCONCLUSIVE"),
    ("skip", "refuted", 0, "SKIPPED"),
    ("pass", "refuted", 1, "INCONCLUSIVE (expected refuted)"),
])  # fmt: skip
def test_inconclusive_fails_skips_or_passes_by_option_and_ini(box, way, value, expect, code, word):
    """A lenient option never lets a negative control pass."""
    box.spec(claim("inconclusive", expect))
    if way != "option":
        box.pytester.makeini(
            f"[pytest]\ncircuits_inconclusive = {'fail' if 'over' in way and value != 'fail' else 'skip' if 'over' in way else value}\n"
        )
    box.run("-v", *([f"--circuits-inconclusive={value}"] if "option" in way else []))
    assert box.result.ret == code
    box.result.stdout.fnmatch_lines([f"s.circuits.yaml::c::tiny {word}*"])
    assert box.verdicts == {"c::tiny": "inconclusive"}
    outcome = {"SKIPPED": "skipped"}.get(word, "passed" if code == 0 else "failed")
    assert box.claims["c"]["outcome"] == outcome


def test_leniency_covers_no_other_verdict(box):
    box.spec("\n".join(claim(verdict, name=verdict) for verdict in VALUES))
    box.run("--circuits-inconclusive=pass").assert_outcomes(passed=2, failed=2)
    assert box.result.ret == 1


def test_an_inconclusive_claim_says_how_many_examples_would_settle_it(box):
    box.spec(claim("inconclusive"))
    box.run()
    box.result.stdout.fnmatch_lines(["*the interval straddles 'at least 0.5'; about 990 examples instead of 100 would probably settle it*"])


def test_what_is_no_number_is_invalid(box):
    """Neither a comparison with NaN nor the table at the end may turn it into anything else."""
    box.spec("\n".join(f"{r}-{b}:\n  stated: {{raises: {r}}}\n  {b}: 0.5" for r in ("nan", "infinite") for b in ("at_least", "at_most")))
    assert box.run().ret == 1
    assert len(box.claims) == 4
    for record in box.claims.values():
        assert (record["verdict"], record["estimate"], record["interval"], record["n"]) == ("invalid", None, None, 0)
        assert "the estimate is not a finite number" in record["reason"]


def test_a_reason_of_several_lines_is_shown_whole(box):
    box.spec("c:\n  stated: {raises: lines}\n  at_least: 0.1")
    box.run()
    box.result.stdout.fnmatch_lines(["invalid: stated: first line", "  s.circuits.yaml:8 claim*", "  first line", "  second line"])


def test_bounds_of_all_three_kinds(box):
    box.spec("""
least:
  stated: {value: 0.5, low: 0.4, high: 0.6}
  at_least: 0.4
most:
  stated: {value: 0.5, low: 0.4, high: 0.6}
  at_most: 0.6
inside:
  stated: {value: 0.5, low: 0.4, high: 0.6}
  within: [0.4, 0.6]
above:
  stated: {value: 0.5, low: 0.4, high: 0.6}
  within: [0.61, 0.9]
across:
  stated: {value: 0.5, low: 0.4, high: 0.6}
  within: [0.1, 0.5]
""")
    box.run()
    assert [c["verdict"] for c in box.report["claims"]] == ["certified", "certified", "certified", "refuted", "inconclusive"]
    assert [c["bound"] for c in box.report["claims"]] == [
        {"at_least": 0.4},
        {"at_most": 0.6},
        {"within": [0.4, 0.6]},
        {"within": [0.61, 0.9]},
        {"within": [0.1, 0.5]},
    ]


def test_an_unsettled_estimate_is_inconclusive_whatever_its_interval(box):
    box.spec("c:\n  stated: {value: 0.9, low: 0.8, high: 1.0, unsettled: the controls cannot be told apart}\n  at_least: 0.5")
    assert box.run().ret == 1
    assert box.verdicts == {"c::tiny": "inconclusive"}
    assert "the controls cannot be told apart" in box.claims["c"]["reason"]


def test_flipping_a_threshold_turns_exactly_that_claim(box):
    text = "\n".join(f"{name}:\n  stated: {{low: 0.4, high: 0.6}}\n  at_least: {bound}" for name, bound in (("a", 0.3), ("b", 0.31)))
    box.spec(text)
    box.run()
    assert box.verdicts == {"a::tiny": "certified", "b::tiny": "certified"}
    box.spec(text.replace("0.31", "0.7"))
    box.run()
    assert box.verdicts == {"a::tiny": "certified", "b::tiny": "refuted"}


def test_xfail_covers_claims_that_fail_and_none_that_were_not_measured(box):
    """An invalid claim is never a pass and never a skip."""
    outcomes = {
        ("refuted", "true"): "xfailed", ("refuted", "false"): "xfailed", ("inconclusive", "true"): "xfailed",
        ("certified", "true"): "failed", ("certified", "false"): "xpassed", ("invalid", "true"): "failed", ("invalid", "false"): "failed",
    }  # fmt: skip
    marks = {key: f"  marks: [{{xfail: {{reason: known, strict: {key[1]}}}}}]" for key in outcomes}
    box.spec("\n".join(claim(verdict, name=f"{verdict}-{strict}", more=mark) for (verdict, strict), mark in marks.items()))
    result = box.run("-v")
    result.assert_outcomes(xfailed=3, xpassed=1, failed=3)
    assert {name: (c["verdict"], c["outcome"]) for name, c in box.claims.items()} == {f"{v}-{s}": (v, o) for (v, s), o in outcomes.items()}
    result.stdout.fnmatch_lines(["s.circuits.yaml::certified-true::tiny FAILED*", "*XPASS(strict)* known*"])


def test_xfail_covers_no_bug(box):
    box.spec("c:\n  stated: {raises: bug}\n  at_least: 0.1\n  marks: [xfail]")
    assert box.run().ret == 1


def test_skipped_claims_are_skipped_and_not_in_the_report(box):
    marks = ["skip", "{skip: {reason: later}}", "{skipif: {condition: true, reason: never here}}"]
    box.spec("\n".join(claim("refuted", name=f"c{i}", more=f"  marks: [{mark}]") for i, mark in enumerate(marks)))
    result = box.run()
    result.assert_outcomes(skipped=3)
    assert (result.ret, box.report["claims"]) == (0, [])


def test_marks_reach_fixtures_and_plugins(box):
    """`usefixtures` has to be there before pytest looks for fixtures."""
    box.pytester.makeconftest("""
import pytest
@pytest.fixture
def announced(request):
    print("keyword", request.node.get_closest_marker("team").kwargs["name"])
    yield
    print("torn down")
""")
    box.pytester.makeini("[pytest]\nmarkers =\n    team: who cares\n")
    box.spec(claim("certified", more="  marks: [{usefixtures: [announced]}, {team: {name: maths}}]"))
    result = box.run("-s", "--strict-markers")
    result.stdout.fnmatch_lines(["*keyword maths", "*torn down"])


def test_marks_that_mean_nothing_are_mistakes_of_the_spec(box):
    told = {
        "slwo": "'slwo' not found in `markers` configuration option",
        "{xfail: {raises: ValueError}}": "xfail takes no 'raises' here; leave it out",
        "_hidden": "Marker name must NOT start with underscore",
    }
    box.spec("\n".join(claim("certified", name=f"c{i}", more=f"  marks: [{mark}]") for i, mark in enumerate(told)))
    assert box.run("--strict-markers").ret == pytest.ExitCode.INTERRUPTED
    box.result.stdout.fnmatch_lines([f"s.circuits.yaml:{8 + 5 * i}:3: claims.c{i}.marks: {text}*" for i, text in enumerate(told.values())])
    assert "Traceback" not in box.result.stdout.str()


def test_an_unforeseen_exception_is_shown_with_its_traceback_and_is_never_a_pass(box):
    """Not even where the claim expects to be invalid."""
    box.spec("c:\n  stated: {raises: bug}\n  at_least: 0.1\n  expect: invalid\nfine:\n  stated: {}\n  at_least: 0.1")
    result = box.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["s.circuits.yaml !. *", "*raise KeyError(*", "E *KeyError: 'a bug in a property'"])
    record = box.claims["c"]
    assert (record["verdict"], record["passed"], record["outcome"]) == ("invalid", False, "failed")
    assert record["reason"] == "internal error: KeyError: 'a bug in a property'"
    assert box.verdicts["fine::tiny"] == "certified"


def test_a_user_fixture_that_raises_makes_the_claim_invalid(box):
    box.pytester.makeconftest("import pytest\n@pytest.fixture(autouse=True)\ndef service():\n    raise OSError('no connection')\n")
    box.spec(claim("certified"))
    result = box.run()
    result.assert_outcomes(errors=1)
    assert result.ret == 1
    assert (box.claims["c"]["verdict"], box.claims["c"]["reason"]) == ("invalid", "internal error: OSError: no connection")


def test_a_keyboard_interrupt_ends_the_run_and_keeps_what_was_judged(box):
    box.spec(f"{claim('certified')}\nstop:\n  stated: {{raises: interrupt}}\n  at_least: 0.1\nafter:\n  stated: {{}}\n  at_least: 0.1")
    result = box.run(no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert box.verdicts == {"c::tiny": "certified"}
    assert not list(box.path.glob("report.json?*")), "no half-written report is left"


def test_a_claim_that_is_expected_to_be_invalid_must_have_been_tried(box):
    """A mistyped path, or measurements that are not there offline, are not what anybody expected."""
    box.spec(claim("invalid", "invalid"))
    assert box.run().ret == 0
    assert box.run("--circuits-model", "tiny=nowhere").ret == 1
    assert box.verdicts == {"c::tiny": "invalid"}
    assert box.run("--circuits-offline", "--circuits-cache-dir=empty").ret == 1
    assert box.claims["c"]["passed"] is False
