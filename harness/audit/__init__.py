"""What MindSpore's compiler makes of a layout: compiled without devices, read from the graph, explained."""
