//! Types of the crates below this one, which threads may share, too.

use std::collections::BTreeSet;
use std::path::Path;

use tfp::ops::*;
use tfp::{Bytes, DataType, FuncRef, Shape, Tensor, TensorHandle};

use crate::shared_types::{folder, is_listed, reexported, shared};

const _: () = {
    shared::<tfp::Allowed>();
    shared::<tfp::ArgDesc>();
    shared::<tfp::ArgKind>();
    shared::<tfp::Attr>();
    shared::<tfp::AttrDefault>();
    shared::<tfp::AttrDesc>();
    shared::<tfp::AttrInfo>();
    shared::<tfp::AttrKind>();
    shared::<tfp::AttrValue<'static>>();
    shared::<tfp::BFloat16>();
    shared::<tfp::Buffer<f32>>();
    shared::<tfp::Bytes<'static>>();
    shared::<tfp::Call<'static, TensorHandle>>();
    shared::<tfp::Callable<'static>>();
    shared::<tfp::Cancellation>();
    shared::<tfp::Code>();
    shared::<tfp::Complex<f32>>();
    shared::<tfp::Config>();
    shared::<tfp::DataType>();
    shared::<tfp::Device>();
    shared::<tfp::EagerContext>();
    shared::<tfp::EagerOptions>();
    shared::<tfp::Error>();
    shared::<tfp::ErrorKind>();
    shared::<tfp::Executor>();
    shared::<tfp::Fetched>();
    shared::<tfp::Float4E2M1Fn>();
    shared::<tfp::Float8E4M3B11FnUz>();
    shared::<tfp::Float8E4M3Fn>();
    shared::<tfp::Float8E4M3FnUz>();
    shared::<tfp::Float8E5M2>();
    shared::<tfp::Float8E5M2FnUz>();
    shared::<tfp::FuncAttr>();
    shared::<tfp::FuncRef<'static>>();
    shared::<tfp::Function>();
    shared::<tfp::FunctionOptions<'static>>();
    shared::<tfp::Graph>();
    shared::<tfp::Half>();
    shared::<tfp::HostFunction>();
    shared::<tfp::ImportOptions<'static>>();
    shared::<tfp::Imported>();
    shared::<tfp::Int2>();
    shared::<tfp::Int4>();
    shared::<tfp::Literal<'static>>();
    shared::<tfp::OpBuilder<'static, TensorHandle>>();
    shared::<tfp::OpDesc>();
    shared::<tfp::Operand<'static, TensorHandle>>();
    shared::<tfp::Operation>();
    shared::<tfp::Output>();
    shared::<tfp::PartialRun<'static>>();
    shared::<tfp::PlacementPolicy>();
    shared::<tfp::Prepared<'static, TensorHandle>>();
    shared::<tfp::QInt16>();
    shared::<tfp::QInt32>();
    shared::<tfp::QInt8>();
    shared::<tfp::QUInt16>();
    shared::<tfp::QUInt8>();
    shared::<tfp::Results<TensorHandle, tfp::Operation>>();
    shared::<tfp::Run<'static>>();
    shared::<tfp::RunOptions>();
    shared::<tfp::SavedModel>();
    shared::<tfp::Scope>();
    shared::<tfp::Server>();
    shared::<tfp::Session>();
    shared::<tfp::SessionOptions>();
    shared::<tfp::Shape>();
    shared::<tfp::Signature>();
    shared::<tfp::Slot>();
    shared::<tfp::SmallVec<TensorHandle, 4>>();
    shared::<tfp::Tensor>();
    shared::<tfp::TensorHandle>();
    shared::<tfp::TensorInfo>();
    shared::<tfp::TracedNode>();
    shared::<tfp::TypeOf>();
    shared::<tfp::TypeSet>();
    shared::<tfp::UInt2>();
    shared::<tfp::UInt4>();
    shared::<tfp::WeakEagerContext>();
    shared::<tfp::wire::Field<'static>>();
    shared::<tfp::wire::Reader<'static>>();
    shared::<tfp::wire::Value<'static>>();
    shared::<tfp::wire::Writer>();
};

/// A struct of the generated ops is shared because its fields are: these are all that there are.
macro_rules! fields {
    ($($kind:ty;)*) => {
        #[allow(dead_code, reason = "that it compiles is the test")]
        const fn fields_are_shared<'a, V: Send + Sync + 'a>() {
            $(shared::<$kind>();)*
        }

        const FIELDS: &[&str] = &[$(stringify!($kind)),*];
    };
}

fields! {
    &'a Shape;
    &'a Tensor;
    &'a [&'a str];
    &'a [Bytes<'a>];
    &'a [DataType];
    &'a [FuncRef<'a>];
    &'a [Shape];
    &'a [f32];
    &'a [i64];
    BatchPaddingPolicy;
    Bytes<'a>;
    ChannelPosition;
    CropBoxGradientMethod;
    CropMethod;
    DTensorReduction;
    DataFormat;
    DataFormat3d;
    DataFormatAny;
    DataFormatVectC;
    DataType;
    DensityUnit;
    DequantizeRounding;
    DiagonalAlignment;
    FinalOp;
    InputQuantMode;
    JpegFormat;
    MeanOrSum;
    MergeOp;
    MirrorPadMode;
    MixedPriorityPolicy;
    NcclReduction;
    Padding;
    PaddingOrExplicit;
    QuantizeMode;
    QuantizeRounding;
    RiscArithmetic;
    RiscComparison;
    RiscPooling;
    RiscSortDirection;
    RiscUnaryOp;
    RnnDirection;
    RnnInputMode;
    RnnMode;
    SdcaLoss;
    SparseTreeSplit;
    StringUnit;
    TreeSplit;
    UnicodeEncoding;
    UnicodeErrors;
    V;
    Vec<V>;
    XlaReduction;
    XlaReductionScope;
    bool;
    f32;
    i64;
}

#[test]
fn every_type_of_the_core_is_shared() {
    let names = reexported(&folder("core").join("lib.rs"));
    assert!(names.len() > 80, "{names:?}");
    // Traits, and other names of types that are listed.
    let others = [
        "Context",
        "Element",
        "IntoOperand",
        "IntoOperands",
        "Nested",
        "Operands",
        "Result",
        "Slots",
    ];
    let text = include_str!("core_types.rs");
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !others.contains(&name.as_str()) && !is_listed(text, name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_type_of_the_ops_is_shared() {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder("ops")).expect("the sources") {
        fields_in(&entry.expect("a file").path(), &mut found);
    }
    let listed: BTreeSet<String> = FIELDS.iter().map(|kind| kind.replace(' ', "")).collect();
    assert_eq!(found, listed);
}

/// The public enums and the types of the fields of public structs in a generated file, without spaces. `Option` is left
/// out: it is shared if what it has is.
fn fields_in(path: &Path, found: &mut BTreeSet<String>) {
    let text = std::fs::read_to_string(path).expect("a source");
    let mut is_in_struct = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("pub enum ") {
            found.insert(name.trim_end_matches(" {").to_owned());
        }
        is_in_struct = match line {
            "}" => false,
            _ => is_in_struct || line.starts_with("pub struct "),
        };
        let line = line.trim_start();
        if let Some((_, kind)) = line.trim_end_matches(',').split_once(": ")
            && is_in_struct
            && !line.starts_with("//")
        {
            let inner = kind.strip_prefix("Option<");
            let inner = inner.and_then(|inner| inner.strip_suffix('>'));
            found.insert(inner.unwrap_or(kind).replace(' ', ""));
        }
    }
}
