//! Datasets of Rust iterators.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tfp::data::{Dataset, Parallel};
use tfp::{DataType, EagerContext, Error, ErrorKind, Result, Shape, Tensor, ops};

use crate::numbers;

fn number() -> [(DataType, Shape); 1] {
    [(DataType::INT64, Shape::scalar())]
}

fn counted(count: i64) -> impl Iterator<Item = Result<Vec<Tensor>>> {
    (0..count).map(|n| Ok(vec![Tensor::scalar(n)?]))
}

#[test]
fn an_iterator_is_read_again_and_within_a_pipeline() -> Result<()> {
    let cx = EagerContext::new()?;
    let begun = Arc::new(AtomicUsize::new(0));
    let count = begun.clone();
    let data = Dataset::from_iterator(&cx, &number(), move || {
        count.fetch_add(1, Ordering::SeqCst);
        counted(4)
    })?;
    assert_eq!(data.shapes(), [Shape::scalar()]);
    assert_eq!(numbers(data.iter()?)?, [0, 1, 2, 3]);
    assert_eq!(numbers(data.iter()?)?, [0, 1, 2, 3]);
    assert_eq!(begun.load(Ordering::SeqCst), 2);
    assert_eq!(numbers(data.repeat(2)?.iter()?)?, [0, 1, 2, 3, 0, 1, 2, 3]);
    let twice = data
        .parallel_map(Parallel::of(2), |cx, n| {
            Ok(vec![ops::add_v2(cx, &n[0], &n[0])?])
        })?
        .prefetch(2)?;
    drop(data);
    assert_eq!(numbers(twice.iter()?)?, [0, 2, 4, 6]);

    // Two readings at the same time, one of which ends early.
    let (mut one, mut other) = (twice.iter()?, twice.iter()?);
    assert_eq!(numbers(one.next())?, [0]);
    assert_eq!(numbers(other.by_ref())?, [0, 2, 4, 6]);
    drop(other);
    drop(twice);
    assert_eq!(numbers(one)?, [2, 4, 6]);
    Ok(())
}

#[test]
fn elements_of_several_tensors_of_any_type() -> Result<()> {
    let cx = EagerContext::new()?;
    let element = [
        (DataType::STRING, Shape::scalar()),
        (DataType::FLOAT, Shape::from([-1])),
    ];
    let data = Dataset::from_iterator(&cx, &element, || {
        (1..4_usize).map(|n| {
            let text = Tensor::from_string("x".repeat(n))?;
            Ok(vec![text, Tensor::from_vec(vec![0.5; n], &[n as i64])?])
        })
    })?;
    for (index, element) in data.iter()?.enumerate() {
        let element = element?;
        assert_eq!(element[0].to_tensor()?.as_strings()?[0].len(), index + 1);
        assert_eq!(element[1].to_tensor()?.len(), index + 1);
    }
    let padded = data.padded_batch(3, &[Shape::scalar(), Shape::from([-1])], false)?;
    let batch = padded.iter()?.next().expect("a batch")?;
    assert_eq!(batch[1].to_tensor()?.dims(), [3, 3]);
    Ok(())
}

#[test]
fn errors_and_panics_are_those_of_the_reading() -> Result<()> {
    let cx = EagerContext::new()?;
    let own = |_| ErrorKind::Closed { what: "well" };
    let data = Dataset::from_iterator(&cx, &number(), move || {
        let fails = counted(1).map(move |_| Err(Error::new(own(()))));
        counted(2).chain(fails)
    })?;
    for _ in 0..2 {
        let found: Vec<_> = data.iter()?.collect();
        assert_eq!(found.len(), 3);
        let error = found[2].as_ref().expect_err("an error");
        assert_eq!(*error.kind(), own(()), "{error}");
    }
    let data =
        Dataset::from_iterator(&cx, &number(), || counted(2).inspect(|_| panic!("no more")))?;
    let error = numbers(data.iter()?).expect_err("an error");
    assert!(error.to_string().contains("panicked: no more"), "{error}");

    let wrong = Dataset::from_iterator(&cx, &number(), || [Ok(vec![])].into_iter())?;
    let error = numbers(wrong.iter()?).expect_err("an error");
    assert!(
        error.to_string().contains("gave 0 tensors, expected 1"),
        "{error}"
    );
    let wrong = Dataset::from_iterator(&cx, &number(), || {
        [Tensor::scalar(1.0_f32).map(|one| vec![one])].into_iter()
    })?;
    let error = numbers(wrong.iter()?).expect_err("an error");
    assert!(
        matches!(error.kind(), ErrorKind::DType { .. }),
        "{error:#?}"
    );
    let wrong = Dataset::from_iterator(&cx, &number(), || {
        [Tensor::from_array([1_i64]).map(|one| vec![one])].into_iter()
    })?;
    let error = numbers(wrong.iter()?).expect_err("an error");
    assert!(
        matches!(error.kind(), ErrorKind::Shape { .. }),
        "{error:#?}"
    );
    assert!(Dataset::from_iterator(&cx, &[], || counted(1)).is_err());
    Ok(())
}

#[test]
fn a_feed_that_waits_can_be_dropped() -> Result<()> {
    let cx = EagerContext::new()?;
    let (keep, wait) = std::sync::mpsc::channel::<Result<Vec<Tensor>>>();
    let wait = std::sync::Mutex::new(Some(wait));
    let data = Dataset::from_iterator(&cx, &number(), move || {
        let wait = wait.lock().ok().and_then(|mut wait| wait.take());
        wait.into_iter().flatten()
    })?;
    keep.send(Tensor::scalar(5_i64).map(|one| vec![one]))
        .expect("sent");
    let mut elements = data.iter()?;
    assert_eq!(numbers(elements.next())?, [5]);
    drop((elements, data));
    Ok(())
}
