//! What the client costs over the C API: the same work by both, alternating in one process.
//!
//! Prints a row per kind of work: the median time of the C API, the client's, and their ratio, with
//! the first and third quartile of each; the fastest times; and the median of what the client takes
//! more than the C API's run beside it. `--json` prints one object per line instead, `--only=TEXT`
//! measures the kinds of work that have TEXT in their names, `--rounds=N` so many rounds.

use std::hint::black_box;
use std::ptr;
use std::time::Instant;

use tfp_core::{
    AttrValue, Call, Context, DataType, EagerContext, Error, Graph, OpDesc, Output, Result,
    Session, SessionOptions, Shape, Tensor, api,
};
use tfp_sys::*;

/// How the program was started.
struct Options {
    json: bool,
    only: String,
    rounds: usize,
}

impl Options {
    fn read() -> Result<Self> {
        let mut options = Self {
            json: false,
            only: String::new(),
            rounds: 41,
        };
        for argument in std::env::args().skip(1) {
            let wrong = || Error::argument(format!("{argument}: no such argument"));
            match argument.split_once('=') {
                Some(("--only", text)) => options.only = text.to_owned(),
                Some(("--rounds", text)) => {
                    options.rounds = text.parse().ok().filter(|&n| n > 0).ok_or_else(wrong)?;
                }
                None if argument == "--json" => options.json = true,
                _ => return Err(wrong()),
            }
        }
        Ok(options)
    }
}

/// One kind of work, done by the C API and by the client.
struct Row {
    /// Nanoseconds of one unit of work, sorted.
    raw: Vec<f64>,
    client: Vec<f64>,
    /// What the client took more than the C API beside it, sorted.
    more: Vec<f64>,
}

/// Times both sides in turn; each call does `units` units of work.
fn measure(
    options: &Options,
    units: usize,
    mut raw: impl FnMut() -> Result<()>,
    mut client: impl FnMut() -> Result<()>,
) -> Result<Row> {
    let mut row = Row {
        raw: Vec::new(),
        client: Vec::new(),
        more: Vec::new(),
    };
    let time = |work: &mut dyn FnMut() -> Result<()>| -> Result<f64> {
        let start = Instant::now();
        work()?;
        Ok(start.elapsed().as_nanos() as f64 / units as f64)
    };
    for round in 0..options.rounds + 3 {
        // Who goes first alternates too.
        let (c, r) = if round % 2 == 0 {
            let c = time(&mut raw)?;
            (c, time(&mut client)?)
        } else {
            let r = time(&mut client)?;
            (time(&mut raw)?, r)
        };
        if round >= 3 {
            row.raw.push(c);
            row.client.push(r);
            row.more.push(r - c);
        }
    }
    row.raw.sort_by(f64::total_cmp);
    row.client.sort_by(f64::total_cmp);
    row.more.sort_by(f64::total_cmp);
    Ok(row)
}

impl Row {
    fn print(&self, name: &str, json: bool) {
        let quartiles = |times: &[f64]| {
            [
                times[times.len() / 4],
                times[times.len() / 2],
                times[times.len() * 3 / 4],
            ]
        };
        let ([c1, c, c3], [r1, r, r3]) = (quartiles(&self.raw), quartiles(&self.client));
        let ratio = r / c;
        let (least_c, least_r) = (self.raw[0], self.client[0]);
        let [_, more, _] = quartiles(&self.more);
        if json {
            println!(
                "{{\"name\": \"{name}\", \"c_ns\": [{c1}, {c}, {c3}], \"client_ns\": [{r1}, {r}, {r3}], \"ratio\": {ratio}, \
                 \"fastest\": [{least_c}, {least_r}], \"more\": {more}}}"
            );
        } else {
            println!(
                "| {name} | {c:.0} ({c1:.0} to {c3:.0}) | {r:.0} ({r1:.0} to {r3:.0}) | {ratio:.2} \
                 | {least_c:.0}, {least_r:.0} | {more:+.0} |"
            );
        }
    }
}

/// What every program does after a call that takes a status.
///
/// # Safety
/// The status is alive.
#[inline]
unsafe fn check(api: &ClientApi, status: *mut TF_Status) -> Result<()> {
    // SAFETY: by this function's contract.
    let code = unsafe { api.tf_status.TF_GetCode(status) };
    if code == TF_OK {
        Ok(())
    } else {
        Err(Error::argument(format!("status {}", code.0)))
    }
}

fn add<C: Context>(ctx: &C, desc: &'static OpDesc, x: &C::Value, y: &C::Value) -> Result<C::Value> {
    let mut call = Call::new(desc);
    call.input(x).input(y);
    ctx.execute(&mut call, &[] as &[AttrValue<'_>])?.one()
}

fn graph_build(options: &Options, desc: &'static OpDesc) -> Result<Row> {
    const OPS: usize = 10_000;
    let api = api()?;
    let raw = || -> Result<()> {
        // SAFETY: every object is made, used and deleted here, by the contracts of the C API.
        unsafe {
            let c = &api.c_api;
            let (graph, status) = (c.TF_NewGraph(), api.tf_status.TF_NewStatus());
            let placeholder = c.TF_NewOperation(graph, c"Placeholder".as_ptr(), c"x".as_ptr());
            c.TF_SetAttrType(placeholder, c"dtype".as_ptr(), TF_FLOAT);
            let first = c.TF_FinishOperation(placeholder, status);
            let x = TF_Output {
                oper: first,
                index: 0,
            };
            let mut sum = x;
            for number in 0..OPS {
                let name = format!("AddV2_{number}\0");
                let op = c.TF_NewOperation(graph, c"AddV2".as_ptr(), name.as_ptr().cast());
                c.TF_AddInput(op, sum);
                c.TF_AddInput(op, x);
                sum.oper = c.TF_FinishOperation(op, status);
                check(api, status)?;
            }
            black_box(sum.oper);
            api.tf_status.TF_DeleteStatus(status);
            c.TF_DeleteGraph(graph);
        }
        Ok(())
    };
    let client = || -> Result<()> {
        let graph = Graph::new()?;
        let scope = graph.scope();
        let x = scope.placeholder("x", DataType::FLOAT, &Shape::unknown())?;
        let mut sum = x.clone();
        for _ in 0..OPS {
            sum = add(&scope, desc, &sum, &x)?;
        }
        black_box(&sum);
        Ok(())
    };
    measure(options, OPS, raw, client)
}

/// `ConfigProto { inter_op_parallelism_threads: -1 }`: the calling thread runs the ops, so that no
/// row measures how long another thread takes to wake.
const IN_CALLER: &[u8] = b"\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";

/// The graph of a scalar addition.
struct Addition {
    session: Session,
    inputs: [Output; 2],
    sum: Output,
}

fn addition(desc: &'static OpDesc) -> Result<Addition> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = scope.placeholder("x", DataType::FLOAT, &Shape::scalar())?;
    let y = scope.placeholder("y", DataType::FLOAT, &Shape::scalar())?;
    let sum = add(&scope, desc, &x, &y)?;
    Ok(Addition {
        session: Session::with_options(
            &graph,
            &SessionOptions {
                config: IN_CALLER.to_vec().into(),
                ..SessionOptions::default()
            },
        )?,
        inputs: [x, y],
        sum,
    })
}

fn session_prepared(options: &Options, desc: &'static OpDesc) -> Result<Row> {
    session_run(options, desc, true)
}

fn session_plain(options: &Options, desc: &'static OpDesc) -> Result<Row> {
    session_run(options, desc, false)
}

fn session_run(options: &Options, desc: &'static OpDesc, prepared: bool) -> Result<Row> {
    const RUNS: usize = 2_000;
    let api = api()?;
    let c = &api.c_api;
    let Addition {
        session,
        inputs,
        sum,
    } = addition(desc)?;
    let callable = session.callable(&inputs, std::slice::from_ref(&sum), &[])?;
    let (a, b) = (Tensor::scalar(1.0_f32)?, Tensor::scalar(2.0_f32)?);
    // SAFETY: the objects live until the process ends.
    let (raw_session, raw_inputs, raw_sum, values, status) = unsafe {
        let (graph, status) = (c.TF_NewGraph(), api.tf_status.TF_NewStatus());
        let placeholder = |name: *const std::ffi::c_char| {
            let op = c.TF_NewOperation(graph, c"Placeholder".as_ptr(), name);
            c.TF_SetAttrType(op, c"dtype".as_ptr(), TF_FLOAT);
            c.TF_SetAttrShape(op, c"shape".as_ptr(), ptr::null(), 0);
            TF_Output {
                oper: c.TF_FinishOperation(op, status),
                index: 0,
            }
        };
        let inputs = [placeholder(c"x".as_ptr()), placeholder(c"y".as_ptr())];
        let op = c.TF_NewOperation(graph, c"AddV2".as_ptr(), c"sum".as_ptr());
        c.TF_AddInput(op, inputs[0]);
        c.TF_AddInput(op, inputs[1]);
        let sum = TF_Output {
            oper: c.TF_FinishOperation(op, status),
            index: 0,
        };
        let session_options = c.TF_NewSessionOptions();
        c.TF_SetConfig(
            session_options,
            IN_CALLER.as_ptr().cast(),
            IN_CALLER.len(),
            status,
        );
        let session = c.TF_NewSession(graph, session_options, status);
        c.TF_DeleteSessionOptions(session_options);
        let scalar = |value: f32| {
            let tensor = api.tf_tensor.TF_AllocateTensor(TF_FLOAT, ptr::null(), 0, 4);
            *api.tf_tensor.TF_TensorData(tensor).cast::<f32>() = value;
            tensor
        };
        (session, inputs, sum, [scalar(1.0), scalar(2.0)], status)
    };
    let raw = || -> Result<()> {
        for _ in 0..RUNS {
            let mut out = ptr::null_mut();
            // SAFETY: all objects are alive, and every list has the length that is passed.
            unsafe {
                c.TF_SessionRun(
                    raw_session,
                    ptr::null(),
                    raw_inputs.as_ptr(),
                    values.as_ptr(),
                    2,
                    &raw const raw_sum,
                    &raw mut out,
                    1,
                    ptr::null(),
                    0,
                    ptr::null_mut(),
                    status,
                );
                check(api, status)?;
                black_box(*api.tf_tensor.TF_TensorData(out).cast::<f32>());
                api.tf_tensor.TF_DeleteTensor(out);
            }
        }
        Ok(())
    };
    let [x, y] = &inputs;
    let client = || -> Result<()> {
        for _ in 0..RUNS {
            let found = if prepared {
                callable.call(&[&a, &b])?
            } else {
                session.eval(&[(x, &a), (y, &b)], &[&sum])?
            };
            black_box(found[0].to_scalar::<f32>()?);
        }
        Ok(())
    };
    measure(options, RUNS, raw, client)
}

fn eager_add(options: &Options, desc: &'static OpDesc) -> Result<Row> {
    const CALLS: usize = 5_000;
    let api = api()?;
    let e = &api.eager_c_api;
    let ctx = EagerContext::new()?;
    let (x, y) = (
        ctx.handle(&Tensor::scalar(1.0_f32)?)?,
        ctx.handle(&Tensor::scalar(2.0_f32)?)?,
    );
    // SAFETY: the objects live until the process ends.
    let (raw_ctx, handles, status) = unsafe {
        let status = api.tf_status.TF_NewStatus();
        let ctx = e.TFE_NewContext(e.TFE_NewContextOptions(), status);
        let handle = || {
            let tensor = api.tf_tensor.TF_AllocateTensor(TF_FLOAT, ptr::null(), 0, 4);
            *api.tf_tensor.TF_TensorData(tensor).cast::<f32>() = 1.0;
            e.TFE_NewTensorHandle(tensor, status)
        };
        (ctx, [handle(), handle()], status)
    };
    let raw = || -> Result<()> {
        for _ in 0..CALLS {
            // SAFETY: all objects are alive; the op and its result are deleted.
            unsafe {
                let op = e.TFE_NewOp(raw_ctx, c"AddV2".as_ptr(), status);
                check(api, status)?;
                e.TFE_OpAddInput(op, handles[0], status);
                check(api, status)?;
                e.TFE_OpAddInput(op, handles[1], status);
                check(api, status)?;
                let (mut out, mut count) = (ptr::null_mut(), 1);
                e.TFE_Execute(op, &raw mut out, &raw mut count, status);
                check(api, status)?;
                e.TFE_DeleteTensorHandle(black_box(out));
                e.TFE_DeleteOp(op);
            }
        }
        Ok(())
    };
    let client = || -> Result<()> {
        for _ in 0..CALLS {
            black_box(add(&ctx, desc, &x, &y)?);
        }
        Ok(())
    };
    measure(options, CALLS, raw, client)
}

fn tensor_in_and_out(options: &Options, _: &'static OpDesc) -> Result<Row> {
    const UNITS: usize = 2_000;
    let api = api()?;
    let t = &api.tf_tensor;
    let dims = [1_i64, 224, 224, 3];
    let source = Tensor::zeros(DataType::FLOAT, &dims)?;
    let bytes = source.as_bytes()?;
    // SAFETY: the tensor is written before it is read, and lives until the process ends.
    let (original, status) = unsafe {
        let tensor = t.TF_AllocateTensor(TF_FLOAT, dims.as_ptr(), 4, bytes.len());
        ptr::copy_nonoverlapping(bytes.as_ptr(), t.TF_TensorData(tensor).cast(), bytes.len());
        (tensor, api.tf_status.TF_NewStatus())
    };
    let raw = || -> Result<()> {
        for _ in 0..UNITS {
            // SAFETY: both tensors are alive, and the new one is deleted.
            unsafe {
                let view = t.TF_AllocateTensor(TF_UINT8, [0].as_ptr(), 1, 0);
                t.TF_TensorBitcastFrom(original, TF_FLOAT, view, dims.as_ptr(), 4, status);
                check(api, status)?;
                black_box(*t.TF_TensorData(view).cast::<f32>());
                t.TF_DeleteTensor(view);
            }
        }
        Ok(())
    };
    let client = || -> Result<()> {
        for _ in 0..UNITS {
            let tensor = source.reshaped(&dims)?;
            black_box(tensor.as_slice::<f32>()?[0]);
        }
        Ok(())
    };
    measure(options, UNITS, raw, client)
}

fn strings(options: &Options, _: &'static OpDesc) -> Result<Row> {
    const COUNT: usize = 100_000;
    let api = api()?;
    let s = &api.tf_tstring;
    let texts: Vec<String> = (0..COUNT)
        .map(|number| format!("string number {number}, and more"))
        .collect();
    let raw = || -> Result<()> {
        let mut total = 0;
        let mut memory = vec![[0_u64; 3]; COUNT];
        // SAFETY: zeros are empty strings; each is written, read and freed.
        unsafe {
            for (slot, text) in memory.iter_mut().zip(&texts) {
                s.TF_StringCopy(slot.as_mut_ptr().cast(), text.as_ptr().cast(), text.len());
            }
            for slot in &mut memory {
                let string = slot.as_mut_ptr().cast();
                total += s.TF_StringGetSize(string)
                    + usize::from(*s.TF_StringGetDataPointer(string).cast::<u8>());
            }
            for slot in &mut memory {
                s.TF_StringDealloc(slot.as_mut_ptr().cast());
            }
        }
        black_box(total);
        Ok(())
    };
    let client = || -> Result<()> {
        let tensor = Tensor::from_strings(&texts, &[COUNT as i64])?;
        let total: usize = tensor
            .as_strings()?
            .iter()
            .map(|s| s.len() + usize::from(s[0]))
            .sum();
        black_box(total);
        Ok(())
    };
    measure(options, COUNT, raw, client)
}

type Work = fn(&Options, &'static OpDesc) -> Result<Row>;

const WORK: [(&str, Work); 6] = [
    ("graph: add one `AddV2` of 10,000", graph_build),
    (
        "session: prepared run of a scalar addition",
        session_prepared,
    ),
    ("session: plain run of a scalar addition", session_plain),
    ("eager: `AddV2` of scalars", eager_add),
    ("tensor: a second view of 602 KB", tensor_in_and_out),
    ("strings: one of 100,000 in and out", strings),
];

fn main() -> Result<()> {
    let options = Options::read()?;
    let desc = OpDesc::find("AddV2")?;
    if !options.json {
        println!("| work | C API, ns | client, ns | ratio | fastest, ns | difference, ns |");
        println!("|---|---|---|---|---|---|");
    }
    for (name, work) in WORK {
        if name.contains(&options.only) {
            work(&options, desc)?.print(name, options.json);
        }
    }
    Ok(())
}
