// The peer of the adapter's benchmark: Relu on float32 for devices of type TFP, written against
// TensorFlow's C interface by hand. It has the label "peer", so that only nodes that ask for it get
// it.
#include <cstdint>

#include "tensorflow/c/kernels.h"

namespace {

void Compute(void*, TF_OpKernelContext* context) {
  TF_Status* status = TF_NewStatus();
  TF_Tensor* input = nullptr;
  TF_GetInput(context, 0, &input, status);
  int rank = TF_NumDims(input);
  int64_t dims[8];
  for (int i = 0; i < rank && i < 8; ++i) dims[i] = TF_Dim(input, i);
  // A handle would count as a user of the buffer, so that it could not be forwarded.
  TF_DeleteTensor(input);
  int candidate = 0;
  int forwarded = -1;
  TF_Tensor* output = TF_ForwardInputOrAllocateOutput(
      context, &candidate, 1, 0, dims, rank, &forwarded, status);
  if (TF_GetCode(status) != TF_OK) {
    TF_OpKernelContext_Failure(context, status);
    TF_DeleteStatus(status);
    return;
  }
  float* to = static_cast<float*>(TF_TensorData(output));
  const float* from = to;
  input = nullptr;
  if (forwarded < 0) {
    TF_GetInput(context, 0, &input, status);
    from = static_cast<const float*>(TF_TensorData(input));
  }
  int64_t count = TF_TensorElementCount(output);
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] < 0 ? 0 : from[i];
  if (input != nullptr) TF_DeleteTensor(input);
  TF_DeleteTensor(output);
  TF_DeleteStatus(status);
}

}  // namespace

extern "C" void TF_InitKernel() {
  TF_Status* status = TF_NewStatus();
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder("Relu", "TFP", nullptr, &Compute, nullptr);
  TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status);
  TF_KernelBuilder_Label(builder, "peer");
  TF_RegisterKernelBuilder("AdapterPeerRelu", builder, status);
  TF_DeleteStatus(status);
}
