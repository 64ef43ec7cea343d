"""The one table of built-in detectors. Of two overlapping values the one with the lower priority number wins."""

from __future__ import annotations

from typing import Final

from comity.core.redaction.births import BIRTHS
from comity.core.redaction.cards import CARDS
from comity.core.redaction.contact import CONTACT
from comity.core.redaction.detector import Category, PatternDetector
from comity.core.redaction.financial import FINANCIAL
from comity.core.redaction.formed import FORMED
from comity.core.redaction.government import GOVERNMENT
from comity.core.redaction.labelled import LabelledDetector
from comity.core.redaction.national import NATIONAL
from comity.core.redaction.network import NETWORK
from comity.core.redaction.passwords import PASSWORDS
from comity.core.redaction.phones import PHONE_CALLED, PHONES
from comity.core.redaction.place import PLACE
from comity.core.redaction.postal import POSTAL
from comity.core.redaction.secrets import SECRETS
from comity.core.redaction.spoken import SPOKEN
from comity.core.redaction.users import USER_NAMES

DETECTORS: Final[tuple[PatternDetector | LabelledDetector, ...]] = tuple(
    sorted(
        (
            *CARDS,
            *FINANCIAL,
            *GOVERNMENT,
            *BIRTHS,
            *FORMED,
            *NATIONAL,
            *CONTACT,
            *USER_NAMES,
            PHONES,
            PHONE_CALLED,
            *SPOKEN,
            *PLACE,
            *POSTAL,
            *NETWORK,
            *PASSWORDS,
            *SECRETS,
        ),
        key=lambda detector: detector.priority,
    )
)
TYPES: Final[dict[str, Category]] = {detector.type: detector.category for detector in DETECTORS}
