//! What has variables by names.

use tfp_core::{Result, Session, Tensor};

use crate::checkpoint::Checkpoint;
use crate::nn;
use crate::nn::optimizer::Rule;
use crate::nn::training::Trainer;
use crate::saved_model::{Model, SessionModel};
use crate::variable::{Variable, set_in, values_in};

/// What has variables by names: models of [`nn`], loaded SavedModels, trainers, checkpoints, and lists
/// of variables.
///
/// Variables in a graph have their values in a session: see [`InSession`].
pub trait NamedVariables {
    /// Returns the variables, each with its name: that of a layer and its own, as `dense/kernel`, or its
    /// path in a SavedModel or checkpoint.
    fn named_variables(&self) -> Vec<(String, Variable)>;

    /// Returns the values of some of the variables.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](tfp_core::ErrorKind::Foreign) for a variable of a graph without a session,
    /// and what TensorFlow says.
    fn values_of(&self, variables: &[Variable]) -> Result<Vec<Tensor>> {
        variables.iter().map(Variable::to_tensor).collect()
    }

    /// Sets the values of some of the variables.
    ///
    /// # Errors
    /// As for [`Self::values_of`], and as for [`Variable::set`].
    fn set_values_of(&self, values: &[(&Variable, &Tensor)]) -> Result<()> {
        values
            .iter()
            .try_for_each(|(variable, value)| variable.set(value))
    }
}

/// Variables of a graph, with the session that has their values.
pub struct InSession<'a, N: ?Sized> {
    session: &'a Session,
    of: &'a N,
}

impl<'a, N: NamedVariables + ?Sized> InSession<'a, N> {
    /// Takes the values of a graph's variables from a session, and sets them there.
    pub const fn new(session: &'a Session, of: &'a N) -> Self {
        Self { session, of }
    }
}

impl<N: NamedVariables + ?Sized> NamedVariables for InSession<'_, N> {
    fn named_variables(&self) -> Vec<(String, Variable)> {
        self.of.named_variables()
    }

    fn values_of(&self, variables: &[Variable]) -> Result<Vec<Tensor>> {
        values_in(self.session, variables)
    }

    fn set_values_of(&self, values: &[(&Variable, &Tensor)]) -> Result<()> {
        set_in(self.session, values)
    }
}

/// Variables by the names that they were made with.
fn by_own_names(variables: &[Variable]) -> Vec<(String, Variable)> {
    let named = variables
        .iter()
        .map(|one| (one.name().to_owned(), one.clone()));
    named.collect()
}

fn owned<'v>(named: impl Iterator<Item = (&'v str, &'v Variable)>) -> Vec<(String, Variable)> {
    named
        .map(|(name, one)| (name.to_owned(), one.clone()))
        .collect()
}

impl NamedVariables for [Variable] {
    fn named_variables(&self) -> Vec<(String, Variable)> {
        by_own_names(self)
    }
}

impl NamedVariables for Vec<Variable> {
    fn named_variables(&self) -> Vec<(String, Variable)> {
        by_own_names(self)
    }
}

impl NamedVariables for [(String, Variable)] {
    fn named_variables(&self) -> Vec<(String, Variable)> {
        self.to_vec()
    }
}

impl NamedVariables for nn::Weights {
    fn named_variables(&self) -> Vec<(String, Variable)> {
        by_own_names(&self.variables())
    }
}

impl NamedVariables for nn::Model {
    fn named_variables(&self) -> Vec<(String, Variable)> {
        by_own_names(self.variables())
    }
}

impl NamedVariables for Checkpoint {
    fn named_variables(&self) -> Vec<(String, Variable)> {
        owned(self.variables())
    }
}

impl NamedVariables for Model {
    fn named_variables(&self) -> Vec<(String, Variable)> {
        owned(self.variables())
    }
}

impl NamedVariables for SessionModel {
    fn named_variables(&self) -> Vec<(String, Variable)> {
        owned(self.variables())
    }

    fn values_of(&self, variables: &[Variable]) -> Result<Vec<Tensor>> {
        values_in(&self.model.session, variables)
    }

    fn set_values_of(&self, values: &[(&Variable, &Tensor)]) -> Result<()> {
        set_in(&self.model.session, values)
    }
}

/// The variables of the trainer's model, in either mode.
impl<R: Rule> NamedVariables for Trainer<R> {
    fn named_variables(&self) -> Vec<(String, Variable)> {
        self.model().named_variables()
    }

    fn values_of(&self, variables: &[Variable]) -> Result<Vec<Tensor>> {
        match self.session() {
            Some(session) => values_in(session, variables),
            None => variables.iter().map(Variable::to_tensor).collect(),
        }
    }

    fn set_values_of(&self, values: &[(&Variable, &Tensor)]) -> Result<()> {
        match self.session() {
            Some(session) => set_in(session, values),
            None => values
                .iter()
                .try_for_each(|(variable, value)| variable.set(value)),
        }
    }
}
