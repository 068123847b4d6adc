//! Input pipelines on TensorFlow's data ops: files, images, tensors, and what is between them and a
//! training. Elements are those of Python's `tf.data` with the same steps and seeds.
//!
//! ```no_run
//! use tfp::data::{Compression, Dataset, ExampleSpec, Parallel, image};
//! use tfp::{DataType, EagerContext, Result, ops};
//!
//! fn main() -> Result<()> {
//!     let cx = EagerContext::new()?;
//!     let spec = ExampleSpec::new()
//!         .fixed("image", DataType::STRING, &[])
//!         .fixed("label", DataType::INT64, &[]);
//!     let data = Dataset::records(&cx, &["train.tfrecord"], Compression::None)?
//!         .shuffle(1000, 7)?
//!         .parallel_map(Parallel::auto(), |cx, record| {
//!             let fields = spec.parse(cx, &record[0])?;
//!             let pixels = image::decode(cx, &fields[0], 3)?;
//!             let pixels = image::resize(cx, &pixels, [64, 64], image::Method::Bilinear)?;
//!             Ok(vec![ops::div(cx, &pixels, 255.0_f32)?, fields[1].clone()])
//!         })?
//!         .batch(32, true)?
//!         .prefetch(2)?;
//!     for element in data.iter()? {
//!         let [_images, _labels] = &element?[..] else { continue };
//!     }
//!     Ok(())
//! }
//! ```

mod apply;
mod bucket;
mod csv;
mod dataset;
mod example;
mod files;
pub mod image;
mod iterated;
mod parse;
mod reading;
mod record;
mod rust;
mod source;
mod state;
mod transform;

pub use apply::Parallel;
pub use bucket::Buckets;
pub use csv::Csv;
pub use dataset::{Dataset, Elements};
pub use example::{Example, Feature};
pub use files::{Compression, Files};
pub use parse::ExampleSpec;
pub use record::{RecordReader, RecordWriter};
