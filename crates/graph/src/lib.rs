//! Neural-network graphs, shape inference, passes and the exact fixed-point reference.
