//! A library of `tvm_rust_model(embedded = True)`, which a program knows by its traits.

use tfp_embedded::{Model, RUN, Tensor, Totals};
use tvm_embedded::Runner;

fn run<M>(model: &mut M, totals: &mut Totals<4>) -> Result<f32, M::Error>
where
    M: Model,
    M::Input: Tensor<Element = f32>,
    M::Output: Tensor<Element = f32>,
{
    let (mut input, mut output) = (M::Input::default(), M::Output::default());
    input.elements_mut().fill(0.5);
    model.run_profiled(&input, &mut output, &|| 0, totals)?;
    Ok(output.elements().iter().sum())
}

#[test]
fn a_program_knows_the_model_by_its_traits() {
    let mut model = Runner::take().expect("first use");
    let mut totals = Totals::new();
    for runs in 1..4 {
        let sum = run(&mut model, &mut totals).expect("a run");
        assert!((sum - 1.0).abs() < 1e-6, "the outputs of softmax, {sum}");
        assert_eq!(totals.run().calls, runs);
        assert_eq!(totals.calls().len(), 3);
    }
    assert_eq!(RUN, "run");
    assert!(Runner::take().is_none());
}
