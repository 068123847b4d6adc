//! Text as numbers: tokens of a text, looked up in a vocabulary or hashed.
//!
//! A text is read once, byte by byte, and never copied: [`changes`] standardize it, [`tokens`] finds
//! where its tokens end, [`finder`] knows the token of the vocabulary that the bytes so far may
//! become, and the hash of them. So nothing here needs memory for a text, whatever its length.

pub mod automaton;
pub mod changes;
pub mod farm;
pub mod finder;
pub mod sip;
pub mod tokens;

#[cfg(test)]
mod tests;
