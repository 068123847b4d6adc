//! Calls C++ through the bindings of the construct headers: the golden crate compiles and runs.
//!
//! Each function is called twice, through the linker and through a table that was filled by name.
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{MaybeUninit, size_of};

use golden::loader::{Error, Lookup};
use golden::*;

unsafe extern "C" {
    fn write_scalars(out: *mut Scalars);
    fn read_unions(tagged: *const Tagged, holder: *const Holder) -> f64;
}

/// Functions by name, as far as `known` lists them.
struct Names {
    known: Vec<(&'static CStr, *mut c_void)>,
}

// SAFETY: every address is that of the linked function of that name.
unsafe impl Lookup for Names {
    fn address(&self, name: &CStr) -> *mut c_void {
        let found = self.known.iter().find(|(known, _)| *known == name);
        found.map_or(std::ptr::null_mut(), |(_, address)| *address)
    }

    fn place(&self) -> String {
        "the test".to_owned()
    }
}

fn names() -> Names {
    Names {
        known: vec![
            (c"make_thing", function::linked::make_thing as *mut c_void),
            (c"free_thing", function::linked::free_thing as *mut c_void),
            (c"thing_ok", function::linked::thing_ok as *mut c_void),
            (
                c"no_parameters",
                function::linked::no_parameters as *mut c_void,
            ),
            (
                c"empty_parentheses",
                function::linked::empty_parentheses as *mut c_void,
            ),
            (c"swap_pair", function::linked::swap_pair as *mut c_void),
            (c"fill", function::linked::fill as *mut c_void),
            (c"for_each", callback::linked::for_each as *mut c_void),
            (c"sort", callback::linked::sort as *mut c_void),
            (c"match", keywords::linked::r#match as *mut c_void),
            (c"by_reference", cxx::linked::by_reference as *mut c_void),
            (
                c"_ZN5outer7mangledEiPKc",
                cxx::linked::mangled as *mut c_void,
            ),
        ],
    }
}

fn tables() -> [GoldenApi; 2] {
    [
        GoldenApi::linked(),
        GoldenApi::resolve(&names()).expect("every function is there"),
    ]
}

#[test]
fn functions() {
    for api in tables() {
        let f = &api.function;
        // SAFETY: abi.cc defines what the functions do with their arguments.
        unsafe {
            let thing = f.make_thing(c"abc".as_ptr(), 3);
            let mut flag = false;
            assert!(f.thing_ok(thing, &raw mut flag));
            assert!(flag);
            f.free_thing(thing);
            assert_eq!((f.no_parameters(), f.empty_parentheses()), (7, 8));
            let pair = f.swap_pair(Pair {
                first: 3,
                second: 4.0,
            });
            assert_eq!((pair.first, pair.second), (4, 3.0));
            let mut values = [0; 4];
            let mut out = std::ptr::null_mut();
            let names = [c"four".as_ptr()];
            let more = [1, 2, 3, 4];
            f.fill(
                values.as_mut_ptr(),
                more.as_ptr(),
                names.as_ptr(),
                &raw mut out,
            );
            assert_eq!(values, [5, 6, 7, 8]);
            assert_eq!(out, values.as_mut_ptr().cast());
            assert_eq!(api.keywords.r#match(4, 2), 42);
        }
    }
}

unsafe extern "C" fn note(key: *const c_char, capture: *mut c_void) {
    // SAFETY: `for_each` passes C strings, and what the test gave it: a Vec<String>.
    unsafe {
        let keys = &mut *capture.cast::<Vec<String>>();
        keys.push(CStr::from_ptr(key).to_string_lossy().into_owned());
    }
}

unsafe extern "C" fn finish(capture: *mut c_void) {
    // SAFETY: as for `note`.
    unsafe { (*capture.cast::<Vec<String>>()).push("done".to_owned()) }
}

unsafe extern "C" fn difference(left: *const c_void, right: *const c_void) -> c_int {
    // SAFETY: `sort` passes pointers to two ints.
    unsafe { *left.cast::<c_int>() - *right.cast::<c_int>() }
}

#[test]
fn callbacks() {
    for api in tables() {
        let mut keys: Vec<String> = Vec::new();
        // SAFETY: the callbacks take what abi.cc passes, and `keys` outlives the calls.
        unsafe {
            let capture = (&raw mut keys).cast();
            api.callback.for_each(Some(note), capture, Some(finish));
            api.callback.for_each(Some(note), capture, None);
            assert_eq!(api.callback.sort(Some(difference)), -1);
            assert_eq!(api.callback.sort(None), -100);
        }
        assert_eq!(keys, ["one", "two", "done", "one", "two"]);
    }
}

#[test]
fn cxx_linkage_and_references() {
    let [_, by_name] = tables();
    let groups = [
        cxx::Functions::linked(&names()),
        by_name.cxx.expect("the group is there"),
    ];
    for cxx in groups {
        let text = c"hello";
        let value = With_default {
            version: 4,
            optional: None,
        };
        let mut out = value;
        // SAFETY: `mangled` only adds to the pointer; the references are to live values.
        unsafe {
            assert_eq!(
                cxx.mangled(2, text.as_ptr()),
                text.as_ptr().add(2).cast_mut().cast()
            );
            cxx.by_reference(&raw const value, &raw mut out);
        }
        assert_eq!(out.version, 5);
    }
}

#[test]
fn an_enum_value_without_a_name_is_a_value() {
    let group = enumeration::Functions::linked(&names());
    // SAFETY: the function returns a pointer to a static.
    let color = unsafe { *group.unused_color_pointer(UNSIGNED_B) };
    assert!(![COLOR_NONE, COLOR_RED, COLOR_BLUE, COLOR_LAST].contains(&color));
    assert_eq!(color, Color(i32::MIN + 100));
}

#[test]
fn structs_and_unions_hold_what_the_other_side_wrote() {
    let mut scalars = MaybeUninit::<Scalars>::uninit();
    // SAFETY: the function writes every byte.
    let scalars = unsafe {
        write_scalars(scalars.as_mut_ptr());
        scalars.assume_init()
    };
    assert!(scalars.flag);
    assert_eq!((scalars.letter, scalars.us), (b'x' as c_char, 65535));
    assert_eq!((scalars.ll, scalars.d, scalars.size), (-5, 2.5, 99));
    assert_eq!((scalars.u64_field, scalars.address), (1 << 63, 4096));
    let text = Tagged_u_text {
        data: std::ptr::null_mut(),
        length: 12,
    };
    let mut tagged = Tagged {
        tag: 0,
        u: Tagged_u { text },
    };
    let mut holder = Holder {
        tag: 2,
        number: Number { real: 0.5 },
    };
    // SAFETY: the tags say which members are set.
    unsafe {
        assert_eq!(read_unions(&raw const tagged, &raw const holder), 12.5);
        tagged.tag = 1;
        tagged.u.number = -4;
        holder.tag = 0;
        assert_eq!(read_unions(&raw const tagged, &raw const holder), -4.0);
    }
}

#[test]
fn constants() {
    assert_eq!((MAJOR, MINOR, MASK, BIG, SUM), (2, -21, 0xff, 1 << 40, 5));
    assert_eq!(NAME, c"name \"quoted\"\n");
    assert_eq!((Namespace_constant, PADDED_STRUCT_SIZE), (7, 9));
    assert_eq!(size_of::<Padded>(), 16);
    assert_eq!(OLD_OK, CODE_OK);
}

#[test]
fn every_missing_function_is_named() {
    let mut names = names();
    names
        .known
        .retain(|(name, _)| *name != c"sort" && *name != c"fill");
    let Err(Error::MissingSymbols { symbols, searched }) = GoldenApi::resolve(&names) else {
        panic!("two functions are missing");
    };
    assert_eq!(symbols, [("function.h", "fill"), ("callback.h", "sort")]);
    assert_eq!(searched, "the test");
}

#[test]
fn an_optional_group_can_be_missing() {
    let mut names = names();
    names.known.retain(|(name, _)| *name != c"by_reference");
    let api = GoldenApi::resolve(&names).expect("the group is optional");
    let error = api.cxx.expect_err("a function of it is missing");
    assert_eq!(
        error.to_string(),
        "the test lacks 1 required function: by_reference (cxx.h)"
    );
}

#[test]
fn an_optional_group_is_never_taken_from_the_linker() {
    // A program that links may link to a version that lacks it. This one exports no symbol.
    assert!(GoldenApi::linked().cxx.is_err());
}

#[test]
fn an_optional_function_can_be_missing() {
    let group = entry_point::Functions::resolve(&names()).expect("nothing is required");
    assert!(group.ordinary.is_none());
    unsafe extern "C" fn init(_params: *mut Params, _number: c_int) {}
    const ENTRY: SE_InitPlugin = init;
    let _ = ENTRY;
}
