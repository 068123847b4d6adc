// expect: 3: error: 'started': a variable whose value can't be evaluated
int now();
const int started = now();
