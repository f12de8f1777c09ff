from __future__ import annotations

import pytest

from pytest_circuits.measurement.executor import Executor
from pytest_circuits.measurement.store import Store
from tests.fakes.executor import Opener, load_task, model_directory


@pytest.fixture
def model(tmp_path):
    return model_directory(tmp_path / "model")


@pytest.fixture
def new_executor(tmp_path):
    """Makes an executor as a new session would have it: the same folder, nothing in memory."""

    def make(opener=None, folder="cache", load_task=load_task, **options):
        executor = Executor(Store(tmp_path / folder), opener=opener or Opener(), load_task=load_task, **options)
        executor.opener = executor.models._opener
        return executor

    return make
