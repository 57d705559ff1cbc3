"""MindSpore's own graph parallelism: one graph, operators with strategies, everything else put in by the compiler."""
