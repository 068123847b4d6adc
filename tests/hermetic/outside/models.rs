fn main() {
    let model = mlp::Mlp::new().expect("weights of this model");
    let y = model
        .predict(mlp::Inputs { x: &[1.0; 6] })
        .expect("six numbers")
        .y;
    println!("{}", y.len());
    println!(
        "{}",
        std::any::type_name::<tvmgen_default::default::Model>()
    );
}
