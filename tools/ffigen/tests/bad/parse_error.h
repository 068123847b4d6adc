// expect: 2: error: unknown type name 'Missing'
Missing* broken(void);
