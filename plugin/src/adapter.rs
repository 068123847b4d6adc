//! The adapter between a [`KernelDef`] and TensorFlow: every kernel of `tfp_kernels` goes through
//! here, and none has code of its own.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use tfp_bindings::proto::attr::Attr;
use tfp_bindings::{
    Construction, Context, DataType, Error, Kernel, Registration, RegistrationError, Result,
    Tensor, TensorMut, log,
};
use tfp_kernels::KERNELS;
use tfp_kernels::def::{
    Call, Inputs, KernelDef, State, TensorMut as KernelMut, TensorRef, Variant,
};
use tfp_kernels::dtype::DType;
use tfp_kernels::shape::Shape;
use tfp_kernels::threads::ThreadPool;

use crate::attrs::NodeAttrs;
use crate::config::{Config, Fault, FaultKind};
use crate::dtype;
use crate::profile::Profiled;
use crate::slots::Slots;

/// Inputs that may give their buffer to one output.
const CANDIDATES: usize = 3;
/// Outputs that need no allocation.
const INLINE: usize = 2;

/// What all kernels of the process share.
struct Shared {
    pool: ThreadPool,
    fault: Option<Fault>,
}

static SHARED: OnceLock<Shared> = OnceLock::new();

fn shared(config: Option<&Config>) -> &'static Shared {
    SHARED.get_or_init(|| Shared {
        pool: ThreadPool::new(config.map_or(1, |config| config.threads.get())),
        fault: config.and_then(|config| config.fault.clone()),
    })
}

/// Sets up what all kernels share. Only the first call has an effect.
pub fn configure(config: &Config) {
    shared(Some(config));
}

/// Registers every kernel for devices of `device_type`. A kernel that this TensorFlow's definition
/// of the op contradicts is left out, and named in the log.
pub fn register(device_type: &str) {
    for def in KERNELS {
        for variant in def.variants {
            match register_variant(def, variant, device_type) {
                Ok(()) => {}
                // An older TensorFlow need not have every op.
                Err(RegistrationError::UnknownOp { .. }) => break,
                Err(error) => log(&format!("kernel left out: {error}")),
            }
        }
    }
}

fn register_variant(
    def: &KernelDef,
    variant: &Variant,
    device_type: &str,
) -> std::result::Result<(), RegistrationError> {
    let mut registration = Registration::new(def.op, device_type);
    for &(attr, dtype) in variant.types {
        registration = registration.constraint(attr, data_type(dtype)?);
    }
    for argument in variant.host {
        registration = registration.host_memory(argument);
    }
    registration.register::<Profiled<OpKernel>>()
}

fn data_type(dtype: DType) -> Result<DataType> {
    dtype::to_tensorflow(dtype)
        .ok_or_else(|| Error::internal(format!("{dtype} has no TensorFlow type")))
}

/// A kernel of one node.
pub struct OpKernel {
    def: &'static KernelDef,
    attrs: NodeAttrs,
    state: State,
    fault: Option<FaultKind>,
    /// What follows from the first step's types and shapes; later steps that have the same ones
    /// take it from here. Stays empty where values of inputs count, too.
    first: OnceLock<First>,
    by_shape: bool,
}

/// The inputs of a node's first step, and what its outputs were.
struct First {
    inputs: Box<[Spec]>,
    plan: Plan,
}

/// What a step makes.
struct Plan {
    outputs: Slots<Output, INLINE>,
    /// Bytes of scratch memory.
    scratch: usize,
}

/// What one output of a step is.
#[derive(Clone, Copy)]
struct Output {
    spec: Spec,
    /// Inputs of the same type and shape that may give it their buffer; the first `count` are
    /// meant.
    candidates: [usize; CANDIDATES],
    count: usize,
}

impl Kernel for OpKernel {
    fn new(node: &Construction) -> Result<Self> {
        let def = find(KERNELS, node)?;
        let entropy = || RandomState::new().build_hasher().finish();
        let fault = shared(None).fault.as_ref();
        Ok(Self {
            def,
            attrs: NodeAttrs::read(def, node)?,
            state: State {
                entropy: [entropy(), entropy()],
                counter: AtomicU64::new(0),
            },
            fault: fault.filter(|f| f.op == def.op).map(|f| f.kind),
            first: OnceLock::new(),
            by_shape: def.variants.iter().all(|variant| variant.host.is_empty()),
        })
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        match self.fault {
            None => {}
            #[allow(clippy::panic)]
            Some(FaultKind::Panic) => panic!("injected by TFP_FAULT"),
            Some(FaultKind::Error) => return Err(Error::internal("injected by TFP_FAULT")),
        }
        // The usual counts need no allocation.
        match context.inputs() {
            0 => self.step(context, &mut [], &mut [], &mut []),
            1 => self.step(
                context,
                &mut [NO_INPUT; 1],
                &mut [NO_SPEC; 1],
                &mut [no_ref(); 1],
            ),
            2 => self.step(
                context,
                &mut [NO_INPUT; 2],
                &mut [NO_SPEC; 2],
                &mut [no_ref(); 2],
            ),
            3 => self.step(
                context,
                &mut [NO_INPUT; 3],
                &mut [NO_SPEC; 3],
                &mut [no_ref(); 3],
            ),
            count => {
                let mut inputs: Vec<_> = (0..count).map(|_| None).collect();
                let mut refs = vec![no_ref(); count];
                self.step(context, &mut inputs, &mut vec![NO_SPEC; count], &mut refs)
            }
        }
    }
}

/// Type and shape of a tensor.
type Spec = (DType, Shape);

/// What stands in a place that is not filled yet.
const NO_INPUT: Option<Tensor> = None;
/// As [`NO_INPUT`].
const NO_SPEC: Spec = (DType::U8, Shape::SCALAR);
/// As [`NO_INPUT`].
const NO_OUTPUT: Output = Output {
    spec: NO_SPEC,
    candidates: [0; CANDIDATES],
    count: 0,
};

/// Whether two lists have the same types and shapes.
#[inline]
fn same(a: &[Spec], b: &[Spec]) -> bool {
    let mut pairs = a.iter().zip(b);
    a.len() == b.len() && pairs.all(|(a, b)| a.0 == b.0 && a.1.iter().eq(b.1.iter()))
}
impl OpKernel {
    /// One step, with a place per input in each list.
    #[inline]
    fn step<'a>(
        &'a self,
        context: &mut Context<'_>,
        inputs: &'a mut [Option<Tensor>],
        specs: &mut [Spec],
        refs: &'a mut [TensorRef<'a>],
    ) -> Result<()> {
        for (index, (input, spec)) in inputs.iter_mut().zip(&mut *specs).enumerate() {
            let tensor = context.input(index)?;
            read_spec(&tensor, spec)?;
            *input = Some(tensor);
        }
        let made;
        let plan = match self.first.get() {
            Some(first) if same(&first.inputs, specs) => &first.plan,
            _ => {
                let plan = self.plan(context.outputs(), inputs, specs)?;
                if self.by_shape && self.first.get().is_none() {
                    let inputs = Box::from(&*specs);
                    &self.first.get_or_init(|| First { inputs, plan }).plan
                } else {
                    made = plan;
                    &made
                }
            }
        };
        self.make(context, plan, inputs, specs, refs)
    }

    /// What the outputs of a step will be.
    fn plan(&self, outputs: usize, inputs: &[Option<Tensor>], specs: &[Spec]) -> Result<Plan> {
        let mut refs = Slots::<TensorRef<'_>, CANDIDATES>::new(inputs.len(), no_ref);
        view_all(inputs, specs, refs.all_mut())?;
        let inputs = Inputs {
            tensors: refs.all(),
            attrs: &self.attrs,
        };
        let mut plan = Plan {
            outputs: Slots::new(outputs, || NO_OUTPUT),
            scratch: 0,
        };
        let mut next = 0;
        let mut sink = |dtype, shape| {
            if let Some(output) = plan.outputs.all_mut().get_mut(next) {
                output.spec = (dtype, shape);
            }
            next += 1;
            Ok(())
        };
        (self.def.outputs)(&inputs, &mut sink).map_err(refused)?;
        if next != outputs {
            return Err(Error::internal(format!(
                "the kernel gives {next} outputs, the op has {outputs}"
            )));
        }
        plan.scratch = (self.def.scratch)(&inputs).map_err(refused)?;
        for &(input, output) in self.def.forward {
            if let (Some(of), Some(to)) = (specs.get(input), plan.outputs.all_mut().get_mut(output))
                && *of == to.spec
                && to.count < CANDIDATES
            {
                to.candidates[to.count] = input;
                to.count += 1;
            }
        }
        Ok(plan)
    }

    /// The buffer of an output: an input's that nobody else needs, or a fresh one. An input whose
    /// buffer is taken is gone from `inputs` afterwards.
    #[inline]
    fn output(
        &self,
        context: &mut Context<'_>,
        index: usize,
        output: &Output,
        inputs: &mut [Option<Tensor>],
    ) -> Result<TensorMut> {
        let (dtype, shape) = &output.spec;
        let candidates = &output.candidates[..output.count];
        if candidates.is_empty() {
            return context.allocate_output(index, data_type(*dtype)?, shape);
        }
        // A handle would count as a user of the buffer.
        for &input in candidates {
            inputs[input] = None;
        }
        let (tensor, taken) = context.forward_or_allocate_output(candidates, index, shape)?;
        if let ([_], Some(_)) = (candidates, taken) {
            return Ok(tensor);
        }
        for &input in candidates {
            if taken != Some(input) && !context.is_forwarded(input) {
                inputs[input] = Some(context.input(input)?);
            }
        }
        Ok(tensor)
    }

    /// Allocates what a step makes, and computes it.
    fn make<'a>(
        &'a self,
        context: &mut Context<'_>,
        plan: &Plan,
        inputs: &'a mut [Option<Tensor>],
        specs: &[Spec],
        refs: &'a mut [TensorRef<'a>],
    ) -> Result<()> {
        let mut scratch = match plan.scratch {
            0 => None,
            bytes => Some(context.allocate_temp(DataType::UINT8, &[bytes], false)?),
        };
        match plan.outputs.all() {
            [output] => {
                let mut tensor = self.output(context, 0, output, inputs)?;
                view_all(inputs, specs, refs)?;
                self.call(
                    refs,
                    &mut [writable(&mut tensor, &output.spec)?],
                    &mut scratch,
                )
            }
            [first, second] => {
                let mut outputs = [
                    self.output(context, 0, first, inputs)?,
                    self.output(context, 1, second, inputs)?,
                ];
                view_all(inputs, specs, refs)?;
                let [a, b] = &mut outputs;
                let outputs = &mut [writable(a, &first.spec)?, writable(b, &second.spec)?];
                self.call(refs, outputs, &mut scratch)
            }
            all => {
                let mut outputs = Vec::with_capacity(all.len());
                for (index, output) in all.iter().enumerate() {
                    outputs.push(self.output(context, index, output, inputs)?);
                }
                view_all(inputs, specs, refs)?;
                let outputs = outputs.iter_mut().zip(all);
                let outputs = outputs.map(|(tensor, output)| writable(tensor, &output.spec));
                let mut outputs = outputs.collect::<Result<Vec<_>>>()?;
                self.call(refs, &mut outputs, &mut scratch)
            }
        }
    }

    #[inline]
    fn call<'a>(
        &'a self,
        tensors: &'a [TensorRef<'a>],
        outputs: &'a mut [KernelMut<'a>],
        scratch: &'a mut Option<TensorMut>,
    ) -> Result<()> {
        let scratch = match scratch {
            None => &mut [][..],
            Some(tensor) => tensor.bytes_mut()?,
        };
        let mut call = Call {
            inputs: Inputs {
                tensors,
                attrs: &self.attrs,
            },
            outputs,
            scratch,
            parallel: &shared(None).pool,
            state: &self.state,
        };
        (self.def.run)(&mut call).map_err(refused)
    }
}

#[inline]
fn writable<'a>(tensor: &'a mut TensorMut, spec: &Spec) -> Result<KernelMut<'a>> {
    KernelMut::new(spec.0, spec.1, tensor.bytes_mut()?).map_err(refused)
}

/// Whether a kernel serves nodes of `op` with these attributes.
pub fn serves(op: &str, attrs: &[(&str, Attr)]) -> bool {
    let holds = |&(attr, dtype): &(&str, DType)| {
        let found = attrs.iter().find(|(name, _)| *name == attr);
        found.is_some_and(|(_, value)| {
            dtype::to_tensorflow(dtype).is_some_and(|expected| *value == Attr::Type(expected))
        })
    };
    let mut candidates = KERNELS.iter().filter(|def| def.op == op);
    candidates.any(|def| def.variants.iter().any(|v| v.types.iter().all(holds)))
}

/// The kernel that serves a node.
fn find(kernels: &'static [&'static KernelDef], node: &Construction) -> Result<&'static KernelDef> {
    let serves = |variant: &Variant| {
        variant.types.iter().all(|&(attr, dtype)| {
            let found = node.data_type(attr).ok();
            found.is_some() && found == dtype::to_tensorflow(dtype)
        })
    };
    let mut candidates = kernels.iter().filter(|def| def.op == node.op());
    candidates
        .find(|def| def.variants.iter().any(serves))
        .copied()
        .ok_or_else(|| Error::internal("no kernel serves the types of this node"))
}

/// As [`NO_INPUT`].
fn no_ref<'a>() -> TensorRef<'a> {
    TensorRef::forwarded(DType::U8, Shape::SCALAR)
}

#[inline]
fn read_spec(tensor: &Tensor, spec: &mut Spec) -> Result<()> {
    let data_type = tensor.data_type();
    spec.0 = dtype::from_tensorflow(data_type)
        .ok_or_else(|| Error::invalid(format!("no kernel computes {data_type}")))?;
    for dim in tensor.dims() {
        spec.1.push(dim).map_err(refused)?;
    }
    Ok(())
}

/// The inputs as the kernels see them; one that is gone has been forwarded.
#[inline]
fn view_all<'a>(
    inputs: &'a [Option<Tensor>],
    shapes: &[Spec],
    refs: &mut [TensorRef<'a>],
) -> Result<()> {
    for ((slot, input), &(dtype, shape)) in refs.iter_mut().zip(inputs).zip(shapes) {
        *slot = match input {
            Some(tensor) => TensorRef::new(dtype, shape, tensor.bytes()?).map_err(refused)?,
            None => TensorRef::forwarded(dtype, shape),
        };
    }
    Ok(())
}

fn refused(error: tfp_kernels::error::Error) -> Error {
    Error::invalid(error.to_string())
}
