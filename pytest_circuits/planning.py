"""`--circuits-plan`: what a run would measure, without loading a model."""

from __future__ import annotations

import pytest


def show(session: pytest.Session) -> None:
    """Print a forecast for each collected claim, and the sum; measurements that claims share count once."""
    from .collect import ClaimItem
    from .lab.plan import Planner
    from .plugin import STATE
    from .properties import PROPERTIES
    from .properties.base import Claim

    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    planner = Planner(session.config.stash[STATE].lab)
    items = [item for item in session.items if isinstance(item, ClaimItem)]
    lines = []
    for item in items:
        case = item.case
        forecast = planner.add(PROPERTIES.get(case.property).judge(Claim(case.parameters, case.model, case.tasks)))
        lines += [item.nodeid, f"    {forecast}", *(f"    note: {note}" for note in forecast.notes)]
    lines += ["", f"{len(items)} claims; {planner.total}", "Forwards and backwards are an estimate of batched model calls."]
    if reporter is not None:
        reporter.section("plan")
        for line in lines:
            reporter.write_line(line)
