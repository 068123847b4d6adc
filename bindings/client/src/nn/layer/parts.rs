//! The layers in the fields of a struct, while it is built.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::described::fresh_identity;
use crate::nn::weights::Taken;

/// Which layer it is: its place in memory and its type, since a struct begins where its first field
/// does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    place: usize,
    size: usize,
    kind: &'static str,
}

impl Address {
    pub(super) fn of<T: ?Sized>(value: &T) -> Self {
        Self {
            place: std::ptr::from_ref(value).addr(),
            size: size_of_val(value),
            kind: std::any::type_name::<T>(),
        }
    }

    /// Whether values of the type take no memory, so that several may be at one place.
    pub(super) fn is_sizeless(&self) -> bool {
        self.size == 0
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other || self.is_sizeless() && other.is_sizeless() && self.kind == other.kind
    }
}

/// The layers in the fields of a struct.
pub(crate) struct Parts {
    fields: Mutex<Vec<Part>>,
}

struct Part {
    path: String,
    address: Address,
    taken: Arc<Mutex<Taken>>,
    identity: u64,
    is_called: bool,
}

/// A field that is called.
pub(super) struct Called {
    pub path: String,
    /// What its calls have in common.
    pub taken: Arc<Mutex<Taken>>,
    pub identity: u64,
    pub is_first: bool,
    /// Whether other layers of its type can't be told from it.
    pub is_sizeless: bool,
}

impl Called {
    /// The name that the field gives its layer. Without a size a layer has that of its kind, since
    /// the field can be another one.
    pub(super) fn name(&self) -> Option<&str> {
        (!self.is_sizeless).then_some(&self.path)
    }
}

impl Parts {
    /// Takes the paths of the layers, and where they are.
    pub fn new(fields: impl IntoIterator<Item = (String, Address)>) -> Self {
        let part = |(path, address)| Part {
            path,
            address,
            taken: Arc::default(),
            identity: fresh_identity(),
            is_called: false,
        };
        Self {
            fields: Mutex::new(fields.into_iter().map(part).collect()),
        }
    }

    fn fields(&self) -> MutexGuard<'_, Vec<Part>> {
        self.fields.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a layer is called; returns its field if it is one.
    pub(super) fn call(&self, address: &Address) -> Option<Called> {
        let mut fields = self.fields();
        let mut found = None;
        for part in fields.iter_mut() {
            if part.address.is_same(address) {
                let is_first = !std::mem::replace(&mut part.is_called, true);
                found.get_or_insert(Called {
                    path: part.path.clone(),
                    taken: part.taken.clone(),
                    identity: part.identity,
                    is_first,
                    is_sizeless: address.is_sizeless(),
                });
            }
        }
        found
    }

    /// Ends the building; returns the paths of the layers that were not called.
    pub fn close(&self) -> Vec<String> {
        let fields = std::mem::take(&mut *self.fields()).into_iter();
        let left = fields.filter(|part| !part.is_called);
        left.map(|part| part.path).collect()
    }
}
