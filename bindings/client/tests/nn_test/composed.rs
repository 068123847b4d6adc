//! Models of your own: structs of layers, beside the same models made of nodes.

use std::collections::BTreeMap;

use tfp::nn::layer::{
    Add, BatchNorm, Composed, Dense, Dropout, Fields, Flatten, Layer, Node, Sequential, SharedLayer,
};
use tfp::nn::optimizer::Sgd;
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Activation, Loss, Model, Regularizer, Weights};
use tfp::{EagerContext, Graph, Mode, Result, Tensor};

/// A skip over a layer that is called twice.
#[derive(Model)]
pub(crate) struct Block {
    norm: BatchNorm,
    dense: Dense,
}

impl Block {
    pub(crate) fn new(units: i64) -> Self {
        Self {
            norm: BatchNorm::default(),
            dense: Dense::new(units),
        }
    }
}

impl Composed for Block {
    fn call(&self, x: &Node) -> Result<Node> {
        let y = self.dense.on(&self.norm.on(x)?)?;
        let y = self.dense.on(&y.then(Activation::Tanh)?)?;
        Node::join(Add, &[x, &y])
    }
}

/// Every type that a field can have.
#[derive(Model)]
pub(crate) struct Net {
    /// A comment is an attribute.
    pub(crate) flatten: Flatten,
    pub stem: Dense,
    blocks: Vec<Block>,
    pair: [Dense; 2],
    dropout: Option<Dropout>,
    none: Option<Vec<Dense>>,
    shared: Block,
    r#in: Box<dyn Layer + Send + Sync>,
    #[model(skip)]
    sizes: BTreeMap<i64, fn(i64) -> Vec<i64>>,
}

impl Net {
    pub(crate) fn new() -> Self {
        Self {
            flatten: Flatten,
            stem: Dense::new(4),
            blocks: vec![Block::new(4), Block::new(4)],
            pair: [Dense::new(4), Dense::new(4)],
            dropout: Some(Dropout { rate: 0.25 }),
            none: None,
            shared: Block::new(4),
            r#in: Box::new(Dense::new(2)),
            sizes: BTreeMap::from([(1, (|size| vec![size]) as fn(i64) -> Vec<i64>)]),
        }
    }
}

impl Composed for Net {
    fn call(&self, x: &Node) -> Result<Node> {
        assert_eq!(self.sizes.len(), 1);
        let mut x = self.stem.on(&self.flatten.on(x)?)?;
        for block in &self.blocks {
            x = x.then(block)?;
        }
        for layer in &self.pair {
            x = x.then(layer)?;
        }
        if let Some(dropout) = &self.dropout {
            x = dropout.on(&x)?;
        }
        assert!(self.none.is_none());
        self.r#in.on(&x.then(&self.shared)?.then(&self.shared)?)
    }
}

/// The names of the variables of a block.
pub(crate) fn block(path: &str) -> Vec<String> {
    let norm = ["gamma", "beta", "moving_mean", "moving_variance"];
    let norm = norm.iter().map(|name| format!("{path}/norm/{name}"));
    let dense = ["kernel", "bias"].iter();
    norm.chain(dense.map(|name| format!("{path}/dense/{name}")))
        .collect()
}

/// The same as `Block`, of nodes; the layers are shared.
fn block_of_nodes(x: &Node, path: &str, norm: &dyn Layer, dense: &dyn Layer) -> Result<Node> {
    let y = x.then_named(&format!("{path}/norm"), norm)?;
    let y = y.then_named(&format!("{path}/dense"), dense)?;
    let y = y.then(Activation::Tanh)?.then(dense)?;
    Node::join(Add, &[x, &y])
}

/// The same as `Net`, of nodes.
fn of_nodes(weights: &Weights) -> Result<Model> {
    let norm = || SharedLayer::new(BatchNorm::default());
    let dense = || SharedLayer::new(Dense::new(4));
    let input = Node::input(weights, "x", &[3, 2])?;
    let mut x = input.then(Flatten)?.then_named("stem", Dense::new(4))?;
    for path in ["blocks/0", "blocks/1"] {
        x = block_of_nodes(&x, path, &norm(), &dense())?;
    }
    for path in ["pair/0", "pair/1"] {
        x = x.then_named(path, Dense::new(4))?;
    }
    x = x.then(Dropout { rate: 0.25 })?;
    let (norm, dense) = (norm(), dense());
    x = block_of_nodes(&x, "shared", &norm, &dense)?;
    x = block_of_nodes(&x, "shared", &norm, &dense)?;
    Model::new(&[&input], &[("y", &x.then_named("in", Dense::new(2))?)])
}

pub(crate) fn numbers(dims: &[i64]) -> Result<Tensor> {
    let count = dims.iter().product::<i64>();
    let value = |index: i64| ((index * 7 + 3) % 11) as f32 / 5.0 - 1.0;
    Tensor::from_vec((0..count).map(value).collect(), dims)
}

pub(crate) fn assert_close(found: &Tensor, expected: &Tensor) -> Result<()> {
    let (found, expected) = (found.to_vec::<f32>()?, expected.to_vec::<f32>()?);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        let tolerance = 1e-6 * expected.abs().max(1.0);
        assert!((found - expected).abs() <= tolerance, "{found} {expected}");
    }
    Ok(())
}

pub(crate) fn names(model: &Model) -> Vec<&str> {
    model.variables().iter().map(|one| one.name()).collect()
}

pub(crate) fn said<T>(result: Result<T>) -> String {
    result
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

pub(crate) fn plan() -> Plan<Sgd> {
    Plan::new(Loss::MeanSquaredError, Sgd::default()).rate(0.1)
}

#[test]
fn fields_give_variables_their_names() -> Result<()> {
    let weights = Weights::new(&EagerContext::new()?, 3);
    let model = Net::new().model(&[&Node::input(&weights, "x", &[3, 2])?])?;
    let dense = |path: &str| vec![format!("{path}/kernel"), format!("{path}/bias")];
    let expected = [
        dense("stem"),
        block("blocks/0"),
        block("blocks/1"),
        dense("pair/0"),
        dense("pair/1"),
        block("shared"),
        dense("in"),
    ];
    assert_eq!(names(&model), expected.concat());
    let (x, y) = (&model.inputs()[0], &model.outputs()[0]);
    assert_eq!((&*x.name, &*x.shape), ("x", &[3_i64, 2][..]));
    assert_eq!((&*y.name, &*y.shape), ("y", &[2_i64][..]));
    let summary = model.summary();
    assert!(summary.contains("blocks/1 (Block)"), "{summary}");

    let mut paths = Vec::new();
    Net::new().each_layer(&mut |path, layer| paths.push(format!("{path} {}", layer.kind())));
    let expected = [
        "flatten Flatten",
        "stem Dense",
        "blocks/0 Block",
        "blocks/1 Block",
        "pair/0 Dense",
        "pair/1 Dense",
        "dropout Dropout",
        "shared Block",
        "in Dense",
    ];
    assert_eq!(paths, expected);
    Ok(())
}

/// Trains both models, each in a place of its own; the first values are equal because the seeds are.
fn trained(place: &impl Mode, other: &impl Mode) -> Result<()> {
    let weights = Weights::new(place, 3);
    let composed = Net::new().model(&[&Node::input(&weights, "x", &[3, 2])?])?;
    let mut composed = Trainer::new(composed, plan())?;
    let mut nodes = Trainer::new(of_nodes(&Weights::new(other, 3))?, plan())?;
    assert_eq!(names(composed.model()), names(nodes.model()));
    let (x, truth) = (numbers(&[5, 3, 2])?, numbers(&[5, 2])?);
    assert_close(&composed.predict(&x)?, &nodes.predict(&x)?)?;
    let before = composed.values()?;
    for _ in 0..2 {
        let (found, expected) = (composed.train_on(&x, &truth)?, nodes.train_on(&x, &truth)?);
        assert!(
            (found - expected).abs() <= 1e-6 * expected,
            "{found} {expected}"
        );
    }
    for (found, expected) in composed.values()?.iter().zip(&nodes.values()?) {
        assert_close(found, expected)?;
    }
    let stem = composed.values()?[0].to_vec::<f32>()?;
    assert_ne!(stem, before[0].to_vec::<f32>()?);
    Ok(())
}

#[test]
fn training_is_that_of_the_same_model_of_nodes_in_both_modes() -> Result<()> {
    trained(&EagerContext::new()?, &EagerContext::new()?)?;
    trained(&Graph::new()?, &Graph::new()?)
}

#[test]
fn a_path_of_fields_is_frozen() -> Result<()> {
    let weights = Weights::new(&EagerContext::new()?, 3);
    let mut model = Net::new().model(&[&Node::input(&weights, "x", &[3, 2])?])?;
    model.freeze("blocks/0")?;
    model.freeze("shared/dense")?;
    let unknown = said(model.freeze("block"));
    assert!(
        unknown.contains("no variable is below 'block'"),
        "{unknown}"
    );
    let mut trainer = Trainer::new(model, plan())?;
    let before = trainer.values()?;
    trainer.train_on(&numbers(&[5, 3, 2])?, &numbers(&[5, 2])?)?;
    let after = trainer.values()?;
    for ((name, before), after) in names(trainer.model()).iter().zip(&before).zip(&after) {
        let is_kept = before.to_vec::<f32>()? == after.to_vec::<f32>()?;
        let is_frozen = name.starts_with("blocks/0/") || name.starts_with("shared/dense/");
        assert_eq!(is_kept, is_frozen, "{name}");
    }
    Ok(())
}

#[test]
fn it_is_a_layer_like_others() -> Result<()> {
    let weights = Weights::new(&EagerContext::new()?, 3);
    let one = Block::new(4);
    let model = Sequential::new(&weights, &[4], &[&one, &one, &Dense::new(1)])?;
    let expected = [block("block"), block("block_1")].concat();
    let model = Model::from(model);
    assert_eq!(names(&model)[..12], expected);
    assert_eq!(names(&model)[12..], ["dense/kernel", "dense/bias"]);
    let mut trainer = Trainer::new(model, plan())?;
    let (x, truth) = (numbers(&[5, 4])?, numbers(&[5, 1])?);
    let first = trainer.train_on(&x, &truth)?;
    let last = (0..20).try_fold(first, |_, _| trainer.train_on(&x, &truth))?;
    assert!(last < 0.7 * first, "{first} {last}");

    // A shared one has its variables once.
    let weights = Weights::new(&EagerContext::new()?, 3);
    let shared = SharedLayer::new(Block::new(4));
    let model = Sequential::new(&weights, &[4], &[&shared, &shared])?;
    assert_eq!(names(&Model::from(model)), block("block"));
    Ok(())
}

/// A penalty counts a kernel once, though two calls have asked for it.
#[test]
fn a_penalty_is_of_each_variable_once() -> Result<()> {
    let place = EagerContext::new()?;
    let weights = Weights::new(&place, 3);
    let layer = Block::new(4).regularized("kernel", Regularizer::l2(0.5));
    Sequential::new(&weights, &[4], &[&layer])?;
    let found = weights
        .penalty(&place.any())?
        .map(|sum| sum.handle()?.to_tensor()?.to_scalar());
    let found: f32 = found.transpose()?.unwrap_or_default();
    let kernel = weights.variables()[4].to_tensor()?.to_vec::<f32>()?;
    let expected = 0.5 * kernel.iter().map(|value| value * value).sum::<f32>();
    assert!(
        (found - expected).abs() <= 1e-6 * expected,
        "{found} {expected}"
    );
    Ok(())
}
