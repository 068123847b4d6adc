//! The registry of gradient functions, by type of op.

use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

use tfp_core::Result;

use super::rule::{Backward, InputGradients, Rule, shared};
use super::rules;
use crate::context::record::SharedRule;
use crate::context::tape::CALLS;

/// What the registry says of a type of op.
#[derive(Clone)]
pub(crate) enum Known {
    /// Its gradient function.
    Rule(Rule),
    /// The user's gradient function.
    User(SharedRule),
    /// It has none by nature: what depends on it has no gradient through it.
    Stops,
}

fn table() -> &'static HashMap<&'static str, Option<Rule>> {
    static TABLE: OnceLock<HashMap<&'static str, Option<Rule>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let stops = rules::STOPS.iter().map(|&name| (name, None));
        let rules = rules::ALL
            .iter()
            .flat_map(|list| list.iter())
            .map(|&(name, rule)| (name, Some(rule)));
        stops.chain(rules).collect()
    })
}

fn user() -> &'static RwLock<HashMap<String, SharedRule>> {
    static USER: OnceLock<RwLock<HashMap<String, SharedRule>>> = OnceLock::new();
    USER.get_or_init(RwLock::default)
}

/// Returns what is known of a type of op; `calls` is the gradient function of those that call
/// functions, which asks for gradients itself.
pub(crate) fn find(op_type: &str, calls: Rule) -> Option<Known> {
    let users = user().read().unwrap_or_else(PoisonError::into_inner);
    if let Some(rule) = users.get(op_type) {
        return Some(Known::User(rule.clone()));
    }
    if CALLS.contains(&op_type) {
        return Some(Known::Rule(calls));
    }
    table().get(op_type).map(|rule| match rule {
        Some(rule) => Known::Rule(*rule),
        None => Known::Stops,
    })
}

/// Registers the gradient function of a type of op, for graphs and tapes of the whole process.
///
/// It goes before one of this crate and replaces an earlier one of the same name. The name may also
/// be one of no op: an operation with the attribute `_gradient_op_type`
/// ([`Scope::with_attr`](crate::Scope::with_attr)) takes the function of that name instead of its own.
///
/// ```no_run
/// use tfp::{ops, register_gradient};
///
/// register_gradient("MyRelu", |call| {
///     let grad = ops::relu_grad(call.context(), call.grad(0)?, call.input(0))?;
///     Ok(vec![Some(grad.into())])
/// });
/// ```
pub fn register_gradient(
    op_type: &str,
    function: impl Fn(&Backward<'_>) -> Result<InputGradients> + Send + Sync + 'static,
) {
    let rule = shared(function);
    let replaced = user()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(op_type.to_owned(), rule);
    // Outside of the lock: what the function holds may use gradients when it is dropped.
    drop(replaced);
}

/// Takes back the gradient functions that were registered under names.
pub(crate) fn forget(names: &[String]) {
    let mut users = user().write().unwrap_or_else(PoisonError::into_inner);
    let gone: Vec<_> = names.iter().filter_map(|name| users.remove(name)).collect();
    drop(users);
    // Outside of the lock, as above.
    drop(gone);
}

/// Returns the types of op that have a gradient function in this crate, sorted.
#[must_use]
pub fn differentiable_ops() -> Vec<&'static str> {
    let mut names: Vec<_> = table()
        .iter()
        .filter(|(_, rule)| rule.is_some())
        .map(|(&name, _)| name)
        .chain(CALLS.iter().copied())
        .collect();
    names.sort_unstable();
    names
}

/// Returns how many types of op have a gradient function, those of the user too.
pub(crate) fn count() -> usize {
    let users = user().read().unwrap_or_else(PoisonError::into_inner);
    users.len() + CALLS.len() + table().values().filter(|rule| rule.is_some()).count()
}
