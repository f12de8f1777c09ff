"""The most telling details of a claim, by property."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LONGEST = 12  # unit names shown of a set


def telling(record: Mapping[str, Any]) -> list[str]:
    """Lines that say what was compared with what; none where nothing was measured, or the property tells nothing.

    A property says them itself, in its details under `told`.
    """
    details = record["details"]
    if record["estimate"] is None or not details:
        return []
    if "told" in details:
        return list(details["told"])
    make = _TELLING.get(record["property"])
    return make(details) if make else []


def names(units: list[str]) -> str:
    """A set of units, shortened."""
    more = f" and {len(units) - LONGEST} more" if len(units) > LONGEST else ""
    return f"{{{', '.join(units[:LONGEST])}{more}}}"


def _set(details: Mapping[str, Any]) -> str:
    return f"{names(details['units'])} ({details['heads']} heads, {details['mlps']} MLPs)"


def _reuse(d: Mapping[str, Any]) -> list[str]:
    size = f"circuits have {d['circuit_size']} of {d['universe']} components"
    found = f"shared set of {d['discovery']} discovery examples: {_set(d['shared_set'])}; {size}"
    if d["empty_shared_set"]:
        top = ", ".join(f"{u} {share:.0%}" for u, share in list(d["most_frequent"].items())[:5])
        found = f"the shared set is empty; most frequent: {top}"
    return [found, f"accuracy of the intact model: {d['accuracy']:.3f}"]


def _necessity(d: Mapping[str, Any]) -> list[str]:
    return [
        f"removed: shared set of {d['circuit_of']} {_set(d['shared_set'])}",
        f"accuracy: intact {d['accuracy']:.3f}, without the shared set {d['accuracy_without_shared_set']:.3f}, "
        f"without a control ({d['control']['rule']}, {d['control']['draws']} draws) {d['accuracy_without_control']:.3f}",
        f"rank of the shared set among the controls: p = {d['rank_p']:.3f}",
    ]


def _jaccard(d: Mapping[str, Any]) -> list[str]:
    sets = [f"{task}: {_set(s)}" for task, s in d["shared_sets"].items()]
    ceiling = ", ".join(f"{task} {'none' if c is None else format(c, '.2f')}" for task, c in d["noise_ceiling"].items())
    by_type = d["chance"]["by_type"]
    chance = f"chance level (same numbers of heads and MLPs): {by_type['mean']:.2f} [{by_type['low']:.2f}, {by_type['high']:.2f}]"
    return [*sets, f"{chance}; noise ceiling (split halves): {ceiling}"]


def _agreement(d: Mapping[str, Any]) -> list[str]:
    gap = d["rank_gap"]
    effect = f"C: {d['effect']} under {d['ablation']} ablation on {d['evaluation']}"
    null = f"rankings that have nothing to do with each other: 0 ± {d['null_standard_deviation']:.2f}"
    heroes = f"hidden heroes {names(gap['heroes'])}, gradient bloats {names(gap['bloats'])} by {gap['rule']}"
    return [
        f"G: {d['gradient']} on {d['discovery']} examples; {effect}; {d['components']} components",
        f"ρ = {d['spearman']:.2f}, τ-b = {d['kendall_tau_b']:.2f}; {null}",
        f"{heroes}; {gap['expected_by_chance']:.1f} expected by chance",
    ]


def _faithfulness(d: Mapping[str, Any]) -> list[str]:
    m = d["mean_metric"]
    how = f"({d['attribution']}, {d['site']}, {d['ablation']} ablation)"
    metric = f"intact {m['intact']:.3g}, circuit kept {m['kept']:.3g}, circuit removed {m['removed']:.3g}"
    return [
        f"{d['neurons']} of {d['universe']} neurons {how}; completeness {d['completeness']:.2f}",
        f"mean metric: {metric}, all neurons ablated {m['nothing']:.3g}",
    ]


_TELLING = {
    "reuse": _reuse,
    "necessity": _necessity,
    "jaccard": _jaccard,
    "gradient_ablation_agreement": _agreement,
    "neuron_faithfulness": _faithfulness,
}
