//! What an op's definition says beyond its description: defaults of attributes and whether it has state.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use tfp_core::wire::Reader;
use tfp_core::{Attr, AttrKind, Graph, OpDesc, Result};

/// What is known of a type of op.
pub(crate) struct OpInfo {
    pub(crate) desc: &'static OpDesc,
    /// Whether the op has state or an effect.
    pub(crate) is_stateful: bool,
    /// Serialized defaults by the attribute's name.
    defaults: Vec<(String, Vec<u8>)>,
}

impl OpInfo {
    /// Returns what is known of a type of op; it is read once.
    pub(crate) fn find(op_type: &str) -> Result<&'static Self> {
        static FOUND: Mutex<Option<HashMap<String, &'static OpInfo>>> = Mutex::new(None);
        static GRAPH: OnceLock<Result<Graph>> = OnceLock::new();
        let known = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(info) = known().as_ref().and_then(|found| found.get(op_type)) {
            return Ok(info);
        }
        let desc = OpDesc::find(op_type)?;
        let graph = GRAPH
            .get_or_init(Graph::new)
            .as_ref()
            .map_err(Clone::clone)?;
        let mut info = Self {
            desc,
            is_stateful: false,
            defaults: Vec::new(),
        };
        for field in Reader::new("OpDef", &graph.op_def(op_type)?) {
            match field? {
                (4, attr) => {
                    let (mut name, mut default) = (String::new(), None);
                    for field in Reader::new("OpDef.AttrDef", attr.bytes()?) {
                        match field? {
                            (1, field) => name = field.text()?.to_owned(),
                            (3, field) => default = Some(field.bytes()?.to_vec()),
                            _ => {}
                        }
                    }
                    info.defaults.extend(default.map(|default| (name, default)));
                }
                (17, field) => info.is_stateful = field.int()? != 0,
                _ => {}
            }
        }
        let mut known = known();
        let entry = known.get_or_insert_default().entry(op_type.to_owned());
        Ok(*entry.or_insert_with(|| Box::leak(Box::new(info))))
    }

    /// Returns the default of an attribute; `None` for one without, and for tensors.
    pub(crate) fn default(&self, name: &str) -> Result<Option<Attr>> {
        let found = self.defaults.iter().find(|(key, _)| key == name);
        let kind = self
            .desc
            .attrs
            .iter()
            .find(|attr| attr.name.to_bytes() == name.as_bytes());
        match (found, kind) {
            (Some((_, bytes)), Some(attr))
                if !matches!(attr.kind, AttrKind::Tensor | AttrKind::TensorList) =>
            {
                Attr::from_proto(attr.kind, bytes).map(Some)
            }
            _ => Ok(None),
        }
    }
}
