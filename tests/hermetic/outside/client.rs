use tfp::{EagerContext, Result, ops};

fn main() -> Result<()> {
    let eager = EagerContext::new()?;
    println!(
        "{:?}",
        ops::square(&eager, 3.0_f32)?
            .to_tensor()?
            .to_scalar::<f32>()?
    );
    println!("{}", my_ops::mine::OPS.len());
    Ok(())
}
