//! A function that was traced: what ops call, and what that calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tfp_core::{
    AttrValue, DataType, FuncRef, Function, FunctionOptions, Graph, OpBuilder, Operation, Output,
    Result, Shape,
};

use crate::context::any::{AnyContext, OWN_PREFIX};
use crate::context::func_graph::FuncGraph;
use crate::context::kept::Kept;
use crate::context::op_info::OpInfo;
use crate::context::value::AnyValue;

/// A function with the functions that it calls.
#[derive(Clone, Debug)]
pub(crate) struct Traced {
    pub(crate) function: Function,
    pub(crate) nested: Arc<[Function]>,
    pub(crate) inputs: Vec<(DataType, Shape)>,
    pub(crate) outputs: Vec<(DataType, Shape)>,
    /// Whether something in it has state or an effect.
    pub(crate) is_stateful: bool,
    /// Takes it out of eager contexts again.
    pub(crate) kept: Arc<Kept>,
}

/// Whether an operation of a graph has state or an effect.
pub(crate) fn is_stateful(graph: &Graph) -> Result<bool> {
    for operation in graph.operations() {
        let op_type = operation.op_type();
        if op_type != "Placeholder" && OpInfo::find(&op_type)?.is_stateful {
            return Ok(true);
        }
    }
    Ok(false)
}

fn signature(list: &[Output]) -> Result<Vec<(DataType, Shape)>> {
    list.iter()
        .map(|output| {
            let shape = match output.dtype() {
                DataType::RESOURCE | DataType::VARIANT => Shape::unknown(),
                _ => output.shape()?,
            };
            Ok((output.dtype(), shape))
        })
        .collect()
}

impl Traced {
    /// Makes a function of a whole graph, which calls what `holds` holds. A hash of the body becomes a
    /// part of its name.
    pub(crate) fn new(
        name: &str,
        graph: &Graph,
        inputs: &[Output],
        outputs: &[Output],
        effects: &[Operation],
        holds: Vec<Arc<Kept>>,
    ) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let names: Vec<String> = (0..effects.len()).map(|i| format!("effect_{i}")).collect();
        let controls: Vec<(&str, Operation)> = names
            .iter()
            .zip(effects)
            .map(|(name, operation)| (name.as_str(), operation.clone()))
            .collect();
        let output_names: Vec<String> = (0..outputs.len()).map(|i| format!("output_{i}")).collect();
        let output_names: Vec<&str> = output_names.iter().map(String::as_str).collect();
        let options = FunctionOptions {
            append_hash: true,
            output_names: &output_names,
            control_outputs: &controls,
            ..Default::default()
        };
        let legal: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        // The number tells functions of this process apart, the hash those of other processes.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{OWN_PREFIX}{legal}_{number}");
        let function = graph.to_function(&name, inputs, outputs, &options)?;
        let kept = Kept::new(vec![function.name().to_owned()], holds);
        Ok(Self {
            function,
            kept,
            nested: graph.functions()?.into(),
            inputs: signature(inputs)?,
            outputs: signature(outputs)?,
            is_stateful: is_stateful(graph)?,
        })
    }

    /// Makes a function of a traced graph with inputs in a given order.
    pub(crate) fn of(
        name: &str,
        func: &FuncGraph,
        inputs: &[Output],
        outputs: &[Output],
    ) -> Result<Self> {
        let (effects, holds) = (func.effects(), func.kept());
        Self::new(name, func.graph(), inputs, outputs, &effects, holds)
    }

    /// Adds the function, and what it calls, to the library of a context.
    pub(crate) fn install(&self, cx: &AnyContext) -> Result<()> {
        for function in self.nested.iter().chain([&self.function]) {
            cx.add_function(function)?;
        }
        if let Some(eager) = cx.eager() {
            self.kept.note(eager);
        }
        Ok(())
    }

    pub(crate) fn types(&self) -> Vec<DataType> {
        self.outputs.iter().map(|(dtype, _)| *dtype).collect()
    }

    /// Calls the function.
    pub(crate) fn call(&self, cx: &AnyContext, args: &[AnyValue]) -> Result<Vec<AnyValue>> {
        self.install(cx)?;
        let op_type = match self.is_stateful {
            true => "StatefulPartitionedCall",
            false => "PartitionedCall",
        };
        let outputs = OpBuilder::new(op_type)?
            .list(args)
            .attr("Tout", AttrValue::TypeList(&self.types()))?
            .attr("f", FuncRef::named(self.function.name()))?
            .execute(cx)?
            .all();
        // A call does not pass shapes on in a graph.
        for (output, (dtype, shape)) in outputs.iter().zip(&self.outputs) {
            if let AnyValue::Output(output) = output
                && !matches!(*dtype, DataType::RESOURCE | DataType::VARIANT)
            {
                output.operation().graph().set_shape(output, shape)?;
            }
        }
        Ok(outputs)
    }
}
