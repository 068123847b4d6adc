//! What the tests share.

use tfp_core::{Context, Error, IntoOperand, OpBuilder, Result};

pub fn add<'a, C: Context>(
    ctx: &C,
    x: impl IntoOperand<'a, C::Value>,
    y: impl IntoOperand<'a, C::Value>,
) -> Result<C::Value> {
    OpBuilder::new("AddV2")?.input(x).input(y).one(ctx)
}

/// Asserts that an error says all of the parts.
#[track_caller]
pub fn refused<T>(result: Result<T>, parts: &[&str]) -> Error {
    match result {
        Ok(_) => panic!("expected an error that says {parts:?}"),
        Err(error) => {
            let message = error.to_string();
            for part in parts {
                assert!(message.contains(part), "{message:?} does not say {part:?}");
            }
            error
        }
    }
}
