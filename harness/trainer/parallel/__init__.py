"""How a step is spread over ranks, one kind of parallelism a file."""
