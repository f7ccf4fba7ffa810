"""The context of passes: which run, how, who watches, and what happened."""

from tiered.context.context import LISTENER, OnError, PassContext, SaidKind
from tiered.context.decision import Decision, NodeRules, Place
from tiered.context.entries import Entry
from tiered.context.hooks import HOOKS, Instrument, TraceHook, Watch
from tiered.context.report import NodeNote, PassResult, Remark, Report, note_of

__all__ = [
    "HOOKS",
    "LISTENER",
    "Decision",
    "Entry",
    "Instrument",
    "NodeNote",
    "NodeRules",
    "OnError",
    "PassContext",
    "PassResult",
    "Place",
    "Remark",
    "Report",
    "SaidKind",
    "TraceHook",
    "Watch",
    "note_of",
]
