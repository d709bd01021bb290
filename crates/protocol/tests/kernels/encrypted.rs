//! Every kernel under BFV.
