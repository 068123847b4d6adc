//! The variables of a model.

use std::sync::{Arc, Mutex, PoisonError};

use tfp_core::{DataType, Result};

use super::{Initializer, Regularizer};
use crate::context::any::{AnyContext, HOST, Mode};
use crate::context::value::AnyValue;
use crate::ops;
use crate::variable::{Variable, VariableOptions};

/// Where layers make their variables: a graph or an eager context, a name, and a seed. A clone makes
/// variables of the same model.
#[derive(Clone)]
pub struct Weights {
    context: AnyContext,
    prefix: String,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    seed: u32,
    names: Vec<String>,
    variables: Vec<Variable>,
    penalties: Vec<(Variable, Regularizer)>,
}

impl Weights {
    /// Begins a model. Equal seeds give equal initial values.
    #[must_use]
    pub fn new(context: &impl Mode, seed: u32) -> Self {
        Self {
            context: context.any(),
            prefix: String::new(),
            shared: Arc::new(Mutex::new(Shared {
                seed,
                names: Vec::new(),
                variables: Vec::new(),
                penalties: Vec::new(),
            })),
        }
    }

    /// Returns the context in which the variables are.
    #[must_use]
    pub fn context(&self) -> &AnyContext {
        &self.context
    }

    /// Returns a place for a layer's variables, whose names begin with its own. A number makes it
    /// unique, as `dense_1`.
    #[must_use]
    pub fn layer(&self, name: &str) -> Self {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = format!("{}{name}", self.prefix);
        let mut full = wanted.clone();
        let mut number = 0;
        while shared.names.contains(&full) {
            number += 1;
            full = format!("{wanted}_{number}");
        }
        shared.names.push(full.clone());
        Self {
            prefix: format!("{full}/"),
            ..self.clone()
        }
    }

    /// Makes a float32 variable that training changes.
    ///
    /// # Errors
    /// As for [`Initializer::value`] and [`Variable::with_options`].
    pub fn trainable(&self, name: &str, shape: &[i64], first: Initializer) -> Result<Variable> {
        self.variable(name, shape, first, true)
    }

    /// Makes a float32 variable that only the layer itself changes.
    ///
    /// # Errors
    /// As for [`Initializer::value`] and [`Variable::with_options`].
    pub fn state(&self, name: &str, shape: &[i64], first: Initializer) -> Result<Variable> {
        self.variable(name, shape, first, false)
    }

    fn variable(
        &self,
        name: &str,
        shape: &[i64],
        first: Initializer,
        trainable: bool,
    ) -> Result<Variable> {
        let seed = self.next_seed();
        // Not every device has what random numbers and decompositions need; all get equal ones so.
        let host = self.context.on_device(HOST)?;
        let value = first.value(&host, shape, DataType::FLOAT, seed)?;
        let name = format!("{}{name}", self.prefix);
        let options = VariableOptions {
            trainable,
            ..VariableOptions::default()
        };
        let variable = Variable::with_options(&self.context, &name, value, &options)?;
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.variables.push(variable.clone());
        Ok(variable)
    }

    /// Returns a seed that no other variable or layer of the model has.
    #[must_use]
    pub fn next_seed(&self) -> u32 {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.seed = shared.seed.wrapping_add(1);
        shared.seed
    }

    /// Returns all variables, in the order in which they were made.
    #[must_use]
    pub fn variables(&self) -> Vec<Variable> {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.variables.clone()
    }

    /// Returns the variables that training changes.
    #[must_use]
    pub fn trainables(&self) -> Vec<Variable> {
        let mut variables = self.variables();
        variables.retain(Variable::is_trainable);
        variables
    }

    /// Makes a penalty of a variable part of the loss of training and evaluation.
    pub fn penalize(&self, variable: &Variable, regularizer: Regularizer) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.penalties.push((variable.clone(), regularizer));
    }

    /// Computes the sum of all penalties, a scalar; none if there are none.
    ///
    /// # Errors
    /// As for [`Regularizer::penalty`].
    pub fn penalty(&self, cx: &AnyContext) -> Result<Option<AnyValue>> {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let penalties = shared.penalties.clone();
        drop(shared);
        let mut sum = None;
        for (variable, regularizer) in penalties {
            let one = regularizer.penalty(cx, &variable.read(cx)?)?;
            sum = Some(match sum {
                Some(sum) => ops::add_v2(cx, sum, one)?,
                None => one,
            });
        }
        Ok(sum)
    }
}
