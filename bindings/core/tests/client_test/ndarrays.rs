//! Arrays of the crate `ndarray` as operands and tensors.

use ndarray::{Array1, Array2, ArrayD, CowArray, IxDyn, array, s};
use tfp_core::*;

use crate::support::{add, refused};

#[test]
fn arrays_and_views_are_operands() -> Result<()> {
    let ctx = EagerContext::new()?;
    let x = ctx.handle(&Tensor::from_array([[1.0_f32, 2.0], [3.0, 4.0]])?)?;
    let matrix: Array2<f32> = array![[10.0, 20.0], [30.0, 40.0]];
    let values = |sum: TensorHandle| sum.to_tensor()?.to_vec::<f32>();
    let plain = [11.0, 22.0, 33.0, 44.0];
    assert_eq!(values(add(&ctx, &x, &matrix)?)?, plain);
    assert_eq!(values(add(&ctx, &x, matrix.view())?)?, plain);
    assert_eq!(values(add(&ctx, &x, &matrix.view())?)?, plain);
    assert_eq!(values(add(&ctx, &x, &matrix.to_shared())?)?, plain);
    assert_eq!(
        values(add(&ctx, &x, CowArray::from(matrix.view()))?)?,
        plain
    );
    // Transposed, reversed, and one column: logical order, whatever the strides.
    assert_eq!(
        values(add(&ctx, &x, matrix.t())?)?,
        [11.0, 32.0, 23.0, 44.0]
    );
    assert_eq!(
        values(add(&ctx, &x, matrix.slice(s![..;-1, ..]))?)?,
        [31.0, 42.0, 13.0, 24.0]
    );
    assert_eq!(
        values(add(&ctx, &x, matrix.column(1))?)?,
        [21.0, 42.0, 23.0, 44.0]
    );
    assert_eq!(values(add(&ctx, &x, matrix)?)?, plain);
    // Numbers take the type of the operand beside them, as literals do.
    let wide = array![0.5_f64, 1.5];
    assert_eq!(values(add(&ctx, &x, &wide)?)?, [1.5, 3.5, 3.5, 5.5]);
    let whole = ctx.handle(&Tensor::scalar(1_i32)?)?;
    refused(add(&ctx, &whole, &wide), &["AddV2", "float64", "int32"]);
    Ok(())
}

#[test]
fn the_same_array_is_a_constant_of_a_graph() -> Result<()> {
    let graph = Graph::new()?;
    let sum = add(
        &graph,
        &array![[1_i64, 2], [3, 4]],
        array![10_i64, 20].view(),
    )?;
    let session = Session::new(&graph)?;
    let found = session.eval(&[], &[&sum])?;
    assert_eq!(
        found[0].as_ndarray::<i64>()?,
        array![[11, 22], [13, 24]].into_dyn()
    );
    Ok(())
}

#[test]
fn aligned_arrays_go_in_and_out_without_a_copy() -> Result<()> {
    // Of several allocations of this size some are aligned; each must keep its address then.
    let mut kept = 0;
    for extra in 0..64 {
        let array = Array2::<f32>::from_elem((64, 16 + extra), 1.5);
        let address = array.as_ptr();
        let aligned = address.addr().is_multiple_of(ALIGNMENT);
        let tensor = Tensor::from_owned_ndarray(array)?;
        let view = tensor.as_ndarray::<f32>()?;
        assert_eq!(view.as_ptr(), tensor.as_slice::<f32>()?.as_ptr());
        assert_eq!(view.shape(), [64, 16 + extra]);
        assert_eq!(view.as_ptr() == address, aligned);
        kept += usize::from(aligned);
    }
    println!("{kept} of 64 arrays were aligned");
    Ok(())
}

#[test]
fn parts_and_empty_arrays_keep_their_elements() -> Result<()> {
    let part = Array1::from_iter(0..100_i32).slice_move(s![30..40]);
    let tensor = Tensor::from_owned_ndarray(part)?;
    assert_eq!(tensor.as_slice::<i32>()?, Vec::from_iter(30..40));
    let reversed = Array1::from_iter(0..5_i32).slice_move(s![..;-1]);
    assert_eq!(
        Tensor::from_owned_ndarray(reversed)?.as_slice::<i32>()?,
        [4, 3, 2, 1, 0]
    );
    let empty = ArrayD::<f64>::zeros(IxDyn(&[2, 0, 3]));
    assert_eq!(Tensor::from_ndarray(&empty)?.dims(), [2, 0, 3]);
    assert_eq!(
        Tensor::from_owned_ndarray(empty)?
            .as_ndarray::<f64>()?
            .shape(),
        [2, 0, 3]
    );
    let scalar = ArrayD::from_elem(IxDyn(&[]), true);
    assert!(Tensor::from_ndarray(&scalar)?.to_scalar::<bool>()?);
    refused(
        Tensor::scalar(1.0_f32)?.as_ndarray::<f64>(),
        &["float64", "float32"],
    );
    Ok(())
}
