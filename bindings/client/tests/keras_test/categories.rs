//! A model of layers over numbers of categories, which Keras has, too.

use tfp::nn::layer::{
    Add, Concatenate, Dense, Embedding, Encoding, HashedCrossing, Hashing, IntegerLookup, Node,
    ReversibleEmbedding, UnknownPlace,
};
use tfp::nn::{Model, Weights};
use tfp::{DataType, Result};

/// Bins and places of words, vectors of both, and logits of the vectors.
pub fn categories(weights: &Weights) -> Result<Model> {
    let words = Node::typed_input(weights, "words", DataType::INT32, &[4])?;
    let one = Node::typed_input(weights, "one", DataType::INT32, &[1])?;
    let two = Node::typed_input(weights, "two", DataType::INT32, &[1])?;
    let bins = words.then(Hashing {
        mask: Some(2),
        salt: Some([3, 5]),
        ..Hashing::new(4)
    })?;
    let places = words.then(IntegerLookup {
        unknown: 2,
        place: UnknownPlace::Hash(None),
        mask: Some(1),
        ..IntegerLookup::new(&[4, 0, 3])
    })?;
    let again = places.then(IntegerLookup {
        unknown: 2,
        mask: Some(1),
        inverse: Some(7),
        ..IntegerLookup::new(&[4, 0, 3])
    })?;
    let embedding = ReversibleEmbedding::new(Embedding::new(8, 3))
        .untied()
        .cap(2.0);
    let vectors = [&bins, &places, &again].map(|node| node.then(&embedding));
    let [a, b, c] = vectors;
    let sum = Node::join(Add, &[&a?, &b?, &c?])?;
    let logits = sum.then(embedding.reversed())?;
    let tied = ReversibleEmbedding::new(Embedding::new(4, 8)).reverse_dtype(DataType::FLOAT);
    let logits = logits.then(tied.reversed())?;
    let counts = words.then(IntegerLookup {
        encoding: Encoding::Count,
        width: Some(9),
        ..IntegerLookup::new(&[2, 4])
    })?;
    let crossed = HashedCrossing {
        bins: 5,
        encoding: Encoding::OneHot,
    };
    let crossed = Node::join(crossed, &[&one, &two])?;
    let together = Node::join(Concatenate::default(), &[&counts, &crossed])?;
    let dense = together.then(Dense::new(2))?;
    Model::new(&[&words, &one, &two], &[("y", &logits), ("z", &dense)])
}
