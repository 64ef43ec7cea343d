"""Our prompt in pydantic-ai's words, without a provider."""

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

# Here at the top: what it imports takes 1.5 s, and once in all processes of the suite if that is before they are forked.
from comity.agents.model import pydantic_ai as adapter
from comity.core.model.exchange import Assistant, Prompt, Settings, System, ToolCall, ToolResult, User

texts = st.text(min_size=1, max_size=5)
calls = st.builds(ToolCall, id=texts, name=texts, arguments=st.just('{"a": 1}'))
messages = st.one_of(
    st.builds(System, texts),
    st.builds(User, texts),
    st.builds(Assistant, texts, st.lists(calls, max_size=2).map(tuple)),
    st.builds(ToolResult, texts, texts, texts, st.booleans()),
)


def back(part):
    """Return a part in our words."""
    theirs = adapter.messages
    match part:
        case theirs.SystemPromptPart():
            return System(part.content)
        case theirs.UserPromptPart():
            return User(part.content)
        case theirs.TextPart():
            return Assistant(part.content)
        case theirs.ToolCallPart():
            return ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=part.args)
        case theirs.ToolReturnPart():
            return ToolResult(part.tool_call_id, part.tool_name, part.content, part.outcome == "failed")


def flat(said):
    for one in said:
        if isinstance(one, Assistant):
            yield Assistant(one.text)
            yield from one.calls
        else:
            yield one


def joined(said):
    """Messages of the user in a row are one."""
    for is_user, group in groupby(said, key=lambda one: isinstance(one, User)):
        some = list(group)
        yield from [User("\n\n".join(one.text for one in some))] if is_user else some


@given(st.lists(messages, max_size=8))
def test_every_message_arrives_whole_and_in_order(said):
    translated = adapter.messages_of(Prompt(messages=tuple(said)))
    assert [back(part) for message in translated for part in message.parts] == list(joined(flat(said)))
    kinds = [message.kind for message in translated]
    assert "request request" not in " ".join(kinds)  # what stands between two answers is one request


def test_a_system_message_stands_where_it_was_put_or_first_where_a_model_takes_no_other():
    prompt = Prompt(messages=(System("a"), User("1"), Assistant("2"), System("b"), User("3")))
    for takes_late_system, order in ((True, "a12b3"), (False, "ab123")):
        translated = adapter.messages_of(prompt, takes_late_system=takes_late_system)
        assert "".join(part.content for message in translated for part in message.parts) == order


def test_settings_that_are_not_given_are_left_to_the_provider_and_nothing_is_repeated():
    settings_of = adapter.settings_of
    assert settings_of(Prompt(messages=())) == {"max_retries": 0}
    given_some = Settings(max_tokens=5, stop=("END",), extra={"max_retries": 9, "thinking": "low"})
    assert settings_of(Prompt(messages=(), settings=given_some)) == {
        "max_tokens": 5, "stop_sequences": ["END"], "thinking": "low", "max_retries": 0,
    }  # fmt: skip
