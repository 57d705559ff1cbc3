import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from harness.readers import lines as module
from harness.readers.lines import LONGEST, lines


def written(folder, content):
    path = folder / "log"
    path.write_bytes(content)
    return path


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=30)))
def test_lines_are_those_that_were_written(tmp_path_factory, texts):
    path = written(tmp_path_factory.getbasetemp(), "".join(f"{text}\n" for text in texts).encode())
    assert list(lines(path)) == texts


@given(st.binary(max_size=300), st.integers(1, 20))
def test_blocks_do_not_show(tmp_path_factory, content, block):
    path = written(tmp_path_factory.getbasetemp(), content)
    before = list(lines(path))
    old, module.BLOCK = module.BLOCK, block
    try:
        assert list(lines(path)) == before
    finally:
        module.BLOCK = old


def test_progress_bars_are_lines_of_their_own(tmp_path):
    assert list(lines(written(tmp_path, b"10 %\r20 %\rstep\r\nlast"))) == ["10 %", "20 %", "step", "", "last"]


def test_what_is_no_utf8_is_replaced(tmp_path):
    assert list(lines(written(tmp_path, b"caf\xe9 \xff\n"))) == ["caf� �"]


def test_a_line_without_an_end_takes_no_memory(tmp_path):
    """A quarter of a gigabyte in one line, between two others."""
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"first\n")
        for _ in range(256):
            file.write(b"x" * 2**20)
        file.write(b"\nlast\n")
    tracemalloc.start()
    found = list(lines(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [found[0], len(found[1]), found[2]] == ["first", LONGEST, "last"]
    assert peak < 16 * 2**20
