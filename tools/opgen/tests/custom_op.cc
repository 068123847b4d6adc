// A library of custom ops: it registers one op when it is loaded.

extern "C" {
// tensorflow/c/ops.h and tensorflow/c/tf_status.h
struct TF_OpDefinitionBuilder;
struct TF_ShapeInferenceContext;
struct TF_Status;
TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name);
void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder*, const char* spec);
void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder*, const char* spec);
void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder*, const char* spec);
void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder*, void (*)(TF_ShapeInferenceContext*, TF_Status*));
void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext*,
                                             TF_Status*);
void TF_RegisterOpDefinition(TF_OpDefinitionBuilder*, TF_Status*);
TF_Status* TF_NewStatus();
void TF_DeleteStatus(TF_Status*);

__attribute__((constructor)) void RegisterOps() {
  TF_OpDefinitionBuilder* builder =
      TF_NewOpDefinitionBuilder("Company>ScaleBy");
  TF_OpDefinitionBuilderAddInput(builder, "values: N * T");
  TF_OpDefinitionBuilderAddOutput(builder, "scaled: N * T");
  TF_OpDefinitionBuilderAddAttr(builder, "N: int >= 1");
  TF_OpDefinitionBuilderAddAttr(builder, "T: {float, double}");
  TF_OpDefinitionBuilderAddAttr(builder, "rounding: {'UP', 'DOWN'} = 'UP'");
  TF_OpDefinitionBuilderAddAttr(builder, "factor: float");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(
      builder, &TF_ShapeInferenceContextSetUnknownShape);
  TF_Status* status = TF_NewStatus();
  TF_RegisterOpDefinition(builder, status);
  TF_DeleteStatus(status);
}
}
