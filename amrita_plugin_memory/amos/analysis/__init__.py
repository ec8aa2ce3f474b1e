"""What a conversation says about its user: one turn, or a whole session, at once or only what is new.

    SessionAnalyzer(sessions, files, …)    analyze_turn, analyze, incremental, facts, turning_points
    local                                  the rules without a model, for Chinese and English (pure)

A model is asked through an injected function; without one, or when its answer cannot be read, the local rules answer.
What a model says is data: it is read field by field, bounded, and never stored as an instruction.
"""

from .rules import SessionAnalysis, TurnAnalysis, TurningPoint
from .service import SessionAnalyzer

__all__ = ["SessionAnalysis", "SessionAnalyzer", "TurnAnalysis", "TurningPoint"]
