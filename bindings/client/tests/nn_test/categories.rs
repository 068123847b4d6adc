//! Layers over numbers of categories: strings, and what they refuse.

use tfp::nn::layer::{
    Embedding, Encoding, HashedCrossing, Hashing, IntegerLookup, Layer, Node, Pass,
    ReversibleEmbedding, Sequential,
};
use tfp::nn::{Model, Weights};
use tfp::{Context, DataType, EagerContext, Mode, Result, Tensor};

/// What a layer over inputs of one value per sample gives for them.
fn called(layer: &dyn Layer, inputs: &[Tensor]) -> Result<Vec<i64>> {
    let eager = EagerContext::new()?;
    let weights = Weights::new(&eager, 0);
    let nodes = inputs
        .iter()
        .enumerate()
        .map(|(at, x)| Node::typed_input(&weights, &format!("x{at}"), x.dtype(), &[1]));
    let nodes = nodes.collect::<Result<Vec<_>>>()?;
    let all: Vec<&Node> = nodes.iter().collect();
    let found = Node::join(layer, &all)?;
    let model = Model::new(&all, &[("y", &found)])?;
    let cx = eager.any();
    let x = inputs.iter().map(|x| cx.constant(x));
    let y = model.call(&Pass::inference(&cx), &x.collect::<Result<Vec<_>>>()?)?;
    Ok(y[0].handle()?.to_tensor()?.as_slice::<i64>()?.to_vec())
}

/// The numbers of Keras 3.15.1.
#[test]
fn strings_have_the_bins_of_keras() -> Result<()> {
    let texts = || Tensor::from_strings(&["a", "bc", "12", ""], &[4, 1]);
    let plain = Hashing::new(10);
    assert_eq!(called(&plain, &[texts()?])?, [9, 9, 8, 3]);
    let strong = Hashing {
        salt: Some([3, 5]),
        ..plain
    };
    assert_eq!(called(&strong, &[texts()?])?, [1, 6, 0, 1]);
    let numbers = Tensor::from_vec(vec![12_i32, -3], &[2, 1])?;
    assert_eq!(called(&plain, &[numbers])?, [8, 9]);
    let crossing = HashedCrossing {
        bins: 10,
        encoding: Encoding::Integer,
    };
    let back = Tensor::from_strings(&["", "12", "bc", "a"], &[4, 1])?;
    assert_eq!(called(&crossing, &[texts()?, back])?, [0, 5, 1, 4]);
    let numbers = Tensor::from_vec(vec![1_i64, 2, 3, 4], &[4, 1])?;
    assert_eq!(called(&crossing, &[texts()?, numbers])?, [5, 7, 8, 6]);
    let masked = Hashing {
        mask: Some(1),
        ..plain
    };
    let error = called(&masked, &[texts()?]).map(|_| ());
    assert!(error.is_err_and(|error| error.to_string().contains("strings")));
    Ok(())
}

#[test]
fn unknown_numbers_without_a_place_are_errors() -> Result<()> {
    let layer = IntegerLookup {
        unknown: 0,
        mask: Some(9),
        ..IntegerLookup::new(&[5, -7])
    };
    let numbers = |numbers: [i64; 3]| Tensor::from_vec(numbers.to_vec(), &[3, 1]);
    assert_eq!(called(&layer, &[numbers([-7, 9, 5])?])?, [2, 0, 1]);
    assert!(called(&layer, &[numbers([-7, 6, 5])?]).is_err());
    let back = IntegerLookup {
        inverse: Some(-1),
        ..layer
    };
    assert_eq!(called(&back, &[numbers([2, 0, 1])?])?, [-7, 9, 5]);
    assert_eq!(called(&back, &[numbers([3, -1, i64::MIN])?])?, [-1, -1, -1]);
    Ok(())
}

#[test]
fn what_no_such_layer_takes_is_refused() -> Result<()> {
    let eager = EagerContext::new()?;
    let weights = Weights::new(&eager, 0);
    let known = IntegerLookup::new(&[1, 2]);
    let narrow = IntegerLookup {
        width: Some(2),
        ..known.clone()
    };
    let masked = IntegerLookup {
        mask: Some(2),
        ..known.clone()
    };
    let many = IntegerLookup {
        unknown: i64::MAX,
        ..known.clone()
    };
    let encoded = IntegerLookup {
        inverse: Some(0),
        encoding: Encoding::Count,
        ..known
    };
    let counted = HashedCrossing {
        bins: 3,
        encoding: Encoding::Count,
    };
    let crossing = HashedCrossing {
        bins: 3,
        encoding: Encoding::Integer,
    };
    let wide = ReversibleEmbedding::new(Embedding::new(5, 4));
    let whole = ReversibleEmbedding::new(Embedding::new(5, 3)).reverse_dtype(DataType::INT32);
    let layers: [(&dyn Layer, &str); 12] = [
        (&IntegerLookup::new(&[]), "the vocabulary is empty"),
        (&IntegerLookup::new(&[3, 1, 3]), "3 is twice"),
        (&narrow, "a width of 2, expected 3"),
        (&masked, "the mask 2 is in the vocabulary"),
        (&many, "places of unknown numbers"),
        (&encoded, "can't be encoded"),
        (&Hashing::new(0), "0 bins"),
        (&Hashing::new(1 << 40), "bins; expected 1 to"),
        (&crossing, "takes two or more inputs"),
        (&wide.reversed(), "takes vectors of 4"),
        (&whole.reversed(), "logits of type int32"),
        (&ReversibleEmbedding::new(Embedding::new(0, 4)), "0 rows"),
    ];
    for (layer, expected) in layers {
        let error = Sequential::new(&weights, &[3], &[layer]).map(|_| ());
        let error = error.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let one = Node::typed_input(&weights, "one", DataType::INT32, &[1])?;
    let two = Node::typed_input(&weights, "two", DataType::INT32, &[2])?;
    for (layer, nodes, expected) in [
        (counted, [&one, &one], "their numbers or one-hot"),
        (crossing, [&one, &two], "one value per sample"),
    ] {
        let error = Node::join(layer, &nodes).map(|_| ()).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
    }
    Ok(())
}
