typedef enum Code { CODE_OK = 0, CODE_BAD = 1 } Code;
typedef void (*Reporter)(Code);
#define OLD_OK CODE_OK
#define OldReporter Reporter
#define OldCode Code
#define Flag unsigned char
