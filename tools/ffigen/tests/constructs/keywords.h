// Names that Rust reserves.
typedef struct Keywords {
  int type;
  int self;
  void* ref;
  int gen;
} Keywords;
#ifdef __cplusplus
extern "C" {
#endif
int match(int in, int crate);
#ifdef __cplusplus
}
#endif
