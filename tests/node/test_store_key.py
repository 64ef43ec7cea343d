"""The key of a store is made while nothing is hidden, and refused if it opens nothing of what is."""

import pytest

from comity.core.document.slices import whole
from comity.core.redaction import Vault
from comity.errors import UnavailableError
from comity.node.store_key import store_key, vault_cipher
from comity.runtime.session.sealing import open_vault, seal

NAMES = ("default\x1fs", "default\x1ft")


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.delenv("COMITY_VAULT_KEY", raising=False)
    return tmp_path / "work.db"


def sealed_under(key):
    vault = Vault.from_entropy(bytes(16))
    return [(name, whole(seal(vault_cipher(key), name, vault))) for name in NAMES]


def test_one_damaged_vault_does_not_close_the_store(store):
    key = store_key(store, [])
    damaged, whole = sealed_under(key)
    assert store_key(store, [(damaged[0], bytes(64)), whole]) == key


def test_a_key_that_opens_nothing_is_refused_by_its_place_and_stays(store):
    made = store_key(store, [])
    with pytest.raises(UnavailableError, match=r"the key file .*work\.db\.key cannot decrypt this store") as refused:
        store_key(store, sealed_under(bytes(32)))
    assert (refused.value.code, refused.value.retryable) == ("STORE_UNAVAILABLE", False)
    assert store_key(store, []) == made


def test_no_key_is_made_where_something_is_hidden_already(store):
    with pytest.raises(UnavailableError, match=r"work\.db\.key is not there"):
        store_key(store, sealed_under(bytes(32)))
    assert not list(store.parent.iterdir())


def test_a_vault_is_opened_under_its_own_name_only():
    cipher = vault_cipher(bytes(32))
    (name, sealed), (other, _) = sealed_under(bytes(32))
    assert open_vault(cipher, name, sealed).to_data() == Vault.from_entropy(bytes(16)).to_data()
    with pytest.raises(UnavailableError, match="hidden in session t of tenant default cannot be decrypted"):
        open_vault(cipher, other, sealed)
