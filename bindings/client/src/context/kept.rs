//! Functions in the libraries of eager contexts, as long as something may call them.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use tfp_core::{AttrValue, EagerContext, Result, WeakEagerContext};

/// What is done when the functions of a [`Kept`] are gone.
type Ending = Box<dyn Fn() + Send + Sync>;

/// Functions that are taken out of their eager contexts when nothing holds this any more.
///
/// Who may call one of them holds it: what traced or loaded it, a function that calls it, a record on a
/// tape. Their names are of no other functions of the process. A context whose ops run in the background
/// keeps them, for an op that waits may still look one up.
pub(crate) struct Kept {
    names: Vec<String>,
    ending: Option<Ending>,
    contexts: Mutex<Vec<WeakEagerContext>>,
    derived: Place,
    /// What they call. The last field: these may go after them.
    holds: Vec<Arc<Self>>,
}

/// What was worked out of functions, as the plans of gradients.
type Derived = Mutex<HashMap<String, Arc<dyn Any + Send + Sync>>>;

/// Who has what was worked out of functions.
enum Place {
    /// The functions: it does not hold them, and goes with them.
    Here(Derived),
    /// A [`Loaded`]: it holds the functions, which may call each other.
    There(Weak<Derived>),
}

/// The functions of a model, and what was worked out of them.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) functions: Arc<Kept>,
    // What holds this holds what was worked out, too.
    #[allow(dead_code, reason = "the functions know where it is")]
    derived: Arc<Derived>,
}

impl Loaded {
    /// Makes the holder of functions.
    pub(crate) fn new(names: Vec<String>, ending: Ending) -> Self {
        let derived = Arc::default();
        let place = Place::There(Arc::downgrade(&derived));
        Self {
            functions: Kept::made(names, Vec::new(), Some(ending), place),
            derived,
        }
    }
}

/// How many derived values of functions are kept before all are forgotten.
const MOST_DERIVED: usize = 512;

/// What holds each function, by its name.
fn table() -> MutexGuard<'static, HashMap<String, Weak<Kept>>> {
    static TABLE: LazyLock<Mutex<HashMap<String, Weak<Kept>>>> = LazyLock::new(Mutex::default);
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    /// Makes the holder of functions that hold others.
    pub(crate) fn new(names: Vec<String>, holds: Vec<Arc<Self>>) -> Arc<Self> {
        Self::made(names, holds, None, Place::Here(Mutex::default()))
    }

    fn made(
        names: Vec<String>,
        holds: Vec<Arc<Self>>,
        ending: Option<Ending>,
        derived: Place,
    ) -> Arc<Self> {
        let made = Arc::new(Self {
            names,
            ending,
            contexts: Mutex::default(),
            derived,
            holds,
        });
        let mut table = table();
        for name in &made.names {
            table.insert(name.clone(), Arc::downgrade(&made));
        }
        made
    }

    /// Returns what holds a function; `None` for one that stays.
    pub(crate) fn find(name: &str) -> Option<Arc<Self>> {
        table().get(name)?.upgrade()
    }

    /// Returns what holds the functions that a function calls.
    pub(crate) fn called_by(name: &str) -> Vec<Arc<Self>> {
        match Self::find(name) {
            Some(alone) if alone.names.len() == 1 => alone.holds.clone(),
            // One of many that may call each other.
            Some(all) => vec![all],
            None => Vec::new(),
        }
    }

    /// Returns what was worked out of the functions before, or works it out. It must not hold them, unless a
    /// [`Loaded`] has it.
    pub(crate) fn derived<T: Any + Send + Sync>(
        &self,
        key: String,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let elsewhere;
        let derived = match &self.derived {
            Place::Here(derived) => derived,
            Place::There(derived) => {
                let Some(found) = derived.upgrade() else {
                    return make().map(Arc::new);
                };
                elsewhere = found;
                &*elsewhere
            }
        };
        let lock = || derived.lock().unwrap_or_else(PoisonError::into_inner);
        let found = lock().get(&key).cloned();
        if let Some(found) = found.and_then(|any| any.downcast().ok()) {
            return Ok(found);
        }
        let made = Arc::new(make()?);
        let mut all = lock();
        let old = match all.len() >= MOST_DERIVED {
            true => std::mem::take(&mut *all),
            false => HashMap::new(),
        };
        // Another thread may have made the same meanwhile.
        let same = all.insert(key, Arc::clone(&made) as _);
        drop(all);
        // Outside of the lock: functions may go with them.
        drop((old, same));
        Ok(made)
    }

    /// Returns the names of the functions.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    fn contexts(&self) -> MutexGuard<'_, Vec<WeakEagerContext>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a context that has the functions now, and those that they call.
    pub(crate) fn note(&self, context: &EagerContext) {
        let mut contexts = self.contexts();
        if contexts.iter().any(|known| known.is_of(context)) {
            return;
        }
        contexts.retain(|known| known.upgrade().is_some());
        contexts.push(context.downgrade());
        drop(contexts);
        for held in &self.holds {
            held.note(context);
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(ending) = &self.ending {
            ending();
        }
        let contexts = std::mem::take(&mut *self.contexts());
        let contexts: Vec<EagerContext> = contexts.iter().filter_map(|c| c.upgrade()).collect();
        let mut table = table();
        for name in &self.names {
            // Another holder of the name may have been made meanwhile.
            if table
                .get(name)
                .is_some_and(|entry| !std::ptr::eq(entry.as_ptr(), self))
            {
                continue;
            }
            table.remove(name);
            for context in contexts
                .iter()
                .filter(|context| !context.runs_in_background())
            {
                // It may have been taken out by hand, or the context may be broken: then it stays.
                let _ = context.remove_function(name);
            }
        }
        // Before the contexts, which may be the last of theirs.
        drop(table);
    }
}

/// Returns what holds the functions that are attributes of a call.
pub(crate) fn of_attrs(attrs: &[AttrValue<'_>]) -> Vec<Arc<Kept>> {
    let mut found = Vec::new();
    for attr in attrs {
        match attr {
            AttrValue::Func(function) => found.extend(Kept::find(function.name())),
            AttrValue::FuncList(list) => {
                found.extend(
                    list.iter()
                        .filter_map(|function| Kept::find(function.name())),
                );
            }
            _ => {}
        }
    }
    found
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({})", self.names.join(", "))
    }
}
