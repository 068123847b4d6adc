//! Whatever a network is made of is compared with Keras: a new one without a comparison fails here.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use crate::functions::{ACTIVATIONS, INITIALIZERS, LOSSES, METRICS, schedules};
use crate::{built, keras, optimizers};

/// What no case of Keras has, and what tests it instead.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "Dropout",
        "draws at random: layers.rs compares its function with given seeds",
    ),
    (
        "AlphaDropout",
        "draws at random: functional.rs has its moments",
    ),
    (
        "GaussianDropout",
        "draws at random: functional.rs has its moments",
    ),
    (
        "GaussianNoise",
        "draws at random: functional.rs has its moments",
    ),
    (
        "SharedDropout",
        "draws at random: functional.rs has its moments",
    ),
    (
        "SpatialDropout",
        "draws at random: functional.rs has its moments",
    ),
    (
        "Equalization",
        "no model of Keras 3.15 can have it: images.rs has its numbers",
    ),
    ("Back", "the way back of ReversibleEmbedding"),
    ("Tables", "what the ways of ReversibleEmbedding share"),
    ("AugMix", "draws at random: mixed.rs has its bounds"),
    ("CutMix", "draws at random: mixed.rs has its rectangles"),
    ("MixUp", "draws at random: mixed.rs has its weights"),
    ("RandAugment", "draws at random: mixed.rs has its choices"),
    ("RandomCrop", "draws at random: images.rs has its parts"),
    (
        "RandomElasticTransform",
        "draws at random: mixed.rs has its moves",
    ),
    ("RandomFlip", "draws at random: images.rs has its sides"),
    ("RandomShear", "draws at random: images.rs has its rows"),
    (
        "LstmBias",
        "the bias of the case lstm of training.rs, whose gate begins open",
    ),
];

/// Returns the folder of the sources, where Bazel or Cargo has it.
fn sources() -> PathBuf {
    let below = Path::new("bindings/client/src/nn");
    match below.is_dir() {
        true => below.to_owned(),
        false => Path::new(env!("CARGO_MANIFEST_DIR")).join("src/nn"),
    }
}

/// Returns the names of an enumeration's variants.
fn variants(file: &str, name: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(sources().join(file)).expect("a source file");
    let begin = format!("pub enum {name} {{\n");
    let at = text.find(&begin).expect("the enumeration") + begin.len();
    let body = &text[at..];
    let body = &body[..body.find("\n}").expect("its end")];
    let is_variant = |line: &&str| {
        let inner = line.strip_prefix("    ").unwrap_or("");
        inner.starts_with(|c: char| c.is_ascii_uppercase())
    };
    body.lines().filter(is_variant).map(word).collect()
}

/// Returns the first word of a line.
fn word(line: &str) -> String {
    let line = line.trim_start();
    let end = line.find(|c: char| !c.is_ascii_alphanumeric());
    line[..end.unwrap_or(line.len())].to_owned()
}

/// Returns the types of a folder that are of a trait.
fn implementors(folder: &str, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let begin = format!("impl {name} for ");
    for entry in fs::read_dir(sources().join(folder)).expect("a folder of sources") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            let inner = path.strip_prefix(sources()).expect("a folder inside");
            found.extend(implementors(&inner.to_string_lossy(), name));
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        found.extend(
            text.lines()
                .filter_map(|line| line.strip_prefix(&begin))
                .map(word),
        );
    }
    found
}

/// Returns the names of variants, as they show themselves.
fn shown<'v, T: Debug + 'v>(values: impl IntoIterator<Item = &'v T>) -> BTreeSet<String> {
    values
        .into_iter()
        .map(|value| word(&format!("{value:?}")))
        .collect()
}

/// Returns the last part of a type's path.
fn last(path: &str) -> String {
    path.rsplit("::").next().unwrap_or(path).to_owned()
}

#[track_caller]
fn check(kind: &str, defined: &BTreeSet<String>, compared: &BTreeSet<String>) {
    assert!(defined.len() > 4, "{kind}: {defined:?} can't be all");
    let missing: Vec<&String> = defined
        .difference(compared)
        .filter(|name| !ELSEWHERE.iter().any(|(other, _)| other == name))
        .collect();
    assert!(
        missing.is_empty(),
        "{kind}: compare these with Keras: {missing:?}"
    );
    println!("{kind}: {} are compared with Keras", compared.len());
}

#[test]
fn losses_are_all_compared() {
    let compared = shown(LOSSES.iter().map(|(_, loss)| loss));
    check("losses", &variants("loss.rs", "Loss"), &compared);
}

#[test]
fn metrics_are_all_compared() {
    let compared = shown(METRICS.iter().map(|(_, metric, ..)| metric));
    check("metrics", &variants("metric.rs", "Metric"), &compared);
}

#[test]
fn activations_are_all_compared() {
    let compared = shown(ACTIVATIONS.iter().map(|(_, activation)| activation));
    check(
        "activations",
        &variants("activation.rs", "Activation"),
        &compared,
    );
}

#[test]
fn initializers_are_all_compared() {
    let compared = shown(INITIALIZERS.iter().map(|(_, initializer)| initializer));
    check(
        "initializers",
        &variants("initializer.rs", "Initializer"),
        &compared,
    );
}

#[test]
fn schedules_are_all_compared() {
    let schedules = schedules();
    let mut compared = shown(schedules.iter().map(|(_, schedule)| schedule));
    // The rates of the other optimizers' cases.
    compared.insert("Constant".to_owned());
    // Your own: compared with one of Keras' in `optimizers.rs`.
    compared.insert("Function".to_owned());
    // Compared with layers of the same weights in `saved.rs`.
    compared.insert("SavedLayer".to_owned());
    check(
        "schedules",
        &variants("optimizer/schedule.rs", "Schedule"),
        &compared,
    );
}

#[test]
fn layers_are_all_compared() {
    let mut compared: BTreeSet<String> = built::cases()
        .iter()
        .map(|(_, name, _)| last(name))
        .collect();
    compared.extend(keras::COMPARED.iter().map(|(layer, _)| (*layer).to_owned()));
    // Your own: compared with one of Keras' in `own.rs`.
    compared.insert("Function".to_owned());
    // Compared with layers of the same weights in `saved.rs`.
    compared.insert("SavedLayer".to_owned());
    check("layers", &implementors("layer", "Layer"), &compared);
}

#[test]
fn optimizers_are_all_compared() {
    let compared = optimizers::COMPARED
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    check("optimizers", &implementors("optimizer", "Rule"), &compared);
}
