"""Which attribute names are written, as the environment says."""

import pytest

from comity.core.tracing.naming import Mode, emission_mode
from comity.errors import CallerError


@pytest.mark.parametrize(
    ("environ", "mode"),
    [
        ({}, Mode.DUAL),
        ({"COMITY_OTEL_MODE": "legacy", "CONTEXTCORE_OTEL_MODE": "otel"}, Mode.LEGACY),
        ({"CONTEXTCORE_OTEL_MODE": "otel", "CONTEXTCORE_EMIT_MODE": "legacy"}, Mode.OTEL),
        ({"CONTEXTCORE_EMIT_MODE": " Legacy "}, Mode.LEGACY),
        ({"COMITY_OTEL_MODE": "", "CONTEXTCORE_EMIT_MODE": "otel"}, Mode.OTEL),
        ({"OTEL_SEMCONV_STABILITY_OPT_IN": "http, gen_ai_latest_experimental"}, Mode.OTEL),
        ({"OTEL_SEMCONV_STABILITY_OPT_IN": "http/dup"}, Mode.DUAL),
        ({"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental", "COMITY_OTEL_MODE": "dual"}, Mode.DUAL),
    ],
)
def test_the_environment_decides_the_mode_in_a_fixed_order(environ, mode):
    assert emission_mode(environ) is mode


def test_a_mode_nobody_knows_is_refused_by_the_name_of_its_variable():
    with pytest.raises(CallerError, match=r"CONTEXTCORE_EMIT_MODE.*both"):
        emission_mode({"CONTEXTCORE_EMIT_MODE": "both"})
