//! Branches and loops whose bodies are closures.
