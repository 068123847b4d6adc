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

/// Inputs of a call, and outputs, that need no allocation.
const INLINE: usize = 3;

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
        })
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        match self.fault {
            None => {}
            #[allow(clippy::panic)]
            Some(FaultKind::Panic) => panic!("injected by TFP_FAULT"),
            Some(FaultKind::Error) => return Err(Error::internal("injected by TFP_FAULT")),
        }
        let count = context.inputs();
        let mut inputs = Slots::<Option<Tensor>, INLINE>::new(count, || None);
        let inputs = inputs.all_mut();
        let mut shapes = Slots::<Spec, INLINE>::new(count, || NO_SPEC);
        let shapes = shapes.all_mut();
        for (index, (input, shape)) in inputs.iter_mut().zip(shapes.iter_mut()).enumerate() {
            let tensor = context.input(index)?;
            *shape = spec(&tensor)?;
            *input = Some(tensor);
        }
        let mut specs = Slots::<Spec, INLINE>::new(context.outputs(), || NO_SPEC);
        let specs = specs.all_mut();
        let scratch = self.plan(inputs, shapes, specs)?;

        let mut outputs = Slots::<Option<TensorMut>, INLINE>::new(specs.len(), || None);
        let outputs = outputs.all_mut();
        for (index, (output, spec)) in outputs.iter_mut().zip(specs.iter()).enumerate() {
            *output = Some(self.output(context, index, spec, inputs, shapes)?);
        }
        let mut scratch = match scratch {
            0 => None,
            bytes => Some(context.allocate_temp(DataType::UINT8, &[bytes], false)?),
        };
        let scratch = match &mut scratch {
            None => &mut [][..],
            Some(tensor) => tensor.bytes_mut()?,
        };
        self.run(inputs, shapes, specs, outputs, scratch)
    }
}

/// Type and shape of a tensor.
type Spec = (DType, Shape);

/// What stands in a place that is not filled yet.
const NO_SPEC: Spec = (DType::U8, Shape::SCALAR);

impl OpKernel {
    /// Fills in what the outputs will be; returns the bytes of scratch memory.
    fn plan(
        &self,
        inputs: &[Option<Tensor>],
        shapes: &[Spec],
        specs: &mut [Spec],
    ) -> Result<usize> {
        let mut refs = Slots::<TensorRef<'_>, INLINE>::new(inputs.len(), placeholder);
        view_all(inputs, shapes, refs.all_mut())?;
        let inputs = Inputs {
            tensors: refs.all(),
            attrs: &self.attrs,
        };
        let mut next = 0;
        let mut sink = |dtype, shape| {
            if let Some(spec) = specs.get_mut(next) {
                *spec = (dtype, shape);
            }
            next += 1;
            Ok(())
        };
        (self.def.outputs)(&inputs, &mut sink).map_err(refused)?;
        if next != specs.len() {
            return Err(Error::internal(format!(
                "the kernel gives {next} outputs, the op has {}",
                specs.len()
            )));
        }
        (self.def.scratch)(&inputs).map_err(refused)
    }

    /// The buffer of an output: an input's that nobody else needs, or a fresh one. An input whose
    /// buffer is taken is gone from `inputs` afterwards.
    fn output(
        &self,
        context: &mut Context<'_>,
        index: usize,
        spec: &Spec,
        inputs: &mut [Option<Tensor>],
        shapes: &[Spec],
    ) -> Result<TensorMut> {
        let (dtype, shape) = spec;
        let data_type = data_type(*dtype)?;
        let mut candidates = [0; INLINE];
        let mut count = 0;
        for &(input, output) in self.def.forward {
            let fits = output == index && count < INLINE && shapes.get(input) == Some(spec);
            // A handle would count as a user of the buffer.
            if fits && inputs[input].take().is_some() {
                candidates[count] = input;
                count += 1;
            }
        }
        if count > 0 {
            let candidates = &candidates[..count];
            let (tensor, taken) = context.forward_or_allocate_output(candidates, index, shape)?;
            for &input in candidates {
                if taken != Some(input) {
                    inputs[input] = Some(context.input(input)?);
                }
            }
            return Ok(tensor);
        }
        context.allocate_output(index, data_type, shape)
    }

    fn run(
        &self,
        inputs: &[Option<Tensor>],
        shapes: &[Spec],
        specs: &[Spec],
        outputs: &mut [Option<TensorMut>],
        scratch: &mut [u8],
    ) -> Result<()> {
        let mut refs = Slots::<TensorRef<'_>, INLINE>::new(inputs.len(), placeholder);
        view_all(inputs, shapes, refs.all_mut())?;
        let refs = refs.all();
        // The usual counts need no allocation.
        match (outputs, specs) {
            ([Some(tensor)], [spec]) => self.call(refs, &mut [writable(tensor, spec)?], scratch),
            ([Some(first), Some(second)], [a, b]) => {
                let mut outputs = [writable(first, a)?, writable(second, b)?];
                self.call(refs, &mut outputs, scratch)
            }
            (outputs, specs) => {
                let pairs = outputs.iter_mut().flatten().zip(specs);
                let outputs = pairs.map(|(tensor, spec)| writable(tensor, spec));
                let mut outputs = outputs.collect::<Result<Vec<_>>>()?;
                self.call(refs, &mut outputs, scratch)
            }
        }
    }

    fn call<'a>(
        &'a self,
        tensors: &'a [TensorRef<'a>],
        outputs: &'a mut [KernelMut<'a>],
        scratch: &'a mut [u8],
    ) -> Result<()> {
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

fn placeholder<'a>() -> TensorRef<'a> {
    TensorRef::forwarded(DType::U8, Shape::SCALAR)
}

fn spec(tensor: &Tensor) -> Result<Spec> {
    let data_type = tensor.data_type();
    let dtype = dtype::from_tensorflow(data_type)
        .ok_or_else(|| Error::invalid(format!("no kernel computes {data_type}")))?;
    let mut shape = Shape::SCALAR;
    for dim in tensor.dims() {
        shape.push(dim).map_err(refused)?;
    }
    Ok((dtype, shape))
}

/// The inputs as the kernels see them; one that is gone has been forwarded.
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
