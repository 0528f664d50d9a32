// Steps of optimizers: one place of each operand is read once, and of each result written once.

typedef struct {
    long n, starts[4], numbers[8], type;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#endif
#define NUMBER_AT(k) OF_NUMBER((ulong)parameters.numbers[k])
#define VALUE(p, k) READ(p, parameters.starts[k] + i, TYPE)

#ifdef HAS_adam_step
KERNEL(GROUP_SIZE) void adam_step(
    const Parameters parameters, GLOBAL const void* parameter, GLOBAL const void* gradient,
    GLOBAL const void* first, GLOBAL const void* second, GLOBAL void* new_parameter,
    GLOBAL void* new_first, GLOBAL void* new_second) {
    const long i = ITEM;
    if (i >= parameters.n) return;
    const C g = VALUE(gradient, 1);
    const C m = VALUE(first, 2) * NUMBER_AT(1) + g * NUMBER_AT(2);
    const C v = VALUE(second, 3) * NUMBER_AT(3) + g * g * NUMBER_AT(4);
    const C change = m / (sqrt(v) * NUMBER_AT(6) + NUMBER_AT(7)) * NUMBER_AT(5);
    WRITE(new_parameter, i, TYPE, VALUE(parameter, 0) * NUMBER_AT(0) - change);
    WRITE(new_first, i, TYPE, m);
    WRITE(new_second, i, TYPE, v);
}
#endif

#ifdef HAS_sgd_step
KERNEL(GROUP_SIZE) void sgd_step(
    const Parameters parameters, GLOBAL const void* parameter, GLOBAL const void* gradient,
    GLOBAL const void* velocity, GLOBAL void* new_parameter, GLOBAL void* new_velocity) {
    const long i = ITEM;
    if (i >= parameters.n) return;
    const C rate = NUMBER_AT(0), momentum = NUMBER_AT(1), decay = NUMBER_AT(2);
    const C p = VALUE(parameter, 0);
    C g = VALUE(gradient, 1);
    if (decay != (C)0) g = g + p * decay;
    const C v = momentum != (C)0 ? VALUE(velocity, 2) * momentum + g : g;
    const C direction = NUMBER_AT(3) != (C)0 ? g + v * momentum : v;
    WRITE(new_parameter, i, TYPE, p - direction * rate);
    WRITE(new_velocity, i, TYPE, v);
}
#endif
