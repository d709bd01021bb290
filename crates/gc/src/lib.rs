//! Garbled circuits: builder, library, half-gates garbler and evaluator.
