//! Calls of TensorFlow beside an async runtime: each on a thread that may block, with a deadline.
//!
//! `tools/bazel run //examples/serve:blocking`

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tfp::{Cancellation, DataType, EagerContext, GraphFunction, Shape, Tensor, ops, while_loop};
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

type Failure = Box<dyn Error + Send + Sync>;

/// The longest that a caller waits.
const LIMIT: Duration = Duration::from_secs(2);

/// Ends the work of a future that is dropped, as by a deadline or a client that is gone.
struct EndOnDrop(Cancellation);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Calls a function without keeping a thread of the runtime.
async fn call(cx: EagerContext, function: Arc<GraphFunction>, x: f32) -> Result<f32, Failure> {
    let cancellation = Cancellation::new()?;
    let cx = cx.cancelled_by(&cancellation);
    let _end = EndOnDrop(cancellation);
    let work = spawn_blocking(move || {
        let x = cx.handle(&Tensor::scalar(x)?)?;
        let y = function.call(&cx, &[x])?;
        y[0].to_tensor()?.to_scalar::<f32>()
    });
    Ok(work.await??)
}

/// A function that halves its argument until it is at most one: infinity never is.
fn halves(cx: &EagerContext) -> tfp::Result<GraphFunction> {
    let scalar = [(DataType::FLOAT, Shape::scalar())];
    GraphFunction::trace(cx, "halves", &scalar, |cx, args| {
        while_loop(
            cx,
            args,
            |cx, x| ops::greater(cx, &x[0], 1.0_f32),
            |cx, x| Ok(vec![ops::mul(cx, &x[0], 0.5_f32)?]),
        )
    })
}

fn main() -> Result<(), Failure> {
    let cx = EagerContext::new()?;
    let function = Arc::new(halves(&cx)?);
    let numbers = [10.0, 3.0, 0.5, f32::INFINITY];
    let mut found = Runtime::new()?.block_on(async {
        let mut calls = JoinSet::new();
        for x in numbers {
            let (cx, function) = (cx.clone(), Arc::clone(&function));
            calls.spawn(async move { (x, timeout(LIMIT, call(cx, function, x)).await) });
        }
        calls.join_all().await
    });
    found.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    for (x, outcome) in found {
        match outcome {
            Ok(y) => println!("{x}: {}", y?),
            Err(late) => println!("{x}: {late}"),
        }
    }
    // The end of the runtime waited for all threads, so the loop without an end has ended.
    Ok(())
}
