//! What calls of one layer share.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::variable::Variable;

/// What a layer has taken from its weights: a second call of it takes the same.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(super) names: VecDeque<String>,
    pub(super) seeds: VecDeque<u32>,
    pub(super) variables: VecDeque<Variable>,
}

/// Where what layers take is noted, and from where they take what was noted before.
#[derive(Clone, Default)]
pub(super) struct Sharing {
    take: Option<Arc<Mutex<Taken>>>,
    notes: Vec<Arc<Mutex<Taken>>>,
}

impl Sharing {
    /// What layers take is noted.
    pub(super) fn noting(taken: &Arc<Mutex<Taken>>) -> Self {
        Self {
            take: None,
            notes: vec![taken.clone()],
        }
    }

    /// Layers take what was noted.
    pub(super) fn taking(taken: &Mutex<Taken>) -> Self {
        let taken = lock(taken);
        let again = Taken {
            names: taken.names.clone(),
            seeds: taken.seeds.clone(),
            variables: taken.variables.clone(),
        };
        Self {
            take: Some(Arc::new(Mutex::new(again))),
            notes: Vec::new(),
        }
    }

    /// What layers take is noted here, too.
    pub(super) fn also_note(&mut self, taken: &Arc<Mutex<Taken>>) {
        self.notes.push(taken.clone());
    }

    /// Whether layers take what was noted.
    pub(super) fn is_taking(&self) -> bool {
        self.take.is_some()
    }

    /// Takes the next of what was noted.
    pub(super) fn next<T>(&self, next: impl FnOnce(&mut Taken) -> Option<T>) -> Option<T> {
        self.take.as_ref().and_then(|taken| next(&mut lock(taken)))
    }

    pub(super) fn note(&self, mut note: impl FnMut(&mut Taken)) {
        for taken in &self.notes {
            note(&mut lock(taken));
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
