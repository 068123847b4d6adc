//! A layer that a configuration describes.

use std::sync::Arc;

use tfp_core::Result;

use crate::formats::json::Json;
use crate::nn::Policy;
use crate::nn::layer::Layer;
use crate::nn::layer::described::{Arguments, KerasLayer};

/// A layer, and where the file has its variables, in the order in which it makes them.
pub(super) struct Described {
    pub layer: Box<dyn Layer>,
    pub places: Vec<String>,
    /// How many of the last ones training does not change, even where the layer is trained.
    pub states: usize,
    /// The layer on its way back, if it has two ways. It makes the same variables.
    pub reversed: Option<Box<dyn Layer>>,
}

impl Described {
    /// What a file says of the layer, whose places are still those inside of it.
    pub fn keras(&self, entry: &Json, is_causal: bool) -> KerasLayer {
        let class = entry.get("class_name").and_then(Json::text);
        let mut layer = KerasLayer::new(class.unwrap_or_default()).listed(self.places.clone());
        if let Some(Json::Object(config)) = entry.get("config") {
            layer.config.clone_from(config);
        }
        layer.call = match &*layer.class {
            "Add" | "Average" | "Concatenate" | "Dot" | "Maximum" | "Minimum" | "Multiply"
            | "Subtract" | "CustomScaleLayer" | "HashedCrossing" => Arguments::List,
            "Attention" | "AdditiveAttention" => Arguments::Attend {
                causal: is_causal,
                list: true,
            },
            "MultiHeadAttention" | "GroupQueryAttention" => Arguments::Attend {
                causal: is_causal,
                list: false,
            },
            _ => Arguments::Each,
        };
        let name = entry.get("config").and_then(|config| config.get("name"));
        layer.name = name.and_then(Json::text).map(str::to_owned);
        layer.outer = Some(Arc::new(entry.clone()));
        layer
    }
}

impl Described {
    /// The layer with a policy of its own.
    pub fn with_policy(self, policy: Policy) -> Self {
        Self {
            layer: Box::new(self.layer.policy(policy)),
            reversed: self
                .reversed
                .map(|layer| Box::new(layer.policy(policy)) as Box<dyn Layer>),
            ..self
        }
    }

    /// A layer whose variables are at these places.
    pub fn at(layer: Box<dyn Layer>, places: Vec<String>) -> Self {
        let states = 0;
        Self {
            layer,
            places,
            states,
            reversed: None,
        }
    }

    /// A layer whose own variables are so many.
    pub fn own(layer: impl Layer + 'static, count: usize) -> Result<Self> {
        Ok(Self::at(Box::new(layer), vars("", count)))
    }

    /// A layer without variables.
    pub fn plain(layer: impl Layer + 'static) -> Result<Self> {
        Self::own(layer, 0)
    }
}

/// The places of an object's own variables.
pub(super) fn vars(prefix: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|index| format!("{prefix}vars/{index}"))
        .collect()
}
