//! `TfpFusedMatMul`, an op that the plug-in defines: `activation(a * b + bias)`.

use crate::base::adapt::{check_rank, variants};
use crate::base::def::{AttrKind, Attrs, Call, KernelDef};
use crate::base::error::{Error, Result};
use crate::base::parallel::{Parallel, Serial};
use crate::base::scratch;
use crate::frame::map::map_in_place;
use crate::gemm::{Activation, Gemm};
use crate::ops::elementwise::leaky_relu::LeakyRelu;
use crate::ops::elementwise::unary::{Elu, Selu, Sigmoid, Softplus, Softsign, Tanh};
use crate::ops::matrix::mat_mul::{self, dense};

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    attrs: &[
        ("transpose_a", AttrKind::Bool),
        ("transpose_b", AttrKind::Bool),
        ("activation", AttrKind::String),
        ("alpha", AttrKind::Float),
    ],
    outputs: |inputs, sink| (mat_mul::DEF.outputs)(inputs, sink),
    scratch: |inputs| (mat_mul::DEF.scratch)(inputs),
    run,
    ..KernelDef::of("TfpFusedMatMul")
};

/// An activation that works on the rows of a result as they are made.
macro_rules! by_row {
    ($op:expr) => {
        Ok(Activation::Map(|row| map_in_place($op, row, &Serial)))
    };
}

/// What follows the sum of a fused op.
pub(crate) struct After {
    /// What the sum's own loop does.
    pub(crate) activation: Activation,
    /// What comes after that.
    leaky: Option<LeakyRelu>,
}

impl After {
    /// What the attributes `activation` and `alpha` say.
    ///
    /// # Errors
    /// As [`activation`].
    pub(crate) fn read(attrs: &dyn Attrs) -> Result<Self> {
        Ok(match attrs.string("activation")? {
            "LeakyRelu" => Self {
                activation: Activation::None,
                leaky: Some(LeakyRelu {
                    alpha: attrs.float("alpha")?,
                }),
            },
            name => Self {
                activation: activation(name)?,
                leaky: None,
            },
        })
    }

    /// Applies what the sum's own loop does not.
    pub(crate) fn finish(&self, out: &mut [f32], parallel: &dyn Parallel) {
        if let Some(leaky) = self.leaky {
            map_in_place(leaky, out, parallel);
        }
    }
}

/// The activation of that name: empty for none, else an op of TensorFlow.
///
/// # Errors
/// [`Error::Value`] for a name without one.
pub(crate) fn activation(name: &str) -> Result<Activation> {
    match name {
        "" => Ok(Activation::None),
        "Elu" => by_row!(Elu),
        "Relu" => Ok(Activation::RELU),
        "Relu6" => Ok(Activation::RELU6),
        "Selu" => by_row!(Selu),
        "Sigmoid" => by_row!(Sigmoid),
        "Softplus" => by_row!(Softplus),
        "Softsign" => by_row!(Softsign),
        "Tanh" => by_row!(Tanh),
        _ => Err(Error::Value {
            argument: "activation",
            expected: "nothing, Elu, Relu, Relu6, Selu, Sigmoid, Softplus, Softsign or Tanh",
        }),
    }
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let attrs = call.inputs.attrs;
    let (ta, tb) = (attrs.boolean("transpose_a")?, attrs.boolean("transpose_b")?);
    let after = After::read(attrs)?;
    let a = call.inputs.get(0, "a")?;
    let b = call.inputs.get(1, "b")?.f32("b")?;
    let bias = call.inputs.get(2, "bias")?;
    check_rank(bias.shape(), "bias", 1, "1")?;
    let bias = bias.f32("bias")?;
    let output = scratch::first_output(call.outputs)?;
    // The output's shape has been derived from both matrices, so that all ranks are 2.
    let (m, n) = (output.shape()[0], output.shape()[1]);
    let k = a.shape()[usize::from(!ta)];
    let a = dense(a.f32("a")?, m, k, ta);
    let gemm = Gemm {
        bias: Some(bias),
        activation: after.activation,
        ..Gemm::new((m, n, k), a, dense(b, k, n, tb))
    };
    let scratch = scratch::f32s(call.scratch);
    let output = output.f32_mut("product")?;
    gemm.run(output, n, scratch, call.parallel)?;
    after.finish(output, call.parallel);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Value, call, numbers};

    #[test]
    fn bias_and_activation_follow_the_product() {
        for (m, k, n) in [(1, 3, 5), (33, 40, 20), (3, 0, 4), (0, 3, 4), (5, 7, 1)] {
            for (name, low, high) in [
                ("", f32::NEG_INFINITY, f32::INFINITY),
                ("Relu", 0.0, f32::INFINITY),
                ("Relu6", 0.0, 6.0),
                ("LeakyRelu", f32::NEG_INFINITY, f32::INFINITY),
            ] {
                let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
                let bias: Vec<f32> = numbers(n, 3).iter().map(|x| x * 8.0).collect();
                let attrs = [
                    ("transpose_a", Value::Bool(false)),
                    ("transpose_b", Value::Bool(true)),
                    ("activation", Value::Text(name)),
                    ("alpha", Value::Float(0.25)),
                ];
                let inputs = [
                    (vec![m, k], a.clone()),
                    (vec![n, k], b.clone()),
                    (vec![n], bias.clone()),
                ];
                let found = call(&DEF, &attrs, &inputs).unwrap();
                assert_eq!(found[0].0, [m, n]);
                for (i, &found) in found[0].1.iter().enumerate() {
                    let (row, column) = (i / n, i % n);
                    let product = (0..k).map(|p| a[row * k + p] * b[column * k + p]);
                    let sum = product.sum::<f32>() + bias[column];
                    let exact = if name == "LeakyRelu" {
                        sum.max(0.25 * sum)
                    } else {
                        sum.clamp(low, high)
                    };
                    assert!((found - exact).abs() < 1e-5, "{found} {exact}");
                }
            }
        }
    }

    #[test]
    fn curved_activations_are_those_of_the_ops() {
        use crate::ops::elementwise::unary::{ELU, SELU, SIGMOID, SOFTPLUS, SOFTSIGN, TANH};
        for (m, k, n) in [(1, 3, 5), (33, 300, 20), (2, 0, 3), (70, 9, 600)] {
            let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
            let inputs = [(vec![m, k], a), (vec![k, n], b), (vec![n], numbers(n, 3))];
            let attrs = |name| {
                [
                    ("transpose_a", Value::Bool(false)),
                    ("transpose_b", Value::Bool(false)),
                    ("activation", Value::Text(name)),
                ]
            };
            let plain = call(&DEF, &attrs(""), &inputs).unwrap();
            for def in [&ELU, &SELU, &SIGMOID, &SOFTPLUS, &SOFTSIGN, &TANH] {
                let found = call(&DEF, &attrs(def.op), &inputs).unwrap();
                let expected = call(def, &[], &plain).unwrap();
                assert_eq!(found, expected, "{}", def.op);
            }
        }
    }

    #[test]
    fn a_bias_of_another_length_is_refused() {
        let attrs = [
            ("transpose_a", Value::Bool(false)),
            ("transpose_b", Value::Bool(false)),
            ("activation", Value::Text("")),
        ];
        let inputs = |bias| {
            [
                (vec![2, 3], numbers(6, 1)),
                (vec![3, 4], numbers(12, 2)),
                (vec![bias], numbers(bias, 3)),
            ]
        };
        assert!(call(&DEF, &attrs, &inputs(4)).is_ok());
        assert!(call(&DEF, &attrs, &inputs(3)).is_err());
        assert!(activation("Cos").is_err());
    }
}
