//! Rows by number: gathers, sums of segments, and rows that others change.

use tfp_kernels::base::dtype::DType;

use super::view;
use crate::request::Request;
use crate::shader::Shader;
use crate::vulkan::device::Limits;
use crate::work::{Dispatch, Place, Plan, Region, numbers, spread};

/// `GatherV2`. The CPU's kernel refuses numbers that there are not.
pub fn gather(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [params, indices, _] = request.inputs.first_chunk()?;
    let output = request.outputs.first()?;
    let rank = params.shape.len();
    let signed = i64::try_from(rank).ok()?;
    let axis = *request.integers(2)?.first()?;
    let axis = usize::try_from(if axis < 0 { axis + signed } else { axis }).ok()?;
    let batch = usize::try_from(request.attrs.int("batch_dims").ok()?).ok()?;
    if !params.is_f32() || axis >= rank || batch > axis || batch > indices.shape.len() {
        return None;
    }
    let product = |dims: &[usize]| dims.iter().product::<usize>();
    let (outer, limit) = (product(&params.shape[batch..axis]), params.shape[axis]);
    let inner = product(&params.shape[axis + 1..]);
    let many = product(&indices.shape[batch..]);
    let found = request.integers(1)?;
    let known = found
        .iter()
        .all(|&index| usize::try_from(index).is_ok_and(|index| index < limit));
    let rows = product(&params.shape[..axis]) * many;
    if !known || output.elements() != rows * inner || params.elements() >= 1 << 31 {
        return None;
    }
    let step = indices.dtype.size() / 4;
    dispatch(
        (0, inner, true),
        [many, outer, limit, step],
        [params.region(), indices.region(), output.region()],
        output.elements(),
    )
}

fn dispatch(
    (kind, inner, may_be_wide): (u32, usize, bool),
    sizes: [usize; 4],
    buffers: [Region; 3],
    count: usize,
) -> Option<Plan> {
    u32::try_from(count).ok()?;
    let vectors = may_be_wide && inner % 4 == 0;
    let width = if vectors { 4 } else { 1 };
    let mut words = numbers(&[count / width, inner / width])?;
    words.extend(numbers(&sizes)?);
    let dispatch = Dispatch {
        shader: if vectors {
            Shader::Gather4
        } else {
            Shader::Gather1
        },
        constants: vec![kind],
        words,
        buffers: buffers.into(),
        groups: spread((count / width).div_ceil(256))?,
    };
    Some(Plan::one(dispatch, count as u64))
}

/// The rows of each segment in order: where the list of a segment begins, then the lists. `None` if a segment is
/// not there.
fn lists(ids: &[i64], segments: usize) -> Option<Vec<u32>> {
    let first = u32::try_from(segments + 1).ok()?;
    let mut all = vec![0_u32; segments + 1];
    // A number below 0 is nobody's.
    let named = |id: i64| usize::try_from(id).ok();
    for id in ids.iter().filter_map(|&id| named(id)) {
        *all[1..].get_mut(id)? += 1;
    }
    all[0] = first;
    for segment in 0..segments {
        all[segment + 1] += all[segment];
    }
    let mut next = all.clone();
    all.resize(all[segments] as usize, 0);
    for (row, &id) in ids.iter().enumerate() {
        if let Some(id) = named(id) {
            all[next[id] as usize] = u32::try_from(row).ok()?;
            next[id] += 1;
        }
    }
    Some(all)
}

/// `UnsortedSegmentSum`. The host sorts the rows by their segments, so that each sum has the order of the CPU's.
pub fn segment_sum(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [data, ids, _] = request.inputs.first_chunk()?;
    let output = request.outputs.first()?;
    let &segments = output.shape.first()?;
    let inner = output.elements().checked_div(segments)?;
    let named = matches!(ids.dtype, DType::I32 | DType::I64);
    if !data.is_f32() || !output.is_f32() || !named || data.elements() >= 1 << 31 {
        return None;
    }
    let ids = request.integers(1)?;
    if inner == 0 || data.elements() != ids.len() * inner {
        return None;
    }
    let lists = lists(&ids, segments)?;
    let bytes = (lists.len() * 4).next_multiple_of(256);
    let numbers = Region {
        place: Place::Scratch(0),
        bytes,
    };
    // Nothing is summed where there is not a row, but a buffer has to be one.
    let from = if data.bytes == 0 { output } else { data };
    let mut plan = dispatch(
        (1, inner, true),
        [0; 4],
        [from.region(), numbers, output.region()],
        output.elements(),
    )?;
    plan.scratch = bytes;
    plan.data = lists;
    plan.flops += data.elements() as u64;
    Some(plan)
}

/// What a row becomes by another, in the order of the shader's numbers.
const CHANGES: &[&str] = &["add", "sub", "mul", "min", "max", "update"];

/// The rows that change each row that is named, in order: where the list of each begins, the numbers of the rows, then
/// the lists; and how many there are.
fn changes(rows: &[u32]) -> Option<(Vec<u32>, usize)> {
    let mut order: Vec<u32> = (0..u32::try_from(rows.len()).ok()?).collect();
    // Stable: changes of a row keep their order.
    order.sort_by_key(|&place| rows[place as usize]);
    let lists: Vec<&[u32]> = order
        .chunk_by(|&a, &b| rows[a as usize] == rows[b as usize])
        .collect();
    let mut begin = u32::try_from(2 * lists.len() + 1).ok()?;
    let mut all = vec![begin];
    for list in &lists {
        begin += u32::try_from(list.len()).ok()?;
        all.push(begin);
    }
    all.extend(
        lists
            .iter()
            .filter_map(|list| Some(rows[*list.first()? as usize])),
    );
    let count = lists.len();
    all.extend(order);
    Some((all, count))
}

/// The numbers of the rows that indices of `limits.len()` numbers name; `None` if one is not there.
fn rows(indices: &[i64], limits: &[usize]) -> Option<Vec<u32>> {
    let row = |index: &[i64]| {
        let mut row = 0;
        for (&number, &limit) in index.iter().zip(limits) {
            let number = usize::try_from(number).ok()?;
            row = (number < limit).then_some(row * limit + number)?;
        }
        u32::try_from(row).ok()
    };
    indices.chunks_exact(limits.len()).map(row).collect()
}

/// `TfpScatter`, `ScatterNd` and `TensorScatter*`. The host sorts the changes by their rows, so that each row is changed
/// in the order of the CPU's.
pub fn scatter(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (tensor, change, nd) = match request.op {
        "ScatterNd" => (None, "add", true),
        "TensorScatterAdd" => (Some(0), "add", true),
        "TensorScatterSub" => (Some(0), "sub", true),
        "TensorScatterMin" => (Some(0), "min", true),
        "TensorScatterMax" => (Some(0), "max", true),
        "TensorScatterUpdate" => (Some(0), "update", true),
        _ => (
            Some(0),
            request.attrs.string("reduction").ok()?,
            request.attrs.boolean("nd").ok()?,
        ),
    };
    let kind = CHANGES.iter().position(|known| *known == change)?;
    let first = usize::from(tensor.is_some());
    let (indices, updates) = (request.inputs.get(first)?, request.inputs.get(first + 1)?);
    let output = request.outputs.first()?;
    let depth = if nd { *indices.shape.last()? } else { 1 };
    let limits = output
        .shape
        .get(..depth)
        .filter(|limits| !limits.is_empty())?;
    let inner: usize = output.shape[depth..].iter().product();
    let rows = rows(&request.integers(first)?, limits)?;
    let is_one = updates.shape.is_empty() && updates.elements() != rows.len() * inner;
    let fits = is_one || updates.elements() == rows.len() * inner;
    if !updates.is_f32() || !output.is_f32() || !fits || rows.is_empty() || inner == 0 {
        return None;
    }
    let (lists, count) = changes(&rows)?;
    let mut plan = Plan::default();
    match tensor.and_then(|at| request.inputs.get(at)) {
        Some(tensor) if tensor.address == output.address => {}
        Some(tensor) => plan.dispatches.push(view::moved_whole(tensor, output)?),
        None => plan.dispatches.push(view::filled(output, 0.0)?),
    }
    let bytes = (lists.len() * 4).next_multiple_of(256);
    let numbers = Region {
        place: Place::Scratch(0),
        bytes,
    };
    let last = dispatch(
        (2 + u32::try_from(kind).ok()?, inner, !is_one),
        [0, usize::from(!is_one), count, 0],
        [updates.region(), numbers, output.region()],
        count * inner,
    )?;
    plan.dispatches.extend(last.dispatches);
    plan.scratch = bytes;
    plan.data = lists;
    plan.flops = (rows.len() * inner) as u64;
    Some(plan)
}

#[cfg(test)]
mod tests {
    use super::{changes, lists, rows};

    #[test]
    fn rows_are_listed_in_order() {
        let found = lists(&[2, 0, -1, 2], 3).unwrap();
        assert_eq!(found, [4, 5, 5, 7, 1, 0, 3]);
        assert!(lists(&[3], 3).is_none());
    }

    #[test]
    fn changes_of_a_row_keep_their_order() {
        let found = rows(&[1, 2, 0, 1, 1, 2], &[2, 3]).unwrap();
        assert_eq!(found, [5, 1, 5]);
        assert_eq!(changes(&found).unwrap(), (vec![5, 6, 8, 1, 5, 1, 0, 2], 2));
        assert!(rows(&[2], &[2]).is_none() && rows(&[-1], &[2]).is_none());
    }
}
