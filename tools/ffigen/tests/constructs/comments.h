/* A block
 * comment. */
typedef struct Commented {
  int a;  // trailing
  /// doc style
  int b;
  /** star style
   *  second line */
  int c;
} Commented;

// -----------------------------------
// Section text with `code_span` and https://example.org/a_b_c.
// -----------------------------------
typedef int After_section;
