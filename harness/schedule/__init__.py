"""Pipeline schedules as data: made, replayed, drawn, and turned into what each rank executes. Pure."""

from harness.schedule.choose import schedule_of
from harness.schedule.orders import Action, Kind, Schedule, gpipe, interleaved, one_f_one_b, zero_bubble
from harness.schedule.program import Instruction, program
from harness.schedule.replay import Timeline, bubble_ratio, draw, replay

__all__ = [
    "Action",
    "Instruction",
    "Kind",
    "Schedule",
    "Timeline",
    "bubble_ratio",
    "draw",
    "gpipe",
    "interleaved",
    "one_f_one_b",
    "program",
    "replay",
    "schedule_of",
    "zero_bubble",
]
