//! Raw bindings of TensorFlow's C API: C names, no logic, no link to TensorFlow.
//!
//! The build script has generated everything below from TensorFlow's headers; the first lines of
//! each module say from which. Functions are methods of a group per header, and the groups are
//! fields of a table that is resolved once by name: [`PluginApi`] in a plug-in, [`ClientApi`] in a
//! program. A call is a load and an indirect call. With the feature `link` the tables can be filled
//! by the linker instead, and each module has its `extern "C"` declarations in `linked`.

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
