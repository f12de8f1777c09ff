"""Files appear whole, with the usual mode, or not at all."""

import os
import stat

import pytest

from pytest_circuits.core.atomic import replacement, write_atomic


def test_a_file_is_written_whole_with_its_folders_and_readable_by_all(tmp_path):
    path = tmp_path / "new" / "folder" / "file.txt"
    write_atomic(path, "é\n")
    assert path.read_bytes() == "é\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    write_atomic(path, b"\xff")
    assert path.read_bytes() == b"\xff"
    assert os.listdir(path.parent) == ["file.txt"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.svg"
    write_atomic(path, "old")
    with pytest.raises(KeyboardInterrupt), replacement(path, ".svg") as temporary:
        assert temporary.suffix == ".svg"
        assert temporary.parent == tmp_path
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.svg"]


def test_a_link_is_replaced_and_its_target_stays(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("target")
    link.symlink_to(target)
    write_atomic(link, "new")
    assert target.read_text() == "target"
    assert not link.is_symlink()
    assert link.read_text() == "new"


def test_a_folder_that_cannot_be_written_raises_and_leaves_nothing(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match="file"):
        write_atomic(tmp_path / "file" / "below", "text")
    assert os.listdir(tmp_path) == ["file"]
