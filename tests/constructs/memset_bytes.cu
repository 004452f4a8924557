// expect: 16843009 16843009 16843009 16843009
#include "construct.h"



int main() { return show<int>(4, [&](int *out) { cudaMemset(out, 1, 16); }); }
