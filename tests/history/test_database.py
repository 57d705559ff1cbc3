import sqlite3
import subprocess
import sys
import threading
import uuid

import pytest
import sqlalchemy as sa

from harness.errors import HistoryError
from harness.history.database import RECENT_RUNS, Course, History, Point, Series

TIME = Series("suites/test_x.py::test_a[cpu]", "run", "step_time", "cpu-2c")
MEMORY = Series("suites/test_x.py::test_a[cpu]", "run", "peak_memory", "cpu-2c")


@pytest.fixture(params=["sqlite", "postgres"])
def history(request, tmp_path):
    """An empty history in each kind of database."""
    if request.param == "sqlite":
        return History(str(tmp_path / "folder" / "history.sqlite"))
    url = request.getfixturevalue("postgres")
    name = f"h{uuid.uuid4().hex}"
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return History(url.replace("/postgres", f"/{name}"))


def point(value, status="PASS", scenario="abc", mindspore="2.10.0"):
    return Point(value, status, scenario, mindspore)


def fill(history, values, **fields):
    for i, value in enumerate(values):
        history.add(f"s{i}", f"2026-01-{i + 1:02d}T00:00:00Z", "c0ffee", [(TIME, point(value, **fields))])


class TestEachDatabase:
    def test_what_was_stored_comes_back_in_its_order(self, history):
        assert history.add("s1", "2026-01-02T00:00:00Z", "c1", [(TIME, point(1.5)), (MEMORY, point(7.0))]) == 2
        # The clock stepped back: points keep the order in which they came.
        assert history.add("s2", "2026-01-01T00:00:00Z", "c2", [(TIME, point(2.5, "REGRESSED"))]) == 1
        assert history.series() == [MEMORY, TIME]
        first, second = history.trend(TIME)
        assert (first.value, first.status, first.started, first.commit) == (1.5, "PASS", "2026-01-02T00:00:00Z", "c1")
        assert (second.value, second.status, second.commit) == (2.5, "REGRESSED", "c2")
        assert history.trend(Series("t", "l", "m", "k")) == []

    def test_what_tests_took_is_that_of_the_last_time(self, history):
        assert history.courses() == {}
        history.add("s1", "2026-01-01T00:00:00Z", "", [(TIME, point(1.0))], {"a": Course(9.0, 2), "b": Course(3.0, 1)})
        history.add("s2", "2026-01-02T00:00:00Z", "", [(TIME, point(1.0))], {"a": Course(7.0, 1)})
        assert history.courses() == {"a": Course(7.0, 1), "b": Course(3.0, 1)}

    def test_a_history_of_before_what_tests_took_is_completed(self, history):
        history.add("s1", "2026-01-01T00:00:00Z", "", [(TIME, point(1.0))])
        with history._engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE harness_tests"))
        older = History(history.url.render_as_string(hide_password=False))
        assert older.courses() == {}
        older.add("s2", "2026-01-02T00:00:00Z", "", [(TIME, point(2.0))], {"a": Course(7.0, 1)})
        assert older.courses() == {"a": Course(7.0, 1)}
        assert [p.value for p in older.trend(TIME)] == [1.0, 2.0]

    def test_a_session_is_stored_once(self, history):
        for _ in range(2):
            history.add("s1", "2026-01-01T00:00:00Z", "", [(TIME, point(1.0))])
        assert len(history.trend(TIME)) == 1

    def test_only_the_last_points_are_asked_for(self, history):
        fill(history, range(1, 10))
        assert [p.value for p in history.trend(TIME, last=3)] == [7.0, 8.0, 9.0]

    def test_recent_are_those_that_passed_under_the_same_conditions(self, history):
        fill(history, range(1, RECENT_RUNS + 6))
        history.add("r", "", "", [(TIME, point(100.0, "REGRESSED")), (MEMORY, point(5.0))])
        history.add("o", "", "", [(TIME, point(101.0, mindspore="2.9.0"))])
        history.add("p", "", "", [(TIME, point(102.0, scenario="def"))])
        history.add("q", "", "", [(Series(*list(vars(TIME).values())[:3], "fast"), point(103.0))])
        found = history.recent(TIME.test, "run", "cpu-2c", "abc", "2.10.0")
        assert found == {"step_time": [float(i) for i in range(6, RECENT_RUNS + 6)], "peak_memory": [5.0]}
        assert history.recent(TIME.test, "other", "cpu-2c", "abc", "2.10.0") == {}
        since = history.recent(TIME.test, "run", "cpu-2c", "abc", "2.10.0", since="2026-01-24T00:00:00Z")
        assert since == {"step_time": [24.0, 25.0]}

    def test_the_first_healthy_points_never_change(self, history):
        fill(history, [9.0], status="REGRESSED")
        for i in range(30):
            history.add(f"t{i}", "", "", [(TIME, point(float(i)))])
        assert history.first(TIME, "abc", ["PASS"], 3) == [0.0, 1.0, 2.0]
        assert history.first(TIME, "other", ["PASS"], 3) == []

    def test_all_or_nothing(self, history):
        with pytest.raises(HistoryError, match="2 values were not stored"):
            history.add("s1", "", "", [(TIME, point(1.0)), (MEMORY, point(2.0, status=None))])
        assert history.trend(TIME) == []
        assert history.add("s1", "", "", [(TIME, point(1.0))]) == 1

    def test_a_newer_schema_is_refused(self, history):
        fill(history, [1.0])
        with history._begin("x") as connection:
            connection.execute(sa.text("UPDATE harness_schema SET version = 99"))
        with pytest.raises(HistoryError, match="schema 99, newer than 1: upgrade"):
            History(history.url.render_as_string(hide_password=False)).series()

    def test_many_sessions_at_once_lose_nothing(self, history):
        url = history.url.render_as_string(hide_password=False)
        history.series()
        script = (
            "import sys; from harness.history.database import *\n"
            "h = History(sys.argv[1])\n"
            "for i in range(5): h.add(f'{sys.argv[2]}-{i}', '', '', "
            "[(Series('t', 'l', 'm', 'k'), Point(1.0, 'PASS', 's', 'v'))])\n"
        )
        processes = [subprocess.Popen([sys.executable, "-c", script, url, str(n)]) for n in range(4)]
        assert [process.wait(timeout=60) for process in processes] == [0] * 4
        assert len(history.trend(Series("t", "l", "m", "k"))) == 20


class TestSqlite:
    def test_it_is_in_wal_mode(self, tmp_path):
        fill(History(str(tmp_path / "h.sqlite")), [1.0])
        with sqlite3.connect(tmp_path / "h.sqlite") as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    def test_a_locked_database_says_what_was_not_stored(self, tmp_path, monkeypatch):
        monkeypatch.setattr("harness.history.database.WAIT_SECONDS", 0.2)
        path = tmp_path / "h.sqlite"
        fill(History(str(path)), [1.0])
        holder = sqlite3.connect(path, check_same_thread=False)
        holder.execute("BEGIN IMMEDIATE")
        try:
            with pytest.raises(HistoryError, match=r"history h.sqlite: 1 values were not stored: database is locked"):
                History(str(path)).add("s9", "", "", [(TIME, point(2.0))])
            assert [p.value for p in History(str(path)).trend(TIME)] == [1.0]
        finally:
            holder.rollback()
            holder.close()

    def test_a_database_that_is_released_in_time_is_waited_for(self, tmp_path):
        path = tmp_path / "h.sqlite"
        fill(History(str(path)), [1.0])
        holder = sqlite3.connect(path, check_same_thread=False)
        holder.execute("BEGIN IMMEDIATE")
        threading.Timer(0.5, holder.rollback).start()
        assert History(str(path)).add("s9", "", "", [(TIME, point(2.0))]) == 1

    def test_a_corrupt_database_is_told_and_left_alone(self, tmp_path):
        path = tmp_path / "h.sqlite"
        path.write_text("this is no database, and long enough to be read as one " * 50)
        before = path.read_bytes()
        with pytest.raises(HistoryError, match="1 values were not stored: file is not a database"):
            History(str(path)).add("s", "", "", [(TIME, point(1.0))])
        assert path.read_bytes() == before

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(HistoryError, match="1 values were not stored"):
            History(str(tmp_path / "file" / "h.sqlite")).add("s", "", "", [(TIME, point(1.0))])


class TestAddresses:
    def test_no_password_is_ever_shown(self):
        history = History("postgresql://ada:secret@127.0.0.1:1/nowhere")
        assert history.url.drivername == "postgresql+psycopg"
        with pytest.raises(HistoryError, match="nothing was read") as caught:
            history.series()
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize(
        ("url", "message"),
        [
            ("://", "is no database URL"),
            ("nonsense://x", "the driver of nonsense is not installed"),
            ("my-db://me:secret@h/d", "is no database URL|is not installed"),
            ("postgresql://me:secret@host:abc/db", "is no database URL"),
        ],
    )
    def test_what_is_no_database(self, url, message):
        with pytest.raises(HistoryError, match=message) as caught:
            History(url)
        assert "secret" not in str(caught.value)
