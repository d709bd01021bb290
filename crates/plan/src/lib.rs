//! Chooses a protocol and parameters for each node of a graph.
