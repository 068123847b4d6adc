//! A layer that is a function.

use std::fmt;
use std::sync::Arc;

use tfp_core::Result;

use super::{Built, Layer};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;

type Body = dyn Fn(&AnyContext, &AnyValue) -> Result<AnyValue> + Send + Sync;

/// A function without weights, such as an activation of your own. Masks pass through it.
#[derive(Clone)]
pub struct Function {
    name: String,
    output: Option<Vec<i64>>,
    body: Arc<Body>,
}

impl Function {
    /// Makes a layer of a function from (batch, ...) to the same shape.
    #[must_use]
    pub fn new(
        name: &str,
        body: impl Fn(&AnyContext, &AnyValue) -> Result<AnyValue> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            output: None,
            body: Arc::new(body),
        }
    }

    /// Says which shape the output has, without the batch; -1 stands for any size.
    #[must_use]
    pub fn output(mut self, shape: &[i64]) -> Self {
        self.output = Some(shape.to_vec());
        self
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("name", &self.name)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

impl Layer for Function {
    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let body = self.body.clone();
        let output = self.output.clone().unwrap_or_else(|| input.to_vec());
        Built::new(output, move |pass, x| {
            pass.pass_mask(pass.mask());
            body(pass.context(), x)
        })
    }

    fn kind(&self) -> String {
        self.name.clone()
    }
}
