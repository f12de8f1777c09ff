"""The tutorial shows what its commands print: spec, Python test and every console block, run in order in one folder."""

from __future__ import annotations

import pytest

from docs import consoles

pytestmark = pytest.mark.extensive


def test_the_tutorial_shows_what_its_commands_print(tmp_path):
    """If this fails after a change of wording: `python -m docs.consoles`."""
    shown = consoles.PAGE.read_text(encoding="utf-8")
    printed = consoles.rendered(shown, tmp_path)
    assert printed.count("```console") == 7
    assert consoles.without_times(printed).splitlines() == consoles.without_times(shown).splitlines()
