"""Ids of the real world: that they are what they claim to be."""

from uuid import RFC_4122, UUID

from comity.engines.system import SystemIds

NOW_MS = 1_700_000_000_123
MANY = 1_000  # several pools of random tails


def test_a_request_id_is_a_uuid_of_version_7_that_begins_with_the_time():
    ids = SystemIds()
    for _ in range(MANY):
        request_id, trace_id = ids.new_request(NOW_MS)
        found = UUID(request_id)
        assert request_id == trace_id == found.hex
        assert (found.version, found.variant) == (7, RFC_4122)
        assert found.int >> 80 == NOW_MS


def test_the_rest_of_a_request_id_is_random_in_every_digit_but_version_and_variant():
    ids = SystemIds()
    made = [ids.new_request(NOW_MS)[0] for _ in range(MANY)]
    assert len(set(made)) == MANY
    digits = [set(place) for place in zip(*made, strict=True)]
    assert [len(found) for found in digits] == [1] * 13 + [16] * 3 + [1] + [16] * 15


def test_ids_made_later_sort_after_those_made_earlier():
    ids = SystemIds()
    assert ids.new_request(NOW_MS)[0] < ids.new_request(NOW_MS + 1)[0]
