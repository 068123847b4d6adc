//! The object graph of a checkpoint: which object has which tensor.

use std::collections::{BTreeMap, BTreeSet};

use tfp_core::Result;
use tfp_core::wire::{Reader, Writer};

/// The key of the object graph among the tensors.
pub(crate) const OBJECT_GRAPH_KEY: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";
/// Letters of all paths of an object graph together.
const MOST_LETTERS: usize = 1 << 26;
/// The attribute that holds the value of a variable.
pub(crate) const VALUE: &str = "VARIABLE_VALUE";

/// A `TrackableObjectGraph`; the first object is the root.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Objects(pub(crate) Vec<Object>);

/// An object: its parts by name, and the keys of its tensors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object {
    pub(crate) children: BTreeMap<String, usize>,
    pub(crate) attributes: BTreeMap<String, Attribute>,
}

/// A tensor of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Attribute {
    /// The key in the checkpoint.
    pub(crate) key: String,
    /// The name of the variable.
    pub(crate) full_name: String,
}

impl Objects {
    /// Reads a graph; children that do not exist are left out.
    ///
    /// # Errors
    /// [`ErrorKind::Proto`](tfp_core::ErrorKind::Proto).
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        let mut objects = Vec::new();
        for field in Reader::new("TrackableObjectGraph", bytes) {
            if let (1, node) = field? {
                objects.push(read_object(node.bytes()?)?);
            }
        }
        let count = objects.len();
        for object in &mut objects {
            object.children.retain(|_, child| *child < count);
        }
        Ok(Self(objects))
    }

    /// Makes the graph of a tree: a variable with its name at every path.
    pub(crate) fn of_paths<'p>(paths: impl IntoIterator<Item = (&'p str, &'p str)>) -> Self {
        let mut objects = Self(vec![Object::default()]);
        for (path, full_name) in paths {
            let at = objects.make(path);
            let attribute = Attribute {
                key: value_key(path),
                full_name: full_name.to_owned(),
            };
            objects.0[at].attributes.insert(VALUE.to_owned(), attribute);
        }
        objects
    }

    /// Returns the object at a path, made with those above it if it is not there.
    pub(crate) fn make(&mut self, path: &str) -> usize {
        let mut at = 0;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let next = self.0.len();
            at = *self.0[at].children.entry(part.to_owned()).or_insert(next);
            if at == next {
                self.0.push(Object::default());
            }
        }
        at
    }

    /// Returns the object at a path from the root.
    pub(crate) fn find(&self, path: &str) -> Option<&Object> {
        let mut object = self.0.first()?;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            object = self.0.get(*object.children.get(part)?)?;
        }
        Some(object)
    }

    /// Returns a shortest path to every object that can be reached, by its number.
    pub(crate) fn paths(&self) -> BTreeMap<usize, String> {
        let mut paths = BTreeMap::from([(0, String::new())]);
        let (mut level, mut seen) = (vec![0], BTreeSet::from([0]));
        // Of a damaged graph the paths may not fit memory: what does not fit is left out.
        let mut room = MOST_LETTERS;
        while !level.is_empty() {
            let mut next = Vec::new();
            for at in level {
                let Some(object) = self.0.get(at) else {
                    continue;
                };
                for (name, &child) in &object.children {
                    if seen.insert(child) {
                        let above = &paths[&at];
                        let slash = if above.is_empty() { "" } else { "/" };
                        let path = format!("{above}{slash}{name}");
                        let Some(left) = room.checked_sub(path.len()) else {
                            return paths;
                        };
                        room = left;
                        paths.insert(child, path);
                        next.push(child);
                    }
                }
            }
            level = next;
        }
        paths
    }

    /// Returns the graph as bytes.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::new();
        for object in &self.0 {
            out.message(1, |node| {
                for (name, &child) in &object.children {
                    node.message(1, |reference| {
                        reference.int(1, child as i64);
                        reference.bytes(2, name.as_bytes());
                    });
                }
                for (name, attribute) in &object.attributes {
                    node.message(2, |tensor| {
                        tensor.bytes(1, name.as_bytes());
                        tensor.bytes(2, attribute.full_name.as_bytes());
                        tensor.bytes(3, attribute.key.as_bytes());
                    });
                }
                node.message(5, |has_values| has_values.int(1, 1));
            });
        }
        out.into_bytes()
    }
}

/// Returns the key of the variable at a path.
pub(crate) fn value_key(path: &str) -> String {
    attribute_key(path, VALUE)
}

/// Returns the key of an attribute of the object at a path.
pub(super) fn attribute_key(path: &str, attribute: &str) -> String {
    let escaped = path.replace('.', "..");
    let slash = if path.is_empty() { "" } else { "/" };
    format!("{escaped}{slash}.ATTRIBUTES/{attribute}")
}

fn read_object(bytes: &[u8]) -> Result<Object> {
    let mut object = Object::default();
    for field in Reader::new("TrackableObject", bytes) {
        match field? {
            (1, child) => {
                let (mut id, mut name) = (0, String::new());
                for field in Reader::new("ObjectReference", child.bytes()?) {
                    match field? {
                        (1, value) => id = value.int()?,
                        (2, value) => name = value.text()?.to_owned(),
                        _ => {}
                    }
                }
                let id = usize::try_from(id).unwrap_or(usize::MAX);
                object.children.insert(name, id);
            }
            (2, attribute) => {
                let (mut name, mut found) = (String::new(), Attribute::default());
                for field in Reader::new("SerializedTensor", attribute.bytes()?) {
                    match field? {
                        (1, value) => name = value.text()?.to_owned(),
                        (2, value) => found.full_name = value.text()?.to_owned(),
                        (3, value) => found.key = value.text()?.to_owned(),
                        _ => {}
                    }
                }
                object.attributes.insert(name, found);
            }
            _ => {}
        }
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::{MOST_LETTERS, Object, Objects, value_key};

    #[test]
    fn a_tree_is_read_as_it_was_written() {
        let paths = [
            ("model/dense/kernel", "k"),
            ("model/dense/b.ias", "b"),
            ("step", "s"),
        ];
        let tree = Objects::of_paths(paths);
        assert_eq!(Objects::read(&tree.write()).expect("a graph"), tree);
        assert_eq!(tree.0.len(), 6);
        let found = tree.find("model/dense/b.ias").expect("an object");
        assert_eq!(
            found.attributes["VARIABLE_VALUE"].key,
            "model/dense/b..ias/.ATTRIBUTES/VARIABLE_VALUE"
        );
        assert!(tree.find("model/conv").is_none());
        assert!(
            tree.paths()
                .values()
                .any(|path| path == "model/dense/kernel")
        );
        assert_eq!(value_key("x"), "x/.ATTRIBUTES/VARIABLE_VALUE");
    }

    #[test]
    fn bytes_that_are_no_graph_are_refused_or_read_as_another_one() {
        let bytes = Objects::of_paths([("a/b", "b"), ("c", "c")]).write();
        for at in 0..bytes.len() {
            for value in [0, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                if let Ok(objects) = Objects::read(&damaged) {
                    let _ = (objects.paths(), objects.find("a/b"));
                }
            }
            let _ = Objects::read(&bytes[..at]);
        }
    }

    #[test]
    fn paths_have_a_largest_length_together() {
        let mut objects = vec![Object::default(); 42];
        objects[0].children.insert("a".repeat(MOST_LETTERS / 20), 1);
        for child in 2..42 {
            let name = format!("{child}");
            objects[1].children.insert(name, child);
        }
        let paths = Objects(objects).paths();
        assert!(paths.len() > 10 && paths.len() < 42, "{}", paths.len());
        let letters: usize = paths.values().map(String::len).sum();
        assert!(letters <= MOST_LETTERS);
    }
}
