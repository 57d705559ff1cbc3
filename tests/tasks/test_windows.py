import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.tasks.windows import rolling

BEFORE = np.array([10], np.int32)


@given(st.lists(st.integers(0, 255), max_size=60), st.integers(2, 20))
def test_every_token_is_predicted_once_from_all_that_fits(text, sequence):
    tokens = np.array(text, np.int32)
    pieces = rolling(tokens, sequence, BEFORE)
    assert [int(token) for _, ending in pieces for token in ending] == text
    done = 1
    for context, ending in pieces:
        assert len(context) >= 1
        assert len(context) + len(ending) == min(sequence + 1, done + len(ending))
        whole = np.concatenate([BEFORE, tokens])
        assert (whole[done - len(context) : done] == context).all()
        done += len(ending)


def test_ten_tokens_of_a_context_of_four():
    pieces = rolling(np.arange(10, dtype=np.int32), 4, np.array([99], np.int32))
    assert [(context.tolist(), ending.tolist()) for context, ending in pieces] == [
        ([99], [0, 1, 2, 3]),
        ([3], [4, 5, 6, 7]),
        ([5, 6, 7], [8, 9]),
    ]
