//! Constraints, penalties, first values and functions of the caller's own.

use tfp::nn::layer::{Dense, Function, Layer, Sequential};
use tfp::nn::optimizer::Sgd;
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{
    Activation, ConstraintFunction, InitializerFunction, Loss, Regularizer, RegularizerFunction,
    Weights,
};
use tfp::{AnyContext, AnyValue, Context, EagerContext, Graph, Mode, Result, Tensor, ops};

/// Elements are at most a number in magnitude.
#[derive(Debug)]
struct Within(f32);

impl ConstraintFunction for Within {
    fn constrain(&self, cx: &AnyContext, w: &AnyValue) -> Result<AnyValue> {
        ops::minimum(cx, ops::maximum(cx, w, -self.0)?, self.0)
    }
}

/// What `Regularizer::l2` computes.
#[derive(Debug)]
struct Squares(f32);

impl RegularizerFunction for Squares {
    fn penalty(&self, cx: &AnyContext, w: &AnyValue) -> Result<AnyValue> {
        let flat = ops::reshape(cx, ops::square(cx, w)?, [-1])?;
        ops::mul(cx, ops::sum(cx, flat, 0, Default::default())?, self.0)
    }
}

/// Numbers that count.
#[derive(Debug)]
struct Counting {
    first: f32,
    is_short: bool,
}

impl InitializerFunction for Counting {
    fn first(&self, cx: &AnyContext, shape: &[i64], _: u32) -> Result<AnyValue> {
        let count = shape.iter().product::<i64>() - i64::from(self.is_short);
        let values: Vec<f32> = (0..count).map(|at| self.first + at as f32).collect();
        let dims = if self.is_short {
            vec![count]
        } else {
            shape.to_vec()
        };
        cx.constant(&Tensor::from_vec(values, &dims)?)
    }
}

fn batch() -> Result<(Tensor, Tensor)> {
    let x = (0..12).map(|at| (at as f32 * 0.7).sin()).collect();
    let truth = (0..8).map(|at| at as f32).collect();
    Ok((
        Tensor::from_vec(x, &[4, 3])?,
        Tensor::from_vec(truth, &[4, 2])?,
    ))
}

/// The losses of a training, and the variables after it.
type Trained = (Vec<f32>, Vec<Tensor>);

/// Trains layers for three steps.
fn trained(place: &impl Mode, layers: &[&dyn Layer]) -> Result<Trained> {
    let model = Sequential::new(&Weights::new(place, 3), &[3], layers)?;
    let plan = Plan::new(Loss::MeanSquaredError, Sgd::default()).rate(0.1);
    let mut trainer = Trainer::new(model, plan)?;
    let (x, truth) = batch()?;
    let losses = (0..3).map(|_| trainer.train_on(&x, &truth));
    Ok((losses.collect::<Result<_>>()?, trainer.values()?))
}

/// Checks trainings in both modes.
fn both(check: impl Fn(&dyn Fn(&[&dyn Layer]) -> Result<Trained>) -> Result<()>) -> Result<()> {
    let eager = EagerContext::new()?;
    check(&|layers| trained(&eager, layers))?;
    let graph = Graph::new()?;
    check(&|layers| trained(&graph.scope(), layers))
}

#[test]
fn a_constraint_of_ones_own_holds_after_each_step() -> Result<()> {
    both(|train| {
        let (_, free) = train(&[&Dense::new(2)])?;
        let free = free[1].as_slice::<f32>()?;
        assert!(free.iter().any(|value| value.abs() > 0.25), "{free:?}");
        let layer = Dense::new(2).constrained("bias", Within(0.25));
        let (_, kept) = train(&[&layer])?;
        let kept = kept[1].as_slice::<f32>()?;
        assert!(kept.iter().all(|value| value.abs() <= 0.25), "{kept:?}");
        assert!(kept.contains(&0.25), "{kept:?}");
        Ok(())
    })
}

#[test]
fn a_penalty_of_ones_own_is_part_of_the_loss() -> Result<()> {
    both(|train| {
        let (own, _) = train(&[&Dense::new(2).regularized("kernel", Squares(0.3))])?;
        let (keras, _) = train(&[&Dense::new(2).regularized("kernel", Regularizer::l2(0.3))])?;
        let (none, _) = train(&[&Dense::new(2)])?;
        for ((own, keras), none) in own.iter().zip(&keras).zip(&none) {
            assert!((own - keras).abs() <= 1e-6 * keras.abs(), "{own} {keras}");
            assert!((own - none).abs() > 1e-3, "{own} {none}");
        }
        Ok(())
    })
}

#[test]
fn first_values_of_ones_own_are_the_variables() -> Result<()> {
    let counting = |is_short| Counting {
        first: 2.0,
        is_short,
    };
    let eager = EagerContext::new()?;
    let layer = Dense::new(2).initialized("kernel", counting(false));
    let weights = Weights::new(&eager, 0);
    Sequential::new(&weights, &[3], &[&layer])?;
    let kernel = weights.variables()[0].read(&eager.any())?;
    let kernel = kernel.handle()?.to_tensor()?;
    assert_eq!(kernel.as_slice::<f32>()?, [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);

    let short = Dense::new(2).initialized("kernel", counting(true));
    let error = Sequential::new(&weights, &[3], &[&short]).err();
    let said = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(
        said.contains("'dense_1/kernel' is float32 of shape [3, 2]"),
        "{said}"
    );
    assert!(
        said.contains("its initializer gives float32 of shape [5]"),
        "{said}"
    );
    Ok(())
}

#[test]
fn a_function_is_a_layer() -> Result<()> {
    let own = Function::new("swish", |cx, x| ops::mul(cx, x, ops::sigmoid(cx, x)?));
    both(|train| {
        let (own, _) = train(&[&Dense::new(2), &own])?;
        let (keras, _) = train(&[&Dense::new(2), &Activation::Silu])?;
        assert_eq!(own, keras);
        Ok(())
    })?;
    let eager = EagerContext::new()?;
    let weights = Weights::new(&eager, 0);
    let halves = Function::new("halves", |cx, x| ops::reshape(cx, x, [-1, 2, 3])).output(&[2, 3]);
    let model = Sequential::new(&weights, &[6], &[&halves])?;
    assert_eq!(model.output_shape(), [2, 3]);
    Ok(())
}

#[test]
fn keras_files_lack_what_keras_lacks() -> Result<()> {
    let eager = EagerContext::new()?;
    for (layer, expected) in [
        (
            Box::new(Dense::new(2).constrained("bias", Within(0.5))) as Box<dyn Layer>,
            "Keras has no constraint Within(0.5)",
        ),
        (
            Box::new(Dense::new(2).regularized("bias", Squares(0.5))),
            "Keras has no regularizer Squares(0.5)",
        ),
        (
            Box::new(Function::new("swish", |_, x| Ok(x.clone()))),
            "Keras has no such layer",
        ),
    ] {
        let model = Sequential::new(&Weights::new(&eager, 0), &[3], &[&layer])?;
        let path = std::env::temp_dir().join(format!("own_{}.keras", std::process::id()));
        let error = tfp::nn::Model::from(model).save_keras(&path).err();
        let said = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains(expected), "{said}");
        assert!(!path.exists());
    }
    Ok(())
}
