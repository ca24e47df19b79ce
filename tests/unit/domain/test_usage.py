from __future__ import annotations

import pytest

from cleveragents.domain.errors import RequestError
from cleveragents.domain.usage import PART_OF, USAGE_FIELDS, Usage


@pytest.mark.parametrize("wrong", [-1, 1.0, True, "7", None])
def test_usage_refuses_what_is_not_a_count(wrong):
    with pytest.raises(RequestError) as caught:
        Usage(input_tokens=5, web_searches=wrong)
    assert str(caught.value) == f"`web_searches` must be a whole number from 0, got {wrong!r}"
    assert caught.value.code == "CA1005"


def test_usage_keeps_its_counts():
    assert Usage(input_tokens=5, output_tokens=7) == Usage(output_tokens=7, input_tokens=5)


def test_every_part_and_every_whole_is_a_count_of_usage():
    assert {*PART_OF, *(whole for wholes in PART_OF.values() for whole in wholes)} < {*USAGE_FIELDS}
