//! The wrapper of a custom op, generated from its library, adds the op to a graph.

use company_ops::{CompanyScaleByOptions, CompanyScaleByRounding, OP_COUNT, company_scale_by};
use tfp_core::{Context, DataType, Graph, Result, Tensor, load_op_library};

#[test]
fn a_custom_op_is_as_any_other() -> Result<()> {
    load_op_library(std::env::var("CUSTOM_OP_LIBRARY").unwrap_or_default())?;
    let graph = Graph::new()?;
    let x = graph.constant(&Tensor::from_array([1.0_f64, 2.0])?)?;
    let options = CompanyScaleByOptions {
        rounding: Some(CompanyScaleByRounding::Down),
    };
    let out = company_scale_by(&graph, (&x, 3.0), 0.5, options)?;
    assert_eq!(out.len(), 2);
    assert_eq!(out[0].dtype(), DataType::DOUBLE);
    assert_eq!(out[0].operation().op_type(), "Company>ScaleBy");
    let ints = Tensor::from_array([1_i32])?;
    let refused = company_scale_by(&graph, (&ints,), 0.5, Default::default()).err();
    let message = refused.map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("float64"), "{message:?}");
    assert_eq!(OP_COUNT, 1);
    Ok(())
}
