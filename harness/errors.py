"""Errors that the harness reports to its user: one or two lines that name the value and the remedy."""


class HarnessError(Exception):
    """Base of every error that is the user's to mend; shown without a traceback."""


class ScenarioError(HarnessError, ValueError):
    """A scenario or layout that can't work."""


class DataError(HarnessError):
    """Training data that is missing, unreadable or too short."""


class CheckpointError(HarnessError):
    """A checkpoint that can't be written, is not whole, or is another's."""


class TrainingStopped(HarnessError):
    """The guard ended a training."""


class LaunchError(HarnessError):
    """Ranks that could not be started, failed, or did not finish in time."""


class ProfileError(HarnessError):
    """A profiler's folder that is not there, is another's, or is damaged."""


class PlanError(HarnessError, ValueError):
    """A hardware profile that can't be used, or a layout that can't be planned."""


class TaskError(HarnessError):
    """A task that can't be read, or that a model can't be asked."""


class PolicyError(HarnessError, ValueError):
    """A tolerance or lane that can't be applied."""


class BaselineError(HarnessError):
    """A baseline file that can't be read, or an approval that is refused."""


class ResultsError(HarnessError):
    """A results folder or file that can't be written or read."""


class HistoryError(HarnessError):
    """A history database that can't be opened, read or written; the gate decides without it."""


class HardwareError(HarnessError, ValueError):
    """A hardware name that the harness does not know."""


class Undefined(HarnessError, ValueError):
    """A value that does not exist (no token, no n-gram, no steady step); the gate says INVALID, never 0."""
