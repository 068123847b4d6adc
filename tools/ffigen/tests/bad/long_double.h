// expect: 2: error: 'precise': type 'long double' (LONGDOUBLE) is not supported
typedef long double precise;
