//! Functions: closures as graphs that ops call.
