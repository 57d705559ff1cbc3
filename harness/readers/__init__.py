"""Curves out of what trainings that are not ours leave behind."""
