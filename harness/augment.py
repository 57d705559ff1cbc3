"""Changes to training data that are drawn at random: masked tokens, shuffled sentences. Pure."""

import re

import numpy as np
import numpy.typing as npt

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
_PARAGRAPH_END = re.compile(r"(\n\s*\n)")


def mask(windows: npt.NDArray[np.int32], share: float, seed: int, masked: int) -> npt.NDArray[np.int32]:
    """Hides tokens, each with the same probability and independently of the others.

    Args:
        windows: (windows, tokens) of ids.
        share: the probability.
        seed: of the draw.
        masked: what a hidden token becomes.

    Returns:
        The same shape.
    """
    hidden = np.random.Generator(np.random.PCG64([seed, 1])).random(windows.shape) < share
    return np.where(hidden, np.int32(masked), windows)


def shuffle_sentences(text: str, seed: int) -> str:
    """Puts the sentences of each paragraph in a random order; every order is as likely.

    A sentence ends with a full stop, question or exclamation mark and white space, a paragraph with an empty line. What
    stands between paragraphs stays; between sentences stands one space afterwards.
    """
    random = np.random.Generator(np.random.PCG64([seed, 2]))
    parts = _PARAGRAPH_END.split(text)
    for index in range(0, len(parts), 2):
        sentences = _SENTENCE_END.split(parts[index])
        if len(sentences) > 1:
            parts[index] = " ".join(sentences[i] for i in random.permutation(len(sentences)))
    return "".join(parts)
