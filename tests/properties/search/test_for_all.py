"""`for_all` in spec files, on models of which the smallest counterexample is known."""

from __future__ import annotations

import json
import re

import hypothesis
import pytest
from scipy.stats import beta

from pytest_circuits.spec.load import SpecErrors, load_suite

FLIPS = "remove: {units: [L1MLP]}, check: answer_changes, examples: 60"
SMALLEST = {"clean": "capital of Kenya", "corrupt": "capital of Austria", "answer": "Nairobi", "foils": ["Vienna"]}


def _keys(database):
    """All keys of a hypothesis database in a folder."""
    return {*database.fetch(database._metakeys_name)}


def fields(found):
    return {key: found[key] for key in SMALLEST}


@pytest.mark.extensive
def test_a_planted_counterexample_is_found_and_shrunk_to_the_smallest_one(project):
    """Two of eight countries have a spare: the first of these, the first template and the first other country are the smallest."""
    record = project.run(claim=FLIPS)
    assert (record["verdict"], record["passed"]) == ("refuted", False)
    details = record["details"]
    assert fields(details["counterexample"]) == SMALLEST
    assert (details["counterexample"]["metric_intact"], details["counterexample"]["metric"]) == pytest.approx((32, 16))
    assert record["estimate"] == pytest.approx(0.75, abs=0.2) and record["n"] == 60
    assert record["refuted_at"] == 1e-5 and "a counterexample among" in record["reason"]
    project.result.stdout.fnmatch_lines(["*smallest failing example: 'capital of Kenya' → 'Nairobi': the answer stays right*"])


def test_a_hundred_examples_cost_a_few_forwards_and_shrinking_a_few_more(project, planted):
    """Both templates have a length of their own: two batches for the intact model and two for the changed one, twice where some
    examples turned out to be known only after the first look.
    """
    holds = project.run("--circuits-no-cache", claim=FLIPS.replace("60", "100"), model="plain")
    assert holds["verdict"] == "certified" and holds["details"]["examples_tried"] >= 100
    assert holds["cost"]["forwards"] <= 8
    fails = project.run("--circuits-no-cache", claim=FLIPS.replace("60", "100"))
    assert fails["cost"]["forwards"] <= 40 and fails["cost"]["backwards"] == 0


@pytest.mark.parametrize("how", ["remove: {units: [L1MLP]}", "remove: {size: 1, inside: {units: [L1MLP]}}"])
@pytest.mark.parametrize("where", ["template", "file"])
@pytest.mark.parametrize(("country", "city", "verdict"), [("Kenya", "Nairobi", "refuted"), ("Cuba", "Havana", "certified")])
def test_a_grammar_of_a_single_prompt_is_judged_like_any_other(project, how, where, country, city, verdict):
    """Nothing is left to choose, and nothing to shrink."""
    row = {"clean": f"capital of {country}", "corrupt": "capital of Peru", "answer": city}
    (project.path / "row.jsonl").write_text(json.dumps(row | {"foil": "Lima"}), encoding="utf-8")
    template = {"template": "capital of {C}", "corrupt": "capital of {D}", "answer": city, "foil": "Lima"}
    task = (
        {"builtin": "template", "slots": {"C": [country], "D": ["Peru"]}, **template, "n": 1}
        if where == "template"
        else {"file": "row.jsonl"}
    )
    project.spec(f"{how}, check: answer_changes, examples: 10", model="spared")
    spec = project.path / "s.circuits.yaml"
    spec.write_text(re.sub("capitals: {.*", f"capitals: {json.dumps(task)}", spec.read_text("utf-8")), "utf-8")
    for _ in range(2):
        record = project.run()
        assert (record["verdict"], record["estimate"], record["n"]) == (verdict, float(verdict == "certified"), 10)
        found = record["details"]["counterexample"]
        assert found is None if verdict == "certified" else fields(found) == row | {"foils": ["Lima"]}


def test_without_a_counterexample_the_claim_is_certified_as_a_search(project):
    record = project.run(claim=FLIPS, model="plain")
    assert (record["verdict"], record["estimate"], record["n"]) == ("certified", 1.0, 60)
    assert record["interval"] == pytest.approx([beta.ppf(0.025, 60, 1), 1.0])
    assert record["details"]["fails_at_most"] == pytest.approx(1 - 0.05 ** (1 / 60))
    assert re.fullmatch(
        r"no counterexample among \d+ examples, which is a search and not a proof: "
        r"with 95% confidence at most 4.87% of independent draws fail",
        record["reason"],
    )
    assert record["details"]["counterexample"] is None and record["bound"] == {"at_least": 1.0}


@pytest.mark.parametrize(("bound", "verdict"), [("at_least: 0.5", "certified"), ("at_least: 0.95", "refuted"), ("at_most: 0.5", "refuted")])
def test_with_another_bound_it_is_about_the_share_of_examples_that_hold(project, bound, verdict):
    record = project.run(claim=FLIPS.replace("60", "100"), bound=f"    {bound}\n")
    assert record["verdict"] == verdict
    held = round(record["estimate"] * record["n"])
    assert record["interval"] == pytest.approx([beta.ppf(0.025, held, 101 - held), beta.ppf(0.975, held + 1, 100 - held)])


def test_the_printed_line_of_yaml_brings_the_example_back(project):
    """Where neither the search nor the database would find it."""
    record = project.run(claim=FLIPS)
    line = next(text for text in project.result.outlines if "add to for_all: " in text).partition("add to for_all: ")[2]
    assert line == record["details"]["counterexample"]["yaml"]
    narrow = FLIPS.replace("60", "1")
    text = json.dumps({"builtin": "template", "template": "capital of {C}", "corrupt": "capital of {D}", "answer": "{C.capital}",
                       "foil": "{D.capital}", "facts": {"capital": {"Austria": "Vienna", "Cuba": "Havana"}},
                       "slots": {"C": ["Austria", "Cuba"], "D": ["Austria", "Cuba"]}, "n": 2})  # fmt: skip
    for claim, verdict in ((narrow, "certified"), (f"{narrow}, {line}", "refuted")):
        project.spec(claim)
        spec = project.path / "s.circuits.yaml"
        spec.write_text(re.sub("capitals: .*", f"capitals: {text.replace(chr(92), chr(92) * 2)}", spec.read_text("utf-8")), "utf-8")
        again = project.run("--circuits-no-cache")
        assert again["verdict"] == verdict
    assert fields(again["details"]["counterexample"]) == SMALLEST and again["details"]["explicit"] == 1


def test_a_failing_example_is_kept_run_first_the_next_time_and_forgotten_when_it_holds(project):
    first = project.run(claim=FLIPS)
    second = project.run("--circuits-offline")
    assert (first["details"]["from_the_database"], second["details"]["from_the_database"]) == (0, 1)
    assert fields(second["details"]["counterexample"]) == SMALLEST and second["cost"]["forwards"] == 0
    mended = project.run(f"--circuits-model=m={project.path / 'plain'}")
    assert (mended["verdict"], mended["details"]["from_the_database"]) == ("certified", 1)
    assert project.run(f"--circuits-model=m={project.path / 'plain'}")["details"]["from_the_database"] == 0


def test_an_example_that_was_kept_unshrunk_is_shrunk_when_it_fails_again(project):
    """First it was found under a profile that does not shrink."""
    project.pytester.makeconftest("""
from hypothesis import Phase, settings
settings.register_profile("raw", settings.get_profile("of the test"), phases=[Phase.reuse, Phase.generate])
""")
    claim = f"{FLIPS.replace('60', '3')}, seed: 8"
    raw = project.run("--hypothesis-profile=raw", claim=claim)
    assert raw["verdict"] == "refuted" and fields(raw["details"]["counterexample"]) != SMALLEST
    hypothesis.settings.load_profile("of the test")
    for options in ((), ("--circuits-offline",)):
        shrunk = project.run(*options, claim=claim)
        assert shrunk["details"]["from_the_database"] >= 1 and fields(shrunk["details"]["counterexample"]) == SMALLEST


def test_an_example_that_only_the_database_knows_is_shrunk_too_and_the_next_run_measures_nothing(project):
    """The search of one example finds none; the database knows one that is not the smallest."""
    from hypothesis.database import choices_to_bytes

    project.run(claim=FLIPS)
    database = hypothesis.settings.default.database
    [key] = [one for one in _keys(database) if one.startswith(b"pytest-circuits.for_all.")]
    for seed in range(50):
        for kept in list(database.fetch(key)):
            database.delete(key, kept)
        claim = f"{FLIPS.replace('60', '1')}, seed: {seed}"
        if project.run(claim=claim)["verdict"] == "certified":
            break
    database.save(key, choices_to_bytes((1, 7, 3)))  # the capital of Peru, after that of France
    for options in ((), ("--circuits-offline",)):
        record = project.run(*options, claim=claim)
        assert record["verdict"] == "refuted" and fields(record["details"]["counterexample"]) == SMALLEST
        assert record["details"]["from_the_database"] >= 1 and record["estimate"] == 1


@pytest.mark.parametrize(
    ("units", "judged"),
    [(["L1MLP"], True), (["L0H0"], False), (["L1MLP", "L2H0"], False), (["L2H0"], None), (["L9H0"], "invalid")],
)
def test_an_explicit_example_of_a_set_that_the_claim_is_not_about_refutes_nothing(project, units, judged):
    """As when the line was kept and the claim, or a shared set, has changed since. All sets but those with L1MLP do no harm."""
    where = "{size: 1, inside: {units: [L2H0, L2H1]}}" if judged is not True else "{size: 1, outside: {units: [L2H0]}}"
    explicit = f"explicit: [{json.dumps(SMALLEST | {'units': units})}]"
    record = project.run(claim=f"remove: {where}, check: answer_stays, examples: 5, seed: 1, {explicit}", model="plain")
    if judged == "invalid":
        assert record["verdict"] == "invalid" and "'L9H0' does not exist" in record["reason"]
        return
    message = " ".join(record["details"]["notes"])
    assert (record["verdict"] == "refuted") is (judged is True)
    assert ("the claim is not about the set" in message) is (judged is False)


def test_what_was_measured_once_is_not_measured_again(project):
    """Also of a claim that is refuted, and at whatever the database remembers."""
    once = project.run(claim=FLIPS)
    again = project.run("--circuits-offline")
    assert again["cost"]["forwards"] == 0
    for key in ("verdict", "estimate", "interval", "n"):
        assert again[key] == once[key]


def test_the_smallest_set_that_does_harm_is_found(project):
    """Removing one of the two heads costs nothing, removing both everything; all else but the MLP is dead."""
    outside = "outside: {units: [L2MLP]}}, check: answer_stays, examples: 150"
    alone = project.run(claim=f"remove: {{size: 1, {outside}", model="backup")
    assert alone["verdict"] == "certified" and alone["details"]["sets"] == {"of": 14, "least": 1, "most": 1, "including": []}
    some = project.run(claim=f"remove: {{size: [1, 5], {outside}", model="backup")
    assert some["verdict"] == "refuted"
    first = json.loads((project.path / "backup.jsonl").read_text("utf-8").split("\n")[0])
    found = some["details"]["counterexample"]
    assert found["units"] == ["L0H1", "L1H3"] and found["clean"] == first["clean"]
    assert some["cost"]["forwards"] <= 60
    line = found["yaml"]
    repeated = project.run(claim=f"remove: {{size: [1, 5], {outside.replace('150', '1')}, {line}", model="backup")
    assert repeated["verdict"] == "refuted" and repeated["details"]["counterexample"]["units"] == ["L0H1", "L1H3"]


def test_a_share_of_the_metric_can_be_asked_to_be_kept(project):
    """With L1MLP alone the spared countries keep half of their logit difference, the others all of it."""
    half = project.run(claim="keep: {units: [L1MLP]}, check: metric_kept, share: 0.49, examples: 40")
    more = project.run(claim="keep: {units: [L1MLP]}, check: metric_kept, share: 0.51, examples: 40")
    assert (half["verdict"], more["verdict"]) == ("certified", "refuted")
    assert fields(more["details"]["counterexample"]) == SMALLEST


def test_the_set_can_be_the_shared_set_of_a_task(project):
    how = "examples: 40, size: 1, split: in_sample"
    record = project.run(claim=f"remove: {{task: capitals, p: 0.9}}, check: answer_changes, {how}", model="plain")
    assert record["verdict"] == "certified" and record["details"]["components"]["units"] == ["L1MLP"]
    record = project.run(claim=f"remove: {{size: 1, outside: {{task: capitals, p: 0.9}}}}, check: answer_stays, {how}", model="plain")
    assert record["verdict"] == "certified" and record["details"]["sets"]["of"] == 8


def test_a_negative_control_passes_when_it_is_refuted(project):
    record = project.run(claim=FLIPS, bound="    expect: refuted\n")
    assert (record["verdict"], record["passed"], project.result.ret) == ("refuted", True, 0)


def test_prompts_that_the_intact_model_gets_wrong_are_no_counterexamples(project):
    """With every other answer wrong, there is nothing to explain; with a lower gate the others are judged."""
    text = json.dumps({"Austria": "Vienna", "Cuba": "Paris", "Egypt": "Paris", "France": "Paris", "Italy": "Lima", "Japan": "Lima",
                       "Kenya": "Lima", "Peru": "Lima"})  # fmt: skip
    for gate, verdict in (("", "invalid"), (", min_accuracy: 0.2", "certified")):
        project.spec(f"remove: {{units: [L1MLP]}}, check: answer_changes, examples: 100{gate}", model="plain")
        spec = project.path / "s.circuits.yaml"
        spec.write_text(re.sub(r'"capital": \{.*?\}', f'"capital": {text}', spec.read_text("utf-8")), "utf-8")
        record = project.run()
        assert record["verdict"] == verdict, record["reason"]
        if verdict == "invalid":
            assert re.match(r"of 100 prompts drawn from task 'capitals', 0 do not fit the tokenizer and the intact model answers \d+ of",
                            record["reason"])  # fmt: skip
        else:
            assert record["n"] == 100 - record["details"]["independent_draws"]["answered_wrongly"] < 60


def test_pairs_that_do_not_fit_the_tokenizer_are_left_out(project):
    """The corrupt prompt of one template in two is longer."""
    spec = project.path / "s.circuits.yaml"
    fitting, longer = (f'"{first} of {{D}}", "the capital of {{D}}"' for first in ("capital", "the capital"))
    for corrupt, verdict in ((longer, "invalid"), (fitting, "certified")):
        project.spec(FLIPS, model="plain")
        spec.write_text(spec.read_text("utf-8").replace(fitting, corrupt), "utf-8")
        record = project.run()
        assert record["verdict"] == verdict
        if verdict == "invalid":
            assert re.search(r"of 60 prompts drawn from task 'capitals' do not fit the tokenizer, and \d+ are eligible", record["reason"])
    project.spec(FLIPS.replace("check", "min_accuracy: 0.3, check"), model="plain")
    spec.write_text(spec.read_text("utf-8").replace(fitting, longer), "utf-8")
    record = project.run()
    assert record["verdict"] == "certified" and 15 < record["details"]["independent_draws"]["unfit"] < 45
    assert record["n"] == 60 - record["details"]["independent_draws"]["unfit"]


@pytest.mark.extensive
def test_profiles_seeds_and_phases_of_hypothesis_count(project):
    project.pytester.makeconftest("""
from hypothesis import Phase, settings
settings.register_profile("few", max_examples=7)
settings.register_profile("raw", phases=[Phase.explicit, Phase.reuse, Phase.generate], database=None)
settings.register_profile("none", phases=[Phase.explicit])
settings.register_profile("derandomized", derandomize=True, deadline=1, phases=list(Phase), database=None)
""")
    claim = "remove: {units: [L1MLP]}, check: answer_changes"
    few = project.run("--hypothesis-profile=few", claim=claim, model="plain")
    assert (few["n"], few["details"]["profile"]) == (7, "few")
    raw = project.run("--hypothesis-profile=raw", claim=claim)
    assert raw["verdict"] == "refuted" and raw["details"]["counterexample"]["answer"] in ("Nairobi", "Lima")
    none = project.run("--hypothesis-profile=none", claim=claim)
    assert none["verdict"] == "invalid" and "the hypothesis profile 'none' generates no examples" in none["reason"]
    derandomized = project.run("--hypothesis-profile=derandomized", claim=claim)
    assert derandomized["verdict"] == "refuted" and derandomized["details"]["from_the_database"] == 0
    seeded = [project.run(f"--hypothesis-seed={seed}", claim=FLIPS) for seed in (1, 1, 2)]
    assert [one["details"]["seed"] for one in seeded] == [1, 1, 2]
    assert all(fields(one["details"]["counterexample"]) == SMALLEST for one in seeded)
    assert seeded[0]["estimate"] == seeded[1]["estimate"] and len({one["estimate"] for one in seeded}) == 2
    assert all(one["details"]["from_the_database"] == 0 for one in seeded)


def test_other_seeds_draw_others_and_the_same_one_the_same(project):
    seeds = [project.run(*options, claim=f"{FLIPS}, seed: {seed}")["estimate"]
             for seed, options in ((0, ()), (0, ()), (1, ()), (0, ["--circuits-seed=1"]))]  # fmt: skip
    assert seeds[0] == seeds[1] and len(set(seeds)) > 1


def test_a_health_check_of_hypothesis_makes_the_claim_invalid_unless_it_is_suppressed(project):
    """One prompt in eight can be judged."""
    project.pytester.makeconftest("""
from hypothesis import HealthCheck, settings
settings.register_profile("lenient", suppress_health_check=list(HealthCheck), database=None)
""")
    wrong = {"Cuba": "Cairo", "Egypt": "Paris", "France": "Rome", "Italy": "Tokyo", "Japan": "Nairobi", "Kenya": "Lima", "Peru": "Havana"}
    facts = json.dumps({"Austria": "Vienna", **wrong})
    for options, verdict in (([], "invalid"), (["--hypothesis-profile=lenient"], "certified")):
        project.spec("remove: {units: [L1MLP]}, check: answer_changes, examples: 100, min_accuracy: 0", model="plain")
        spec = project.path / "s.circuits.yaml"
        spec.write_text(re.sub(r'"capital": \{.*?\}', f'"capital": {facts}', spec.read_text("utf-8")), "utf-8")
        record = project.run(*options)
        assert record["verdict"] == verdict, record["reason"]
        assert ("hypothesis' health check failed" in record["reason"]) is (verdict == "invalid")


def test_a_plan_stops_where_results_decide(project):
    project.spec(FLIPS.replace("60", "100"))
    result = project.pytester.runpytest_inprocess("-p", "no:cacheprovider", "s.circuits.yaml", "--circuits-plan", "--circuits-no-cache")
    result.stdout.fnmatch_lines([
        "    to measure: 2 Ablate, 1 Describe, 1 Encode; about 2 forwards and 0 backwards; 0 stored",
        "    note: if an example fails, shrinking it takes some batches more",
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("check: answer_stays", "give either remove or keep"),
        ("remove: {units: [L0H0]}, keep: {units: [L0H1]}, check: answer_stays", "give either remove or keep"),
        ("remove: {}, check: answer_stays", "give exactly one of units (by name), task (its shared set) and size"),
        ("remove: {units: [L0H0], size: 1}, check: answer_stays", "got units and size"),
        ("remove: {units: [L0H0], outside: {units: [L0H1]}}, check: answer_stays", "outside restricts the sets that are drawn"),
        ("remove: {units: [L0H0], p: 0.5}, check: answer_stays", "so it needs task"),
        ("remove: {size: 1, outside: {p: 0.5}}, check: answer_stays", "as units: [...] or as task: NAME"),
        ("remove: {units: [L0N1]}, check: answer_stays", "'L0N1' is not a component"),
        ("remove: {units: [L0H0]}, check: metric_kept", "metric_kept needs share"),
        ("remove: {units: [L0H0]}, check: answer_stays, share: 0.5", "share needs check: metric_kept"),
        ("remove: {units: [L0H0]}, check: metric_kept, share: 0.5, metric: log_prob", "a share of log_prob means nothing"),
        ("remove: {units: [L0H0]}, check: answer_stays, ablation: mean", "that mean ablation inserts depend on the other prompts"),
        ("remove: {units: [L0H0]}, check: answer_flips", "'answer_flips' is not allowed; did you mean 'answer_stays'? allowed: answer_"),
        ("remove: {task: nowhere}, check: answer_stays", "unknown task 'nowhere'"),
        ("remove: {units: [L0H0]}, check: answer_stays, max_n: 500", "max_n"),
        ("remove: {size: 1}, check: answer_stays, explicit: [{clean: a, corrupt: b, answer: c}]", "explicit example 1 needs units"),
        ("remove: {size: 1}, check: answer_stays, explicit: [{clean: a, corrupt: b, answer: c, units: []}]", "units is empty"),
        ("remove: {size: 1}, check: answer_stays, explicit: [{clean: a, corrupt: b, answer: c, units: [L0]}]", "'L0' is not a unit name"),
        ("remove: {size: 0}, check: answer_stays", "a circuit size is"),
    ],
)  # fmt: skip
def test_mistakes_are_told_before_anything_is_measured(project, claim, message):
    project.spec(claim)
    with pytest.raises(SpecErrors) as caught:
        load_suite(project.path / "s.circuits.yaml")
    assert message in str(caught.value)
    assert re.search(r"s\.circuits\.yaml:\d+:\d+: claims\.c\.for_all", str(caught.value))


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("remove: {size: 9}, check: answer_stays", "the largest sets are all 9 components; removing everything says nothing"),
        ("remove: {size: 4, of: mlps}, check: answer_stays", "sets of 4 components cannot be drawn: there are 3 MLPs"),
        ("remove: {size: 2, inside: {units: [L0H0]}}, check: answer_stays", "there are 1 components to choose from"),
        ("remove: {units: [L7H0]}, check: answer_stays", "'L7H0' does not exist: this model has layers 0–2"),
        ("remove: {units: [L0H0, L0H1, L0MLP, L1H0, L1H1, L1MLP, L2H0, L2H1, L2MLP]}, check: answer_stays", "the set is all 9 components"),
    ],
)  # fmt: skip
def test_sets_that_the_model_cannot_have_make_the_claim_invalid(project, claim, message):
    record = project.run(claim=claim)
    assert record["verdict"] == "invalid" and message in record["reason"]


@pytest.mark.extensive
def test_every_xdist_worker_has_the_same_tests_and_none_measures_what_is_stored(project):
    alone = project.run(claim=FLIPS, model="plain")
    result = project.pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "-n", "2", "s.circuits.yaml", "--circuits-json=out.json", "--circuits-offline"
    )
    assert result.ret == 0
    [record] = json.loads((project.path / "out.json").read_text(encoding="utf-8"))["claims"]
    assert (record["nodeid"], record["estimate"], record["interval"]) == (alone["nodeid"], alone["estimate"], alone["interval"])
