"""The public names: a tested list, each importable, each typed."""

import comity


def test_every_public_name_is_there_and_listed():
    assert sorted(comity.__all__) == sorted(comity._MODULES)
    for name in comity.__all__:
        assert getattr(comity, name).__name__ == name
        assert name in dir(comity)
