//! Layers around others.

use tfp_core::{Error, Result};

use super::described::{KerasLayer, Places};
use super::{Built, Layer, wrong_input};
use crate::nn::Weights;
use crate::ops;

/// Describes a layer around another one, whose variables are first.
pub(super) fn wrapping(class: &str, layer: KerasLayer) -> Result<KerasLayer> {
    if layer.outer.is_some() || !layer.copies().is_empty() {
        return Err(Error::argument(format!(
            "{class} over {}, or over a layer of a file, can't be described",
            layer.class
        )));
    }
    let place = |place: &String| format!("layer/{place}");
    let places = match &layer.places {
        Places::Within(within) => Places::Within(place(within)),
        Places::Listed(places) => Places::Listed(places.iter().map(place).collect()),
    };
    Ok(KerasLayer {
        places,
        ..KerasLayer::new(class).set("layer", layer.object("keras.layers"))
    })
}

/// A layer for each step of (steps, ...).
#[derive(Clone, Debug, PartialEq)]
pub struct TimeDistributed<L> {
    /// The layer, which takes one step.
    pub layer: L,
}

impl<L: Layer> Layer for TimeDistributed<L> {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let inner: Vec<&[i64]> = inputs
            .iter()
            .map(|shape| shape.get(1..).unwrap_or(&[]))
            .collect();
        let layer = self.layer.keras(&inner)?;
        if layer.model.is_some() {
            return KerasLayer::new("TimeDistributed").around(layer);
        }
        wrapping("TimeDistributed", layer)
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let [steps, step @ ..] = input else {
            return Err(wrong_input("TimeDistributed", "steps", input));
        };
        let known = |sizes: &[i64]| sizes.iter().all(|&size| size >= 0);
        let weights = weights.layer("time_distributed");
        let Built { forward, output } = self.layer.build(&weights, step)?;
        if !known(step) || !known(&output) {
            return Err(wrong_input(
                "TimeDistributed",
                "steps of known sizes",
                input,
            ));
        }
        let whole = [&[*steps], output.as_slice()].concat();
        let step = [&[-1], step].concat();
        let steps = *steps;
        Built::new(whole.clone(), move |pass, x| {
            let cx = pass.context();
            let mask = pass.mask();
            let outer = match steps {
                // What follows may need their number, which a shape of known sizes gives it.
                0.. => None,
                _ => {
                    let shape = ops::shape(cx, x, ops::ShapeOptions::default())?;
                    Some(ops::slice(cx, shape, [0], [2])?)
                }
            };
            // All steps of all samples are samples of the layer.
            pass.enter(vec![None]);
            let y = forward(pass, &ops::reshape(cx, x, step.as_slice())?)?;
            pass.pass_mask(mask);
            match outer {
                None => ops::reshape(cx, y, [&[-1], whole.as_slice()].concat().as_slice()),
                Some(outer) => {
                    let tail: Vec<i32> = whole[1..].iter().map(|&size| size as i32).collect();
                    let shape = ops::concat_v2(cx, (outer, tail.as_slice()), 0)?;
                    ops::reshape(cx, y, shape)
                }
            }
        })
    }
}
