"""Shows what was decided; everything comes from one results.json."""
