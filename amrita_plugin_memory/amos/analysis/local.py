"""Rules that read a conversation without a model, for Chinese and English. Pure, and modest: a miss beats a guess.

A clause counts when the user states it about himself; questions, conditions and what others are said to do do not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from amrita_plugin_memory.kernel.text import clean, cut

from . import words
from .rules import MAX_ITEMS, MessageKind, SessionAnalysis, TurnAnalysis, TurningPoint


def analyze_turn(user: str, assistant: str) -> TurnAnalysis:
    """What the rules find in one turn; the assistant's words are not facts about the user."""
    facts, preferences, todos = _picked(user, words.FACT), _picked(user, words.PREFERENCE), _picked(user, words.TODO)
    facts = [fact for fact in facts if fact not in preferences and fact not in todos]
    kind = classify(user)
    return TurnAnalysis(
        facts,
        preferences,
        todos,
        cut(" ".join(clean(user).split()), 40) if kind == "workflow" else None,
        cut(" ".join(clean(user).split()), 40) if kind == "asset" else None,
        len(user) + len(assistant) > 8000,
    )


def classify(message: str) -> MessageKind:
    """The kind of one message."""
    text = clean(message).strip()
    if words.ASSET.search(text):
        return "asset"
    if words.WORKFLOW.search(text) and not words.QUESTION.search(text):
        return "workflow"
    if _picked(text, words.PREFERENCE):
        return "preference"
    if words.TODO.search(text) or words.ASK.search(text):
        return "task"
    return "fact" if _picked(text, words.FACT) else "chat"


def analyze_session(turns: Sequence[tuple[str, str]], ids: Sequence[str]) -> SessionAnalysis:
    """What the rules find in a dialogue of (user, assistant) pairs."""
    if not turns:
        return SessionAnalysis()
    moods = [mood(user) for user, _ in turns]
    trend = _trend(moods)
    intent = _intent(" ".join(user for user, _ in turns))
    entities = _entities(turns)
    issues = [cut(" ".join(clean(user).split()), 120) for user, answer in turns if _is_open(user, answer)]
    about = f"，提到{'、'.join(entities[:3])}" if entities else ""
    insight = f"共 {len(turns)} 轮，主要在聊{intent}{about}；情绪{words.TRENDS[trend]}" + (
        f"，{len(issues)} 个问题未决" if issues else ""
    )
    return SessionAnalysis(
        intent, trend, entities, issues[-MAX_ITEMS:], insight, turning_points(turns, ids), len(turns)
    )


def facts(turns: Sequence[tuple[str, str]]) -> list[str]:
    """Stable facts and preferences the user stated, the newest last, each once."""
    found = [fact for user, _ in turns for fact in (*_picked(user, words.FACT), *_picked(user, words.PREFERENCE))]
    return [fact for fact in dict.fromkeys(found) if not words.TODO.search(fact)]


def turning_points(turns: Sequence[tuple[str, str]], ids: Sequence[str]) -> list[TurningPoint]:
    """Turns at which the user's mood or topic jumps."""
    found: list[TurningPoint] = []
    last_mood, last_intent = 0, ""
    for place, (user, _) in enumerate(turns):
        now, intent = mood(user), _intent(user)
        reasons: list[str] = []
        if last_mood * now < 0:
            reasons.append("情绪由好转坏" if now < 0 else "情绪由坏转好")
        if last_intent and intent not in (last_intent, words.EVERYDAY) and place:
            reasons.append(f"话题由{last_intent}转到{intent}")
        if reasons:
            found.append(TurningPoint(place + 1, "，".join(reasons), ids[place] if place < len(ids) else ""))
        last_mood = now or last_mood
        last_intent = intent if intent != words.EVERYDAY else last_intent
    return found[-MAX_ITEMS:]


def mood(text: str) -> int:
    """1 good, -1 bad, 0 neither."""
    low = clean(text).lower()
    score = sum(_polarity(low, word, 1) for word in words.GOOD) + sum(_polarity(low, word, -1) for word in words.BAD)
    return (score > 0) - (score < 0)


def _polarity(text: str, word: str, sign: int) -> int:
    total = 0
    for match in re.finditer(rf"\b{word}\b" if word.isascii() else word, text):
        total += -sign if words.NEGATION.search(text[max(match.start() - 10, 0) : match.start()]) else sign
    return total


def _picked(text: str, pattern: re.Pattern[str]) -> list[str]:
    found: list[str] = []
    for sentence in words.SENTENCE.findall(clean(text)):
        if words.QUESTION.search(sentence.strip()) or words.CONDITION.search(sentence):
            continue
        own = False  # whether the clause before was about the user: Chinese leaves the subject out after that
        for part in words.CLAUSE.split(sentence):
            clause = part.strip(" \t。！!；;.,，、~～")
            meets = pattern.search(clause) and _is_own(clause, pattern)
            elided = own and pattern is words.FACT and words.ELIDED.search(clause)
            if 2 <= len(clause) <= 200 and (meets or elided):
                found.append(clause)
            own = bool(words.SELF.search(clause)) or (own and not words.NOT_SELF.search(clause))
    return list(dict.fromkeys(found))[:MAX_ITEMS]


def _is_own(clause: str, pattern: re.Pattern[str]) -> bool:
    if words.NOT_SELF.search(clause):
        return False
    return pattern is not words.FACT or words.SELF.search(clause) is not None


def _is_open(user: str, answer: str) -> bool:
    asked = bool(words.QUESTION.search(clean(user).strip()) or words.ASK.search(clean(user).strip()))
    return asked and (not answer.strip() or bool(words.UNSURE.search(answer)))


def _trend(moods: Sequence[int]) -> str:
    half = len(moods) // 2
    early, late = sum(moods[:half]), sum(moods[half:])
    if half and early * late < 0:
        return "improving" if late > 0 else "declining"
    total = early + late
    return "positive" if total > 0 else "negative" if total < 0 else "neutral"


def _intent(text: str) -> str:
    low = clean(text).lower()
    scores = {name: sum(low.count(word) for word in known) for name, known in words.INTENTS.items()}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] else words.EVERYDAY


def _entities(turns: Sequence[tuple[str, str]]) -> list[str]:
    counts: Counter[str] = Counter()
    for user, answer in turns:
        for text, weight in ((clean(user), 2), (clean(answer), 1)):
            for match in words.ENTITY.finditer(text):
                word = (match["quoted"] or match["place"] or match["name"]).strip(" .-")
                if word and word.split()[0] not in words.STARTERS:
                    counts[word] += weight
            for run in words.HAN.findall(text):
                counts.update(
                    {run[i : i + 2]: weight for i in range(len(run) - 1) if run[i : i + 2] not in words.COMMON}
                )
    often = [word for word, count in counts.most_common(60) if count >= 4 or len(word) > 2]
    return [word for word in often if not any(word != other and word in other for other in often)][:8]
