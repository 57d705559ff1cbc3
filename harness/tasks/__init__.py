"""Tasks for trained models: what is asked, what came of it, and what it says."""
