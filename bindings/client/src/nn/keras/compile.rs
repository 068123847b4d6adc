//! What Keras' files say of a training: its optimizer, losses and metrics.

use std::collections::HashMap;
use std::path::Path;

use tfp_core::{Result, Tensor};

use super::save::Saved;
use crate::files::write;
use crate::formats::json::Json;
use crate::nn::layer::described::object;
use crate::nn::optimizer::{Clip, KerasRule, Optimizer, Rule, Scaling, Schedule};
use crate::nn::training::Trainer;
use crate::nn::{Loss, Metric};

impl<R: Rule> Trainer<R> {
    /// Writes the model with its weights as a `.keras` file, as
    /// [`Model::save_keras`](crate::nn::Model::save_keras). If the rule, its schedule and all losses are Keras', Python
    /// gets a compiled model whose training goes on: with the optimizer's state, the learning rate, and
    /// those metrics that are Keras'. Otherwise the model is not compiled.
    ///
    /// # Errors
    /// As for [`Model::save_keras`](crate::nn::Model::save_keras), and what TensorFlow says.
    pub fn save_keras(&self, path: impl AsRef<Path>) -> Result<()> {
        let saved = Saved::of(self.model(), self.plan().input)?;
        let variables = self.model().variables();
        let names = variables.iter().map(|one| one.name().to_owned());
        let values: HashMap<String, Tensor> = names.zip(self.values()?).collect();
        let mut config = saved.config.clone();
        let mut more = Vec::new();
        if let Some(rule) = self.plan().optimizer.rule.keras()
            && let Some(compiled) = self.compiled(&rule)
            && let Json::Object(members) = &mut config
        {
            members.push(("compile_config".to_owned(), compiled));
            let mut state = self.state(&saved, &rule)?;
            if let Some(scaling) = self.scaling() {
                // Keras has the optimizer inside of the one that scales, and its variables in both.
                for (index, value) in state.iter().enumerate() {
                    let path = format!("optimizer/inner_optimizer/vars/{index}");
                    more.push((path, value.share()?));
                }
                state.splice(0..0, scaling_state(scaling)?);
            }
            for (index, value) in state.into_iter().enumerate() {
                more.push((format!("optimizer/vars/{index}"), value));
            }
        }
        let weights = saved.weights(&values, &more)?;
        write(
            path.as_ref(),
            &super::archive(&config.to_string(), &weights)?,
        )
    }

    /// The configuration of a training; none for losses that Keras does not have.
    fn compiled(&self, rule: &KerasRule) -> Option<Json> {
        let outputs = self.model().outputs();
        let mut losses = vec![Json::Null; outputs.len()];
        let mut weights = vec![Json::Null; outputs.len()];
        let mut metrics = vec![Json::List(Vec::new()); outputs.len()];
        for (output, head) in self.trained() {
            *losses.get_mut(output)? = loss(head.loss.as_loss()?);
            *weights.get_mut(output)? = head.weight.into();
            let found = head.metrics.iter().filter_map(|one| one.as_metric());
            *metrics.get_mut(output)? = Json::List(found.filter_map(metric).collect());
        }
        let by_name = super::order::Graph::of(self.model()).outputs_by_layer;
        let several = |all: Vec<Json>| match by_name {
            true => Json::List(all),
            false => {
                let names = outputs.iter().map(|port| port.name.clone());
                Json::Object(names.zip(all).collect())
            }
        };
        let (losses, weights, metrics) = match outputs.len() {
            1 => (losses.pop()?, Json::Null, metrics.pop()?),
            _ => (several(losses), several(weights), several(metrics)),
        };
        let rate = self.has_rate().then(|| self.rate());
        let mut optimizer = optimizer(&self.plan().optimizer, rule, rate)?;
        if let Some(scaling) = self.scaling() {
            optimizer = scaled(scaling, optimizer);
        }
        Some(Json::object([
            ("optimizer", optimizer),
            ("loss", losses),
            ("loss_weights", weights),
            ("metrics", metrics),
            ("weighted_metrics", Json::Null),
            ("run_eagerly", false.into()),
            ("steps_per_execution", 1_i64.into()),
            ("jit_compile", false.into()),
        ]))
    }

    /// The optimizer's variables in Keras' order.
    fn state(&self, saved: &Saved, rule: &KerasRule) -> Result<Vec<Tensor>> {
        let mut state = vec![Tensor::scalar(self.iterations() as i64)?];
        if self.has_rate() {
            state.push(Tensor::scalar(self.rate())?);
        }
        let slots = self.slot_values()?;
        let trained = self.model().trainables();
        let places: HashMap<&str, usize> = trained
            .iter()
            .enumerate()
            .map(|(index, variable)| (variable.name(), index))
            .collect();
        let count = self.plan().optimizer.kept().len();
        let mut seen = std::collections::BTreeSet::new();
        let mut order = Vec::new();
        for (_, variable) in &saved.variables {
            if let Some(&place) = places.get(variable.name())
                && seen.insert(place)
            {
                order.push(place);
            }
        }
        // Keras has the averages before what the rule keeps.
        let average = self.plan().optimizer.average.map(|_| vec![count - 1]);
        for group in average.iter().chain(&rule.groups) {
            for &place in &order {
                for &slot in group.iter().filter(|slot| **slot < count) {
                    if let Some(value) = slots.get(place * count + slot) {
                        state.push(value.share()?);
                    }
                }
            }
        }
        Ok(state)
    }
}

/// The variables of the optimizer that scales the loss: two that every optimizer has, and its own.
fn scaling_state(scaling: &Scaling) -> Result<[Tensor; 4]> {
    Ok([
        Tensor::scalar(0_i64)?,
        Tensor::scalar(0.0_f32)?,
        Tensor::scalar(scaling.finite as i64)?,
        Tensor::scalar(scaling.scale)?,
    ])
}

/// An optimizer inside of one that scales the loss.
fn scaled(scaling: &Scaling, inner: Json) -> Json {
    let config = vec![
        ("name", "loss_scale_optimizer".into()),
        ("inner_optimizer", inner),
        ("initial_scale", scaling.initial.into()),
        ("dynamic_growth_steps", (scaling.growth_steps as i64).into()),
    ];
    named("keras.optimizers", "LossScaleOptimizer", config)
}

fn optimizer<R>(optimizer: &Optimizer<R>, rule: &KerasRule, rate: Option<f32>) -> Option<Json> {
    let clip = |limit: Option<f32>| Json::from(limit);
    let (value, norm, global) = match optimizer.clip {
        Clip::None => (None, None, None),
        Clip::Value(limit) => (Some(limit), None, None),
        Clip::Norm(limit) => (None, Some(limit), None),
        Clip::GlobalNorm(limit) => (None, None, Some(limit)),
    };
    let rate = match (rate, &optimizer.rate) {
        (Some(rate), _) => rate.into(),
        (None, schedule) => schedule_of(schedule)?,
    };
    let mut config = vec![
        ("learning_rate".to_owned(), rate),
        ("weight_decay".to_owned(), optimizer.decay.into()),
        ("clipvalue".to_owned(), clip(value)),
        ("clipnorm".to_owned(), clip(norm)),
        ("global_clipnorm".to_owned(), clip(global)),
    ];
    if let Some(average) = optimizer.average {
        let every = average.every.map(|every| every as i64);
        config.extend([
            ("use_ema".to_owned(), true.into()),
            ("ema_momentum".to_owned(), average.momentum.into()),
            ("ema_overwrite_frequency".to_owned(), every.into()),
        ]);
    }
    config.extend(rule.config.iter().cloned());
    Some(object("keras.optimizers", rule.class, config))
}

/// A schedule; none for a function, which a file can't hold.
fn schedule_of(schedule: &Schedule) -> Option<Json> {
    let steps = |steps: u64| Json::from(steps as i64);
    let (class, config): (&str, Vec<(&str, Json)>) = match schedule {
        Schedule::Constant(rate) => return Some((*rate).into()),
        Schedule::Function(_) => return None,
        Schedule::ExponentialDecay {
            initial,
            steps: over,
            rate,
            staircase,
        } => (
            "ExponentialDecay",
            vec![
                ("initial_learning_rate", (*initial).into()),
                ("decay_steps", steps(*over)),
                ("decay_rate", (*rate).into()),
                ("staircase", (*staircase).into()),
            ],
        ),
        Schedule::InverseTimeDecay {
            initial,
            steps: over,
            rate,
            staircase,
        } => (
            "InverseTimeDecay",
            vec![
                ("initial_learning_rate", (*initial).into()),
                ("decay_steps", steps(*over)),
                ("decay_rate", (*rate).into()),
                ("staircase", (*staircase).into()),
            ],
        ),
        Schedule::PolynomialDecay {
            initial,
            steps: over,
            end,
            power,
            cycle,
        } => (
            "PolynomialDecay",
            vec![
                ("initial_learning_rate", (*initial).into()),
                ("decay_steps", steps(*over)),
                ("end_learning_rate", (*end).into()),
                ("power", (*power).into()),
                ("cycle", (*cycle).into()),
            ],
        ),
        Schedule::PiecewiseConstant { boundaries, values } => {
            let boundaries = boundaries.iter().map(|&one| steps(one)).collect();
            let values = values.iter().map(|&one| one.into()).collect();
            (
                "PiecewiseConstantDecay",
                vec![
                    ("boundaries", Json::List(boundaries)),
                    ("values", Json::List(values)),
                ],
            )
        }
        Schedule::CosineDecay {
            initial,
            steps: over,
            alpha,
            warmup,
        } => (
            "CosineDecay",
            vec![
                ("initial_learning_rate", (*initial).into()),
                ("decay_steps", steps(*over)),
                ("alpha", (*alpha).into()),
                ("warmup_target", warmup.map(|(target, _)| target).into()),
                ("warmup_steps", steps(warmup.map_or(0, |(_, over)| over))),
            ],
        ),
        Schedule::CosineDecayRestarts {
            initial,
            steps: over,
            t_mul,
            m_mul,
            alpha,
        } => (
            "CosineDecayRestarts",
            vec![
                ("initial_learning_rate", (*initial).into()),
                ("first_decay_steps", steps(*over)),
                ("t_mul", (*t_mul).into()),
                ("m_mul", (*m_mul).into()),
                ("alpha", (*alpha).into()),
            ],
        ),
    };
    Some(named("keras.optimizers.schedules", class, config))
}

fn named(module: &str, class: &str, config: Vec<(&str, Json)>) -> Json {
    let config = config.into_iter();
    let config = config.map(|(key, value)| (key.to_owned(), value));
    object(module, class, config.collect())
}

/// `mean_squared_error` to `MeanSquaredError`.
fn class_name(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect()
}

fn loss(loss: Loss) -> Json {
    let class = match loss {
        Loss::Huber { .. } => "Huber".to_owned(),
        Loss::KlDivergence => "KLDivergence".to_owned(),
        _ => class_name(loss.name()),
    };
    let config: Vec<(&str, Json)> = match loss {
        Loss::Huber { delta } => vec![("delta", delta.into())],
        Loss::BinaryCrossentropy {
            from_logits,
            label_smoothing,
        }
        | Loss::CategoricalCrossentropy {
            from_logits,
            label_smoothing,
        } => vec![
            ("from_logits", from_logits.into()),
            ("label_smoothing", label_smoothing.into()),
        ],
        Loss::BinaryFocalCrossentropy {
            alpha,
            gamma,
            from_logits,
        } => vec![
            ("apply_class_balancing", alpha.is_some().into()),
            ("alpha", alpha.unwrap_or(0.25).into()),
            ("gamma", gamma.into()),
            ("from_logits", from_logits.into()),
        ],
        Loss::CategoricalFocalCrossentropy {
            alpha,
            gamma,
            from_logits,
        } => vec![
            ("alpha", alpha.into()),
            ("gamma", gamma.into()),
            ("from_logits", from_logits.into()),
        ],
        Loss::SparseCategoricalCrossentropy { from_logits } => {
            vec![("from_logits", from_logits.into())]
        }
        Loss::Tversky { alpha, beta } => {
            vec![("alpha", alpha.into()), ("beta", beta.into())]
        }
        _ => Vec::new(),
    };
    named("keras.losses", &class, config)
}

/// A metric; none for one that Keras has as a loss alone.
fn metric(metric: Metric) -> Option<Json> {
    let thresholds = |threshold: f32| vec![("thresholds", threshold.into())];
    let (class, config): (&str, Vec<(&str, Json)>) = match metric {
        Metric::Mean(Loss::MeanSquaredError) => ("MeanSquaredError", Vec::new()),
        Metric::Mean(Loss::MeanAbsoluteError) => ("MeanAbsoluteError", Vec::new()),
        Metric::Mean(Loss::MeanAbsolutePercentageError) => {
            ("MeanAbsolutePercentageError", Vec::new())
        }
        Metric::Mean(Loss::MeanSquaredLogarithmicError) => {
            ("MeanSquaredLogarithmicError", Vec::new())
        }
        Metric::Mean(Loss::LogCosh) => ("LogCoshError", Vec::new()),
        Metric::Mean(Loss::Hinge) => ("Hinge", Vec::new()),
        Metric::Mean(Loss::SquaredHinge) => ("SquaredHinge", Vec::new()),
        Metric::Mean(Loss::CategoricalHinge) => ("CategoricalHinge", Vec::new()),
        Metric::Mean(Loss::KlDivergence) => ("KLDivergence", Vec::new()),
        Metric::Mean(Loss::Poisson) => ("Poisson", Vec::new()),
        // Keras has the mean of other losses as losses alone.
        Metric::Mean(_) => return None,
        Metric::RootMeanSquaredError => ("RootMeanSquaredError", Vec::new()),
        Metric::Accuracy => ("Accuracy", Vec::new()),
        Metric::BinaryAccuracy(threshold) => {
            ("BinaryAccuracy", vec![("threshold", threshold.into())])
        }
        Metric::CategoricalAccuracy => ("CategoricalAccuracy", Vec::new()),
        Metric::SparseCategoricalAccuracy => ("SparseCategoricalAccuracy", Vec::new()),
        Metric::TopK(k) => ("TopKCategoricalAccuracy", vec![("k", i64::from(k).into())]),
        Metric::SparseTopK(k) => (
            "SparseTopKCategoricalAccuracy",
            vec![("k", i64::from(k).into())],
        ),
        Metric::CosineSimilarity => ("CosineSimilarity", Vec::new()),
        Metric::TruePositives(threshold) => ("TruePositives", thresholds(threshold)),
        Metric::FalsePositives(threshold) => ("FalsePositives", thresholds(threshold)),
        Metric::FalseNegatives(threshold) => ("FalseNegatives", thresholds(threshold)),
        Metric::TrueNegatives(threshold) => ("TrueNegatives", thresholds(threshold)),
        Metric::Precision(threshold) => ("Precision", thresholds(threshold)),
        Metric::Recall(threshold) => ("Recall", thresholds(threshold)),
        Metric::F1(threshold) => ("F1Score", vec![("threshold", threshold.into())]),
        Metric::Auc => ("AUC", Vec::new()),
        Metric::MeanIou(classes) => ("MeanIoU", vec![("num_classes", i64::from(classes).into())]),
        Metric::R2 => ("R2Score", Vec::new()),
    };
    Some(named("keras.metrics", class, config))
}
