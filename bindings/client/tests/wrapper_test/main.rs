//! Variables and what is built on them, in both modes.

mod variables;
