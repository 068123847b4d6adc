//! The variables of a model.

mod sharing;
mod trained;
mod typed;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tfp_core::{Error, Result, Shape, Tensor};

pub(crate) use self::sharing::Taken;
use self::sharing::{Sharing, lock};
pub(crate) use self::typed::cast_tensor;
use super::policy::{as_type, wide};
use super::{ConstraintFunction, Initializer, InitializerFunction, Policy, RegularizerFunction};
use crate::context::any::{AnyContext, HOST, Mode};
use crate::context::value::AnyValue;
use crate::variable::{Variable, VariableOptions};

/// Where layers make their variables: a graph or an eager context, a name, and a seed. A clone makes
/// variables of the same model.
#[derive(Clone)]
pub struct Weights {
    context: AnyContext,
    prefix: String,
    name: Option<String>,
    policy: Policy,
    sharing: Sharing,
    // The values that the next variables have, instead of initial ones.
    given: Option<Arc<Mutex<VecDeque<Tensor>>>>,
    // First values by the last part of a variable's name; the last one holds.
    firsts: Vec<(String, Arc<dyn InitializerFunction>)>,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    seed: u32,
    names: Vec<String>,
    // All names, and the number that the next layer of a name begins to look at.
    numbers: HashMap<String, u32>,
    variables: Vec<Variable>,
    // The variables that layers asked for, also those that others have asked for before, by the names
    // in the layer: a graph may have made them longer.
    asked: Vec<(String, Variable)>,
    penalties: Vec<(Variable, Arc<dyn RegularizerFunction>)>,
    constraints: Vec<(Variable, Arc<dyn ConstraintFunction>)>,
    // Whether a layer may compute in float16 with variables of float32.
    is_scaled: bool,
    // Paths, and whether what is below them is frozen; the last one holds.
    frozen: Vec<(String, bool)>,
}

impl Weights {
    /// Begins a model. Equal seeds give equal initial values.
    #[must_use]
    pub fn new(context: &impl Mode, seed: u32) -> Self {
        Self {
            context: context.any(),
            prefix: String::new(),
            name: None,
            policy: Policy::default(),
            sharing: Sharing::default(),
            given: None,
            firsts: Vec::new(),
            shared: Arc::new(Mutex::new(Shared {
                seed,
                names: Vec::new(),
                numbers: HashMap::new(),
                variables: Vec::new(),
                asked: Vec::new(),
                penalties: Vec::new(),
                constraints: Vec::new(),
                is_scaled: false,
                frozen: Vec::new(),
            })),
        }
    }

    /// Returns the context in which the variables are.
    #[must_use]
    pub fn context(&self) -> &AnyContext {
        &self.context
    }

    /// Whether both make variables of the same model.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns a place for a layer's variables, whose names begin with its own. A number makes it
    /// unique, as `dense_1`.
    #[must_use]
    pub fn layer(&self, name: &str) -> Self {
        let name = self.name.as_deref().unwrap_or(name);
        let full = self.sharing.next(|taken| taken.names.pop_front());
        if let Some(full) = &full {
            lock(&self.shared).names.push(full.clone());
        }
        let full = full.unwrap_or_else(|| self.unique(name));
        self.sharing
            .note(|taken| taken.names.push_back(full.clone()));
        Self {
            prefix: format!("{full}/"),
            name: None,
            ..self.clone()
        }
    }

    /// Takes a name that no other layer here has, with the prefix.
    pub(crate) fn unique(&self, name: &str) -> String {
        let mut shared = lock(&self.shared);
        let wanted = format!("{}{name}", self.prefix);
        let mut full = wanted.clone();
        let mut number = shared.numbers.get(&wanted).copied().unwrap_or(0);
        while shared.numbers.contains_key(&full) {
            number += 1;
            full = format!("{wanted}_{number}");
        }
        shared.numbers.insert(wanted, number);
        shared.numbers.entry(full.clone()).or_insert(0);
        shared.names.push(full.clone());
        full
    }

    /// Returns the same place, where the next layer has a given name instead of its kind's.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        Self {
            name: Some(name.to_owned()),
            ..self.clone()
        }
    }

    /// Returns the same place, where what layers take is noted.
    pub(crate) fn noting(&self, taken: &Arc<Mutex<Taken>>) -> Self {
        Self {
            sharing: Sharing::noting(taken),
            ..self.clone()
        }
    }

    /// Returns the same place, where what layers take is noted here, too.
    pub(crate) fn also_noting(&self, taken: &Arc<Mutex<Taken>>) -> Self {
        let mut place = self.clone();
        place.sharing.also_note(taken);
        place
    }

    /// Returns the same place, where layers take what was noted.
    pub(crate) fn taking(&self, taken: &Mutex<Taken>) -> Self {
        Self {
            sharing: Sharing::taking(taken),
            ..self.clone()
        }
    }

    /// Returns the same place, whose next variables have these values.
    pub(crate) fn given(&self, values: Vec<Tensor>) -> Self {
        Self {
            given: Some(Arc::new(Mutex::new(values.into()))),
            ..self.clone()
        }
    }

    /// Returns the same place, where variables of a name begin with other values.
    pub(crate) fn beginning(&self, name: &str, first: Arc<dyn InitializerFunction>) -> Self {
        let mut place = self.clone();
        place.firsts.push((name.to_owned(), first));
        place
    }

    /// How many given values no variable has taken.
    pub(crate) fn left(&self) -> usize {
        self.given.as_ref().map_or(0, |given| lock(given).len())
    }

    /// The value that a file gives the next variable, if there is a file.
    fn given_value(&self, name: &str, shape: &[i64]) -> Result<Option<Tensor>> {
        let Some(given) = &self.given else {
            return Ok(None);
        };
        let value = lock(given).pop_front().ok_or_else(|| {
            Error::argument(format!("there is no value for '{}{name}'", self.prefix))
        })?;
        let dtype = self.policy.variable();
        if value.dims() != shape || !value.dtype().is_float() {
            return Err(Error::argument(format!(
                "'{}{name}' is {dtype} of shape {shape:?}, and its value {} of shape {}",
                self.prefix,
                value.dtype(),
                value.shape()
            )));
        }
        cast_tensor(value, dtype).map(Some)
    }

    /// The value that a variable has at first.
    fn first_value(
        &self,
        name: &str,
        shape: &[i64],
        first: Initializer,
        seed: u32,
    ) -> Result<AnyValue> {
        // Not every device has what random numbers and decompositions need; all get equal ones so.
        let host = self.context.on_device(HOST)?.any();
        let dtype = self.policy.variable();
        let mut own = self.firsts.iter().rev();
        match own.find(|(of, _)| of == name) {
            Some((_, own)) => {
                let value = own.first(&host, shape, seed)?;
                self.check_first(name, shape, &value)?;
                as_type(&host, &value, dtype)
            }
            // A narrow type has few numbers to draw from.
            None => as_type(&host, &first.value(&host, shape, wide(dtype), seed)?, dtype),
        }
    }

    /// Refuses a first value that is not what the layer asked for.
    fn check_first(&self, name: &str, shape: &[i64], value: &AnyValue) -> Result<()> {
        let found = value.shape()?;
        if value.dtype().is_float() && found == Shape::from(shape) {
            return Ok(());
        }
        Err(Error::argument(format!(
            "'{}{name}' is {} of shape {shape:?}, and its initializer gives {} of shape {found}",
            self.prefix,
            self.policy.variable(),
            value.dtype()
        )))
    }

    /// Makes a variable that training changes, of the type that the policy says. The layer reads it as the
    /// type in which it computes.
    ///
    /// # Errors
    /// As for [`Initializer::value`] and [`Variable::with_options`].
    pub fn trainable(&self, name: &str, shape: &[i64], first: Initializer) -> Result<Variable> {
        let variable = self.variable(name, shape, first, true)?;
        Ok(variable.read_as(self.policy.compute()))
    }

    /// Makes a variable that only the layer itself changes, and reads as it is.
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
        if self.sharing.is_taking() {
            let variable = self.sharing.next(|taken| taken.variables.pop_front());
            let variable = variable.map(|variable| variable.stored());
            let variable = variable.filter(|variable| *variable.shape() == Shape::from(shape));
            let variable = variable.ok_or_else(|| {
                Error::argument(format!(
                    "the layer is shared, and its '{}{name}' is of shape {shape:?} for this input but \
                     not for the first one",
                    self.prefix
                ))
            })?;
            self.sharing
                .note(|taken| taken.variables.push_back(variable.clone()));
            let asked = (name.to_owned(), variable.clone());
            lock(&self.shared).asked.push(asked);
            return Ok(variable);
        }
        let full = format!("{}{name}", self.prefix);
        let seed = self.fresh_seed();
        let variable = match self.given_value(name, shape)? {
            Some(value) => Variable::given(&self.context, &full, value, trainable)?,
            None => {
                let value = self.first_value(name, shape, first, seed)?;
                let options = VariableOptions {
                    trainable,
                    ..VariableOptions::default()
                };
                Variable::with_options(&self.context, &full, value, &options)?
            }
        };
        self.sharing
            .note(|taken| taken.variables.push_back(variable.clone()));
        let mut shared = lock(&self.shared);
        shared.variables.push(variable.clone());
        shared.asked.push((name.to_owned(), variable.clone()));
        Ok(variable)
    }

    /// Makes a variable that is there the layer's, with the layer's name before its own.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a layer that is shared and had another
    /// variable.
    pub(crate) fn adopt(&self, name: &str, variable: &Variable) -> Result<()> {
        let mut own = variable.renamed(format!("{}{name}", self.prefix));
        if self.sharing.is_taking() {
            let first = self.sharing.next(|taken| taken.variables.pop_front());
            own = first.ok_or_else(|| {
                Error::argument(format!("the layer is shared, and had no '{name}' before"))
            })?;
        } else {
            let variables = &mut lock(&self.shared).variables;
            if !variables.iter().any(|one| one.handle() == own.handle()) {
                variables.push(own.clone());
            }
        }
        self.sharing
            .note(|taken| taken.variables.push_back(own.clone()));
        lock(&self.shared).asked.push((name.to_owned(), own));
        Ok(())
    }

    fn fresh_seed(&self) -> u32 {
        let mut shared = lock(&self.shared);
        shared.seed = shared.seed.wrapping_add(1);
        shared.seed
    }

    /// Returns a seed that no other variable or layer of the model has.
    #[must_use]
    pub fn next_seed(&self) -> u32 {
        let taken = self.sharing.next(|taken| taken.seeds.pop_front());
        let seed = taken.unwrap_or_else(|| self.fresh_seed());
        self.sharing.note(|taken| taken.seeds.push_back(seed));
        seed
    }

    /// Returns all variables, in the order in which they were made.
    #[must_use]
    pub fn variables(&self) -> Vec<Variable> {
        lock(&self.shared).variables.clone()
    }

    /// How often layers have asked for a variable.
    pub(crate) fn asked(&self) -> usize {
        lock(&self.shared).asked.len()
    }

    /// Returns the variables that layers have asked for since then.
    pub(crate) fn asked_since(&self, count: usize) -> Vec<Variable> {
        let asked = self.asked_by_name(count).into_iter();
        asked.map(|(_, variable)| variable).collect()
    }

    /// Returns the variables that layers have asked for since then, and their names in the layer.
    pub(crate) fn asked_by_name(&self, count: usize) -> Vec<(String, Variable)> {
        let shared = lock(&self.shared);
        shared.asked.get(count..).unwrap_or_default().to_vec()
    }

    /// Notes that a layer uses variables that are there.
    pub(crate) fn ask(&self, variables: &[Variable]) {
        let last = |variable: &Variable| {
            let (_, last) = variable.name().rsplit_once('/').unwrap_or_default();
            (last.to_owned(), variable.clone())
        };
        lock(&self.shared).asked.extend(variables.iter().map(last));
    }

    /// Returns the name that a layer took last, if any has since there were so many.
    pub(crate) fn name_since(&self, count: usize) -> Option<String> {
        lock(&self.shared).names.get(count).cloned()
    }

    /// How many names layers have taken.
    pub(crate) fn names(&self) -> usize {
        lock(&self.shared).names.len()
    }
}

impl Shared {
    fn is_frozen(&self, name: &str) -> bool {
        let mut paths = self.frozen.iter().rev();
        let last = paths.find(|(path, _)| is_below(name, path));
        last.is_some_and(|&(_, frozen)| frozen)
    }
}

/// Whether a name is a path or lies below it.
pub(crate) fn is_below(name: &str, path: &str) -> bool {
    name.strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || path.is_empty() || rest.starts_with('/'))
}
