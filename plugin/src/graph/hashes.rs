//! Moves to the CPU what TensorFlow's own passes leave on a device that has no kernel for it.
//!
//! Soft placement runs `AsString` and `StringToHashBucketFast` on the CPU, which alone has kernels of
//! them. TensorFlow joins the two to an op on the device that the program asked for.

use tfp_bindings::proto::graph::GraphDef;

use super::view::is_on;

/// The ops that have a kernel of the CPU alone.
const OPS: &[&str] = &["_TensorToHashBucketFast"];

/// Moves such nodes from devices of this type to the CPU of their task.
pub fn to_host(graph: &mut GraphDef, device_type: &str) {
    for node in &mut graph.nodes {
        if OPS.contains(&node.op.as_str()) && is_on(node, device_type) {
            let task = node.device.rsplit_once('/').map_or("", |(task, _)| task);
            node.device = format!("{task}/device:CPU:0");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::view::trial::node;

    #[test]
    fn only_what_has_no_kernel_moves() {
        let mut hash = node("hash", "_TensorToHashBucketFast", &["x"]);
        hash.device = "/job:localhost/replica:0/task:0/device:TFP:0".into();
        let mut elsewhere = hash.clone();
        elsewhere.device = "/job:localhost/replica:0/task:0/device:GPU:0".into();
        let other = node("y", "Neg", &["x"]);
        let mut graph = GraphDef {
            nodes: vec![hash, elsewhere.clone(), other.clone()],
            other: Vec::new(),
        };
        to_host(&mut graph, "TFP");
        let host = "/job:localhost/replica:0/task:0/device:CPU:0";
        assert_eq!(graph.nodes[0].device, host);
        assert_eq!(graph.nodes[1..], [elsewhere, other]);
    }
}
