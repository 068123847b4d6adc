//! The pieces of `docs/client.md`, as one program.

use std::path::Path;

use tfp::ops::{add_v2, mul, sqrt, square, sub};
use tfp::{
    Checkpoint, DataType, EagerContext, Graph, Mode, Model, ModelWriter, Result, Session, Shape,
    Tape, Tensor, Variable, gradients, initialize,
};

fn hypotenuse<C: Mode>(ctx: &C, a: &C::Value, b: &C::Value) -> Result<C::Value> {
    let sum = add_v2(ctx, square(ctx, a)?, square(ctx, b)?)?;
    sqrt(ctx, sum)
}

fn graph() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let a = scope.placeholder("a", DataType::FLOAT, &Shape::from([-1]))?;
    let b = scope.placeholder("b", DataType::FLOAT, &Shape::from([-1]))?;
    let c = hypotenuse(&scope, &a, &b)?;

    let session = Session::new(&graph)?;
    let (three, four) = (
        Tensor::from_array([3.0_f32, 5.0])?,
        Tensor::from_array([4.0_f32, 12.0])?,
    );
    let values = session.eval(&[(&a, &three), (&b, &four)], &[&c])?;
    println!("graph: {:?}", values[0].as_slice::<f32>()?);
    Ok(())
}

fn eager() -> Result<()> {
    let ctx = EagerContext::new()?;
    let a = ctx.handle(&Tensor::from_array([3.0_f32, 5.0])?)?;
    let b = ctx.handle(&Tensor::from_array([4.0_f32, 12.0])?)?;
    let c = hypotenuse(&ctx, &a, &b)?;
    println!("eager: {:?}", c.to_tensor()?.as_slice::<f32>()?);
    Ok(())
}

fn tape() -> Result<()> {
    let ctx = EagerContext::new()?;
    let w = Variable::new(&ctx, "w", 2.0_f32)?;

    let tape = Tape::new(&ctx);
    let value = w.read(&tape)?;
    let cube = mul(&tape, &value, square(&tape, &value)?)?;
    let gradient = tape.gradient(&cube, &w.handle_in(&ctx)?)?;
    println!("gradient: {}", gradient.to_tensor()?.to_scalar::<f32>()?);
    Ok(())
}

fn train(folder: &Path) -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let w = Variable::new(&scope, "w", 0.0_f32)?;
    let loss = square(&scope, sub(&scope, w.read(&scope)?, 3.0_f32)?)?;
    let grads = gradients(&scope, &[loss], &[w.handle_in(&scope)?])?;
    let Some(Some(grad)) = grads.first() else {
        return Err(tfp::Error::argument(
            "the loss does not depend on the variable",
        ));
    };
    let step = w.assign_sub(&scope, mul(&scope, grad, 0.25_f32)?)?;

    let session = Session::new(&graph)?;
    initialize(&session, [&w])?;
    for _ in 0..20 {
        session.run().target(&step).go()?;
    }
    println!("trained: {:.2}", w.value_in(&session)?.to_scalar::<f32>()?);

    let mut checkpoint = Checkpoint::new();
    checkpoint.add("model/w", &w)?;
    checkpoint.save_from(&session, folder.join("ck"))?;
    Ok(())
}

fn restore(folder: &Path) -> Result<()> {
    let ctx = EagerContext::new()?;
    let w = Variable::new(&ctx, "w", 0.0_f32)?;
    let mut checkpoint = Checkpoint::new();
    checkpoint.add("model/w", &w)?;
    checkpoint
        .restore(tfp::latest_checkpoint(folder)?)?
        .complete()?;
    println!("restored: {:.2}", w.to_tensor()?.to_scalar::<f32>()?);
    Ok(())
}

fn model(folder: &Path) -> Result<()> {
    let ctx = EagerContext::new()?;
    let slope = Variable::new(&ctx, "slope", 3.0_f32)?;
    let mut writer = ModelWriter::new();
    writer.variable("slope", &slope)?;
    let x = ("x", DataType::FLOAT, Shape::from([-1]));
    writer.signature("serving_default", &[x], |func, arguments| {
        let y = add_v2(
            func,
            mul(func, &arguments["x"], slope.read(func)?)?,
            1.0_f32,
        )?;
        Ok(vec![("y".to_owned(), y)])
    })?;
    writer.write(folder.join("model"))?;

    let model = Model::load(&ctx, folder.join("model"), &["serve"])?;
    let results = model
        .signature("serving_default")?
        .call_named(&ctx, [("x", [2.0, 3.0])])?;
    println!(
        "model: y = {:?}",
        results["y"].to_tensor()?.as_slice::<f32>()?
    );
    Ok(())
}

fn two_inputs() -> Result<()> {
    use tfp::nn::layer::{Add, Dense, Model, Node, SharedLayer};
    use tfp::nn::{Activation, Weights};

    let weights = Weights::new(&EagerContext::new()?, 7);
    let a = Node::input(&weights, "a", &[8])?;
    let b = Node::input(&weights, "b", &[8])?;
    let encoder = SharedLayer::new(Dense::new(16).activation(Activation::Relu));
    let (x, y) = (a.then_named("encoder", &encoder)?, b.then(&encoder)?);
    let sum = Node::join(Add, &[&x, &y])?;
    let class = sum.then_named("class", Dense::new(3))?;
    let age = sum.then_named("age", Dense::new(1))?;
    let model = Model::new(&[&a, &b], &[("class", &class), ("age", &age)])?;
    let names: Vec<_> = model.outputs().iter().map(|port| &port.name).collect();
    println!("outputs: {names:?}");
    Ok(())
}

fn own_model() -> Result<()> {
    use tfp::nn::layer::{Add, Composed, Dense, Layer, Node};
    use tfp::nn::{Activation, Model, Weights};

    let weights = Weights::new(&EagerContext::new()?, 7);
    let classifier = Classifier {
        hidden: vec![Dense::new(8)],
        class: Dense::new(3),
        has_skip: true,
    };

    #[derive(Model)]
    struct Classifier {
        hidden: Vec<Dense>,
        class: Dense,
        #[model(skip)]
        has_skip: bool,
    }

    impl Composed for Classifier {
        fn call(&self, x: &Node) -> Result<Node> {
            let mut y = x.clone();
            for layer in &self.hidden {
                y = layer.on(&y)?.then(Activation::Relu)?;
            }
            if self.has_skip {
                y = Node::join(Add, &[x, &y])?;
            }
            self.class.on(&y)
        }
    }

    let model = classifier.model(&[&Node::input(&weights, "x", &[8])?])?;
    println!("weights: {}", model.variables()[0].name());
    Ok(())
}

fn own_function() -> Result<()> {
    use tfp::nn::layer::{Dense, Function, Layer, Sequential};
    use tfp::nn::{Constraint, Weights};
    use tfp::ops;

    let weights = Weights::new(&EagerContext::new()?, 7);
    let swish = Function::new("swish", |cx, x| ops::mul(cx, x, ops::sigmoid(cx, x)?));
    let dense = Dense::new(4).constrained("kernel", Constraint::max_norm(2.0));
    let model = Sequential::new(&weights, &[8], &[&dense, &swish])?;
    println!("from [8] to {:?}", model.output_shape());
    Ok(())
}

fn half_precision() -> Result<()> {
    use tfp::nn::layer::{Dense, Layer, Sequential};
    use tfp::nn::optimizer::Adam;
    use tfp::nn::training::{Plan, Trainer};
    use tfp::nn::{Activation, Loss, Policy, Weights};

    let weights = Weights::new(&EagerContext::new()?, 7).policy(Policy::MixedFloat16);
    let hidden = Dense::new(16).activation(Activation::Relu);
    let logits = Dense::new(3).policy(Policy::Float32);
    let model = Sequential::new(&weights, &[8], &[&hidden, &logits])?;

    let mut trainer = Trainer::new(model, Plan::new(Loss::MeanSquaredError, Adam::default()))?;
    trainer.train_on(
        &Tensor::from_array([[0.5_f32; 8]])?,
        &Tensor::from_array([[1.0_f32, 0.0, 0.0]])?,
    )?;
    println!("loss scale: {}", trainer.loss_scale().unwrap_or(1.0));
    Ok(())
}

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("tfp_tour_{}", std::process::id()));
    graph()?;
    eager()?;
    tape()?;
    train(&folder)?;
    restore(&folder)?;
    model(&folder)?;
    two_inputs()?;
    own_model()?;
    own_function()?;
    half_precision()?;
    // What is left behind is small, and in the folder for temporary files.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}
