//! What happens when threads share the types of this crate.

use std::thread;

use tfp_core::*;

use crate::support::add;

const THREADS: usize = 8;
const ROUNDS: usize = 200;

#[test]
fn threads_build_read_and_run_one_graph() -> Result<()> {
    let graph = Graph::new()?;
    let x = graph
        .scope()
        .placeholder("x", DataType::FLOAT, &Shape::scalar())?;
    let session = Session::new(&graph)?;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|worker| {
                let (graph, x, session) = (&graph, &x, &session);
                scope.spawn(move || -> Result<()> {
                    let here = graph.scope().sub_scope("worker");
                    let mut sum = x.clone();
                    for round in 0..ROUNDS {
                        sum = add(&here, &sum, x)?;
                        if round % 50 == worker {
                            let two = Tensor::scalar(2.0_f32)?;
                            let value =
                                session.eval(&[(x, &two)], &[&sum])?[0].to_scalar::<f32>()?;
                            assert_eq!(value, 2.0 * (round + 2) as f32);
                        }
                        assert!(!x.operation().consumers(0).is_empty());
                        assert!(sum.operation().inputs().contains(x));
                    }
                    assert!(graph.operations().count() > ROUNDS);
                    graph.to_graph_def().map(drop)
                })
            })
            .collect();
        for worker in workers {
            worker
                .join()
                .map_err(|_| Error::argument("a thread panicked"))??;
        }
        Ok::<(), Error>(())
    })?;
    assert_eq!(graph.operations().count(), 1 + THREADS * ROUNDS);
    Ok(())
}

#[test]
fn threads_share_a_context_and_its_handles() -> Result<()> {
    let ctx = EagerContext::new()?;
    let one = ctx.handle(&Tensor::scalar(1.0_f32)?)?;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                let (ctx, one) = (ctx.clone(), one.clone());
                scope.spawn(move || -> Result<()> {
                    let mut sum = one.clone();
                    for _ in 0..ROUNDS {
                        sum = add(&ctx, &sum, &one)?;
                    }
                    assert_eq!(sum.to_tensor()?.to_scalar::<f32>()?, 1.0 + ROUNDS as f32);
                    Ok(())
                })
            })
            .collect();
        for worker in workers {
            worker
                .join()
                .map_err(|_| Error::argument("a thread panicked"))??;
        }
        Ok(())
    })
}

#[test]
fn threads_call_one_prepared_run() -> Result<()> {
    let graph = Graph::new()?;
    let x = graph
        .scope()
        .placeholder("x", DataType::INT64, &Shape::scalar())?;
    let y = OpBuilder::new("Mul")?.input(&x).input(&x).one(&graph)?;
    let session = Session::new(&graph)?;
    let square = session.callable(&[x], &[y], &[])?;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS as i64)
            .map(|worker| {
                let square = &square;
                scope.spawn(move || -> Result<()> {
                    for round in 0..ROUNDS as i64 {
                        let value = worker * 1000 + round;
                        let out = square.call(&[&Tensor::scalar(value)?])?;
                        assert_eq!(out[0].to_scalar::<i64>()?, value * value);
                    }
                    Ok(())
                })
            })
            .collect();
        for worker in workers {
            worker
                .join()
                .map_err(|_| Error::argument("a thread panicked"))??;
        }
        Ok(())
    })
}

#[test]
fn threads_with_executors_of_their_own_share_the_ops_of_a_context() -> Result<()> {
    let ctx = EagerContext::new()?;
    let one = ctx.handle(&Tensor::scalar(1.0_f32)?)?;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|worker| {
                let (ctx, one) = (ctx.clone(), one.clone());
                scope.spawn(move || -> Result<()> {
                    let mut sum = one.clone();
                    for round in 0..ROUNDS / 10 {
                        // Ops wait in a pool between calls; none may use the executor of another
                        // thread, or one that is gone.
                        let executor = Executor::new(&ctx, (worker + round) % 2 == 0, 0)?;
                        executor.use_for_thread();
                        for _ in 0..10 {
                            sum = add(&ctx, &sum, &one)?;
                        }
                        executor.wait()?;
                    }
                    assert_eq!(sum.to_tensor()?.to_scalar::<f32>()?, 1.0 + ROUNDS as f32);
                    Ok(())
                })
            })
            .collect();
        for worker in workers {
            worker
                .join()
                .map_err(|_| Error::argument("a thread panicked"))??;
        }
        Ok(())
    })
}
