//! A language model of characters: an embedding, an LSTM and a dense layer learn a nursery rhyme, and
//! then say it by themselves.

use tfp::nn::layer::{Dense, Embedding, Recurrent, RnnKind, Sequential};
use tfp::nn::optimizer::{Adam, Clip};
use tfp::nn::training::{Batches, Plan, Progress, Trainer};
use tfp::nn::{Loss, Metric, Weights};
use tfp::{DataType, Graph, Result, Tensor};

const TEXT: &str = "twinkle, twinkle, little star, how i wonder what you are. \
                    up above the world so high, like a diamond in the sky. ";

/// How many characters the model sees.
const WINDOW: usize = 12;

fn main() -> Result<()> {
    let mut alphabet: Vec<char> = TEXT.chars().collect();
    alphabet.sort_unstable();
    alphabet.dedup();
    let number = |c: char| alphabet.binary_search(&c).map_or(0, |index| index as i64);
    let codes: Vec<i64> = TEXT.chars().map(number).collect();

    // The text is a circle: after its end comes its beginning.
    let at = |index: usize| codes[index % codes.len()];
    let (mut x, mut truth) = (Vec::new(), Vec::new());
    for start in 0..codes.len() {
        x.extend((start..start + WINDOW).map(at));
        truth.push(at(start + WINDOW));
    }
    let (count, window) = (codes.len() as i64, WINDOW as i64);
    let x = Tensor::from_vec(x, &[count, window])?;
    let data = Batches::new(x, Tensor::from_vec(truth, &[count])?, 16)?.shuffled(3);

    let letters = alphabet.len() as i64;
    let model = Sequential::new(
        &Weights::new(&Graph::new()?, 5),
        &[window],
        &[
            &Embedding::new(letters, 16),
            &Recurrent::new(RnnKind::Lstm, 64),
            &Dense::new(letters),
        ],
    )?;
    let loss = Loss::SparseCategoricalCrossentropy { from_logits: true };
    let mut plan = Plan::new(loss, Adam::default())
        .rate(0.01)
        .metric(Metric::SparseCategoricalAccuracy);
    plan.input = DataType::INT64;
    plan.optimizer = plan.optimizer.clip(Clip::GlobalNorm(1.0));
    let mut trainer = Trainer::new(model, plan)?;
    trainer.fit(&data, 40, None, &mut [&mut Progress::default()])?;

    let mut said: Vec<i64> = codes[..WINDOW].to_vec();
    while said.len() < codes.len() {
        let last = Tensor::from_slice(&said[said.len() - WINDOW..], &[1, window])?;
        let scores = trainer.predict(&last)?;
        let scores = scores.as_slice::<f32>()?.iter().enumerate();
        let best = scores.max_by(|(_, a), (_, b)| a.total_cmp(b));
        said.push(best.map_or(0, |(index, _)| index as i64));
    }
    let text: String = said.iter().map(|&code| alphabet[code as usize]).collect();
    println!("{text}");
    Ok(())
}
