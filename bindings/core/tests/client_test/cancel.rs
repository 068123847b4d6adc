//! Eager ops that another thread ends.

use std::thread;
use std::time::Duration;

use tfp_core::*;

use crate::support::{add, refused};

fn queue(ctx: &EagerContext) -> Result<TensorHandle> {
    OpBuilder::new("FIFOQueueV2")?
        .attr("component_types", [DataType::FLOAT].as_slice())?
        .one(ctx)
}

/// Takes from a queue; waits while it is empty.
fn take(ctx: &EagerContext, queue: &TensorHandle) -> Result<TensorHandle> {
    OpBuilder::new("QueueDequeueV2")?
        .input(queue)
        .attr("component_types", [DataType::FLOAT].as_slice())?
        .one(ctx)
}

#[test]
fn an_op_that_waits_is_ended_and_others_go_on() -> Result<()> {
    let ctx = EagerContext::new()?;
    let queue = queue(&ctx)?;
    let cancellation = Cancellation::new()?;
    let stopped = ctx.cancelled_by(&cancellation);
    assert_eq!(add(&stopped, 1, 2)?.to_tensor()?.to_scalar::<i32>()?, 3);
    assert!(!cancellation.is_cancelled());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| take(&stopped, &queue));
        // Whether it waits already or not, it ends.
        thread::sleep(Duration::from_millis(50));
        cancellation.cancel();
        let ended = waiting.join().expect("the op does not panic");
        assert_eq!(refused(ended, &["QueueDequeueV2"]).code(), Code::Cancelled);
        Ok::<_, Error>(())
    })?;
    assert!(cancellation.is_cancelled());
    // What comes later ends at once, also on a device; the context itself is as before.
    let on_cpu = stopped.on_device("/device:CPU:0")?;
    for later in [&stopped, &on_cpu] {
        let ended = refused(add(later, 1, 2), &["AddV2", "before it began"]);
        assert_eq!(ended.code(), Code::Cancelled);
    }
    let put = OpBuilder::new("QueueEnqueueV2")?.input(&queue);
    put.list([4.0_f32]).execute(&ctx)?;
    assert_eq!(take(&ctx, &queue)?.to_tensor()?.to_scalar::<f32>()?, 4.0);
    let again = ctx.cancelled_by(&Cancellation::new()?);
    assert_eq!(add(&again, 1, 2)?.to_tensor()?.to_scalar::<i32>()?, 3);
    Ok(())
}

#[test]
fn an_op_in_the_background_keeps_its_cancellation() -> Result<()> {
    let ctx = EagerContext::with_options(&EagerOptions {
        is_async: true,
        ..EagerOptions::default()
    })?;
    let queue = queue(&ctx)?;
    let cancellation = Cancellation::new()?;
    let taken = take(&ctx.cancelled_by(&cancellation), &queue)?;
    cancellation.cancel();
    drop(cancellation);
    let ended = refused(taken.to_tensor(), &[]);
    assert_eq!(ended.code(), Code::Cancelled);
    ctx.thread_executor()?.clear_error();
    Ok(())
}
