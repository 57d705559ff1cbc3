"""Checkpoints on disk: when they are written, which are kept, whether they are whole, and who may go on from them."""
