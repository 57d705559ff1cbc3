"""Hypothesis strategies of pipelines."""

from hypothesis import strategies as st

from harness.schedule import gpipe, interleaved, one_f_one_b, zero_bubble

stages = st.integers(1, 7)
micro_batches = st.integers(1, 20)
plain = st.sampled_from([gpipe, one_f_one_b, zero_bubble]).flatmap(lambda make: st.builds(make, stages, micro_batches))
schedules = plain | st.builds(interleaved, stages, micro_batches, st.integers(2, 4))
