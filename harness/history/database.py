"""Keeps every session's values in a database: SQLite by default, PostgreSQL for a team."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from harness.errors import HistoryError

SCHEMA = 1
WAIT_SECONDS = 5.0
"""How long a database that another session is writing to is waited for."""

_WRITERS = 7_032_541
"""Number of the lock that writers to one PostgreSQL database share."""

RECENT_RUNS = 20
"""Runs of a series that the gate looks at."""

_metadata = sa.MetaData()
_schema = sa.Table("harness_schema", _metadata, sa.Column("version", sa.Integer, primary_key=True))
_sessions = sa.Table(
    "harness_sessions",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
    sa.Column("started", sa.String(20), nullable=False),
    sa.Column("commit", sa.String(64), nullable=False),
)
_series = sa.Table(
    "harness_series",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *(sa.Column(name, sa.String(512), nullable=False) for name in ("machine", "test", "label", "metric")),
    sa.UniqueConstraint("test", "label", "metric", "machine"),
)
_points = sa.Table(
    "harness_points",
    _metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("series", sa.ForeignKey(_series.c.id), nullable=False),
    sa.Column("session", sa.ForeignKey(_sessions.c.id), nullable=False),
    sa.Column("value", sa.Double, nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("scenario", sa.String(64), nullable=False),
    sa.Column("mindspore", sa.String(40), nullable=False),
    sa.Index("harness_points_of_series", "series", "id"),
)
_tests = sa.Table(
    "harness_tests",
    _metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("session", sa.ForeignKey(_sessions.c.id), nullable=False),
    sa.Column("test", sa.String(512), nullable=False),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Column("runs", sa.Integer, nullable=False),
    sa.Index("harness_tests_of_test", "test", "id"),
)


@dataclass(frozen=True)
class Course:
    """What a test took."""

    seconds: float
    runs: int
    """Trainings that it asked for; another test may have made them."""


@dataclass(frozen=True)
class Series:
    """One metric of one labelled run of a test on one kind of machine."""

    test: str
    """Node id; it names the hardware."""

    label: str
    metric: str
    machine: str


@dataclass(frozen=True)
class Point:
    """What one session measured."""

    value: float
    status: str
    """Verdict of then."""

    scenario: str
    """Hash of the scenario; a test may have changed its own."""

    mindspore: str
    started: str = ""
    commit: str = ""


class History:
    """A database of values. Points are ordered as they were stored, whatever a clock said."""

    def __init__(self, url: str) -> None:
        """Names the database; nothing is opened yet.

        Args:
            url: SQLAlchemy's, or a path of an SQLite file.

        Raises:
            HistoryError: it is no URL, or its driver is not installed.
        """
        try:
            self.url = sa.make_url(url if "://" in url else f"sqlite:///{url}")
            if self.url.drivername == "postgresql":
                self.url = self.url.set(drivername="postgresql+psycopg")
            wait = {"timeout": WAIT_SECONDS} if self.is_sqlite else {"connect_timeout": int(WAIT_SECONDS)}
            self._engine = sa.create_engine(self.url, connect_args=wait)
        except (NoSuchModuleError, ImportError):
            raise HistoryError(
                f"history: the driver of {self.url.drivername} is not installed; "
                "pip install 'mindspore-harness[postgres]' has PostgreSQL's"
            ) from None
        except (ArgumentError, ValueError):
            raise HistoryError(
                "the history's address is no database URL; give sqlite:///FILE or postgresql://…"
            ) from None
        if self.is_sqlite:
            sa.event.listen(self._engine, "connect", _prepare_sqlite)
            sa.event.listen(self._engine, "begin", _begin_sqlite)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of ours."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def exists(self) -> bool:
        """Whether there may be something to read; a server is always asked."""
        return not self.is_sqlite or Path(self.url.database or "").is_file()

    def add(
        self,
        name: str,
        started: str,
        commit: str,
        points: Iterable[tuple[Series, Point]],
        tests: Mapping[str, Course] | None = None,
    ) -> int:
        """Stores a session's values, all or none; a session that is stored already stays as it is.

        Args:
            name: of the session, unique.
            started: UTC, ISO 8601.
            commit: what was checked out.
            points: the values.
            tests: what each test took, by node id.

        Returns:
            How many were stored.

        Raises:
            HistoryError: they could not be stored.
        """
        points = list(points)
        with self._begin(f"{len(points)} values were not stored", write=True) as connection:
            if connection.execute(sa.select(_sessions.c.id).where(_sessions.c.name == name)).first():
                return 0
            values = {"name": name, "started": started, "commit": commit}
            session = _inserted(connection, _sessions, values)
            numbers = self._numbers(connection, {series for series, _ in points})
            rows = [
                {
                    "series": numbers[series],
                    "session": session,
                    "value": point.value,
                    "status": point.status,
                    "scenario": point.scenario,
                    "mindspore": point.mindspore,
                }
                for series, point in points
            ]
            if rows:
                connection.execute(_points.insert(), rows)
            taken = [{"session": session, "test": test, **vars(course)} for test, course in (tests or {}).items()]
            if taken:
                connection.execute(_tests.insert(), taken)
        return len(rows)

    def series(self) -> list[Series]:
        """All series, sorted."""
        columns = _series.c.test, _series.c.label, _series.c.metric, _series.c.machine
        with self._begin("nothing was read") as connection:
            return [Series(*row) for row in connection.execute(sa.select(*columns).order_by(*columns))]

    def trend(self, series: Series, last: int = 200) -> list[Point]:
        """The last points of a series, oldest first."""
        columns = [_points.c[name] for name in ("value", "status", "scenario", "mindspore")]
        with self._begin("nothing was read") as connection:
            number = connection.scalar(sa.select(_series.c.id).where(*_is(series)))
            newest = (
                sa.select(*columns, _sessions.c.started, _sessions.c.commit)
                .join(_sessions, _sessions.c.id == _points.c.session)
                .where(_points.c.series == number)
                .order_by(_points.c.id.desc())
                .limit(last)
            )
            return [Point(*tuple(row)) for row in connection.execute(newest).all()][::-1]

    def recent(
        self, test: str, label: str, machine: str, scenario: str, mindspore: str, since: str = ""
    ) -> dict[str, list[float]]:
        """The last values that passed under the same conditions since a time, by metric, oldest first."""
        newest = sa.func.row_number().over(partition_by=_points.c.series, order_by=_points.c.id.desc())
        passed = (
            sa.select(_series.c.metric, _points.c.value, _points.c.id, newest.label("age"))
            .join(_points, _points.c.series == _series.c.id)
            .join(_sessions, _sessions.c.id == _points.c.session)
            .where(_sessions.c.started >= since)
            .where(_series.c.test == test, _series.c.label == label, _series.c.machine == machine)
            .where(_points.c.status == "PASS", _points.c.scenario == scenario, _points.c.mindspore == mindspore)
            .subquery()
        )
        found: dict[str, list[float]] = {}
        with self._begin("nothing was read") as connection:
            wanted = sa.select(passed.c.metric, passed.c.value).where(passed.c.age <= RECENT_RUNS).order_by(passed.c.id)
            for metric, value in connection.execute(wanted):
                found.setdefault(metric, []).append(value)
        return found

    def courses(self) -> dict[str, Course]:
        """What each test took when it was last run, by node id."""
        newest = sa.select(sa.func.max(_tests.c.id)).group_by(_tests.c.test)
        wanted = sa.select(_tests.c.test, _tests.c.seconds, _tests.c.runs).where(_tests.c.id.in_(newest))
        with self._begin("nothing was read") as connection:
            return {test: Course(seconds, runs) for test, seconds, runs in connection.execute(wanted)}

    def first(self, series: Series, scenario: str, statuses: Iterable[str], count: int) -> list[float]:
        """The first values of a series that had one of some verdicts, oldest first."""
        wanted = (
            sa.select(_points.c.value)
            .join(_series, _series.c.id == _points.c.series)
            .where(*_is(series), _points.c.scenario == scenario, _points.c.status.in_(list(statuses)))
            .order_by(_points.c.id)
            .limit(count)
        )
        with self._begin("nothing was read") as connection:
            return [float(value) for value in connection.scalars(wanted)]

    @cached_property
    def _tables(self) -> None:
        """Made where they are missing; of a schema that we know."""
        if self.is_sqlite:
            Path(self.url.database or "").parent.mkdir(parents=True, exist_ok=True)
        # The tables of an older version lack the last one.
        found = sa.inspect(self._engine)
        if not found.has_table(_schema.name) or not found.has_table(_tests.name):
            with self._connect(write=True) as connection:
                _metadata.create_all(connection)
                if connection.scalar(sa.select(_schema.c.version)) is None:
                    connection.execute(_schema.insert().values(version=SCHEMA))
        with self._connect() as connection:
            version = connection.scalar(sa.select(_schema.c.version)) or 0
        if version > SCHEMA:
            raise HistoryError(f"history has schema {version}, newer than {SCHEMA}: upgrade mindspore-harness")

    @contextmanager
    def _connect(self, write: bool = False) -> Iterator[sa.Connection]:
        """A transaction; writers come one after the other, so that none finds a row missing that another is adding."""
        with self._engine.connect().execution_options(write=write) as connection, connection.begin():
            if write and not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_WRITERS)))
            yield connection

    @contextmanager
    def _begin(self, loss: str, write: bool = False) -> Iterator[sa.Connection]:
        try:
            _ = self._tables
            with self._connect(write) as connection:
                yield connection
        except (SQLAlchemyError, OSError) as error:
            reason = (str(getattr(error, "orig", None) or error).strip() or type(error).__name__).splitlines()[0]
            place = self.url.render_as_string(hide_password=True) if not self.is_sqlite else self.url.database
            raise HistoryError(f"history {Path(place or '').name}: {loss}: {reason}") from None

    @staticmethod
    def _numbers(connection: sa.Connection, wanted: set[Series]) -> dict[Series, int]:
        """The primary keys of series; those that are new are made."""
        found = {}
        for series in sorted(wanted, key=lambda s: (s.test, s.label, s.metric, s.machine)):
            number = connection.scalar(sa.select(_series.c.id).where(*_is(series)))
            if number is None:
                number = _inserted(connection, _series, vars(series))
            found[series] = number
        return found


def _inserted(connection: sa.Connection, table: sa.Table, values: dict[str, Any]) -> int:
    key = connection.execute(table.insert().values(values)).inserted_primary_key
    assert key is not None
    return int(key[0])


def _is(series: Series) -> list[sa.ColumnElement[bool]]:
    return [_series.c[name] == value for name, value in vars(series).items()]


def _begin_sqlite(connection: sa.Connection) -> None:
    """A writer takes its lock at once: one that only reads first would be refused it, not made to wait."""
    write = connection.get_execution_options().get("write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun by us, not by the driver
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
