"""The key beside a store: whole or not there, the same for everybody who comes."""

from __future__ import annotations

import base64
import os
import threading
from pathlib import Path

import pytest

from comity.engines.cipher import _SLICE_BYTES, KEY_BYTES, Cipher, key_for
from comity.errors import UnavailableError


def test_nodes_that_start_together_get_one_whole_key(tmp_path: Path) -> None:
    for round_ in range(20):
        store = tmp_path / f"{round_}" / "work.db"
        together = threading.Barrier(4)
        keys: list[bytes] = []

        def start(store: Path = store, together: threading.Barrier = together, keys: list[bytes] = keys) -> None:
            together.wait()
            keys.append(key_for(store))

        threads = [threading.Thread(target=start) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(keys) == 4
        assert len({*keys}) == 1
        assert len(keys[0]) == KEY_BYTES
        assert [path.name for path in store.parent.iterdir()] == ["work.db.key"]
        assert (store.parent / "work.db.key").stat().st_mode & 0o777 == 0o600


def test_a_new_key_is_whole_on_disk_before_it_is_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[int, list[str]]] = []

    def fsync(file: int) -> None:
        synced.append((os.fstat(file).st_size, [path.name for path in tmp_path.iterdir() if path.name.endswith(".key")]))

    monkeypatch.setattr(os, "fsync", fsync)
    key_for(tmp_path / "work.db")
    assert synced == [(KEY_BYTES, [])]


@pytest.mark.parametrize("given", ["no base64!", base64.b64encode(b"short").decode()])
def test_a_key_that_is_none_is_refused_for_good(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("COMITY_VAULT_KEY", given)
    with pytest.raises(UnavailableError, match="COMITY_VAULT_KEY") as refused:
        key_for(None)
    assert not refused.value.retryable


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o660, 0o644, 0o666, 0o777])
def test_a_key_that_others_can_read_or_replace_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    store, path = tmp_path / "work.db", tmp_path / "work.db.key"
    key = key_for(store)
    path.chmod(mode)
    with pytest.raises(UnavailableError, match=rf"others than its owner \(mode {mode:04o}\).*chmod 600 {path}") as refused:
        key_for(store)
    assert (refused.value.code, refused.value.retryable) == ("STORE_UNAVAILABLE", False)
    for good in (0o600, 0o400):
        path.chmod(good)
        assert key_for(store) == key


def test_a_key_file_of_another_size_is_refused_for_good(tmp_path: Path) -> None:
    store, path = tmp_path / "work.db", tmp_path / "work.db.key"
    for size in (0, KEY_BYTES - 1, KEY_BYTES + 1):
        path.write_bytes(b"k" * size)
        path.chmod(0o600)
        with pytest.raises(UnavailableError, match=f"has {size} bytes") as refused:
            key_for(store)
        assert not refused.value.retryable


def test_a_key_file_that_cannot_be_read_may_be_readable_later(tmp_path: Path) -> None:
    (tmp_path / "work.db.key").mkdir()
    with pytest.raises(UnavailableError, match="cannot use the key file") as refused:
        key_for(tmp_path / "work.db")
    assert (refused.value.code, refused.value.retryable) == ("STORE_UNAVAILABLE", True)


@pytest.mark.parametrize("size", [KEY_BYTES - 1, KEY_BYTES + 1])
def test_a_cipher_takes_a_key_of_one_size(size: int) -> None:
    with pytest.raises(ValueError, match=f"not {size}"):
        Cipher(b"k" * size)


@pytest.mark.parametrize("size", [0, 1, _SLICE_BYTES, _SLICE_BYTES + 1, 3 * _SLICE_BYTES + 7])
def test_data_of_any_length_is_decrypted_as_it_was_under_its_own_name_alone(size: int) -> None:
    cipher, data = Cipher(b"k" * KEY_BYTES), bytes(n % 251 for n in range(size))
    sealed = cipher.encrypt(data, "a")
    assert cipher.decrypt(sealed, "a", "it") == data
    assert cipher.encrypt(data, "a") != sealed
    with pytest.raises(UnavailableError, match="it"):
        cipher.decrypt(sealed, "b", "it")
    with pytest.raises(UnavailableError, match="it"):
        Cipher(b"l" * KEY_BYTES).decrypt(sealed, "a", "it")
