//! Which types threads may share: all that are public.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tfp::nn::{layer, optimizer, training};
use tfp::{AnyValue, EagerContext, Result};

pub(crate) const fn shared<T: Send + Sync>() {}

const _: () = {
    shared::<tfp::AnyContext>();
    shared::<tfp::AnyValue>();
    shared::<tfp::Backward<'static>>();
    shared::<tfp::Checkpoint>();
    shared::<tfp::CheckpointReader>();
    shared::<tfp::Column>();
    shared::<tfp::Expression<'static, EagerContext>>();
    shared::<tfp::FuncGraph>();
    shared::<tfp::Gradient<AnyValue>>();
    shared::<tfp::GradientOptions<'static, AnyValue>>();
    shared::<tfp::GraphFunction>();
    shared::<tfp::IndexedSlices<AnyValue>>();
    shared::<tfp::LookupTable>();
    shared::<tfp::LoopOptions<'static>>();
    shared::<tfp::Model>();
    shared::<tfp::ModelFunction>();
    shared::<tfp::ModelWriter>();
    shared::<tfp::OpRecord>();
    shared::<tfp::PythonValue>();
    shared::<tfp::RaggedTensor<AnyValue>>();
    shared::<tfp::RandomAlgorithm>();
    shared::<tfp::RandomGenerator>();
    shared::<tfp::Restored>();
    shared::<tfp::SessionModel>();
    shared::<tfp::SparseTensor<AnyValue>>();
    shared::<tfp::Spec>();
    shared::<tfp::Tape>();
    shared::<tfp::TensorList<AnyValue>>();
    shared::<tfp::Unconnected>();
    shared::<tfp::Variable>();
    shared::<tfp::VariableOptions>();
    shared::<tfp::data::Buckets>();
    shared::<tfp::data::Compression>();
    shared::<tfp::data::Csv>();
    shared::<tfp::data::Dataset>();
    shared::<tfp::data::Elements>();
    shared::<tfp::data::Example>();
    shared::<tfp::data::ExampleSpec>();
    shared::<tfp::data::Feature>();
    shared::<tfp::data::Files>();
    shared::<tfp::data::Parallel>();
    shared::<tfp::data::RecordReader>();
    shared::<tfp::data::RecordWriter>();
    shared::<tfp::data::image::Method>();
    shared::<tfp::distribute::ChiefOnly<training::CsvLogger>>();
    shared::<tfp::distribute::ClusterOptions>();
    shared::<tfp::distribute::ClusterSpec>();
    shared::<tfp::distribute::MultiWorker>();
    shared::<tfp::distribute::ParameterServer>();
    shared::<tfp::distribute::Reduction>();
    shared::<tfp::distribute::Server>();
    shared::<tfp::distribute::Shard<training::Batches>>();
    shared::<tfp::distribute::TfConfig>();
    shared::<tfp::nn::Activation>();
    shared::<tfp::nn::Constraint>();
    shared::<tfp::nn::Fans>();
    shared::<tfp::nn::Initializer>();
    shared::<tfp::nn::Loss>();
    shared::<tfp::nn::Meter>();
    shared::<tfp::nn::Metric>();
    shared::<tfp::nn::Model>();
    shared::<tfp::nn::Policy>();
    shared::<tfp::nn::Regularizer>();
    shared::<tfp::nn::Weights>();
    shared::<tfp::nn::functional::ConvOptions>();
    shared::<tfp::nn::functional::Gru<AnyValue>>();
    shared::<tfp::nn::functional::Lstm<AnyValue>>();
    shared::<tfp::nn::functional::Moments<AnyValue>>();
    shared::<tfp::nn::functional::MultiHead<AnyValue>>();
    shared::<tfp::nn::functional::Padding>();
    shared::<tfp::nn::functional::Pool>();
    shared::<tfp::nn::functional::RnnOptions>();
    shared::<tfp::nn::functional::SimpleRnn<AnyValue>>();
    shared::<tfp::nn::layer::ActivityPenalty<layer::Dense>>();
    shared::<tfp::nn::layer::AdaptivePooling>();
    shared::<tfp::nn::layer::Add>();
    shared::<tfp::nn::layer::Address>();
    shared::<tfp::nn::layer::AlphaDropout>();
    shared::<tfp::nn::layer::AspectRatio>();
    shared::<tfp::nn::layer::Attention>();
    shared::<tfp::nn::layer::AugMix>();
    shared::<tfp::nn::layer::AutoContrast>();
    shared::<tfp::nn::layer::Average>();
    shared::<tfp::nn::layer::BatchNorm>();
    shared::<tfp::nn::layer::Bidirectional>();
    shared::<tfp::nn::layer::Built>();
    shared::<tfp::nn::layer::BuiltMany>();
    shared::<tfp::nn::layer::CategoryEncoding>();
    shared::<tfp::nn::layer::CenterCrop>();
    shared::<tfp::nn::layer::Clahe>();
    shared::<tfp::nn::layer::Concatenate>();
    shared::<tfp::nn::layer::Constrained<layer::Dense>>();
    shared::<tfp::nn::layer::Conv3d>();
    shared::<tfp::nn::layer::Conv3dTranspose>();
    shared::<tfp::nn::layer::Conv>();
    shared::<tfp::nn::layer::ConvLstm>();
    shared::<tfp::nn::layer::ConvTranspose>();
    shared::<tfp::nn::layer::Cropping>();
    shared::<tfp::nn::layer::CutMix>();
    shared::<tfp::nn::layer::Decibels>();
    shared::<tfp::nn::layer::Dense>();
    shared::<tfp::nn::layer::DepthwiseConv1d>();
    shared::<tfp::nn::layer::DepthwiseConv2d>();
    shared::<tfp::nn::layer::Discretization>();
    shared::<tfp::nn::layer::Dot>();
    shared::<tfp::nn::layer::Dropout>();
    shared::<tfp::nn::layer::EinsumDense>();
    shared::<tfp::nn::layer::Embedding>();
    shared::<tfp::nn::layer::Encoding>();
    shared::<tfp::nn::layer::Equalization>();
    shared::<tfp::nn::layer::Fill>();
    shared::<tfp::nn::layer::Flatten>();
    shared::<tfp::nn::layer::Flip>();
    shared::<tfp::nn::layer::Function>();
    shared::<tfp::nn::layer::GaussianDropout>();
    shared::<tfp::nn::layer::GaussianNoise>();
    shared::<tfp::nn::layer::GlobalPool>();
    shared::<tfp::nn::layer::GroupNorm>();
    shared::<tfp::nn::layer::GroupedQueryAttention>();
    shared::<tfp::nn::layer::HashedCrossing>();
    shared::<tfp::nn::layer::Hashing>();
    shared::<tfp::nn::layer::Identity>();
    shared::<tfp::nn::layer::Initialized<layer::Dense>>();
    shared::<tfp::nn::layer::IntegerLookup>();
    shared::<tfp::nn::layer::Interpolation>();
    shared::<tfp::nn::layer::KerasLayer>();
    shared::<tfp::nn::layer::LayerNorm>();
    shared::<tfp::nn::layer::Masking>();
    shared::<tfp::nn::layer::Maximum>();
    shared::<tfp::nn::layer::Measured>();
    shared::<tfp::nn::layer::MelSpectrogram>();
    shared::<tfp::nn::layer::Merge>();
    shared::<tfp::nn::layer::Minimum>();
    shared::<tfp::nn::layer::MixUp>();
    shared::<tfp::nn::layer::MultiHeadAttention>();
    shared::<tfp::nn::layer::Multiply>();
    shared::<tfp::nn::layer::Node>();
    shared::<tfp::nn::layer::Normalization>();
    shared::<tfp::nn::layer::PRelu>();
    shared::<tfp::nn::layer::Pass<'static>>();
    shared::<tfp::nn::layer::Permute>();
    shared::<tfp::nn::layer::Pooling3d>();
    shared::<tfp::nn::layer::Pooling>();
    shared::<tfp::nn::layer::Port>();
    shared::<tfp::nn::layer::RandAugment>();
    shared::<tfp::nn::layer::RandomBrightness>();
    shared::<tfp::nn::layer::RandomColorDegeneration>();
    shared::<tfp::nn::layer::RandomColorJitter>();
    shared::<tfp::nn::layer::RandomContrast>();
    shared::<tfp::nn::layer::RandomCrop>();
    shared::<tfp::nn::layer::RandomElasticTransform>();
    shared::<tfp::nn::layer::RandomErasing>();
    shared::<tfp::nn::layer::RandomFlip>();
    shared::<tfp::nn::layer::RandomGaussianBlur>();
    shared::<tfp::nn::layer::RandomGrayscale>();
    shared::<tfp::nn::layer::RandomHue>();
    shared::<tfp::nn::layer::RandomInvert>();
    shared::<tfp::nn::layer::RandomPerspective>();
    shared::<tfp::nn::layer::RandomPosterization>();
    shared::<tfp::nn::layer::RandomRotation>();
    shared::<tfp::nn::layer::RandomSaturation>();
    shared::<tfp::nn::layer::RandomSharpness>();
    shared::<tfp::nn::layer::RandomShear>();
    shared::<tfp::nn::layer::RandomTranslation>();
    shared::<tfp::nn::layer::RandomZoom>();
    shared::<tfp::nn::layer::Recurrent>();
    shared::<tfp::nn::layer::Regularized<layer::Dense>>();
    shared::<tfp::nn::layer::Relu>();
    shared::<tfp::nn::layer::RepeatVector>();
    shared::<tfp::nn::layer::Reshape>();
    shared::<tfp::nn::layer::ResizeMethod>();
    shared::<tfp::nn::layer::Resizing>();
    shared::<tfp::nn::layer::Reversed<'static>>();
    shared::<tfp::nn::layer::ReversibleEmbedding>();
    shared::<tfp::nn::layer::RmsNorm>();
    shared::<tfp::nn::layer::RnnKind>();
    shared::<tfp::nn::layer::SavedLayer>();
    shared::<tfp::nn::layer::Scaling>();
    shared::<tfp::nn::layer::Score>();
    shared::<tfp::nn::layer::SeparableConv>();
    shared::<tfp::nn::layer::Sequential>();
    shared::<tfp::nn::layer::SharedDropout>();
    shared::<tfp::nn::layer::SharedLayer<layer::Dense>>();
    shared::<tfp::nn::layer::Softmax>();
    shared::<tfp::nn::layer::Solarization>();
    shared::<tfp::nn::layer::SpatialDropout>();
    shared::<tfp::nn::layer::SpectralNorm<layer::Dense>>();
    shared::<tfp::nn::layer::Spectrum>();
    shared::<tfp::nn::layer::SpectrumScale>();
    shared::<tfp::nn::layer::StackedRnn>();
    shared::<tfp::nn::layer::StftSpectrogram>();
    shared::<tfp::nn::layer::Subtract>();
    shared::<tfp::nn::layer::TimeDistributed<layer::Dense>>();
    shared::<tfp::nn::layer::UnitNorm>();
    shared::<tfp::nn::layer::UnknownPlace>();
    shared::<tfp::nn::layer::UpSampling>();
    shared::<tfp::nn::layer::Window>();
    shared::<tfp::nn::layer::WithPolicy<layer::Dense>>();
    shared::<tfp::nn::layer::ZeroPadding>();
    shared::<tfp::nn::optimizer::Adadelta>();
    shared::<tfp::nn::optimizer::Adagrad>();
    shared::<tfp::nn::optimizer::Adam>();
    shared::<tfp::nn::optimizer::Adamax>();
    shared::<tfp::nn::optimizer::Change<AnyValue>>();
    shared::<tfp::nn::optimizer::Clip>();
    shared::<tfp::nn::optimizer::Ftrl>();
    shared::<tfp::nn::optimizer::KerasRule>();
    shared::<tfp::nn::optimizer::Lion>();
    shared::<tfp::nn::optimizer::LossScale>();
    shared::<tfp::nn::optimizer::Minimizer<optimizer::Adam>>();
    shared::<tfp::nn::optimizer::MovingAverage>();
    shared::<tfp::nn::optimizer::Nadam>();
    shared::<tfp::nn::optimizer::Optimizer<optimizer::Adam>>();
    shared::<tfp::nn::optimizer::RateFunction>();
    shared::<tfp::nn::optimizer::RmsProp>();
    shared::<tfp::nn::optimizer::Schedule>();
    shared::<tfp::nn::optimizer::Sgd>();
    shared::<tfp::nn::optimizer::Slot>();
    shared::<tfp::nn::optimizer::State<'static, AnyValue>>();
    shared::<tfp::nn::optimizer::Update<AnyValue>>();
    shared::<tfp::nn::training::BackupAndRestore>();
    shared::<tfp::nn::training::Batch>();
    shared::<tfp::nn::training::Batches>();
    shared::<tfp::nn::training::Control>();
    shared::<tfp::nn::training::CsvLogger>();
    shared::<tfp::nn::training::EarlyStopping>();
    shared::<tfp::nn::training::Goal>();
    shared::<tfp::nn::training::Head>();
    shared::<tfp::nn::training::LearningRateScheduler<fn(usize, f32) -> f32>>();
    shared::<tfp::nn::training::Logs>();
    shared::<
        tfp::nn::training::ModelCheckpoint<
            fn(&Path, &training::Trainer<optimizer::Adam>) -> Result<()>,
        >,
    >();
    shared::<tfp::nn::training::Plan<optimizer::Adam>>();
    shared::<tfp::nn::training::Progress>();
    shared::<tfp::nn::training::ReduceLrOnPlateau>();
    shared::<tfp::nn::training::SaveBest<fn(&training::Trainer<optimizer::Adam>) -> Result<()>>>();
    shared::<tfp::nn::training::TensorBoard>();
    shared::<tfp::nn::training::Tensors<'static>>();
    shared::<tfp::nn::training::TerminateOnNan>();
    shared::<tfp::nn::training::Trainer<optimizer::Adam>>();
    shared::<tfp::weights::InSession<'static, tfp::nn::Model>>();
    shared::<tfp::weights::Loaded>();
    shared::<tfp::weights::Mapping>();
    shared::<tfp::weights::Mismatch>();
    shared::<tfp::weights::TensorFile>();
};

/// The folder of a crate's sources.
pub(crate) fn folder(name: &str) -> PathBuf {
    let below = Path::new("bindings").join(name).join("src");
    match below.is_dir() {
        true => below,
        false => Path::new(env!("CARGO_MANIFEST_DIR"))
            .with_file_name(name)
            .join("src"),
    }
}

/// The names that begin with a capital letter, and are not in capitals only.
fn names_in(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase()))
        .filter(|name| name.contains(|letter: char| letter.is_ascii_lowercase()))
        .map(str::to_owned)
}

/// The names of types and traits that a source makes public from other modules.
pub(crate) fn reexported(path: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(path).expect("a source");
    let parts = text
        .split("\n")
        .map(str::trim_start)
        .collect::<Vec<_>>()
        .join(" ");
    let uses = parts.split("pub use ").skip(1);
    uses.filter_map(|rest| rest.split(';').next())
        .flat_map(names_in)
        .collect()
}

/// The names after such a start of a line.
fn declared(text: &str, start: &str) -> impl Iterator<Item = String> {
    text.lines()
        .filter_map(move |line| line.strip_prefix(start))
        .filter_map(|rest| names_in(rest).next())
}

/// The names of public types in the sources of a folder, and those of traits and of other names of types.
fn named(folder: &Path, names: &mut BTreeSet<String>, others: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the sources") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            named(&path, names, others);
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source");
        for start in ["pub struct ", "pub enum "] {
            names.extend(declared(&text, start));
        }
        for start in ["pub trait ", "pub type "] {
            others.extend(declared(&text, start));
        }
        names.extend(reexported(&path));
    }
}

/// Whether a type is shared in this text of a test.
pub(crate) fn is_listed(text: &str, name: &str) -> bool {
    [">", "<"]
        .iter()
        .any(|end| text.contains(&format!("::{name}{end}")))
}

#[test]
fn every_public_type_is_shared() {
    let (mut names, mut others) = (BTreeSet::new(), BTreeSet::new());
    named(&folder("client"), &mut names, &mut others);
    assert!(names.len() > 100, "{names:?}");
    let here = include_str!("shared_types.rs");
    let missing: Vec<_> = names
        .difference(&others)
        .filter(|name| !is_listed(here, name))
        .collect();
    assert!(
        missing.is_empty(),
        "not among the types of this file: {missing:?}"
    );
}
