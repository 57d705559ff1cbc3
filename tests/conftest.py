"""What the tests of the harness share."""

import os

from hypothesis import settings

settings.register_profile("fast", max_examples=60, deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
