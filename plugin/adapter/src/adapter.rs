//! The adapter between a [`KernelDef`] and TensorFlow: every kernel of `tfp_kernels` goes through
//! here, and none has code of its own.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use tfp_bindings::eager::Eager;
use tfp_bindings::{
    Code, Construction, Context, DataType, Error, InputPlan, Kernel, OutputPlan, Registration,
    RegistrationError, Result, Tensor, TensorMut, log,
};
use tfp_gpu::Gpu;
use tfp_kernels::base::def::{
    Call, Inputs, KernelDef, Spec, State, TensorMut as KernelMut, TensorRef,
};
use tfp_kernels::base::dtype::DType;
use tfp_kernels::base::threads::ThreadPool;

use crate::attrs::NodeAttrs;
use crate::config::{Config, Fault, FaultKind};
use crate::dtype;
use crate::gpu::{self, Offload};
use crate::host::HostOp;
use crate::profile::Profiled;
use crate::reads::{self, Touched};
use crate::served::{find, is_left_to_host, is_lenient};
use crate::slots::Slots;
use crate::subnormal::flushed;
use crate::views::{data_type, layout, read_spec, refused, view_all, writable};

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
        // TensorFlow's threads, which call kernels, flush subnormal numbers: so do those that help.
        pool: flushed(|| ThreadPool::new(config.map_or(1, |config| config.threads.get()))),
        fault: config.and_then(|config| config.fault.clone()),
    })
}

/// Sets up what all kernels share. Only the first call has an effect.
pub fn configure(config: &Config) {
    shared(Some(config));
    gpu::configure(config);
}

/// Registers every kernel for devices of `device_type`. A kernel that this TensorFlow's definition
/// of the op contradicts is left out, and named in the log.
pub fn register(device_type: &str) {
    for def in tfp_kernels::kernels() {
        let all = def.variants.iter().flat_map(|variants| {
            (0..variants.count()).map(move |number| (variants.combination(number), variants.host))
        });
        for (types, host) in all {
            match register_variant(Registration::new(def.op, device_type), types, host) {
                Ok(()) => {}
                // An older TensorFlow need not have every op.
                Err(RegistrationError::UnknownOp { .. }) => break,
                Err(error) => log(&format!("kernel left out: {error}")),
            }
        }
    }
}

fn register_variant(
    mut registration: Registration,
    types: impl Iterator<Item = (&'static str, DType)>,
    host: &[&str],
) -> std::result::Result<(), RegistrationError> {
    for (attr, dtype) in types {
        registration = registration.constraint(attr, data_type(dtype)?);
    }
    for argument in host {
        registration = registration.host_memory(argument);
    }
    registration.register::<Profiled<OpKernel>>()
}

/// A kernel of one node.
pub struct OpKernel {
    def: &'static KernelDef,
    attrs: NodeAttrs,
    state: State,
    pool: &'static ThreadPool,
    /// What stands in for the kernel.
    instead: Option<Instead>,
    /// The GPU's body of the kernel, where a GPU computes and has one.
    offload: Option<Offload>,
    /// Where the processor reads the GPU's memory slowly, what the CPU's kernel does with it.
    watched: Option<(&'static Gpu, &'static Touched)>,
    /// What follows from the first step's types and shapes; later steps that have the same ones
    /// take it from here. Stays empty where values of inputs count, too.
    first: OnceLock<First>,
    by_shape: bool,
    /// For tensors of more axes than the kernels serve.
    host: HostOp,
}

/// What stands in for a node's kernel.
#[derive(Clone, Copy)]
enum Instead {
    /// What `TFP_FAULT` asks for.
    Fault(FaultKind),
    /// TensorFlow's kernel for the CPU.
    Host,
}

/// The inputs of a node's first step, and what its outputs were.
struct First {
    inputs: Box<[InputPlan]>,
    specs: Box<[Spec]>,
    plan: Plan,
}

/// What a step makes.
struct Plan {
    outputs: Slots<Option<Output>, INLINE>,
    /// Bytes of scratch memory.
    scratch: usize,
}

/// What one output of a step is.
struct Output {
    spec: Spec,
    /// With the inputs of the same type and shape that may give it their buffer.
    plan: OutputPlan,
}

impl Kernel for OpKernel {
    fn new(node: &Construction) -> Result<Self> {
        let def = find(node)?;
        let entropy = || RandomState::new().build_hasher().finish();
        let Shared { pool, fault } = shared(None);
        let fault = fault.as_ref().filter(|fault| fault.op == def.op);
        let fault = fault.map(|fault| Instead::Fault(fault.kind));
        let is_left = is_left_to_host(node) && Eager::is_available();
        Ok(Self {
            def,
            attrs: NodeAttrs::read(def, node)?,
            state: State {
                entropy: [entropy(), entropy()],
                counter: AtomicU64::new(0),
            },
            pool,
            instead: fault.or_else(|| is_left.then_some(Instead::Host)),
            offload: Offload::of(def, |attr| {
                node.data_type(attr).ok().and_then(dtype::from_tensorflow)
            }),
            watched: gpu::far().map(|gpu| (gpu, reads::touched(def.op))),
            first: OnceLock::new(),
            by_shape: def.variants.iter().all(|variant| variant.host.is_empty()),
            host: HostOp::new(node),
        })
    }

    #[inline]
    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        match self.instead {
            None => {}
            Some(Instead::Fault(kind)) => return injected(kind),
            Some(Instead::Host) => return self.host.run(context),
        }
        // The usual counts need no allocation.
        let done = match context.inputs() {
            0 => self.step_of::<0>(context),
            1 => self.step_of::<1>(context),
            2 => self.step_of::<2>(context),
            3 => self.step_of::<3>(context),
            count => self.step_of_many(context, count),
        };
        match done {
            Err(error) if error.code() == Code::Unimplemented => self.elsewhere(context, error),
            Err(error) if error.code() == Code::InvalidArgument => self.appeal(context, error),
            done => done,
        }
    }
}

/// What stands in a place that is not filled yet.
const NO_INPUT: Option<Tensor> = None;
/// As [`NO_INPUT`].
static NO_SPEC: Spec = Spec::scalar(DType::U8);
/// As [`NO_INPUT`].
const NO_REF: TensorRef<'static> = TensorRef::forwarded(&NO_SPEC);

impl OpKernel {
    /// A step with tensors of more axes than the kernels serve, of which no output is made yet.
    #[cold]
    fn elsewhere(&self, context: &mut Context<'_>, error: Error) -> Result<()> {
        if self.def.op.starts_with("Tfp") {
            let advice = "TFP_FUSION=0 leaves the ops of more axes to TensorFlow";
            return Err(Error::invalid(format!("{}; {advice}", error.message())));
        }
        if !Eager::is_available() {
            return Err(error);
        }
        self.host.run(context)
    }

    /// A step that was refused. TensorFlow's kernel decides if it looks at less than this device's: at nothing else
    /// where there is nothing to compute, and at 32 bits of an integer.
    #[cold]
    fn appeal(&self, context: &mut Context<'_>, refusal: Error) -> Result<()> {
        if !is_lenient(self.def.op) || !Eager::is_available() {
            return Err(refusal);
        }
        let inputs = (0..context.inputs()).map(|index| context.input(index).map(Some));
        // One that has become an output is gone.
        let Ok(inputs) = inputs.collect::<Result<Vec<_>>>() else {
            return Err(refusal);
        };
        let specs = inputs.iter().flatten().map(read_spec);
        let Ok(specs) = specs.collect::<Result<Vec<_>>>() else {
            return Err(refusal);
        };
        let Ok(plan) = self.plan(context, &inputs, &specs) else {
            // No output is made yet.
            if !inputs.iter().flatten().any(is_seen_in_part) {
                return Err(refusal);
            }
            drop(inputs);
            return self.host.run(context);
        };
        let mut planned = plan.outputs.all().iter().flatten();
        if planned.all(|output| output.spec.shape().contains(&0))
            && let Ok(found) = self.host.outputs(context)
            && found.iter().all(|output| output.elements() == 0)
        {
            return Ok(());
        }
        Err(refusal)
    }

    /// One step with `N` inputs.
    #[inline(never)]
    fn step_of<const N: usize>(&self, context: &mut Context<'_>) -> Result<()> {
        self.step(context, &mut [NO_INPUT; N], &mut [NO_REF; N])
    }

    /// As [`Self::step_of`], for any number of inputs.
    #[inline(never)]
    fn step_of_many(&self, context: &mut Context<'_>, count: usize) -> Result<()> {
        let mut inputs: Vec<_> = (0..count).map(|_| None).collect();
        self.step(context, &mut inputs, &mut vec![NO_REF; count])
    }

    /// One step, with a place per input in each list. All that a usual step needs is compiled into
    /// one function per number of inputs: a call of one by the other costs as much as its work.
    #[inline(always)]
    fn step<'a>(
        &'a self,
        context: &mut Context<'_>,
        inputs: &'a mut [Option<Tensor>],
        refs: &'a mut [TensorRef<'a>],
    ) -> Result<()> {
        let Some(first) = self.first.get() else {
            return self.first_step(context, inputs);
        };
        let mut same = true;
        for (slot, plan) in inputs.iter_mut().zip(&first.inputs) {
            let (tensor, fits) = context.planned_input(plan)?;
            *slot = Some(tensor);
            same &= fits;
        }
        if same {
            self.make(context, &first.plan, inputs, &first.specs, refs)
        } else {
            self.first_step(context, inputs)
        }
    }

    /// A step with inputs that none before it had, or whose plan depends on values.
    #[inline(never)]
    fn first_step(&self, context: &mut Context<'_>, inputs: &mut [Option<Tensor>]) -> Result<()> {
        let mut specs = Slots::<Spec, CANDIDATES>::new(inputs.len(), || NO_SPEC);
        let specs = specs.all_mut();
        for (index, (slot, spec)) in inputs.iter_mut().zip(&mut *specs).enumerate() {
            let tensor = match slot {
                Some(tensor) => tensor,
                None => slot.insert(context.input(index)?),
            };
            *spec = read_spec(tensor)?;
        }
        let mut plan = self.plan(context, inputs, specs)?;
        if self.by_shape && self.first.get().is_none() {
            let planned = specs.iter().enumerate();
            let planned = planned.map(|(index, spec)| context.plan_input(index, layout(spec)?));
            let planned = planned.collect::<Result<_>>()?;
            let first = self.first.get_or_init(|| First {
                inputs: planned,
                specs: Box::from(&*specs),
                plan,
            });
            // Another thread may have kept the plan of other shapes.
            if *first.specs == *specs {
                let mut refs = Slots::<_, CANDIDATES>::new(specs.len(), || NO_REF);
                return self.make(context, &first.plan, inputs, specs, refs.all_mut());
            }
            plan = self.plan(context, inputs, specs)?;
        }
        let mut refs = Slots::<_, CANDIDATES>::new(specs.len(), || NO_REF);
        self.make(context, &plan, inputs, specs, refs.all_mut())
    }

    /// What the outputs of a step will be.
    fn plan(
        &self,
        context: &Context<'_>,
        inputs: &[Option<Tensor>],
        specs: &[Spec],
    ) -> Result<Plan> {
        let outputs = context.outputs();
        let mut refs = Slots::<TensorRef<'_>, CANDIDATES>::new(inputs.len(), || NO_REF);
        view_all(inputs, specs, refs.all_mut())?;
        let inputs = Inputs {
            tensors: refs.all(),
            attrs: &self.attrs,
        };
        let mut found = Slots::<Spec, INLINE>::new(outputs, || NO_SPEC);
        let mut next = 0;
        let mut sink = |dtype, shape| {
            if let Some(spec) = found.all_mut().get_mut(next) {
                *spec = Spec::new(dtype, shape)?;
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
        let mut plan = Plan {
            outputs: Slots::new(outputs, || None),
            scratch: (self.def.scratch)(&inputs).map_err(refused)?,
        };
        for (index, (slot, spec)) in plan
            .outputs
            .all_mut()
            .iter_mut()
            .zip(found.all())
            .enumerate()
        {
            let mut candidates = [0; CANDIDATES];
            let fitting = self.def.forward.iter().filter(|(input, output)| {
                *output == index && specs.get(*input).is_some_and(|of| of == spec)
            });
            let mut count = 0;
            for (slot, (input, _)) in candidates.iter_mut().zip(fitting) {
                *slot = *input;
                count += 1;
            }
            *slot = Some(Output {
                spec: *spec,
                plan: context.plan_output(index, layout(spec)?, &candidates[..count])?,
            });
        }
        Ok(plan)
    }

    /// The buffer of an output: an input's that nobody else needs, or a fresh one. An input whose
    /// buffer is taken is gone from `inputs` afterwards.
    #[inline(always)]
    fn output<'c>(
        &self,
        context: &mut Context<'c>,
        output: &OutputPlan,
        inputs: &mut [Option<Tensor>],
    ) -> Result<TensorMut<'c>> {
        for (index, slot) in inputs.iter_mut().enumerate() {
            // A handle would count as a user of the buffer.
            if output.is_candidate(index) {
                *slot = None;
            }
        }
        let tensor = context.planned_output(output)?;
        for (index, slot) in inputs.iter_mut().enumerate() {
            if output.is_candidate(index) && !context.is_forwarded(index) {
                *slot = Some(context.input(index)?);
            }
        }
        Ok(tensor)
    }

    /// Allocates what a step makes, and computes it.
    #[inline(always)]
    fn make<'a>(
        &'a self,
        context: &mut Context<'_>,
        plan: &'a Plan,
        inputs: &'a mut [Option<Tensor>],
        specs: &'a [Spec],
        refs: &'a mut [TensorRef<'a>],
    ) -> Result<()> {
        let [Some(output)] = plan.outputs.all() else {
            return self.make_many(context, plan, inputs, specs, refs);
        };
        let mut scratch = None;
        if plan.scratch > 0 {
            scratch =
                Some(context.allocate_temp(DataType::UINT8, &[plan.scratch], gpu::is_far())?);
        }
        let mut tensor = self.output(context, &output.plan, inputs)?;
        view_all(inputs, specs, refs)?;
        let output = writable(&mut tensor, &output.spec)?;
        self.call(refs, &mut [output], &mut scratch)
    }

    /// As [`Self::make`], for any number of outputs.
    #[inline(never)]
    fn make_many<'a>(
        &'a self,
        context: &mut Context<'_>,
        plan: &'a Plan,
        inputs: &'a mut [Option<Tensor>],
        specs: &'a [Spec],
        refs: &'a mut [TensorRef<'a>],
    ) -> Result<()> {
        let mut scratch = None;
        if plan.scratch > 0 {
            scratch =
                Some(context.allocate_temp(DataType::UINT8, &[plan.scratch], gpu::is_far())?);
        }
        if let [Some(first), Some(second)] = plan.outputs.all() {
            let mut a = self.output(context, &first.plan, inputs)?;
            let mut b = self.output(context, &second.plan, inputs)?;
            view_all(inputs, specs, refs)?;
            let (a, b) = (
                writable(&mut a, &first.spec)?,
                writable(&mut b, &second.spec)?,
            );
            return self.call(refs, &mut [a, b], &mut scratch);
        }
        let planned = || plan.outputs.all().iter().flatten();
        let mut outputs = Vec::with_capacity(plan.outputs.all().len());
        for output in planned() {
            outputs.push(self.output(context, &output.plan, inputs)?);
        }
        view_all(inputs, specs, refs)?;
        let outputs = outputs.iter_mut().zip(planned());
        let outputs = outputs.map(|(tensor, output)| writable(tensor, &output.spec));
        let mut outputs = outputs.collect::<Result<Vec<_>>>()?;
        self.call(refs, &mut outputs, &mut scratch)
    }

    #[inline(always)]
    fn call<'a>(
        &'a self,
        tensors: &'a [TensorRef<'a>],
        outputs: &'a mut [KernelMut<'a>],
        scratch: &'a mut Option<TensorMut<'_>>,
    ) -> Result<()> {
        gpu::check_alive()?;
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
            parallel: self.pool,
            state: &self.state,
        };
        if let Some(offload) = &self.offload
            && offload.offer(&mut call)?
        {
            return Ok(());
        }
        if let Some((gpu, touched)) = self.watched {
            return reads::run(gpu, self.def, &mut call, touched);
        }
        (self.def.run)(&mut call).map_err(refused)
    }
}

/// Whether TensorFlow's kernels may look at less than all of an input: it has no elements, or an integer of more
/// than 32 bits.
fn is_seen_in_part(input: &Tensor) -> bool {
    if input.elements() == 0 {
        return true;
    }
    let is_wide = |&number: &i64| i32::try_from(number).is_err();
    input.data_type() == DataType::INT64
        && input.as_slice().is_ok_and(|all| all.iter().any(is_wide))
}

/// What `TFP_FAULT` asks for.
#[cold]
#[allow(clippy::panic)]
fn injected(fault: FaultKind) -> Result<()> {
    match fault {
        FaultKind::Panic => panic!("injected by TFP_FAULT"),
        FaultKind::Error => Err(Error::internal("injected by TFP_FAULT")),
    }
}
