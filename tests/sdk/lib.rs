//! A plug-in that uses every part of the SDK, for `sdk_test.py`.
//!
//! What TensorFlow asks for no result of (registrations) is written to the file that `SDK_LOG`
//! names.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tfp_bindings::host::{HostDevice, HostOptions};
use tfp_bindings::op::{OpDefinition, SameShape, ShapeContext, ShapeFunction, UnknownShapes};
use tfp_bindings::optimizer::{Item, Optimizer, Pass};
use tfp_bindings::profiler::Profiler;
use tfp_bindings::proto::graph::GraphDef;
use tfp_bindings::proto::xspace::{self, Event, Line, Plane, Stat};
use tfp_bindings::{
    AsyncKernel, Construction, Context, DataType, Error, InputPlan, Kernel, Layout, OutputPlan,
    Platform, PlatformInfo, Registration, Result, Step, Tensor,
};

const DEVICE_TYPE: &str = "SDK";

struct SdkPlatform;

impl Platform for SdkPlatform {
    type Device = HostDevice;

    fn info(&self) -> PlatformInfo {
        PlatformInfo::new(DEVICE_TYPE)
    }

    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }

    fn create_device(&self, _: usize) -> Result<HostDevice> {
        fault("create_device")?;
        Ok(HostDevice::new(HostOptions::new("sdk")))
    }
}

/// Fails if `SDK_FAULT` says so.
fn fault(place: &str) -> Result<()> {
    match std::env::var("SDK_FAULT") {
        Ok(found) if found == place => Err(Error::internal(format!("{place} is broken"))),
        _ => Ok(()),
    }
}

fn dims(tensor: &Tensor) -> Vec<usize> {
    tensor.dims().collect()
}

/// Number of steps of [`AsyncNeg`] while profiling.
static STEPS: AtomicI64 = AtomicI64::new(0);
static PROFILING: AtomicBool = AtomicBool::new(false);

/// Finishes every step on another thread.
struct AsyncNeg;

impl AsyncKernel for AsyncNeg {
    fn new(_: &Construction) -> Result<Self> {
        Ok(Self)
    }

    fn compute(self: Arc<Self>, mut step: Step) {
        let first = step.with(|context| Ok(context.input(0)?.as_slice::<f32>()?.first().copied()));
        let first = first.ok().flatten();
        assert!(first != Some(15.0), "15 is not even begun");
        std::thread::spawn(move || {
            if first == Some(16.0) {
                // The starting thread panics meanwhile.
                std::thread::sleep(Duration::from_millis(50));
            }
            let result = step.with(|context| {
                if first == Some(17.0) {
                    context.forward_or_allocate_output(&[0], 0, &[1])?;
                }
                Ok(())
            });
            let result = result.and_then(|()| {
                step.with(|context| {
                    let input = context.input(0)?;
                    let mut output = context.allocate_output(0, DataType::FLOAT, &dims(&input))?;
                    let pairs = output.as_mut_slice::<f32>()?.iter_mut();
                    for (y, &x) in pairs.zip(input.as_slice::<f32>()?) {
                        assert!(x != 13.0, "13 is unlucky");
                        assert!(x != 14.0, "forget the step");
                        *y = -x;
                    }
                    if PROFILING.load(Ordering::Relaxed) {
                        STEPS.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            });
            // A step that is dropped unfinished is an error too.
            if !matches!(&result, Err(error) if error.message().contains("forget")) {
                step.finish(result);
            }
        });
        assert!(first != Some(16.0), "16 is begun elsewhere");
    }
}

/// `y = scale * x + offset`, in the input's buffer if that is free, with an attribute of every kind.
struct Affine {
    scale: f32,
    offset: i64,
}

impl Kernel for Affine {
    fn new(node: &Construction) -> Result<Self> {
        let found = format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            node.boolean("flag")?,
            node.string("text")?,
            node.data_type("T")?,
            node.shape("shape")?,
            node.shapes("shapes")?,
            node.ints("numbers")?,
            node.floats("floats")?,
            node.data_types("types")?,
            node.byte_strings("texts")?,
        );
        let expected = "true \"hällo\" float32 Some([2, -1]) [None, Some([])] [1, -2] [0.5] \
                        [int64, bool] [[97], [0, 255]]";
        if found != expected {
            return Err(Error::invalid(format!("attributes are {found}")));
        }
        let messages = [
            vec![node.tensor("tensor")?],
            node.tensors("tensors")?,
            vec![node.func("function")?],
            node.funcs("functions")?,
        ];
        // Tensors begin with their type, functions with the length of their name.
        let starts = messages.map(|all| all.iter().map(|m| m[..2].to_vec()).collect::<Vec<_>>());
        let expected = [
            vec![vec![8, 1]],
            vec![vec![8, 3], vec![8, 9]],
            vec![vec![10, 3]],
            vec![vec![10, 3], vec![10, 5]],
        ];
        if starts != expected || node.bools("flags")? != [true, false] {
            return Err(Error::invalid(format!("attributes are {starts:?}")));
        }
        Ok(Self {
            scale: node.float("scale")?,
            offset: node.int("offset")?,
        })
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        let input = context.input(0)?;
        let shape = dims(&input);
        let mut values = context.allocate_temp(DataType::FLOAT, &shape, true)?;
        values
            .as_mut_slice::<f32>()?
            .copy_from_slice(input.as_slice::<f32>()?);
        drop(input);
        let (mut output, taken) = context.forward_or_allocate_output(&[0], 0, &shape)?;
        if taken.is_some() && context.input(0).is_ok() {
            return Err(Error::internal("a forwarded input can still be read"));
        }
        if context.input_range("x")? != (0..1) || context.input_type(0)? != DataType::FLOAT {
            return Err(Error::internal("the input is not what it was"));
        }
        let pairs = output.as_mut_slice::<f32>()?.iter_mut();
        for (y, &x) in pairs.zip(values.as_slice::<f32>()?) {
            *y = self.scale * x + self.offset as f32;
        }
        drop(output);
        let flag = context.allocate_output(1, DataType::INT32, &[]);
        flag?.as_mut_slice::<i32>()?[0] = i32::from(taken.is_some());
        Ok(())
    }
}

/// `y` has the shape of `x`, `forwarded` is a scalar.
struct AffineShapes;

impl ShapeFunction for AffineShapes {
    fn infer(context: &mut ShapeContext<'_>) -> Result<()> {
        if context.inputs() != 1 || context.attr_type("T")? != DataType::FLOAT {
            return Err(Error::internal("the node is not what it was"));
        }
        let x = context.input(0)?;
        if context.dims(&x)?.is_some_and(|dims| dims.len() > 3) {
            return Err(Error::invalid("the rank of x is above 3"));
        }
        let scalar = context.scalar()?;
        let same = context.concatenate(&scalar, &x)?;
        context.set_output(0, &same)?;
        context.set_output(1, &scalar)
    }
}

/// Panics.
struct BrokenShapes;

impl ShapeFunction for BrokenShapes {
    fn infer(_: &mut ShapeContext<'_>) -> Result<()> {
        panic!("no shape")
    }
}

/// Breaks its promises in the way that the attribute `how` says.
struct Broken(i64);

impl Kernel for Broken {
    fn new(node: &Construction) -> Result<Self> {
        match node.int("how")? {
            0 => Err(Error::invalid("refused when constructed")),
            1 => panic!("panicked when constructed"),
            how => Ok(Self(how)),
        }
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        match self.0 {
            2 => panic!("panicked in a step"),
            3 => context.allocate_output(0, DataType::INT32, &[1]).map(drop),
            4 => context
                .allocate_output(0, DataType::FLOAT, &[usize::MAX, 2])
                .map(drop),
            5 => context.allocate_output(7, DataType::FLOAT, &[1]).map(drop),
            6 => context.input(5).map(drop),
            7 => {
                let wrong = context.allocate_temp(DataType::INT32, &[1], true)?;
                context.set_output(0, &wrong)
            }
            8 => {
                let input = context.input(0)?;
                context.set_output(0, &input)?;
                context.set_output(0, &input)
            }
            9 => {
                let input = context.input(0)?;
                context.allocate_output(0, DataType::FLOAT, &[1])?;
                context.set_output(0, &input)
            }
            10 => Ok(()),
            11 => context.leave_output(1),
            _ => context.leave_output(0),
        }
    }
}

/// Tells which of several kernels of an op it is.
struct Choice<const N: i32>;

impl<const N: i32> Kernel for Choice<N> {
    fn new(_: &Construction) -> Result<Self> {
        Ok(Self)
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        let mut output = context.allocate_output(0, DataType::INT32, &[])?;
        output.as_mut_slice::<i32>()?[0] = N;
        Ok(())
    }
}

/// Adds 1 to an input that has the layout of the first step, and 2 to others, with plans of its own
/// or, as the attribute `how` says, with those of the first such node of the process.
struct Planned {
    how: i64,
    plans: OnceLock<(InputPlan, OutputPlan)>,
}

static FIRST_PLANS: OnceLock<(InputPlan, OutputPlan)> = OnceLock::new();

impl Kernel for Planned {
    fn new(node: &Construction) -> Result<Self> {
        Ok(Self {
            how: node.int("how")?,
            plans: OnceLock::new(),
        })
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        let shape = dims(&context.input(0)?);
        let layout = |data_type| Layout::new(data_type, &shape);
        if self.plans.get().is_none() {
            let found = layout(DataType::FLOAT)?;
            let input = context.plan_input(0, found.clone())?;
            let plans = (input, context.plan_output(0, found, &[0])?);
            let _ = FIRST_PLANS.set(plans.clone());
            let _ = self.plans.set(plans);
        }
        let plans = |own: bool| if own { &self.plans } else { &FIRST_PLANS }.get();
        let missing = || Error::internal("no plans");
        let (of_input, _) = plans(self.how != 1).ok_or_else(missing)?;
        let (_, of_output) = plans(self.how != 2).ok_or_else(missing)?;
        match self.how {
            4 => return context.plan_input(0, layout(DataType::INT32)?).map(drop),
            5 => return context.plan_input(1, layout(DataType::FLOAT)?).map(drop),
            6 => {
                return context
                    .plan_output(0, layout(DataType::INT32)?, &[0])
                    .map(drop);
            }
            7 => {
                return context
                    .plan_output(0, layout(DataType::FLOAT)?, &[1])
                    .map(drop);
            }
            _ => {}
        }
        let (input, fits) = context.planned_input(of_input)?;
        let values = input.as_slice::<f32>()?.to_vec();
        drop(input);
        let mut output = if fits {
            context.planned_output(of_output)?
        } else {
            context.allocate_output(0, DataType::FLOAT, &shape)?
        };
        if self.how == 3 && context.is_forwarded(0) {
            context.planned_output(of_output)?;
        }
        let more = if fits { 1.0 } else { 2.0 };
        for (y, x) in output.as_mut_slice::<f32>()?.iter_mut().zip(values) {
            *y = x + more;
        }
        Ok(())
    }
}

fn register() -> Result<()> {
    let mut log = String::new();
    let mut note = |what: &str, result: std::result::Result<(), String>| {
        let _ = writeln!(
            log,
            "{what}: {}",
            result.err().unwrap_or_else(|| "ok".into())
        );
    };
    let affine = OpDefinition::new("SdkAffine")
        .input("x: T")
        .output("y: T")
        .output("forwarded: int32")
        .attr("T: {float, double}")
        .attr("scale: float")
        .attr("offset: int = 3")
        .attr("flag: bool")
        .attr("text: string")
        .attr("shape: shape")
        .attr("shapes: list(shape)")
        .attr("numbers: list(int)")
        .attr("floats: list(float)")
        .attr("types: list(type)")
        .attr("texts: list(string)")
        .attr("flags: list(bool)")
        .attr("tensor: tensor")
        .attr("tensors: list(tensor)")
        .attr("function: func")
        .attr("functions: list(func)");
    let text_of = |e: Error| e.to_string();
    let text = text_of;
    note("define", affine.register::<AffineShapes>().map_err(text));
    note("define again", affine.register::<SameShape>().map_err(text));
    let shapeless = OpDefinition::new("SdkBrokenShape").input("x: float");
    let shapeless = shapeless.output("y: float");
    note(
        "define broken shape",
        shapeless.register::<BrokenShapes>().map_err(text),
    );
    let broken = OpDefinition::new("SdkBroken")
        .input("x: float")
        .output("y: float")
        .attr("how: int");
    note(
        "define broken",
        broken.stateful().register::<UnknownShapes>().map_err(text),
    );

    let planned = OpDefinition::new("SdkPlanned")
        .input("x: float")
        .output("y: float")
        .attr("how: int");
    note(
        "define planned",
        planned.register::<SameShape>().map_err(text),
    );

    let kernel = |op: &str| Registration::new(op, DEVICE_TYPE);
    let text = |e: tfp_bindings::RegistrationError| e.to_string();
    let neg = kernel("Neg").constraint("T", DataType::FLOAT);
    note("async", neg.register_async::<AsyncNeg>().map_err(text));
    note("duplicate", neg.register_async::<AsyncNeg>().map_err(text));
    let affine = kernel("SdkAffine").constraint("T", DataType::FLOAT);
    let affine = affine.host_memory("forwarded");
    note("affine", affine.register::<Affine>().map_err(text));
    note(
        "broken",
        kernel("SdkBroken").register::<Broken>().map_err(text),
    );
    let choice = OpDefinition::new("SdkChoice").output("y: int32");
    note(
        "define choice",
        choice
            .stateful()
            .register::<UnknownShapes>()
            .map_err(text_of),
    );
    let choice = kernel("SdkChoice").host_memory("y");
    for (what, result) in [
        ("choice 0", choice.register::<Choice<0>>()),
        (
            "choice 1",
            choice.clone().priority(1).register::<Choice<1>>(),
        ),
        ("choice 2", choice.label("two").register::<Choice<2>>()),
    ] {
        note(what, result.map_err(text));
    }
    note(
        "planned",
        kernel("SdkPlanned").register::<Planned>().map_err(text),
    );
    // Its construction fails: only the optimizer's rewriting lets such a node run.
    let sign = kernel("Softsign").constraint("T", DataType::FLOAT);
    note("softsign", sign.register::<Broken>().map_err(text));
    note(
        "no op",
        kernel("NoSuchOp").register::<Broken>().map_err(text),
    );
    let wrong = kernel("Relu").constraint("U", DataType::FLOAT);
    note("no attr", wrong.register::<Broken>().map_err(text));
    let wrong = kernel("Relu").constraint("T", DataType::STRING);
    note("no type", wrong.register::<Broken>().map_err(text));
    let wrong = kernel("Relu").host_memory("nothing");
    note("no argument", wrong.register::<Broken>().map_err(text));
    match std::env::var("SDK_LOG") {
        Ok(path) => std::fs::write(path, log).map_err(|e| Error::internal(e.to_string())),
        Err(_) => Ok(()),
    }
}

/// Turns `Softsign` into `Neg` where the node may go and its shape is known.
struct Rewrite;

impl Optimizer for Rewrite {
    fn new() -> Result<Self> {
        Ok(Self)
    }

    fn optimize(&self, mut graph: GraphDef, item: &Item<'_>) -> Result<GraphDef> {
        let preserved = item.preserved()?;
        let _ = item.fetched()?;
        let properties = item.properties()?;
        for node in &mut graph.nodes {
            if node.op == "Softsign" && !preserved.contains(&node.name) {
                let outputs = properties.outputs(&node.name)?;
                if outputs == [(DataType::FLOAT, Some(vec![2]))] {
                    node.op = "Neg".to_owned();
                }
            }
        }
        Ok(graph)
    }
}

struct Steps;

impl Profiler for Steps {
    fn start(&self) -> Result<()> {
        STEPS.store(0, Ordering::Relaxed);
        PROFILING.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn stop(&self) -> Result<()> {
        PROFILING.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn collect(&self) -> Result<Vec<u8>> {
        fault("collect")?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let event = Event {
            name: "all steps".to_owned(),
            offset_ps: 0,
            duration_ps: 1000,
            stats: vec![("steps".to_owned(), Stat::Int(STEPS.load(Ordering::Relaxed)))],
        };
        let line = Line {
            id: 1,
            name: "steps".to_owned(),
            timestamp_ns: now.map_or(0, |t| i64::try_from(t.as_nanos()).unwrap_or(0)),
            events: vec![event],
        };
        Ok(xspace::to_bytes(&[Plane {
            id: 1,
            name: format!("/device:{DEVICE_TYPE}:0"),
            lines: vec![line],
        }]))
    }
}

tfp_bindings::export_plugin! {
    platform: Ok(SdkPlatform),
    kernels: register(),
    optimizer: Rewrite, off: &[Pass::Remapping],
    profiler: Steps,
}
