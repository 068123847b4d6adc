//! Readings: their state in files, handles of other ops, what is refused.

use tfp::data::{Compression, Csv, Dataset, ExampleSpec, image};
use tfp::{
    AnyValue, Checkpoint, Code, Context as _, DataType, EagerContext, ErrorKind, Mode as _, Result,
    Shape, Tensor, Variable, ops,
};

use crate::{numbers, scratch};

#[test]
fn a_reading_goes_on_where_it_was_saved() -> Result<()> {
    let folder = scratch("state");
    let cx = EagerContext::new()?;
    let make = || {
        Dataset::range(&cx, 0, 20)?
            .shuffle(7, 3)?
            .repeat(2)?
            .prefetch(2)
    };
    let data = make()?;
    let mut elements = data.iter()?;
    let before = numbers(elements.by_ref().take(25))?;
    elements.save(folder.join("state"))?;
    let after = numbers(elements)?;
    assert_eq!(before.len() + after.len(), 40);

    let mut other = make()?.iter()?;
    other.restore(folder.join("state"))?;
    assert_eq!(numbers(other)?, after);
    // Also a reading that has ended.
    let mut ended = data.iter()?;
    assert_eq!(numbers(ended.by_ref())?.len(), 40);
    ended.restore(folder.join("state"))?;
    assert_eq!(numbers(ended)?, after);

    let missing = data.iter()?.restore(folder.join("none"));
    assert!(missing.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound { .. })));
    tfp::write_tensors(folder.join("other"), &[("x", &Tensor::scalar(1_i64)?)])?;
    let other = data.iter()?.restore(folder.join("other"));
    assert!(other.is_err_and(|error| error.to_string().contains("no state of a reading")));
    Ok(())
}

#[test]
fn a_checkpoint_holds_variables_and_readings() -> Result<()> {
    let folder = scratch("tracked");
    let cx = EagerContext::new()?;
    let make = |step: i64| -> Result<_> {
        let step = Variable::new(&cx, "step", step)?;
        let data = Dataset::range(&cx, 0, 20)?.shuffle(7, 3)?.prefetch(2)?;
        let (elements, mut checkpoint) = (data.iter()?, Checkpoint::new());
        checkpoint.add("step", &step)?;
        elements.track(&mut checkpoint, "data/reading")?;
        Ok((step, elements, checkpoint))
    };
    let (step, mut elements, checkpoint) = make(5)?;
    numbers(elements.by_ref().take(8))?;
    let saved = checkpoint.save(folder.join("ck"))?;
    let after = numbers(elements.by_ref())?;
    assert_eq!(after.len(), 12);
    // The reading has ended, and goes on where it was.
    step.assign(&cx, 9_i64)?;
    checkpoint.restore(&saved)?.complete()?;
    assert_eq!(step.to_tensor()?.to_scalar::<i64>()?, 5);
    assert_eq!(numbers(elements)?, after);
    let (step, elements, other) = make(0)?;
    assert_eq!(other.restore(&saved)?, Default::default());
    assert_eq!(step.to_tensor()?.to_scalar::<i64>()?, 5);
    assert_eq!(numbers(elements)?, after);

    let (_, elements, mut taken) = make(0)?;
    for path in ["step", "data/reading"] {
        let error = elements.track(&mut taken, path).unwrap_err();
        assert!(error.to_string().contains("already"), "{error}");
    }
    // One without the reading leaves it where it is.
    let mut alone = Checkpoint::new();
    alone.add("step", &step)?;
    alone.write(folder.join("alone"))?;
    let (_, elements, checkpoint) = make(0)?;
    let restored = checkpoint.restore(folder.join("alone"))?;
    assert_eq!(restored.missing, ["data/reading"]);
    assert_eq!(numbers(elements)?.len(), 20);
    Ok(())
}

#[test]
fn elements_stay_in_files_after_the_first_reading() -> Result<()> {
    let folder = scratch("cache");
    let cx = EagerContext::new()?;
    let path = folder.join("kept");
    let kept = Dataset::range(&cx, 0, 5)?.cache_in(&path)?;
    assert_eq!(numbers(kept.iter()?)?, [0, 1, 2, 3, 4]);
    assert!(folder.join("kept.index").exists());
    assert_eq!(numbers(kept.iter()?)?, [0, 1, 2, 3, 4]);
    // What is there is not computed again, so these are the elements of the first dataset.
    let other = Dataset::range(&cx, 7, 9)?.cache_in(&path)?;
    assert_eq!(numbers(other.iter()?)?, [0, 1, 2, 3, 4]);
    Ok(())
}

#[test]
fn a_damaged_file_that_is_compressed_is_named() -> Result<()> {
    let folder = scratch("packed");
    let cx = EagerContext::new()?;
    for compression in [Compression::Gzip, Compression::Zlib] {
        let path = folder.join("records");
        let text = ["first", "second"];
        let strings = Dataset::rows(&cx, &[Tensor::from_strings(&text, &[2])?])?;
        strings.write_records(&path, compression)?;
        let read = || Dataset::records(&cx, &path, compression)?.iter();
        assert_eq!(read()?.filter_map(Result::ok).count(), 2);
        let mut bytes = std::fs::read(&path).expect("bytes");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        std::fs::write(&path, bytes).expect("written");
        let error = read()?.find_map(Result::err).expect("damage");
        assert!(matches!(error.kind(), ErrorKind::File { .. }), "{error:#?}");
        assert!(error.to_string().contains("packed/records"), "{error}");
    }
    Ok(())
}

#[test]
fn a_damaged_image_is_named() -> Result<()> {
    let folder = scratch("images");
    let cx = EagerContext::new()?;
    let pixels = Tensor::from_vec(
        (0..64 * 64 * 3).map(|i| (i % 251) as u8).collect(),
        &[64, 64, 3],
    )?;
    let options = ops::EncodePngOptions::default();
    let png = ops::encode_png(&cx, &pixels, options)?.to_tensor()?;
    let png = png.as_strings()?.remove(0).to_vec();
    std::fs::create_dir_all(folder.join("cats")).expect("made");
    let read = |name: &str, bytes: &[u8]| -> Result<(usize, String)> {
        std::fs::write(folder.join("cats").join(name), bytes).expect("written");
        let (images, _) = image::folder(&cx, &folder, [8, 8], 3)?;
        let batches = images.batch(2, false)?;
        let (mut count, mut text) = (0, String::new());
        for element in batches.iter()? {
            match element {
                Ok(_) => count += 1,
                Err(error) => {
                    text = error.to_string();
                    break;
                }
            }
        }
        Ok((count, text))
    };
    assert_eq!(read("a.png", &png)?, (1, String::new()));
    assert_eq!(read("b.png", &png)?, (1, String::new()));
    for damaged in [&png[..png.len() / 2], b"no image", b""] {
        let (count, text) = read("c.png", damaged)?;
        assert_eq!(count, 1);
        assert!(text.contains("c.png") && !text.contains("a.png"), "{text}");
    }
    Ok(())
}

#[test]
fn handles_of_ops_are_datasets_and_back() -> Result<()> {
    let cx = EagerContext::new()?;
    let (types, shapes) = ([DataType::INT64], [Shape::scalar()]);
    let options = ops::RangeDatasetOptions::default();
    let handle = ops::range_dataset(&cx, 0_i64, 5_i64, 2_i64, &types, &shapes, options)?;
    let data = Dataset::from_value(&cx, &handle, &types, &shapes)?;
    assert_eq!(numbers(data.iter()?)?, [0, 2, 4]);
    let options = ops::RepeatDatasetOptions::default();
    let again = ops::repeat_dataset(&cx, data.value().handle()?, 2_i64, &types, &shapes, options)?;
    let again = Dataset::from_value(&cx, &again, &types, &shapes)?;
    assert_eq!(numbers(again.iter()?)?, [0, 2, 4, 0, 2, 4]);
    let one = cx.constant(&Tensor::scalar(1_i64)?)?;
    assert!(Dataset::from_value(&cx, &one, &types, &shapes).is_err());
    assert!(Dataset::from_value(&cx, &handle, &types, &[]).is_err());
    Ok(())
}

#[test]
fn what_closures_take_from_outside_is_captured() -> Result<()> {
    let cx = EagerContext::new()?;
    let most = AnyValue::from(cx.constant(&Tensor::scalar(3_i64)?)?);
    let below = Dataset::range(&cx, 0, 10)?.filter(|cx, n| ops::less(cx, &n[0], &most))?;
    assert_eq!(numbers(below.iter()?)?, [0, 1, 2]);
    // Also through a dataset in a closure.
    let nested = below.flat_map(|cx, _| {
        Dataset::range(cx, 0, 5)?.map_with(|cx, n| Ok(vec![ops::add_v2(cx, &n[0], &most)?]))
    })?;
    assert_eq!(numbers(nested.take(6)?.iter()?)?, [3, 4, 5, 6, 7, 3]);
    let graph = tfp::Graph::new()?;
    let in_graph = Dataset::range(&graph.scope(), 0, 3)?;
    assert!(
        in_graph
            .iter()
            .is_err_and(|error| matches!(error.kind(), ErrorKind::Foreign { .. }))
    );
    let tape = tfp::Tape::new(&cx);
    assert_eq!(numbers(Dataset::range(&tape.any(), 0, 2)?.iter()?)?, [0, 1]);
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused() -> Result<()> {
    let cx = EagerContext::new()?;
    let ten = Dataset::range(&cx, 0, 10)?;
    let text = |error: tfp::Error| error.to_string();
    let shapes = [Shape::unknown()];
    assert!(ten.padded_batch(2, &shapes, false).map_err(text).is_err());
    assert!(ten.padded_batch(2, &[], false).is_err());
    assert!(ten.unbatch().is_err());
    assert!(Dataset::zip(&[]).is_err());
    let strings = Dataset::rows(&cx, &[Tensor::from_strings(&["a"], &[1])?])?;
    assert!(ten.concatenate(&strings).is_err());
    assert!(
        ten.write_records(scratch("records").join("x"), Compression::None)
            .is_err()
    );
    assert!(ten.cache_in("").is_err());
    let none = Dataset::files(&cx, "/nowhere/*.tfrecord").map_err(|error| error.code());
    assert_eq!(none.err(), Some(Code::NotFound));
    let none = Dataset::lines(&cx, "/nowhere/x", Compression::None).map_err(|error| error.code());
    assert_eq!(none.err(), Some(Code::NotFound));
    let columns = Csv::new().column(DataType::BOOL);
    let folder = scratch("csv");
    let path = folder.join("x.csv");
    std::fs::write(&path, "1\n").expect("written");
    let bad = Dataset::csv(&cx, &path, &columns, Compression::None);
    assert!(bad.is_err_and(|error| error.to_string().contains("type bool")));
    let many = Csv::new().column(DataType::INT32).select(&[0, 1]);
    assert!(Dataset::csv(&cx, &path, &many, Compression::None).is_err());
    let spec = ExampleSpec::new().fixed("x", DataType::BOOL, &[]);
    let parsed = strings.map_with(|cx, record| spec.parse(cx, &record[0]));
    assert!(parsed.is_err_and(|error| error.to_string().contains("'x' is bool")));
    let filter = ten.filter(|_, n| Ok(n[0].clone()));
    assert!(filter.and_then(|data| numbers(data.iter()?)).is_err());
    Ok(())
}
