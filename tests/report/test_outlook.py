from hypothesis import given
from hypothesis import strategies as st

from harness.report.outlook import Outlook, duration

KNOWN = {"a": (10.0, 2), "b": (30.0, 1)}


def test_what_is_known_is_added_up():
    assert str(Outlook.of(["a", "b"], KNOWN)) == "2 tests of 3 runs left, about 40 s"
    assert Outlook.of(["a", "b"], KNOWN, workers=2).seconds == 20.0


def test_a_new_test_takes_what_others_do():
    outlook = Outlook.of(["a", "b", "c"], KNOWN)
    assert outlook.seconds == 60.0
    assert str(outlook) == "3 tests left, about 60 s"


def test_without_a_history_the_first_test_tells():
    outlook = Outlook.of(["a", "b", "c"], {})
    assert str(outlook) == "3 tests left, for how long is not known yet"
    outlook.done("a", 8.0)
    outlook.done("a", 8.0)
    outlook.done("elsewhere", 1000.0)
    assert str(outlook) == "2 tests left, about 16 s"


def test_the_end():
    outlook = Outlook.of(["a"], KNOWN)
    outlook.done("a", 1.0)
    assert str(outlook) == "nothing left"


def test_durations_are_said_as_people_do():
    assert [duration(s) for s in (0.2, 99, 100, 130, 3600)] == ["1 s", "99 s", "2 min", "2 min", "60 min"]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.floats(0, 1e4), st.integers(0, 9))),
    st.lists(st.sampled_from("abcdef"), unique=True),
)
def test_less_is_left_after_each_test_that_took_what_was_known(known, tests):
    outlook = Outlook.of(tests, known)
    left = outlook.seconds
    for test in [test for test in tests if test in known]:
        outlook.done(test, known[test][0])
        now = outlook.seconds
        assert now is not None
        assert left is not None
        assert now <= left + 1e-6
        left = now
