"""Names that repeat are numbered."""

from pytest_circuits.core.unique_names import unique_name, unique_names


def test_names_that_repeat_are_numbered_in_order():
    assert unique_names(["a", "b", "a", "a"]) == ["a", "b", "a-2", "a-3"]


def test_a_numbered_name_avoids_the_names_before_it():
    assert unique_names(["a-2", "a", "a"]) == ["a-2", "a", "a-3"]


def test_a_free_name_stays_as_it_is():
    assert unique_name("a", {"b"}.__contains__) == "a"
    assert unique_name("a", {"a", "a-2"}.__contains__) == "a-3"
