//! Pipelines on data of this program: readings that go on, what is refused.

mod iterators;
mod loads;
mod readings;

/// Returns an empty folder of a test.
fn scratch(name: &str) -> std::path::PathBuf {
    let root = std::env::var_os("TEST_TMPDIR").map_or_else(std::env::temp_dir, Into::into);
    let folder = root.join(format!("tfp_pipeline_{}_{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// The int64 scalars of a reading.
fn numbers(
    elements: impl IntoIterator<Item = tfp::Result<Vec<tfp::TensorHandle>>>,
) -> tfp::Result<Vec<i64>> {
    let numbers = elements.into_iter();
    let number =
        |element: tfp::Result<Vec<tfp::TensorHandle>>| element?[0].to_tensor()?.to_scalar::<i64>();
    numbers.map(number).collect()
}
