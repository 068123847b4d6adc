//! The graph optimizer. TensorFlow calls it last, for graphs whose nodes are placed.

mod crossings;
mod expression;
mod fuse;
mod hashes;
mod merge;
mod norm;
mod residual;
mod stores;
mod sums;
mod updates;
mod variables;
mod view;

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use tfp_adapter::gpu;
use tfp_bindings::eager::Eager;
use tfp_bindings::optimizer::{Item, Optimizer, Pass, Properties};
use tfp_bindings::proto::attr::PartialShape;
use tfp_bindings::proto::graph::GraphDef;
use tfp_bindings::{DataType, Error, Result, log};

use variables::Means;

/// The device type that TensorFlow's own passes know.
const GPU: &str = "GPU";

/// Passes that put ops on a device of type `GPU` that only TensorFlow's own GPU has, or move its
/// nodes elsewhere. On devices of other types they change nothing that [`sums`] does not undo.
const OFF_FOR_GPU: &[Pass] = &[
    Pass::Memory,
    Pass::Remapping,
    Pass::Layout,
    Pass::AutoMixedPrecision,
    Pass::PinToHost,
];

/// The passes of TensorFlow's to turn off for a device type. Where there is one, TensorFlow prints a
/// table of all passes for every function that it optimizes.
pub fn passes_off(device_type: &str) -> &'static [Pass] {
    if device_type == GPU { OFF_FOR_GPU } else { &[] }
}

/// How the optimizer works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Type of the devices whose nodes are changed.
    pub device_type: String,
    /// Whether nodes are fused.
    pub fuse: bool,
    /// Whether TensorFlow knows the plug-in's own ops.
    pub own_ops: bool,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Sets how the optimizer works. Only the first call has an effect.
pub fn configure(settings: Settings) {
    SETTINGS.get_or_init(|| settings);
}

/// Rewrites graphs with nodes on the device. A graph that it does not understand stays as it is.
pub struct GraphOptimizer(&'static Settings);

impl Optimizer for GraphOptimizer {
    fn new() -> Result<Self> {
        SETTINGS
            .get()
            .map(Self)
            .ok_or_else(|| Error::internal("the optimizer is not configured"))
    }

    fn optimize(&self, mut graph: GraphDef, item: &Item<'_>) -> Result<GraphDef> {
        let settings = self.0;
        sums::restore(&mut graph, &settings.device_type);
        hashes::to_host(&mut graph, &settings.device_type);
        // A kernel reaches the variables of the eager runtime, which come as arguments. Those that a
        // graph makes belong to its session.
        let is_function = !graph.nodes.iter().any(|node| node.op == "VarHandleOp");
        let one_node = is_function && Eager::is_available();
        let means = Means {
            own_ops: settings.own_ops,
            one_node,
        };
        // Shapes are inferred for the whole graph: only if a step asks for them.
        let properties = OnceCell::new();
        let known = RefCell::new(HashMap::new());
        let shapes = |input: &str| {
            let properties = properties.get_or_init(|| item.properties().ok());
            shape_of(properties.as_ref()?, &known, input)
        };
        variables::replace(&mut graph, &settings.device_type, means, &shapes);
        if settings.fuse {
            // What is done so far is good without this.
            if let Err(error) = fuse_all(&mut graph, item, &settings.device_type) {
                log(&format!("nothing is fused: {error}"));
            }
            crossings::bridge(&mut graph, &settings.device_type);
        }
        Ok(graph)
    }
}

/// Fuses nodes, if TensorFlow says which ones have to stay.
fn fuse_all(graph: &mut GraphDef, item: &Item<'_>, device_type: &str) -> Result<()> {
    let preserved: HashSet<String> = item.preserved()?.into_iter().collect();
    merge::merge(graph, device_type, &preserved);
    fuse::fuse(graph, device_type, &preserved);
    if !norm::is_needed(graph, device_type) && !expression::is_needed(graph, device_type) {
        if gpu::is_far() {
            updates::assign(graph, device_type, &|_| None, &mut HashMap::new());
        }
        return Ok(());
    }
    let Ok(properties) = item.properties() else {
        // Without shapes there is nothing to decide by.
        return Ok(());
    };
    let known = RefCell::new(HashMap::new());
    let shapes = |input: &str| shape_of(&properties, &known, input);
    norm::rewrite(graph, device_type, &preserved, &shapes);
    residual::rewrite(graph, device_type, &preserved, &shapes);
    let mut added = stores::forward(graph, device_type, &preserved, &shapes);
    if gpu::is_far() {
        updates::assign(graph, device_type, &shapes, &mut added);
    }
    let shapes = |input: &str| added.get(input).cloned().or_else(|| shapes(input));
    expression::rewrite(graph, device_type, &preserved, &shapes);
    Ok(())
}

/// Types and shapes of the outputs of nodes that were asked for before.
type Known = RefCell<HashMap<String, Vec<(DataType, PartialShape)>>>;

/// The shape of an input, if it is known.
fn shape_of(properties: &Properties, known: &Known, input: &str) -> PartialShape {
    let view::Edge::Data(node, output) = view::edge(input) else {
        return None;
    };
    let mut known = known.borrow_mut();
    let outputs = known
        .entry(node.to_owned())
        .or_insert_with(|| properties.outputs(node).unwrap_or_default());
    outputs.get(output)?.1.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_off_for_a_gpu_only() {
        assert!(passes_off("GPU").contains(&Pass::Remapping));
        assert!(passes_off("GPU").contains(&Pass::Memory));
        assert!(passes_off("TFP").is_empty());
    }
}
