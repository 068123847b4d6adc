//! Pipelines, whose elements Python compares with its own.

use std::path::Path;

use tfp::data::{Buckets, Compression, Csv, Dataset, ExampleSpec, Parallel, image};
use tfp::{DataType, EagerContext, Result, Shape, Tensor, ops};

pub(crate) fn run(folder: &Path) -> Result<()> {
    let cx = EagerContext::new()?;
    let write = |name: &str, data: Dataset, most: usize| -> Result<()> {
        let mut tensors = Vec::new();
        for (index, element) in data.iter()?.take(most).enumerate() {
            for (part, value) in element?.iter().enumerate() {
                let tensor = value.to_tensor()?;
                // NumPy's files have no strings.
                let tensor = match tensor.dtype() {
                    DataType::STRING => {
                        let joined = tensor.as_strings()?.join(&b"|"[..]);
                        Tensor::from_slice(&joined, &[joined.len() as i64])?
                    }
                    _ => tensor,
                };
                tensors.push((format!("{index}/{part}"), tensor));
            }
        }
        let named: Vec<(&str, &Tensor)> = tensors
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor))
            .collect();
        tfp::weights::write_npz(folder.join(format!("{name}.rust.npz")), &named)
    };
    let path = |name: &str| folder.join(name);
    let (one, two) = (path("a.tfrecord"), path("b.tfrecord"));
    let plain = Compression::None;

    // Files.
    let records = Dataset::records(&cx, &[&one, &two], plain)?;
    write("records", records.clone(), 100)?;
    write(
        "gzip",
        Dataset::records(&cx, &path("c.gz"), Compression::Gzip)?,
        100,
    )?;
    write(
        "lines",
        Dataset::lines(&cx, &path("lines.txt"), plain)?,
        100,
    )?;
    let columns = Csv::new()
        .column(DataType::INT64)
        .column_or(Tensor::scalar(-1.5_f32)?)
        .column_or(Tensor::from_string("?")?)
        .header(true);
    write(
        "csv",
        Dataset::csv(&cx, &path("t.csv"), &columns, plain)?,
        100,
    )?;
    let some = Csv::new()
        .column(DataType::INT64)
        .column_or(Tensor::from_string("-")?)
        .header(true)
        .select(&[0, 2]);
    write(
        "csv_selected",
        Dataset::csv(&cx, &path("t.csv"), &some, plain)?,
        100,
    )?;
    let pattern = path("*.tfrecord").display().to_string();
    let files = Dataset::files(&cx, &pattern)?;
    let opened = files.interleave(2, 2, |cx, path| Dataset::records(cx, &path[0], plain))?;
    write("interleave", opened, 100)?;
    let opened = files.parallel_interleave(2, 1, Parallel::of(2), |cx, path| {
        Dataset::records(cx, &path[0], plain)
    })?;
    write("parallel_interleave", opened, 100)?;
    records.write_records(path("rust.gz"), Compression::Gzip)?;

    // Examples.
    let spec = ExampleSpec::new()
        .fixed("x", DataType::FLOAT, &[2])
        .fixed_or("label", Tensor::scalar(-7_i64)?)
        .sequence("ids", DataType::INT64, &[])
        .fixed("name", DataType::STRING, &[]);
    let parsed = records.map_with(|cx, record| spec.parse(cx, &record[0]))?;
    write("parsed", parsed.clone(), 100)?;
    let batches = records.batch(3, false)?;
    write(
        "parsed_batch",
        batches.map_with(|cx, batch| spec.parse(cx, &batch[0]))?,
        100,
    )?;

    // Elements.
    let ten = Dataset::range(&cx, 0, 10)?;
    let squares = ten.parallel_map(Parallel::of(3), |cx, n| Ok(vec![ops::square(cx, &n[0])?]))?;
    write("parallel_map", squares.clone(), 100)?;
    let odd = ten.filter(|cx, n| {
        let rest = ops::floor_mod(cx, &n[0], 2_i64)?;
        ops::equal(cx, &rest, 1_i64, ops::EqualOptions::default())
    })?;
    write("filter", odd.clone(), 100)?;
    write("zip", Dataset::zip(&[&squares, &odd])?.enumerate()?, 100)?;
    write("cache", squares.cache()?.repeat(2)?, 100)?;
    write(
        "concatenate",
        odd.concatenate(&ten.take(2)?)?.shard(2, 1)?,
        100,
    )?;
    let small = ten.take_while(|cx, n| ops::less(cx, &n[0], 4_i64))?;
    write("unbatch", small.batch(3, false)?.unbatch()?, 100)?;
    write("shuffle", ten.shuffle(4, 42)?.repeat(3)?, 100)?;
    write("shuffle_once", ten.shuffle_once(4, 7)?.repeat(2)?, 100)?;
    write("random", Dataset::random(&cx, 5)?, 6)?;
    let flat = ten
        .take(4)?
        .flat_map(|cx, n| Dataset::one(cx, n)?.repeat(2))?;
    write("flat_map", flat, 100)?;

    // Elements of several lengths.
    let lengths = ten.map_with(|cx, n| {
        let rest = ops::floor_mod(cx, ops::mul(cx, &n[0], 7_i64)?, 5_i64)?;
        let dims = ops::expand_dims(cx, &rest, 0_i32)?;
        Ok(vec![ops::fill(cx, &dims, &n[0])?, n[0].clone()])
    })?;
    let shapes = [Shape::from([-1]), Shape::scalar()];
    write("padded", lengths.padded_batch(4, &shapes, false)?, 100)?;
    let padding = [Tensor::scalar(-1_i64)?, Tensor::scalar(0_i64)?];
    let shapes = [Shape::from([6]), Shape::scalar()];
    write(
        "padded_with",
        lengths.padded_batch_with(4, &shapes, &padding, true)?,
        100,
    )?;
    let buckets = Buckets::new(&[2, 4], &[3, 2, 1])?;
    let bucketed = lengths.bucket_by_length(&buckets, |cx, element| {
        let options = ops::SizeOptions {
            out_type: Some(DataType::INT64),
        };
        ops::size(cx, &element[0], options)
    })?;
    write("buckets", bucketed, 100)?;

    // Images.
    let (images, classes) = image::folder(&cx, path("images"), [6, 5], 3)?;
    println!("{}", classes.join(" "));
    write("images", images.clone(), 100)?;
    let seeds = Tensor::from_array([3_i64, 4])?;
    let changed = images.map_with(|cx, element| {
        let seeds = tfp::Context::constant(cx, &seeds)?;
        let pixels = &element[0];
        Ok(vec![
            image::random_flip_left_right(cx, pixels, &seeds)?,
            image::random_flip_up_down(cx, pixels, &seeds)?,
            image::random_crop(cx, pixels, [4, 3, 3], &seeds)?,
            image::random_brightness(cx, pixels, 0.5, &seeds)?,
            image::random_contrast(cx, pixels, [0.5, 1.5], &seeds)?,
            image::resize(cx, pixels, [9, 4], image::Method::Nearest)?,
            image::resize(cx, pixels, [3, 2], image::Method::Area)?,
            image::resize(cx, pixels, [9, 7], image::Method::Bicubic)?,
        ])
    })?;
    write("changed", changed, 100)?;
    let seeded = ten.map_with_seeds(11, Parallel::auto(), |_, n, seeds| {
        Ok(vec![n[0].clone(), seeds.clone()])
    })?;
    write("seeded", seeded, 100)
}
