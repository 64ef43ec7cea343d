"""Guidance as a Kubernetes resource, over a real socket: no answer lost, changes pushed, and every end of a watch survived."""

import asyncio
import queue
import threading

import pytest
import yaml
from kube_server import CRD, TOKEN, KubeServer

from comity import Agent, Node, Status
from comity.core.guidance.guidance import (
    Answer,
    Constraint,
    Focus,
    Guidance,
    Note,
    Preference,
    Question,
    QuestionStatus,
    Severity,
    answer,
    put,
    to_document,
)
from comity.core.insight.insight import Evidence
from comity.core.insight.views import Settings, View, parse_settings
from comity.engines.files.guidance import GuidanceReader, GuidanceResponder
from comity.engines.guidance import source_at
from comity.engines.kubernetes import guidance as kubernetes_guidance
from comity.engines.kubernetes.api import Cluster
from comity.engines.kubernetes.guidance import KubernetesGuidance
from comity.engines.sqlite.spans.store import SpanStore
from comity.errors import CallerError, UnavailableError

WAIT_S = 10
SPEC = {
    "project": {"id": "checkout"},
    "agentGuidance": {
        "focus": {"areas": ["latency"]},
        "constraints": [{"id": "api", "rule": "Leave it", "scope": "src/api/**", "severity": "blocking"}],
        "questions": [{"id": "q", "question": "Why?"}],
    },
}


@pytest.fixture
def server():
    server = KubeServer()
    yield server
    server.close()


def source(server, **cluster):
    return KubernetesGuidance("checkout", namespace="shop", cluster=Cluster(**{"server": server.url, "token": TOKEN} | cluster))


def given(number):
    return Answer(agent_id=f"agent-{number}", answer="N+1", confidence=0.5, answered_at=number)


# --- reading and changing ---


def test_a_resource_is_read_and_one_that_never_was_there_is_empty(server):
    assert source(server).read() == ({}, Guidance(), ())
    server.put("shop", "checkout", SPEC)
    reader = GuidanceReader("checkout", source=source(server))
    assert reader.get_focus().areas == ("latency",)
    assert [one.id for one in reader.check_blocking_constraints(["src/api/x.py"])] == ["api"]


def test_a_resource_that_was_removed_is_an_error_not_freedom(server):
    server.put("shop", "checkout", SPEC)
    watched = source(server)
    watched.read()
    server.put("shop", "checkout", None)
    with pytest.raises(CallerError, match="gone"):
        watched.read()


def test_a_change_keeps_everything_else_in_the_resource(server):
    server.put("shop", "checkout", SPEC | {"business": {"value": "revenue"}})
    source(server).change(lambda now: put(now, Constraint(id="tests", rule="Add tests", severity=Severity.WARNING)))
    document, guidance, problems = source(server).read()
    assert [one.id for one in guidance.constraints] == ["api", "tests"]
    assert document["spec"]["business"] == {"value": "revenue"}
    assert problems == ()


def test_the_first_change_makes_the_resource(server):
    source(server).change(lambda now: put(now, Question(id="q", question="Why?")))
    assert source(server).read()[1].questions[0].question == "Why?"


def test_answers_given_at_once_are_all_kept_though_the_server_refuses_those_that_come_late(server):
    server.put("shop", "checkout", SPEC)
    at_once = threading.Barrier(8)

    def respond(number):
        mine, first = source(server), [True]

        def how(now):
            if first.pop() if first else False:
                at_once.wait(WAIT_S)  # all have read the same version
            return answer(now, "q", given(number))

        mine.change(how)

    threads = [threading.Thread(target=respond, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    (question,) = source(server).read()[1].questions
    assert {one.agent_id for one in question.answers} == {f"agent-{number}" for number in range(8)}
    assert server.conflicts >= 7


def test_the_seeds_answer_is_stored_with_its_evidence_and_emitted(server, tmp_path):
    server.put("shop", "checkout", SPEC)
    with SpanStore(tmp_path / "s.db") as store:
        responder = GuidanceResponder(store, project_id="checkout", agent_id="claude-code", source=source(server))
        responder.answer_question("q", answer="N+1 query", confidence=0.95, evidence=[{"type": "trace", "ref": "t-1"}])
        assert store.count() == 1
    (question,) = source(server).read()[1].questions
    assert (question.status, question.answers[0].evidence[0].ref) == (QuestionStatus.ANSWERED, "t-1")


@pytest.mark.parametrize(
    ("prepare", "error", "told"),
    [
        (lambda server: server.failures.extend([503]), UnavailableError, "503"),
        (lambda server: setattr(server, "is_kind_known", False), CallerError, "projectcontext-crd.yaml"),
        (
            lambda server: server.put("shop", "checkout", {"agentGuidance": {"constraints": [{"id": "a"}]}}),
            CallerError,
            "problems",
        ),
    ],
)
def test_what_stands_in_the_way_of_a_change_is_said(server, prepare, error, told):
    prepare(server)
    with pytest.raises(error, match=told):
        source(server).change(lambda now: put(now, Question(id="q2", question="How?")))


def test_a_wrong_token_and_a_server_that_is_not_there_are_said(server):
    with pytest.raises(UnavailableError, match="401"):
        source(server, token="wrong").read()  # noqa: S106
    server.close()
    with pytest.raises(UnavailableError, match="does not answer"):
        source(server).read()


def test_a_change_that_never_gets_its_turn_gives_up(server, monkeypatch):
    monkeypatch.setattr(kubernetes_guidance, "CONFLICT_PAUSE_S", 0.0)
    server.put("shop", "checkout", SPEC)

    def how(now):
        server.put("shop", "checkout", SPEC)
        return put(now, Question(id="q2", question="How?"))

    with pytest.raises(UnavailableError, match="by others"):
        source(server).change(how)


def test_everything_we_write_fits_the_schema_of_the_definition(server):
    whole = Guidance(
        focus=Focus(areas=("a",), reason="r", until=1),
        constraints=tuple(Constraint(id=str(one), rule="r", scope="s", severity=one, reason="w") for one in Severity),
        preferences=(Preference(id="p", preference="x", reason="r"),),
        questions=(Question(id="q", question="x", context="c", answers=(given(1), Answer(agent_id="a", answer="b", confidence=1.0, answered_at=2, evidence=(Evidence(type="t", ref="r", description="d", query="q"),)))),),
        context=(Note(topic="t", content="c", source="s"),),
    )  # fmt: skip
    source(server).change(lambda _: whole)
    assert source(server).read()[1] == whole
    server.put("shop", "checkout", None)
    bad = to_document(whole)["spec"]
    bad["agentGuidance"]["constraints"][0]["severity"] = "fatal"
    assert not server.validator.is_valid({"spec": bad})


def test_the_definition_knows_every_setting_of_an_audience(server):
    audiences = server.schema["properties"]["spec"]["properties"]["personalization"]["properties"]
    assert set(audiences) == set(View)
    for view, schema in audiences.items():
        assert len(schema["properties"]) == len(Settings.__struct_fields__)
        for name, kind in schema["properties"].items():
            for word in kind.get("enum", ()):
                assert parse_settings({"spec": {"personalization": {view: {name: word}}}})[1] == ()


def test_the_definition_is_one_object_without_what_kubernetes_refuses():
    crd = yaml.safe_load(CRD.read_text())
    assert crd["metadata"]["name"] == f"{crd['spec']['names']['plural']}.{crd['spec']['group']}"
    assert (crd["spec"]["group"], crd["spec"]["versions"][0]["name"]) == (
        kubernetes_guidance.GROUP,
        kubernetes_guidance.VERSION,
    )


# --- watching ---


@pytest.fixture
def told():
    return queue.Queue()


@pytest.fixture
def watch(server, told, monkeypatch):
    monkeypatch.setattr(kubernetes_guidance, "RECONNECT_S", 0.01)
    server.put("shop", "checkout", SPEC)
    end = source(server).watch(lambda: told.put("changed"))
    server.wait_for_watch(1)
    yield end
    end()
    assert not [one for one in threading.enumerate() if one.name == "watch checkout"]


def test_a_change_is_pushed_and_idle_asks_nothing(server, watch, told):
    before = len(server.requests)
    server.put("shop", "other", SPEC)
    server.put("shop", "checkout", SPEC)
    assert told.get(timeout=WAIT_S) == "changed"
    server.put("shop", "checkout", None)
    assert told.get(timeout=WAIT_S) == "changed"
    assert len(server.requests) == before
    assert told.empty()


def test_a_watch_that_the_server_ends_goes_on_where_it_ended(server, watch, told):
    server.put("shop", "checkout", SPEC)
    told.get(timeout=WAIT_S)
    seen = server.version
    server.end_watches()
    server.wait_for_watch(2)
    assert f"resourceVersion={seen}" in server.requests[-1]
    server.put("shop", "checkout", SPEC)
    assert told.get(timeout=WAIT_S) == "changed"
    assert told.empty()


def test_a_version_too_old_to_go_on_from_is_listed_anew_and_told_as_a_change(server, watch, told):
    server.compact()
    server.end_watches()
    assert told.get(timeout=WAIT_S) == "changed"
    server.wait_for_watch(3)
    server.put("shop", "checkout", SPEC)
    assert told.get(timeout=WAIT_S) == "changed"


def test_a_server_in_trouble_is_asked_again(server, watch, told):
    server.failures.extend([500, 500, 410])
    server.end_watches()
    assert told.get(timeout=WAIT_S) == "changed"
    server.wait_for_watch(2)
    server.put("shop", "checkout", SPEC)
    assert told.get(timeout=WAIT_S) == "changed"


def test_what_could_not_be_taken_up_is_told_again(server, told, monkeypatch):
    monkeypatch.setattr(kubernetes_guidance, "RECONNECT_S", 0.01)
    server.put("shop", "checkout", SPEC)
    calls = []

    def fails_once():
        calls.append(1)
        told.put(len(calls))
        if len(calls) == 1:
            raise UnavailableError("down")

    end = source(server).watch(fails_once)
    server.wait_for_watch(1)
    server.put("shop", "checkout", SPEC)
    assert [told.get(timeout=WAIT_S), told.get(timeout=WAIT_S)] == [1, 2]
    end()


def test_a_running_node_obeys_what_is_applied_to_the_cluster(server):
    coder = Agent("CODER")

    @coder.capability("EDIT", touches=["$.path"])
    async def edit(path: str):
        return path

    async def go():
        taken = asyncio.Event()
        loop = asyncio.get_running_loop()
        mine = source(server)

        class Told:
            read, change = mine.read, mine.change

            @staticmethod
            def watch(changed):
                def tell():
                    changed()
                    loop.call_soon_threadsafe(taken.set)

                return mine.watch(tell)

        async with Node([coder], guidance=Told(), lag_ms=None) as node:
            first = await node.call("CODER", "EDIT", {"path": "src/api/x.py"}, user_id="ann")
            server.put("shop", "checkout", SPEC)
            await asyncio.wait_for(taken.wait(), WAIT_S)
            return first, await node.call("CODER", "EDIT", {"path": "src/api/x.py"}, user_id="ann")

    before, after = asyncio.run(go())
    assert (before.status, after.status, after.error.code) == (Status.SUCCESS, Status.REFUSED, "GUIDANCE_BLOCKED")


def test_a_location_names_namespace_and_resource(server, tmp_path, monkeypatch):
    config = tmp_path / "config"
    config.write_text(yaml.safe_dump({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "k", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
    }))  # fmt: skip
    monkeypatch.setenv("KUBECONFIG", str(config))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    server.put("shop", "checkout", SPEC)
    assert source_at("k8s://shop/checkout").read()[1].focus.areas == ("latency",)
    assert source_at("k8s:///checkout").location == "k8s://team/checkout"
    with pytest.raises(CallerError, match="namespace/name"):
        source_at("k8s://checkout")
