"""Where the hub's name means nothing, its client is not left to ask again and again."""

from __future__ import annotations

import socket
import time

import pytest

from pytest_circuits import ModelError
from pytest_circuits.model import hub_status as reaching_hub
from pytest_circuits.model.loading import load_model

PROXIES = ("http_proxy", "https_proxy", "all_proxy")


@pytest.fixture
def away(monkeypatch, tmp_path):
    """No network, no proxy, nothing downloaded; the hosts that were asked for."""
    from huggingface_hub import constants

    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "https://hub.example:8443/api")
    asked = []

    def refuse(host, *_, **__):
        asked.append(host)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return asked


def test_a_hub_id_is_refused_at_once_and_the_reason_told(away, monkeypatch):
    from huggingface_hub import constants

    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    with pytest.raises(ModelError, match=r"the hub hub\.example cannot be reached.*nor is there a directory of that name"):
        load_model("nobody/nothing", None, None, None)
    assert pauses == [], "the client's own retries wait 28 s in all"
    assert away == ["hub.example"], "asked once"
    assert constants.HF_HUB_OFFLINE is False, "put back"


def test_a_proxy_resolves_names_and_is_left_to(away, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert reaching_hub.unreachable() is None and away == []


def test_a_hub_that_has_an_address_is_asked(away, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [("", "", "", "", ("192.0.2.1", 443))])
    with reaching_hub.at_once() as told:
        assert told == "" and constants.HF_HUB_OFFLINE is False
