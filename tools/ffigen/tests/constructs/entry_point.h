extern "C" {
typedef struct Params Params;
// Called once.
void SE_InitPlugin(Params* const params, int);
void ordinary(void);
}
