/* Declarations that C written by TVM needs; they replace TVM's own runtime headers. */
#ifndef MLF2RUST_C_RUNTIME_API_H_
#define MLF2RUST_C_RUNTIME_API_H_

#include <stddef.h>
#include <stdint.h>

#include "../../dlpack/dlpack.h"

#ifndef TVM_DLL
#define TVM_DLL
#endif

typedef int64_t tvm_index_t;
typedef DLDataType TVMType;

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
  const char* v_str;
  DLDevice v_device;
} TVMValue;

enum {
  kTVMArgInt = 0,
  kTVMArgFloat = 2,
  kTVMOpaqueHandle = 3,
  kTVMNullptr = 4,
  kTVMDLTensorHandle = 7,
  kTVMNDArrayHandle = 13
};

/* Where TVM would keep a message, the crate keeps the code alone. */
#define TVMAPISetLastError(message) ((void)(message))

#endif
