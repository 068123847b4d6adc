//! Tapes: what was executed, to be differentiated.
