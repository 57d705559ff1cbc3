"""What runs inside a rank; the only package that imports mindspore."""
