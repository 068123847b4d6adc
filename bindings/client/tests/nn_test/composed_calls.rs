//! How models of your own are called: masks, inputs and outputs, refusals, and files of Keras.

use tfp::nn::layer::{
    Built, Composed, Concatenate, Dense, Embedding, Layer, Node, Pass, Recurrent, RnnKind,
    Sequential, TimeDistributed,
};
use tfp::nn::training::{Head, Trainer};
use tfp::nn::{Activation, Initializer, Loss, Model, Weights};
use tfp::{Context, EagerContext, Result, Tensor, ops};

use crate::composed::{Block, Net, assert_close, block, names, numbers, plan, said};

/// Words to vectors with a mask.
#[derive(Model)]
struct Words {
    vectors: Embedding,
}

impl Composed for Words {
    fn call(&self, x: &Node) -> Result<Node> {
        self.vectors.on(x)
    }
}

/// A state of vectors.
#[derive(Model)]
struct Reader {
    lstm: Recurrent,
}

impl Composed for Reader {
    fn call(&self, x: &Node) -> Result<Node> {
        self.lstm.on(x)
    }
}

/// The mask leaves one model and reaches the other, also where a layer is around it.
#[test]
fn masks_pass_from_model_to_model() -> Result<()> {
    let weights = Weights::new(&EagerContext::new()?, 3);
    let vectors = Embedding::new(5, 3).mask_zero();
    let lstm = Recurrent::new(RnnKind::Lstm, 4);
    let (words, reader) = (Words { vectors }, Reader { lstm });
    let composed = Sequential::new(&weights, &[4], &[&words, &reader])?;
    let expected = [
        "words/vectors/embeddings",
        "reader/lstm/kernel",
        "reader/lstm/recurrent_kernel",
        "reader/lstm/bias",
    ];
    let composed = Model::from(composed);
    assert_eq!(names(&composed), expected);
    let x = Tensor::from_array([[1_i64, 2, 0, 0], [3, 0, 4, 1]])?;
    let predict = |model: &Model| -> Result<Tensor> {
        let cx = model.weights().context();
        let y = model.call(&Pass::inference(cx), &[cx.constant(&x)?])?;
        y[0].handle()?.to_tensor()
    };
    let of_layers = |vectors: Embedding| {
        let weights = Weights::new(&EagerContext::new()?, 3);
        let model = Sequential::new(&weights, &[4], &[&vectors, &lstm])?;
        predict(&model.into())
    };
    let found = predict(&composed)?;
    assert_close(&found, &of_layers(vectors)?)?;
    let unmasked = of_layers(Embedding::new(5, 3))?;
    assert_ne!(found.to_vec::<f32>()?, unmasked.to_vec::<f32>()?);

    let weights = Weights::new(&EagerContext::new()?, 3);
    let each = TimeDistributed {
        layer: Block::new(3),
    };
    let model = Sequential::new(&weights, &[2, 3], &[&each])?;
    let model = Model::from(model);
    assert_eq!(names(&model), block("time_distributed/block"));
    assert_eq!(model.outputs()[0].shape, [2, 3]);
    Ok(())
}

/// Two inputs, a layer for both, and two outputs.
#[derive(Model)]
struct Towers {
    tower: Dense,
    both: Concatenate,
    class: Dense,
    age: Dense,
}

impl Towers {
    fn new() -> Self {
        Self {
            tower: Dense::new(4),
            both: Concatenate::default(),
            class: Dense::new(2),
            age: Dense::new(1),
        }
    }
}

impl Composed for Towers {
    fn call_many(&self, inputs: &[Node]) -> Result<Vec<Node>> {
        let towers = inputs.iter().map(|input| self.tower.on(input));
        let towers = towers.collect::<Result<Vec<_>>>()?;
        let both = self.both.on_all(&towers.iter().collect::<Vec<_>>())?;
        Ok(vec![self.class.on(&both)?, self.age.on(&both)?])
    }
}

#[test]
fn inputs_and_outputs_are_several() -> Result<()> {
    let place = EagerContext::new()?;
    let weights = Weights::new(&place, 3);
    let left = Node::input(&weights, "left", &[3])?;
    let right = Node::input(&weights, "right", &[3])?;
    let model = Towers::new().model(&[&left, &right])?;
    let expected =
        ["tower", "class", "age"].map(|name| [format!("{name}/kernel"), format!("{name}/bias")]);
    assert_eq!(names(&model), expected.concat());
    let ports = |ports: &[tfp::nn::layer::Port]| {
        let names = ports.iter().map(|port| port.name.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(ports(model.inputs()), ["left", "right"]);
    assert_eq!(ports(model.outputs()), ["class", "age"]);
    let head = || Head::new(Loss::MeanSquaredError);
    let plan = plan().head("class", head()).head("age", head());
    let mut trainer = Trainer::new(model, plan)?;
    let (x, y) = (numbers(&[5, 3])?, numbers(&[5, 3])?);
    let (class, age) = (numbers(&[5, 2])?, numbers(&[5, 1])?);
    let loss = trainer.train_on([&x, &y], [("age", &age), ("class", &class)])?;
    assert!(loss.is_finite());

    // As a layer.
    let outputs = Towers::new().outputs_on(&[&left, &right])?;
    let shapes: Vec<&[i64]> = outputs.iter().map(Node::shape).collect();
    assert_eq!(shapes, [[2], [1]]);
    let all = weights.variables();
    let last = all.last().map(|one| one.name());
    assert_eq!(last, Some("towers/age/bias"));
    let refused = said(Block::new(3).on_all(&[&left, &right]));
    assert!(
        refused.contains("Block takes one input, found 2"),
        "{refused}"
    );
    Ok(())
}

/// Multiplies by a number; the type has no size.
struct Scale;

impl Layer for Scale {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let factor = weights
            .layer("scale")
            .trainable("factor", &[], Initializer::Ones)?;
        Ok(Built {
            output: input.to_vec(),
            forward: Box::new(move |pass, x| {
                let cx = pass.context();
                ops::mul(cx, x, factor.read(cx)?)
            }),
        })
    }
}

#[derive(Model)]
struct Sizeless {
    scale: Scale,
}

impl Composed for Sizeless {
    fn call(&self, x: &Node) -> Result<Node> {
        self.scale.on(x)
    }
}

#[derive(Model)]
struct Boxed {
    one: Box<dyn Layer>,
    other: Box<Scale>,
}

impl Composed for Boxed {
    fn call(&self, x: &Node) -> Result<Node> {
        self.one.on(&self.other.on(&self.one.on(x)?)?)
    }
}

#[derive(Model)]
struct Copied {
    first: Dense,
    last: Vec<Dense>,
}

impl Composed for Copied {
    fn call(&self, x: &Node) -> Result<Node> {
        let last = self.last[0];
        self.first.on(x)?.then(last)
    }
}

#[derive(Model)]
struct Silent {
    _dense: Dense,
}

impl Composed for Silent {}

#[test]
fn what_can_not_be_built_says_why() -> Result<()> {
    let weights = Weights::new(&EagerContext::new()?, 3);
    let x = Node::input(&weights, "x", &[3])?;
    let refused = said(Sizeless { scale: Scale }.model(&[&x]));
    assert!(
        refused.contains("the field 'scale' has variables"),
        "{refused}"
    );
    let boxed = Boxed {
        one: Box::new(Scale),
        other: Box::new(Scale),
    };
    let weights = Weights::new(&EagerContext::new()?, 3);
    let x = Node::input(&weights, "x", &[3])?;
    assert_eq!(names(&boxed.model(&[&x])?), ["one/factor", "other/factor"]);

    let copied = Copied {
        first: Dense::new(3),
        last: vec![Dense::new(3)],
    };
    let refused = said(copied.model(&[&x]));
    assert!(
        refused
            .contains("Copied does not call its layers last/0; call them as `self.last[0].on(&x)`"),
        "{refused}"
    );
    let silent = Silent {
        _dense: Dense::new(3),
    };
    let refused = said(silent.model(&[&x]));
    assert!(
        refused.contains("Silent is called with the one input 'x'"),
        "{refused}"
    );
    let refused = said(Block::new(3).model(&[&x, &x]));
    assert!(
        refused.contains("Block takes one input, found 2"),
        "{refused}"
    );
    let refused = said(Block::new(3).model(&[&x.then(Activation::Relu)?]));
    assert!(
        refused.contains("can't be an input of a model"),
        "{refused}"
    );
    let refused = said(x.then_named("outer", Block::new(4)));
    assert!(
        refused.contains("layer outer (Block), called with 'x'"),
        "{refused}"
    );
    Ok(())
}

/// A model of layers of Keras is a file of Keras; one of models of your own is not.
#[test]
fn files_of_keras_have_its_layers() -> Result<()> {
    let place = EagerContext::new()?;
    let weights = Weights::new(&place, 3);
    let model = Block::new(3).model(&[&Node::input(&weights, "x", &[3])?])?;
    let path = std::env::temp_dir().join(format!("composed_{}.keras", std::process::id()));
    model.save_keras(&path)?;
    let read = Model::from_keras(&Weights::new(&place, 0), &path);
    let _ = std::fs::remove_file(&path);
    let read = read?;
    assert_eq!(read.variables().len(), 6);
    let x = numbers(&[5, 3])?;
    let (own, read) = (Trainer::new(model, plan())?, Trainer::new(read, plan())?);
    assert_close(&own.predict(&x)?, &read.predict(&x)?)?;

    let weights = Weights::new(&place, 3);
    let nested = Net::new().model(&[&Node::input(&weights, "x", &[3, 2])?])?;
    let refused = said(nested.save_keras(&path));
    assert!(
        refused.contains("(Block): Keras has no such layer"),
        "{refused}"
    );
    assert!(!path.exists());
    Ok(())
}
