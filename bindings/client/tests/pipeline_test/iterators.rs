//! Datasets of iterators of Rust: their elements, errors, state and end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tfp::data::{Compression, Dataset, Parallel};
use tfp::{
    Code, DataType, EagerContext, Error, ErrorKind, HostFunction, Mode as _, Result, Shape, Tensor,
    ops,
};

use crate::{numbers, scratch};

/// The longest that anything here may take: a thread that hangs takes longer.
const LONG: Duration = Duration::from_secs(60);

type Element = Result<Vec<Tensor>>;

fn scalar(n: i64) -> Element {
    Ok(vec![Tensor::scalar(n)?])
}

fn signature() -> [(DataType, Shape); 1] {
    [(DataType::INT64, Shape::scalar())]
}

fn counted(cx: &EagerContext, count: i64, made: &Arc<AtomicUsize>) -> Result<Dataset> {
    let made = Arc::clone(made);
    Dataset::from_generator(cx, &signature(), move || {
        made.fetch_add(1, Ordering::Relaxed);
        (0..count).map(scalar)
    })
}

/// Waits until something holds, which another thread does.
fn soon(holds: impl Fn() -> bool) -> bool {
    let steps = LONG.as_millis() / 10;
    (0..steps).any(|_| {
        thread::sleep(Duration::from_millis(10));
        holds()
    })
}

#[test]
fn a_generator_is_a_dataset_as_any_other() -> Result<()> {
    let cx = EagerContext::new()?;
    let made = Arc::default();
    let data = counted(&cx, 10, &made)?;
    assert_eq!(data.types(), [DataType::INT64]);
    assert_eq!(data.shapes(), [Shape::scalar()]);
    assert_eq!(made.load(Ordering::Relaxed), 0);
    assert_eq!(numbers(data.iter()?)?, (0..10).collect::<Vec<_>>());
    assert_eq!(made.load(Ordering::Relaxed), 1);
    // Readings side by side, and one after the other, have an iterator each.
    let both = Dataset::zip(&[&data, &data])?.repeat(2)?;
    assert_eq!(numbers(both.iter()?)?.len(), 20);
    assert_eq!(made.load(Ordering::Relaxed), 5);
    let doubled = data
        .shuffle(5, 3)?
        .parallel_map(Parallel::of(4), |cx, n| {
            Ok(vec![ops::mul(cx, &n[0], 2_i64)?])
        })?
        .batch(4, false)?
        .prefetch(2)?;
    let mut all = Vec::new();
    for batch in doubled.iter()? {
        all.extend(batch?[0].to_tensor()?.to_vec::<i64>()?);
    }
    all.sort_unstable();
    assert_eq!(all, (0..10).map(|n| 2 * n).collect::<Vec<_>>());
    // In turns with others, as the outer one and as one that a closure takes from outside.
    let nested = data.take(3)?.flat_map(|cx, n| {
        Dataset::range(cx, 0, 2)?.map_with(|cx, m| Ok(vec![ops::add_v2(cx, &n[0], &m[0])?]))
    })?;
    assert_eq!(numbers(nested.iter()?)?, [0, 1, 1, 2, 2, 3]);
    Ok(())
}

#[test]
fn elements_have_several_tensors_and_open_sizes() -> Result<()> {
    let cx = EagerContext::new()?;
    let signature = [
        (DataType::STRING, Shape::scalar()),
        (DataType::FLOAT, Shape::new(&[-1])),
    ];
    let data = Dataset::from_generator(&cx, &signature, || {
        (1..4_usize).map(|n| {
            let row = vec![n as f32; n];
            let size = n as i64;
            Ok(vec![
                Tensor::from_string(format!("word {n}"))?,
                Tensor::from_vec(row, &[size])?,
            ])
        })
    })?;
    let padded = data.padded_batch(3, &[Shape::scalar(), Shape::new(&[-1])], false)?;
    let batch = padded.iter()?.next().expect("a batch")?;
    let words = batch[0].to_tensor()?;
    assert_eq!(words.as_strings()?, [b"word 1", b"word 2", b"word 3"]);
    let rows = batch[1].to_tensor()?;
    assert_eq!(rows.dims(), [3, 3]);
    assert_eq!(
        rows.as_slice::<f32>()?,
        [1.0, 0.0, 0.0, 2.0, 2.0, 0.0, 3.0, 3.0, 3.0]
    );
    Ok(())
}

#[test]
fn errors_of_an_iterator_arrive_as_they_are() -> Result<()> {
    let cx = EagerContext::new()?;
    let wrong = |wrong: fn() -> Element| {
        let data = Dataset::from_generator(&cx, &signature(), move || {
            (0..4).map(move |n| if n == 2 { wrong() } else { scalar(n) })
        })?;
        let through = data
            .parallel_map(Parallel::of(2), |_, n| Ok(n.to_vec()))?
            .prefetch(1)?;
        let mut elements = through.iter()?;
        assert_eq!(numbers(elements.by_ref().take(2))?, [0, 1]);
        let error = elements.next().expect("an error").expect_err("an error");
        assert!(elements.next().is_none());
        Ok::<Error, Error>(error)
    };
    let file = || {
        Err(Error::new(ErrorKind::File {
            path: "shard-3".to_owned(),
            problem: "it is cut at byte 17".to_owned(),
        }))
    };
    assert_eq!(wrong(file)?, file().expect_err("an error"));
    // One that would be an end in TensorFlow.
    let end = || Err(Error::status(Code::OutOfRange, "row 12 of 10"));
    assert_eq!(wrong(end)?, end().expect_err("an error"));
    let panicked = wrong(|| panic!("at the third element"))?;
    assert!(matches!(panicked.kind(), ErrorKind::Internal { .. }));
    assert!(panicked.to_string().contains("at the third element"));
    let dtype = wrong(|| Ok(vec![Tensor::scalar(1.0_f32)?]))?;
    assert!(
        matches!(dtype.kind(), ErrorKind::DType { .. }),
        "{dtype:#?}"
    );
    let shape = wrong(|| Ok(vec![Tensor::from_array([1_i64])?]))?;
    assert!(
        matches!(shape.kind(), ErrorKind::Shape { .. }),
        "{shape:#?}"
    );
    let count = wrong(|| Ok(Vec::new()))?;
    assert!(count.to_string().contains("0 tensors, expected 1"));
    let graph = tfp::Graph::new()?;
    let in_graph = Dataset::from_generator(&graph.scope().any(), &signature(), || [scalar(1)]);
    assert!(in_graph.is_err_and(|error| error.to_string().contains("eager mode")));
    Ok(())
}

#[test]
fn a_reading_of_a_generator_goes_on_where_it_was_saved() -> Result<()> {
    let folder = scratch("generator");
    let cx = EagerContext::new()?;
    let make = |made: &Arc<AtomicUsize>| {
        counted(&cx, 12, made)?
            .shuffle(4, 5)?
            .repeat(2)?
            .prefetch(2)
    };
    let (first, second) = (Arc::default(), Arc::default());
    let mut elements = make(&first)?.iter()?;
    let before = numbers(elements.by_ref().take(15))?;
    elements.save(folder.join("state"))?;
    let after = numbers(elements)?;
    assert_eq!(before.len() + after.len(), 24);
    // A dataset of the same steps, as that of another process.
    let mut other = make(&second)?.iter()?;
    other.restore(folder.join("state"))?;
    assert_eq!(numbers(other)?, after);
    assert_eq!(second.load(Ordering::Relaxed), 1);
    Ok(())
}

#[test]
fn an_iterator_is_read_once() -> Result<()> {
    let cx = EagerContext::new()?;
    let (sender, receiver) = mpsc::channel::<Element>();
    let data = Dataset::from_iterator(&cx, &signature(), receiver)?.prefetch(2)?;
    let producer = thread::spawn(move || {
        for n in 0..5 {
            let _ = sender.send(scalar(n));
        }
        // The producer stops: the dataset ends.
    });
    assert_eq!(numbers(data.iter()?)?, [0, 1, 2, 3, 4]);
    producer.join().expect("the producer ends");
    let again = data.iter()?.next().expect("an error");
    let again = again.expect_err("an error");
    assert_eq!(again.code(), Code::FailedPrecondition);
    assert!(again.to_string().contains("from_generator"), "{again}");
    Ok(())
}

#[test]
fn a_reader_that_stops_does_not_wait_for_an_iterator() -> Result<()> {
    let cx = EagerContext::new()?;
    let (sender, receiver) = mpsc::channel::<Element>();
    let data = Dataset::from_iterator(&cx, &signature(), receiver)?
        .parallel_map(Parallel::of(2), |_, n| Ok(n.to_vec()))?
        .prefetch(2)?;
    let _ = sender.send(scalar(0));
    let (done, is_done) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut elements = data.iter()?;
        let first = numbers(elements.by_ref().take(1))?;
        // TensorFlow's threads wait for the second element now, which never comes.
        thread::sleep(Duration::from_millis(100));
        drop(elements);
        drop(data);
        let _ = done.send(());
        Ok::<_, Error>(first)
    });
    is_done.recv_timeout(LONG).expect("the reader ends");
    assert_eq!(reader.join().expect("no panic")?, [0]);
    // The thread of the iterator goes with its next element.
    assert!(soon(|| sender.send(scalar(1)).is_err()));
    Ok(())
}

#[test]
fn compressed_records_are_a_reading_of_their_own() -> Result<()> {
    let folder = scratch("compressed");
    let cx = EagerContext::new()?;
    let signature = [(DataType::STRING, Shape::scalar())];
    let text = |n: i32| Ok(vec![Tensor::from_string(format!("{n}"))?]);
    let (begun, is_begun) = mpsc::sync_channel(1);
    let (go, may_go) = mpsc::channel::<()>();
    let waits = (0..3).map(move |n| {
        if n == 1 {
            let _ = begun.send(());
            let _ = may_go.recv_timeout(LONG);
        }
        text(n)
    });
    let data = Dataset::from_iterator(&cx, &signature, waits)?;
    let (written, path) = (data.clone(), folder.join("data"));
    let writer = thread::spawn(move || written.write_records(path, Compression::Gzip));
    is_begun.recv_timeout(LONG).expect("the writer begins");
    // Another reader comes and goes.
    drop(data.iter()?);
    go.send(()).expect("the iterator waits");
    writer.join().expect("no panic")?;
    let back = Dataset::records(&cx, &[folder.join("data")], Compression::Gzip)?;
    assert_eq!(back.iter()?.count(), 3);
    let failed = || Error::argument("a row of none");
    let data = Dataset::from_generator(&cx, &signature, move || [Err(failed())])?;
    let error = data.write_records(folder.join("none"), Compression::Gzip);
    assert_eq!(error, Err(failed()));
    Ok(())
}

#[test]
fn what_iterators_own_is_given_back() -> Result<()> {
    let cx = EagerContext::new()?;
    let owned = Arc::new(());
    let kept = Arc::clone(&owned);
    let data = Dataset::from_generator(&cx, &signature(), move || {
        let kept = Arc::clone(&kept);
        (0..100).map(move |n| {
            let _ = &kept;
            scalar(n)
        })
    })?;
    for _ in 0..5 {
        let mut elements = data.iter()?;
        assert_eq!(numbers(elements.by_ref().take(3))?, [0, 1, 2]);
    }
    // One of the test, one of the generator, none of iterators.
    assert!(soon(|| Arc::strong_count(&owned) == 2));
    // A reading keeps what it reads.
    let elements = data.iter()?;
    drop(data);
    assert_eq!(numbers(elements)?.len(), 100);
    assert!(soon(|| Arc::strong_count(&owned) == 1));
    Ok(())
}

#[test]
fn a_function_of_rust_is_an_op() -> Result<()> {
    let cx = EagerContext::new()?;
    let double = HostFunction::new(&[DataType::INT64], |inputs| {
        match inputs[0].to_scalar::<i64>()? {
            13 => Err(Error::argument("13 is refused")),
            14 => panic!("at 14"),
            15 => Ok(Vec::new()),
            16 => Ok(vec![Tensor::scalar(1_i32)?]),
            n => scalar(2 * n),
        }
    })?;
    let call = |n: i64| double.call(&cx, (n,))?[0].to_tensor()?.to_scalar::<i64>();
    assert_eq!(call(4)?, 8);
    let text = |n| call(n).expect_err("an error").to_string();
    assert!(text(13).contains("13 is refused"), "{}", text(13));
    assert_eq!(
        call(13).map_err(|error| error.code()),
        Err(Code::InvalidArgument)
    );
    assert!(text(14).contains("panicked: at 14"), "{}", text(14));
    assert!(text(15).contains("0 tensors, expected 1"), "{}", text(15));
    assert!(
        text(16).contains("expected int64, found int32"),
        "{}",
        text(16)
    );
    // Many threads, in a dataset that is not of an iterator.
    let data =
        Dataset::range(&cx, 0, 8)?.parallel_map(Parallel::of(4), |cx, n| double.call(cx, n))?;
    assert_eq!(numbers(data.iter()?)?, [0, 2, 4, 6, 8, 10, 12, 14]);
    drop(double);
    let gone = data.iter()?.next().expect("an error").expect_err("gone");
    assert_eq!(gone.code(), Code::FailedPrecondition);
    Ok(())
}
