//! An op of your own, from definition to gradient: `SwiGlu`, the gate of many transformers.
//!
//! `y = gate * sigmoid(gate) * up`, element by element. The library defines the op and its gradient,
//! gives both a shape function, and brings kernels for the TFP device and for the CPU. `swiglu.py`
//! beside it is what Python calls.

use std::marker::PhantomData;

use tfp_bindings::op::{OpDefinition, ShapeContext, ShapeFunction};
use tfp_bindings::{
    Construction, Context, DataType, Element, Error, Kernel, Registration, Result, init_kernels,
};

/// A floating-point type that the kernels take.
trait Real: Element + Copy + Send + Sync {
    fn swiglu(gate: Self, up: Self) -> Self;
    /// The derivatives by gate and up, times the derivative of the result.
    fn gradient(gate: Self, up: Self, dy: Self) -> (Self, Self);
}

macro_rules! real {
    ($type:ty) => {
        impl Real for $type {
            fn swiglu(gate: Self, up: Self) -> Self {
                gate / (1.0 + (-gate).exp()) * up
            }

            fn gradient(gate: Self, up: Self, dy: Self) -> (Self, Self) {
                let sigmoid = 1.0 / (1.0 + (-gate).exp());
                let by_gate = sigmoid * (1.0 + gate * (1.0 - sigmoid));
                (dy * up * by_gate, dy * gate * sigmoid)
            }
        }
    };
}

real!(f32);
real!(f64);

/// Fails unless two tensors have one shape.
fn same(what: &str, a: &[usize], b: &[usize]) -> Result<()> {
    if a == b {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "gate has shape {a:?}, {what} has {b:?}: expected the same"
    )))
}

struct SwiGlu<T>(PhantomData<T>);

impl<T: Real> Kernel for SwiGlu<T> {
    fn new(_: &Construction) -> Result<Self> {
        Ok(Self(PhantomData))
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        let (gate, up) = (context.input(0)?, context.input(1)?);
        let shape: Vec<usize> = gate.dims().collect();
        same("up", &shape, &up.dims().collect::<Vec<_>>())?;
        let mut output = context.allocate_output(0, gate.data_type(), &shape)?;
        let inputs = gate.as_slice::<T>()?.iter().zip(up.as_slice::<T>()?);
        for (y, (&gate, &up)) in output.as_mut_slice::<T>()?.iter_mut().zip(inputs) {
            *y = T::swiglu(gate, up);
        }
        Ok(())
    }
}

struct SwiGluGrad<T>(PhantomData<T>);

impl<T: Real> Kernel for SwiGluGrad<T> {
    fn new(_: &Construction) -> Result<Self> {
        Ok(Self(PhantomData))
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        let (gate, up, dy) = (context.input(0)?, context.input(1)?, context.input(2)?);
        let shape: Vec<usize> = gate.dims().collect();
        same("up", &shape, &up.dims().collect::<Vec<_>>())?;
        same("dy", &shape, &dy.dims().collect::<Vec<_>>())?;
        let mut by_gate = context.allocate_output(0, gate.data_type(), &shape)?;
        let mut by_up = context.allocate_output(1, gate.data_type(), &shape)?;
        let (gate, up, dy) = (gate.as_slice::<T>()?, up.as_slice()?, dy.as_slice()?);
        let (by_gate, by_up) = (by_gate.as_mut_slice()?, by_up.as_mut_slice()?);
        for i in 0..gate.len() {
            (by_gate[i], by_up[i]) = T::gradient(gate[i], up[i], dy[i]);
        }
        Ok(())
    }
}

/// Every output has the shape that all inputs have; a shape that contradicts another is refused
/// when the graph is built.
struct OneShape;

impl ShapeFunction for OneShape {
    fn infer(context: &mut ShapeContext<'_>) -> Result<()> {
        let mut best = context.input(0)?;
        for index in 1..context.inputs() {
            let other = context.input(index)?;
            let (Some(a), Some(b)) = (context.dims(&best)?, context.dims(&other)?) else {
                if context.dims(&best)?.is_none() {
                    best = other;
                }
                continue;
            };
            let agree = |(a, b): (&i64, &i64)| a == b || *a < 0 || *b < 0;
            if a.len() != b.len() || !a.iter().zip(&b).all(agree) {
                return Err(Error::invalid(format!(
                    "gate has shape {a:?}, input {index} has {b:?}: expected the same"
                )));
            }
            if b.iter().filter(|&&dim| dim < 0).count() < a.iter().filter(|&&dim| dim < 0).count() {
                best = other;
            }
        }
        // The gradient has an output for each input but the last.
        for output in 0..context.inputs().max(2) - 1 {
            context.set_output(output, &best)?;
        }
        Ok(())
    }
}

fn register() -> Result<()> {
    let op = |name: &str| OpDefinition::new(name).attr("T: {float, double}");
    op("SwiGlu")
        .input("gate: T")
        .input("up: T")
        .output("y: T")
        .register::<OneShape>()?;
    op("SwiGluGrad")
        .input("gate: T")
        .input("up: T")
        .input("dy: T")
        .output("by_gate: T")
        .output("by_up: T")
        .register::<OneShape>()?;
    for device in ["TFP", "CPU"] {
        kernels::<f32>(device, DataType::FLOAT)?;
        kernels::<f64>(device, DataType::DOUBLE)?;
    }
    Ok(())
}

fn kernels<T: Real + 'static>(device: &str, data_type: DataType) -> Result<()> {
    let kernel = |op: &str| Registration::new(op, device).constraint("T", data_type);
    kernel("SwiGlu").register::<SwiGlu<T>>()?;
    kernel("SwiGluGrad").register::<SwiGluGrad<T>>()?;
    Ok(())
}

/// TensorFlow calls this when it loads the library.
#[unsafe(no_mangle)]
pub extern "C" fn TF_InitKernel() {
    init_kernels(register);
}
