//! Attention.

use tfp_core::{Error, Result};

use super::described::{Arguments, KerasLayer};
use super::{Built, BuiltMany, Layer, Pass, check_sizes, wrong_input};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::functional::{self as f, MultiHead};
use crate::nn::{Initializer, Weights};
use crate::ops;
use crate::variable::Variable;

/// A kernel and perhaps a bias.
type Pair = (Variable, Option<Variable>);

fn read(cx: &AnyContext, (kernel, bias): &Pair) -> Result<(AnyValue, Option<AnyValue>)> {
    let bias = bias.as_ref().map(|bias| bias.read(cx)).transpose()?;
    Ok((kernel.read(cx)?, bias))
}

/// The mask of what each query sees, (batch, n, m) or (1, n, m), of the masks of queries, values and
/// keys, and of time.
fn sight(
    pass: &Pass<'_>,
    shapes: [&AnyValue; 2],
    is_causal: bool,
    masks: [Option<AnyValue>; 3],
) -> Result<Option<AnyValue>> {
    let cx = pass.context();
    let [queries, values, keys] = masks;
    let mut found: Option<AnyValue> = None;
    let mut add = |mask: AnyValue| -> Result<()> {
        found = Some(match found.take() {
            Some(found) => ops::logical_and(cx, found, mask)?,
            None => mask,
        });
        Ok(())
    };
    if is_causal {
        let count = |x: &AnyValue| -> Result<AnyValue> {
            let shape = ops::shape(cx, x, ops::ShapeOptions::default())?;
            let size = ops::slice(cx, shape, [1], [1])?;
            ops::reshape(cx, size, [0_i32; 0])
        };
        let [rows, columns] = shapes;
        let rows = ops::range(cx, 0_i32, count(rows)?, 1_i32)?;
        let columns = ops::range(cx, 0_i32, count(columns)?, 1_i32)?;
        let rows = ops::expand_dims(cx, rows, 1)?;
        let past = ops::greater_equal(cx, rows, columns)?;
        add(ops::expand_dims(cx, past, 0)?)?;
    }
    if let Some(mask) = queries {
        add(ops::expand_dims(cx, mask, -1)?)?;
    }
    for mask in [values, keys].into_iter().flatten() {
        add(ops::expand_dims(cx, mask, -2)?)?;
    }
    Ok(found)
}

/// Multi-head attention (Vaswani et al., arXiv:1706.03762) over (steps, inputs): of one node to itself,
/// or of the first, the queries, to a second one, the values, and perhaps other keys, the third one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultiHeadAttention {
    /// How many heads.
    pub heads: i64,
    /// The width of the queries and keys of a head.
    pub width: i64,
    /// The width of the values of a head; none for that of the keys.
    pub value_width: Option<i64>,
    /// The width of the output; none for that of the queries.
    pub output: Option<i64>,
    /// Whether a step sees only those up to itself.
    pub causal: bool,
    /// Whether something is added to queries, keys, values and output.
    pub use_bias: bool,
    /// The share of what is seen that training drops.
    pub dropout: f32,
}

impl MultiHeadAttention {
    /// A layer with Keras' defaults.
    #[must_use]
    pub fn new(heads: i64, width: i64) -> Self {
        Self {
            heads,
            width,
            value_width: None,
            output: None,
            causal: false,
            use_bias: true,
            dropout: 0.0,
        }
    }

    /// Lets a step see only those up to itself.
    #[must_use]
    pub fn causal(self) -> Self {
        Self {
            causal: true,
            ..self
        }
    }
}

/// Queries, values and keys of one to three inputs.
fn three<T: Clone>(layer: &str, inputs: &[T]) -> Result<[T; 3]> {
    Ok(match inputs {
        [x] => [x.clone(), x.clone(), x.clone()],
        [queries, values] => [queries.clone(), values.clone(), values.clone()],
        [queries, values, keys] => [queries.clone(), values.clone(), keys.clone()],
        _ => {
            return Err(Error::argument(format!(
                "{layer} takes queries, values and keys, found {} inputs",
                inputs.len()
            )));
        }
    })
}

/// The steps and widths of sequences.
fn sequences(layer: &str, shapes: [&[i64]; 3]) -> Result<[(i64, i64); 3]> {
    let mut found = [(0, 0); 3];
    for (found, shape) in found.iter_mut().zip(shapes) {
        *found = match *shape {
            [steps, width] if width > 0 => (steps, width),
            _ => return Err(wrong_input(layer, "(steps, inputs)", shape)),
        };
    }
    let [_, (values, _), (keys, _)] = found;
    if values != keys && values >= 0 && keys >= 0 {
        return Err(Error::argument(format!(
            "{layer}: {values} values for {keys} keys"
        )));
    }
    Ok(found)
}

/// A layer of one input as one of several.
fn single(layer: &dyn Layer, weights: &Weights, input: &[i64]) -> Result<Built> {
    let BuiltMany { forward, outputs } = layer.build_many(weights, &[input])?;
    let output = outputs.into_iter().next().unwrap_or_default();
    Built::new(output, move |pass, x| {
        let y = forward(pass, std::slice::from_ref(x))?.into_iter().next();
        y.ok_or_else(|| Error::argument("attention without an output"))
    })
}

impl Layer for MultiHeadAttention {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("MultiHeadAttention")
            .set("num_heads", self.heads)
            .set("key_dim", self.width)
            .set("value_dim", self.value_width)
            .set("output_shape", self.output)
            .set("use_bias", self.use_bias)
            .set("dropout", self.dropout)
            .listed(dense_places("", self.use_bias))
            .call(Arguments::Attend {
                causal: self.causal,
                list: false,
            }))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        single(self, weights, input)
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        let layer = "MultiHeadAttention";
        let shapes = three(layer, inputs)?;
        let [(steps, queries), (_, values), (_, keys)] = sequences(layer, shapes)?;
        let Self {
            heads,
            width,
            causal,
            use_bias,
            dropout,
            ..
        } = *self;
        check_sizes(layer, "heads and width", &[heads, width])?;
        let value_width = self.value_width.unwrap_or(width);
        let outputs = self.output.unwrap_or(queries);
        check_sizes(
            layer,
            "widths of values and output",
            &[value_width, outputs],
        )?;
        if !(0.0..1.0).contains(&dropout) {
            return Err(Error::argument(format!(
                "{layer}: the dropout is {dropout}, expected 0 or more and below 1"
            )));
        }
        let weights = weights.layer("multi_head_attention");
        let pair = |name: &str, kernel: [i64; 3], bias: &[i64]| -> Result<Pair> {
            let weights = weights.layer(name);
            let kernel = weights.trainable("kernel", &kernel, Initializer::GLOROT_UNIFORM)?;
            let bias = use_bias.then(|| weights.trainable("bias", bias, Initializer::Zeros));
            Ok((kernel, bias.transpose()?))
        };
        let query = pair("query", [queries, heads, width], &[heads, width])?;
        let key = pair("key", [keys, heads, width], &[heads, width])?;
        let value = pair("value", [values, heads, value_width], &[heads, value_width])?;
        let output = pair(
            "attention_output",
            [heads, value_width, outputs],
            &[outputs],
        )?;
        let seed = weights.next_seed();
        BuiltMany::new(vec![vec![steps, outputs]], move |pass, inputs| {
            let cx = pass.context();
            let [queries, values, keys] = three(layer, inputs)?;
            let masks = match inputs.len() {
                1 => [pass.mask(), pass.mask(), None],
                2 => [pass.mask(), pass.mask_of(1), None],
                _ => [pass.mask(), pass.mask_of(1), pass.mask_of(2)],
            };
            pass.pass_mask(pass.mask());
            let mask = sight(pass, [&queries, &values], causal, masks)?;
            let mask = mask.map(|mask| ops::expand_dims(cx, mask, 1)).transpose()?;
            let weights = MultiHead {
                query: read(cx, &query)?,
                key: read(cx, &key)?,
                value: read(cx, &value)?,
                output: read(cx, &output)?,
            };
            let drop = |shares: AnyValue| match pass.is_training() && dropout > 0.0 {
                true => f::dropout(cx, &shares, dropout, &pass.seed(seed)?),
                false => Ok(shares),
            };
            let y = weights.attend_to(cx, &queries, [&values, &keys], mask.as_ref(), drop)?;
            Ok(vec![y])
        })
    }
}

/// Attention whose heads of queries share those of keys and values (Ainslie et al., arXiv:2305.13245),
/// over (steps, inputs), called as [`MultiHeadAttention`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupedQueryAttention {
    /// The width of a head.
    pub width: i64,
    /// How many heads of queries.
    pub query_heads: i64,
    /// How many heads of keys and values, which divide those of the queries.
    pub key_heads: i64,
    /// Whether a step sees only those up to itself.
    pub causal: bool,
    /// Whether something is added to queries, keys, values and output.
    pub use_bias: bool,
}

impl Layer for GroupedQueryAttention {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("GroupQueryAttention")
            .set("head_dim", self.width)
            .set("num_query_heads", self.query_heads)
            .set("num_key_value_heads", self.key_heads)
            .set("use_bias", self.use_bias)
            .listed(dense_places("_", self.use_bias))
            .call(Arguments::Attend {
                causal: self.causal,
                list: false,
            }))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        single(self, weights, input)
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        let layer = "GroupedQueryAttention";
        let shapes = three(layer, inputs)?;
        let [(steps, queries), (_, values), (_, keys)] = sequences(layer, shapes)?;
        let Self {
            width,
            query_heads,
            key_heads,
            causal,
            use_bias,
        } = *self;
        check_sizes(layer, "width and heads", &[width, query_heads, key_heads])?;
        if query_heads % key_heads != 0 {
            return Err(Error::argument(format!(
                "{layer}: {key_heads} heads of keys don't divide {query_heads} heads of queries"
            )));
        }
        let weights = weights.layer("grouped_query_attention");
        let pair = |name: &str, kernel: [i64; 3], bias: &[i64]| -> Result<Pair> {
            let weights = weights.layer(name);
            let kernel = weights.trainable("kernel", &kernel, Initializer::GLOROT_UNIFORM)?;
            let bias = use_bias.then(|| weights.trainable("bias", bias, Initializer::Zeros));
            Ok((kernel, bias.transpose()?))
        };
        let query = pair(
            "query",
            [queries, query_heads, width],
            &[query_heads, width],
        )?;
        let key = pair("key", [keys, key_heads, width], &[key_heads, width])?;
        let value = pair("value", [values, key_heads, width], &[key_heads, width])?;
        let output = pair(
            "attention_output",
            [query_heads, width, queries],
            &[queries],
        )?;
        let times = query_heads / key_heads;
        BuiltMany::new(vec![vec![steps, queries]], move |pass, inputs| {
            let cx = pass.context();
            let [queries, values, keys] = three(layer, inputs)?;
            let masks = match inputs.len() {
                1 => [pass.mask(), pass.mask(), None],
                2 => [pass.mask(), pass.mask_of(1), None],
                _ => [pass.mask(), pass.mask_of(1), pass.mask_of(2)],
            };
            pass.pass_mask(pass.mask());
            let mask = sight(pass, [&queries, &values], causal, masks)?;
            let mask = mask.map(|mask| ops::expand_dims(cx, mask, 1)).transpose()?;
            // Each head of keys and values once for each of its heads of queries, one after the other.
            let repeated = |pair: &Pair| -> Result<(AnyValue, Option<AnyValue>)> {
                let (kernel, bias) = read(cx, pair)?;
                let repeat = |x: AnyValue, axis: i32, rank: usize| -> Result<AnyValue> {
                    let mut multiples = vec![1_i32; rank + 1];
                    multiples[axis as usize + 1] = times as i32;
                    let wide = ops::expand_dims(cx, &x, axis + 1)?;
                    let wide = ops::tile(cx, wide, multiples.as_slice())?;
                    let mut factors = vec![1_i32; rank];
                    factors[axis as usize] = times as i32;
                    let shape = ops::shape(cx, x, ops::ShapeOptions::default())?;
                    let shape = ops::mul(cx, shape, factors.as_slice())?;
                    ops::reshape(cx, wide, shape)
                };
                let bias = bias.map(|bias| repeat(bias, 0, 2)).transpose()?;
                Ok((repeat(kernel, 1, 3)?, bias))
            };
            let weights = MultiHead {
                query: read(cx, &query)?,
                key: repeated(&key)?,
                value: repeated(&value)?,
                output: read(cx, &output)?,
            };
            let y = weights.attend_to(cx, &queries, [&values, &keys], mask.as_ref(), Ok)?;
            Ok(vec![y])
        })
    }
}

/// How a query and a key become a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    /// Their product (Luong et al., arXiv:1508.04025), times a number that is learned where there is a
    /// scale.
    Dot,
    /// The sum of the hyperbolic tangents of their scaled sum, times a number that is learned.
    Concat,
    /// The sum of the hyperbolic tangents of their sum (Bahdanau et al., arXiv:1409.0473), each times a
    /// number that is learned where there is a scale.
    Additive,
}

/// Attention of queries (n, width) to values (m, any) and perhaps other keys (m, width), which are two
/// or three nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// How a query and a key become a score.
    pub score: Score,
    /// Whether a scale is learned.
    pub use_scale: bool,
    /// Whether a step sees only those up to itself.
    pub causal: bool,
    /// The share of what is seen that training drops.
    pub dropout: f32,
}

impl Layer for Attention {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let layer = match self.score {
            Score::Additive => KerasLayer::new("AdditiveAttention"),
            Score::Dot => KerasLayer::new("Attention").set("score_mode", "dot"),
            Score::Concat => KerasLayer::new("Attention").set("score_mode", "concat"),
        };
        Ok(layer
            .set("use_scale", self.use_scale)
            .set("dropout", self.dropout)
            .call(Arguments::Attend {
                causal: self.causal,
                list: true,
            }))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        Err(wrong_input("Attention", "queries and values", input))
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        let layer = "Attention";
        if inputs.len() < 2 {
            return Err(Error::argument(
                "Attention takes queries and values, found one input",
            ));
        }
        let shapes = three(layer, inputs)?;
        let [(steps, queries), (_, values), (_, keys)] = sequences(layer, shapes)?;
        if queries != keys {
            return Err(Error::argument(format!(
                "{layer}: queries of width {queries} for keys of width {keys}"
            )));
        }
        let Self {
            score,
            use_scale,
            causal,
            dropout,
        } = *self;
        let place = weights.layer(match score {
            Score::Additive => "additive_attention",
            Score::Dot | Score::Concat => "attention",
        });
        let (shape, first): (&[i64], _) = match score {
            Score::Additive => (&[queries], Initializer::GLOROT_UNIFORM),
            Score::Dot | Score::Concat => (&[], Initializer::Ones),
        };
        let scale = use_scale
            .then(|| place.trainable("scale", shape, first))
            .transpose()?;
        let weight = (score == Score::Concat)
            .then(|| place.trainable("concat_score_weight", &[], Initializer::Ones))
            .transpose()?;
        let seed = place.next_seed();
        BuiltMany::new(vec![vec![steps, values]], move |pass, inputs| {
            let cx = pass.context();
            let [queries, values, keys] = three(layer, inputs)?;
            let read = |one: &Option<Variable>| one.as_ref().map(|one| one.read(cx)).transpose();
            let (scale, weight) = (read(&scale)?, read(&weight)?);
            let mut scores = match score {
                Score::Dot => {
                    let options = ops::BatchMatMulV2Options {
                        adj_y: Some(true),
                        ..Default::default()
                    };
                    let scores = ops::batch_mat_mul_v2(cx, &queries, &keys, options)?;
                    match &scale {
                        Some(scale) => ops::mul(cx, scores, scale)?,
                        None => scores,
                    }
                }
                Score::Concat | Score::Additive => {
                    let rows = ops::expand_dims(cx, &queries, -2)?;
                    let columns = ops::expand_dims(cx, &keys, -3)?;
                    let mut sum = ops::add_v2(cx, rows, columns)?;
                    if let (Score::Concat, Some(scale)) = (score, &scale) {
                        sum = ops::mul(cx, sum, scale)?;
                    }
                    let mut curve = ops::tanh(cx, sum)?;
                    if let (Score::Additive, Some(scale)) = (score, &scale) {
                        curve = ops::mul(cx, curve, scale)?;
                    }
                    let scores = ops::sum(cx, curve, -1, ops::SumOptions::default())?;
                    match &weight {
                        Some(weight) => ops::mul(cx, scores, weight)?,
                        None => scores,
                    }
                }
            };
            let seen = [None, pass.mask_of(1), None];
            if let Some(seen) = sight(pass, [&queries, &values], causal, seen)? {
                // What Keras takes away from what is hidden.
                let far = ops::sub(cx, &scores, 1e9_f32)?;
                let shape = ops::shape(cx, &scores, ops::ShapeOptions::default())?;
                let seen = ops::broadcast_to(cx, seen, shape)?;
                scores = ops::select_v2(cx, seen, scores, far)?;
            }
            let mut shares = ops::softmax(cx, scores)?;
            if pass.is_training() && dropout > 0.0 {
                shares = f::dropout(cx, &shares, dropout, &pass.seed(seed)?)?;
            }
            let options = ops::BatchMatMulV2Options::default();
            let mut y = ops::batch_mat_mul_v2(cx, shares, values, options)?;
            if let Some(mask) = pass.mask() {
                let kept = ops::expand_dims(cx, &mask, -1)?;
                y = ops::select_v2(cx, kept, &y, ops::zeros_like(cx, &y)?)?;
                pass.pass_mask(Some(mask));
            }
            Ok(vec![y])
        })
    }
}

/// The places of the variables of four dense layers.
fn dense_places(prefix: &str, use_bias: bool) -> Vec<String> {
    let count = 1 + usize::from(use_bias);
    let places = ["query", "key", "value", "output"].into_iter();
    places
        .flat_map(|name| (0..count).map(move |at| format!("{prefix}{name}_dense/vars/{at}")))
        .collect()
}
