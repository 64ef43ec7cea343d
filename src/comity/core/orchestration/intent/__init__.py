"""Intent classification: which capability a user's words ask for, and how sure that is."""

from comity.core.orchestration.intent.classification import Classification, Route, Verdict, close, judge
from comity.core.orchestration.intent.classifier import Classifier, Intent, Ranking
from comity.core.orchestration.intent.lessons import Lesson, taught

__all__ = ["Classification", "Classifier", "Intent", "Lesson", "Ranking", "Route", "Verdict", "close", "judge", "taught"]
