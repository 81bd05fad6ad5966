"""Numbers of operations: which are to come, under way, past."""

from __future__ import annotations

import pytest

from endpoints.core.errors import ProtocolError
from endpoints.core.operations import REMEMBERED, Operations


def test_numbers_follow_one_another_unless_asked_for() -> None:
    operations = Operations(5, 24)
    assert [operations.number(None), operations.number(9), operations.number(None)] == [5, 9, 10]
    assert operations.number(7) == 7


def test_no_number_is_used_twice() -> None:
    operations = Operations(1, 24)
    operations.number(3)
    with pytest.raises(ProtocolError, match="operation 3 "):
        operations.number(3)


def test_what_was_skipped_is_to_come_until_it_is_far_behind() -> None:
    operations = Operations(1, 24)
    operations.number(4)
    assert operations.is_past(4)  # and is not there any more
    assert not operations.is_past(2)
    operations.number(2 + REMEMBERED)
    assert operations.is_past(2)
    with pytest.raises(ProtocolError, match="operation 2 "):
        operations.number(2)


def test_nothing_begins_that_is_not_prepared() -> None:
    with pytest.raises(ProtocolError, match="no operation"):
        _ = Operations(1, 24).last_prepared
