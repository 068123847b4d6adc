//! Functions that another thread ends.

use std::thread;
use std::time::Duration;

use tfp::{
    Cancellation, Code, DataType, EagerContext, GraphFunction, Result, Shape, Tape, Tensor, ops,
    while_loop,
};

/// A function that returns its argument, never for one that is positive.
fn endless(ctx: &EagerContext) -> Result<GraphFunction> {
    let scalars = [(DataType::FLOAT, Shape::scalar())];
    GraphFunction::trace(ctx, "endless", &scalars, |cx, args| {
        let abs = |cx: &_, v: &[_]| Ok(vec![ops::abs(cx, &v[0])?]);
        while_loop(cx, args, |cx, v| ops::greater(cx, &v[0], 0.0_f32), abs)
    })
}

#[test]
fn a_function_without_an_end_is_ended_also_under_a_tape() -> Result<()> {
    let ctx = EagerContext::new()?;
    let function = endless(&ctx)?;
    let (zero, one) = (Tensor::scalar(0.0_f32)?, Tensor::scalar(1.0_f32)?);
    for under_tape in [false, true] {
        let cancellation = Cancellation::new()?;
        let stopped = ctx.cancelled_by(&cancellation);
        let call = |number: &Tensor| -> Result<f32> {
            let handle = stopped.handle(number)?;
            let found = match under_tape {
                true => function.call(&Tape::new(&stopped), &[handle])?,
                false => function.call(&stopped, &[handle])?,
            };
            found[0].to_tensor()?.to_scalar()
        };
        assert_eq!(call(&zero)?, 0.0);
        thread::scope(|scope| {
            let running = scope.spawn(|| call(&one));
            thread::sleep(Duration::from_millis(50));
            cancellation.cancel();
            let ended = running.join().expect("the call does not panic");
            assert_eq!(ended.expect_err("it has no end").code(), Code::Cancelled);
        });
        assert_eq!(call(&zero).expect_err("it is over").code(), Code::Cancelled);
    }
    let handle = ctx.handle(&zero)?;
    let found = function.call(&ctx, &[handle])?;
    assert_eq!(found[0].to_tensor()?.to_scalar::<f32>()?, 0.0);
    Ok(())
}
