"""`comity serve`: what it is set up with, and what it refuses to do by accident."""

from __future__ import annotations

import json

import pytest

from comity.cli.main import main
from comity.errors import CallerError
from comity.server.settings import Settings, read_settings

OUTSIDE = "192.0.2.1"  # an address for documentation


def test_check_prints_what_would_be_served(tmp_path, capsys):
    store = tmp_path / "work.db"
    assert main(["serve", "--check", "--json", "--store", str(store), "--port", "0"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["agents"] == ["ANL", "CST", "DOC", "ORC"]
    assert told["settings"]["host"] == "127.0.0.1"
    assert not store.exists()


def test_workflows_are_served_from_files_and_one_with_a_mistake_is_told_with_its_line(tmp_path, capsys):
    flow, bad, store = tmp_path / "flow.yaml", tmp_path / "bad.yaml", str(tmp_path / "work.db")
    flow.write_text("workflow: flow\nnodes:\n  a: {set: {n: 1}}\n")
    bad.write_text("workflow: bad\nnodes:\n  a: {sett: 1}\n")
    assert main(["serve", "--check", "--json", "--store", store, "--workflow", str(flow)]) == 0
    assert json.loads(capsys.readouterr().out)["workflows"] == ["flow"]
    assert main(["serve", "--check", "--store", store, "--workflow", str(flow), "--workflow", str(bad)]) == 2
    assert "3:3: nodes.a" in capsys.readouterr().err


def test_another_host_needs_tls_or_a_word(tmp_path, capsys):
    store = str(tmp_path / "work.db")
    assert main(["serve", "--check", "--host", OUTSIDE, "--store", store]) == 2
    assert "--insecure-http" in capsys.readouterr().err
    assert main(["serve", "--check", "--host", OUTSIDE, "--insecure-http", "--store", store]) == 0


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path):
    file = tmp_path / "serve.yaml"
    file.write_text("port: 1\ndrain_s: 2.5\npublic_hosts: [a.example]\n")
    environ = {"COMITY_SERVE_PORT": "2", "COMITY_SERVE_KEEP_ALIVE_S": "9"}
    settings = read_settings(file, environ, port=3, host=None)
    assert settings == Settings(port=3, drain_s=2.5, public_hosts=("a.example",), keep_alive_s=9)


@pytest.mark.parametrize("text", ["prot: 1", "port: many", "- 1", "port: [", "certfile: a.pem"])
def test_a_file_that_says_something_else_is_refused(tmp_path, text):
    file = tmp_path / "serve.yaml"
    file.write_text(text)
    with pytest.raises(CallerError):
        read_settings(file, {})
