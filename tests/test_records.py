"""Records of a file, and the bad ones among them."""

from hypothesis import given
from hypothesis import strategies as st

from harness.records import Bad, split, summary

line = st.one_of(
    st.just(b""),
    st.just(b" \t"),
    st.just(b"\xff\xfe"),
    st.text(st.characters(blacklist_characters="\n\r", blacklist_categories=["Cs"]), max_size=30).map(str.encode),
)


@given(st.lists(line, max_size=20), st.integers(1, 40), st.sampled_from([b"\n", b"\r\n"]))
def test_every_line_is_good_or_bad_and_keeps_its_place(lines, longest, end):
    good, bad = split(b"".join(each + end for each in lines), longest)
    assert len(good) + len(bad) == len(lines)
    numbers = [each.line for each in bad]
    assert numbers == sorted(set(numbers))
    assert good == [each for number, each in enumerate(lines, start=1) if number not in numbers]
    assert all(0 < len(each) <= longest and each.strip() and each.decode() for each in good)


def test_each_kind_is_told_with_its_place():
    content = b"good\n\nalso good\n\xe4\xb8\n" + b"x" * 50 + b"\nlast without an end"
    good, bad = split(content, 20)
    assert good == [b"good", b"also good", b"last without an end"]
    assert bad == [Bad(2, "empty", ""), Bad(4, "not UTF-8", "byte 0"), Bad(5, "over-long", "50 bytes of 20")]
    kinds = "1 empty in line 2; 1 not UTF-8 in line 4 (byte 0); 1 over-long in line 5 (50 bytes of 20)"
    assert summary(bad, 6) == f"3 of 6 records are bad: {kinds}"


def test_many_are_counted_and_some_named():
    _, bad = split(b"\n" * 8, 10)
    assert summary(bad, 8) == "8 of 8 records are bad: 8 empty in line 1, 2, 3, 4, 5 and 3 more"


def test_nothing_is_no_record():
    assert split(b"", 10) == ([], [])
