#include <stdio.h>

int main(void) { return puts("hello, world") < 0; }
