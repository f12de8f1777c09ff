"""Errors: reasons of refusals, for people and for programs."""

from __future__ import annotations

import pickle
import re

import pytest

from pytest_circuits.errors import Invalid, ReasonCode
from tests.paths import ROOT


@pytest.mark.parametrize("code", ReasonCode)
def test_a_reason_code_is_kebab_case_and_says_its_name(code):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code)
    assert code.name == code.value.upper().replace("-", "_")


def test_every_reason_code_is_used():
    """A code that nothing raises would be a promise that no report keeps."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "pytest_circuits").rglob("*.py")]
    named = {name for text in sources for name in re.findall(r"ReasonCode\.([A-Z_]+)", text)}
    assert set(ReasonCode.__members__) == named


def test_a_refusal_carries_details_and_code_through_pickling():
    refusal = pickle.loads(pickle.dumps(Invalid("too few", {"n": 3}, code=ReasonCode.TOO_FEW_GROUPS)))
    assert (str(refusal), refusal.details, refusal.code) == ("too few", {"n": 3}, "too-few-groups")
    assert Invalid("unknown").code == ReasonCode.INVALID
    assert Invalid("of another package", code="my-reason").code == "my-reason"
