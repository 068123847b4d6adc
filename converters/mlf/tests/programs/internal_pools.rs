//! Static pools in the C: the model exists once.

use tvmgen_default::{InputX, Inputs, Model, OutputY, Outputs};

#[test]
fn exists_once() {
    let winners: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(Model::take)).collect();
        threads
            .into_iter()
            .filter_map(|t| t.join().unwrap())
            .count()
    });
    assert_eq!(winners, 1);
    assert!(Model::take().is_none());
    let _ = (InputX::new(), OutputY::new());
    fn signature(model: &mut Model, inputs: &Inputs<'_>, outputs: &mut Outputs<'_>) {
        model.run(inputs, outputs).unwrap();
    }
    let _ = signature;
}
