//! Gradients: one registry of rules for graphs and for tapes.
